"""How to reach somebody: addresses of all kinds, telephone numbers; and names where a text introduces them."""

from __future__ import annotations

from taciturn.screening.policies.shapes import BRIEF, GAP, LEFT, RIGHT, Table, after, define

_EXTENSION = r"(?: ?(?:x|ext\.?) ?\d{1,6})?"
# Ten digits after one of these are a record, and ten that begin with 1 a time in seconds: no area code does.
_RECORDS = (
    "order",
    "message",
    "record",
    "ticket",
    "invoice",
    "item",
    "id",
    "row",
    "timestamp",
    "event",
    "request",
    "job",
)
_NO_RECORD = "".join(rf"(?<!\b{word}{gap})" for word in _RECORDS for gap in (" ", ": ", " #", "=", "#"))
_PHONES = "|".join(
    (
        r"(?:(?:\+?1|001)[-. ]?)?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}",  # North America, with or without its code
        r"(?:\+|00)\d{1,3}(?:[-. ]?\(?\d{1,4}\)?){2,6}",  # international
        r"\(\d{2,5}\) ?\d{3,4}[- ]?\d{3,5}",  # area code in brackets
        r"0\d{1,4}(?:[- ]\d{2,6}){1,4}",  # national, trunk zero
        r"0\d{1,4}[- ]\d{7,8}",
        r"0\d{1,4} ?/ ?\d{3,9}(?:[- ]\d{1,5}){0,3}",  # 0171/2345678
        r"\d{2}(?:([-. ])\d{2})(?:\1\d{2}){2,3}",
        r"\d{3} \d{7}",
        r"\d{3} \d{3} \d{3,4}",
        rf"(?!1\d{{9}}(?!\d))(?i:{_NO_RECORD})\d{{10,11}}",
    )
)
_SOME_PHONES = (
    "980.322.8737",
    "(555) 010-1234",
    "001-555-010-1234x22",
    "+44 20 7946 0958",
    "020 7946 0958",
    "07218068540",
    "01223 452587",
    "call 2774023767.",
)
_CALLS = (
    r"(?:call|phone|ring|text|dial|reach|contact|answer(?:ing)?|whatsapp)(?: (?:me|us|him|her|them|back))?(?: (?:on"
    r"|at|under|via|to))?"
    r"|(?:tele)?phone|tel|mobile|cell|fax|hotline|registered|telefon|handy|t[ée]l[ée]phone|portable|tel[ée]fono"
    r"|m[óo]vil"
)

