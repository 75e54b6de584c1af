"""Several processes: the same weights and the same ledger as one, noise once, and an end when one of them is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
import torch
from many import CASES, SHARDED, finish, group, together
from scipy.stats import chi2
from tiny import DATA

from chance import normal, within
from processes import kill
from taciturn.training.randomness.gaussian import grid_of
from taciturn.training.state import checkpoint

SIZES = (2, 3)  # 3: batches smaller than the number of processes, and tensors with rows that it does not divide
REPEATABLE = [n for n, case in (CASES | SHARDED).items() if case.plan.seeds.noise is not None and n != "dropout"]


@cache
def _group(folder: Path, size: int) -> Path:
    out = folder / str(size)
    shutil.rmtree(out, ignore_errors=True)  # of a group that did not come to an end: the next test tries again
    out.mkdir()
    together(f"many.run_all(Path({str(out)!r}))", size)
    return out


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Path]:
    """The folder of every case as run by a group of so many processes, which is started once."""
    return partial(_group, tmp_path_factory.mktemp("several"))


def left_by(folder: Path, size: int) -> list[torch.Tensor]:
    return [torch.load(folder / f"weights-{rank}.pt") for rank in range(size)]


@pytest.mark.parametrize("name", REPEATABLE)
def test_several_processes_come_to_the_weights_and_the_files_of_one(
    several: Callable[[int], Path], tmp_path: Path, name: str
) -> None:
    alone = (CASES | SHARDED)[name].run(tmp_path)
    files = {path.relative_to(tmp_path) for path in tmp_path.rglob("*")}
    for size in SIZES:
        out = several(size) / name
        for weights in left_by(out, size):
            torch.testing.assert_close(weights, alone, rtol=0, atol=1e-6)
        for file in ("ledger.jsonl", "values.json"):
            if (tmp_path / file).exists():
                assert (out / file).read_bytes() == (tmp_path / file).read_bytes()
        assert {p.relative_to(out) for p in out.rglob("*")} - files == {Path(f"weights-{r}.pt") for r in range(size)}
        assert [numbers(row) for row in rows(out)] == [pytest.approx(numbers(row), rel=1e-5) for row in rows(tmp_path)]


def rows(folder: Path) -> list[dict[str, Any]]:
    """The metrics, but for time."""
    found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in found]


def numbers(row: dict[str, Any]) -> dict[str, float]:
    return {key: value for key, value in row.items() if isinstance(value, float | int)}


@pytest.mark.parametrize("size", SIZES)
def test_processes_agree_to_the_bit_without_a_seed(several: Callable[[int], Path], size: int) -> None:
    for name in ("operating-system noise", "dropout"):
        first, *others = left_by(several(size) / name, size)
        assert all(torch.equal(first, other) for other in others)


@pytest.mark.chance(2e-7)
@pytest.mark.parametrize("kind", ["copies", "sharded"])
@pytest.mark.parametrize("size", SIZES)
def test_noise_is_added_once(several: Callable[[int], Path], kind: str, size: int) -> None:
    """Records without targets have no gradient: what is released is N(0, (σC/qN)²), drawn by several owners.

    False alarms: the sum of squares of each of seven tensors against chi-square, 1e-8 each (two noises would have twice the
    sum); all against the normal law by Kolmogorov and Smirnov, 1e-7; at most four correlations of 67,000 pairs beyond six
    deviations, 2e-9 each.
    """
    released = [torch.load(several(size) / f"noise-{kind}-{rank}.pt") for rank in range(size)]
    std = 2.0 * 0.5 / (0.2 * len(DATA))
    for name, values in released[0].items():
        assert all(torch.equal(values, other[name]) for other in released), name
        within(float((values.double() / std).square().sum()), chi2(values.numel()), 1e-8)
    draws = torch.cat([values.flatten() for values in released[0].values()])
    normal(draws.numpy(), std, 1e-7, grid_of(std))
    parts = {len(draws) * part // size for part in range(1, size)}  # where the next owner's places begin, about
    for lag in {1, 96, *parts}:
        assert (
            abs(float(torch.corrcoef(torch.stack([draws[lag:], draws[:-lag]]))[0, 1])) < 6 / (len(draws) - lag) ** 0.5
        )


@pytest.mark.parametrize("lost", [0, 1])
def test_a_lost_process_ends_the_others_and_any_number_resumes(tmp_path: Path, lost: int) -> None:
    name = "two phases"
    case, out = CASES[name], tmp_path / "run"
    out.mkdir()
    call = f"many.run_case(Path({str(out)!r}), {name!r}, %s)"
    found = finish(group(f"many.die_at({lost}, 7)\n" + call % "False", 2))
    assert found[lost][0] == -9
    code, said = found[1 - lost]
    assert code == 1
    assert "was lost after step 6 of 22" in said
    assert "--resume" in said
    assert [path.name for path in (out / "checkpoints").iterdir()] == ["step-000000004.pt"]
    straight = case.run(tmp_path / "straight")
    if lost:
        weights = [case.run(out, resume=True)]
    else:
        together(call % "True", 3)
        weights = left_by(out, 3)
    for mine in weights:
        torch.testing.assert_close(mine, straight, rtol=0, atol=1e-6)
    assert (out / "ledger.jsonl").read_bytes() == (tmp_path / "straight" / "ledger.jsonl").read_bytes()


def test_a_process_that_hangs_ends_the_others_after_the_timeout(tmp_path: Path) -> None:
    """Of the seven minutes they would wait, all but a second are let off once it hangs (``hang_at``)."""
    out = tmp_path / "run"
    out.mkdir()
    call = f"many.run_case(Path({str(out)!r}), 'two phases', False, minutes=7)"
    first, stopped = group(f"many.hang_at(1, 7, Path({str(tmp_path)!r}), minutes=7)\n" + call, 2)
    try:
        [(code, said)] = finish([first])
    finally:
        kill(stopped)
        finish([stopped])
    assert code == 1, said
    assert "was lost after step 6 of 22" in said


@pytest.mark.parametrize(("told", "name"), [(0, "llama"), (1, "dropout")])
def test_a_signal_to_any_process_stops_all_and_they_resume_to_the_same_bits(
    several: Callable[[int], Path], tmp_path: Path, told: int, name: str
) -> None:
    """Where as many processes go on; dropout included."""
    out = tmp_path / "run"
    out.mkdir()
    call = f"many.run_case(Path({str(out)!r}), {name!r}, %s)"
    for code, said in finish(group(f"many.die_at({told}, 6, signal.SIGINT)\n" + call % "False", 2)):
        assert code == 130, said
        assert "stopped after step 6 of " in said
    assert checkpoint.complete(out / "checkpoints")[-1].name == "step-000000006.pt"
    stopped = shutil.copytree(out, tmp_path / "stopped")
    together(call % "True", 2)
    assert torch.equal(left_by(out, 2)[0], left_by(several(2) / name, 2)[0])
    if name in SHARDED:  # a checkpoint says nothing about shards: one process goes on, or three
        straight = SHARDED[name].run(tmp_path / "straight")
        third = shutil.copytree(stopped, tmp_path / "third")
        torch.testing.assert_close(SHARDED[name].run(stopped, resume=True), straight, rtol=0, atol=1e-6)
        together(f"many.run_case(Path({str(third)!r}), {name!r}, True)", 3)
        torch.testing.assert_close(left_by(third, 3)[1], straight, rtol=0, atol=1e-6)
