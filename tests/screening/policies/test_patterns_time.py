"""Scans take linear time on texts made to make patterns stumble."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.screening.policies import Regex, View, patterns
from timing import seconds

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
]
N = 100_000


def once(detector: Regex, view: View) -> float:
    return seconds(lambda: detector.find([view]), times=1)


def slow(unit: str) -> list[str]:
    """Detectors that need over 20 times as long for 8 times the text (a quadratic one: 64 times), a fifth of a second for
    clock and memory aside. The best of three counts, as a busy machine only ever adds time."""
    one, eight = (View.of((unit * n)[:n]) for n in (N // 8, N))
    suspects = []
    for name in patterns.names():
        detector = patterns.detector(name)
        short = once(detector, one)
        if any(once(detector, eight) <= 20 * (short := min(short, once(detector, one))) + 0.2 for _ in range(3)):
            continue
        suspects.append(name)
    return suspects


@pytest.mark.parametrize("unit", UNITS)
def test_repeats_take_linear_time(unit: str) -> None:
    assert slow(unit) == []


@settings(max_examples=5, deadline=None, derandomize=True)
@given(st.text(alphabet="1aZ-@ .:/#=_,'\"\n", min_size=2, max_size=6))
def test_any_repeat_takes_linear_time(unit: str) -> None:
    assert slow(unit) == []
