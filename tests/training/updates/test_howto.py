"""The rule that docs/how-to/new-rule.md shows is a file with two lines of registration, and then it trains and verifies."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tiny import DATA, SGD, model, plan, run, weights

from taciturn.errors import DataError, TaciturnError, UsageError
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.certificates import plan_fields
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.updates import release

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "new-rule.md"


@pytest.fixture
def page() -> Iterator[ModuleType]:
    """The page's file, imported."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module = ModuleType("sign_noise")
    updates, rules = dict(release.UPDATES), dict(plan_fields.RULES)
    sys.modules[module.__name__] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield module
    del sys.modules[module.__name__]
    for table, before in ((release.UPDATES, updates), (plan_fields.RULES, rules)):
        table.clear()  # type: ignore[attr-defined]
        table.update(before)  # type: ignore[attr-defined]


def phase(page: ModuleType, sampler: Any = Poisson(0.5), steps: int = 1) -> Phase:  # noqa: B008
    return Phase("private", ("original",), len(DATA), sampler, page.SignNoise(ClipNoise(1.0, 2.0)), steps, SGD)


def test_every_weight_moves_by_the_rate_and_the_step_costs_what_its_sum_does(page: ModuleType, tmp_path: Path) -> None:
    p, m = plan(phase(page), repeat=1), model()
    before = weights(m).clone()
    run(p, tmp_path, m)
    moved = ((weights(m) - before).abs() / SGD.lr).round(decimals=4)
    assert set(moved.tolist()) <= {0.0, 1.0}  # noise lies on a grid, and 0 is on it
    assert float(moved.mean()) > 0.99
    assert p.events() == {PoissonGaussian(0.5, 2.0): 1}


def test_a_verifier_knows_it_by_its_line(page: ModuleType) -> None:
    written = plan(phase(page)).to_json()
    plan_fields.checked(written)
    del plan_fields.RULES["SignNoise"]
    with pytest.raises(DataError, match=r"rule\.name"):
        plan_fields.checked(written)


def test_it_cannot_stand_beside_a_sampler_without_an_accounting(page: ModuleType) -> None:
    with pytest.raises(UsageError, match="Poisson sampling"):
        phase(page, Shuffle(4))


def test_a_noised_step_that_shows_something_is_refused(page: ModuleType, tmp_path: Path) -> None:
    real = page.release
    page.release = lambda step, *rest: (real(step, *rest), release.Shown(1.5, 3))[1]  # type: ignore[attr-defined]
    with pytest.raises(TaciturnError, match="must return None"):
        run(plan(phase(page), repeat=1), tmp_path)


def test_a_term_nobody_registered_is_named(page: ModuleType, tmp_path: Path) -> None:
    del release.UPDATES[page.SignNoise]
    with pytest.raises(UsageError, match="SignNoise"):
        run(plan(phase(page), repeat=1), tmp_path / "run")
    assert not (tmp_path / "run").exists(), "it is named before anything is written"


def test_who_trains_and_who_verifies_know_the_same_rules() -> None:
    assert {term.__name__ for term in release.UPDATES} == set(plan_fields.RULES)
