"""The mechanism that docs/how-to/new-mechanism.md shows is a file and a name, and then it trains, certifies and verifies."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from taciturn.mechanisms import MECHANISMS, registry
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.run import make_plan, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.accounting.rounding import up
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.readers import Corpus

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "new-mechanism.md"


@pytest.fixture
def _two_legs(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    module = ModuleType("taciturn.mechanisms.two_legs")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(registry, "MECHANISMS", (*MECHANISMS, "two_legs"))
    exec(compile(code, str(PAGE), "exec"), module.__dict__)


@pytest.mark.usefixtures("_two_legs")
def test_the_mechanism_of_the_page_runs_from_plan_to_certificate(tmp_path: Path) -> None:
    screened = screen(Corpus.from_texts([f"number {i}" for i in range(12)]), policy("phone"), policy("conservative"))
    leg = {"steps": 3, "batch": 4}
    config = RunConfig(
        mechanism="two_legs",
        corpus=Path("memory"),
        model={"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},  # type: ignore[arg-type]
        delta=1e-3,
        options={"first": {**leg, "noise_multiplier": 3.0}, "second": {**leg, "noise_multiplier": 1.5}},
    )
    assert [phase.name for phase in make_plan(config, screened).phases] == ["first", "second"]
    train(config, tmp_path, screened=screened)
    secret = certify(tmp_path).statements()[0]
    assert not registry.verify(tmp_path / "certificate.json")
    counts = {PoissonGaussian(4 / 12, 3.0): 3, PoissonGaussian(4 / 12, 1.5): 3}
    assert secret.epsilon == up(compose(counts, "substitution").epsilon(1e-3))
