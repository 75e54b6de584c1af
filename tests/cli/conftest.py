"""A tiny corpus on disk and the whole command line run on it once."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from taciturn.cli.main import run

SECRET = "483910"
NAME = "Zyxwvana Quillfeather"
PHONE = "(555) 010-7788"


@dataclass(frozen=True, slots=True)
class Story:
    """What the commands printed, and the folder they wrote into."""

    folder: Path
    said: str
    secrets: tuple[str, ...] = (SECRET, NAME, *NAME.split(), PHONE, PHONE[-8:])


def write_corpus(path: Path) -> None:
    """60 small documents: plain talk, a phone the policy finds, a name and a canary it misses."""
    lines = []
    for i in range(60):
        text = [
            "good morning, how can I help you today?",
            "i would like to know where my parcel is.",
            f"my number is {PHONE}, please call me back.",
            f"sure, my name is {NAME} and i live here.",
            f"My ID is: {SECRET}",
            "thank you very much, have a nice day.",
        ][i % 6]
        start = text.find(NAME)
        spans = [{"start": start, "end": start + len(NAME), "label": "name"}] if start >= 0 else []
        lines.append(json.dumps({"text": text, "user": f"u{i % 7}", "spans": spans}))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    """screen → plan → train → certify → verify → audit → report → export → generate, each with exit code 0."""
    folder = tmp_path_factory.mktemp("story")
    write_corpus(folder / "talk.jsonl")
    (folder / "canaries.json").write_text(json.dumps({"template": "My ID is: {}", "secrets": [SECRET], "copies": 10}))
    (folder / "family.txt").write_text(f"{NAME}\n{SECRET}\n")
    small = ["--set", "options.public.epochs=2", "--set", "options.private.steps=8", "--set", "options.private.batch=6",
             "--set", "model.options.hidden_size=16", "--set", "model.options.embedding_size=16",
             "--set", "train.evaluations=2"]  # fmt: skip
    f = str(folder)
    commands = [
        ["screen", f"{f}/talk.jsonl", "--user", "user", "-p", "phone,email", "-o", f"{f}/screened"],
        ["plan", "crt", f"{f}/screened", "--tokenizer", "bytes", "--epsilon", "3", "--delta", "1e-3",
         "--valid", f"{f}/talk.jsonl", *small, "-o", f"{f}/run.toml"],
        ["train", f"{f}/run.toml", "-o", f"{f}/run"],
        ["certify", f"{f}/run", "--group", f"family={f}/family.txt"],
        ["verify", f"{f}/run/certificate.json"],
        ["audit", f"{f}/run", "--attack", "exposure", "--canaries", f"{f}/canaries.json"],
        ["report", f"{f}/run", "-o", f"{f}/report.html"],
        ["export", f"{f}/run", "-o", f"{f}/model"],
        ["verify", f"{f}/model"],
        ["generate", f"{f}/model", "--prompt", "good", "--max-tokens", "5"],
    ]  # fmt: skip
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        for command in commands:
            code = run(command)
            assert code == 0, f"taciturn {command[0]} ended with {code}:\n{said.getvalue()[-2000:]}"
    return Story(folder, said.getvalue())
