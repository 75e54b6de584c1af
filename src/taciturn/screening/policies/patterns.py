"""The built-in regular expressions. Every repeat is bounded or possessive, so that a scan takes linear time."""

from __future__ import annotations

from functools import cache

from taciturn.screening.policies.regex import Regex

# Not inside a word or a longer number.
_LEFT = r"(?<![\w])(?<!\d[-.])"
_RIGHT = r"(?!\w|[-.]\d)"
_EXTENSION = r"(?: ?(?:x|ext\.?) ?\d{1,6})?"

_PHONES = "|".join(
    (
        r"(?:(?:\+?1|001)[-. ]?)?(?:\(\d{3}\) ?|\d{3}[-. ])\d{3}[-. ]\d{4}",  # North America, with or without its code
        r"(?:\+|00)\d{1,3}(?:[-. ]?\(?\d{1,4}\)?){2,6}",  # international
        r"\(\d{2,5}\) ?\d{3}[- ]?\d{3,5}",  # area code in brackets
        r"0\d{1,4}(?:[- ]\d{2,6}){1,4}",  # national, trunk zero
        r"\d{2}(?:[- ]\d{2}){3,4}",
        r"\d{3} \d{3} \d{3,4}",
        r"\d{10,11}",
    )
)

_STREET = (
    r"(?:Street|St|Road|Rd|Lane|Ln|Avenue|Ave|Av|Drive|Dr|Boulevard|Blvd|Court|Ct|Circle|Cir|Place|Pl|Parade|Square|Sq|Way"
    r"|Close|Terrace|Ter|Parkway|Pkwy|Highway|Hwy|Crescent|Row|Mews|Walk|Hill|Gardens|Trail)"
)
_WORD = r"[\w'.-]{1,30}"
_UNIT = r"(?:,? {1,2}(?:Suite|Apt|Apartment|Unit|Flat|Room|No|#)\.? ?\w{1,6})?"
_CITY = rf"(?:,? {{1,2}}{_WORD}){{1,4}}, ?[A-Z]{{2}},? {{1,2}}\d{{5}}(?:-\d{{4}})?"
_ADDRESSES = "|".join(
    (
        rf"\d{{1,6}}[A-Z]?(?: {{1,2}}{_WORD}){{1,9}}, ?[A-Z]{{2}},? {{1,2}}\d{{5}}(?:-\d{{4}})?",  # number ... , ST 12345
        rf"\d{{1,6}}[A-Z]?(?: {{1,2}}{_WORD}){{1,4}}? {{1,2}}{_STREET}\b{_UNIT}(?:{_CITY})?",  # number, street
        r"(?:Unit|PSC|USNS|USS|USCGC|USNV|RM)(?: {1,2}[\w-]{1,30}){1,4},? (?:APO|FPO|DPO),? A[AEP],? \d{5}",  # military
        r"P\.? ?O\.? ?Box \d{1,7}",
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
_CARDS = r"\d{4}([- ]?)\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{4}([- ]?)\d{6}\2\d{5}|\d{12,19}"
# Capitalised words after a cue, or at the start of a text or a message.
_CUE = r"[Nn]ame(?: is|'s)|I'm|I am|[Tt]his is|[Ff]or|Mr\.?|Mrs\.?|Ms\.?|Miss|Dr\.?|[Ss]ure,|[Yy]es,|[Ii]t's|[Ii]s|[Yy]ep -"
_NAMED = rf"(?:(?<!\w)(?:{_CUE}) +|^|\x1f)(?!I'm\b|I\b)([A-Z][\w'-]{{1,30}}(?: [A-Z][\w'.-]{{0,30}}){{1,3}})(?<!\.)"


def _table() -> tuple[Regex, ...]:
    return (
        Regex(
            "ssn",
            rf"{_LEFT}\d{{3}}([- ])\d{{2}}\1\d{{4}}{_RIGHT}",
            must_find=("078-05-1126", "SSN 123\u201045\u20106789"),
            check="ssn",
            digits=9,
        ),
        Regex(
            "email",
            r"(?<![\w.+'%-])[\w.+'%-]++(?<!\.)@(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?!\w)",
            must_find=("mail dana.vale+x@mail.example.org.", "DanaVale@example.org"),
            needs=("@",),
        ),
        Regex(
            "phone",
            rf"(?<![\w])(?<!\d[-.])(?:{_PHONES}){_EXTENSION}{_RIGHT}",
            must_find=_SOME_PHONES,
            check="phone",
            digits=7,
        ),
        Regex(
            "card",
            rf"{_LEFT}(?:{_CARDS})(?!\w|-\d)",
            must_find=("4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "4111 1111 1111 1111.com"),
            check="luhn",
            digits=12,
        ),
        Regex(
            "iban",
            r"(?<!\w)[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?)(?!\w)",
            must_find=("GB82 WEST 1234 5698 7654 32", "gb82west12345698765432 ."),
            check="iban",
            digits=2,
            ignore_case=True,
        ),
        Regex("reference", r"(?<!\w)[A-Z0-9]{8}(?!\w)", must_find=("ref 7GAWK763.",), check="mixed", digits=1),
        Regex(
            "order",
            rf"{_LEFT}(?:\d{{3}}-\d{{5}}-\d{{4}}|\d{{3}}-\d{{7}}-\d{{7}}){_RIGHT}",
            must_find=("order 843-58572-7002.",),
            digits=12,
        ),
        Regex(
            "tracking",
            r"(?<!\w)(?:[A-Z0-9]{10}|1Z ?(?:[A-Z0-9]{4} ?){4})(?!\w)",
            must_find=("number AGZIM5T6KL.", "1Z999AA10123456784"),
            check="mixed",
            digits=1,
        ),
        Regex(
            "address",
            rf"{_LEFT}(?:{_ADDRESSES})(?!\w)",
            must_find=(
                "65775 Craig Union North Zachary, WI 42884",
                "12 1st ave  san mateo, ny 75227",
                "2164 Lincoln Ave",
            ),
            digits=1,
            ignore_case=True,
        ),
        Regex(
            "street", _NAMED_STREET, "address", ("Regent Street City Centre", "at Jesus Lane."), needs=_NAMED_STREETS
        ),
        Regex(
            "postcode",
            r"(?<!\w)(?:(?i:[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2})|[A-Z]{2} \d{5}(?:-\d{4})?)(?!\w)",
            must_find=("cb21db", "CB2 1SJ", "WI 42884"),
            digits=2,
        ),
        Regex(
            "url",
            r"(?<!\w)(?:https?://|www\.|HTTPS?://|WWW\.)[^\s<>\"']*[^\s<>\"'.,;:!?)\]]",
            must_find=("see https://www.example.org/a?b=c",),
            needs=("://", "www.", "WWW."),
        ),
        Regex("ip", r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)", must_find=("192.168.0.1.",), check="ip", digits=4),
        Regex("digits", r"\d++(?:[.,:/-]\d++)*+", "number", ("7", "12,345.67", "17:15", "\uff11\uff12"), digits=1),
        Regex("name", _NAMED, must_find=("My name's Dana Vale.", "Sure, Dana Vale-Ott.", "Dana Vale"), group=1),
    )


@cache
def built_in() -> dict[str, Regex]:
    """name -> detector. Made on first use: each one tries its examples."""
    return {detector.name: detector for detector in _table()}


PII = (
    "ssn",
    "email",
    "phone",
    "card",
    "iban",
    "reference",
    "order",
    "tracking",
    "address",
    "street",
    "postcode",
    "url",
    "ip",
)
"""Preset "pii": every pattern that is precise enough to redact by."""

CUSTOMERSIM = ("name", "address", "phone", "order", "tracking")
"""Preset "customersim": the five slots of the simulated customer-service dialogues."""

MULTIWOZ = ("reference", "phone", "postcode", "street", "address")
"""Preset "multiwoz": reference numbers, telephone numbers, addresses, postcodes."""
