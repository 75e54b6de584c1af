from __future__ import annotations

import math
from collections.abc import Callable

import dp_accounting
import fft_oracle
import mpmath
import numpy as np
import pytest
from dp_accounting.rdp import RdpAccountant

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.accounting.renyi import renyi

ORDERS = (1.01, 1.3, 2.0, 5.5, 40.0)


def by_quadrature(up: dict[int, float], down: dict[int, float], sigma: float, order: float) -> float:
    """D_α of one pair in 30 digits."""
    with mpmath.workdps(30):

        def density(law: dict[int, float], sign: int) -> Callable[[mpmath.mpf], mpmath.mpf]:
            """Times σ√(2π)."""
            terms = [(mpmath.mpf(w), mpmath.mpf(sign * j)) for j, w in law.items()]
            spread = 2 * mpmath.mpf(sigma) ** 2
            return lambda x: sum(w * mpmath.exp(-((x - at) ** 2) / spread) for w, at in terms)

        p, q = density(up, 1), density(down, -1)
        peak = (2 * order - 1) * max(up)
        marks = [-60 * sigma, -10 * sigma, 0, peak / 2, peak, peak + 10 * sigma, peak + 60 * sigma]
        total = mpmath.quad(lambda x: p(x) ** order * q(x) ** (1 - order), marks)
        return float(mpmath.log(total / (sigma * mpmath.sqrt(2 * mpmath.pi))) / (order - 1))


@pytest.mark.parametrize(("q", "sigma", "k"), [(0.1, 1.0, 1), (0.01, 0.4, 1), (0.2, 2.0, 3)])
@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
def test_one_step_is_the_integral_and_never_below_it(q, sigma, k, relation):
    drawn, still = fft_oracle.law((k, q)), {0: 1.0}
    pairs = [(drawn, drawn)] if relation == "substitution" else [(drawn, still), (still, drawn)]
    curve = renyi(compose({PoissonGaussian(q, sigma): 1}, relation, k), ORDERS)
    for order, value in zip(curve.orders, curve.values, strict=True):
        exact = max(by_quadrature(up, down, sigma, order) for up, down in pairs)
        assert exact <= value * (1 + 1e-12) <= exact * (1 + 1e-6) + 1e-10


@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.01, 1.0, 1000), (0.1, 2.0, 100), (1.0, 10.0, 30)])
def test_add_and_remove_agree_with_dp_accounting_and_the_binomial_formula(q, sigma, steps):
    """dp_accounting's orders below 2 are loose, so it is a bound there and equal at whole orders."""
    curve = renyi(compose({PoissonGaussian(q, sigma): steps}, "add-remove"), (1.1, 1.5, 2.0, 3.0, 10.0, 32.0))
    theirs = RdpAccountant(curve.orders)
    theirs.compose(dp_accounting.PoissonSampledDpEvent(q, dp_accounting.GaussianDpEvent(sigma)), steps)
    reference = np.array(theirs._rdp)
    assert np.all(np.array(curve.values) <= reference * (1 + 1e-6))
    assert curve.values[2:] == pytest.approx(reference[2:], rel=1e-6)
    whole = renyi(compose({PoissonGaussian(q, sigma): steps}, "add-remove"), tuple(map(float, range(2, 257))))
    assert whole.epsilon(1e-5) == pytest.approx(fft_oracle.renyi_epsilon(q, sigma, steps, 1e-5), rel=1e-5)


@pytest.mark.parametrize("relation", ["add-remove", "substitution"])
@pytest.mark.parametrize(("q", "sigma", "steps"), [(0.01, 1.0, 500), (1.0, 5.0, 20), (0.3, 0.2, 2)])
def test_the_curve_bounds_the_loss_distribution(q, sigma, steps, relation):
    profile = compose({PoissonGaussian(q, sigma): steps}, relation)
    found = renyi(profile)
    assert profile.epsilon(1e-5) <= found.epsilon(1e-5) * (1 + 1e-3)
    assert found.delta(found.epsilon(1e-5)) == pytest.approx(1e-5, rel=1e-6)
    assert profile.delta(1.0) <= found.delta(1.0) * (1 + 1e-3)


def test_steps_and_phases_add_up():
    one, two = PoissonGaussian(0.1, 2.0), PoissonGaussian(0.02, 1.0)
    first, second = (np.array(renyi(compose({event: 1}, "substitution")).values) for event in (one, two))
    both = renyi(compose({one: 10, two: 5}, "substitution"))
    assert both.values == pytest.approx(10 * first + 5 * second, rel=1e-12)


def test_what_has_no_curve():
    assert renyi(compose({NonPrivate(("private",)): 1}, "substitution")).epsilon(1e-5) == math.inf
    with pytest.raises(UsageError, match="above 1"):
        renyi(compose({}, "add-remove"), (1.0, 2.0))
    with pytest.raises(UsageError, match="probability"):
        renyi(compose({PoissonGaussian(0.1, 1.0): 1}, "add-remove")).epsilon(1.0)
