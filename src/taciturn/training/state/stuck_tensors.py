"""Every trainable tensor must move. A run whose adapter or layer stays where it was looks healthy in every other way.

The first update of each phase is watched, the second too for a tensor whose first gradient was exactly zero (LoRA's A,
while B is zero). Before and after are compared by a hash of their bits, so no copy of the weights is made.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from taciturn.errors import TaciturnError
from taciturn.persample.capture import trainable_names
from taciturn.training.distributed.fsdp import local
from taciturn.training.distributed.processes import ALONE, World

BLOCK = 2**18
"""Values hashed together; their products stay in cache."""

_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
logger = logging.getLogger("taciturn")


def fingerprint(tensor: Tensor) -> Tensor:
    """Σ r_i·bits_i mod 2⁶⁴ for each block of values, with fixed random r: [blocks], int64.

    A given change of values of up to four bytes goes unseen with probability at most 2⁻³³ over r. A plain sum or
    exclusive-or would miss Adam's first step, in which every entry of a zero bias moves by the same lr.
    """
    bits = tensor.detach().reshape(-1).view(_BITS[tensor.element_size()])
    r = _coefficients(bits.device)
    return torch.stack([(block.long() * r[: len(block)]).sum() for block in bits.split(BLOCK)])


@cache
def _coefficients(device: torch.device) -> Tensor:
    return torch.from_numpy(np.random.PCG64(0).random_raw(BLOCK).view(np.int64)).to(device)


def to_watch(model: nn.Module) -> dict[str, int]:
    """How many zero gradients each tensor that has not moved yet has had; what :func:`watched` starts from."""
    return {name: 0 for p, name in trainable_names(model).items() if p.numel()}


@contextmanager
def watched(model: nn.Module, still: dict[str, int], lr: float, world: World = ALONE) -> Iterator[None]:
    """Around one update at rate ``lr``: take out of ``still`` what moves; of a cut tensor, what moves in any process.

    Raises TaciturnError naming each tensor that has no gradient, that did not move though its gradient is large enough
    to change it, or whose gradient was exactly zero twice. A change below the precision of the weights (as of the bias of
    attention keys, which no loss depends on) is a warning, unless it is most of the model (a rate too small for bfloat16).
    """
    tensors = {name: p for p, name in trainable_names(model).items() if name in still}
    if not tensors or lr == 0:
        yield
        return
    _refuse([name for name, p in tensors.items() if p.grad is None], "have no gradient: they take no part in the loss")
    before = {name: fingerprint(local(p)) for name, p in tensors.items()}
    felt = _anywhere({name: _felt(p, lr) for name, p in tensors.items()}, world)
    pushed = _anywhere({name: felt[name] or bool(_gradient(p).any()) for name, p in tensors.items()}, world)
    zero = {name for name in tensors if not pushed[name]}
    yield
    moved = _anywhere(
        {name: not torch.equal(fingerprint(local(p)), before[name]) for name, p in tensors.items()}, world
    )
    stayed = [name for name in tensors if not moved[name]]
    for name in tensors.keys() - set(stayed):
        del still[name]
    _refuse(
        [name for name in stayed if felt[name]], "did not move, though they have gradients: something restored them"
    )
    for name in zero & set(stayed):
        still[name] += 1
    _refuse([name for name, zeros in still.items() if zeros >= 2], "had a gradient of exactly zero in two updates")
    faint = sorted(set(stayed) - zero)
    if 2 * sum(tensors[name].numel() for name in faint) > sum(p.numel() for p in trainable_names(model)):
        _refuse(faint, "did not move: the update is below the precision of most weights, so raise the learning rate")
    if faint:
        logger.warning("updates too small for the precision of the weights: %s", ", ".join(faint[:8]))
        for name in faint:
            del still[name]


def _felt(p: nn.Parameter, lr: float) -> bool:
    """Whether an update is above rounding anywhere in ``p``: lr·min(1, |g|) is less than SGD or Adam moves an entry."""
    eps = torch.finfo(p.dtype).eps
    pairs = zip(_gradient(p).reshape(-1).split(BLOCK), local(p.detach()).reshape(-1).split(BLOCK), strict=True)
    return any(bool((lr * g.abs().clamp_max(1) > eps * w.abs()).any()) for g, w in pairs)


def _gradient(p: nn.Parameter) -> Tensor:
    assert p.grad is not None
    return local(p.grad)


def _anywhere(found: dict[str, bool], world: World) -> dict[str, bool]:
    """Whether it is so in any process; each has all of an uncut tensor, and knows by itself."""
    if world.mesh is None:
        return found
    return {name: bool(n) for name, n in zip(found, world.most(list(found.values())), strict=True)}


def _refuse(names: list[str], why: str) -> None:
    if names:
        raise TaciturnError(
            f"trainable tensors that {why}: {', '.join(sorted(names)[:8])}{', …' if len(names) > 8 else ''}. Freeze what is "
            "not meant to train (requires_grad_(False)), or mend the model"
        )
