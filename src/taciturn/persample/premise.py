"""A look before the first step: is a record's gradient, in this very model, a function of the weights and the record?

The rules assume that a layer's rows are the batch's records in order, and every proof that a record adds the same whoever
else is there. A model that mixes records, reorders them, draws random numbers or keeps statistics of a batch would be
clipped wrongly without an error; a few random records show it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.families import WORKING
from taciturn.persample.capture import captured, trainable_names
from taciturn.persample.clip import clipped_sum
from taciturn.persample.isolated import isolated, mixes_records, random_layers, without_dropout
from taciturn.persample.sums import Sums

TOLERANCE = 5e-5
"""Largest relative difference of norms and sums; rounding gives 1e-6, a convolution over what pads a record 1e-4, a
mixed-up record order one."""

Losses = Callable[[Sequence[int]], Tensor]
"""Losses of these rows of a fixed batch, in this order, differentiable, [rows]."""


def disagreement(model: nn.Module, losses: Losses, rows: int) -> tuple[float, str]:
    """The largest relative difference between per-record gradients taken one record at a time and as the engine takes them:
    together, in another order, in passes of one, and beside a further record whose own loss does not count; and the
    parameter in which it is largest. Weights and training mode are left as they were, gradients are gone."""
    some = list(range(max(1, rows - 1)))
    worst, where = 0.0, next(iter(trainable_names(model).values()))
    with isolated(model):
        for passes in ([some], [some[::-1]], [[b] for b in some], [list(range(rows))]):
            sums = Sums()  # minus what is wanted, then what is left: one copy of what is trained
            norms, scale = _alone(model, losses, some, sums)
            _refuse(reads_others(model, losses, rows) if passes == [some] else [])
            for part in passes:
                counts = torch.tensor([float(b in some) for b in part])
                with captured(model, len(part)) as tape:
                    losses_B = losses(part)
                    found = clipped_sum(model, tape, losses_B * counts.to(losses_B.device), float("inf"), sums)
                for b, norm in zip(part, found.tolist(), strict=True):
                    if b in some:
                        worst = max(worst, abs(norm - norms[b]) / max(norms[b], 1e-12))
            errors = {name: _largest(sums[name]) / scale for name in trainable_names(model).values() if name in sums}
            largest = max(errors, key=lambda name: errors[name])
            if errors[largest] > worst or where not in errors:
                worst, where = errors[largest], largest
    return worst, where


def reads_others(model: nn.Module, losses: Losses, rows: int) -> list[str]:
    """Whether a record's loss reads other records, or what stands behind its own end: sentences, empty if there are none.

    Its derivative by their embeddings is zero then, and not only small: attention that is masked has weight 0, whatever
    the model's weights are. A convolution over padding shows here at any size.
    """
    find = getattr(model, "get_input_embeddings", None)
    embedding = find() if find is not None else None
    if not isinstance(embedding, nn.Module):
        return []
    seen: list[Tensor] = []

    def cut(_module: nn.Module, _args: object, out: Tensor) -> Tensor:
        seen.append(out.detach().requires_grad_())
        return seen[-1]

    handle, found = embedding.register_forward_hook(cut), []
    try:
        for b in range(rows):
            with torch.no_grad():
                losses([b])
            length = seen.pop().shape[1]
            seen.clear()
            each = torch.autograd.grad(losses(list(range(rows)))[b], seen, allow_unused=True)
            for g in [g for g in each if g is not None and g.dim() == 3 and len(g) == rows]:
                if bool(g[b, length:].any()):
                    found.append("a record's loss reads what stands behind its end, so the longest record of a pass")
                if bool(g[:b].any()) or bool(g[b + 1 :].any()):
                    found.append("the model mixes records (a record's loss reads others)")
            seen.clear()
    finally:
        handle.remove()
    return list(dict.fromkeys(found))


def _alone(model: nn.Module, losses: Losses, rows: Sequence[int], into: Sums) -> tuple[dict[int, float], float]:
    """Take the gradients of ``rows`` from ``into``, by ordinary passes of one record: (the norm of each, the largest entry
    of their sum). A parameter's gradient is let go of as soon as it is there."""
    named, squared, norms = trainable_names(model), [0.0], {}

    def take(p: Tensor) -> None:
        assert p.grad is not None
        squared[0] += float(torch.linalg.vector_norm(p.grad, dtype=torch.float64)) ** 2
        into.add(named[p], p.grad.float().neg_() if p.dtype != torch.float32 else p.grad.neg_())  # type: ignore[index]
        p.grad = None

    model.zero_grad(set_to_none=True)  # what somebody else's pass left would be added to
    handles = [p.register_post_accumulate_grad_hook(take) for p in named]
    try:
        for b in rows:
            squared[0] = 0.0
            try:
                losses([b]).sum().backward()
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, ValueError) as error:
                said = (str(error).splitlines() or [""])[0][:160]
                raise UsageError(
                    f"{type(model).__name__} gives no gradient of one record in evaluation mode ({said}); choose another "
                    "model"
                ) from error
            norms[b] = squared[0] ** 0.5
    finally:
        for handle in handles:
            handle.remove()
    return norms, max((_largest(into[name]) for name in into), default=0.0) or 1.0


def _largest(tensor: Tensor) -> float:
    """The largest magnitude, without a copy."""
    low, high = tensor.aminmax() if tensor.numel() else (tensor.new_zeros(()), tensor.new_zeros(()))
    return max(-float(low), float(high))


def verify(model: nn.Module, losses: Losses, rows: int, longest: int = 0) -> float:
    """:func:`disagreement`, after what it cannot see; UsageError, naming modules, when no clip norm would hold.

    longest: tokens of the longest record there will be.
    """
    _refuse(mixes_records(model, longest))
    with _as_found(model):
        model.train()
        with without_dropout(model), random_layers(model) as drawing, torch.no_grad():
            losses(range(rows))
        _refuse([f"{layer} draws random numbers in evaluation mode as well" for layer in drawing])
        _refuse([f"{name} is changed by every pass in training mode" for name in _moved_buffers(model, losses, rows)])
        found, name = disagreement(model, losses, rows)
    if not found <= TOLERANCE:
        raise UsageError(
            f"per-record gradients of this model differ from one record at a time by {found:.2g} (expected below "
            f"{TOLERANCE:g}), most in {name}: it mixes records or reorders them, so clipping could not be trusted; freeze "
            f"that part or choose another model. {WORKING}"
        )
    return found


def _refuse(reasons: Sequence[str]) -> None:
    if reasons:
        raise UsageError(
            f"a record's gradient would depend on other records: {'; '.join(reasons[:4])}. No clip norm would hold; choose "
            f"a model without such layers. {WORKING}"
        )


def _moved_buffers(model: nn.Module, losses: Losses, rows: int) -> list[str]:
    """Names of the buffers that a pass in training mode changes (running statistics would be exported with the model)."""
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with torch.no_grad():
        losses(range(rows))
    now = dict(model.named_buffers())
    moved = [n for n in now if n not in before or now[n].shape != before[n].shape or not torch.equal(now[n], before[n])]
    for name in moved:
        if name in before and now[name].shape == before[name].shape:
            now[name].copy_(before[name])
    return moved


@contextmanager
def _as_found(model: nn.Module) -> Iterator[None]:
    """Modes and torch's random state are put back."""
    modes = [(m, m.training) for m in model.modules()]
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    with torch.random.fork_rng(devices=devices):
        try:
            yield
        finally:
            for module, mode in modes:
                module.training = mode
