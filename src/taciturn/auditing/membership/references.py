"""Reference models on demand: models as the attacked one might have been without the records under attack.

The likelihood ratio and RMIA read a record against models trained on other records of the same kind. These are trained here
with the attacked run's model, tokenizer, optimiser, batch size and epochs, by ordinary training (mechanism "sgd"), whatever
the run's mechanism: a reference protects nobody, so its texts must be public to the auditor, and its folders are as private
as the texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from taciturn.auditing.membership.scores import Model
from taciturn.errors import UsageError
from taciturn.mechanisms.config import parse
from taciturn.mechanisms.run import Run, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.sgd import Config
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import Everything, Policy
from taciturn.text.readers import Corpus


def references(
    run: str | Path | Run,
    texts: Sequence[str],
    k: int,
    out: str | Path,
    *,
    share: float | None = None,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
) -> list[Path]:
    """Train ``k`` reference models into ``out``/0, ``out``/1, …, each on a random part of ``texts``; their run folders.

    run: the attacked run's folder. texts: of the same kind as its training text, and none of the members or non-members of
    the attack (one random split in two gives both halves). share: how large a part is, 1/2 by default and all of them for
    one model. options: sgd's, over what the run's own options come to. A folder that is there already is kept, so that an
    interrupted call goes on. Raises UsageError for too few texts.
    """
    attacked = run if isinstance(run, Run) else Run(Path(run))
    size = round((share if share is not None else 1 / 2 if k > 1 else 1) * len(texts))
    if k < 1 or not 1 <= size <= len(texts):
        raise UsageError(f"references: expected k ≥ 1 and a part of at least one text, found k = {k}, {size} texts")
    config = attacked.config
    rng = np.random.default_rng(seed)
    folders = []
    for i in range(k):
        rows = np.sort(rng.permutation(len(texts))[:size])
        folder = Path(out) / str(i)
        folders.append(folder)
        if (folder / "model").is_dir():
            continue
        everything = Policy((Everything(),), "everything")
        screened = screen(Corpus.from_texts([texts[j] for j in rows]), everything, everything, unit="document")
        train(_config(config, {**_plain_options(config), **(options or {})}, seed + i), folder, screened=screened)
    return folders


def loaded(folders: Sequence[str | Path]) -> list[Model]:
    """The models of run folders, as ``references=`` of an attack takes them."""
    return [Run(Path(folder)).model() for folder in folders]


def _config(config: RunConfig, options: Mapping[str, Any], seed: int) -> RunConfig:
    raw = config.model_dump()
    raw |= {"mechanism": "sgd", "options": dict(options), "epsilon": None, "delta": None}
    raw["seeds"] = {"model": seed, "data": seed, "noise": "os"}
    raw["train"] |= {"valid": (), "evaluations": 0}
    return parse(RunConfig, raw, "reference")


def _plain_options(config: RunConfig) -> dict[str, Any]:
    """What the run's options say of plain steps: its own for sgd, those of the noiseless phase for the others."""
    known = Config.model_fields
    for table in (config.options, *(v for v in config.options.values() if isinstance(v, Mapping))):
        if "epochs" in table:
            return {key: value for key, value in table.items() if key in known}
    return {}
