"""The suite fails by chance less than once in ten thousand runs, and a test without a mark not at all."""

from __future__ import annotations

import os
import random
import secrets
import uuid

import numpy as np
import pytest
from scipy import stats

from chance import TOTAL, Seeded, farthest, normal, rates, within
from taciturn.privacy.guarantees import selection_law
from taciturn.privacy.guarantees.private_selection import Poisson
from taciturn.training.randomness.keystream import stream_key


def drawn() -> list[object]:
    """What taciturn asks of the operating system, and the global streams."""
    keys = [stream_key(None, "noise", 0, 0) for _ in range(2)]
    return [*keys, selection_law.draw(Poisson(50.0)), secrets.token_hex(8), random.random(), float(np.random.random())]


HEARD: list[list[object]] = []


@pytest.fixture(scope="module")
def made() -> list[object]:
    return drawn()


def test_the_rates_of_all_marked_tests_are_below_the_total(request: pytest.FixtureRequest) -> None:
    found = rates(request.session.items)
    assert all(0 < rate <= 1e-5 for rate in found.values()), found
    assert sum(found.values()) < TOTAL, found


@pytest.mark.parametrize("again", [False, True])
def test_a_test_without_a_mark_draws_what_its_name_says(
    again: bool, made: list[object], request: pytest.FixtureRequest
) -> None:
    """A fixture is given its own numbers, whichever test was first to ask for it."""
    if request.config.getoption("--os-entropy"):
        pytest.skip("draws from the operating system")
    seeded = request.config.stash[Seeded.key]
    name = request.node.nodeid if not again else request.node.nodeid.replace("True", "False")
    with seeded.within(name):
        HEARD.append([stream_key(None, "noise", 0, 0) for _ in range(2)])
    assert HEARD[0] == HEARD[-1]
    assert len(set(HEARD[0])) == 2
    assert made[0] not in HEARD[0]
    assert os.urandom(16) != os.urandom(16)
    assert uuid.uuid4() != uuid.uuid4()


@pytest.mark.chance(1e-9)
def test_a_marked_test_draws_from_the_operating_system(request: pytest.FixtureRequest) -> None:
    """Equal numbers of 256 bits: 2⁻²⁵⁶."""
    seeded = request.config.stash[Seeded.key]
    before = stream_key(None, "noise", 0, 0)
    seeded.start(None)
    assert stream_key(None, "noise", 0, 0) != before


def test_limits_hold_what_they_say() -> None:
    """The exact law of the distance; draws that are off by what a limit must notice are noticed."""
    for n, alarm in ((1000, 1e-6), (50_000, 1e-3)):
        assert 0.5 * alarm < stats.kstwo.sf(farthest(n, alarm), n) <= alarm
    draws = np.random.default_rng(0).normal(0, 1, 100_000)
    normal(2 * draws, 2.0, 1e-7)
    with pytest.raises(AssertionError):
        normal(2 * draws, 1.9, 1e-7)
    within(50, stats.binom(100, 0.5), 1e-6)
    with pytest.raises(AssertionError):
        within(80, stats.binom(100, 0.5), 1e-6)
