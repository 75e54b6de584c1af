"""A step that is done again is the same release, or another one that is paid. No noise here is published."""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from many import CASES, finish, group, together
from tiny import VALID, model, plan, private, public, python, run, weights

from taciturn.errors import DataError, Interrupted, MismatchError
from taciturn.privacy.ledger import Ledger
from taciturn.privacy.lines import Entry, Mark, entries
from taciturn.training import checkpoint, engine, releases, repeat
from taciturn.training.engine import Options
from taciturn.training.metrics import Progress
from taciturn.training.noise import SecretSource
from taciturn.training.plan import Plan
from taciturn.training.releases import finish as end
from taciturn.training.repeat import KEY, derived, repeatable

P = plan(average=0.9, noise=None)
NOISY = private().event
KEPT = "checkpoints"


def killed(out: Path, step: int, resume: bool, how: str = "t.plan(average=0.9, noise=None)") -> None:
    """Run in a process of its own, which SIGKILL ends right after ``step`` was shown."""
    child = python(
        f"""
        kill = lambda p: p.step.number + 1 == {step} and os.kill(os.getpid(), signal.SIGKILL)
        t.run({how}, Path({str(out)!r}), notify=kill, resume={resume})
        """
    )
    assert child.wait(120) == -signal.SIGKILL


def stopped(out: Path, step: int, p: Plan = P, **how: Any) -> None:
    with pytest.raises(Interrupted):
        run(p, out, notify=lambda q: q.step.number + 1 == step and os.kill(os.getpid(), signal.SIGINT), **how)


def crash(out: Path, step: int, p: Plan = P, **how: Any) -> list[Progress]:
    """Run until ``step`` was shown and break off there, without a checkpoint; what was shown."""
    shown: list[Progress] = []

    def notify(q: Progress) -> None:
        shown.append(q)
        if q.step.number + 1 == step:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(p, out, notify=notify, **how)
    return shown


def rows(out: Path) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in found]


def lines(out: Path) -> bytes:
    return (out / "ledger.jsonl").read_bytes()


def lost(out: Path) -> int:
    return sum(Ledger.read(out / "ledger.jsonl").lost("private").values())


def elsewhere(monkeypatch: pytest.MonkeyPatch, **changed: str) -> None:
    """From now on this is another machine, or for no facts one on which sums do not repeat."""
    real = repeat.environment

    def other(*facts: Any) -> Mapping[str, str] | None:
        return {**(real(*facts) or {}), **changed} if changed else None

    monkeypatch.setattr(engine, "environment", other)


def test_three_kills_come_to_the_bits_and_the_ledger_of_a_run_that_was_not_stopped(tmp_path: Path) -> None:
    """Both go on from one state with one key; one is killed three times, before and after checkpoints (at 4, 8, …)."""
    killed(tmp_path / "straight", 1, resume=False)
    shutil.copytree(tmp_path / "straight", tmp_path / "part")
    for step in (3, 11, 18):
        killed(tmp_path / "part", step, resume=True)
    torch.manual_seed(999)
    straight, part = (weights(run(P, tmp_path / name, resume=True)) for name in ("straight", "part"))
    assert torch.equal(straight, part)
    assert lines(tmp_path / "straight") == lines(tmp_path / "part")
    assert rows(tmp_path / "straight") == rows(tmp_path / "part")
    assert Ledger.read(tmp_path / "part/ledger.jsonl").counts() == P.events()
    other = weights(run(P, tmp_path / "other"))
    assert not torch.equal(straight, other), "another run has another key"


@pytest.mark.parametrize("p", [
    plan(private(clipping="adaptive"), noise=None),
    plan(public(3), private(rate=0.01), noise=None),
], ids=["adaptive", "empty draws"])  # fmt: skip
def test_a_run_that_broke_off_anywhere_goes_on_to_the_same_bits(tmp_path: Path, p: Plan) -> None:
    crash(tmp_path / "whole", 1, p)
    for step in (2, 6, 9):
        shutil.copytree(tmp_path / "whole", tmp_path / str(step))
        crash(tmp_path / str(step), step, p, resume=True)
    whole = weights(run(p, tmp_path / "whole", resume=True))
    for step in (2, 6, 9):
        assert torch.equal(weights(run(p, tmp_path / str(step), resume=True)), whole)
        assert lines(tmp_path / str(step)) == lines(tmp_path / "whole")


def test_a_run_put_back_to_an_older_checkpoint_comes_to_the_same_model(tmp_path: Path) -> None:
    run(P, tmp_path, options=Options(checkpoint_steps=4, keep=100))
    straight, before = weights(run(P, tmp_path, resume=True)), lines(tmp_path)
    for back in (8, 4, 0):
        for saved in checkpoint.complete(tmp_path / KEPT):
            if int(saved.stem.removeprefix("step-")) > back:
                saved.unlink()
        assert torch.equal(weights(run(P, tmp_path, resume=True)), straight)
        assert lines(tmp_path) == before


