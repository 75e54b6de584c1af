"""What a run says about itself while it goes on: progress for a display, and rows of metrics.jsonl, for services too.

A private step leaves its number and ε in files, nothing else: its loss, the size of its batch and how long it took would
tell something about the records it drew. A display on the operator's own terminal may show time.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

from taciturn.models.held_out import Utility
from taciturn.training.plan import Plan, Step
from taciturn.training.state import reporters
from taciturn.training.state.checkpoint import Position


@dataclass(frozen=True, slots=True)
class Progress:
    """What a display may show after a step: numbers only.

    loss, tokens: of the batch; None in private phases, and unknown there. seconds: since this process began to train.
    left: seconds to go, from the mean step of each phase so far. speed: tokens a second in a public phase; in a private
    one the *expected* records a second, q·N over the mean step, as the drawn number is secret.
    """

    step: Step
    total: int
    loss: float | None
    tokens: int | None
    seconds: float
    utility: Utility | None = None
    epsilon: float | None = None
    left: float | None = None
    speed: float | None = None

    @property
    def shows_weights(self) -> bool:
        """Whether a number in it depends on the weights."""
        return self.loss is not None or self.utility is not None

    @property
    def bare(self) -> Progress:
        """The same without such numbers."""
        return replace(self, loss=None, utility=None)


class Clock:
    """Seconds, steps and public tokens by phase, from which speed and time left are worked out."""

    def __init__(self, plan: Plan, first: int) -> None:
        self._start = self._last = time.monotonic()
        self._seconds: Counter[str] = Counter()
        self._steps: Counter[str] = Counter()
        self._tokens: Counter[str] = Counter()
        self._left = Counter(step.phase.name for step in plan.unroll(first))

    def tick(self, step: Step, tokens: int | None) -> None:
        """A step of ``step``'s phase is done."""
        now, name = time.monotonic(), step.phase.name
        self._seconds[name] += now - self._last  # type: ignore[assignment]
        self._steps[name] += 1
        self._tokens[name] += tokens or 0
        self._left[name] -= 1
        self._last = now

    @property
    def seconds(self) -> float:
        return self._last - self._start

    @property
    def left(self) -> float:
        """A phase that has not begun is taken to be as fast as the steps so far."""
        overall = self._seconds.total() / max(1, self._steps.total())
        means = {name: self._seconds[name] / n for name, n in self._steps.items() if n}
        return sum(n * means.get(name, overall) for name, n in self._left.items())

    def speed(self, step: Step) -> float:
        """See :class:`Progress`."""
        phase = step.phase
        done: float = self._tokens[phase.name]
        if phase.private:
            done = phase.expected * self._steps[phase.name]
        return done / max(self._seconds[phase.name], 1e-9)


class Metrics:
    """metrics.jsonl, cut to what belongs to the checkpoint a run goes on from; ``report_to`` gets the same rows.

    held: rows, as bytes, that wait for a checkpoint to cover their steps.
    """

    def __init__(self, out: Path, at: Position, plan: Plan, report_to: Sequence[str] = ()) -> None:
        self._private = {phase.name for phase in plan.phases if phase.private}
        self._reporters = [reporters.REPORTERS[name](out, plan.key, at.steps) for name in report_to]
        self._file = (out / "metrics.jsonl").open("a+b")
        self._file.truncate(at.metrics)
        self._file.seek(0, os.SEEK_END)
        self._public_seconds, self._before = 0.0, 0.0
        self.held = at.held
        self.show()

    def write(self, p: Progress, hold: bool = False) -> None:
        """Add the rows of one step, or ``hold`` them until :meth:`show`. ``seconds`` counts public steps only: the sum would
        give private durations away."""
        private = p.step.phase.private
        if not private:
            self._public_seconds += p.seconds - self._before
        self._before = p.seconds
        self.held += b"".join(json.dumps(row).encode() + b"\n" for row in rows(p, self._public_seconds))
        if not hold:
            self.show()

    def show(self) -> None:
        """Write what was held."""
        self._file.write(self.held)
        if self._reporters:
            for row in map(json.loads, self.held.splitlines()):
                for reporter in self._reporters:
                    reporter.add(row, row["phase"] in self._private, self._public_seconds)
        self.held = b""

    def sync(self) -> int:
        """Hand all to the operating system; bytes written so far."""
        self._file.flush()
        for reporter in self._reporters:
            reporter.flush()
        return self._file.tell()

    def __enter__(self) -> Metrics:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        for reporter in self._reporters:
            reporter.close()


def rows(p: Progress, public_seconds: float) -> list[dict[str, Any]]:
    """The rows of metrics.jsonl for one step: "step" always, "eval" when the held-out records were scored."""
    private = p.step.phase.private
    at = {"step": p.step.number + 1, "phase": p.step.phase.name, "epsilon": p.epsilon}
    seconds = None if private else round(public_seconds, 3)
    step = {"kind": "step", **at, "loss": p.loss, "tokens": p.tokens, "seconds": seconds}
    if p.utility is None:
        return [step]
    measured = {"perplexity": p.utility.perplexity, "perplexity_public_tokens": p.utility.perplexity_outside}
    if p.utility.accuracy is not None:
        measured["accuracy"] = p.utility.accuracy
    return [step, {"kind": "eval", **at, "epoch": p.step.round + 1, "split": "valid", **measured}]
