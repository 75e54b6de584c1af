"""Stopping: nothing that ends a run may change what it comes to, and no checkpoint may be lost to the writing of one."""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny import ADAM, model, plan, private, public, python, run, weights
from torch import nn

from processes import ended
from taciturn.errors import DataError, Interrupted, MismatchError
from taciturn.training.engine import Options
from taciturn.training.plan import Plan
from taciturn.training.schedules import Optimiser
from taciturn.training.state import checkpoint
from taciturn.training.state.checkpoint import Position, State
from taciturn.training.state.metrics import Progress


def same_run(a: Path, b: Path) -> bool:
    """Whether two run folders hold the same ledger and the same steps in their metrics, but for time."""

    def rows(folder: Path) -> list[dict[str, Any]]:
        found = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return [{k: v for k, v in row.items() if k != "seconds"} for row in found]

    return (a / "ledger.jsonl").read_bytes() == (b / "ledger.jsonl").read_bytes() and rows(a) == rows(b)


def stop_at(step: int, number: int = signal.SIGINT) -> Any:
    return lambda p: p.step.number + 1 == step and os.kill(os.getpid(), number)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.Tensor]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, weights(run(plan(average=0.9), folder))


@pytest.mark.parametrize("stop", [1, 4, 5, 7, 11, 13, 22])
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path: Path, whole: tuple[Path, torch.Tensor], stop: int) -> None:
    p = plan(average=0.9)
    number = signal.SIGTERM if stop % 2 else signal.SIGINT
    with pytest.raises(Interrupted, match=f"after step {stop} "):
        run(p, tmp_path, notify=stop_at(stop, number))
    assert [c.name for c in checkpoint.complete(tmp_path / "checkpoints")][-1] == f"step-{stop:09d}.pt"
    torch.manual_seed(999)  # whatever the new process's random state is
    assert torch.equal(weights(run(p, tmp_path, resume=True)), whole[1])
    assert same_run(tmp_path, whole[0])
    assert torch.equal(weights(run(p, tmp_path, resume=True)), whole[1])  # nothing left to do, nothing changes


