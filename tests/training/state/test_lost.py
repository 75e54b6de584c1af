"""Where a step done again would be another release, it is lost, paid, and nothing of it was shown."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from broken_off import KEPT, NOISY, P, crash, elsewhere, lines, lost, rows
from many import CASES, finish, group, together
from tiny import VALID, plan, private, public, run

from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.certificates.ledger_lines import Entry, Mark, entries
from taciturn.training import engine
from taciturn.training.engine import Options
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state import checkpoint
from taciturn.training.state.noise_key import KEY


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
