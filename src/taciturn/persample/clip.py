"""Exact clipping: Σ_u c_u·G_u over the units of a batch, one forward and one backward pass, for four rules.

The rule decides the factors only; each bounds what one unit adds to the sum by C in norm.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from math import sqrt

import torch
from torch import Tensor, nn

from taciturn.errors import TaciturnError, UsageError
from taciturn.persample.capture import trainable_names
from taciturn.persample.linear import AffineUse
from taciturn.persample.lstm import LSTMUse
from taciturn.persample.sums import Sums
from taciturn.persample.tape import CANCELLED, Tape, Use, keys_of, layer_of, widened
from taciturn.persample.tied import cross_terms

SAFETY = 1 + 2e-6
"""Clip factors are computed in float32: dividing by norm·SAFETY keeps the clipped norm at or below C after rounding."""

Bound = float | Tensor
"""C of every unit, or of each, [U]."""

GAMMA = 0.01
"""Stability constant of automatic clipping (Bu et al. 2023, eq. 4 and section 4.4)."""


def flat(squared_LU: Tensor, C: Bound) -> Tensor:
    """min(1, C/‖G_u‖) for every layer (Abadi et al. 2016, Algorithm 1). squared_LU: ‖G_u‖² by layer; also the result's
    shape."""
    norm_U = squared_LU.sum(0).sqrt()
    return (C / (norm_U * SAFETY)).clamp_max(1.0).expand_as(squared_LU)


def per_layer(squared_LU: Tensor, C: Bound) -> Tensor:
    """Each layer clipped to C/√L, so the whole is at most C (McMahan et al. 2018, section 3)."""
    return (C / sqrt(len(squared_LU)) / (squared_LU.sqrt() * SAFETY)).clamp_max(1.0)


def automatic(squared_LU: Tensor, C: Bound) -> Tensor:
    """C/(‖G_u‖ + γ): every gradient normalised, no threshold to tune (Bu et al. 2023, eq. 4)."""
    norm_U = squared_LU.sum(0).sqrt()
    return (C / ((norm_U + GAMMA) * SAFETY)).expand_as(squared_LU)


RULES = {"flat": flat, "per-layer": per_layer, "automatic": automatic}


def clipped_sum(
    model: nn.Module, tape: Tape, losses_U: Tensor, C: Bound, into: Sums, rule: str = "flat", scale: float = 1.0
) -> Tensor:
    """Add Σ_u c_u·∇losses_u to ``into`` and return the unclipped norms ‖∇losses_u‖, [U].

    Must run inside :func:`~taciturn.persample.capture.captured`, right after the forward pass that made ``losses_U``.
    scale: what the losses were multiplied by against underflow in fp16; taken out again. A unit whose gradient is not
    finite adds nothing, and its norm is returned as it is: to stop there would tell of it. Raises UsageError when a
    parameter was used outside its module, or took no part: its gradient would escape clipping, or is missing.
    """
    with torch.autocast(losses_U.device.type, enabled=False):  # the sums are float32 whatever the forward pass was
        return _clipped_sum(model, tape, losses_U, C, into, rule, scale)


def _clipped_sum(
    model: nn.Module, tape: Tape, losses_U: Tensor, C: Bound, into: Sums, rule: str, scale: float
) -> Tensor:
    norms, lost, c = factors(model, tape, losses_U, C, rule, scale)
    with torch.no_grad():
        if lost is not None:
            for use in tape.uses:
                use.forget(lost)
        tape.uses.sort(
            key=lambda use: isinstance(use, AffineUse)
        )  # last first: a head's sum, then its embedding's rows
        while tape.uses:  # release what each use holds as soon as it is summed
            use = tape.uses.pop()
            use.add_clipped(c[layer_of(use.key)], into)
    return norms


def factors(
    model: nn.Module, tape: Tape, losses_U: Tensor, C: Bound, rule: str, scale: float
) -> tuple[Tensor, Tensor | None, dict[str, Tensor]]:
    """The backward pass of the losses: (norms ‖G_u‖, which of them are not finite, if any, and what gradients are multiplied
    by, by layer), [U] each. A unit that is lost has a factor all the same: its uses are to be forgotten."""
    (losses_U.sum() * scale).backward()
    names = trainable_names(model)
    refuse_leaked(model, names)
    missing = sorted(set(names.values()) - tape.seen)
    if missing:
        raise UsageError(
            f"took no part in the loss, so it has no per-record gradient: {', '.join(missing[:8])}"
            f"{', …' if len(missing) > 8 else ''}; freeze it (requires_grad_(False))"
        )
    with torch.no_grad():
        squared_LU = _squared_norms(tape) / scale**2
        norms = squared_LU.sum(0).sqrt()
        lost: Tensor | None = ~norms.isfinite()
        if lost is not None and bool(lost.any()):
            squared_LU = squared_LU.masked_fill(lost, 0)
        else:
            lost = None
        return norms, lost, dict(zip(tape.layers, RULES[rule](squared_LU, C) / scale, strict=True))


def refuse_leaked(model: nn.Module, names: dict[nn.Parameter, str]) -> None:
    """Raises UsageError for parameters whose gradient went around the tape, and takes those gradients away."""
    leaked = [name for p, name in names.items() if p.grad is not None]
    if leaked:
        model.zero_grad(set_to_none=True)
        raise UsageError(
            f"used outside the layer that owns it, so it has no per-record gradient: {', '.join(leaked[:8])}"
        )


class NotFiniteError(TaciturnError):
    """A gradient of text that may be told about overflowed, or the model has diverged."""


def _squared_norms(tape: Tape) -> Tensor:
    """‖G_u‖² by layer, [L, U]; shared parameters with their cross terms. Rounding may leave a tiny negative: 0."""
    by_key: dict[str, list[Use]] = defaultdict(list)
    times = Counter(key for use in tape.uses for key in keys_of(use))
    for use in tape.uses:
        by_key[use.key].append(use)
        twice = [key for key in keys_of(use) if isinstance(use, LSTMUse) and times[key] > 1]
        if twice:
            raise UsageError(f"{twice[0]} was used twice in one pass: an LSTM's per-record gradients need a single run")
    # As one matrix, a row a key: on a GPU a few kernels for all layers, not a dozen for each.
    squared_KU = torch.stack([_together(by_key[key], norms, tape.units) for key, (norms, _) in tape.squared.items()])
    terms_KU = torch.stack([terms for _, terms in tape.squared.values()])
    cancelled_KU = squared_KU < CANCELLED * terms_KU
    if bool(cancelled_KU.any()):  # of a use that was not kept the tape has seen to that
        keys = list(tape.squared)
        for k, u in cancelled_KU.nonzero().tolist():
            squared_KU[k, u] = _exactly(by_key[keys[k]], u)
    layers: dict[str, list[Tensor]] = {layer: [] for layer in tape.layers}
    for key, squared, terms in zip(tape.squared, squared_KU, terms_KU, strict=True):
        layers[layer_of(key)].append(widened(squared, terms, tape.slack.get(key, 0.0)))
    most, zero = max(map(len, layers.values())), squared_KU.new_zeros(tape.units)
    padded = [row for rows in layers.values() for row in [*rows, *[zero] * (most - len(rows))]]
    return torch.stack(padded).view(len(layers), most, tape.units).sum(1).clamp_min_(0)


def _together(uses: list[Use], norms_U: Tensor, units: int) -> Tensor:
    """The squared norms of what uses of the same parameter add to it, from the sum of theirs."""
    return norms_U + cross_terms(uses, units) if len(uses) > 1 else norms_U


def _exactly(uses: list[Use], u: int) -> Tensor:
    """‖G_u‖² of what some uses of the same parameters add to them, formed in float64."""
    total: dict[str, Tensor] = {}
    for use in uses:
        for key, gradient in use.gradients(u).items():
            total[key] = total[key] + gradient if key in total else gradient
    return torch.stack([gradient.square().sum() for gradient in total.values()]).sum()
