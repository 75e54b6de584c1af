"""A model others can load, with its card, its certificate and what the certificate is recomputed from."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from taciturn.errors import DataError, TaciturnError
from taciturn.mechanisms.lock import reading
from taciturn.mechanisms.run import Run
from taciturn.models.hf import load_adapted, load_exported, task_of
from taciturn.models.lora import merge
from taciturn.models.saved_dtype import rounded
from taciturn.privacy.certificates import cast
from taciturn.privacy.certificates.cast import Dtype
from taciturn.privacy.certificates.certificate import CERTIFICATE, Certificate
from taciturn.privacy.certificates.exported_model import COPIED
from taciturn.reporting import card
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.hub import Hub

TOLERANCE = 1e-5
ROUNDED = 1e-2
"""Of losses after rounding to bfloat16: where a sum was made elsewhere, a few weights fall on the other side (measured: 7e-4
of a GPT-2 shape of 8 × 512)."""


def export(run: Path, out: Path, hub: Hub | None = None, dtype: Dtype | None = None) -> float:
    """Write ``out`` whole or not at all; return the largest difference in loss between the run's model and the copy, and,
    where there is an adapter, between the model and the adapter on its base.

    hub: what the card says of base model, language and licence. dtype: the copy's weights in another number type than those
    that were certified (privacy/certificates/cast.py); an adapter beside them stays as it is. All files have the mode 0644,
    all folders 0755, and none names a path of this machine.

    Raises DataError when ``out`` exists, for a cast of a run without a certificate, and for a weight that float16 cannot
    hold, TaciturnError when the copy or the adapter does not score as the original does.
    """
    with reading(run):
        return _export(run, out, hub or Hub(), dtype)


def _export(run: Path, out: Path, hub: Hub, dtype: Dtype | None) -> float:
    if out.exists():
        raise DataError(f"{out} exists: name a new folder, so that nothing of an older export stays in it")
    source = Run(run).model_folder
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    shutil.copytree(source, partial)
    for name in COPIED:
        if (run / name).is_file():
            shutil.copy2(run / name, partial / name)
    try:
        if dtype is not None:
            cast.write(source, partial, dtype, _certified(run))
        card.write(partial, RunView.load(run), hub)
        for path in (partial, *partial.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        difference = _tested(source, partial, base_of(run), dtype)
    except BaseException:
        shutil.rmtree(partial)
        raise
    partial.rename(out)
    return difference


def _certified(run: Path) -> str:
    """The digest of the run's certificate, without which a cast would be of nothing that anybody vouched for."""
    if not (run / CERTIFICATE).is_file():
        raise DataError(f"{run} has no {CERTIFICATE}, and a cast names the one it is of: certify the run first")
    return Certificate.read(run / CERTIFICATE).digest


def base_of(run: Path) -> str:
    """Where the run's base lies on this machine, which no exported file says."""
    return str(Run(run).config.model.name)


def _tested(source: Path, copy: Path, base: str, dtype: Dtype | None) -> float:
    model, copied = load_exported(source)[0], load_exported(copy)[0]
    original = _losses(model)
    if dtype is None:
        difference = _largest(original, copied, "the exported model's")
    else:  # torch rounds the certified weights once more; what rounding itself costs is told, and no error
        difference = float((original - _losses(copied)).abs().max())
        _largest(_losses(_cast_to(model, getattr(torch, dtype))), copied, "the cast model's")
    if (copy / "adapter").is_dir():
        adapted, allowed = load_adapted(copy, base), TOLERANCE
        if _written_in(source) == "bfloat16":
            adapted, allowed = _in_bfloat16(adapted), ROUNDED
        difference = max(difference, _largest(original, adapted, "the adapter's (on its base)", allowed))
    return difference


def _cast_to(model: Any, dtype: torch.dtype) -> Any:
    """A float32 model whose weights have gone through ``dtype``."""
    with torch.no_grad():
        for tensor in model.state_dict().values():
            if tensor.is_floating_point():
                tensor.copy_(tensor.to(dtype))
    return model


def _written_in(folder: Path) -> str:
    """The number type of a model's files, as its configuration names it."""
    return str(json.loads((folder / "config.json").read_text("utf-8")).get("dtype"))


def _in_bfloat16(adapted: Any) -> Any:
    """The adapter added to its base, then rounded as the model beside it was: else the rounding would hide what differs."""
    merged = merge(adapted)
    merged.load_state_dict(rounded(merged, torch.bfloat16))
    return merged


def _largest(original: Tensor, model: Any, whose: str, allowed: float = TOLERANCE) -> float:
    difference = float((original - _losses(model)).abs().max())
    if not difference <= allowed:
        raise TaciturnError(f"{whose} loss differs by {difference:.2g}, expected at most {allowed:g}")
    return difference


def _losses(model: Any) -> Tensor:
    """Mean losses of a few random sequences, each against itself; of a classifier, against its last class."""
    config = model.config
    ids = torch.from_numpy(np.random.default_rng(0).integers(0, config.vocab_size, (4, 16)))
    labels = torch.full((4,), config.num_labels - 1) if task_of(config) == "classify" else ids
    with torch.no_grad():
        return torch.stack(
            [model(input_ids=row[None], labels=label[None]).loss for row, label in zip(ids, labels, strict=True)]
        )
