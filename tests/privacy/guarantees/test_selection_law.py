"""The number of runs that one is chosen from: its law by name, its draw, and what a certificate says of the one chosen."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.composed_runs import compose_runs, other_runs
from taciturn.privacy.certificates.history import Drawn, Line, Paid, append, drawn, read_history
from taciturn.privacy.guarantees import selection_law
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.private_selection import NegativeBinomial, Poisson, select

LAWS = [Poisson(0.5), Poisson(10.0), NegativeBinomial(10.0), NegativeBinomial(3.0, 0.0), NegativeBinomial(5.0, -0.5)]
NOISY = PoissonGaussian(0.05, 2.0)
DELTA = 1e-5


def test_laws_go_by_name_and_come_back() -> None:
    assert selection_law.parse("geometric:10") == NegativeBinomial(10.0, 1.0)
    assert selection_law.parse("logarithmic:3") == NegativeBinomial(3.0, 0.0)
    assert selection_law.parse("shape=-0.5:3") == NegativeBinomial(3.0, -0.5)
    assert selection_law.parse("poisson:0.5") == Poisson(0.5)
    for runs in LAWS:
        assert selection_law.from_json(selection_law.to_json(runs)) == runs
        assert f"mean {runs.mean:g}" in selection_law.describe(runs)


@pytest.mark.parametrize(
    "text", ["geometric", "geometrc:10", "poisson:x", "geometric:1", "shape=x:3", "shape=-1:3", ""]
)
def test_what_is_no_law_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(UsageError, match=r"expected|above"):
        selection_law.parse(text)


@pytest.mark.parametrize("wrong", [{}, {"law": "poisson"}, {"law": "poisson", "mean": "3"}, {"law": "poisson", "mean": -1.0},
                                   {"law": "x", "mean": 3.0}, {"law": "poisson", "mean": 3.0, "shape": 1.0}])  # fmt: skip
def test_damaged_laws_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(DataError, match="selection"):
        selection_law.from_json(wrong)


@pytest.mark.parametrize("runs", LAWS)
@given(u=st.floats(1e-6, 1 - 1e-6))
def test_the_draw_inverts_the_distribution_function(runs: object, u: float) -> None:
    assert isinstance(runs, Poisson | NegativeBinomial)
    none = math.exp(-runs.mean) if isinstance(runs, Poisson) else 0.0
    k = selection_law.inverted(runs, u)
    below = none + np.concatenate(([0.0], np.cumsum(runs.probabilities(max(k, 1)))))
    assert below[k] >= u - 1e-12
    assert (0.0 if k == 0 else below[k - 1]) < u + 1e-12 or (k == 1 and not none)


@pytest.mark.parametrize("runs", LAWS)
def test_draws_follow_the_law(runs: Poisson | NegativeBinomial) -> None:
    """4,000 draws from the operating system's entropy: a chi-square over the counts 0 … 20 and beyond, wrong once in 1e9."""
    from scipy.stats import chi2

    found = np.bincount([min(selection_law.draw(runs), 21) for _ in range(4000)], minlength=22)
    none = math.exp(-runs.mean) if isinstance(runs, Poisson) else 0.0
    chances = np.concatenate(([none], runs.probabilities(20)))
    expected = 4000 * np.append(chances, max(1 - chances.sum(), 0.0))
    thick = expected >= 5
    rest = (found[~thick].sum(), expected[~thick].sum())
    statistic = float(((found - expected)[thick] ** 2 / expected[thick]).sum()) + (rest[0] - rest[1]) ** 2 / max(
        rest[1], 5
    )
    assert statistic < chi2.isf(1e-9, thick.sum() + 1)


def test_the_chosen_run_is_priced_by_selection_and_conditional() -> None:
    paid = [Paid("record", NonPrivate(("public",)), 9), Paid("record", NOISY, 40)]
    found = {g.notion: g for g in compose_runs(paid, DELTA, NegativeBinomial(10.0))}
    for notion, relation in (("confidentiality", "substitution"), ("dp", "add-remove")):
        alone = compose({NOISY: 40}, relation)
        assert found[notion].epsilon == select(alone, NegativeBinomial(10.0), DELTA).epsilon > alone.epsilon(DELTA)
        assert found[notion].status == "conditional"
        open_ones = [each.text for each in found[notion].assumptions if not each.enforced]
        assert len(open_ones) == 5, open_ones
        for word in ("settings", "score", "only the run", "copy", "certificate"):
            assert any(word in text for text in open_ones), word


def test_choosing_costs_less_than_all_runs_together_and_more_than_one() -> None:
    one = compose({NOISY: 40}, "substitution").epsilon(DELTA)
    (chosen, *_), (all_of_them, *_) = (
        compose_runs([Paid("record", NOISY, 40)], DELTA, NegativeBinomial(30.0)),
        compose_runs([Paid("record", NOISY, 40 * 30)], DELTA),
    )
    assert one < chosen.epsilon < all_of_them.epsilon


@pytest.mark.parametrize(
    "paid",
    [
        Paid("record", NonPrivate(("original",)), 1),
        Paid("record", NOISY, 5, seeded=True),
        Paid("user-entity", NOISY, 5),
    ],
)
def test_where_one_run_has_no_guarantee_the_chosen_one_has_none(paid: Paid) -> None:
    for found in compose_runs([Paid("record", NOISY, 8), paid], DELTA, Poisson(3.0)):
        assert (found.status, found.epsilon) == ("none", math.inf)
        assert found.reason


def test_a_certificate_of_a_chosen_run_never_says_how_many_there_were() -> None:
    law = selection_law.to_json(NegativeBinomial(10.0))
    evidence = Evidence(DELTA, redacted=False, selection=law)
    assert Evidence.from_json(evidence.to_json()) == evidence
    plan = {"phases": [{"name": "private", "unit": "record"}]}
    said = other_runs(plan, {"private": {NOISY: 40}}, evidence, DELTA)
    assert (said["known"], said["counted_by"]) == (None, "selection")
    assert "a geometric law of mean 10" in said["words"]
    assert "as if it had not been chosen" in said["words"]
    for told in ({"other_runs": 3}, {"other_runs": 1, "other_steps": (Paid("record", NOISY, 3).to_json(),)}):
        with pytest.raises(UsageError, match="never told"):
            Evidence(DELTA, selection=law, **told)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="selection"):
        Evidence.from_json(evidence.to_json() | {"selection": {"law": "poisson"}})


def test_a_draw_stands_before_all_runs_or_has_no_law(tmp_path: Path) -> None:
    fields = {"date": "2026-01-01T00:00:00+00:00", "path": "/runs/a", "mechanism": "crt", "seeded": False}
    run = Line(key="a", state="begun", relation="substitution", **fields)
    draw = Drawn(drawn=selection_law.to_json(Poisson(3.0)), runs=2, date="2026-01-01T00:00:00+00:00")
    for name, lines, good in (
        ("good", (draw, run), True),
        ("late", (run, draw), False),
        ("twice", (draw, draw), False),
    ):
        (tmp_path / name).mkdir()
        for line in lines:
            append(tmp_path / name, line)
        assert len(read_history(tmp_path / name)) == (0 if name == "twice" else 1)
        if good:
            assert drawn(tmp_path / name) == draw
        else:
            with pytest.raises(DataError, match="twice or after"):
                drawn(tmp_path / name)
    assert drawn(tmp_path) is None
