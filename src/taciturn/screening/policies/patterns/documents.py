"""Papers of a person: identity, health, tax and vehicle numbers behind their cues, dates, machine-readable zones."""

from __future__ import annotations

from taciturn.screening.policies.shapes import LEFT, NOT_WORD, RIGHT, Table, after, define

_MONTH = (
    r"(?:jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|f[ée]vr(?:ier)?|mar(?:ch|s|zo)?|märz|apr(?:il)?|avril|may|mai|mayo"
    r"|june?|juni"
    r"|juin|junio|july?|juli|juillet|julio|aug(?:ust)?|ao[ûu]t|agosto|sept?(?:ember|embre|iembre)?|o[ck]t(?:ober"
    r"|obre|ubre)?"
    r"|nov(?:ember|embre|iembre)?|de[cz](?:ember|iembre)?|d[ée]cembre|enero|febrero|abril|janv|ene|abr|ago|dic)"
)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_YEAR = r"(?:19|20)\d{2}"


def dates(groups: int) -> str:
    """A date in figures or with a month's name (English, German, French, Spanish). groups: how many the pattern has before
    it, as its separators are back references."""
    ymd, dmy = rf"\{groups + 1}", rf"\{groups + 2}"
    return "|".join(
        (
            rf"{_YEAR}([-/.])(?:0?[1-9]|1[0-2]){ymd}{_DAY}(?:[T ]\d{{2}}:\d{{2}}(?::\d{{2}})?)?",
            rf"{_DAY}([-/.])(?:{_DAY}|{_MONTH}){dmy}(?:{_YEAR}|\d{{2}})",
            rf"{_DAY}(?:st|nd|rd|th|\.|er)?(?: of| de)? {_MONTH}\b\.?(?:,? (?:de |del )?(?:{_YEAR}|'\d{{2}}))?",
            rf"{_MONTH}\b\.? {_DAY}(?:st|nd|rd|th)?(?!\w)(?:,? (?:{_YEAR}|'\d{{2}}))?",
            rf"{_MONTH}\b\.?,? {_YEAR}",
        )
    )


_BORN = (
    r"date of birth|birth ?date|birthday|d\.?o\.?b\.?|born(?: on)?(?: the)?|geburtsdatum|geburtstag|geboren(?: am)?"
    r"|geb\.(?: am)?"
    r"|date de naissance|n[ée]e?(?: le)?|fecha de nacimiento|nacid[oa](?: el)?|nac\."
)
_TAX = (
    r"tax(?:payer)?[ -]?(?:payer )?(?:id(?:entification)?|reference|file|number|no)|tin|vat(?: reg(?:istration)?)?"
    r"|steuer(?:nummer|-?id"
    r"(?:entifikationsnummer)?)|st\.?-?nr|ust-?id(?:nr)?|num[ée]ro (?:fiscal|de tva)|spi"
    r"|n[úu]mero de identificaci[óo]n fiscal|nif|cif"
    r"|gstin|gst|ein|itin|utr"
)
_PLATES = (
    r"licen[cs]e plates?|number plates?|plates?|registration(?: plate)?|reg|vrn|kennzeichen"
    r"|plaque(?: d'immatriculation)?"
    r"|immatriculation|matr[ií]cula"
)


TABLE: Table = dict(
    (
        define(
            "ssn",
            rf"{LEFT}\d{{3}}([- ])\d{{2}}\1\d{{4}}{RIGHT}",
            "078-05-1126",
            "SSN 123\u201045\u20106789",
            check="ssn",
            digits=9,
        ),
        after(
            "passport",
            r"passports?|reisepass|passeport|pasaporte",
            "passport no. 533380006",
            value=r"[A-Z]{0,4}\d[A-Z0-9]{5,9}",
        ),
        after(
            "driving-licence",
            r"driv(?:er|ing)(?:'?s)?'?[ -]?licen[cs]e|licen[cs]e number|dl|führerschein|permis de conduire"
            r"|(?:permiso|carnet) de conducir",
            "driver's license number is F162823540116",
            "Driving licence: VALEX 909105 D99ZZ",
        ),
        after(
            "medical-record",
            r"mrn|(?:medical|health|patient|hospital|chart)(?: record| insurance| card)?[ _-]?(?:numbers?|num|no|nr"
            r"|ids?)|emr|ehr",
            "MRN: 00-482913",
            "patient id 48291-3",
        ),
        after("tax-id", _TAX, "Tax ID 12-3456789", "Steuernummer: 93/815/08152", "VAT no. 123 4567 89"),
        define(
            "vat",
            r"(?<!\w)(?:AT ?U|BE|BG|CY|CZ|DE|DK|EE|EL|ES|FI|FR|HR|HU|IE|IT|LT|LU|LV|MT|NL|PL|PT|RO|SE|SI|SK|XI)[ -]?"
            r"(?=[A-Z0-9]{0,2}\d)[A-Z0-9]{2,13}(?:[ .][A-Z0-9]{2,4}){0,4}(?!\w)",
            "DE 136695976",
            "FR 40 303 265 045",
            check="vat",
            digits=7,
        ),
        after(
            "plate",
            _PLATES,
            "license plate 8ABC123",
            "Kennzeichen: B-MW 1234",
            value=r"(?=[A-ZÄÖÜ0-9-]{4}|[A-ZÄÖÜ0-9]{1,3}[ -][A-Z]{0,3}\d|\d{1,4} (?-i:[A-Z]))"
            rf"(?:[A-ZÄÖÜ]{{1,3}}-)?(?:{NOT_WORD}[A-ZÄÖÜ]{{1,3}} )?[A-ZÄÖÜ]{{0,4}}\d[A-Z0-9]{{0,6}}"
            r"(?:[ -](?:[A-Z]{0,3}\d[A-Z0-9]{0,6}|(?-i:[A-Z]{1,4})(?!\w))){0,3}",
        ),
        define(
            "date",
            rf"(?<![\w])(?<!\d[-./])(?:{dates(0)})(?!\w|[-/]\d)",
            "on 2021-03-04",
            "4.3.1987",
            "March 4, 1987",
            "4th of march",
            "le 14 juillet 1989",
            digits=1,
            ignore_case=True,
            whole=False,
        ),
        define(
            "date-of-birth",
            rf"(?<![^\W_])(?:{_BORN})(?: is| was|'s|[.,]? it'?s)?[\s:=(]{{1,3}}({dates(1)}|\d{{6}}(?!\d)"
            rf"|\d{{8}})(?!\w|[-/]\d)",
            "date of birth: 04/03/1987",
            "born on 4 March 1987",
            "dob 03041987",
            "née le 14 juillet 1989",
            digits=1,
            group=1,
            ignore_case=True,
            whole=False,
        ),
        define(
            "mrz",
            r"(?<![\w<])(?:[PIACV][A-Z0-9<][A-Z<]{3}(?=[A-Z0-9<]{0,38}<<)[A-Z0-9<]{25,39}"
            r"|[A-Z0-9<]{9}[\d<][A-Z<]{3}\d{7}[MFX<]\d{7}"
            r"[A-Z0-9<]{1,16}|\d{7}[MFX<]\d{7}[A-Z<]{3}[A-Z0-9<]{11}\d)(?![\w<])",
            "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<",
            "L898902C36UTO7408122F1204159ZE184226B<<<<<10",
            needs=("<",),
        ),
    )
)
