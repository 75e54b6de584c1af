"""The clipped sum in two passes, for models that recompute their activations: what layers saw is never held all at once.

One pass keeps every layer's inputs and output gradients (or its gradients) until all norms are known. Here the first takes
the norms and lets go, and the second, with the factors known, adds each layer's part when it comes to it. A pass is a
function of weights and batch alone (isolated.py), so both see the same numbers but for the order in which threads add,
for which ``MARGIN`` is left. A GPU's kernels may add in another order each time, and bfloat16 makes more of that than any
margin: there this is done only under ``torch.use_deterministic_algorithms``. It costs one more forward and backward pass.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from taciturn.persample.capture import captured, trainable_names
from taciturn.persample.clip import Bound, clipped_sum, factors, refuse_leaked
from taciturn.persample.sums import Sums
from taciturn.persample.tape import Use, UsedAgain, layer_of

MARGIN = 1e-4
"""By how much less than C a gradient is clipped to; two passes on the same threads differed from the eighth digit on."""


def clipped_sum_of(
    model: nn.Module,
    rows: int,
    units: int,
    losses: Callable[[], Tensor],
    C: Bound,
    into: Sums,
    rule: str = "flat",
    scale: float = 1.0,
) -> Tensor:
    """As :func:`~taciturn.persample.clip.clipped_sum`, of losses [U] that are computed as often as is needed: twice where
    the model recomputes its activations and its device repeats itself, else once."""
    if recomputes(model) and _repeats(model):
        try:
            return _twice(model, rows, units, losses, C, into, rule, scale)
        except UsedAgain:  # layers that are run several times: their norm needs all of it at once
            model.zero_grad(set_to_none=True)
    with captured(model, rows, units) as tape:
        return clipped_sum(model, tape, losses(), C, into, rule, scale)


def recomputes(model: nn.Module) -> bool:
    """Whether its activations are recomputed in the backward pass (gradient checkpointing)."""
    return any(getattr(module, "gradient_checkpointing", False) is True for module in model.modules())


def _repeats(model: nn.Module) -> bool:
    """Not of a model that is cut over processes: what these tell each other in a second backward pass was never tried."""
    if any(hasattr(p, "to_local") for p in model.parameters()):
        return False
    return torch.are_deterministic_algorithms_enabled() or all(p.device.type == "cpu" for p in model.parameters())


def _twice(
    model: nn.Module,
    rows: int,
    units: int,
    losses: Callable[[], Tensor],
    C: Bound,
    into: Sums,
    rule: str,
    scale: float,
) -> Tensor:
    with captured(model, rows, units, norms_only=True) as tape:
        first = losses()
        with torch.autocast(first.device.type, enabled=False):
            norms, lost, c = factors(model, tape, first, C * (1 - MARGIN), rule, scale)
    del first
    tape.uses.clear()

    def add(use: Use) -> None:
        with torch.no_grad():
            if lost is not None:
                use.forget(lost)
            use.add_clipped(c[layer_of(use.key)], into)

    with captured(model, rows, units, summed=add):
        second = losses()
        with torch.autocast(second.device.type, enabled=False):
            (second.sum() * scale).backward()
    refuse_leaked(model, trainable_names(model))
    return norms
