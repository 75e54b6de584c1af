"""The lines of a ledger file, each sealed by a hash of all before it (ledger.py has what they add up to).

{"event": {...}, "hash": "…", "n": 0, "phase": "private", "prev": "…", "step": 0}    a step; perhaps with "release"
{"from": 4, "hash": "…", "n": 9, "prev": "…"}                                        the run went on from line 4
{"end": true, "hash": "…", "n": 20, "prev": "…"}                                     the run ended; nothing follows
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from taciturn.errors import GuaranteeError
from taciturn.privacy import limits
from taciturn.privacy.accounting.effort import check_effort
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import Event
from taciturn.privacy.certificates.digests import opened, too_deep

LINE_BYTES = 4096
_BYTE = 5  # evaluations (effort.py) that reading one takes, about
GENESIS = hashlib.sha256(b"taciturn ledger 1").hexdigest()
_STEP = {"n", "step", "phase", "event", "prev", "hash"}
_FIELDS = [_STEP, _STEP | {"release"}, {"n", "from", "prev", "hash"}, {"n", "end", "prev", "hash"}]


@dataclass(frozen=True, slots=True)
class Entry:
    """One step: ``n`` counts lines from 0, ``step`` is the engine's own number, ``phase`` the plan's name for it.

    release: a digest of what the step released, noise included, where a step that is done again must release the same.
    """

    n: int
    step: int
    phase: str
    event: Event
    prev: str
    hash: str
    release: str | None = None


@dataclass(frozen=True, slots=True)
class Mark:
    """start: the run went on from where it stood after so many lines, and steps since are lost. None: the run ended."""

    n: int
    start: int | None
    prev: str
    hash: str


Line = Entry | Mark


def sealed(body: dict[str, Any]) -> tuple[bytes, str]:
    """(the line of ``body``, its hash)."""
    seal = _seal(body)
    return orjson.dumps({**body, "hash": seal}, option=orjson.OPT_SORT_KEYS) + b"\n", seal


def entries(path: str | os.PathLike[str]) -> Iterator[Line]:
    """Every line of a ledger file, checked as it is read. GuaranteeError names the first one that does not hold."""
    for line, _ in checked(Path(path), tolerate_torn=False):
        yield line


def is_finished(path: Path) -> bool:
    """Whether the last line says that the run ended, without a check of the others; False where there is no file."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    except OSError:
        return False
    return last.startswith(b'{"end":true,')


def digest_after(path: Path, lines: int) -> str | None:
    """The digest after so many lines, None when there are fewer."""
    if not lines or not path.exists():
        return None if lines else GENESIS
    return next((line.hash for line, _ in checked(path, tolerate_torn=True) if line.n + 1 == lines), None)


def checked(path: Path, *, tolerate_torn: bool) -> Iterator[tuple[Line, int]]:
    """Lines with the byte position after each."""
    digest, position, over = GENESIS, 0, False
    known: dict[bytes, Event] = {}
    with opened(path) as file:
        check_effort(_BYTE * os.fstat(file.fileno()).st_size)
        for n, text in enumerate(iter(lambda: file.readline(LINE_BYTES), b"")):
            if not text.endswith(b"\n") and len(text) == LINE_BYTES:
                raise GuaranteeError(f"{path.name} line {n + 1}: longer than {LINE_BYTES} bytes, which no step is")
            if not text.endswith(b"\n"):
                if tolerate_torn:
                    return
                raise GuaranteeError(f"{path.name} line {n + 1}: torn in the middle; resume the run to repair it")
            if over:
                raise GuaranteeError(f"{path.name} line {n + 1}: comes after the end of the run; the ledger was edited")
            line = _line(path.name, n, text, digest, known)
            digest, position = line.hash, position + len(text)
            over = isinstance(line, Mark) and line.start is None
            yield line, position


def _seal(body: dict[str, Any]) -> str:
    return hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _line(name: str, n: int, text: bytes, digest: str, known: dict[bytes, Event]) -> Line:
    def broken(why: str) -> GuaranteeError:
        return GuaranteeError(f"{name} line {n + 1}: {why}; the ledger was edited or damaged")

    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise broken("not JSON") from error
    if not isinstance(body, dict) or set(body) not in _FIELDS or too_deep(body, 4):
        raise broken("not a ledger entry")
    if orjson.dumps(body, option=orjson.OPT_SORT_KEYS) + b"\n" != text:
        raise broken("not written as taciturn writes it")
    seal = body.pop("hash")
    if type(body["n"]) is not int or body["n"] != n:
        raise broken(f"numbered {limits.short(body['n'])}, expected {n}")
    if body["prev"] != digest:
        raise broken("does not follow from the line before")
    if seal != _seal(body):
        raise broken("its hash does not match")
    if "end" in body:
        if body["end"] is not True:
            raise broken("not a ledger entry")
        return Mark(n, None, digest, seal)
    if "from" in body:
        if type(body["from"]) is not int or not 0 <= body["from"] <= n:
            raise broken(f"goes on from line {limits.short(body['from'])}, which is not before it")
        return Mark(n, body["from"], digest, seal)
    step, phase = body["step"], body["phase"]
    if type(step) is not int or not 0 <= step <= limits.STEPS or not isinstance(phase, str) or len(phase) > 64:
        raise broken("step or phase is not valid")
    if "release" in body and not (isinstance(body["release"], str) and len(body["release"]) <= 64):
        raise broken("release is not a digest")
    key = orjson.dumps(body["event"])
    if key not in known:
        try:
            known[key] = from_json(body["event"])
        except GuaranteeError as error:
            raise broken(str(error)) from error
        if len(known) > limits.KINDS:
            raise broken(f"more than {limits.KINDS} kinds of steps")
    return Entry(n, step, phase, known[key], digest, seal, body.get("release"))
