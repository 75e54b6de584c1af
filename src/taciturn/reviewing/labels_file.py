"""Which file a reviewer writes, and how it begins: drawn like `taciturn sample`, or the same sample as somebody else's."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import DataError, UsageError
from taciturn.reviewing.desk import alone
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import Line, read, write
from taciturn.screening.measuring.corrections import export
from taciturn.screening.measuring.sample import By, draw
from taciturn.screening.policies.base import Policy

LABELS, CORRECTED = "labels.jsonl", "corrected.jsonl"
_NAME = re.compile(r"[A-Za-z0-9_]{1,32}")


@dataclass(frozen=True, slots=True)
class Names:
    """base: of one person, or of the merged labels. Others stand beside it: ``labels-ana.jsonl``."""

    base: Path

    def of(self, reviewer: str | None) -> Path:
        """Raises UsageError for a name that is not letters, digits and underscores."""
        if reviewer is None:
            return self.base
        if not _NAME.fullmatch(reviewer):
            raise UsageError(
                "--reviewer takes up to 32 letters, digits and underscores; the name is part of a file name"
            )
        return self.base.with_name(f"{self.base.stem}-{reviewer}{self.base.suffix}")

    def people(self) -> dict[str, Path]:
        """Files of reviewers, by name."""
        head, tail = f"{self.base.stem}-", self.base.suffix
        files = sorted(f for f in self.base.parent.glob(f"*{tail}") if f.is_file() and f.name.startswith(head))
        named = {f.name[len(head) : len(f.name) - len(tail)]: f for f in files}
        return {name: file for name, file in named.items() if _NAME.fullmatch(name)}


@dataclass(frozen=True, slots=True)
class Design:
    """How to draw. n: 400 if not given. Numbers that are given must be those of a sample that is there already."""

    n: int | None = None
    by: By = "simple"
    seed: int | None = None

    def agrees(self, lines: list[Line], name: str) -> None:
        """Raises UsageError if ``lines`` were drawn otherwise."""
        for what, given, found in (("-n", self.n, len(lines)), ("--seed", self.seed, lines[0].seed)):
            if given is not None and given != found:
                raise UsageError(
                    f"{name} holds a sample with {what} {found}, and {given} was asked for; leave {what} out to go on with "
                    "it, or name another file with --labels"
                )


def begin(path: Path, names: Names, design: Design, screened: ScreenedCorpus, pi: Policy | None) -> bool:
    """Make the file at ``path`` if there is none: the sample of the files beside it, unlabelled, or a new one. True if made.

    pi: given for corrections, whose lines begin with what it finds. Raises DataError for a file of the other kind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with alone(names.base.with_name(names.base.name + ".draw"), wait=True):
        beside = [file for file in (path, names.base, *names.people().values()) if file.exists()]
        if not beside:
            write(path, _drawn(screened, design, pi))
            return True
        lines = read(beside[0])
        if (lines[0].salt is not None) != (pi is not None):
            kind = "a sample to label, not one to correct; leave --corrections out" if pi else "made with --corrections"
            raise DataError(f"{beside[0].name} is {kind}, or name another file with --labels")
        design.agrees(lines, beside[0].name)
        if path.exists():
            return False
        write(path, _unlabelled(lines, screened, pi))
        return True


def _drawn(screened: ScreenedCorpus, design: Design, pi: Policy | None) -> list[Line]:
    n = 400 if design.n is None else design.n
    if pi is None:
        return draw(screened, n, design.by, seed=design.seed)
    if design.by != "simple":
        raise UsageError("records to correct are a simple random sample; leave --by out")
    return export(screened, pi, n, seed=design.seed)


def _unlabelled(lines: list[Line], screened: ScreenedCorpus, pi: Policy | None) -> list[Line]:
    """The same sample as nobody has looked at it yet."""
    if pi is None:
        return [line.model_copy(update={"spans": (), "label_status": "todo"}) for line in lines]
    again = export(screened, pi, len(lines), lines[0].population, lines[0].seed)
    return [line.model_copy(update={"salt": lines[0].salt}) for line in again]
