"""Numbers that a country gives: the packs us, gb, de, fr, es, in (more_countries.py has six more). Check digits are
python-stdnum's (policies/checks.py) where it has them; a form that anything could have needs its cue."""

from __future__ import annotations

from taciturn.screening.policies.patterns.more_countries import BR, IT, NL, PL, PT, SE
from taciturn.screening.policies.shapes import LEFT, RIGHT, Maker, Table, after, define

_PASSPORT = r"passports?|reisepass|passeport|pasaporte"


def _passport(country: str, value: str, example: str) -> tuple[str, Maker]:
    return after(f"{country}-passport", _PASSPORT, f"passport number: {example}", value=value)


_PLAIN = "AC-HJKMNP-RT-Y"  # Medicare leaves out S, L, O, I, B, Z

US: Table = dict(
    (
        after(
            "us-ssn",
            r"ssn|social(?: security)?|soc sec",
            "social security number is 078051126",
            "last four of my ssn is 2254",
            "ssn 078 05 1126",
            value=r"\d{3}[-. ]?\d{2}[-. ]?\d{4}|\d{4}",
            label="ssn",
            digits=4,
        ),
        define("us-itin", rf"{LEFT}9\d{{2}}([- ]?)\d{{2}}\1\d{{4}}{RIGHT}", "912-90-3456", check="us.itin", digits=9),
        after(
            "us-ein",
            r"f?ein|employer (?:id|identification)(?: number| no\.?)?|tax id",
            "EIN: 91-1144442",
            value=r"\d{2}-?\d{7}",
            digits=9,
        ),
        define(
            "us-routing",
            rf"{LEFT}(?:0\d|1[0-2]|2[1-9]|3[0-2]|6[1-9]|7[0-2]|80)\d{{7}}{RIGHT}",
            "ABA 111000025",
            check="us.rtn",
            digits=9,
        ),
        _passport("us", r"[A-Z]\d{8}|\d{9}", "C01234567"),
        define(
            "us-medicare",
            rf"(?<!\w)[1-9][{_PLAIN}][{_PLAIN}0-9]\d-?[{_PLAIN}][{_PLAIN}0-9]\d-?[{_PLAIN}]{{2}}\d{{2}}(?!\w)",
            "1EG4-TE5-MK73",
            "1EG4TE5MK73",
            digits=5,
        ),
        after(
            "us-npi",
            r"npi|national provider(?: identifier)?",
            "NPI: 1234567893",
            value=r"[12]\d{9}",
            check="us-npi",
            digits=10,
        ),
        define("us-dea", r"(?<!\w)[A-HJ-MP-UX][A-Z9]\d{7}(?!\w)", "BB1388568", check="us-dea", digits=7),
    )
)

GB: Table = dict(
    (
        define(
            "gb-nino",
            r"(?<!\w)(?!BG|GB|KN|NK|NT|TN|ZZ)"
            r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z][ -]?\d{2}[ -]?\d{2}[ -]?\d{2}[ -]?[A-D](?!\w)",
            "QQ 12 34 56 C".replace("QQ", "AB"),
            "ab123456c",
            digits=6,
            ignore_case=True,
        ),
        define("gb-nhs", rf"{LEFT}\d{{3}}([ -]?)\d{{3}}\1\d{{4}}{RIGHT}", "943 476 5919", check="gb.nhs", digits=10),
        after("gb-utr", r"utr|unique taxpayer(?: reference)?", "UTR 1955839661", value=r"\d{5} ?\d{5}", digits=10),
        define(
            "gb-vat", r"(?<!\w)GB ?\d{3} ?\d{4} ?\d{2}(?: ?\d{3})?(?!\w)", "GB 980 7806 84", check="gb.vat", digits=9
        ),
        after(
            "gb-sort-code",
            r"sort[ -]?code",
            "sort code 20-45-45",
            value=r"\d{2}[- ]?\d{2}[- ]?\d{2}(?:[ ,/]{1,3}\d{8})?",
            digits=6,
        ),
        define(
            "gb-driving-licence",
            r"(?<!\w)(?=[A-Z]{1,5}9{0,4}\d)[A-Z9]{5} ?\d[0156]\d(?:[0-2]\d|3[01])\d ?[A-Z9]{2}[A-Z0-9] ?[A-Z]{2}(?!\w)",
            "MORGA753116SM9IJ",
            digits=6,
        ),
        _passport("gb", r"\d{9}", "533380006"),
    )
)

