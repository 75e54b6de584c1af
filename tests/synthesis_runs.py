"""A tiny certified run on disk: forty records, all of them trained on with noise (dpsgd), so its statements are proved."""

from __future__ import annotations

import json
from pathlib import Path

import taciturn as tt
from taciturn.api import TrainedRun

SECRET = "Zyxwvana"
TINY = {"hidden_size": 8, "embedding_size": 8}


def rows() -> list[dict[str, str]]:
    said = {"good": "the lamp came in time, thanks", "bad": "the lamp is broken"}
    return [
        {"text": f"{label}: {said[label]}, says {SECRET} number {i}.", "label": label}
        for i in range(40)
        for label in [("good", "bad")[i % 2]]
    ]


def write(path: Path, lines: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in lines))
    return path


def trained(folder: Path, mechanism: str = "dpsgd", certified: bool = True) -> TrainedRun:
    """The corpus in mail.jsonl, screened in screened/, the run in run/."""
    corpus = tt.read(write(folder / "mail.jsonl", rows()), label="label")
    screened = tt.screen(
        corpus, tt.policy("phone"), tt.policy("conservative"), out=folder / "screened", unit="document"
    )
    options = {"steps": 3, "batch": 8, "noise_multiplier": 2.0} if mechanism == "dpsgd" else {"epochs": 1}
    plan = tt.plan(mechanism, screened, {"name": "lstm", "options": TINY}, tokenizer="bytes", delta=1e-3, **options)
    run = tt.train(plan, folder / "run")
    if certified:
        run.certify()
    return run


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder by its path."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}
