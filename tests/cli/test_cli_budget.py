"""Budgets as a user asks for them: tables, plots, labels, corpora; and every number with all that belongs to it."""

from __future__ import annotations

import json
import math
import shutil
import sys
import xml.dom.minidom
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run
from taciturn.cli.ranges import values
from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.privacy.guarantees.private_selection import NegativeBinomial, Poisson, select
from taciturn.privacy.guarantees.theorems import bayesian, group, labels_needed, recall_bound

PLAN = ["--rate", "0.05", "--steps", "20"]


def said(argv: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert run(["budget", *argv]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def found(argv: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(said([*argv, "--json"], capsys))


def profile(sigma: float, q: float = 0.05, steps: int = 20) -> Any:
    return compose({PoissonGaussian(q, sigma): steps}, "substitution")


def test_one_plan_keeps_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    one = found(["--sigma", "1", "--rate", "0.01", "--steps", "1000", "--gamma", "0.1"], capsys)
    assert one.keys() == {
        "sigma", "rate", "steps", "delta", "relation", "group", "epsilon", "unit", "status", "notion", "accountant",
        "bayesian", "trade_off",
    }  # fmt: skip
    assert (one["sigma"], one["steps"], one["group"], one["unit"]) == (1.0, 1000, 1, "record")
    assert (one["notion"], one["relation"], one["status"]) == ("confidentiality", "substitution", "proved for the plan")
    assert one["epsilon"] == pytest.approx(2.84, abs=0.01)
    assert one["bayesian"].keys() >= {"gamma", "delta2", "epsilon", "if_missed", "notion", "unit", "delta", "status"}


def test_no_number_without_notion_unit_relation_delta_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    for argv in (["--sigma", "1"], ["--sigma", "1,2"], ["--sigma", "1", "-k", "1,2"]):
        text = said([*argv, *PLAN, "--gamma", "0.1"], capsys)
        for part in ("confidentiality", "unit", "substitution", "δ = 1e-05", "proved for the plan", "conditional"):
            assert part in text, (argv, part)


def test_a_table_of_two_has_the_cells_of_single_plans(capsys: pytest.CaptureFixture[str]) -> None:
    rows = found(["--sigma", "1,2", "--rate", "0.05", "--steps", "10:30:3"], capsys)
    assert rows["varied"] == ["steps", "sigma"]
    assert len(rows["rows"]) == 6
    for cell in rows["rows"]:
        assert cell["epsilon"] == profile(cell["sigma"], steps=cell["steps"]).epsilon(1e-5)
        assert cell["at"]["steps"] == cell["steps"] in (10, 20, 30)
    text = said(["--sigma", "1,2", "--rate", "0.05", "--steps", "10:30:3"], capsys)
    assert "σ = 1" in text
    assert text.splitlines()[2].startswith("10 ")


@pytest.mark.parametrize(
    ("argv", "oracle"),
    [
        (["--sigma", "1", "--delta", "1e-5,1e-3"], lambda c: profile(1).epsilon(c["delta"])),
        (["--sigma", "2", "-k", "1,3"], lambda c: group(profile(2), c["group"], 1e-5).epsilon),
        (["--sigma", "2", "-q", "0.01,0.2"], lambda c: profile(2, c["rate"]).epsilon(1e-5)),
    ],
)
def test_each_parameter_can_vary(argv: list[str], oracle: Any, capsys: pytest.CaptureFixture[str]) -> None:
    base = PLAN[2:] if "-q" in argv else PLAN
    for cell in found([*argv, *base], capsys)["rows"]:
        assert cell["epsilon"] == pytest.approx(oracle(cell), rel=1e-9)
        assert cell["notion"] == ("group-confidentiality" if cell["group"] > 1 else "confidentiality")


def test_targets_give_the_noise_and_unreachable_ones_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    rows = found(["--epsilon", "1,4", *PLAN], capsys)["rows"]
    assert [c["sigma"] for c in rows] == [noise_multiplier(e, 1e-5, 0.05, 20, "substitution") for e in (1.0, 4.0)]
    assert [c["target"] for c in rows] == [1.0, 4.0]
    assert all(c["epsilon"] <= c["target"] for c in rows)
    far = ["--epsilon", "1e-7,4", "--delta", "1e-14"]
    empty, reached = found([*far, *PLAN], capsys)["rows"]
    assert (empty["epsilon"], empty["status"]) == (None, "none")
    assert "out of reach" in empty["reason"]
    assert reached["epsilon"] <= 4
    assert "no σ reaches the target" in said([*far, *PLAN], capsys)


def test_gamma_varies_and_labels_give_delta2(capsys: pytest.CaptureFixture[str]) -> None:
    for cell in found(["--sigma", "1", *PLAN, "--gamma", "0.05,0.5"], capsys)["rows"]:
        assert cell["bayesian"]["epsilon"] == bayesian(profile(1), cell["bayesian"]["gamma"], 0, 1e-5).epsilon
    one = found(["--sigma", "1", *PLAN, "--gamma", "0.2", "--labelled", "200", "--missed", "1"], capsys)
    delta2 = recall_bound(1, 200)
    assert one["bayesian"]["delta2"] == one["labels"]["delta2"] == delta2
    assert one["bayesian"]["delta"] == 1e-5 + delta2, "as a certificate states it"
    assert one["bayesian"]["epsilon"] == bayesian(profile(1), 0.2, delta2, 1e-5 + delta2).epsilon


def test_what_labels_allow_and_how_many_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    labels = found(["--labelled", "200", "--missed", "3", "--delta", "8e-5"], capsys)["labels"]
    assert labels["delta2"] == recall_bound(3, 200)
    assert (labels["needed"], labels["needed_with_these_misses"]) == (37446, labels_needed(8e-5, 3))
    text = said(["--labelled", "200", "--delta", "8e-5"], capsys)
    assert "δ₂ ≤ 0.0149" in text
    assert "37,446 labelled secrets without a miss" in text
    assert "random sample" in text
    assert "one-sided 95 %" in text


def test_a_plot_is_a_page_or_a_picture_that_stands_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="plots come with the report extra")
    table = ["--sigma", "1:4:3", *PLAN, "-k", "1,2"]
    said([*table, "--plot", f"{tmp_path}/e.svg"], capsys)
    said([*table, "--plot", f"{tmp_path}/e.html"], capsys)
    picture, page = (tmp_path / "e.svg").read_text(), (tmp_path / "e.html").read_text()
    root = xml.dom.minidom.parseString(picture).documentElement
    assert root is not None
    assert root.tagName == "svg"
    assert "--s0:" in picture
    for text in (picture, page):
        assert "neighbours by substitution" in text
        assert "k = 2" in text
        assert "//" not in text.replace("http://www.w3.org/", ""), "nothing is fetched"
    for cell in found(table, capsys)["rows"]:
        assert f"<td>{cell['sigma']:g}</td>" in page
    before = picture
    said([*table, "--plot", f"{tmp_path}/e.svg"], capsys)
    assert (tmp_path / "e.svg").read_text() == before


def test_infinite_costs_are_not_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="plots come with the report extra")
    argv = ["--sigma", "1", *PLAN, "--gamma", "0.2,0.4", "--delta2", "1e-3", "--plot", f"{tmp_path}/g.html"]
    said(argv, capsys)
    assert "∞" not in (tmp_path / "g.html").read_text(), "δ₂ above δ is added to it, as in a certificate"


def test_a_plot_without_matplotlib_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = tuple(f"taciturn.reporting.{name}" for name in ("drawing", "plots", "svg"))
    for name in [n for n in sys.modules if n.startswith(("matplotlib", *drawn))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = said(["--sigma", "1,2", *PLAN, "--plot", f"{tmp_path}/e.svg"], capsys, 2)
    assert "taciturn[report]" in text


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--sigma", "1,2", "-q", "0.1,0.2", "-T", "1,2"], "one or two options"),
        (["--sigma", "1", "--steps", "5"], "--rate"),
        (["--sigma", "1", "--epsilon", "1", *PLAN], "either --sigma"),
        (["--sigma", "1", "--rate", "0.1", "--steps", "2.5"], "--steps: expected a whole number"),
        (["--sigma", "1:2", *PLAN], "FROM:TO:COUNT"),
        (["--sigma", "0:2:3:log", *PLAN], "above 0"),
        (["--sigma", "1:2:500", *PLAN], "count between"),
        (["--sigma", "1", *PLAN, "--plot", "x.svg"], "several values"),
        (["--sigma", "1,2", *PLAN, "--plot", "x.png"], ".svg or .html"),
        (["--sigma", "1", *PLAN, "--missed", "3"], "--labelled"),
        (["--labelled", "3", "--missed", "4"], "between 0 and 3"),
        (["--labelled", "-3"], "found -3"),
        (["--labelled", "30", "--delta", "1e-5,1e-4"], "one --delta"),
        (["--sigma", "1", *PLAN, "--gamma", "0.1", "--relation", "add-remove"], "substitution"),
        (["--corpus", "nowhere", "--sigma", "1", *PLAN], "only --delta"),
        (["--sigma", "1", *PLAN, "--selection", "geometric"], "LAW:MEAN"),
        (["--sigma", "1", *PLAN, "--selection", "geometrc:3"], "geometric"),
        (["--sigma", "1", *PLAN, "--selection", "poisson:3", "--gamma", "0.1"], "without --gamma"),
        (["--labelled", "30", "--selection", "poisson:3"], "--selection is of a plan"),
        ([], "--sigma"),
    ],
)
def test_mistakes_say_what_to_do(argv: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(argv, capsys, 2)
    assert says in text
    assert "Traceback" not in text


def test_ranges_include_both_ends_and_no_value_twice() -> None:
    assert values("--steps", "1:4:7", int) == [1, 2, 3, 4]
    assert values("--sigma", "2", float) == [2.0]
    assert values("--sigma", "4,0.5:2:3:log,4", float) == [4.0, 0.5, 1.0, 2.0]
    assert values("--sigma", "0.1:0.3:3", float) == [0.1, 0.2, 0.3]
    with pytest.raises(UsageError, match="--sigma"):
        values("--sigma", "", float)


def test_a_corpus_says_what_all_its_runs_spend(story: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The story trained once on its corpus."""
    screened = f"{story.folder}/screened"
    certificate = json.loads((story.folder / "run/certificate.json").read_text())
    spent = found(["--corpus", screened, "--delta", "1e-3"], capsys)
    (only,) = spent["runs"]
    assert (only["mechanism"], only["state"], only["steps_with_noise"]) == ("crt", "finished", 8)
    assert Path(only["path"]) == (story.folder / "run").resolve()
    together = {each["notion"]: each for each in spent["together"]}
    assert together["confidentiality"]["epsilon"] == pytest.approx(certificate["spent"]["epsilon"])
    assert together["dp"]["epsilon"] == "inf"
    assert math.isfinite(together["confidentiality"]["epsilon"])
    text = said(["--corpus", screened, "--delta", "1e-3"], capsys)
    assert "together: confidentiality of a secret in one record, neighbours by substitution" in text
    assert "skeletons" in text
    assert not [s for s in story.secrets if s in text]
    (tmp_path / "manifest.json").write_text("{}")
    assert "nothing is spent" in said(["--corpus", str(tmp_path)], capsys)
    assert "no such folder" in said(["--corpus", f"{tmp_path}/none"], capsys, 3)
    (tmp_path / "runs.jsonl").write_text("{}\n")
    assert "line 1" in said(["--corpus", str(tmp_path)], capsys, 3)


LAW = NegativeBinomial(10.0)


def test_the_best_of_several_runs_has_a_price_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    one = found(["--sigma", "1", *PLAN, "--selection", "geometric:10"], capsys)
    chosen = one["selection"]
    assert chosen["epsilon"] == select(profile(1), LAW, 1e-5).epsilon > chosen["single"] >= one["epsilon"]
    assert (chosen["law"], chosen["mean"], chosen["shape"]) == ("negative-binomial", 10.0, 1.0)
    assert chosen.keys() >= {"notion", "unit", "relation", "delta", "status", "theorem", "accountant"}
    assert chosen["status"].startswith("conditional: the number of runs was drawn")
    text = said(["--sigma", "1", *PLAN, "--selection", "geometric:10"], capsys)
    for part in (
        "confidentiality",
        "substitution",
        "δ = 1e-05",
        "conditional",
        "Theorem 2",
        "only the run of the best score",
    ):
        assert part in text.split("best of a random number of runs", 1)[1]


def test_numbers_of_runs_make_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["--sigma", "1", *PLAN, "--selection", "poisson:1,10,100", "--relation", "add-remove"]
    alone = compose({PoissonGaussian(0.05, 1.0): 20}, "add-remove")
    rows = found(argv, capsys)["rows"]
    assert [c["selection"]["epsilon"] for c in rows] == [
        select(alone, Poisson(m), 1e-5).epsilon for m in (1.0, 10.0, 100.0)
    ]
    text = said(argv, capsys)
    assert "mean number of runs" in text
    assert "number of runs poisson, conditional" in text
    group_of_three = found(["--sigma", "1", *PLAN, "-k", "3", "--selection", "geometric:10"], capsys)
    assert group_of_three["selection"]["epsilon"] == select(profile(1).for_group(3), LAW, 1e-5).epsilon


def test_a_target_is_about_the_run_that_is_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    one = found(["--epsilon", "3", *PLAN, "--selection", "geometric:10"], capsys)
    assert one["epsilon"] < 2.99 < one["selection"]["epsilon"] <= 3.0
    assert one["sigma"] > noise_multiplier(3.0, 1e-5, 0.05, 20, "substitution")


def test_a_plan_shows_the_price_of_choosing_and_draws_only_when_it_is_written(
    story: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    corpus = tmp_path / "screened"
    shutil.copytree(story.folder / "screened", corpus)
    (corpus / "runs.jsonl").unlink()
    argv = [
        "plan",
        "crt",
        str(corpus),
        "--tokenizer",
        "bytes",
        "--epsilon",
        "3",
        "--delta",
        "1e-3",
        "--selection",
        "geometric:3",
    ]
    assert run(argv) == 2  # its batch of 256 is larger than the corpus
    assert "--allow full-batch" in capsys.readouterr().err
    argv += ["--allow", "full-batch"]
    assert run(argv) == 0
    assert "best of a random number of such runs (geometric:3): confidentiality" in capsys.readouterr().out
    assert not (corpus / "runs.jsonl").exists()
    numbers = []
    for name in ("a", "b"):
        assert run([*argv, "-s", f"options.private.clip={len(name)}", "-o", f"{tmp_path}/{name}.toml", "--json"]) == 0
        captured = capsys.readouterr()
        plan = json.loads(captured.out)["selection"]
        numbers.append(plan["drawn"])
        assert f"drawn: {plan['drawn']} runs are to be made" in captured.err
        assert plan["guarantees"][0]["status"] == "conditional"
    assert numbers[0] == numbers[1] >= 1
    text = said(["--corpus", str(corpus)], capsys)
    assert f"{numbers[0]} runs were drawn from a geometric law of mean 3, 0 were made" in text
    argv[argv.index("geometric:3")] = "poisson:3"
    assert run([*argv, "-o", f"{tmp_path}/c.toml"]) == 2
    assert "geometric law" in capsys.readouterr().err
    assert run(["certify", str(story.folder / "run"), "--selected"]) == 2
    assert "no number of runs was drawn" in capsys.readouterr().err


def test_a_labelled_corpus_says_what_its_labels_allow(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A name in each of ten documents, which both policies are asked for."""
    counts = json.loads((story.folder / "screened/manifest.json").read_text())["counts"]
    labels = found(["--corpus", f"{story.folder}/screened", "--delta", "8e-5"], capsys)["labels"]
    assert (labels["labelled"], labels["missed"]) == (counts["gold_spans"], counts["gold_missed_by_both"])
    assert labels["labelled"] == 10
    assert labels["delta2"] == recall_bound(labels["missed"], 10)
    text = said(["--corpus", f"{story.folder}/screened", "--delta", "8e-5"], capsys)
    assert f"{labels['needed']:,} labelled secrets without a miss" in text
