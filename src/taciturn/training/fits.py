"""What fits on given devices, from shapes alone: no weight is loaded, and no number computed."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from taciturn.errors import UsageError
from taciturn.models.loss import record_losses
from taciturn.models.precision import Precision, autocast_type
from taciturn.persample.capture import captured, unsupported
from taciturn.persample.isolated import without_dropout
from taciturn.training.check import STATES, counted, each_tensor, random_batch, without_numbers
from taciturn.training.distributed.all_reduce import PIECE
from taciturn.training.distributed.fsdp import blocks

SPARE = 0.92
"""Of a device's memory, what may be planned with: the rest is the driver's, libraries', and lost between allocations."""


@dataclass(frozen=True, slots=True)
class Fit:
    """Bytes on each of ``gpus`` devices. rows: the most records of ``width`` tokens in one pass; 0 where not even one fits.

    weights: this device's share, frozen ones as they are kept. sums, optimiser: of what is trained, its share. whole: the
    blocks that are put together for a pass, where the model is cut. first, each: what a pass holds for its first record,
    and for each further one.
    """

    gpus: int
    memory: int
    width: int
    weights: int
    sums: int
    optimiser: int
    whole: int
    first: int
    each: int

    @property
    def fixed(self) -> int:
        return self.weights + self.sums + self.optimiser + self.whole

    @property
    def rows(self) -> int:
        room = int(SPARE * self.memory) - self.fixed - self.first
        return 0 if room < 0 else 1 + room // max(self.each, 1)

    @property
    def token_budget(self) -> int:
        """What ``train.token_budget`` may be."""
        return self.rows * self.width


def fits(
    model: nn.Module,
    *,
    memory: int,
    width: int,
    gpus: int = 1,
    dtype: Precision = "bf16",
    optimiser: Literal["sgd", "momentum", "adamw"] = "adamw",
    classify: bool = False,
) -> Fit:
    """How a private step of ``model`` lies on ``gpus`` devices of ``memory`` bytes each; with more than one the model is cut
    over them (``train.shard``). The model may have shapes only; it has no more than these afterwards.

    Two passes are counted, of two records and of four (one alone keeps its gradient whole, as that is the sum); what a pass
    holds is taken to grow by as much for each record. The clipped sum is taken to need one pass, as it does on a GPU unless
    that is told to repeat itself (persample/twice.py).
    """
    if gpus < 1 or memory < 1:
        raise UsageError(f"expected at least one device with some memory, found {gpus} of {memory} bytes")
    _try_norms(model)
    trained = [p for p in model.parameters() if p.requires_grad]
    weights = sum(t.numel() * t.element_size() for t in {*model.parameters(), *model.buffers()})
    sums = 4 * sum(p.numel() for p in trained)
    largest = max((4 * p.numel() for p in trained), default=0)
    whole = 0
    if gpus > 1:  # two blocks while the next is fetched, the rest of the model, and sums until they are handed out
        sizes = sorted(_bytes(block) for block in blocks(model))
        rest = weights - sum(sizes)
        whole = 2 * (sizes[-1] if sizes else 0) + max(rest, 0) + 2 * max(largest, 4 * PIECE)
    two, four = (_peak(model, rows, width, dtype, classify) for rows in (2, 4))
    each = max(0, four - two) // 2
    state = STATES[optimiser] * sums // gpus
    return Fit(gpus, memory, width, weights // gpus, sums // gpus, state, whole, max(two - each, each), each)


def _peak(model: Any, rows: int, width: int, dtype: Precision, classify: bool) -> int:
    """The most bytes that a forward and a backward pass hold at once, weights not counted."""
    kind = autocast_type(dtype)
    with FakeTensorMode(allow_non_fake_inputs=True) as shapes:

        def shaped(tensor: Tensor) -> Tensor:
            made = torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
            return nn.Parameter(made, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else made

        without_numbers(model, shaped)
        batch = each_tensor(random_batch(model, (width,) * rows, classify), shapes.from_tensor)
        model.train()
        with captured(model, rows), without_dropout(model), counted() as count:
            with torch.autocast("cpu", kind, enabled=kind is not None):
                losses_B = record_losses(model, batch)
            losses_B.sum().backward()
    return count.peak


def _try_norms(model: nn.Module) -> None:
    """What a class of norms computes is found out by trying it once, which needs numbers."""
    for module in model.modules():
        weight = module._parameters.get("weight")
        if weight is not None and weight.is_meta and weight.dim() == 1 and not any(True for _ in module.children()):
            real = deepcopy(module).to_empty(device="cpu")
            nn.init.ones_(real._parameters["weight"])  # type: ignore[arg-type]
            unsupported(real)


def _bytes(module: nn.Module) -> int:
    return sum(t.numel() * t.element_size() for t in {*module.parameters(), *module.buffers()})
