"""Reading run folders: what is there, what is not, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import DataError
from taciturn.reporting import RunView, data
from taciturn.reporting.content import _thin, as_data


def test_a_whole_run(four: list[RunView]) -> None:
    run = four[3]
    assert run.name == "crt-skeletons"
    assert sum(run.events.values()) == 500
    assert len(run.rows("step")) == 500
    assert len(run.rows("eval")) == 5
    assert run.guarantees[0].notion == "confidentiality"
    exposure = run.finding("exposure")
    assert exposure is not None
    assert exposure.unit_of_score == "bits"
    assert run.finding("extraction") is None


def test_what_is_not_there_is_none(make_run: Callable[..., Path]) -> None:
    run = RunView.load(make_run("bare", without=("audit.json", "certificate.json", "evidence.json", "metrics.jsonl")))
    assert run.certificate is None
    assert run.findings is None
    assert run.guarantees == run.metrics == ()
    assert run.evidence == {}


@pytest.mark.parametrize("missing", [True, False])
def test_a_folder_that_is_not_a_run(tmp_path: Path, missing: bool) -> None:
    with pytest.raises(DataError, match="run folder"):
        RunView.load(tmp_path / "nowhere" if missing else tmp_path)


@pytest.mark.parametrize("name", ["plan.json", "certificate.json", "audit.json"])
def test_a_damaged_file_is_named_and_not_quoted(make_run: Callable[..., Path], name: str) -> None:
    folder = make_run("damaged")
    (folder / name).write_text('{"findings": [{"attack": "341752', "utf-8")
    with pytest.raises(DataError, match=name) as caught:
        RunView.load(folder)
    assert "341752" not in str(caught.value)


def test_metrics_of_a_killed_run(make_run: Callable[..., Path]) -> None:
    folder = make_run("killed")
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"kind": "eval", "ste')
    assert len(RunView.load(folder).rows("eval")) == 5
    with (folder / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"kind": "eval"}\n')
    with pytest.raises(DataError, match=r"metrics\.jsonl, line 506"):
        RunView.load(folder)


def test_data_counts_add_up_and_relations_stay_apart(told: dict[int, dict[str, Any]]) -> None:
    content = told[4]
    rows = {row["what"]: row["n"] for row in content["corpora"][0]["rows"]}
    assert rows["Records read"] == rows["Public"] + rows["Private"] + rows["Quarantined"]
    assert content["corpora"][0]["runs"] == ["unprotected", "redacted", "crt-published", "crt-skeletons"]
    assert content["unbounded"] == ["unprotected", "redacted"]
    assert list(content["epsilon_delta"]) == ["substitution"]


def test_data_is_plain_json(told: dict[int, dict[str, Any]]) -> None:
    content = as_data(told[4])
    assert json.loads(json.dumps(content, allow_nan=False)) == content
    assert content["claims"][0]["epsilon"] == "inf"


def test_curves_agree_with_the_certificate(four: list[RunView], told: dict[int, dict[str, Any]]) -> None:
    content = told[4]
    single = four[3].guarantees[0]
    curve = content["epsilon_delta"]["substitution"][1]
    either_side = [
        e for d, e in zip(curve["delta"], curve["epsilon"], strict=True) if single.delta / 11 < d < single.delta * 11
    ]
    assert min(either_side) < single.epsilon < max(either_side)
    drawn = next(g for g in four[3].guarantees if g.notion == "bayesian-confidentiality")
    gamma, epsilon = content["epsilon_gamma"][1]["measured"]
    assert (gamma, epsilon) == pytest.approx((drawn.detail["gamma"], drawn.epsilon))
    assert content["epsilon_gamma"][1]["delta"] == pytest.approx(drawn.delta)


def test_claims_shared_by_models_stand_once(four: list[RunView]) -> None:
    twin = replace(four[2], name="twin")
    claims = data([*four, twin])["claims"]
    single = [c for c in claims if c["notion"] == "confidentiality" and c["status"] == "conditional"]
    assert [[r["run"] for r in claim["runs"]] for claim in single] == [["crt-published", "twin"], ["crt-skeletons"]]
    assert [claim["open"] for claim in single] == [1, 2]


def test_runs_of_one_name_are_told_apart(make_run: Callable[..., Path]) -> None:
    run = RunView.load(make_run("mail", like="unprotected"))
    assert [row["name"] for row in data([run, run])["runs"]] == ["mail (1)", "mail (2)"]


def test_thinning_keeps_the_ends() -> None:
    points = [(float(i), float(i * i)) for i in range(1000)]
    kept = _thin(points, 50)
    assert len(kept) == 50
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    assert _thin(points[:20], 50) == points[:20]
