from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, round_up

SAFE = Assumption("noise comes from secret entropy", enforced=True)
OPEN = Assumption("the wide policy sees the rest", enforced=False)


def make(**changes):
    fields = {
        "notion": "confidentiality",
        "unit": "a secret in one record",
        "relation": "substitution",
        "epsilon": 2.2201,
        "delta": 8e-5,
        "status": "conditional",
        "theorem": "8.1",
        "accountant": "PLD",
        "assumptions": (SAFE, OPEN),
        "detail": {"bound": math.inf},
    }
    return Guarantee(**{**fields, **changes})


def test_a_number_is_never_printed_alone():
    for text in (make().words(), str(make()), make(status="proved", assumptions=(SAFE,)).words()):
        for part in ("confidentiality", "a secret in one record", "substitution", "ε = 2.23", "δ = 8e-05"):
            assert part in text
    assert "conditional" in make().words()
    assert "provided that the wide policy sees the rest" in make().words()


def test_in_short_no_condition_is_left_out_but_counted():
    few, many = make(assumptions=(SAFE, OPEN, OPEN)), make(assumptions=(SAFE, OPEN, OPEN, OPEN))
    assert few.in_short() == few.words()
    assert many.in_short().endswith("; provided that its 3 open assumptions hold).")
    assert many.in_short().startswith(many.words().partition("; provided")[0])
    lost = make(epsilon=math.inf, status="none", reason="nothing was labelled", assumptions=(OPEN,) * 3)
    assert lost.in_short() == lost.words()


def test_words_say_what_the_number_allows():
    assert make().words().startswith("Anyone who sees the model can raise the odds of any guess")
    assert "factor of at most 9.21" in make().words()
    assert "learn nothing" in make(epsilon=0.0, delta=0.0).words()
    assert "excludes almost nothing" in make(epsilon=12.0).words()
    void = make(epsilon=math.inf, status="none", reason="no noise").words()
    assert "nothing is promised" in void
    assert "because no noise" in void
    assert "not proved" in make(status="published-claim").words()
    assert "not a bound" in make(status="estimate").words()


@pytest.mark.parametrize(
    "change", [{"notion": "dp"}, {"relation": "add-remove"}, {"unit": "one user"}, {"delta": 1e-5}]
)
def test_different_promises_do_not_compare(change):
    for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
        with pytest.raises(UsageError, match="do not compare"):
            getattr(make(), compare)(make(**change))
    with pytest.raises(UsageError):
        make() < 3.0  # noqa: B015


def test_like_promises_compare_by_epsilon():
    assert make(epsilon=1.0) < make() <= make() < make(epsilon=math.inf, status="none", reason="x")
    assert make() > make(epsilon=1.0)
    assert make() >= make()


@pytest.mark.parametrize(
    "change",
    [
        {"status": "none"},
        {"status": "none", "epsilon": math.inf},
        {"status": "proved"},
        {"epsilon": -1.0},
        {"epsilon": math.nan},
        {"delta": 1.5},
        {"notion": "privacy"},
    ],
)
def test_contradictions_are_refused(change):
    with pytest.raises(UsageError):
        make(**change)


def test_json_round_trip_and_refusals():
    guarantee = make()
    value = guarantee.to_json()
    assert value["detail"] == {"bound": "inf"}
    assert Guarantee.from_json(value) == guarantee
    for broken in ({**value, "epsilon": "2"}, {**value, "extra": 1}, {}, {**value, "status": "sure"}):
        with pytest.raises(DataError):
            Guarantee.from_json(broken)


@given(st.floats(1e-12, 1e9))
def test_rounding_never_favours_the_house(value):
    printed = float(round_up(value))
    assert value * (1 - 1e-8) <= printed <= value * 1.0101
