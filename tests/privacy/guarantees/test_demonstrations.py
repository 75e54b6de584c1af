"""The scripts of examples/ that beat a claim, in a short form. Seeds are fixed, and with them the outcome; over random
seeds the attack's lower bound would be wrong with probability 1e-3, and a fresh run would miss the claim more rarely."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "runs", "low", "high"),
    [
        ("beat_the_add_remove_epsilon", 200_000, "add and remove", "by substitution"),
        ("beat_the_published_uedp_epsilon", 8_000, "as published", "as proved"),
    ],
)
def test_the_attack_lies_between_the_claim_and_what_is_certified(name, runs, low, high, capsys):
    assert load(name).main(["--runs", str(runs)]) == 0
    values = {line[:46].strip(): float(line.split()[-1]) for line in capsys.readouterr().out.splitlines()[1:]}
    claimed, found, certified = (
        next(v for label, v in values.items() if key in label) for key in (low, "attack", high)
    )
    assert claimed < found <= certified


def test_too_few_runs_prove_nothing_and_the_exit_code_says_so(capsys):
    assert load("beat_the_add_remove_epsilon").main(["--runs", "2000"]) == 1
    assert "ε" in capsys.readouterr().out


def test_the_printed_local_update_clips_to_beta_and_flips_with_the_entity():
    script = load("beat_the_published_uedp_epsilon")
    assert script.local_update(script.WITH, script.WITHOUT, True) == script.BETA
    assert script.local_update(script.WITH, script.WITHOUT, False) == -script.BETA
    assert script.local_update((), (0.5 * script.BETA,), True) == 0.5 * script.BETA
    x = np.linspace(-400, 400, 40_001)
    for present in (True, False):  # the attacker's densities are those of the simulated updates
        law = script.density(x, present)
        mean = float((law @ x) / law.sum())
        drawn = script.updates(np.random.default_rng(3), 20_000, present)
        assert drawn.mean() == pytest.approx(mean, abs=5 * drawn.std() / drawn.size**0.5)  # false alarm below 1e-6
