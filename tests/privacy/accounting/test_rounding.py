"""Certified ε: rounded up, and how much of another machine's arithmetic a verifier lets pass."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import common
from hypothesis import given
from hypothesis import strategies as st

from taciturn.privacy.accounting import composed, tilted
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.rounding import DIGITS, NOISE, NOISE_OF_MU, agrees, bounds_attacks, up, upwards
from taciturn.privacy.accounting.tradeoff import TradeOff, shortened


@given(st.floats(1e-300, 1e300))
def test_up_is_up_by_less_than_a_unit_of_the_last_digit(value: float) -> None:
    found = up(value)
    assert Fraction(found) >= Fraction(value)
    assert found <= value * (1 + 10.0 ** (1 - DIGITS) + 1e-15)
    assert up(found) == found


def test_only_what_an_attacker_may_learn_is_rounded() -> None:
    names = ("epsilon", "epsilon_tight", "single_run_epsilon", "mu", "epsilon_if_missed", "detected")
    assert all(map(bounds_attacks, names))
    assert not any(
        map(bounds_attacks, ("delta", "gamma", "k", "largest_group_within_epsilon_10", "mean_runs", "labels_needed"))
    )
    value = {
        "epsilon": 1 / 3,
        "mu": 1 / 3,
        "delta": 1 / 3,
        "detail": {"epsilon_tight": 2 / 3, "k": 2 / 3},
        "plan": {"epsilon": 1 / 3},
    }
    found = upwards(value)
    assert found["epsilon"] == 0.333333334
    assert found["mu"] == 0.3334
    assert found["detail"] == {"epsilon_tight": 0.666666667, "k": 2 / 3}
    assert found["delta"] == found["plan"]["epsilon"] == 1 / 3


@given(st.floats(1e-6, 1e6), st.floats(-1e-5, 1e-5))
def test_less_is_refused_and_more_is_a_weaker_claim(value: float, by: float) -> None:
    assert agrees("epsilon", up(value), value)
    if abs(by + NOISE) > 1e-12:
        assert agrees("epsilon", value * (1 + by), value) == (by > -NOISE)
    assert agrees("mu", shortened(value), value)
    assert agrees("mu", shortened(value * (1 - NOISE_OF_MU)), value)
    assert not agrees("mu", shortened(value * (1 - NOISE_OF_MU)) * (1 - 1e-12), value)
    assert not agrees("mu", value * (1 - 1.1e-3), value)
    if abs(by) > 2e-9:
        assert not agrees("gamma", value * (1 + by), value)


class _Numpy:
    """NumPy's transforms in the place of SciPy's: other code, of the same accuracy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np.fft, name) if name in ("fft", "ifft") else getattr(_scipy, name)


_scipy = common.fft


def clear() -> None:
    for cached in (composed._solved, composed._curve, composed._distribution):
        cached.cache_clear()


@pytest.mark.parametrize(
    ("steps", "delta"),
    [
        ({PoissonGaussian(0.05, 2.0): 8}, 8e-5),
        ({PoissonGaussian(0.01, 1.0): 1000}, 1e-5),
        ({PoissonGaussian(0.1, 3.0): 100}, 1e-6),
        ({PoissonGaussian(0.02, 0.8): 5000}, 1e-7),
        ({PoissonGaussian(0.001, 0.8): 1000}, 1e-9),
        ({PoissonGaussian(0.005, 1.0): 20_000}, 1e-8),
    ],
)
def test_other_transforms_move_numbers_by_less_than_is_let_pass(steps: Any, delta: float, monkeypatch: Any) -> None:
    def found() -> dict[str, list[float]]:
        clear()
        profiles = [compose(steps, relation) for relation in ("substitution", "add-remove")]
        told = [TradeOff.of(p.curve(delta), p.epsilon(delta), delta) for p in profiles]
        epsilons = [p.epsilon(delta) for p in profiles]
        return {"epsilon": epsilons, "mu": [t.mu for t in told], "detected": [t.detected for t in told]}

    try:
        ours = found()
        monkeypatch.setattr(common, "fft", _Numpy())
        for name in ("rfft", "irfft"):
            monkeypatch.setattr(tilted, name, getattr(np.fft, name))
        theirs = found()
    finally:
        clear()
    for name, each in theirs.items():
        assert each == pytest.approx(ours[name], rel=(NOISE_OF_MU if name == "mu" else NOISE) * 0.8), name
    assert theirs != ours, "the other transforms were used"


def test_nothing_is_nothing_and_more_of_it_is_no_weaker_claim_but_another() -> None:
    """Of worlds that are the same ε is 0 on every machine, so a larger one in a certificate was put there."""
    assert agrees("epsilon_if_detected", 0.0, 0.0)
    assert not agrees("epsilon_if_detected", 0.5, 0.0)
    assert agrees("epsilon", 0.5, 0.4)
    assert not agrees("epsilon", 0.4, 0.5)
