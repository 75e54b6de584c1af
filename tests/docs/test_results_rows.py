"""Tables of the pages that have their rows beside them say what the rows say."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np
import pytest
import torch

from taciturn.recipes.crt.curves import LONGER
from taciturn.recipes.verdicts import AS, NOT_AS, UNTOLD, Order, Runs, Verdict

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "experiments" / "rows"


@pytest.fixture
def experiment(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """A script of experiments/, whose neighbours it imports by name."""
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))

    def load(name: str) -> Any:
        spec = importlib.util.spec_from_file_location(f"experiments_{name}", ROOT / "experiments" / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def values(experiment: Callable[[str], Any]) -> Any:
    return experiment("values")


@pytest.fixture
def headline(experiment: Callable[[str], Any]) -> Any:
    return experiment("headline")


def test_learned_values(values: Any) -> None:
    """What `values.py table` prints of the rows stands in docs/results.md, line by line."""
    page = (ROOT / "docs" / "results.md").read_text()
    lines = values.show(values.Work(ROWS, "values.jsonl")).splitlines()
    assert len(lines) > 12
    missing = [line for line in lines if line.strip("|-: ") and line not in page]
    assert missing == []


def test_noised_steps(experiment: Callable[[str], Any]) -> None:
    """The table of section 7 is what `private_steps.py table` prints, and what is said of it holds of the rows."""
    page = (ROOT / "docs" / "results.md").read_text().partition("\n## 7 ")[2]
    script = experiment("private_steps")
    lines = script.show(script.Work(ROWS, "private_steps.jsonl")).splitlines()
    assert len(lines) > 12
    assert [line for line in lines if line not in page] == []
    assert {line for line in page.splitlines() if line.startswith(("| multiwoz", "| abcd"))} == set(lines[2:])
    rows = [json.loads(line) for line in (ROWS / "private_steps.jsonl").read_text().splitlines()]
    at = {(r["as_if"], r["row"], r["seed"]): r["outside"] for r in rows if r["set"] == "multiwoz"}
    assert abs(at[1, "none", 0] / at[1, "default", 0] - 1) < 0.01
    assert round(100 * (1 - at[1, "noiseless", 0] / at[1, "default", 0])) == 15
    names = {row for many, row, _ in at if many == 8 and "noiseless" not in row} - {"20 of 256"}
    gains = {name: mean(at[8, name, seed] / at[8, "20 of 256", seed] - 1 for seed in range(3)) for name in names}
    best = min(gains, key=gains.__getitem__)
    assert best == "20 of 256, 4 bands, public second moments, rate 1e-3"
    assert round(100 * gains[best], 1) == -3.0
    told = [
        line for line in lines if line.startswith("| multiwoz | 8 ") and "±" in line and "not told apart" not in line
    ]
    assert [line.split(" | ")[2] for line in told if "noiseless" not in line and "| – |" not in line] == [best]
    assert len(names) == 9
    (there,) = [line for line in lines if line.startswith(f"| abcd | 8 | {best} |")]
    assert "| -1.0 % " in there
    assert "not told apart" in there


def test_correlated_noise(experiment: Callable[[str], Any]) -> None:
    """The table is that of the rows, a row is what the script computes, and what is said of them holds."""
    page = (ROOT / "docs" / "results.md").read_text()
    script = experiment("banded_noise")
    rows = [json.loads(line) for line in (ROWS / "banded_noise.jsonl").read_text().splitlines()]
    assert script.show(rows) in page
    assert next(script.rows()) == pytest.approx(rows[0])
    best = {(r["records"], r["steps"], r["batch"]): 1.0 for r in rows}
    passes = {(r["records"], r["steps"], r["batch"]): r["passes"] for r in rows}
    for r in rows:
        at = r["records"], r["steps"], r["batch"]
        best[at] = min(best[at], r["beside"])
    eighth, whole = sorted({records for records, *_ in best})
    assert all(best[at] == 1.0 for at in best if at[0] == eighth and passes[at] > 1)
    assert all(0.66 <= best[at] <= 0.81 for at in best if at[0] == whole and passes[at] < 3.5)


@pytest.mark.parametrize("bands", [1, 2, 3, 7])
def test_correlated_noise_has_the_covariance_of_its_matrix(experiment: Callable[[str], Any], bands: int) -> None:
    """C is lower triangular, banded, with columns of length 1, and what is drawn is C⁻¹z of the same normals."""
    c = experiment("banded_noise").banded(bands, 7)
    assert np.allclose(c, np.tril(c) * (np.subtract.outer(np.arange(7), np.arange(7)) < bands))
    assert np.allclose(np.linalg.norm(c, axis=0), 1.0)
    drawn = experiment("noised_steps").Correlated(bands, 7, 5, torch.Generator().manual_seed(0))
    again = torch.Generator().manual_seed(0)
    z = torch.stack([torch.randn(5, generator=again) for _ in range(7)]).numpy()
    assert np.allclose(c @ torch.stack([drawn.draw(step) for step in range(7)]).numpy(), z, atol=1e-5)


def test_the_headline_is_its_rows(headline: Any) -> None:
    """Page and plots, byte by byte: `python experiments/headline.py` writes them."""
    made = headline.page()
    assert len(made) == 3
    for name, text in made.items():
        assert text == (ROOT / "docs" / name).read_text("utf-8"), name
        if name.endswith(".svg"):
            assert all(f">{epsilon:g}</text>" in text for epsilon in headline.EPSILONS), "each ε is on the axis"


def test_the_headline_follows_a_row_and_names_what_was_not_run(headline: Any, tmp_path: Path) -> None:
    """One run of one row, made up: it stands there, everything else is not run, and nothing is told apart."""
    row = {
        "set": "abcd", "model": "gpt2-public-s", "stride": 8, "row": "DP-SGD", "epsilon": 1.0, "seed": 0, "mu": 0.61234,
        "outside": 33.3, "all": 44.4, "exposure": 5.55, "exposure_null": 7.61,
    }  # fmt: skip
    (tmp_path / "headline.jsonl").write_text(json.dumps(row) + "\n")
    text = headline.page(tmp_path)["headline.md"]
    assert "| DP-SGD | 1 | 0.613 | any | 33.3 | 44.4 | 5.5 (7.6) | 1 |" in text  # μ is rounded up
    assert text.count(f"| {headline.NOT_RUN} | {headline.NOT_RUN} |") >= 27
    assert "Told apart:" not in text


def test_the_headline_tells_apart_by_the_rule(headline: Any, tmp_path: Path) -> None:
    """Three runs a row far apart are told apart; where the model is no better than before training they are not."""

    def row(name: str, seed: int, score: float) -> str:
        return json.dumps(
            {"set": "abcd", "model": "gpt2-public-s", "stride": 8, "row": name, "epsilon": 3.0, "seed": seed,
             "outside": score, "all": score, "exposure": 1.0, "exposure_null": 7.6}
        )  # fmt: skip

    ours, theirs = ("table, kept", 20.0), ("DP-SGD", 40.0)
    rows = [row(name, seed, score + seed / 10) for name, score in (ours, theirs) for seed in range(3)]
    (tmp_path / "headline.jsonl").write_text("\n".join(rows))
    assert "- Told apart: ABCD" in headline.page(tmp_path)["headline.md"]
    floor = {
        "set": "abcd",
        "model": "gpt2-public-s",
        "stride": 8,
        "start": 30.0,
        "constant": 99.0,
        "labelled": 9,
        "left": 1,
    }
    (tmp_path / "floors.jsonl").write_text(json.dumps(floor))
    told = headline.page(tmp_path)["headline.md"]
    assert "Told apart:" not in told
    assert "learned nothing" in told


def test_what_fits_on_devices() -> None:
    page = (ROOT / "docs" / "how-to" / "large-models.md").read_text()
    rows = [json.loads(line) for line in (ROWS / "fits.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    for row in rows:
        ends = row["rows"] or f"none: {row['short'] / 1e9:.0f} GB too much"
        (line,) = [line for line in page.splitlines() if line.startswith("|") and row["line"] in line]
        assert line.endswith(f"| {ends} |"), line


def test_masks_as_targets(experiment: Callable[[str], Any]) -> None:
    """The table and the verdicts are those of the rows."""
    page = (ROOT / "docs" / "results.md").read_text()
    script = experiment("mask_targets")
    rows = [json.loads(line) for line in (ROWS / "mask_targets.jsonl").read_text().splitlines()]
    table, _, says = script.show(rows).partition("\n\n")
    assert table in page
    assert [line for line in says.splitlines() if line not in page] == []


def test_a_mask_becomes_a_target_or_its_kind(experiment: Callable[[str], Any]) -> None:
    """Three training texts of the same redacted one: kinds stand in order, and masks are scored but in the last."""
    script = experiment("mask_targets")
    found = script.Redacted(("call <MASK> or <MASK> now", "no secret"), (("PERSON", "DATE"), ()))
    for row in script.ROWS:
        tokenizer = script.load_tokenizer("bytes", "lstm")
        tokens = script.tokens_of(row, found, tokenizer)
        names = tokenizer.convert_ids_to_tokens(tokens.flat.tolist())
        kinds = ["<PERSON>", "<DATE>"] if row == "a mask a kind, targets" else ["<MASK>", "<MASK>"]
        assert [name for name in names if name in ("<PERSON>", "<DATE>", "<MASK>")] == kinds
        mask = script.mask_id(tokenizer)
        scored = np.concatenate([tokens.targets(i, mask) for i in range(2)])
        unscored = [name for name, on in zip(names, scored, strict=True) if not on]
        assert len(unscored) == 2 + 2 * (row == "one mask, no target")  # the first of each record, and masks
        assert unscored.count("<MASK>") == 2 * (row == "one mask, no target")


def test_exposure_with_more_epochs(experiment: Callable[[str], Any]) -> None:
    """The table and the verdicts are those of the rows, and all are as the sentence on the recipes' pages says."""
    script = experiment("exposure_epochs")
    table, _, says = script.show(script.MEDIUM.read_text(), script.ROWS.read_text()).partition("\n\n")
    page = (ROOT / "docs" / "results.md").read_text()
    assert table in page
    lines = says.splitlines()
    assert [line for line in lines if line not in page or not line.startswith(f"- {AS}")] == []
    assert len(lines) == 6
    for name in ("crt-figure3-medium", "crt-figure4-medium"):
        assert LONGER.partition(" (")[0] in (ROOT / "docs" / "papers" / f"{name}.md").read_text("utf-8")


