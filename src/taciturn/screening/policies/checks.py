"""What a pattern alone cannot say: check digits, digit counts, entropy. A check takes the matched text and returns the part
of it that holds, as (start, end), or None.

Check digits of national numbers are python-stdnum's; its module names are check names here ("gb.nhs", "us.rtn").
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module, metadata
from typing import Any

from taciturn.screening.policies import check_digits
from taciturn.screening.policies.check_digits import digits, luhn

Check = Callable[[str], tuple[int, int] | None]

_GROUP = re.compile(r"[^ .\-/]++")


def heads(text: str) -> Iterator[str]:
    """``text``, then without its last group, its last two, ...: a match may run on into the next words.

    >>> list(heads("12 34-56"))
    ['12 34-56', '12 34', '12']
    """
    return (text[: group.end()] for group in reversed(list(_GROUP.finditer(text))))


def iban(text: str) -> tuple[int, int] | None:
    """ISO 13616: check digits (mod 97 = 1), and the length of the country where python-stdnum knows it.

    >>> iban("GB82 WEST 1234 5698 7654 32 then"), iban("GB83WEST12345698765432"), iban("GB82WEST1234569876543")
    ((0, 27), None, None)
    """
    for head in heads(text):
        compact = re.sub(r"[ .-]", "", head).upper()
        if len(compact) < 15:
            return None
        number = int("".join(str(int(c, 36)) for c in compact[4:] + compact[:4]))
        if number % 97 == 1 and _iban_length(compact[:2]) in (None, len(compact)):
            return 0, len(head)
    return None


@cache
def _iban_length(country: str) -> int | None:
    """Characters of a country's IBAN, from python-stdnum's copy of the SWIFT register; None where it has none."""
    from stdnum import numdb

    form = numdb.get("iban").info(country)[0][1].get("bban", "")
    parts = re.findall(r"(\d+)!?[nac]", form)
    return 4 + sum(map(int, parts)) if parts else None


def ssn(text: str) -> tuple[int, int] | None:
    """US social security numbers have no area 000 or 666, no group 00, no serial 0000 (9xx are taxpayer numbers: kept)."""
    area, group, serial = text[:3], text[4:6], text[7:]
    fine = area not in ("000", "666") and group != "00" and serial != "0000"
    return (0, len(text)) if fine else None


def phone(text: str) -> tuple[int, int] | None:
    """7 to 15 digits (ITU-T E.164), an extension aside."""
    number = text.lower().split("x")[0].split("ext")[0]
    return (0, len(text)) if 7 <= len(digits(number)) <= 15 else None


def ip(text: str) -> tuple[int, int] | None:
    """An IPv4 address (leading zeros allowed), or an IPv6 address that holds a digit: ``a::b`` is code more often.

    No address of a person: loopback, unspecified, broadcast and masks; and four small numbers, which are a version (a claim
    on one address in twenty thousand, which "ip-cued" takes).

    >>> ip("10.0.0.255"), ip("10.0.0.256"), ip("fe80::1%eth0"), ip("a::b"), ip("1.22.1.3"), ip("127.0.0.1"), ip("::1")
    ((0, 10), None, (0, 12), None, None, None, None)
    """
    if ":" not in text:
        parts = [int(part) for part in text.split(".")]
        small = parts[0] < 10 and max(parts) < 30
        return None if max(parts) > 255 or small or parts[0] in (0, 127, 255) else (0, len(text))
    try:
        address = ipaddress.IPv6Address(text)
    except ValueError:
        return None
    return (0, len(text)) if any(c.isdigit() for c in text) and not address.is_loopback else None


def mixed(text: str) -> tuple[int, int] | None:
    """Letters and digits both, as codes have and words or plain numbers have not."""
    return (0, len(text)) if any(c.isdigit() for c in text) and any(c.isalpha() for c in text) else None


def wallet(text: str) -> tuple[int, int] | None:
    """A Bitcoin address (Base58Check, BIP 173 Bech32, BIP 350 Bech32m) or an Ethereum one (0x and 40 hexadecimal digits)."""
    if text[:2].lower() == "0x":
        return 0, len(text)
    from stdnum import bitcoin

    if bitcoin.is_valid(text):
        return 0, len(text)
    if text[:3].lower() != "bc1" or text not in (text.lower(), text.upper()):
        return None
    values = ["qpzry9x8gf2tvdw0s3jn54khce6mua7l".find(c) for c in text[3:].lower()]
    prefix = [3, 3, 0, 2, 3]  # "bc", expanded as BIP 173 says
    return (0, len(text)) if -1 not in values and bitcoin.bech32_checksum(prefix + values) == 0x2BC830A3 else None


_VIN = dict(zip("ABCDEFGHJKLMNPRSTUVWXYZ", map(int, "12345678123457923456789"), strict=True))
_VIN_WEIGHTS = (8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2)


def vin(text: str) -> tuple[int, int] | None:
    """The check digit of vehicle identification numbers (49 CFR 565.15), and at least one letter and digit.

    >>> vin("1M8GDM9AXKP042788"), vin("1M8GDM9A1KP042788"), vin("11111111111111111")
    ((0, 17), None, None)
    """
    values = [int(c) if c.isdigit() else _VIN.get(c, 0) for c in text.upper()]
    rest = sum(v * w for v, w in zip(values, _VIN_WEIGHTS, strict=True)) % 11
    return mixed(text) if text[8].upper() == "0123456789X"[rest] else None


def position(text: str) -> tuple[int, int] | None:
    """A latitude up to 90 and a longitude up to 180 degrees."""
    latitude, longitude = (abs(float(n)) for n in re.findall(r"\d{1,3}\.\d+", text))
    return (0, len(text)) if latitude <= 90 and longitude <= 180 else None


def entropy(text: str) -> float:
    """Shannon entropy in bits a character (0 for nothing).

    >>> entropy("aaaa"), entropy("abab"), entropy("abcd")
    (0.0, 1.0, 2.0)
    """
    counts = Counter(text).values()
    return sum(n / len(text) * math.log2(len(text) / n) for n in counts)


def random(text: str) -> tuple[int, int] | None:
    """Looks drawn at random: at least 3 bits a character for hexadecimal, 3.7 otherwise (the thresholds of detect-secrets
    are 3 and 4.5; short keys seldom reach 4.5), letters and digits both, and not a chain of words."""
    hexadecimal = re.fullmatch(r"[0-9a-fA-F-]+", text) is not None
    if mixed(text) is None or entropy(text) < (3.0 if hexadecimal else 3.7):
        return None
    words = re.fullmatch(
        r"(?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d{1,4})(?:[-_./+](?:[A-Z]?[a-z]{2,}|[A-Z]{2,}|\d{1,4}))*", text
    )
    return None if words else (0, len(text))


def secret(text: str) -> tuple[int, int] | None:
    """What may stand behind "token =": six characters or more with a letter and a digit or sign, or random."""
    odd = any(c.isdigit() for c in text) or re.search(r"[^\w\s.()\[\]{}/:-]", text)
    fine = len(text) >= 6 and any(c.isalpha() for c in text) and odd
    return (0, len(text)) if fine or (len(text) >= 16 and entropy(text) >= 3.5) else None


def _standard(module: str, text: str) -> tuple[int, int] | None:
    """python-stdnum's verdict."""
    return (0, len(text)) if import_module(f"stdnum.{module}").is_valid(text) else None


