"""Gradients of several processes, each with a whole copy of the model: one sum of them, noised once.

The gradient laid end to end is cut into pieces, and each piece belongs to one process. A release is a reduction of every
piece to its owner, who adds the noise of its places and rounds, and a broadcast from there: the traffic of one all-reduce.
Noise must come after the sum, as what is released is rounded to a grid after the noise. Owners noise at the same time, so
it takes as long as the gradient over the number of processes. With a seed the noise of a place is the same whoever
draws it; without one every owner draws from its own operating system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from taciturn.training.distributed.processes import World

PIECE = 2**22
"""Most numbers in a piece."""

SMALL = 2**16
"""Tensors below this many numbers are sent together, through a copy."""

Noise = Callable[[Sequence[Tensor], Sequence[int]], None]
"""Adds noise to tensors, in place; the place of each one's first entry in the gradient laid end to end, ascending."""


@dataclass(frozen=True, slots=True)
class Piece:
    """``flat`` holds the places from ``start`` on; ``parts`` is what it was copied from, empty where it is a view."""

    start: int
    flat: Tensor
    parts: tuple[Tensor, ...] = ()

    def put_back(self) -> None:
        sizes = [part.numel() for part in self.parts]
        for part, values in zip(self.parts, self.flat.split(sizes) if sizes else (), strict=True):
            part.copy_(values.view_as(part))


def pieces(tensors: Sequence[Tensor]) -> Iterator[Piece]:
    """Cut contiguous ``tensors``, laid end to end, into pieces; in order, every place once."""
    at, small = 0, list[Tensor]()

    def together() -> Iterator[Piece]:
        if small:
            flat = torch.cat([t.reshape(-1) for t in small])
            yield Piece(at - flat.numel(), flat, tuple(small))
            small.clear()

    for tensor in tensors:
        if tensor.numel() < SMALL:
            small.append(tensor)
            at += tensor.numel()
            if len(small) * SMALL >= PIECE:
                yield from together()
            continue
        yield from together()
        for part in tensor.view(-1).split(PIECE):
            yield Piece(at, part)
            at += part.numel()
    yield from together()


def release(tensors: Sequence[Tensor], noise: Noise, world: World) -> None:
    """Set ``tensors``, in every process, to noise(Σ over processes of theirs); every entry is noised once."""
    if world.size == 1:
        noise(tensors, _starts(tensors))
        return
    cut = list(pieces(tensors))
    _wait([dist.reduce(piece.flat, i % world.size, async_op=True) for i, piece in enumerate(cut)])
    mine = cut[world.rank :: world.size]
    noise([piece.flat for piece in mine], [piece.start for piece in mine])
    _wait([dist.broadcast(piece.flat, i % world.size, async_op=True) for i, piece in enumerate(cut)])
    for piece in cut:
        piece.put_back()


def total_gradient(model: nn.Module, loss: float, world: World) -> float:
    """Set each ``.grad`` to its sum over processes, and return that of ``loss``; a process without rows has no gradient,
    a parameter without one anywhere keeps none."""
    if world.size == 1:
        return loss
    if world.mesh is not None:  # the backward pass has summed the gradients
        return float(world.total(np.array([loss]))[0])
    trainable = [p for p in model.parameters() if p.requires_grad]
    everywhere = world.total(np.array([loss, *(p.grad is not None for p in trainable)]))
    used = [p for p, count in zip(trainable, everywhere[1:], strict=True) if count]
    for p in used:
        p.grad = (torch.zeros_like(p) if p.grad is None else p.grad).contiguous()
    cut = list(pieces([p.grad for p in used if p.grad is not None]))
    _wait([dist.all_reduce(piece.flat, async_op=True) for piece in cut])
    for piece in cut:
        piece.put_back()
    return float(everywhere[0])


def _starts(tensors: Sequence[Tensor]) -> list[int]:
    return [int(n) for n in np.cumsum([0, *(t.numel() for t in tensors)])[:-1]]


def _wait(works: Sequence[dist.Work | None]) -> None:
    for work in works:
        if work is not None:
            work.wait()
