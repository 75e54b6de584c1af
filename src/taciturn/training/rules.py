"""What one step does to the gradients: plain mean, or clipped sum with noise over a constant divisor."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taciturn.errors import TaciturnError
from taciturn.models.loss import Batch, collate, microbatches, record_losses
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import captured
from taciturn.persample.clip import NotFiniteError, clipped_sum
from taciturn.persample.sums import Sums
from taciturn.training.noise import SecretSource
from taciturn.training.plan import ClipNoise, Poisson, Step
from taciturn.training.reduce import total_gradient
from taciturn.training.sharded import ShardedSums, release_sums
from taciturn.training.world import ALONE, World

Result = TypeVar("Result")
HALF_SCALE = 2.0**12
SMALLEST = 16


@dataclass(slots=True)
class Work:
    """How passes are run; updates do not depend on it but for rounding.

    token_budget: most padded tokens in one pass; halved when memory runs out. autocast: the type of matrix products, None
    for the weights' own. scale: what losses are multiplied by in fp16, whose range is narrow; lowered on overflow.
    again: whether a pass may be tried again; not with a sharded model, where all processes take part in it.
    """

    token_budget: int = 8192
    autocast: torch.dtype | None = None
    scale: float = 1.0
    again: bool = True

    def __post_init__(self) -> None:
        if self.autocast == torch.float16:
            self.scale = HALF_SCALE

    def losses(self, model: nn.Module, batch: Batch) -> Tensor:
        """:func:`record_losses` under the chosen precision."""
        with torch.autocast(batch.input_ids.device.type, self.autocast, enabled=self.autocast is not None):
            return record_losses(model, batch)

    def attempt(self, run: Callable[[], Result]) -> Result:
        """``run()``, again with half the budget after running out of memory, or a smaller scale after an overflow.

        ``run`` starts from nothing each time, and with the same random state, so the update is the one it would have been.
        It exchanges nothing with other processes, which may have no need to try again. Raises TaciturnError when memory
        runs out in a pass that cannot be tried again.
        """
        rng = torch.get_rng_state()
        while True:
            try:
                return run()
            except (torch.OutOfMemoryError, RuntimeError) as error:
                if not _out_of_memory(error) or self.token_budget <= SMALLEST:
                    raise
                if not self.again:
                    raise TaciturnError(
                        f"out of memory in a pass of {self.token_budget} tokens through a sharded model: continue with "
                        f"--resume --set train.token_budget={self.token_budget // 2}"
                    ) from error
                self.token_budget //= 2
            except NotFiniteError:
                if self.scale <= 1.0 or not self.again:
                    raise
                self.scale = max(1.0, self.scale / 16)
            torch.set_rng_state(rng)


def plain_gradient(
    model: nn.Module, tokens: Tokens, rows: NDArray[np.int64], mask: int, work: Work, world: World = ALONE
) -> float | None:
    """Set ``.grad`` to the gradient of the batch's mean loss per target; return that loss (None: no target).

    ``rows``: of the whole batch, the same in every process of ``world``.
    """
    mine = world.share(rows, tokens.sizes(rows))
    count = float(world.total(np.array([_targets(tokens, mine, mask, work)]))[0])
    if count == 0:
        model.zero_grad(set_to_none=True)
        return None

    def run() -> float:
        model.zero_grad(set_to_none=True)
        total = torch.zeros((), device=_device(model))
        for part in world.passes(microbatches(mine, tokens.sizes(mine), work.token_budget)):
            loss = work.losses(model, _batch(tokens, part, mask, model)).sum() / count
            # FSDP divides the sum over processes by their number
            (loss * (work.scale * (1 if world.mesh is None else world.size))).backward()
            total += loss.detach()
        grads = [p.grad for p in model.parameters() if p.grad is not None]
        if work.scale != 1.0:
            torch._foreach_mul_(grads, 1 / work.scale)
            if not all(bool(g.isfinite().all()) for g in grads):
                raise NotFiniteError("a gradient overflowed in fp16 even without scaling; use bf16 or float32")
        return float(total)

    return total_gradient(model, work.attempt(run), world)


def private_gradient(
    model: nn.Module,
    tokens: Tokens,
    rows: NDArray[np.int64],
    mask: int,
    work: Work,
    step: Step,
    secret: SecretSource,
    clip: float,
    world: World = ALONE,
) -> float:
    """Set ``.grad`` to (Σ clipped per-record gradients + noise) / (q·N), for any number of rows, none included, and
    return the clip norm of the phase's next step (``clip`` unless it adapts).

    ``rows``: all that the step draws, the same in every process of ``world``; each clips its share, and q·N is of the
    whole.

    A record's loss is the mean over its targets. Nothing about the drawn records is returned or kept but what the
    mechanism has noised: a loss or a norm would be a private value released outside it.
    """
    rule, sampler = step.phase.rule, step.phase.sampler
    assert isinstance(rule, ClipNoise)
    assert isinstance(sampler, Poisson)
    expected = sampler.rate * step.phase.records
    mine = world.share(rows, tokens.sizes(rows))
    sums, below = work.attempt(lambda: clipped(model, tokens, mine, mask, work, rule.factors, clip, world))
    std = rule.sum_noise * clip / expected
    # Andrew et al. 2021, Algorithm 1: the share of records within the clip norm moves it towards the quantile. The count
    # is released with the sum, in units in which its noise has the same deviation.
    unit = std / rule.count_noise or 1.0
    count = torch.tensor([(below - len(mine) / 2) * unit * expected], device=_device(model))
    extra = [count] if rule.adapts else []

    def noise(tensors: Sequence[Tensor], starts: Sequence[int]) -> None:
        secret.add_gaussian(step.number, tensors, std, 1 / expected, starts)

    release_sums(model, sums, extra, noise, world)
    if not rule.adapts:
        return clip
    share = float(count) / unit / expected + 0.5
    return clip * exp(-rule.quantile_rate * (share - rule.quantile))


def clipped(
    model: nn.Module,
    tokens: Tokens,
    rows: NDArray[np.int64],
    mask: int,
    work: Work,
    rule: str,
    C: float,
    world: World = ALONE,
) -> tuple[Sums, int]:
    """(Σ clipped per-record gradients, how many records were within C); no sum at all for no rows.

    Neither the order of ``rows`` nor the cut into passes changes the sums but for rounding. ``rows`` are this process's;
    with a sharded model all processes call this, and its sums are theirs together.
    """
    model.zero_grad(set_to_none=True)
    sums = Sums() if world.mesh is None else ShardedSums(model, world)
    below = 0
    for part in world.passes(microbatches(rows, tokens.sizes(rows), work.token_budget)):
        batch = _batch(tokens, part, mask, model)
        with captured(model, len(batch)) as tape:
            losses_B = work.losses(model, batch) / scored(batch).clamp_min(1.0)
            norms = clipped_sum(model, tape, losses_B, C, sums, rule, work.scale)
        below += 0 if part is None else int((norms <= C).sum())
    return sums, below


def scored(batch: Batch) -> Tensor:
    """How many targets of each record count, [B]: the record's mean loss divides by it."""
    return batch.weights.sum(1) if batch.labels is None else (batch.labels >= 0).float()


def _batch(tokens: Tokens, rows: NDArray[np.int64] | None, mask: int, model: nn.Module) -> Batch:
    """The records ``rows``; for None one of nothing that is scored, whose gradient is zero."""
    device = _device(model)
    if rows is not None:
        return collate(tokens, rows, mask, device)
    ids = torch.zeros(1, 2, dtype=torch.int64, device=device)
    labels = None if tokens.labels is None else torch.full((1,), -1, device=device)
    return Batch(ids, torch.ones_like(ids), ids, torch.zeros(1, 2, device=device), labels)


def _targets(tokens: Tokens, rows: NDArray[np.int64], mask: int, work: Work) -> float:
    """How many targets of ``rows`` count."""
    parts = microbatches(rows, tokens.sizes(rows), work.token_budget)
    return float(sum(float(scored(collate(tokens, part, mask)).sum()) for part in parts))


def _out_of_memory(error: BaseException) -> bool:
    """CUDA has a class for it, the CPU's allocator a message."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator: can't allocate" in str(error)


def _device(model: nn.Module) -> torch.device:
    return next(model.parameters()).device
