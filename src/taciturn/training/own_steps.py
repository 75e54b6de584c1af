"""Noised steps of a loop that is not ours: a module, a loss for each record and an optimiser of somebody else's, and a plan
that draws, clips, adds noise and writes the ledger. The engine for text (engine.py) is not involved."""

from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from taciturn.errors import UsageError
from taciturn.persample.isolated import isolated
from taciturn.persample.premise import verify
from taciturn.persample.sums import Sums
from taciturn.persample.twice import clipped_sum_of
from taciturn.training.distributed.processes import ALONE
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Plan, Step
from taciturn.training.randomness.sampling import draw
from taciturn.training.state.checkpoint import Position, State
from taciturn.training.state.releases import Releases
from taciturn.training.step import require_finite
from taciturn.training.units.row_groups import Ints
from taciturn.training.updates.clip_noise import noised

FEWEST = 3
"""Examples that show whether records are mixed: two taken together, in either order, and one beside them."""


@dataclass(frozen=True, slots=True)
class OwnLoss:
    """What a loop brings: ``loss(model, batch)`` are the losses of a batch's records, [records], and ``collate`` makes a
    batch of a list of records. Tensors of a batch are moved to the model's device."""

    model: nn.Module
    loss: Callable[[nn.Module, Any], Tensor]
    collate: Callable[[list[Any]], Any]

    def of(self, records: Sequence[Any], rows: Sequence[int]) -> Tensor:
        """The losses of some of ``records``, [rows]. Raises UsageError where the loss gives anything else."""
        device = next(self.model.parameters()).device
        batch = self.collate([records[int(row)] for row in rows])
        losses = self.loss(self.model, tree_map_only(Tensor, lambda t: t.to(device, non_blocking=True), batch))
        if not isinstance(losses, Tensor) or losses.shape != (len(rows),):
            found = f"a tensor of shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else type(losses).__name__
            raise UsageError(
                f"the loss of a batch of {len(rows)} records must be one number for each, a tensor of shape "
                f"({len(rows)},); found {found}: take reduction='none', and the mean within each record"
            )
        return losses

    def check(self, examples: Sequence[Any]) -> float:
        """Compare per-record gradients of made-up records with one record at a time (premise.py); the largest relative
        difference. Raises UsageError when no clip norm would hold, or there are too few to tell."""
        if len(examples) < FEWEST:
            raise UsageError(
                f"examples: expected at least {FEWEST} made-up records of the kind that is trained on, found "
                f"{len(examples)}. Before any private record is read they show whether a record's gradient depends on others"
            )
        return verify(self.model, lambda rows: self.of(examples, rows), len(examples))

    def clipped(self, records: Sequence[Any], rows: Ints, at_once: int, rule: ClipNoise, C: float) -> tuple[Sums, int]:
        """(Σ of the clipped gradients of ``rows``, how many had a norm of at most C), in passes of ``at_once`` records."""
        self.model.zero_grad(set_to_none=True)
        sums, below = Sums(), 0
        with isolated(self.model), _no_other_streams():
            for first in range(0, len(rows), at_once):
                part = rows[first : first + at_once].tolist()
                losses = partial(self.of, records, part)
                norms = clipped_sum_of(self.model, len(part), len(part), losses, C, sums, rule.factors)
                below += int((norms <= C).sum())
        return sums, below


def _numpy_state() -> tuple[bytes, int]:
    _, keys, position, *_ = np.random.get_state(legacy=True)
    return np.asarray(keys).tobytes(), int(position)


@contextmanager
def _no_other_streams() -> Iterator[None]:
    """Raises UsageError where fetching, collating or the loss drew from the streams of Python or numpy, which records share:
    a record more would give the others other numbers. Torch's own are seen to by :func:`isolated`."""
    before = random.getstate(), _numpy_state()
    yield
    if before != (random.getstate(), _numpy_state()):
        raise UsageError(
            "records or their loss drew random numbers of Python's or numpy's global streams, which all records of a step "
            "share, so no clip norm would hold: leave augmentation out, or make it a function of the record"
        )


def own_steps(
    plan: Plan, own: OwnLoss, records: Sequence[Any], out: Path, at: Position, resume: bool, at_once: int, state: State
) -> Generator[tuple[Step, Releases]]:
    """Each step of ``plan`` from ``at`` on, once ``.grad`` of the model is what it releases and its line is on the disk.

    Sums are taken not to repeat bit for bit, since nothing is known of the loss: steps that the ledger has beyond ``at``
    are lost, paid for, and done anew with other noise and other coins (releases.py). Raises NotFiniteError.
    """
    with Releases(out, plan, at, resume, None, ALONE) as releases:
        for step in releases.steps(plan.unroll(at.steps), state):
            phase, rule = step.phase, step.phase.rule
            assert isinstance(rule, ClipNoise)
            require_finite(own.model)
            rows, clip = draw(step, plan.seeds.data, releases.secret), state.clips[phase.name]
            sums, below = own.clipped(records, rows, at_once, rule, clip)
            state.clips[phase.name] = noised(own.model, sums, below - len(rows) / 2, rule, step, releases.secret, clip)
            try:
                releases.note(step, state)
                releases.settle()
            except BaseException:
                own.model.zero_grad(
                    set_to_none=True
                )  # what stands in no ledger must not be seen: it may be drawn again
                raise
            yield step, releases


def state_of(plan: Plan, model: nn.Module, clip: float | None = None) -> State:
    """What such steps carry from one to the next: the clip norm, where it adapts."""
    return State(model, {}, {phase.name: clip or phase.clip for phase in plan.phases})
