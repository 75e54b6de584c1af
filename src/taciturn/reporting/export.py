"""A model others can load, with its card, its certificate and what the certificate is recomputed from."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import torch

from taciturn.errors import DataError, TaciturnError
from taciturn.mechanisms.run import Run
from taciturn.models.hf import load_exported
from taciturn.reporting import card
from taciturn.reporting.view import RunView

BESIDE = ("certificate.json", "plan.json", "evidence.json", "ledger.jsonl")
TOLERANCE = 1e-5


def export(run: Path, out: Path) -> float:
    """Write ``out`` whole or not at all; return the largest difference in loss between the run's model and the copy.

    Raises DataError when ``out`` exists, TaciturnError when the copy does not score as the original does.
    """
    if out.exists():
        raise DataError(f"{out} exists: name a new folder, so that nothing of an older export stays in it")
    source = Run(run).model_folder
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial)
    for name in BESIDE:
        if (run / name).is_file():
            shutil.copy2(run / name, partial / name)
    card.write(partial, RunView.load(run))
    difference = _difference(source, partial)
    if not difference <= TOLERANCE:
        shutil.rmtree(partial)
        raise TaciturnError(f"the exported model's loss differs by {difference:.2g}, expected at most {TOLERANCE:g}")
    partial.rename(out)
    return difference


def _difference(a: Path, b: Path) -> float:
    """Largest difference of the mean losses of a few random sequences under two model folders."""
    losses = []
    for folder in (a, b):
        model, _ = load_exported(folder)
        ids = torch.from_numpy(np.random.default_rng(0).integers(0, model.config.vocab_size, (4, 16)))
        with torch.no_grad():
            losses.append(torch.stack([model(input_ids=row[None], labels=row[None]).loss for row in ids]))
    return float((losses[0] - losses[1]).abs().max())
