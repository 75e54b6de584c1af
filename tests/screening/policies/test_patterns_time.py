"""Scans take linear time on texts made to make patterns stumble."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.screening.policies import View, patterns
from timing import in_proportion

UNITS = [
    "1",
    "a",
    "-",
    "@",
    " ",
    "1 ",
    "1-",
    "A1",
    "a.",
    "://",
    "+1 ",
    "Aa ",
    "name ",
    "password",
    ":",
    "<",
    "0x",
    "\n",
    "one ",
    '"key":"',
    "value: ",
    "<key>",
    "name=password ",
    " dot a",
]
N = 100_000


def slow(unit: str) -> list[str]:
    """Detectors that need over 20 times as long for 8 times the text (a quadratic one: 64 times), a fifth of a second for
    clock and memory aside."""
    one, eight = (View.of((unit * n)[:n]) for n in (N // 8, N))
    suspects = []
    for name in patterns.names():
        detector = patterns.detector(name)
        if not in_proportion(partial(detector.find, [one]), partial(detector.find, [eight]), 20, 0.2):
            suspects.append(name)
    return suspects


@pytest.mark.parametrize("unit", UNITS)
def test_repeats_take_linear_time(unit: str) -> None:
    assert slow(unit) == []


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.text(alphabet="1aZ-@ .:/#=_,'\"\n", min_size=2, max_size=6))
def test_any_repeat_takes_linear_time(unit: str) -> None:
    assert slow(unit) == []
