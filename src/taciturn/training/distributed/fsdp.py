"""A model cut over the processes of a run (PyTorch's FSDP2), for models larger than one device.

Process 0 alone loads it (loading.py); the others get its form, and their rows of each weight as blocks are cut. Between
passes a parameter is a DTensor: each process has some of its rows, and of its sum, its noise and its optimiser state. In a
pass FSDP brings one block at a time together, and the recorded forward reads ``module.weight`` then. Clipped sums come out
in full size, parameter by parameter; each is reduced to shards before many of them are held.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from taciturn.errors import UsageError
from taciturn.persample.capture import trainable_names, unsupported
from taciturn.persample.sums import Sums
from taciturn.training.distributed.all_reduce import PIECE, Noise, release
from taciturn.training.distributed.loading import make_room
from taciturn.training.distributed.processes import World


def shard(model: nn.Module, world: World) -> World:
    """Cut ``model`` over the processes, in place: every block on its own, then the rest. A world of one cuts nothing.

    The weights are those of process 0; elsewhere they may be of the device "meta", as
    :func:`~taciturn.training.distributed.loading.loaded_once` leaves them. The model's class becomes a subclass of its own.
    Raises UsageError when PyTorch has no FSDP2, and for a weight that a block shares with another one.
    """
    if world.size == 1:
        return world
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
    except ImportError as error:
        raise UsageError(f"train.shard needs PyTorch 2.6 or newer, found {torch.__version__}") from error
    unsupported(model)  # tries what norms compute, once for each class, and needs whole weights for that
    _refuse_shared(model)
    mesh = init_device_mesh(world.device.type, (world.size,))
    for module in [*blocks(model), model]:
        uncut = {name: p.detach() for name, p in module.named_parameters() if not is_cut(p)}
        make_room(module, world.device)
        fully_shard(module, mesh=mesh, reshard_after_forward=True)
        named = dict(module.named_parameters())
        for name in list(uncut):
            _hand_out(uncut.pop(name), named[name], world)
    return replace(world, mesh=mesh)


def _refuse_shared(model: nn.Module) -> None:
    owners = Counter(p for block in blocks(model) for p in set(block.parameters()))
    inside = {module for block in blocks(model) for module in block.modules()}
    owners.update({p for m in model.modules() if m not in inside for p in m.parameters(recurse=False)})
    shared = [name for name, p in model.named_parameters() if owners[p] > 1]
    if shared:
        raise UsageError(f"train.shard: {shared[0]} is in several blocks, which are cut one by one: leave shard out")


@torch.no_grad()
def _hand_out(full: Tensor, like: Tensor, world: World) -> None:
    """Fill the cut tensor ``like`` with each process's rows of process 0's ``full``, through main memory."""
    mine = local(like)
    rows = -(-like.shape[0] // world.size)
    part = torch.empty(rows * (like.numel() // like.shape[0]), dtype=like.dtype)
    parts = list(_staged(full.cpu(), world.size).view(torch.uint8)) if world.leads else None
    dist.scatter(part.view(torch.uint8), parts, 0, group=world.control)
    mine.copy_(part[: mine.numel()].view(mine.shape))


def blocks(model: nn.Module) -> list[nn.Module]:
    """What a transformer repeats: the entries, with layers of their own, of every module list that is in no other."""
    lists = {name: m for name, m in model.named_modules() if isinstance(m, nn.ModuleList)}
    outer = [m for name, m in lists.items() if not any(name.startswith(f"{other}.") for other in lists)]
    found = [entry for m in outer for entry in m if any(True for _ in entry.children())]
    return list(dict.fromkeys(block for block in found if any(True for _ in block.parameters())))


def local(tensor: Tensor) -> Tensor:
    """This process's part of a cut tensor, sharing its memory; another tensor as it is."""
    return tensor.to_local() if is_cut(tensor) else tensor  # type: ignore[attr-defined]


def whole(tensor: Tensor) -> Tensor:
    """A cut tensor put together, in every process; another as it is."""
    return tensor.full_tensor() if is_cut(tensor) else tensor  # type: ignore[attr-defined]


def is_cut(value: Any) -> bool:
    return isinstance(value, Tensor) and hasattr(value, "to_local")  # a DTensor, without importing it for all runs


def gathered(tree: Any, keep: bool) -> Any:
    """``tree`` with every cut tensor put together, in main memory where ``keep``, dropped elsewhere. All processes call
    this; one tensor at a time is whole on the device."""

    def together(value: Any) -> Any:
        if not is_cut(value):
            return value
        full = whole(value)
        return full.cpu() if keep else None

    return tree_map(together, tree)


def cut_like(full: Tensor, like: Tensor) -> Tensor:
    """The whole tensor ``full``, cut as ``like`` is: each process keeps its rows. As it is where ``like`` is not cut."""
    if not is_cut(like):
        return full
    from torch.distributed.tensor import DTensor

    mesh, placements = like.device_mesh, like.placements  # type: ignore[attr-defined]
    first, mine = _rows(like.shape[0], mesh.get_local_rank(), mesh.size()), local(like)
    part = full[first : first + len(mine)].to(mine.device, mine.dtype, copy=True)
    return DTensor.from_local(part, mesh, placements, run_check=False, shape=like.shape, stride=like.stride())


