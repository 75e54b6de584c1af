"""Atomic checkpoints: one file holds all that a run carries from step to step, so a resumed run is the same to the bit.

    plan key · position (updates, ledger lines and their digest, bytes of metrics) · weights · optimisers · average ·
    clip norms · tables of values · how passes are cut · rows of metrics that waited for this checkpoint

Sampler and dropout have no state of their own: what a step draws is a function of its number and the seeds, or the key of
the run, which lies beside the checkpoints and in none of them (noise_key.py). A frozen base is not saved: its fingerprint
is, and a resumed run must have the same.
"""

from __future__ import annotations

import errno
import logging
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from taciturn.errors import DataError, MismatchError
from taciturn.privacy.certificates.ledger import GENESIS
from taciturn.training import optim
from taciturn.training.distributed.fsdp import cut_like, cut_optimiser, gathered, whole
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.passes import Work
from taciturn.training.plan import Plan
from taciturn.training.state.average import Average
from taciturn.training.state.noise_key import sync_folder
from taciturn.training.state.stuck_tensors import fingerprint
from taciturn.training.values.table import Table

logger = logging.getLogger("taciturn")


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands: updates done, ledger lines and bytes of metrics that belong to them; the digest of the last of
    those lines, and rows of metrics that are to be written behind those bytes."""

    steps: int
    ledger: int
    metrics: int
    digest: str = GENESIS
    held: bytes = b""


@dataclass(frozen=True, slots=True)
class State:
    """What updates change, and a fingerprint of what they do not.

    optimisers, clips (the clip norm of a private phase's next step), tables (of values, once released): by phase. average:
    None when there is none. frozen: of each parameter that is not trained, by every name it has in the state dictionary.
    plain, clipped: how the passes of steps without and with noise are run.
    """

    model: nn.Module
    optimisers: dict[str, torch.optim.Optimizer]
    clips: dict[str, float] = field(default_factory=dict)
    average: Average | None = None
    frozen: dict[str, list[int]] = field(default_factory=dict)
    plain: Work = field(default_factory=Work)
    clipped: Work = field(default_factory=Work)
    tables: dict[str, Table] = field(default_factory=dict)

    @staticmethod
    def begin(plan: Plan, model: nn.Module, plain: Work | None = None, clipped: Work | None = None) -> State:
        """The state before the first step of ``plan``."""
        frozen = {n: p for n, p in model.named_parameters(remove_duplicate=False) if not p.requires_grad}
        return State(
            model,
            {phase.name: optim.build(phase.optimiser, model) for phase in plan.phases},
            {phase.name: phase.clip for phase in plan.phases if phase.private},
            Average(model, plan.average) if plan.average is not None else None,
            {name: fingerprint(whole(p)).tolist() for name, p in frozen.items()},
            plain or Work(),
            clipped or Work(),
        )


def save(folder: Path, plan_key: str, position: Position, state: State, keep: int, world: World = ALONE) -> Path:
    """Write ``step-N.pt`` under ``folder`` (mode 0700), complete or not at all, and drop all but the newest ``keep``.

    Every process of ``world`` calls this with its part of the state; process 0 writes, the same file however many there
    are. Raises DataError when the disk is full or fails; the checkpoint before is then still there.
    """
    weights = {name: t for name, t in state.model.state_dict().items() if name not in state.frozen}
    content = {
        "plan": plan_key,
        "position": (position.steps, position.ledger, position.metrics),
        "digest": position.digest,
        "held": position.held.decode(),
        "work": [(work.asked, work.token_budget, work.scale) for work in (state.plain, state.clipped)],
        "model": gathered(weights, world.leads),
        "frozen": state.frozen,
        "optimisers": {n: gathered(o.state_dict(), world.leads) for n, o in state.optimisers.items()},
        "average": None if state.average is None else gathered(state.average.weights, world.leads),
        "clips": state.clips,
        "tables": {name: table.to_bytes() for name, table in state.tables.items()},
    }
    final = folder / f"step-{position.steps:09d}.pt"
    if not world.leads:
        return final
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    partial = final.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(final)
        sync_folder(folder)
    except (OSError, RuntimeError) as error:  # torch's writer turns the one into the other
        partial.unlink(missing_ok=True)
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError):
            raise
        raise DataError(
            f"checkpoint {final.name} could not be written ({cause.strerror}); {_before(folder)}: free space in {folder} "
            "and continue with --resume"
        ) from error
    for old in complete(folder)[:-keep]:
        old.unlink()
    return final


def is_due(steps: int, minutes: float, total: int) -> Callable[[int], bool]:
    """Whether a checkpoint is due after so many updates: every ``steps``, after ``minutes`` without one, and at the end."""
    saved = time.monotonic()

    def due(done: int) -> bool:
        nonlocal saved
        now = done % steps == 0 or done == total or time.monotonic() - saved >= 60 * minutes
        saved = time.monotonic() if now else saved
        return now

    return due


def complete(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first."""
    return sorted(folder.glob("step-*.pt"))


def load(folder: Path, plan_key: str, state: State, world: World = ALONE) -> Position:
    """Restore the newest intact checkpoint into ``state``; a damaged one is put aside as ``*.damaged``, with a warning.
    Every process of ``world`` reads it, and keeps its part.

    A run that was stopped before its first checkpoint begins again. Raises DataError when there is no run or no intact
    checkpoint, MismatchError when it belongs to another plan, corpus or base model.
    """
    path = world.once(lambda: _prepare(folder))
    if path is None:
        return Position(0, 0, 0)
    content = torch.load(path, weights_only=True, map_location="cpu", mmap=world.mesh is not None)
    if "digest" not in content:
        raise MismatchError(
            f"{path.name} was written by an older version of taciturn, which did not say what it releases: finish the run "
            "with that version, or train into a new folder"
        )
    if content["plan"] != plan_key:
        raise MismatchError(
            f"{path.name} was made by plan {content['plan']}, this plan is {plan_key}: the corpus, the configuration or a "
            "seed changed; use the run's own configuration, or train into a new folder"
        )
    _load_weights(path, content, state)
    for name, optimiser in state.optimisers.items():
        optimiser.load_state_dict(cut_optimiser(content["optimisers"][name], optimiser))
    if state.average is not None:
        for name, average in state.average.weights.items():
            average.copy_(cut_like(content["average"][name], average))
    state.clips.update(content["clips"])
    state.tables.update({name: Table.from_bytes(each) for name, each in content["tables"].items()})
    for work, (asked, token_budget, scale) in zip((state.plain, state.clipped), content["work"], strict=True):
        if asked == work.asked:  # else somebody changed it, and passes are cut in another way from here on
            work.token_budget, work.scale = token_budget, scale
    steps, lines, size = content["position"]
    return Position(steps, lines, size, content["digest"], content["held"].encode())


def _prepare(folder: Path) -> Path | None:
    """The checkpoint to go on from, None to begin again; what a kill left half-written is removed."""
    if not folder.is_dir():
        raise DataError(f"nothing to resume in {folder.parent}: expected {folder.name}/ in it; train without --resume")
    for stale in folder.glob("step-*.partial"):
        stale.unlink()
    path = _newest(folder)
    if path is None:
        logger.warning("%s has no checkpoint yet; beginning at the first step", folder.parent)
    return path


def _newest(folder: Path) -> Path | None:
    for path in reversed(complete(folder)):
        if _intact(path):
            return path
        logger.warning("%s is damaged and was put aside; going on from the checkpoint before it", path.name)
        path.rename(path.with_suffix(".damaged"))
    if any(folder.glob("step-*.damaged")):
        raise DataError(f"every checkpoint in {folder} is damaged: train again, into a new folder")
    return None


def _intact(path: Path) -> bool:
    """Whether every byte agrees with the CRC-32 that torch writes beside it."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.testzip() is None
    except (zipfile.BadZipFile, NotImplementedError, EOFError, OSError, ValueError):
        return False


def _load_weights(path: Path, content: dict[str, Any], state: State) -> None:
    then, now = content["frozen"], state.frozen
    changed = sorted(name for name in then.keys() | now.keys() if then.get(name) != now.get(name))
    if changed:
        raise MismatchError(
            f"{path.name} holds the trained tensors only, and belongs to a base model that differs in "
            f"{', '.join(changed[:4])}; load the base model the run began with"
        )
    own = state.model.state_dict()
    weights = {name: cut_like(t, own[name]) if name in own else t for name, t in content["model"].items()}
    result = state.model.load_state_dict(weights, strict=False)
    wrong = sorted({*result.unexpected_keys, *result.missing_keys} - now.keys())
    if wrong:
        raise MismatchError(f"{path.name} is of a model with other tensors: {', '.join(wrong[:4])}")


def _before(folder: Path) -> str:
    found = complete(folder)
    return f"{found[-1].name} is intact" if found else "there is none before it"


@contextmanager
def room_on_disk(out: Path) -> Iterator[None]:
    """Turn a full disk, wherever it is met while a run is written, into a DataError that says how to go on."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise
        raise DataError(
            f"{out} could not be written ({error.strerror}); {_before(out / 'checkpoints')}: free space and continue with "
            "--resume"
        ) from error
