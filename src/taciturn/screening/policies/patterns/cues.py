"""Words that announce a secret, and what follows them. They work in lower case, where recognisers of names fail.

Preset "cues" is precise enough for π: a name, an address, a number. Preset "cues-wide" takes the rest of the line and is for
π_c only.
"""

from __future__ import annotations

from taciturn.screening.policies.shapes import Table, after, define

# Where a name ends: it is followed by one of these, or it is none when it begins with one.
_STOP = (
    r"(?:a|about|account|after|again|all|already|also|always|am|an|and|any|anyone|appears|are|as|asking|at|available"
    r"|aware|back"
    r"|be|because|been|being|booking|but|by|calling|can|card|changed|come|coming|confirmation|correct|could|credit"
    r"|did|do|does"
    r"|doing|done|each|email|for|from|getting|give|going|good|got|had|happy|has|have|having|he|hello|help|her|here"
    r"|hi|his|how|i"
    r"|if|i'm|important|in|incorrectly|interested|is|it|its|it's|just|like|listed|live|looking|make|me|mine"
    r"|misspelled|my|need"
    r"|never|new|no|not|nothing|now|number|of|ok|okay|on|one|only|or|order|originally|our|out|phone|please|printed"
    r"|ready|really"
    r"|she|should|shows|so|sorry|speaking|spelled|spelt|ssn|still|sure|talking|than|thank|thanks|that|the|their|then"
    r"|there|these"
    r"|they|this|those|to|today|too|trying|unable|under|unique|unknown|until|up|used|very|wanna|want|wanted|was|we"
    r"|well|were|what"
    r"|when|where|which|while|who|why|will|wish|with|would|writing|written|wrong|yes|you|your)"
)
_PIECE = rf"(?!{_STOP}(?![\w]))[^\W\d_][\w'-]{{0,30}}"
_PERSON = rf"{_PIECE}(?: {{1,2}}{_PIECE}|[ ](?-i:[A-Z])\.){{0,3}}"
_SPOKEN = rf"(?!\w{{1,20}}(?:ed|ing|ly|ful|able)(?!\w)){_PIECE}(?: {_PIECE}){{0,2}}"
_NAME_CUES = "|".join(
    (
        r"(?:my|your|his|her|their|(?:first|last|middle|full|family|given|maiden|sur|nick|user|customer'?s?"
        r"|patient'?s?|account"
        r"|holder'?s?|card ?holder'?s?|mother'?s?(?: maiden)?|father'?s?|husband'?s?|wife'?s?|friend'?s?|son'?s?"
        r"|daughter'?s?)"
        r"[ -]?)(?: (?:first|last|full|middle|maiden|sur|user))?[ -]?name(?:'?s)?(?: is| was|:|=| -)?",
        r"(?:the )?names? (?:is|was)",
        r"(?:^|[\x1e\x1f])names?",
        r"names?'s",
        r"names?[:=]",
        r"(?:you can |please |just |people |they |friends )(?:sometimes )?call me",
        r"known as",
        r"(?:mr|mrs|(?-i:Ms|Miss|Dr|Prof))\.?",
        r"(?:i'm|i am|this is|it's) (?:called|named)",
    )
)
_CALLING = r"(?: calling| speaking| here| from| on the line|,? and i|,? and my)(?!\w)"
_HOUSE = (
    r"(?!(?:and|as|associated|for|from|has|i|in|is|it|of|on|please|quite|so|that|to|was|when|which|with|you)(?!\w))"
    r"[^\s,;.!?\x1a][^\n.;!?\x1a]{3,100}"
)
_ADDRESS_CUES = (
    r"(?:my|his|her|their|our|the|home|street|billing|shipping|mailing|delivery|postal|current|new|full|permanent)"
    r" (?:(?:home|street|billing|shipping|mailing|delivery|postal|current|new|full) )?address(?: on file)?"
    r"|address(?: is|:)|(?:^|[\x1e\x1f])address"
)
_NUMBER_CUES = (
    r"(?:pin|cvv|cvc|otp|one[- ]time (?:code|password|passcode)|(?:security|verification|access) code|ssn"
    r"|social(?: security)?"
    r"|zip ?codes?|zip|post ?codes?|postal code|account|acct|phone|telephone|mobile|cell|fax)"
    r"|(?:card|contact|extension|id|member|licen[cs]e|claim|policy|confirmation|booking|order|reference|case"
    r"|customer|employee)"
    r"(?: (?:numbers?|num|no|id|code)(?![^\W_])\.?| ?#| ?:| is(?!\w))"
)
_LOGIN_CUES = r"(?:user[ _-]?(?:name|id)|log[ -]?in(?: name| id)?|screen name|account name)(?: is| was)?[\s:=\"']{1,3}"
_MAIL = r"(?:\w{1,30} )?[\w.+-]{0,40}(?:@|\d|com|net|org)[\w.@+-]{0,40}(?: [\w.]{2,20}(?:com|net|org))?"
_WIDE = "|".join(
    (
        r"names?|i'm|i am|this is|call me|signed|sincerely|regards|dear",
        r"address|live[sd]? (?:in|at|on|near)|living (?:in|at)|resid(?:e|es|ing)|moved to|born|birth(?:day)?|grew up"
        r"|years old|aged",
        r"password|passcode|pass ?phrase|pwd|pin|login|log in as|user ?name|user ?id|e-?mail|phone|mobile|cell|tel"
        r"|fax|contact",
        r"number|account|card|ssn|social security|passport|licen[cs]e|policy|claim|confirmation|reference|order"
        r"|routing|iban",
        r"my (?:wife|husband|partner|son|daughter|mother|father|mom|dad|brother|sister|boss|friend|doctor|lawyer"
        r"|employer|company)",
        r"diagnosed|prescribed|symptoms?|patient|salary|earn(?:s|ed)?|income|married|divorced|arrested|convicted"
        r"|religion|pregnant",
    )
)