DE: Table = dict(
    (
        define(
            "de-tax-id",
            rf"{LEFT}[1-9]\d([ -]?)\d{{3}}\1\d{{3}}\1\d{{3}}{RIGHT}",
            "36 574 261 809",
            check="de.idnr",
            digits=11,
        ),
        define(
            "de-tax-number", r"(?<![\w/])\d{2,3}/\d{3,4}/\d{4,5}(?![\w/])", "93/815/08152", check="de.stnr", digits=10
        ),
        define("de-vat", r"(?<!\w)DE ?\d{3} ?\d{3} ?\d{3}(?!\w)", "DE 136 695 976", check="de.vat", digits=9),
        define(
            "de-id-card",
            r"(?<!\w)[CFGHJKLMNPRTVWXYZ][0-9CFGHJKLMNPRTVWXYZ]{8}\d(?!\w)",
            "T220001293",
            check="icao",
            digits=2,
        ),
        _passport("de", r"[CFGHJK][0-9CFGHJKLMNPRTVWXYZ]{8}\d?", "C01X00T47"),
        define(
            "de-pension",
            r"(?<!\w)\d{2} ?[0-3]\d[01]\d{3} ?[A-Z] ?\d{3}(?!\w)",
            "65 170839 J 003",
            check="de-pension",
            digits=11,
        ),
        define("de-health", r"(?<!\w)[A-Z]\d{9}(?!\w)", "A123456780", check="de-health", digits=9),
        define("de-plate", r"(?<![\w-])[A-ZÄÖÜ]{1,3}-[A-Z]{1,2} \d{1,4}[EH]?(?!\w)", "B-MW 1234", digits=1),
    )
)

FR: Table = dict(
    (
        define(
            "fr-insee",
            rf"{LEFT}[1-478] ?\d{{2}} ?\d{{2}} ?(?:\d{{2}}|2[AB]) ?\d{{3}} ?\d{{3}} ?\d{{2}}{RIGHT}",
            "2 95 10 99 126 111 93",
            check="fr.nir",
            digits=14,
            ignore_case=True,
        ),
        define(
            "fr-tax-id",
            rf"{LEFT}[0-3]\d ?\d{{2}} ?\d{{3}} ?\d{{3}} ?\d{{3}}{RIGHT}",
            "30 23 217 600 053",
            check="fr.nif",
            digits=13,
        ),
        after(
            "fr-siren",
            r"siren|rcs(?: \w{1,30})?",
            "SIREN 552 008 443",
            value=r"\d{3} ?\d{3} ?\d{3}",
            check="fr.siren",
            digits=9,
        ),
        define(
            "fr-siret",
            rf"{LEFT}\d{{3}} ?\d{{3}} ?\d{{3}} ?\d{{5}}{RIGHT}",
            "732 829 320 00074",
            check="fr.siret",
            digits=14,
        ),
        define(
            "fr-vat",
            r"(?<!\w)FR ?[A-Z0-9]{2} ?\d{3} ?\d{3} ?\d{3}(?!\w)",
            "FR 40 303 265 045",
            check="fr.tva",
            digits=9,
        ),
        _passport("fr", r"\d{2}[A-Z]{2}\d{5}", "12AB34567"),
        after(
            "fr-id-card",
            r"carte (?:nationale )?d'identit[ée]|cni|id card",
            "carte d'identité n° 880692310285",
            value=r"\d{12}|(?=[A-Z]{0,4}\d)[A-Z0-9]{9}",
        ),
        define("fr-plate", r"(?<![\w-])[A-HJ-NP-TV-Z]{2}-\d{3}-[A-HJ-NP-TV-Z]{2}(?![\w-])", "AB-123-CD", digits=3),
    )
)

