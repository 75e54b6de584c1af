"""Certified ε: rounded up, and how much of another machine's arithmetic a verifier lets pass."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import common
from hypothesis import given
from hypothesis import strategies as st

from taciturn.privacy import accountant
from taciturn.privacy.accountant import compose
from taciturn.privacy.events import PoissonGaussian
from taciturn.privacy.rounded import ABOVE, DIGITS, NOISE, agrees, is_epsilon, up, upwards


@given(st.floats(1e-300, 1e300))
def test_up_is_up_by_less_than_a_unit_of_the_last_digit(value: float) -> None:
    found = up(value)
    assert Fraction(found) >= Fraction(value)
    assert found <= value * (1 + 10.0 ** (1 - DIGITS) + 1e-15)
    assert up(found) == found


def test_only_what_an_attacker_may_learn_is_rounded() -> None:
    names = ("epsilon", "epsilon_tight", "single_run_epsilon", "mu", "epsilon_if_missed")
    assert all(map(is_epsilon, names))
    assert not any(
        map(is_epsilon, ("delta", "gamma", "k", "largest_group_within_epsilon_10", "mean_runs", "labels_needed"))
    )
    value = {
        "epsilon": 1 / 3,
        "delta": 1 / 3,
        "detail": {"epsilon_tight": 2 / 3, "k": 2 / 3},
        "plan": {"epsilon": 1 / 3},
    }
    found = upwards(value)
    assert found["epsilon"] == 0.333333334
    assert found["detail"] == {"epsilon_tight": 0.666666667, "k": 2 / 3}
    assert found["delta"] == found["plan"]["epsilon"] == 1 / 3


@given(st.floats(1e-6, 1e6), st.floats(-1e-5, 1e-5))
def test_less_is_refused_sooner_than_more(value: float, by: float) -> None:
    assert agrees("epsilon", up(value), value)
    if abs(by + NOISE) > 1e-12 and abs(by - ABOVE) > 1e-12:
        assert agrees("epsilon", value * (1 + by), value) == (-NOISE < by < ABOVE)
    if abs(by) > 2e-9:
        assert not agrees("gamma", value * (1 + by), value)


class _Numpy:
    """NumPy's transforms in the place of SciPy's: other code, of the same accuracy."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np.fft, name) if name in ("fft", "ifft") else getattr(_scipy, name)


_scipy = common.fft


@pytest.mark.parametrize(
    ("steps", "delta"),
    [
        ({PoissonGaussian(0.05, 2.0): 8}, 8e-5),
        ({PoissonGaussian(0.01, 1.0): 1000}, 1e-5),
        ({PoissonGaussian(0.1, 3.0): 100}, 1e-6),
        ({PoissonGaussian(0.02, 0.8): 5000}, 1e-7),
    ],
)
def test_other_transforms_move_epsilon_by_less_than_is_let_pass(steps: Any, delta: float, monkeypatch: Any) -> None:
    def found() -> list[float]:
        for cached in (accountant._epsilon, accountant._distribution):
            cached.cache_clear()
        return [compose(steps, relation).epsilon(delta) for relation in ("substitution", "add-remove")]

    try:
        ours = found()
        monkeypatch.setattr(common, "fft", _Numpy())
        theirs = found()
    finally:
        for cached in (accountant._epsilon, accountant._distribution):
            cached.cache_clear()
    assert theirs == pytest.approx(ours, rel=NOISE / 2)
    assert theirs != ours, "the other transforms were used"
