"""A planted secret is nowhere but where it must be: the input, the screened folder, the weights and the audit's own file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leaks import told

ALLOWED = {"talk.jsonl", "canaries.json", "family.txt"}
PRIVATE_FOLDERS = {"screened", "again", "checkpoints"}


def test_p40_no_secret_in_anything_written_or_said(story: Any) -> None:
    secrets = story.secrets
    files = [
        path
        for path in story.folder.rglob("*")
        if path.is_file()
        and path.name not in ALLOWED
        and not PRIVATE_FOLDERS & set(path.relative_to(story.folder).parts)
    ]
    assert {"report.html", "certificate.json", "metrics.jsonl", "audit.json", "README.md", "tokenizer.json"} <= {
        path.name for path in files
    }
    for secret in secrets:
        assert not told(secret, story.said)
        for path in files:
            assert not told(secret, path.read_bytes()), f"{path.relative_to(story.folder)} holds a planted secret"


def test_private_folders_are_closed_to_others(story: Any) -> None:
    for folder in ("screened", "run/checkpoints"):
        path: Path = story.folder / folder
        assert path.stat().st_mode & 0o077 == 0, folder
