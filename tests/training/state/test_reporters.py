"""Services that get the numbers of a run, offline: what metrics.jsonl has, no private time, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny import TEXTS, VALID, plan, private, public, run

from taciturn.errors import UsageError
from taciturn.training.engine import Options
from taciturn.training.state import reporters

EXPECTED = {"public/loss", "public/tokens", "privacy/epsilon", "valid/perplexity", "valid/perplexity_public_tokens"}
TESTS = Path(__file__).parents[2]
HOW: dict[str, Any] = {"spent": lambda done, _: done / 10}


def shown(folder: Path) -> dict[str, dict[int, float]]:
    """By tag and step, what metrics.jsonl has."""
    found: dict[str, dict[int, float]] = {}
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        for tag, value in reporters.numbers(row):
            found.setdefault(tag, {})[row["step"]] = value
    return found


@pytest.fixture
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return tmp_path / "run"


def records(file: Path) -> Iterator[Any]:
    """What `wandb sync` would send: LevelDB's log format after seven bytes, blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    data, at, whole = file.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        whole += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last of several
            record = Record()
            record.ParseFromString(whole)
            whole = b""
            yield record


def test_wandb_has_the_numbers_of_the_metrics_no_private_time_and_nothing_of_the_machine(offline: Path) -> None:
    pytest.importorskip("wandb")
    code = (  # in a process of its own: the library's service outlives a run, and other tests of this process had it too
        f"import sys; sys.path[:0] = {[str(TESTS / 'training'), str(TESTS)]!r}\n"
        "from pathlib import Path\n"
        "from tiny import VALID, plan, private, public, run\n"
        "from taciturn.training.engine import Options\n"
        "options = Options(valid=VALID, report_to=('wandb',))\n"
        f"run(plan(public(3), private(steps=4), repeat=2), Path({str(offline)!r}), options=options, "
        "spent=lambda done, _: done / 10)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (file,) = (offline / "wandb").glob("offline-run-*/*.wandb")
    rows = [
        {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records(file)
        if record.WhichOneof("record_type") == "history"
    ]
    found: dict[str, dict[int, float]] = {}
    for row in rows:
        for tag in row.keys() - {"step", "_step", "_timestamp", "_runtime"}:
            found.setdefault(tag, {})[row["step"]] = row[tag]
    assert found == shown(offline)
    assert set(found) == EXPECTED
    times = {row["step"]: row["_timestamp"] for row in rows}
    assert times[3] == times[4] == times[7] < times[8] < times[10] == times[14], "the clock stands in noised steps"
    assert not {record.WhichOneof("record_type") for record in records(file)} & {
        "environment",
        "output",
        "output_raw",
        "stats",
    }
    sent = file.read_bytes()
    assert str(Path.cwd()).encode() not in sent
    assert not [text for text in TEXTS if text.encode() in sent]


def test_mlflow_has_the_numbers_of_the_metrics_in_one_run_also_after_a_stop(offline: Path) -> None:
    pytest.importorskip("mlflow")
    from mlflow import MlflowClient

    p = plan(public(3), private(steps=4), repeat=2)
    options = Options(valid=VALID, report_to=("mlflow",), checkpoint_steps=2)

    def stop(progress: Any) -> None:
        if progress.step.number == 9:
            raise RuntimeError("the machine goes down")

    with pytest.raises(RuntimeError, match="goes down"):
        run(p, offline, options=options, **HOW, notify=stop)
    run(p, offline, options=options, **HOW, resume=True)
    client = MlflowClient()
    experiment = client.get_experiment_by_name("taciturn")
    assert experiment is not None
    (made,) = client.search_runs([experiment.experiment_id])
    metrics = {tag: client.get_metric_history(made.info.run_id, tag) for tag in made.data.metrics}
    assert {tag: {each.step: each.value for each in metrics[tag]} for tag in metrics} == {
        tag: {step: pytest.approx(value) for step, value in values.items()} for tag, values in shown(offline).items()
    }
    assert set(metrics) == EXPECTED
    times = {each.step: each.timestamp for each in metrics["privacy/epsilon"]}
    assert len({times[step] for step in (11, 12, 13, 14)}) == 1


def test_from_the_first_noised_step_on_a_service_is_told_at_the_end() -> None:
    """When a row arrives tells how long the steps before it took."""

    class Told(reporters._Service):
        def __init__(self) -> None:
            super().__init__()
            self.steps: list[int] = []

        def send(self, step: int, *_: Any) -> None:
            self.steps.append(step)

    told, alone = Told(), {"kind": "step", "phase": "x", "epsilon": None}
    for step, noised in enumerate((False, False, True, False, True)):
        told.add({**alone, "step": step}, noised, 1.0)
    assert told.steps == [0, 1]
    told.close()
    assert told.steps == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", reporters.REPORTERS)
def test_a_missing_library_is_named_with_its_pip_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, reporters.MODULES[name], None)
    with pytest.raises(UsageError, match=rf"pip install 'taciturn\[{name}\]'"):
        run(plan(), tmp_path, options=Options(report_to=(name,)))