ES: Table = dict(
    (
        define(
            "es-dni",
            r"(?<!\w)\d{2}\.?\d{3}\.?\d{3}[ -]?[A-Z](?!\w)",
            "54362315-K",
            check="es.dni",
            digits=8,
            ignore_case=True,
        ),
        define(
            "es-nie",
            r"(?<!\w)[XYZ][ -]?\d{7}[ -]?[A-Z](?!\w)",
            "X-2482300W",
            check="es.nie",
            digits=7,
            ignore_case=True,
        ),
        define("es-cif", r"(?<!\w)[A-HJNP-SUVW][ -]?\d{7}[ -]?[0-9A-J](?!\w)", "J99216582", check="es.cif", digits=7),
        define("es-vat", r"(?<!\w)ES ?[A-Z0-9]-?\d{7}-?[A-Z0-9](?!\w)", "ES 54362315K", check="es.nif", digits=7),
        define(
            "es-pension",
            rf"{LEFT}\d{{2}}[ /-]\d{{7,8}}[ /-]\d{{2}}{RIGHT}",
            "28/12345678/40",
            check="es-pension",
            digits=11,
        ),
        define(
            "es-account",
            rf"{LEFT}\d{{4}}([ -]?)\d{{4}}\1\d{{2}}\1\d{{10}}{RIGHT}",
            "1234-1234-16-1234567890",
            check="es.ccc",
            digits=20,
        ),
        _passport("es", r"[A-Z]{3}\d{6}[A-Z]?", "AAA123456"),
        define("es-plate", r"(?<![\w-])\d{4}[ -]?[BCDFGHJ-NPR-TV-Z]{3}(?![\w-])", "1234 BCD", digits=4),
    )
)

IN: Table = dict(
    (
        define(
            "in-aadhaar",
            rf"{LEFT}[2-9]\d{{3}}([ -]?)\d{{4}}\1\d{{4}}{RIGHT}",
            "2341 2341 2346",
            check="in_.aadhaar",
            digits=12,
        ),
        define(
            "in-vid",
            rf"{LEFT}[2-9]\d{{3}}([ -]?)\d{{4}}\1\d{{4}}\1\d{{4}}{RIGHT}",
            "2341 2341 2341 2341",
            check="in_.vid",
            digits=16,
        ),
        define("in-pan", r"(?<!\w)[A-Z]{5}\d{4}[A-Z](?!\w)", "ACUPA7085R", check="in_.pan", digits=4, ignore_case=True),
        define(
            "in-gstin",
            r"(?<!\w)\d{2}[A-Z]{5}\d{4}[A-Z][A-Z0-9]Z[A-Z0-9](?!\w)",
            "27AAPFU0939F1ZV",
            check="in_.gstin",
            digits=7,
            ignore_case=True,
        ),
        define("in-voter-id", r"(?<!\w)[A-Z]{3}\d{7}(?!\w)", "WKH1186253", check="in_.epic", digits=7),
        define("in-ifsc", r"(?<!\w)[A-Z]{4}0[A-Z0-9]{6}(?!\w)", "IFSC: HDFC0001234", digits=2),
        _passport("in", r"[A-PR-WY][1-9]\d ?\d{4}[1-9]", "J8369854"),
        define(
            "in-phone",
            rf"(?<![\w+])(?:\+?91[- ]?|0)?[6-9]\d{{4}}[- ]?\d{{5}}{RIGHT}",
            "98765 43210",
            "+91 98765-43210",
            digits=10,
            label="phone",
        ),
        define("in-plate", r"(?<!\w)[A-Z]{2}[ -]?\d{1,2}[ -]?[A-Z]{1,3}[ -]?\d{4}(?!\w)", "MH 12 AB 1234", digits=5),
    )
)

PACKS: dict[str, Table] = {
    "us": US, "gb": GB, "de": DE, "fr": FR, "es": ES, "in": IN, "pl": PL, "it": IT, "nl": NL, "pt": PT, "se": SE, "br": BR,
}  # fmt: skip
"""Preset -> its own detectors."""

ALSO = {"us": ("ssn",), "gb": ("postcode",)}
"""Detectors without a country in their name that belong to a pack."""

OTHER_NAMES = {
    "uk": "gb",
    "england": "gb",
    "britain": "gb",
    "usa": "us",
    "america": "us",
    "germany": "de",
    "deutschland": "de",
    "france": "fr",
    "spain": "es",
    "espana": "es",
    "india": "in",
    "poland": "pl",
    "polska": "pl",
    "italy": "it",
    "italia": "it",
    "netherlands": "nl",
    "nederland": "nl",
    "holland": "nl",
    "portugal": "pt",
    "sweden": "se",
    "sverige": "se",
    "sv": "se",
    "brazil": "br",
    "brasil": "br",
}
"""What people write for a pack: an error names the right one."""