@pytest.mark.parametrize(
    "p",
    [
        plan(public(5, Optimiser("sgd", 0.1, momentum=0.9, nesterov=True)), private(clipping="adaptive")),
        plan(
            public(5, Optimiser("adam", 0.01, schedule="cosine", warmup=0.2)), private(clipping="automatic"), repeat=1
        ),
    ],
    ids=["nesterov and adaptive clipping", "adam, cosine and automatic clipping"],
)
def test_optimisers_schedules_and_clip_norms_come_back(tmp_path: Path, p: Plan) -> None:
    straight = weights(run(p, tmp_path / "a"))
    for stop in (3, 8):
        out = tmp_path / str(stop)
        with pytest.raises(Interrupted):
            run(p, out, notify=stop_at(stop))
        assert torch.equal(weights(run(p, out, resume=True)), straight)
        assert same_run(out, tmp_path / "a")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_told_to_stop_saves_and_exits_130(tmp_path: Path, number: int) -> None:
    child = python(
        f"""
        import time
        from taciturn.errors import TaciturnError
        def told(p):  # goes on after the first step only when it was
            print(p.step.number, flush=True)
            while not Path({str(tmp_path / "told")!r}).exists():
                time.sleep(0.01)
        try:
            t.run(t.plan(), Path({str(tmp_path)!r}), options=t.Options(checkpoint_steps=1000), notify=told)
        except TaciturnError as error:
            sys.exit(error.exit_code)
        """,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(number)
    (tmp_path / "told").touch()
    ended(child)
    assert child.returncode == 130
    assert len(checkpoint.complete(tmp_path / "checkpoints")) == 1


def test_a_second_signal_stops_at_once(tmp_path: Path) -> None:
    def twice(_: Progress) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(KeyboardInterrupt):
        run(plan(), tmp_path, notify=twice)
    assert signal.getsignal(signal.SIGTERM) is before


def test_kill_minus_nine_at_any_step_resumes_to_the_same_bits(tmp_path: Path, whole: tuple[Path, torch.Tensor]) -> None:
    """Killed twice at random steps, the second time after a resume."""
    p, rng = plan(average=0.9), random.Random(0)
    for attempt in range(2):
        out = tmp_path / str(attempt)
        out.mkdir()
        first = rng.randint(1, 12)  # also before the first checkpoint, at 4
        stops = (first, rng.randint(first + 1, p.total_steps - 1))
        for i, stop in enumerate(stops):
            child = python(
                f"""
                kill = lambda p: p.step.number + 1 == {stop} and os.kill(os.getpid(), signal.SIGKILL)
                t.run(t.plan(average=0.9), Path({str(out)!r}), notify=kill, resume={bool(i)})
                """
            )
            ended(child)
            assert child.returncode == -signal.SIGKILL, stops
        with (out / "ledger.jsonl").open("ab") as ledger:
            ledger.write(b'{"torn')
        assert torch.equal(weights(run(p, out, resume=True)), whole[1]), stops
        assert same_run(out, whole[0])


def test_a_kill_during_the_write_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    """Killed by the kernel as the second file comes to half of the first one's size, wherever its writer is then."""
    child = python(
        f"""
        import resource
        folder = Path({str(tmp_path / "checkpoints")!r})
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        def limit(p):
            if p.step.number == 1:
                half = (folder / "step-000000001.pt").stat().st_size // 2
                resource.setrlimit(resource.RLIMIT_FSIZE, (half, half))
        options = t.Options(checkpoint_steps=1)
        t.run(t.plan(t.public(4, t.ADAM), repeat=1), Path({str(tmp_path)!r}), t.model(1, 100), options=options,
              notify=limit)
        """
    )
    folder = tmp_path / "checkpoints"
    ended(child)
    assert child.returncode == -signal.SIGXFSZ
    assert [c.name for c in checkpoint.complete(folder)] == ["step-000000001.pt"]
    assert [c.name for c in folder.glob("*.partial")] == ["step-000000002.partial"]
    p, options = plan(public(4, ADAM), repeat=1), Options(checkpoint_steps=10)
    resumed = run(p, tmp_path, model(1, 100), options=options, resume=True)
    straight = run(p, tmp_path / "straight", model(1, 100), options=options)
    assert torch.equal(weights(resumed), weights(straight))
    assert same_run(tmp_path, tmp_path / "straight")
    assert not list(folder.glob("*.partial"))


LIMITED = """
    import resource
    from taciturn.errors import DataError
    out = Path({out!r})
    def limit(p):
        if p.step.number + 1 == 4:
            resource.setrlimit(resource.RLIMIT_FSIZE, ({bytes}, {bytes}))
    try:
        t.run(t.plan(), out, options=t.Options(checkpoint_steps=3), notify=limit)
    except DataError as error:
        print(error)
        sys.exit(error.exit_code)
"""


@pytest.mark.parametrize(
    ("size", "says"), [(20_000, "checkpoint step-000000006.pt"), (1, "could not be written")], ids=["checkpoint", "log"]
)
def test_a_full_disk_is_a_clear_error_and_leaves_the_last_good_checkpoint(tmp_path: Path, size: int, says: str) -> None:
    """A limit on file size makes the kernel refuse writes as a full disk does, inside torch's own writer too."""
    child = python(LIMITED.format(out=str(tmp_path / "run"), bytes=size), stdout=subprocess.PIPE)
    said = ended(child)[0][0].decode()
    assert child.returncode == 3, said
    assert says in said
    assert "step-000000003.pt is intact" in said
    assert "--resume" in said
    folder = tmp_path / "run" / "checkpoints"
    assert [c.name for c in folder.iterdir()] == ["step-000000003.pt"]
    resumed = run(plan(), tmp_path / "run", resume=True)
    assert torch.equal(weights(resumed), weights(run(plan(), tmp_path / "straight")))


@pytest.mark.parametrize("harm", ["truncated", "a bit flipped", "empty"])
def test_a_damaged_checkpoint_is_put_aside_and_the_one_before_resumes(
    tmp_path: Path, whole: tuple[Path, torch.Tensor], harm: str, caplog: pytest.LogCaptureFixture
) -> None:
    p = plan(average=0.9)
    with pytest.raises(Interrupted):
        run(p, tmp_path, notify=stop_at(10))
    newest = checkpoint.complete(tmp_path / "checkpoints")[-1]
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 16
    newest.write_bytes({"truncated": content[: len(content) // 2], "a bit flipped": content, "empty": b""}[harm])
    with caplog.at_level(logging.WARNING, "taciturn"):
        assert torch.equal(weights(run(p, tmp_path, resume=True)), whole[1])
    assert f"{newest.name} is damaged" in caplog.text
    assert newest.with_suffix(".damaged").exists()
    assert same_run(tmp_path, whole[0])


def test_a_run_without_an_intact_checkpoint_says_so(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        run(plan(), tmp_path, notify=stop_at(2))
    for path in checkpoint.complete(tmp_path / "checkpoints"):
        path.write_bytes(b"")
    for _ in range(2):
        with pytest.raises(DataError, match="every checkpoint"):
            run(plan(), tmp_path, resume=True)


def test_resume_refuses_another_plan_and_a_fresh_start_refuses_a_used_folder(tmp_path: Path) -> None:
    run(plan(), tmp_path)
    with pytest.raises(DataError, match="already holds a run"):
        run(plan(), tmp_path)
    others = (replace(plan(), corpus_key="other"), plan(public(), private(sigma=0.9)), plan(noise=6), plan(average=0.5))
    for other in others:
        with pytest.raises(MismatchError, match=r"another|changed"):
            run(other, tmp_path, resume=True)
    with pytest.raises(DataError, match="nothing to resume"):
        run(plan(), tmp_path / "nowhere", resume=True)


@pytest.mark.parametrize("keep", [1, 2, 4])
def test_k_checkpoints_are_kept_for_the_owner_only(tmp_path: Path, keep: int) -> None:
    run(plan(), tmp_path, options=Options(checkpoint_steps=4, keep=keep))
    assert (tmp_path / "checkpoints").stat().st_mode & 0o777 == 0o700
    steps = [int(c.stem.removeprefix("step-")) for c in checkpoint.complete(tmp_path / "checkpoints")]
    assert steps == [4, 8, 12, 16, 20, 22][-keep:]


def test_checkpoints_come_by_the_clock_too(tmp_path: Path) -> None:
    run(plan(), tmp_path, options=Options(checkpoint_steps=10**6, checkpoint_minutes=1e-9, keep=100))
    assert len(checkpoint.complete(tmp_path / "checkpoints")) == plan().total_steps


def test_a_finished_phase_leaves_no_optimiser_state_behind(tmp_path: Path) -> None:
    p = plan(public(4, ADAM), private(steps=4), repeat=1)
    run(p, tmp_path, options=Options(checkpoint_steps=3, keep=10))
    last, middle = (
        torch.load(tmp_path / "checkpoints" / f"step-00000000{n}.pt", weights_only=True)["optimisers"] for n in (6, 3)
    )
    assert middle["public"]["state"]
    assert not middle["private"]["state"]
    assert not last["public"]["state"]
    assert last["private"]["state"]


def frozen_base() -> Any:
    m = model(1, 64).requires_grad_(False)
    for p in m.decoder.parameters():
        p.requires_grad_(True)
    return m


def test_a_frozen_base_is_not_saved_but_must_be_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    p = plan(public(4), private(steps=4), repeat=1)
    straight = run(p, tmp_path / "straight", frozen_base())
    with pytest.raises(Interrupted), caplog.at_level(logging.INFO, "taciturn"):
        run(p, tmp_path / "part", frozen_base(), notify=stop_at(3))
    assert "5 frozen tensors are not in the checkpoints" in caplog.text
    saved = torch.load(checkpoint.complete(tmp_path / "part/checkpoints")[-1], weights_only=True)
    assert set(saved["model"]) == {"decoder.weight", "decoder.bias"}
    other = frozen_base()
    with torch.no_grad():
        other.embedding.weight[3, 3] += 1e-4
    with pytest.raises(MismatchError, match=r"differs in embedding\.weight; load the base model"):
        run(p, tmp_path / "part", other, resume=True)
    with pytest.raises(MismatchError, match="differs in"):
        run(p, tmp_path / "part", model(1, 64), resume=True)
    resumed = run(p, tmp_path / "part", frozen_base(), resume=True)
    assert torch.equal(weights(resumed), weights(straight))


def test_tied_weights_and_buffers_come_back(tmp_path: Path) -> None:
    def make(seed: int) -> nn.Module:
        torch.manual_seed(seed)
        m = nn.Sequential(nn.Embedding(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 5, bias=False))
        m[2].weight = m[0].weight
        return m

    p = plan(public(1, ADAM), repeat=1)
    m = make(0)
    m[1].running_mean.fill_(7.0)
    checkpoint.save(tmp_path, p.key, Position(1, 1, 0), State.begin(p, m), keep=2)
    state = State.begin(p, make(1))
    assert checkpoint.load(tmp_path, p.key, state) == Position(1, 1, 0)
    assert torch.equal(state.model[2].weight, m[0].weight)  # type: ignore[index]
    assert torch.equal(state.model[1].running_mean, m[1].running_mean)  # type: ignore[index]


def test_an_outside_thread_runs_without_handlers(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        pool.submit(run, plan(public(2), repeat=1), tmp_path).result()
    assert len((tmp_path / "ledger.jsonl").read_text().splitlines()) == 2