def test_the_key_is_the_owners_alone_and_goes_when_the_run_ends(tmp_path: Path) -> None:
    stopped(tmp_path, 5)
    key = (tmp_path / KEPT / KEY).read_bytes()
    assert len(key) == 32
    assert (tmp_path / KEPT / KEY).stat().st_mode & 0o777 == 0o600
    assert (tmp_path / KEPT).stat().st_mode & 0o777 == 0o700
    run(P, tmp_path, resume=True)
    for path in tmp_path.rglob("*"):
        assert path.name == KEY or not path.is_file() or not _holds(path.read_bytes(), key), path
    inode = os.open(tmp_path / KEPT / KEY, os.O_RDONLY)
    end(tmp_path)
    assert os.pread(inode, 64, 0) == bytes(32), "overwritten before it was removed"
    os.close(inode)
    assert not (tmp_path / KEPT / KEY).exists()
    with pytest.raises(DataError, match="an ended run does not go on"):
        run(P, tmp_path, resume=True)


def _holds(content: bytes, key: bytes) -> bool:
    return key in content or key.hex().encode() in content.lower()


def test_a_published_seed_leaves_no_key_and_resumes_as_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    p = plan(average=0.9)
    crash(tmp_path, 7, p)
    assert not (tmp_path / KEPT / KEY).exists()
    elsewhere(monkeypatch)
    run(p, tmp_path, resume=True)
    assert Ledger.read(tmp_path / "ledger.jsonl").lost() == {}


@pytest.mark.parametrize("change", ["threads", "budget", "key", "no key", "no environment", "GPU"])
def test_where_bits_do_not_repeat_the_lost_steps_stay_and_are_paid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Steps 5 to 10 of two phases (5 plain, 6 noised) are lost: the last checkpoint is at 8, so noised steps 9 and 10."""
    crash(tmp_path, 10)
    before, options = lines(tmp_path), Options(checkpoint_steps=4)
    match change:
        case "threads":
            elsewhere(monkeypatch, **{"the number of threads": "7"})
        case "budget":
            options = replace(options, token_budget=100)
        case "key":
            (tmp_path / KEPT / KEY).write_bytes(os.urandom(32))
        case "no key":
            (tmp_path / KEPT / KEY).unlink()
        case "no environment":
            (tmp_path / KEPT / "environment.json").unlink()
        case "GPU":
            elsewhere(monkeypatch)
    with caplog.at_level(logging.WARNING, "taciturn"):
        run(P, tmp_path, options=options, resume=True)
    assert "2 steps after the checkpoint are lost and paid for" in caplog.text
    assert lines(tmp_path).startswith(before), "nothing of what was done is taken back"
    ledger = Ledger.read(tmp_path / "ledger.jsonl")
    assert ledger.done() == P.events()
    assert ledger.lost() == {NOISY: 2}
    assert ledger.counts() == {**P.events(), NOISY: P.events()[NOISY] + 2}
    assert [line.start for line in entries(tmp_path / "ledger.jsonl") if isinstance(line, Mark)] == [8]


def test_a_sum_that_changed_is_noticed_before_it_is_shown_and_the_step_has_other_noise_and_coins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The weights in the checkpoint are a little larger: the environment is the same, and the sums are not."""
    crash(tmp_path, 11)
    first = [line for line in entries(tmp_path / "ledger.jsonl") if isinstance(line, Entry)]
    saved = checkpoint.complete(tmp_path / KEPT)[-1]
    content = torch.load(saved, weights_only=True)
    for tensor in content["model"].values():
        tensor *= 1 + 2**-12
    torch.save(content, saved)
    used: list[tuple[int, Any]] = []
    draw = engine.draw

    def follow(step: Any, seed: int, secret: SecretSource) -> Any:
        used.append((step.number, secret.seed))
        return draw(step, seed, secret)

    monkeypatch.setattr(engine, "draw", follow)
    shown: list[int] = []
    run(P, tmp_path, resume=True, notify=lambda p: shown.append(p.step.number))
    assert shown == list(range(8, P.total_steps)), "the step was done twice and shown once"
    assert [n for n, _ in used][:3] == [8, 8, 9]
    assert used[0][1] != used[1][1] == used[2][1]
    assert lost(tmp_path) == 3
    again = {
        line.step: line.release for line in list(entries(tmp_path / "ledger.jsonl"))[12:] if isinstance(line, Entry)
    }
    assert all(again[line.step] != line.release for line in first[8:])


