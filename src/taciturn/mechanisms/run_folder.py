"""The folder of a run: what begins it, what may go on with it, and what later steps read from it.

run.toml       the configuration, complete          plan.json      what it came to: phases, events, steps
ledger.jsonl   every step's event                   metrics.jsonl  numbers per step
evidence.json  what the guarantee rests on          model/         the exported model
tokens.json    how many were read, with noise or not  tensorboard/  wandb/  by report_to
checkpoints/   (mode 0700) to resume from, with the
               lock and, until the end, the noise key
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.errors import DataError, MismatchError
from taciturn.mechanisms.config import existing
from taciturn.mechanisms.corpus_history import ENDED, not_rewound
from taciturn.mechanisms.planning import evidence_of
from taciturn.mechanisms.settings import RunConfig, load_config, save_config
from taciturn.mechanisms.tokens_read import TOKENS
from taciturn.privacy.certificates.certificate import LEDGER
from taciturn.privacy.certificates.ledger_lines import is_finished
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.atomic import write_bytes, write_text
from taciturn.training.plan import Plan


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder. ``plan`` is what was run; ``finished`` says whether the model was exported and the run ended."""

    folder: Path

    @property
    def plan(self) -> dict[str, Any]:
        data = json.loads(existing(self.folder / "plan.json", "plan; is this a run folder?").read_text())
        assert isinstance(data, dict)
        return data

    @property
    def config(self) -> RunConfig:
        return load_config(self.folder / "run.toml")

    @property
    def finished(self) -> bool:
        return (self.folder / "model").is_dir() and is_finished(self.folder / LEDGER)

    @property
    def model_folder(self) -> Path:
        folder = self.folder / "model"
        if not folder.is_dir():
            if not (self.folder / "plan.json").is_file():
                raise DataError(
                    f"{self.folder}: training never began there (plan.json is missing); `taciturn train` writes one"
                )
            raise DataError(f"{self.folder} holds no finished model: continue it with taciturn train --resume")
        return folder

    def model(self) -> tuple[Any, Any]:
        """(model, tokenizer), in evaluation mode."""
        from taciturn.models.hf import load_exported

        return load_exported(self.model_folder)


def corpus_salt(out: Path, resume: bool) -> bytes:
    """The secret salt of a run's corpus key, kept beside the checkpoints (mode 0600); made for a new run."""
    if not resume and (out / "plan.json").exists():
        raise DataError(f"{out} already holds a run: continue it with --resume, or name another folder")
    path = out / "checkpoints" / "corpus.salt"
    if not resume:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(path, os.urandom(32), 0o600)
    return existing(path, "run to resume").read_bytes()


def begin(
    config: RunConfig, plan: Plan, screened: ScreenedCorpus, out: Path, validated: bool, read: Mapping[str, int]
) -> None:
    """Write what a run is, before its first step. validated: whether it measures held-out text; read: see tokens_read.py."""
    save_config(config, out / "run.toml")
    write_text(out / "plan.json", json.dumps(plan.to_json(), indent=1, sort_keys=True))
    evidence = evidence_of(config, plan, screened, validated)
    write_text(out / "evidence.json", json.dumps(evidence.to_json(), indent=1, sort_keys=True))
    write_bytes(out / TOKENS, json.dumps(dict(read)).encode(), 0o600)  # depends on private text, and is not exported


def check_resumable(plan: Plan, corpus: Path | None, out: Path) -> None:
    """Refuse to resume what is another run, has ended, or was put back to an earlier state."""
    _same_plan(plan, out)
    if is_finished(out / LEDGER):
        from taciturn.training.state.noise_key import destroy_key

        destroy_key(out / "checkpoints")  # a process that was killed as its run ended may have left it
        raise DataError(f"{out}: this run has ended. {ENDED}")
    not_rewound(plan, corpus, out)


def _same_plan(plan: Plan, out: Path) -> None:
    before = Run(out).plan
    now = json.loads(json.dumps(plan.to_json()))
    changed = sorted(key for key in now.keys() | before.keys() if now.get(key) != before.get(key))
    if changed:
        raise MismatchError(
            f"{out} was begun with another {', '.join(changed)}: resume needs the corpus, configuration and seeds the run "
            "began with; train into a new folder instead"
        )