_STREET = (
    r"(?:Street|St|Road|Rd|Lane|Ln|Avenue|Ave|Av|Drive|Dr|Boulevard|Blvd|Court|Ct|Circle|Cir|Place|Pl|Parade|Square"
    r"|Sq|Way"
    r"|Close|Terrace|Ter|Parkway|Pkwy|Highway|Hwy|Crescent|Row|Mews|Walk|Hill|Gardens|Trail)"
)
_WORD = r"[\w'.-]{1,30}"
_UNIT = r"(?:,? {1,2}(?:Suite|Apt|Apartment|Unit|Flat|Room|No|#)\.? ?\w{1,6})?"
_CITY = rf"(?:,? {{1,2}}{_WORD}){{1,4}}, ?[A-Z]{{2}},? {{1,2}}\d{{5}}(?:-\d{{4}})?"
_ADDRESSES = "|".join(
    (
        rf"\d{{1,6}}[A-Z]?(?: {{1,2}}{_WORD}){{1,9}}, ?[A-Z]{{2}},? {{1,2}}\d{{5}}(?:-\d{{4}})?",  # number ... , ST 12345
        rf"\d{{1,6}}[A-Z]?(?: {{1,2}}{_WORD}){{1,4}}? {{1,2}}{_STREET}\b{_UNIT}(?:{_CITY})?",  # number, street
        # military
        r"(?:Unit|PSC|USNS|USS|USCGC|USNV|RM)(?:[ ,]{1,2}[\w-]{1,30}){1,4},?\s{1,2}(?:APO|FPO|DPO),? A[AEP],? \d{5}",
        r"P\.? ?O\.? ?Box \d{1,7}",
    )
)
# Streets of other languages: "Rua do Arenque 1634", "12 rue de la Paix", "Hauptstraße 5", "Søndergade 52".
_ROADS = (
    r"(?:Rua|Rue|Via|Viale|Piazza|Calle|Avenida|Camino|Camiño|Carrer|Plaza|Paseo|Avenue|Allée|Chemin|Ulica|ul\.|Travessa|Largo"
    r"|Colonia|Trg)"
)
_ROAD_ENDS = (
    r"(?:stra(?:ß|ss)e|str\.|gasse|weg|platz|allee|straat|laan|plein|steenweg|dreef|gatan?|vägen|vej|vænget|gade"
    r"|veien|vegur"
    r"|braut|katu|kuja|tie| utca| út| útja| tér| körút| tänav| tee| ulica)"
)
_PARTICLE = r"(?:[A-ZÀ-Þ\u0370-\u03ff][\w'.-]{1,30}|d[aeiou]s?|dell?[aeo]?|l[aeo]s?|of|von|der|y|e|du|l'[\w'.-]{2,30})"
_HOUSE = r"(?!(?:19|20)\d\d(?!\w))\d{1,5}(?: ?[a-z](?!\w)| ?bis| ?ter|[/-]\d{1,4})?"
_ABROAD = "|".join(
    (
        rf"(?:\d{{1,6}} )?{_ROADS}(?: {_PARTICLE}){{1,5}}?,? {_HOUSE}",
        rf"{_HOUSE},? (?i:{_ROADS})(?: {_PARTICLE}){{1,4}}",
        rf"(?:\d{{1,6}} )?(?:[A-ZÀ-Þ][\w'.-]{{1,30}} ){{0,3}}[A-ZÀ-Þ][\w-]{{0,30}}{_ROAD_ENDS} {_HOUSE}",
    )
)
# A flat in a house, and the lines of the address around it, down to a postcode.
_FLAT = r"(?:Suite|Apt\.?|Apartment) {1,2}#?\d{1,5}[A-Z]?"
_NUMBER_LINE = r"\d{1,6}[ >?]{1,3}(?:[\w'.-]{1,30}[ ,]{1,2}){0,6}?[\w'.-]{1,30}[,\s>?]{1,6}"
_BLOCK = (
    rf"(?:(?:{_NUMBER_LINE})?{_FLAT}|{_NUMBER_LINE}(?:Flat|Unit|Room) {{1,2}}#?\d{{1,5}}[A-Z]?)"
    r"(?:[,\s>?]{1,6}(?:[^\W\d_][^\d\n,\x1a]{1,40}[,\s>?]{1,8}){1,3}?\d{4,6}(?:-\d{3,4})?)?"
)
_STATES = (
    r"(?:ny|nj|ca|tx|fl|az|nv|nc|sc|tn|ky|ga|ct|nh|vt|ri|md|va|wv|mn|wi|il|mo|ks|ne|nd|sd|mt|wy|ut|nm|ar|dc|wa|mi|ma"
    r"|pa|ohio"
    r"|texas|california)"
)
_PROVIDERS = r"(?:gmail|googlemail|hotmail|yahoo|ymail|outlook|icloud|aol|protonmail|rediffmail|msn|gmx)"
_AT = r"(?: ?[\[({<] ?(?:at|ät) ?[\])}>] ?| (?:at|ät|arroba|arobase|chiocciola|małpa) | ?@ ?)"
_DOT = r"(?: ?[\[({<] ?(?:dot|punkt|punto) ?[\])}>] ?| (?:dot|punkt|punto|kropka) )"
_SIGN = rf"(?:{_DOT}| (?:underscore|dash|hyphen|minus) )"

# Without a number a street needs capitals.
_NAMED_STREETS = (
    "Street",
    "Road",
    "Lane",
    "Avenue",
    "Parade",
    "Square",
    "Drive",
    "Terrace",
    "Parkway",
    "Crescent",
    "Close",
)
_NAMED_STREET = rf"(?<!\w)(?:[A-Z][\w']{{1,30}} ){{1,3}}(?:{'|'.join(_NAMED_STREETS)})(?: City Cent(?:re|er))?(?!\w)"

# Capitalised words after a cue, or at the start of a text or a message.
_CUE = r"[Nn]ame(?: is|'s)|I'm|I am|[Tt]his is|[Ff]or|Mr\.?|Mrs\.?|Ms\.?|Miss|Dr\.?|[Ss]ure,|[Yy]es,|[Ii]t's|[Ii]s|[Yy]ep -"
_NAMED = rf"(?:(?<!\w)(?:{_CUE}) +|^|\x1f)(?!I'm\b|I\b)([A-Z][\w'-]{{1,30}}(?: [A-Z][\w'.-]{{0,30}}){{1,3}})(?<!\.)"

_TOP_LEVEL = (
    "com|org|net|edu|gov|mil|int|info|biz|io|ai|app|dev|me|tv|cloud|online|site|shop|co|us|uk|de|fr|es|it|nl|be|ch|at|se|no"
    "|dk|fi|pl|cz|pt|ie|ru|in|cn|jp|kr|br|mx|ca|au|nz|za|eu"
)
_KEYS = (
    r"(?:access_?|auth_?|api_?|refresh_?|id_?)?(?:token|key)|sig|signature|secret|password|passwd|pwd|pass|auth|code"
    r"|session"
    r"|sid|credential|jwt|sas|x-amz-(?:signature|credential|security-token)"
)
_URL = r"[^\s<>\"']"