def test_no_step_has_two_releases_under_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops, moves to other machines, lost and put back checkpoints, in an order drawn at random: of every (key, step) there
    is one noised gradient at most that a process went on with."""
    rng = np.random.default_rng(4)
    seen: dict[tuple[bytes, int], set[str]] = {}
    note = releases.Releases.note

    def follow(self: Any, step: Any, state: Any) -> bool:
        secret, digest = self.secret.seed, repeat.release_digest(state.model, state.clips.get(step.phase.name))
        taken = note(self, step, state)
        if taken and step.phase.private:
            seen.setdefault((secret, step.number), set()).add(digest)
        return taken

    monkeypatch.setattr(releases.Releases, "note", follow)
    options = Options(checkpoint_steps=3, keep=3)
    kept: list[tuple[str, bytes]] = []
    for attempt in range(24):
        elsewhere(monkeypatch, machine=str(rng.integers(2)))
        saved = checkpoint.complete(tmp_path / KEPT)
        kept += [(path.name, path.read_bytes()) for path in saved]
        if attempt and rng.random() < 0.5:
            for path in saved[rng.integers(len(saved) + 1) :]:
                path.unlink()
        if kept and rng.random() < 0.4:
            name, content = kept[rng.integers(len(kept))]
            (tmp_path / KEPT / name).write_bytes(content)
        at = int(rng.integers(1, P.total_steps))
        with suppress(ZeroDivisionError):
            stop = lambda p, at=at: p.step.number + 1 >= at and 1 / 0  # noqa: E731
            run(P, tmp_path, options=options, resume=bool(attempt), notify=stop)
        monkeypatch.undo()
        monkeypatch.setattr(releases.Releases, "note", follow)
    assert len(seen) > 30
    assert all(len(released) == 1 for released in seen.values())
    ledger = Ledger.read(tmp_path / "ledger.jsonl")
    assert ledger.counts()[NOISY] == len(seen), "each of them is paid"
    assert ledger.lost()[NOISY] > 0


def test_numbers_of_noised_weights_wait_for_a_checkpoint_where_bits_do_not_repeat(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere(monkeypatch)
    p = plan(public(2), private(steps=3), repeat=3, noise=None)
    valid = Options(checkpoint_steps=6, valid=VALID, evaluations=2)
    shown = crash(tmp_path, 11, p, options=valid)
    assert [q.step.number + 1 for q in shown if q.loss is not None] == [1, 2, 6, 7]
    saved = [int(path.stem.removeprefix("step-")) for path in checkpoint.complete(tmp_path / KEPT)]
    assert saved == [6, 8], "8: perplexity was taken, and shown with the checkpoint"
    assert [q.step.number + 1 for q in shown if q.utility is not None] == [8]
    first = rows(tmp_path)
    assert max(row["step"] for row in first) == 8, "nothing of the steps that no checkpoint holds is in a file"
    run(p, tmp_path, options=valid, resume=True)
    assert rows(tmp_path)[: len(first)] == first
    assert [row["step"] for row in rows(tmp_path) if row["kind"] == "step"] == list(range(1, 16))
    assert lost(tmp_path) == 2


def test_held_rows_of_a_checkpoint_are_written_by_the_process_that_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended between the checkpoint and the rows that waited for it."""
    elsewhere(monkeypatch)
    monkeypatch.setattr(engine.Metrics, "show", lambda self: 1 / 0 if self.held else None)
    p = plan(private(steps=6), repeat=1, noise=None)
    with pytest.raises(ZeroDivisionError):
        run(p, tmp_path, options=Options(checkpoint_steps=4))
    monkeypatch.undo()
    assert (tmp_path / "metrics.jsonl").read_bytes() == b""
    run(p, tmp_path, resume=True)
    assert [row["step"] for row in rows(tmp_path) if row["kind"] == "step"] == list(range(1, 7))


def test_a_noised_step_is_on_the_disk_before_a_number_of_its_weights_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = [0]
    fsync = os.fsync

    def follow(descriptor: int) -> None:
        fsync(descriptor)
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("ledger.jsonl"):
            synced[0] = os.fstat(descriptor).st_size

    monkeypatch.setattr(os, "fsync", follow)

    def notify(p: Progress) -> None:
        noised = [line for line in lines(tmp_path).splitlines(keepends=True) if b"poisson" in line]
        assert p.step.number + 1 == lines(tmp_path).count(b"\n")
        if p.shows_weights and noised:
            last = lines(tmp_path).rfind(noised[-1]) + len(noised[-1])
            assert synced[0] >= last, p.step.number

    run(plan(public(2), private(steps=3), repeat=3, noise=None), tmp_path, notify=notify)


