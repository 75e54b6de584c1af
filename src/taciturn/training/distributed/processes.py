"""The processes of a run: who there is, which share of a batch each has, and what they must agree on.

Started by ``torchrun``, every process reads the same corpus and plan and holds the same weights (or a shard of them,
:mod:`taciturn.training.distributed.fsdp`). Process 0 draws private samples for all and alone writes files. A process on its
own is a world of one, for which everything here is the identity. Numbers travel by gloo, whatever the device.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.nn  # first: its functions keep the group that is there when it is imported alive to the end
from numpy.typing import NDArray

from taciturn.errors import Elsewhere, Interrupted, LostProcess, MismatchError, TaciturnError, UsageError

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class World:
    """rank: this process, of ``size``. device: where its model belongs. mesh: what a sharded model lies on, None for a
    whole copy in every process. control: the group that numbers travel in, None for the default one."""

    rank: int = 0
    size: int = 1
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    mesh: Any = None
    control: Any = None

    @property
    def leads(self) -> bool:
        return self.rank == 0

    def share(self, rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """This process's rows of a logical batch: dealt out by ``sizes``, their lengths, so that all have about as much
        to do. Possibly none."""
        if self.size == 1:
            return rows
        return rows[np.argsort(sizes, kind="stable")][self.rank :: self.size]

    def agree(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Process 0's rows, in every process."""
        if self.size == 1:
            return rows
        count = torch.tensor([len(rows)])
        dist.broadcast(count, 0, group=self.control)
        out = torch.from_numpy(rows) if self.leads else torch.empty(int(count), dtype=torch.int64)
        dist.broadcast(out, 0, group=self.control)
        return out.numpy()

    def most(self, numbers: Sequence[int]) -> list[int]:
        """The largest in any process, of each number."""
        if self.size == 1:
            return list(numbers)
        out = torch.tensor(numbers, dtype=torch.int64)
        dist.all_reduce(out, dist.ReduceOp.MAX, group=self.control)
        return [int(n) for n in out.tolist()]

    def total(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over all processes, of each number."""
        if self.size == 1:
            return numbers
        out = torch.from_numpy(numbers.copy())
        dist.all_reduce(out, group=self.control)
        return out.numpy()

    def passes(self, parts: Sequence[Result]) -> list[Result | None]:
        """``parts``, and None for passes that only keep step: every pass through a sharded model takes all processes."""
        if self.mesh is None:
            return list(parts)
        return [*parts, *[None] * (self.most([len(parts)])[0] - len(parts))]

    def once(self, make: Callable[[], Result]) -> Result:
        """What ``make`` returns in process 0, in every process; its error ends them all. Files are written this way."""
        if self.size == 1:
            return make()
        said: list[Any] = [None]
        error: Exception | None = None
        if self.leads:
            try:
                said = [(None, make())]
            except Exception as raised:
                error = raised
                what = str(raised) if isinstance(raised, TaciturnError) else type(raised).__name__
                said = [((getattr(raised, "exit_code", 1), what), None)]
        dist.broadcast_object_list(said, 0, group=self.control, device=torch.device("cpu"))
        if error is not None:
            raise error
        failed, result = said[0]
        if failed is not None:
            raise Elsewhere(*failed)
        return result  # type: ignore[no-any-return]

    def same(self, known: Callable[[], Mapping[str, str]]) -> None:
        """Raise MismatchError, in every process, naming each of the facts that is not what it is in process 0."""
        if self.size == 1:
            return
        facts = known()
        theirs = self.once(lambda: facts)
        names = sorted(theirs)
        differs = self.most([int(facts.get(name) != theirs[name]) for name in names])
        wrong = [name for name, bad in zip(names, differs, strict=True) if bad]
        if wrong:
            raise MismatchError(
                f"the processes differ in {', '.join(wrong)}: give every machine the same files and the same versions of "
                "taciturn, torch and transformers"
            )

    def seed(self, seed: int, step: int) -> None:
        """Begin this process's stream of step ``step``, for dropout in passes without noise. It follows from three public
        numbers alone; a stream that went on from step to step would stand where private records had left it."""
        digest = blake2b(f"{seed} {self.rank} {step}".encode(), digest_size=8).digest()
        device = torch.cuda.is_available() or torch.backends.mps.is_available()
        # Without one torch.manual_seed takes up to 5 ms to note, for each that there might be, where it was called.
        begin = torch.manual_seed if device else torch.default_generator.manual_seed
        begin(int.from_bytes(digest, "little") >> 1)

    def wait(self) -> None:
        """Until every process is here."""
        self.most([0])


ALONE = World()


@contextmanager
def joined(minutes: float = 10.0) -> Iterator[World]:
    """The world ``torchrun`` started this process in; left again at the end. A world of one without it.

    minutes: how long to wait for a process that does not answer. A group that is already initialised is used as it is.
    Raises UsageError when there are more processes than GPUs, LostProcess when another process is lost.
    """
    size, cuda = int(os.environ.get("WORLD_SIZE", "1")), torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    if cuda and local >= torch.cuda.device_count():
        raise UsageError(
            f"process {local} of this machine has no GPU, there are {torch.cuda.device_count()}: start as many processes, "
            "or set CUDA_VISIBLE_DEVICES= to train on CPUs"
        )
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if size == 1:
        yield World(device=device)
        return
    if cuda:
        torch.cuda.set_device(device)
    with answering(lambda: "while the run was set up or finished"):
        mine = not dist.is_initialized()
        if mine:
            backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
            dist.init_process_group(backend, timeout=timedelta(minutes=minutes))
        control = None if mine else dist.new_group(backend="gloo", timeout=timedelta(minutes=minutes))
        try:
            yield World(dist.get_rank(), dist.get_world_size(), device, None, control)
            if mine:
                dist.destroy_process_group()
        except Interrupted:
            if mine:
                dist.destroy_process_group()
            raise
        finally:  # not destroyed after another error: that could wait for a process that is gone
            time.sleep(0.1)  # gloo's threads let go of what they sent, for which they need the interpreter to be there


@contextmanager
def answering(when: Callable[[], str]) -> Iterator[None]:
    """Turn a failed exchange with another process into a LostProcess that says ``when`` and what to do."""
    try:
        yield
    except RuntimeError as error:
        if not _is_lost(error):
            raise
        raise LostProcess(
            f"another process of this run was lost {when()} (rank {os.environ.get('RANK', '?')} noticed); its own message "
            "says why, if it could leave one. Continue from the last checkpoint with --resume, with any number of processes"
        ) from error


def _is_lost(error: RuntimeError) -> bool:
    """torch has classes for some failures, and text for the others."""
    return isinstance(error, dist.DistError) or any(
        word in str(error) for word in ("gloo", "NCCL", "Connection closed")
    )