TABLE: Table = dict(
    (
        define(
            "cue-name",
            rf"(?<![^\W_])(?:{_NAME_CUES})[\s\"']{{1,3}}({_PERSON})",
            "my name is richard and i will be taking over from here",
            "Name: dana vale",
            "last name joseph",
            group=1,
            ignore_case=True,
        ),
        define(
            "cue-calling",
            rf"(?<![^\W_])(?:this is|i'm|i am|it's) ({_SPOKEN})(?={_CALLING})",
            "this is dana calling",
            "i am dana from accounts",
            group=1,
            ignore_case=True,
        ),
        define(
            "cue-i-am",
            r"(?<!\w)(?:[Ii]'m|[Ii] am|[Tt]his is|[Cc]all me) ((?!I\b|I'|The\b|A\b|An\b|My\b|Not\b"
            r"|Your\b)[A-Z][\w'-]{1,30}(?: [A-Z][\w'.-]{0,30}){0,2})(?<!\.)",
            "I'm Dana, nice to meet you",
            "call me Dana",
            group=1,
        ),
        after("cue-address", _ADDRESS_CUES, "my address is the mill, 4 water lane", value=_HOUSE, digits=0),
        define(
            "cue-living",
            r"(?<!\w)(?:i|we|he|she|they) (?:currently )?(?:live|lives|reside|resides) (?:at|in"
            r"|on) ([^\s,;.!?\x1a][^\n,;.!?\x1a]{2,60}(?:, ?[^\n,;.!?\x1a]{2,30})?)",
            "i live at 4 water lane, oldtown",
            group=1,
            ignore_case=True,
        ),
        after("cue-number", _NUMBER_CUES, "pin is 4821", "my zip: 32562", "booking number a 4 g 4 f 3"),
        define(
            "cue-login",
            rf"(?<![^\W_]){_LOGIN_CUES}((?!{_STOP}(?!\w))[\w.@+-]{{2,64}})",
            "username is cminh730",
            "login: dana.vale",
            group=1,
            ignore_case=True,
        ),
        define(
            "cue-email",
            rf"(?<![^\W_])e-?mail(?: address)?(?: ids?)?(?: is|:| =|(?<=id)) {{0,2}}({_MAIL})(?!\w)",
            "my email id is raj 2015 gmailcom",
            group=1,
            ignore_case=True,
        ),
        define(
            "cue-line",
            rf"(?<!\w)(?:{_WIDE})(?!\w)[^\w\n\x1e\x1f]{{0,8}}([^\W_][^\n\x1e\x1f]{{0,400}}+)",
            "my name is the one on the door",
            group=1,
            ignore_case=True,
        ),
    )
)
CUES = (
    "cue-name",
    "cue-calling",
    "cue-i-am",
    "cue-address",
    "cue-living",
    "cue-number",
    "cue-login",
    "cue-email",
    "date-of-birth",
    "password",
)
WIDE = (*CUES, "cue-line")
