"""Numbers of money and machines: cards, accounts, orders, wallets, network and device addresses, places on the map."""

from __future__ import annotations

from taciturn.screening.policies.shapes import BRIEF, CODE, LEFT, RIGHT, Table, after, define

_CARDS = r"\d{4}([- ]?)\d{4}\1\d{4}\1\d{4}(?:\1\d{1,3})?|\d{4}([- ]?)\d{6}\2\d{5}|\d{12,19}"
_V4 = r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
_V6 = r"(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\.\d{1,3}){3})?(?:%\w{1,15})?(?![\w:]|\.\d)"
_ACCOUNTS = (
    r"(?:bank|checking|savings?|current|customer|friend'?s?|my|the) account|account|acct|a/c|ac no|konto(?:nummer)?"
    r"|kontonr"
    r"|num[ée]ro de compte|n[úu]mero de cuenta|routing|aba|rtn|transit|sort code|bankleitzahl|blz|card|credit card"
    r"|debit card"
    r"|iban"
)
_IDENTIFIERS = (
    r"(?:policy|claim|member(?:ship)?|customer|client|employee|staff|student|personnel|booking|reservation|confirmation"
    r"|reference|case|ticket|invoice|order|tracking|transaction|loyalty|frequent flyer|subscriber|insurance"
    r"|registration|badge"
    r"|serial|contract|application|file|docket|report|vin|vehicle identification|appointment|plan|listing|flight"
    r"|agreement|permit"
    r"|certificate|parcel|package|shipment|pick-?up|access|activation|voucher|gift card|order|meter|device|cabin)"
    r"(?:[ _-]?(?:confirmation|reference|policy|tracking|claim))?"
    r"[ _-]{0,2}(?:numbers?|num|no|nr|ids?|code|reference|ref|#)\.?"
)
_MANY_DIGITS = rf"(?=[A-Z -]{{0,8}}\d(?:[ A-Z-]{{0,2}}\d){{3}}){CODE}"
_DEGREES = r"\d{1,3} ?° ?(?:\d{1,2} ?(?:'|′) ?)?(?:\d{1,2}(?:\.\d{1,6})? ?(?:\"|''|′′) ?)?"

