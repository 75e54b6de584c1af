from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import GuaranteeError, UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import PARTS, NonPrivate, PoissonGaussian, ThresholdedCounts

noisy = st.builds(
    PoissonGaussian,
    st.floats(1e-6, 1.0, exclude_min=True),
    st.floats(1e-3, 1e4),
)
plain = st.builds(NonPrivate, st.lists(st.sampled_from(sorted(PARTS)), min_size=1).map(tuple))

counted = st.builds(
    ThresholdedCounts,
    st.floats(1e-3, 1e4), st.floats(1e-3, 1e4), st.floats(1e-3, 1e3), st.integers(1, 100),
    st.sampled_from([(1.0,), (0.6, 0.35), (0.5, 0.5, 0.5, 0.5)]),
)  # fmt: skip


@given(noisy | plain | counted)
def test_json_round_trip(event):
    assert from_json(event.to_json()) == event


@pytest.mark.parametrize("rate", [0.0, -0.1, 1.0001, math.nan, math.inf, True, "0.1", None])
def test_impossible_rates_are_refused(rate):
    with pytest.raises(UsageError, match="rate"):
        PoissonGaussian(rate, 1.0)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, False, "1"])
def test_impossible_noise_is_refused(sigma):
    with pytest.raises(UsageError, match="noise_multiplier"):
        PoissonGaussian(0.1, sigma)


def test_a_misspelt_part_names_the_nearest():
    with pytest.raises(UsageError, match="did you mean 'private'"):
        NonPrivate(("privat",))  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        NonPrivate(())


def test_reads_are_a_set():
    assert NonPrivate(("skeletons", "public", "public")) == NonPrivate(("public", "skeletons"))
    assert NonPrivate(("public", "skeletons")).free
    assert not NonPrivate(("public", "private")).free


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"event": "laplace", "rate": 0.1},
        {"event": "poisson-gaussian", "rate": 0.1},
        {"event": "poisson-gaussian", "rate": 0.1, "noise_multiplier": 1.0, "clip": 1.0},
        {"event": "poisson-gaussian", "rate": "0.1", "noise_multiplier": 1.0},
        {"event": "poisson-gaussian", "rate": 2, "noise_multiplier": 1.0},
        {"event": "non-private", "reads": "public"},
        {"event": "non-private", "reads": None},
        ["poisson-gaussian"],
    ],
)
def test_unknown_events_are_refused(value):
    with pytest.raises(GuaranteeError):
        from_json(value)


def test_the_accountant_refuses_what_it_does_not_know():
    with pytest.raises(UsageError, match="not an event"):
        compose({"gaussian": 3}, "substitution")  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="did you mean 'substitution'"):
        compose({}, "substitutions")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="whole number"):
        compose({PoissonGaussian(0.1, 1.0): 2.5}, "substitution")  # type: ignore[dict-item]
    with pytest.raises(UsageError, match="group"):
        compose({}, "substitution", group=0)
