"""Atomic checkpoints: one file holds weights, optimisers, random state, position and how far the ledger had come."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from taciturn.errors import DataError, MismatchError

KEEP = 2


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands: updates done, ledger lines and bytes of metrics that belong to them."""

    steps: int
    ledger: int
    metrics: int


def save(folder: Path, plan_key: str, position: Position, model: nn.Module, optimisers: dict[str, Any]) -> Path:
    """Write ``step-N.pt`` under ``folder`` (mode 0700), complete or not at all, and drop all but the newest ones.

    The seedless secret source is not stored: a resumed run draws fresh noise, which costs nothing because no step that
    was lost had been released.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    state = {
        "plan": plan_key,
        "position": (position.steps, position.ledger, position.metrics),
        "model": model.state_dict(),
        "optimisers": {name: o.state_dict() for name, o in optimisers.items()},
        "torch_rng": torch.get_rng_state(),
    }
    final = folder / f"step-{position.steps:09d}.pt"
    partial = final.with_suffix(".partial")
    try:
        with partial.open("wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise DataError(
            f"checkpoint {final.name} could not be written ({error.strerror}); the one before it is intact: free space in "
            f"{folder} and continue with --resume"
        ) from error
    partial.rename(final)
    _sync(folder)
    for old in complete(folder)[:-KEEP]:
        old.unlink()
    return final


def complete(folder: Path) -> list[Path]:
    """Finished checkpoints, oldest first."""
    return sorted(folder.glob("step-*.pt"))


def load(folder: Path, plan_key: str, model: nn.Module, optimisers: dict[str, Any]) -> Position:
    """Restore the newest checkpoint into ``model`` and ``optimisers``.

    Raises DataError when there is none, MismatchError when it belongs to another plan or corpus.
    """
    found = complete(folder)
    if not found:
        raise DataError(f"nothing to resume in {folder.parent}: no checkpoint was written yet; train without --resume")
    state = torch.load(found[-1], weights_only=True)
    if state["plan"] != plan_key:
        raise MismatchError(
            f"{found[-1].name} was made by plan {state['plan']}, this plan is {plan_key}: the corpus, the configuration or "
            "a seed changed; use the run's own configuration, or train into a new folder"
        )
    model.load_state_dict(state["model"])
    for name, optimiser in optimisers.items():
        optimiser.load_state_dict(state["optimisers"][name])
    torch.set_rng_state(state["torch_rng"])
    return Position(*state["position"])


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
