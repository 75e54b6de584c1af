"""Runs of unpublished noise that are killed, stopped or broken off, and what they left."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tiny import plan, private, python, run

from processes import ended
from taciturn.errors import Interrupted
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.training import engine
from taciturn.training.plan import Plan
from taciturn.training.state import noise_key
from taciturn.training.state.metrics import Progress

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
    ended(child)
    assert child.returncode == -signal.SIGKILL


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
    real = noise_key.environment

    def other(*facts: Any) -> Mapping[str, str] | None:
        return {**(real(*facts) or {}), **changed} if changed else None

    monkeypatch.setattr(engine, "environment", other)
