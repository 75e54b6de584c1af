"""The built-in patterns by name, in groups and presets. A detector is compiled, and its examples tried, on first use."""

from __future__ import annotations

from functools import cache

from taciturn.screening.policies import credentials
from taciturn.screening.policies.patterns import contact, countries, cues, documents, identifiers, numbers, runs
from taciturn.screening.policies.regex import Regex
from taciturn.screening.policies.shapes import Table

GROUPS: dict[str, Table] = {
    "contact": contact.TABLE,
    "numbers": {**numbers.TABLE, **identifiers.TABLE, **runs.TABLE},
    "documents": documents.TABLE,
    "countries": {name: maker for pack in countries.PACKS.values() for name, maker in pack.items()},
    "credentials": credentials.TABLE,
    "cues": cues.TABLE,
}

PACKS = tuple(countries.PACKS)
"""Countries that have a pack: its name is a preset."""

_ALL: Table = {name: maker for table in GROUPS.values() for name, maker in table.items()}

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
    "ip-cued",
    "account",
    "address-block",
    "bic",
    "card-code",
    "card-shaped",
    "coordinates",
    "date-of-birth",
    "degrees",
    "driving-licence",
    "email-spoken",
    "extension",
    "identifier",
    "identifier-abroad",
    "identifier-weak",
    "imei",
    "mac",
    "medical-record",
    "mrz",
    "number-named",
    "number-run",
    "number-said",
    "passport",
    "phone-cued",
    "pin",
    "plate",
    "postcode-cued",
    "street-abroad",
    "tax-id",
    "us-ssn",
    "vat",
    "vin",
    "wallet",
)
"""Preset "pii": every pattern that is precise enough to redact by, whatever the country."""

CUSTOMERSIM = ("name", "address", "phone", "order", "tracking")
"""Preset "customersim": the five slots of the simulated customer-service dialogues."""

MULTIWOZ = ("reference", "phone", "postcode", "street", "address")
"""Preset "multiwoz": reference numbers, telephone numbers, addresses, postcodes."""

PRESETS: dict[str, tuple[str, ...]] = {
    "pii": PII,
    "secrets": credentials.SECRETS,
    "cues": cues.CUES,
    "cues-wide": cues.WIDE,
    "customersim": CUSTOMERSIM,
    "multiwoz": MULTIWOZ,
    **{pack: (*countries.ALSO.get(pack, ()), *table) for pack, table in countries.PACKS.items()},
}
"""Preset -> names of detectors."""


def names() -> list[str]:
    """Every single detector, group by group."""
    return list(_ALL)


@cache
def detector(name: str) -> Regex:
    """The detector of that name. Raises KeyError."""
    return _ALL[name]()


def built_in() -> dict[str, Regex]:
    """name -> detector, all of them."""
    return {name: detector(name) for name in _ALL}
