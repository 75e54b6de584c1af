"""A step that is done again is the same release. No noise here is published."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken_off import KEPT, NOISY, P, crash, elsewhere, killed, lines, lost, rows, stopped
from tiny import model, plan, private, public, run, weights

from taciturn.errors import DataError, MismatchError
from taciturn.persample.isolated import float32_products
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.training import engine
from taciturn.training.engine import Options
from taciturn.training.plan import Plan
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state import checkpoint, noise_key, releases
from taciturn.training.state.metrics import Progress
from taciturn.training.state.noise_key import KEY, derived, repeatable
from taciturn.training.state.releases import finish as end


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


def test_no_step_has_two_releases_under_one_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stops, moves to other machines, lost and put back checkpoints, in an order drawn at random: of every (key, step) there
    is one noised gradient at most that a process went on with."""
    rng = np.random.default_rng(4)
    seen: dict[tuple[bytes, int], set[str]] = {}
    note = releases.Releases.note

    def follow(self: Any, step: Any, state: Any) -> bool:
        secret, digest = self.secret.seed, noise_key.release_digest(state.model, state.clips.get(step.phase.name))
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
    real, budgets = engine.take, list[int]()

    def follow(step: Any, state: Any, tokens: Any, drawn: Any, context: Any) -> Any:
        if step.phase.private:
            budgets.append(context.clipped.token_budget)
            if step.number == 1 and not stop:
                context.clipped.token_budget //= 2
        return real(step, state, tokens, drawn, context)

    monkeypatch.setattr(engine, "take", follow)
    p, stop = plan(private(steps=6), repeat=1, noise=None), False
    crash(tmp_path, 5, p)
    stop = True
    run(p, tmp_path, resume=True)
    assert budgets == [8192, 8192, 4096, 4096, 4096, 4096, 4096]
    assert lost(tmp_path) == 0


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
    assert noise_key.environment(dict, 1, torch.device("cuda"), engine.ALONE) is None
    assert noise_key.environment(dict, 1, torch.device("cpu"), replace(engine.ALONE, size=2)) is None
    here = noise_key.environment(dict, 1, torch.device("cpu"), engine.ALONE)
    assert here == noise_key.environment(dict, 1, torch.device("cpu"), engine.ALONE)
    with float32_products():  # asked for in words: the same arithmetic as by default
        assert here == noise_key.environment(dict, 1, torch.device("cpu"), engine.ALONE)


def test_a_base_model_or_records_that_changed_are_another_environment(tmp_path: Path) -> None:
    """Broken off before a checkpoint: the run begins again, from other weights, and must not show f and f′ under one z."""
    crash(tmp_path, 3, plan(private(), noise=None))
    run(plan(private(), noise=None), tmp_path, model(seed=9), resume=True)
    assert lost(tmp_path) == 3