def test_s_dp_with_more_steps(experiment: Callable[[str], Any]) -> None:
    """The table, the verdicts, and how many runs exceed what chance does in one model of twenty."""
    script, page = experiment("selective_steps"), (ROOT / "docs" / "results.md").read_text("utf-8")
    assert script.show(script.MEDIUM.read_text(), script.ROWS.read_text()) in page
    rows = [json.loads(line) for line in script.ROWS.read_text().splitlines()]
    chance = -math.log2(1 - 0.95**0.1)  # what the highest of ten canaries exceeds in one model of twenty
    assert f"The {chance:.1f} bits that chance alone exceeds in one model of twenty" in page
    for gamma, says in ((0.0, "{} run of 5 at γ = 0"), (0.5, "{} run of 5 at γ = .5")):
        highest = [row["row"]["exposure"] for row in rows if row["key"]["gamma"] == gamma]
        assert len(highest) == script.SEEDS
        assert says.format(sum(each > chance for each in highest)) in page


def test_no_verdict_is_overturned(experiment: Callable[[str], Any]) -> None:
    """The page of reruns is its rows, and no order is as in the paper one time and not the other."""
    script = experiment("reruns")
    assert script.page() == (ROOT / "docs" / "papers" / "reruns.md").read_text("utf-8")
    for page in filter(script.twice, script.pages()):
        assert script.overturned(script.settled(page), script.settled(page, script.SEED)) == []


def test_a_verdict_that_turns_is_seen(experiment: Callable[[str], Any]) -> None:
    script = experiment("reruns")

    def verdict(kind: Any) -> Any:
        return Verdict(Order("one is ahead", Runs("a", (1.0,)), 2.0), kind)

    key = ("one is ahead", "", "a", "", False)
    assert script.overturned({key: verdict(AS)}, {key: verdict(NOT_AS)}) == [key]
    assert script.overturned({key: verdict(NOT_AS)}, {key: verdict(AS)}) == [key]
    assert script.overturned({key: verdict(AS)}, {key: verdict(UNTOLD)}) == []
    assert script.overturned({key: verdict(UNTOLD)}, {key: verdict(AS)}) == []
    assert [script._shown(verdict(AS), ours).partition(":")[0] for ours in (False, True)] == [AS, "Told apart"]