def cut_optimiser(state: dict[str, Any], optimiser: torch.optim.Optimizer) -> dict[str, Any]:
    """An optimiser's state dictionary, whole, with the entries of cut parameters cut in the same way."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]

    def fit(i: int, entry: dict[str, Any]) -> dict[str, Any]:
        p = parameters[i]
        return {k: cut_like(v, p) if getattr(v, "shape", None) == p.shape else v for k, v in entry.items()}

    return {**state, "state": {i: fit(i, entry) for i, entry in state["state"].items()}}


class ShardedSums(Sums):
    """Sums that are handed out in shards: full-size ones wait until they come to PIECE numbers, then are reduced together.

    Held at most: this process's shard of every sum, and twice PIECE numbers or twice the largest parameter. Processes add
    the same keys in the same order, as they run the same passes.
    """

    def __init__(self, model: nn.Module, world: World) -> None:
        super().__init__()
        self._world = world
        self._like: Mapping[str, Tensor] = {name: local(p.detach()) for p, name in trainable_names(model).items()}
        self._shards: dict[str, Tensor] = {}

    def add(self, key: str, total: Tensor) -> None:
        self.make_room(key)
        super().add(key, total)

    def add_product(self, key: str, left: Tensor, right: Tensor) -> None:
        self.make_room(key)
        super().add_product(key, left, right)

    def add_rows(self, key: str, rows: int, ids: Tensor, values: Tensor) -> None:
        self.make_room(key)
        super().add_rows(key, rows, ids, values)

    def shard(self, key: str) -> Tensor:
        """This process's rows of the sum over all processes, after :meth:`reduce`; zeros for one nobody added to."""
        if key not in self._shards:
            self._shards[key] = torch.zeros_like(self._like[key], dtype=torch.float32)
        return self._shards[key]

    def reduce(self) -> None:
        """Reduce what is waiting; all processes call this."""
        if not self._sums:
            return
        staged = [_staged(total, self._world.size) for total in self._sums.values()]
        keys, sizes = list(self._sums), [part.shape[1] for part in staged]
        self._sums.clear()
        mine = staged[0].new_empty(sum(sizes))
        _reduce_scatter(mine, torch.cat(staged, 1).view(-1))
        for key, values in zip(keys, mine.split(sizes), strict=True):
            shard = self.shard(key)
            shard += values[: shard.numel()].view(shard.shape)

    def make_room(self, key: str) -> None:
        if key not in self._sums and sum(total.numel() for total in self._sums.values()) >= PIECE:
            self.reduce()


def release_sums(model: nn.Module, sums: Sums, extra: Sequence[Tensor], noise: Noise, world: World) -> None:
    """Set every ``.grad`` to noise(Σ over processes of ``sums``), and ``extra``, which comes after them, likewise.

    In a sharded model each process noises its shards, at their places in the whole gradient, and process 0 ``extra``.
    """
    named = trainable_names(model)
    if not isinstance(sums, ShardedSums):
        for p, name in named.items():
            p.grad = sums[name].contiguous() if name in sums else torch.zeros_like(p)
        release([*(p.grad for p in named if p.grad is not None), *extra], noise, world)
        return
    sums.reduce()
    from torch.distributed.tensor import DTensor

    shards = [sums.shard(name) for name in named.values()]
    starts = [place for place, _ in shard_places(named, world)]
    end = sum(p.numel() for p in named)
    for tensor in extra:
        dist.reduce(tensor, 0)
    others = list(extra) if world.leads else []
    ends = list(accumulate((t.numel() for t in others), initial=end))[:-1]
    noise([*shards, *others], [*starts, *ends])
    for tensor in extra:
        dist.broadcast(tensor, 0)
    for p, total in zip(named, shards, strict=True):
        whole: Any = p
        p.grad = DTensor.from_local(
            total, whole.device_mesh, whole.placements, run_check=False, shape=p.shape, stride=p.stride()
        )


def shard_places(parameters: Mapping[nn.Parameter, str], world: World) -> Iterator[tuple[int, int]]:
    """(place of this process's first entry in the parameters laid end to end, number of its entries) of each."""
    at = 0
    for p in parameters:
        yield at + _rows(p.shape[0], world.rank, world.size) * (p.numel() // p.shape[0]), local(p).numel()
        at += p.numel()


def _rows(rows: int, rank: int, size: int) -> int:
    """The first of ``rows`` that a process has: all have ⌈rows/size⌉, but for the last ones, which may have none."""
    return min(rank * -(-rows // size), rows)


def _staged(total: Tensor, size: int) -> Tensor:
    """What each process is to have of ``total``, one row each, padded with zeros: [size, numbers]."""
    rows = total.reshape(len(total), -1)
    padding = -len(rows) % size
    return nn.functional.pad(rows, (0, 0, 0, padding)).view(size, -1)


def _reduce_scatter(out: Tensor, values: Tensor) -> None:
    scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)  # the newer name of the same
    scatter(out, values)