def test_a_ledger_that_is_missing_shorter_or_another_refuses_at_once(tmp_path: Path) -> None:
    stopped(tmp_path, 10)
    whole = lines(tmp_path).splitlines(keepends=True)
    (tmp_path / "ledger.jsonl").write_bytes(b"".join(whole[:9]))
    with pytest.raises(DataError, match="has 9 lines, and the checkpoint was saved after 10"):
        run(P, tmp_path, resume=True)
    (tmp_path / "ledger.jsonl").unlink()
    with pytest.raises(DataError, match="is missing"):
        run(P, tmp_path, resume=True)
    stopped(tmp_path / "other", 10)
    (tmp_path / "ledger.jsonl").write_bytes(lines(tmp_path / "other"))
    with pytest.raises(MismatchError, match="line 10 is not the one"):
        run(P, tmp_path, resume=True)
    crash(tmp_path / "early", 2)  # no checkpoint yet
    (tmp_path / "early/ledger.jsonl").unlink()
    with pytest.raises(DataError, match="is missing"):
        run(P, tmp_path / "early", resume=True)


def test_passes_are_cut_as_they_were_when_a_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory ran out before the checkpoint, so the budget there is half of what was asked for."""
    clipped, budgets = engine.noised, list[int]()

    def follow(state: Any, *rest: Any) -> None:
        budgets.append(rest[3].token_budget)
        if rest[4].number == 1 and not stop:
            rest[3].token_budget //= 2
        clipped(state, *rest)

    monkeypatch.setattr(engine, "noised", follow)
    p, stop = plan(private(steps=6), repeat=1, noise=None), False
    crash(tmp_path, 5, p)
    stop = True
    run(p, tmp_path, resume=True)
    assert budgets == [8192, 8192, 4096, 4096, 4096, 4096, 4096]
    assert lost(tmp_path) == 0


def test_several_processes_pay_for_what_a_lost_one_takes_with_it(tmp_path: Path) -> None:
    """Process 1 is killed in step 8; a checkpoint came with the perplexity after step 6, so step 7 is lost."""
    name = "operating-system noise"
    out = tmp_path / "run"
    out.mkdir()
    call = f"many.run_case(Path({str(out)!r}), {name!r}, %s)"
    ended = finish(group("many.die_at(1, 8)\n" + call % "False", 2))
    assert ended[1][0] == -9
    assert [path.name for path in checkpoint.complete(out / KEPT)][-1] == "step-000000006.pt"
    assert len(lines(out).splitlines()) == 7
    assert max(row["step"] for row in rows(out)) == 6
    together(call % "True", 2)
    a, b = (torch.load(out / f"weights-{rank}.pt") for rank in (0, 1))
    assert torch.equal(a, b)
    p = CASES[name].plan
    ledger = Ledger.read(out / "ledger.jsonl")
    assert ledger.done() == p.events()
    assert ledger.lost() == {NOISY: 1}


def test_keys_of_plans_and_branches_are_independent() -> None:
    key = os.urandom(32)
    made = {derived(k, plan_key, branch) for k in (key, os.urandom(32)) for plan_key in "ab" for branch in "xy"}
    assert len(made) == 8
    sources = [SecretSource(each) for each in made]
    noise = []
    for source in sources:
        tensor = torch.zeros(4096)
        source.add_gaussian(3, [tensor], 1.0)
        noise.append(tensor.numpy())
    correlations = np.corrcoef(noise)[np.triu_indices(len(noise), 1)]
    assert np.abs(correlations).max() * 4096**0.5 < 6.5  # 28 pairs beyond 6.5 deviations: 2e-9
    assert repr(SecretSource(key)) == "SecretSource(rank=0, draws=1)"
    again = [SecretSource(key).coins(2, 500, 0.3) for _ in range(2)]
    assert np.array_equal(*again)


def test_what_sums_depend_on_is_named() -> None:
    facts = {"the plan": "a", "threads": "2"}
    assert repeatable(facts, dict(facts)) is None
    assert repeatable(facts, {**facts, "threads": "1"}) == "another value than before: threads"
    assert "on a GPU" in str(repeatable(None, facts))
    assert "on a GPU" in str(repeatable(facts, None))
    assert repeat.environment(dict, 1, torch.device("cuda"), engine.ALONE) is None
    assert repeat.environment(dict, 1, torch.device("cpu"), replace(engine.ALONE, size=2)) is None
    assert repeat.environment(dict, 1, torch.device("cpu"), engine.ALONE) == repeat.environment(
        dict, 1, torch.device("cpu"), engine.ALONE
    )


def test_a_base_model_or_records_that_changed_are_another_environment(tmp_path: Path) -> None:
    """Broken off before a checkpoint: the run begins again, from other weights, and must not show f and f′ under one z."""
    crash(tmp_path, 3, plan(private(), noise=None))
    run(plan(private(), noise=None), tmp_path, model(seed=9), resume=True)
    assert lost(tmp_path) == 3
