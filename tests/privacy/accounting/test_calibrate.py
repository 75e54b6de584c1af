from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.events import PoissonGaussian


@settings(max_examples=8, deadline=None)
@given(
    st.floats(0.05, 20),
    st.floats(1e-8, 1e-3),
    st.floats(1e-3, 1.0),
    st.integers(1, 2000),
    st.sampled_from(["add-remove", "substitution"]),
)
def test_the_smallest_noise_on_the_safe_side(epsilon, delta, rate, steps, relation):
    sigma = noise_multiplier(epsilon, delta, rate, steps, relation)

    def spent(noise):
        return compose({PoissonGaussian(rate, noise): steps}, relation).epsilon(delta)

    assert spent(sigma) <= epsilon
    assert sigma < 0.02 or spent(sigma * (1 - 1.5e-3)) > epsilon * (1 - 1e-3)


def test_known_values():
    assert noise_multiplier(3.0, 1e-5, 0.01, 1000, "add-remove") == pytest.approx(0.81359, rel=1e-3)
    assert noise_multiplier(3.0, 1e-5, 0.01, 1000, "substitution") == pytest.approx(0.96597, rel=1e-3)


def test_what_cannot_be_reached_says_so():
    with pytest.raises(GuaranteeError, match="out of reach"):
        noise_multiplier(1e-4, 1e-12, 1.0, 10**8, "substitution")


@pytest.mark.parametrize(("epsilon", "steps"), [(0.0, 5), (-1.0, 5), (float("nan"), 5), (1.0, 0), (1.0, 2.5)])
def test_senseless_targets_are_refused(epsilon, steps):
    with pytest.raises(UsageError):
        noise_multiplier(epsilon, 1e-5, 0.1, steps, "substitution")
