"""Tests and chance: what each may draw, and how often the suite fails although the code is right.

A test gets the same random numbers in every run: those of the operating system, as far as taciturn asks for them in this
process, and the global ones of Python, numpy and torch are given by its name (:class:`Seeded`). Where chance is the point
(whether noise has its variance, whether an honest run is accused), the test is marked ``chance(rate)``: it draws from the
operating system, as a run does, its docstring names the law of what it compares and ``rate`` is how often it fails although
the code is right, computed or bounded. The rates of the suite stay below :data:`TOTAL` together, which
``tests/test_chance.py`` checks. Processes that a test starts draw as a run does: what it asks of them must hold for any
draw, or the test is marked.
"""

from __future__ import annotations

import os
import random
import secrets
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

TOTAL = 1e-4
"""How often the whole suite may fail by chance."""

MARK = "chance(rate): draws from the operating system; fails with probability `rate` although the code is right"


def rate(item: Any) -> float:
    """What a test's mark says; 0 without one."""
    mark = item.get_closest_marker("chance")
    return 0.0 if mark is None else float(mark.args[0])


def rates(items: Iterable[Any]) -> dict[str, float]:
    return {item.nodeid: found for item in items if (found := rate(item))}


class Seeded:
    """Stands in for the operating system's entropy: bytes that follow from a name, other ones at each call."""

    key = pytest.StashKey["Seeded"]()

    def __init__(self) -> None:
        self._true = os.urandom, secrets.token_bytes, secrets.randbits
        self._name: str | None = None
        self._calls = 0

    def install(self) -> None:
        os.urandom, secrets.token_bytes, secrets.randbits = self._urandom, self._token_bytes, self._randbits

    def start(self, name: str | None) -> None:
        """From now on the bytes of ``name``; the operating system's for None."""
        self._name, self._calls = name, 0

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """The bytes of ``name`` meanwhile, those from before afterwards."""
        kept, streams = (self._name, self._calls), _streams()
        self.start(None if self._name is None else name)
        seed_streams(name)
        try:
            yield
        finally:
            self._name, self._calls = kept
            for restore, state in streams:
                restore(state)

    def _urandom(self, n: int) -> bytes:
        ours = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0] == "taciturn"
        return self._bytes(n) if ours and self._name is not None else self._true[0](n)

    def _token_bytes(self, n: int | None = None) -> bytes:
        return self._true[1](n) if self._name is None else self._bytes(32 if n is None else n)

    def _randbits(self, bits: int) -> int:
        if self._name is None:
            return self._true[2](bits)
        return int.from_bytes(self._bytes(-(-bits // 8)), "little") >> (-bits % 8)

    def _bytes(self, n: int) -> bytes:
        self._calls += 1
        blocks = (blake2b(f"{self._name} {self._calls} {i}".encode()).digest() for i in range(-(-n // 64)))
        return b"".join(blocks)[:n]


def seed_streams(name: str) -> None:
    """Give the global streams of random, numpy and, where it is loaded, torch the same start whatever ran before."""
    seed = int.from_bytes(blake2b(name.encode(), digest_size=4).digest(), "little")
    random.seed(seed)
    np.random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _streams() -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = [
        (random.setstate, random.getstate()),
        (np.random.set_state, np.random.get_state()),
    ]
    if "torch" in sys.modules:
        torch = sys.modules["torch"]
        found.append((torch.set_rng_state, torch.get_rng_state()))
    return found


def normal(draws: NDArray[Any], std: float, alarm: float, grid: float = 0.0) -> None:
    """Assert that ``draws`` are of N(0, std²), by Kolmogorov and Smirnov: fails with probability ``alarm`` at most if so.

    grid: what draws were rounded to: that moves a distribution function by half a step of it, times its density.
    """
    distance = float(stats.kstest(draws / std, "norm").statistic)
    assert distance < farthest(len(draws), alarm) + grid / std / 2 * stats.norm.pdf(0), distance


def farthest(n: int, alarm: float) -> float:
    """As far from its law an empirical distribution of ``n`` draws is with probability ``alarm`` at most (Massart 1990)."""
    return float(np.sqrt(np.log(2 / alarm) / (2 * n)))


def within(observed: float, law: Any, alarm: float) -> None:
    """Assert that ``observed`` lies in the central 1 − ``alarm`` of ``law``, a frozen distribution of scipy."""
    low, high = law.ppf(alarm / 2), law.isf(alarm / 2)
    assert low <= observed <= high, f"{observed} is outside of [{low}, {high}]"
