"""Which statements a synthetic corpus carries: the model's own, and one condition more where the user gives text."""

from __future__ import annotations

import math
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.privacy.guarantees.guarantee import EMPTY, Assumption, Guarantee, Notion, Status
from taciturn.synthesis.claims import carried


@st.composite
def guarantees(draw: st.DrawFn) -> Guarantee:
    status = draw(st.sampled_from(get_args(Status)))
    return Guarantee(
        notion=draw(st.sampled_from(get_args(Notion))),
        unit=draw(st.sampled_from(("one secret in one record", "all records of one user"))),
        relation=draw(st.sampled_from(("substitution", "add-remove"))),
        epsilon=math.inf if status in EMPTY else draw(st.floats(1e-9, 20) | st.just(0.0)),
        delta=draw(st.floats(1e-30, 1) | st.just(0.0)),
        status=status,
        theorem="a theorem",
        accountant="an accountant",
        assumptions=tuple(
            Assumption(f"assumption {i}", status == "proved" or bool(i)) for i in range(draw(st.integers(0, 3)))
        ),
        reason="a reason" if status in EMPTY else "",
    )


@given(st.lists(guarantees(), max_size=4))
def test_without_anything_given_they_are_the_models_own(statements: list[Guarantee]) -> None:
    assert list(carried(statements, ())) == statements


@given(st.lists(guarantees(), max_size=4), st.sampled_from(("labels", "prompts", "skeletons")))
def test_what_is_given_never_makes_a_claim_stronger(statements: list[Guarantee], what: str) -> None:
    for before, after in zip(statements, carried(statements, (f"the {what} are public",)), strict=True):
        same = ("notion", "unit", "relation", "epsilon", "delta", "theorem", "reason", "trade_off")
        assert all(getattr(before, name) == getattr(after, name) for name in same)
        assert after.status != "proved"
        assert after.status == ("conditional" if before.status == "proved" else before.status)
        added = [each.text for each in after.assumptions[len(before.assumptions) :] if not each.enforced]
        assert (len(added) == 1 and what in added[0]) != (before.status in EMPTY)
        assert after.assumptions[: len(before.assumptions)] == before.assumptions
        assert before.status in EMPTY or added[0] in after.words()


@pytest.mark.parametrize("status", get_args(Status))
def test_every_status_has_been_thought_of(status: Status) -> None:
    assert status in {"proved", "conditional", "estimate", "published-claim", *EMPTY}
