"""Keyword options as types: they are those of the code that takes them, and a type checker rejects a misspelt one."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from taciturn import typed
from taciturn.auditing.run import audit
from taciturn.mechanisms import MECHANISMS, config, crt, jft, user_dp, values
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.registry import mechanism
from taciturn.mechanisms.settings import LoraConfig, ModelConfig, SeedsConfig, TrainConfig
from taciturn.models.generation import generate
from taciturn.reporting.hub import Hub
from taciturn.screening.pipeline import screen
from taciturn.synthesis.settings import Settings

TABLES = [
    (typed.OptimiserOptions, config.OptimiserConfig),
    (typed.PublicOptions, config.PublicSteps),
    (typed.FilledOptions, values.FilledSteps),
    (typed.PrivateOptions, crt.RecordSteps),
    (typed.ValuesOptions, values.ValueTable),
    (typed.ScreenedOptions, jft.Screened),
    (typed.LocalOptions, user_dp.Local),
    (typed.LoraOptions, LoraConfig),
    (typed.ModelOptions, ModelConfig),
    (typed.SeedsOptions, SeedsConfig),
    (typed.TrainOptions, TrainConfig),
]
FUNCTIONS: list[tuple[Any, Callable[..., Any], set[str]]] = [
    (typed.ScreenOptions, screen, {"corpus", "pi", "conservative", "notify"}),
    (typed.AuditInputs, audit, {"run", "attacks"}),
    (typed.Labels, certify, {"folder", "groups"}),
    (typed.DrawOptions, generate, {"model", "tokenizer", "prompt"}),
]


@pytest.mark.parametrize(("table", "model"), TABLES, ids=[table.__name__ for table, _ in TABLES])
def test_a_table_has_the_fields_of_its_class(table: Any, model: Any) -> None:
    assert set(table.__annotations__) == set(model.model_fields)


def test_options_of_mechanisms_are_those_of_all_of_them() -> None:
    known = {name for each in MECHANISMS for name in mechanism(each).Config.model_fields}
    assert set(typed.MechanismOptions.__annotations__) == known


@pytest.mark.parametrize(("table", "function", "given"), FUNCTIONS, ids=[table.__name__ for table, *_ in FUNCTIONS])
def test_keywords_are_those_of_the_function(table: Any, function: Callable[..., Any], given: set[str]) -> None:
    assert set(table.__annotations__) == set(inspect.signature(function).parameters) - given


@pytest.mark.parametrize(("table", "made"), [(typed.HubOptions, Hub), (typed.SynthesisOptions, Settings)])
def test_keywords_are_the_fields_of_what_is_made_of_them(table: Any, made: Any) -> None:
    assert set(table.__annotations__) == {each.name for each in fields(made)}


SCRIPT = """
import taciturn as tt

screened = tt.screen(tt.read(["a"]), tt.policy("pii"), tt.policy("conservative"), {unit}="document", progress=False)
planned = tt.plan("crt", screened, {{"{name}": "gpt2", "lora": {{"r": 8}}}}, epsilon=3, delta=1e-5, train={{"{keep}": 3}},
    private={{"{steps}": 300, "optimiser": {{"{lr}": 1e-3}}}}, {schedule}="alternate")
run = tt.train(planned, "run")
run.certify({labelled}=100, missed=0)
run.audit({members}=["a"])
run.export("model", {license}="mit")
run.generate("Dear", {samples}=3)
tt.synthesize(run, 10, "out", {labels}=["good"])
"""
NAMES = ["unit", "name", "keep", "steps", "lr", "schedule", "labelled", "members", "license", "samples", "labels"]


def test_mypy_rejects_a_misspelt_option_and_takes_the_right_one(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(SCRIPT.format(**{name: name for name in NAMES}))
    wrong.write_text(SCRIPT.format(**{name: f"{name}x" for name in NAMES}))
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(right), str(wrong)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    assert not [line for line in lines if "right.py" in line], done.stdout
    told = {
        **{name: f'"{name}x"' for name in NAMES},
        "name": 'Argument 3 to "plan"',
        "keep": 'Argument "train" to "plan"',
    }
    assert not [name for name in NAMES if not any(told[name] in line for line in lines if "wrong.py" in line)], (
        done.stdout
    )
