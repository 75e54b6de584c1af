"""Six decades of every parameter: a finite bound or a named reason, never an exception, a NaN or a hang."""

from __future__ import annotations

import math
import random

import pytest

from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.screening.policies.deadline import deadline

SAMPLE = random.Random(20221)
"""60 cases drawn once, so that a failure can be run again."""


def log_uniform(low: float, high: float) -> float:
    return 10 ** SAMPLE.uniform(math.log10(low), math.log10(high))


CASES = [
    (
        log_uniform(1e-6, 1.0),
        log_uniform(1e-2, 1e4),
        round(log_uniform(1, 1e6)),
        log_uniform(1e-12, 0.5),
        SAMPLE.choice(("add-remove", "substitution")),
        SAMPLE.choice((1, 1, 1, 3)),
    )
    for _ in range(60)
]


def epsilon(q: float, sigma: float, steps: int, delta: float, relation: str, k: int) -> float:
    return compose({PoissonGaussian(q, sigma): steps}, relation, k).epsilon(delta)


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(f"{each:.3g}" for each in case[:4]))
@deadline(120)
def test_every_valid_input_has_a_finite_bound_that_is_monotone(case):
    q, sigma, steps, delta, relation, k = case
    found = epsilon(*case)
    assert 0 <= found < math.inf
    slack = 2e-3 * found + 1e-5
    index = CASES.index(case) % 4  # one direction a case: each is asked fifteen times
    if index == 0:
        assert epsilon(q, sigma, 3 * steps, delta, relation, k) >= found - slack
    elif index == 1:
        assert epsilon(min(1.0, 3 * q), sigma, steps, delta, relation, k) >= found - slack
    elif index == 2:
        assert epsilon(q, 3 * sigma, steps, delta, relation, k) <= found + slack
    else:
        assert epsilon(q, sigma, steps, min(0.9, 3 * delta), relation, k) <= found + slack


@pytest.mark.parametrize(
    ("q", "sigma", "steps", "delta"),
    [(1e-6, 1e-2, 1, 1e-12), (1.0, 1e-2, 1_000_000, 1e-12), (1e-6, 1e4, 1_000_000, 0.5), (1.0, 1e4, 1, 1e-12)],
)
def test_the_corners(q, sigma, steps, delta):
    for relation in ("add-remove", "substitution"):
        assert 0 <= epsilon(q, sigma, steps, delta, relation, 1) < math.inf


def test_what_has_no_bound_says_why():
    profile = compose({PoissonGaussian(0.1, 1.0): 10, NonPrivate(("private",)): 1}, "substitution")
    assert profile.epsilon(1e-5) == math.inf
    assert profile.reason
