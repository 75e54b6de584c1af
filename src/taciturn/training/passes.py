"""How passes through a model are run: precision, memory, and batches of records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taciturn.errors import TaciturnError
from taciturn.models.loss import Batch, collate, record_losses
from taciturn.models.precision import autocast
from taciturn.models.tokens import Tokens
from taciturn.persample.clip import NotFiniteError
from taciturn.persample.twice import recomputes

Result = TypeVar("Result")
HALF_SCALE = 2.0**12
SMALLEST = 16


@dataclass(slots=True)
class Work:
    """How passes are run; updates do not depend on it but for rounding. Plain and noised steps have one each: what the
    passes of private records did to a budget must not show in the rounding of a step without noise.

    token_budget: most padded tokens in one pass; halved when memory runs out. autocast: the type of matrix products, None
    for the weights' own. asked: the budget it began with. scale: what losses are multiplied by in fp16, whose range is
    narrow; lowered on overflow in plain steps. again: whether a pass may be tried again; not with a sharded model, where all
    processes take part in it.
    """

    token_budget: int = 8192
    autocast: torch.dtype | None = None
    scale: float = 1.0
    again: bool = True
    asked: int = field(init=False)

    def __post_init__(self) -> None:
        self.asked = self.token_budget
        if self.autocast == torch.float16:
            self.scale = HALF_SCALE

    def scales(self) -> list[float]:
        """What clipped passes multiply losses by, the same in every step: a record whose gradient overflows is taken again
        at the next, whatever the others do, and adds nothing if it overflows at 1."""
        if self.autocast != torch.float16:
            return [1.0]
        return [HALF_SCALE, HALF_SCALE / 16, HALF_SCALE / 256, 1.0]

    def losses(self, model: nn.Module, batch: Batch) -> Tensor:
        """:func:`record_losses` under the chosen precision."""
        with autocast(batch.input_ids.device.type, self.autocast, recomputed=recomputes(model)):
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


def scored(batch: Batch) -> Tensor:
    """How many targets of each record count, [B]: the record's mean loss divides by it."""
    return batch.weights.sum(1) if batch.labels is None else (batch.labels >= 0).float()


def batch_of(tokens: Tokens, rows: NDArray[np.int64] | None, mask: int, model: nn.Module) -> Batch:
    """The records ``rows``; for None one of nothing that is scored, whose gradient is zero."""
    device = next(model.parameters()).device
    if rows is not None:
        return collate(tokens, rows, mask, device)
    ids = torch.zeros(1, 2, dtype=torch.int64, device=device)
    labels = None if tokens.labels is None else torch.full((1,), -1, device=device)
    return Batch(ids, torch.ones_like(ids), ids, torch.zeros(1, 2, device=device), labels)


def _out_of_memory(error: BaseException) -> bool:
    """CUDA has a class for it, the CPU's allocator a message."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator: can't allocate" in str(error)