TABLE: Table = dict(
    (
        define(
            "card",
            rf"{LEFT}(?!1\d{{12}}(?!\d))(?:{_CARDS})(?!\w|-\d)",
            "4111 1111 1111 1111",
            "5500-0000-0000-0004",
            "378282246310005",
            "4111 1111 1111 1111.com",
            check="luhn",
            digits=12,
        ),
        define(
            "iban",
            r"(?<!\w)[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?:[ -][A-Z0-9]{4}){2,7}(?:[ -][A-Z0-9]{1,3})?)(?!\w)",
            "GB82 WEST 1234 5698 7654 32",
            "gb82west12345698765432 .",
            check="iban",
            digits=2,
            ignore_case=True,
        ),
        after(
            "bic",
            r"bic|swift(?:/bic)?",
            "SWIFT: DEUTDEFF500",
            value=r"(?-i:[A-Z]{6}[A-Z0-9]{2}(?:[A-Z0-9]{3})?)",
            digits=0,
            check="bic",
        ),
        after(
            "account",
            _ACCOUNTS,
            "account number is 542168940",
            "acct: 1234-5678",
            "routing 111000025",
            value=r"\d[\d -]{2,26}\d",
        ),
        define(
            "wallet",
            r"(?<!\w)(?:[13][1-9A-HJ-NP-Za-km-z]{25,34}|(?:bc1|BC1)[A-Za-z0-9]{11,71}|0x[0-9a-fA-F]{40})(?!\w)",
            "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2",
            "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
            "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
            "0x" + "00" * 10 + "ab" * 10,
            check="wallet",
            digits=1,
        ),
        after(
            "card-code",
            r"cvv2?|cvc2?|csc|card (?:security|verification) (?:code|value|number)|security code|prüfziffer|cryptogramme",
            "cvv: 123",
            "security code is 1234",
            value=r"\d{3,4}",
            gap=BRIEF,
            digits=3,
        ),
        after(
            "pin",
            r"(?:pin|nip|otp|pass ?code|(?:access|verification|confirmation|login|one[- ]time|sms) (?:pin|code))",
            "pin is 4821",
            "your verification code is 482 913",
            gap=BRIEF,
            value=r"\d{3,4}[ -]\d{3,4}|\d(?:[ -]\d){3,7}|\d{4,10}",
            digits=4,
        ),
        define("reference", r"(?<!\w)[A-Z0-9]{8}(?!\w)", "ref 7GAWK763.", check="mixed", digits=1),
        define(
            "order",
            rf"{LEFT}(?:\d{{3}}-\d{{5}}-\d{{4}}|\d{{3}}-\d{{7}}-\d{{7}}){RIGHT}",
            "order 843-58572-7002.",
            digits=12,
        ),
        define(
            "tracking",
            r"(?<!\w)(?:[A-Z0-9]{10}|1Z ?(?:[A-Z0-9]{4} ?){4})(?!\w)",
            "number AGZIM5T6KL.",
            "1Z999AA10123456784",
            check="mixed",
            digits=1,
        ),
        after(
            "identifier",
            _IDENTIFIERS,
            "claim number is abd 654895565",
            "Booking reference: X7-2291",
            "policy no. 12345678",
        ),
        after(
            "number-named",
            r"numbers?(?: is|:)|no\.?:|no\.|nr\.|ids?(?: is|:)|codes?(?: is|:)",
            "the number is AB-99182",
            "No.: CS20250708",
            value=_MANY_DIGITS,
            label="identifier",
            digits=4,
        ),
        define(
            "card-shaped",
            rf"{LEFT}\d{{4}}([- ])\d{{4}}\1\d{{4}}\1\d{{4}}{RIGHT}",
            "9632 1245 9856 3256",
            label="card",
            digits=16,
        ),
        define(
            "digits",
            r"\d++(?:[.,:/-]\d++)*+",
            "7",
            "12,345.67",
            "17:15",
            "\uff11\uff12",
            label="number",
            digits=1,
            whole=False,
        ),
        define(
            "ip",
            rf"{_V4}|{_V6}",
            "192.168.0.1.",
            "fe80::1ff:fe23:4567:890a",
            "at 2001:db8::8:800:200c:417a",
            check="ip",
            digits=1,
        ),
        after(
            "ip-cued",
            r"ip(?:v4)?(?: addr(?:ess)?)?|ip-adresse|adresse ip",
            "IP address: 8.8.8.8",
            value=r"\d{1,3}(?:\.\d{1,3}){3}",
            gap=BRIEF,
            label="ip",
            digits=4,
        ),
        define(
            "mac",
            r"(?<![\w:.-])(?:[0-9A-F]{2}([:-])(?:[0-9A-F]{2}\1){4}[0-9A-F]{2}"
            r"|[0-9A-F]{4}\.[0-9A-F]{4}\.[0-9A-F]{4})(?![\w:-])",
            "00:1B:44:11:3a:b7",
            "00-1b-44-11-3a-b7",
            "001b.4411.3ab7",
            ignore_case=True,
        ),
        after(
            "imei",
            r"imei|imeisv",
            "IMEI: 49-015420-323751-8",
            value=r"\d{2}-?\d{6}-?\d{6}-?\d{1,2}",
            check="imei",
            digits=14,
        ),
        define(
            "vin",
            r"(?<!\w)(?:[A-HJ-NPR-Z0-9]{8}){2}[A-HJ-NPR-Z0-9](?!\w)",
            "1M8GDM9AXKP042788",
            check="vin",
            digits=2,
            ignore_case=True,
        ),
        define(
            "coordinates",
            r"(?<![\w.])[-+]?\d{1,2}\.\d{3,12}°?,? ?(?:[NS],? ?)?[-+]?\d{1,3}\.\d{3,12}(?:°? ?[EW](?!\w))?(?!\w|\.\d)",
            "at 48.85837, 2.294481",
            "-33.8568 151.2153",
            check="position",
            digits=8,
        ),
        define(
            "degrees",
            rf"(?<!\w){_DEGREES}[NS],? ?{_DEGREES}[EW](?!\w)",
            "48° 51' 29.6\" N, 2°17'40.2\"E",
            label="coordinates",
            needs=("°",),
            digits=2,
        ),
        define(
            "uuid",
            r"(?<![\w-])[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}(?![\w-])",
            "123e4567-e89b-12d3-a456-426614174000",
            ignore_case=True,
        ),
    )
)
