"""What the folders of a project stand at: runs begun or paid for, evidence before labels, one history for all screenings."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from taciturn.privacy.certificates.history import RUNS
from taciturn.text.atomic import write_bytes


def resumable(run: Path) -> bool:
    """Whether a run has begun. One killed while its first files were written has taken no step, and begins anew."""
    if not (run / "plan.json").is_file():
        return False
    if (run / "evidence.json").is_file():
        return True
    (run / "plan.json").unlink()
    return False


def paid_for(run: Path) -> bool:
    """Whether a run took a step with the private text, which is paid for however it ended."""
    return (run / "ledger.jsonl").is_file()


def fresh_evidence(run: Path) -> None:
    """evidence.json as training left it. Certifying adds what labels and groups say; changed ones must not add up."""
    kept = run / "evidence.trained.json"
    if kept.is_file():
        write_bytes(run / "evidence.json", kept.read_bytes())
    else:
        write_bytes(kept, (run / "evidence.json").read_bytes())


def share_history(screened: Path, others: Sequence[Path]) -> None:
    """Put the runs made on other screenings of the same text into the history of this one, so that its certificates count
    them: a secret is in a record of each, and what was spent on it adds up however the text was cut."""
    target = screened / RUNS
    known = target.read_bytes().splitlines() if target.is_file() else []
    missing = [
        line
        for other in others
        if (other / RUNS).is_file()
        for line in (other / RUNS).read_bytes().splitlines()
        if line.strip() and line not in known
    ]
    if not missing:
        return
    descriptor = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write((b"" if not known or target.read_bytes().endswith(b"\n") else b"\n") + b"\n".join(missing) + b"\n")
        os.fsync(file.fileno())
