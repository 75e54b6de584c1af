"""Numbers as people read them: few digits, no "0.00" for something tiny, ∞ where there is no bound.

``None`` (not measured) and NaN become an en dash. Bounds are rounded up, so that a printed ε is never
smaller than the ε that holds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

MISSING = "–"
TIMES = "\u00a0×\u00a0"  # a line never breaks inside a number
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power(exponent: int) -> str:
    """A power of ten.

    >>> power(-5)
    '10⁻⁵'
    """
    return "10" + str(exponent).translate(_SUPERSCRIPT)


def count(value: float | None) -> str:
    """A whole number with thousands separators.

    >>> count(13072), count(None)
    ('13,072', '–')
    """
    return MISSING if value is None or math.isnan(value) else "∞" if math.isinf(value) else f"{int(value):,}"


def general(value: float | None, digits: int = 3) -> str:
    """``digits`` significant digits; a power of ten below 1e-3 and from 1e7 on.

    >>> general(1.4979), general(20.34), general(1204.2), general(8e-5), general(3.21e-7), general(0)
    ('1.50', '20.3', '1,204', '8\\xa0×\\xa010⁻⁵', '3.21\\xa0×\\xa010⁻⁷', '0')
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    if value == 0:
        return "0"
    size = abs(float(f"{value:.{digits - 1}e}"))
    if size < 1e-3 or size >= 1e7:
        mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        text = power(int(exponent)) if mantissa == "1" else f"{mantissa}{TIMES}{power(int(exponent))}"
    else:
        text = f"{value:,.{max(0, digits - 1 - math.floor(math.log10(size)))}f}"
    return text.replace("-", "−")


def setting(value: float | None) -> str:
    """A number somebody chose: up to four digits, none that say nothing.

    >>> setting(0.02), setting(1.0), setting(1.08642), setting(1e-5)
    ('0.02', '1', '1.086', '10⁻⁵')
    """
    text = general(value, 4)
    return text.rstrip("0").rstrip(".") if "." in text and TIMES not in text else text


def bound(value: float | None, digits: int = 3) -> str:
    """An upper bound: as ``general``, rounded up (by less than one unit of the last digit shown).

    >>> bound(2.2201), bound(2.22), bound(0.00004111), bound(float("inf"))
    ('2.23', '2.22', '4.12\\xa0×\\xa010⁻⁵', '∞')
    """
    if value is None or not math.isfinite(value) or value == 0:
        return general(value, digits)
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return general(math.ceil(value / unit * (1 - 1e-12) - 1e-9) * unit, digits)


def least(value: float | None, digits: int = 3) -> str:
    """A lower bound: as ``general``, rounded down.

    >>> least(2.2299), least(0.0)
    ('2.22', '0')
    """
    if value is None or not math.isfinite(value) or value <= 0:
        return general(value, digits)
    unit = 10.0 ** (math.floor(math.log10(value)) - digits + 1)
    return general(math.floor(value / unit * (1 + 1e-12) + 1e-9) * unit, digits)


def probability(value: float | None) -> str:
    """A p-value or a rate; a half is "0.50", a tiny one is a power of ten.

    >>> probability(0.5), probability(1e-6), probability(0.0149)
    ('0.50', '10⁻⁶', '0.015')
    """
    return general(value, 2)


def rate(value: float | None) -> str:
    """An accuracy or an AUC: three decimals.

    >>> rate(0.5)
    '0.500'
    """
    return MISSING if value is None or math.isnan(value) else f"{value:.3f}"


def floor(value: float | None) -> str:
    """A share that is at least this: three decimals, rounded down.

    >>> floor(0.98996), floor(1.0)
    ('0.989', '1.000')
    """
    return rate(value if value is None or not math.isfinite(value) else math.floor(value * 1000 + 1e-9) / 1000)


def bits(value: float | None) -> str:
    """An exposure: two decimals.

    >>> bits(19.9316)
    '19.93'
    """
    return MISSING if value is None or math.isnan(value) else f"{value:.2f}".replace("-", "−")


def percent(value: float | None) -> str:
    """A share; small shares keep two significant digits.

    >>> percent(0.314), percent(0.0042), percent(1.0)
    ('31\\xa0%', '0.42\\xa0%', '100\\xa0%')
    """
    if value is None or math.isnan(value):
        return MISSING
    return "100\u00a0%" if value == 1 else f"{general(100 * value, 2)}\u00a0%"


def powers(text: str) -> str:
    """A sentence with numbers such as 8e-05 written as beside it.

    >>> powers("δ = 1e-05, from 1.05e-09 up"), powers("digest 71e-05a")
    ('δ = 10⁻⁵, from 1.05\\xa0×\\xa010⁻⁹ up', 'digest 71e-05a')
    """

    def written(found: re.Match[str]) -> str:
        shown = power(int(found[2]))
        return shown if found[1] == "1" else f"{found[1]}{TIMES}{shown}"

    return _SCIENTIFIC.sub(written, text)


_SCIENTIFIC = re.compile(r"(?<![\w.])(\d(?:\.\d+)?)e([+-]\d+)(?![\w])")


def kept(text: str) -> str:
    """A sentence that breaks neither before a per cent sign nor inside an equation.

    >>> kept("at 1 % false alarms, ε = 3")
    'at 1\\xa0% false alarms, ε\\xa0=\\xa03'
    """
    return powers(text).replace(" %", "\u00a0%").replace(" = ", "\u00a0=\u00a0")


_SYMBOLS = (("epsilon", "ε"), ("delta2", "δ₂"), ("delta", "δ"), ("gamma", "γ"), ("_", " "))


def named(key: str) -> str:
    """The name of a further number of a claim, with its symbols.

    >>> named("epsilon_if_detected"), named("labels_needed_for_delta")
    ('ε if detected', 'labels needed for δ')
    """
    for word, symbol in _SYMBOLS:
        key = key.replace(word, symbol)
    return key


def costs(key: str) -> bool:
    """Whether such a number is an upper bound, to be rounded up."""
    return key.startswith("epsilon") or key in ("gamma", "delta2")


FORMATTERS: dict[str, Callable[[float | None], str]] = {
    "count": count,
    "general": general,
    "setting": setting,
    "bound": bound,
    "least": least,
    "probability": probability,
    "rate": rate,
    "floor": floor,
    "bits": bits,
    "percent": percent,
}
