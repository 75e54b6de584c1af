"""Formatters: short, never "0.00" for something tiny, and bounds never below what they bound."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.reporting.formats import FORMATTERS, bound, general

POSITIVE = st.floats(1e-12, 1e9)
_SUPERSCRIPT = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")


def _read(text: str) -> float:
    """The number a reader would take from a formatted one."""
    match = re.fullmatch(r"(?:([\d.,]+)(?:\xa0×\xa0)?)?(?:10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert match is not None, text
    mantissa = float(match[1].replace(",", "")) if match[1] else 1.0
    return mantissa * 10.0 ** int(match[2].translate(_SUPERSCRIPT)) if match[2] else mantissa


@given(POSITIVE)
def test_general_keeps_three_digits(value: float) -> None:
    # From 1,000 on whole numbers are printed, which is more digits, not fewer.
    assert _read(general(value)) == pytest.approx(value, rel=5.01e-3)


@given(POSITIVE)
def test_a_printed_bound_is_a_bound_and_close(value: float) -> None:
    shown = _read(bound(value))
    assert value * (1 - 1e-9) <= shown <= value * 1.011


@pytest.mark.parametrize("name", sorted(FORMATTERS))
def test_missing_values_are_a_dash(name: str) -> None:
    assert FORMATTERS[name](None) == "–"
    assert FORMATTERS[name](math.nan) == "–"


def test_infinity_is_a_sign() -> None:
    assert bound(math.inf) == general(math.inf) == "∞"
