"""Values of our own (own_vectors.json), each recomputed by a second code: an FFT accountant that shares nothing with ours,
Rényi divergences as an upper bound, closed forms at full batches."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import fft_oracle
import pytest
from scipy.special import ndtr

from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import KindsGaussian, PoissonGaussian
from taciturn.privacy.accounting.user_entity import Exchange, Units

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "own_vectors.json").read_text())["cases"]


def named(kind: str) -> Any:
    found = [case for case in CASES if case["kind"] == kind]
    return pytest.mark.parametrize("case", found, ids=[case["id"] for case in found])


def close(case: dict[str, Any], ours: float, second: float) -> None:
    """Ours, the second code and the stored value agree to 5e-4, and ours is not below them by more than rounding."""
    assert ours == pytest.approx(case["epsilon"], rel=5e-4, abs=2e-5), "the accountant moved"
    assert second == pytest.approx(case["epsilon"], rel=5e-4, abs=2e-5), "the second code disagrees"
    assert ours >= min(second, case["epsilon"]) * (1 - 2e-5) - 1e-6, "an upper bound must not lie below"


@named("record")
def test_one_record_or_a_group(case):
    q, sigma, steps, delta, k = (case[name] for name in ("q", "sigma", "steps", "delta", "k"))
    profile = compose({PoissonGaussian(q, sigma): steps}, case["relation"], k)
    directions = fft_oracle.substitution if case["relation"] == "substitution" else fft_oracle.add_remove
    ours = profile.epsilon(delta)
    close(case, ours, fft_oracle.epsilon(directions(q, sigma, steps, k), delta))
    if k == 1 and case["relation"] == "add-remove":
        assert ours <= fft_oracle.renyi_epsilon(q, sigma, steps, delta) + 1e-6
    if q == 1:
        mu = (2 if case["relation"] == "substitution" else 1) * k * math.sqrt(steps) / sigma
        at = case["epsilon"]
        if at < 600:
            exact = float(ndtr(mu / 2 - at / mu) - math.exp(at) * ndtr(-mu / 2 - at / mu))
            assert exact == pytest.approx(delta, rel=1e-2)


@named("exchange")
def test_units_that_go_and_units_that_come(case):
    out, into = ([(number, rate) for number, rate in case[side]] for side in ("deleted", "inserted"))
    sigma, steps, delta = case["sigma"], case["steps"], case["delta"]
    away, here = fft_oracle.law(*out), fft_oracle.law(*into)
    second = fft_oracle.epsilon([[(away, here, sigma, steps)], [(here, away, sigma, steps)]], delta)
    run = Exchange(tuple(map(tuple, case["deleted"])), tuple(map(tuple, case["inserted"])), sigma, steps)
    close(case, run.epsilon(delta), second)


@named("phases")
def test_phases_together(case):
    delta, relation = case["delta"], case["relation"]
    phases = [(phase["q"], phase["sigma"], phase["steps"]) for phase in case["phases"]]
    build = fft_oracle.substitution if relation == "substitution" else fft_oracle.add_remove
    directions = [[step for one in each for step in one] for each in zip(*(build(*p) for p in phases), strict=True)]
    ours = compose({PoissonGaussian(q, sigma): steps for q, sigma, steps in phases}, relation).epsilon(delta)
    close(case, ours, fft_oracle.epsilon(directions, delta))


@named("kinds")
def test_units_at_the_highest_rate_bound_every_mixture_of_kinds(case):
    """Any k units at the highest rate, against each split (k_E, k_S), the split by the second code."""
    rates, sigma, steps, delta = tuple(case["rates"]), case["sigma"], case["steps"], case["delta"]
    k = case["k"]
    worst = compose({KindsGaussian(rates, sigma): steps}, "add-remove", k).epsilon(delta)
    run = Units(rates, sigma, steps)
    assert worst == run.epsilon(k, delta)
    seen = []
    for first in (0, 1, k):
        mixed = fft_oracle.law((first, rates[0]), (k - first, rates[1]))
        second = fft_oracle.epsilon([[(mixed, {0: 1.0}, sigma, steps)], [({0: 1.0}, mixed, sigma, steps)]], delta)
        ours = run.epsilon((first, k - first), delta)
        assert ours == pytest.approx(second, rel=5e-4, abs=2e-5)
        assert worst >= second * (1 - 2e-5)
        seen.append(second)
    assert seen == sorted(seen, reverse=rates[0] < rates[1])
    close(case, worst, max(seen))