def vat(text: str) -> tuple[int, int] | None:
    """A number for value added tax of a member of the European Union; trailing groups that are no part of it are dropped.

    >>> vat("FR 40 303 265 045"), vat("DE 136695976 2021"), vat("DE 136695977")
    ((0, 17), (0, 12), None)
    """
    from stdnum.eu import vat as number

    return next(((0, len(head)) for head in heads(text) if number.is_valid(head)), None)


def _library_entropy(plugin: str, text: str) -> tuple[int, int] | None:
    """The verdict of detect-secrets' detector of that name."""
    judge = _plugin(plugin)
    return (0, len(text)) if judge.calculate_shannon_entropy(text) > judge.entropy_limit else None


@cache
def _plugin(name: str) -> Any:
    return getattr(import_module("detect_secrets.plugins.high_entropy_strings"), name)()


_STANDARD = tuple(
    """
    bic br.cnpj br.cpf de.idnr de.stnr de.vat es.ccc es.cif es.dni es.nie es.nif fr.nif fr.nir fr.siren fr.siret fr.tva
    gb.nhs gb.utr gb.vat imei in_.aadhaar in_.epic in_.gstin in_.pan in_.vid it.codicefiscale it.iva nl.bsn nl.btw pl.nip
    pl.pesel pl.regon pt.cc pt.nif se.orgnr se.vat us.ein us.itin us.rtn
    """.split()  # noqa: SIM905  one word a line would be 40 lines
)

CHECKS: dict[str, Check] = {
    "luhn": luhn,
    "iban": iban,
    "ssn": ssn,
    "phone": phone,
    "ip": ip,
    "mixed": mixed,
    "wallet": wallet,
    "vat": vat,
    "vin": vin,
    "position": position,
    "random": random,
    "secret": secret,
    "icao": check_digits.icao,
    "de-pension": check_digits.de_pension,
    "de-health": check_digits.de_health,
    "es-pension": check_digits.es_pension,
    "pl-id-card": check_digits.pl_id_card,
    "pl-account": lambda text: (0, len(text)) if iban("PL" + re.sub(r"[ -]", "", text)) else None,
    "pt-social": check_digits.pt_social,
    "se-personal": check_digits.se_personal,
    "us-dea": check_digits.us_dea,
    "us-npi": check_digits.us_npi,
    "ds-base64": partial(_library_entropy, "Base64HighEntropyString"),
    "ds-hex": partial(_library_entropy, "HexHighEntropyString"),
    **{module: partial(_standard, module) for module in _STANDARD},
}


def version(name: str) -> str:
    """What besides its name decides a check: the release of the library that it asks, "" where there is none."""
    if name in ("ds-base64", "ds-hex"):
        return metadata.version("detect-secrets")
    return metadata.version("python-stdnum") if name in (*_STANDARD, "iban", "pl-account", "vat", "wallet") else ""