TABLE: Table = dict(
    (
        define(
            "email",
            r"(?<![\w.+'%-])[\w.+'%-]++(?<!\.)@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?!\w)",
            "mail dana.vale+x@mail.example.org.",
            "DanaVale@example.org",
            needs=("@",),
            whole=False,
        ),
        define(
            "phone",
            rf"(?<![\w])(?<!\d[-.])(?:{_PHONES}){_EXTENSION}{RIGHT}",
            *_SOME_PHONES,
            check="phone",
            digits=7,
        ),
        define(
            "address",
            rf"{LEFT}(?:{_ADDRESSES})(?!\w)",
            "65775 Craig Union North Zachary, WI 42884",
            "12 1st ave  san mateo, ny 75227",
            "2164 Lincoln Ave",
            digits=1,
            ignore_case=True,
        ),
        define(
            "address-block",
            rf"(?<!\w){_BLOCK}(?!\w)",
            "28245 Puruntie 82 Apt. 595",
            "40 Edeby 55\n Apt. 297\n TYSTBERGA\n Sweden 18237",
            label="address",
            digits=1,
            ignore_case=True,
        ),
        define(
            "street-abroad",
            rf"(?<!\w)(?:{_ABROAD})(?!\w)",
            "Rua do Arenque 1634",
            "12 rue de la Paix",
            "Hauptstraße 5",
            "1634 Erzsébet utca 19",
            label="address",
            digits=1,
        ),
        define(
            "email-spoken",
            rf"(?<![\w.@+-])(?:[\w+-]{{1,30}}+{_SIGN}){{0,4}}[\w.+-]{{1,64}}+{_AT}[\w-]{{1,63}}(?:{_DOT}[\w-]{{2,24}}){{1,3}}(?!\w)"
            rf"|(?<![\w.@+-])(?:[\w.+-]{{1,64}}+ )?(?:\d{{1,8}} )?(?:at |@)?[\w.+-]{{0,64}}?{_PROVIDERS} ?(?:\."
            rf"|dot)? ?(?:com|co|de|net)(?!\w)",
            "dana [at] example [dot] org",
            "dana dot vale at example dot org",
            "raj 2015 gmailcom",
            label="email",
            ignore_case=True,
        ),
        after(
            "phone-cued",
            _CALLS,
            "call me on 450 0840",
            "Phone: 78 651 450",
            value=r"\+?\(?\d[\d ()./-]{4,20}\d",
            label="phone",
            digits=6,
            check="phone",
        ),
        after(
            "extension",
            r"ext|extn|extension|durchwahl|poste|interno",
            "ext 555-0132",
            "extension: 4421",
            value=r"\d{3,6}(?:[-. ]\d{2,4})?",
            gap=BRIEF,
            label="phone",
            digits=3,
        ),
        define(
            "postcode-cued",
            rf"(?<![^\W_])(?:zip|zip ?codes?|post ?codes?|postal codes?|plz|code postal"
            rf"|c[óo]digo postal){GAP}([A-Z]{{0,2}}\d[A-Z0-9]{{1,7}}(?:[ -](?:\d[A-Z\d]{{1,3}}"
            rf"|[A-Z]{{2}}(?!\w)))?)(?!\w)",
            "my zip code is 880",
            "PLZ: 10115",
            label="postcode",
            digits=2,
            group=1,
            ignore_case=True,
        ),
        define(
            "street",
            _NAMED_STREET,
            "Regent Street City Centre",
            "at Jesus Lane.",
            label="address",
            needs=_NAMED_STREETS,
        ),
        define(
            "postcode",
            r"(?<!\w)(?:(?i:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})|[A-Z]{2} \d{5}(?:-\d{4})?"
            rf"|(?<=[a-z][ ,])(?i:{_STATES}),? \d{{5}}(?:-\d{{4}})?)(?!\w)",
            "endicott ny 13760",
            "cb21db",
            "CB2 1SJ",
            "WI 42884",
            digits=2,
        ),
        define(
            "url",
            r"(?<!\w)(?:https?://|www\.|HTTPS?://|WWW\.)[^\s<>\"']*[^\s<>\"'.,;:!?)\]]",
            "see https://www.example.org/a?b=c",
            needs=("://", "www.", "WWW."),
            whole=False,
        ),
        define(
            "url-token",
            rf"(?<!\w)[a-z][a-z0-9+.-]{{1,20}}://(?:[^\s<>\"'/:@]{{0,64}}:[^\s<>\"'/@]{{1,128}}@|{_URL}{{1,512}}?[?&#;]"
            rf"(?:{_KEYS})=){_URL}*+",
            "https://dana:" + "pass@example.org/",
            "https://example.org/a?x=1&access_token=" + "abc",
            "https://example.org/a?sig=" + "abc",
            needs=("://",),
            ignore_case=True,
            whole=False,
        ),
        define(
            "domain",
            rf"(?<![\w.@/-])(?:[a-z0-9](?:[a-z0-9-]{{0,61}}[a-z0-9])?\.){{1,6}}(?:{_TOP_LEVEL})(?![\w-]|\.\w)",
            "visit shop.example.org.",
            needs=(".",),
            ignore_case=True,
            whole=False,
        ),
        define("name", _NAMED, "My name's Dana Vale.", "Sure, Dana Vale-Ott.", "Dana Vale", group=1),
    )
)
