"""How much of its text a run reads without noise: counted once, before the first step, for whoever signs.

The numbers depend on private text. They stay in the run's folder (mode 0600) and in the house's report; no certificate,
card or export has them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy import typing as npt

from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.phase import Phase
from taciturn.training.plan import Plan

if TYPE_CHECKING:
    from taciturn.mechanisms.materials import Materials
    from taciturn.models.tokens import Tokens

TOKENS = "tokens.json"
_MASKED = ("skeletons", "common")
_WHOLE = ("original", "redacted", "removed")
"""Parts that hold every record, the fullest text first."""


def tokens_read(plan: Plan, screened: ScreenedCorpus, ready: Materials) -> dict[str, int]:
    """tokens: of the text that training reads, each record and all its copies once, in the fullest form that is read.
    without_noise: those of them that some step without noise reads, too or only. Masks are not counted. Of a rule with noise
    at sensitive tokens alone, the others are read without it."""
    from taciturn.models.sequences import mask_id

    mask = mask_id(ready.tokenizer)
    read: dict[str, int] = {}
    open_: dict[str, int] = {}
    for phase in plan.phases:
        if not phase.moves:
            continue
        tokens = ready.data[phase.name]
        found = _by_part(phase, screened, tokens, lambda t: t.flat != mask)
        read |= found
        if not phase.private:
            open_ |= found
        elif tokens.sensitive is not None:
            open_ |= _by_part(phase, screened, tokens, lambda t: (t.flat != mask) & (t.sensitive == 0))
    without = _once(open_)
    return {"tokens": max(_once(read), without), "without_noise": without}


def _by_part(
    phase: Phase, screened: ScreenedCorpus, tokens: Tokens, counted: Callable[[Tokens], npt.NDArray[np.bool_]]
) -> dict[str, int]:
    """Tokens of each part that a phase reads, which lie one after the other."""
    ends = np.cumsum([screened.size(part) for part in phase.reads])
    if phase.rows is not None or ends[-1] != len(tokens):  # a chosen share of one part
        return {phase.reads[0]: sum(int(counted(piece).sum()) for piece in tokens.pieces())}
    copies = {part: _copies(screened) for part in phase.reads if part in _MASKED}
    kept = np.concatenate(
        [~copies[part] if part in copies else np.ones(screened.size(part), bool) for part in phase.reads]
    )
    found, start = np.zeros(len(ends), np.int64), 0
    for piece in tokens.pieces():
        rows = np.arange(start, start + len(piece))
        each = np.add.reduceat(np.append(counted(piece), False), piece.offsets[:-1], dtype=np.int64) * (
            piece.lengths > 0
        )
        np.add.at(found, np.searchsorted(ends, rows, side="right"), each * kept[rows])
        start += len(piece)
    return dict(zip(phase.reads, found.tolist(), strict=True))


def _copies(screened: ScreenedCorpus) -> npt.NDArray[np.bool_]:
    """Which skeletons are of copies, whose private record is empty: they repeat what was counted."""
    found = [rows["duplicate"] for rows in screened.stream("skeletons", "duplicate")]
    return np.array([copy for some in found for copy in some], bool)


def _once(parts: Mapping[str, int]) -> int:
    """Tokens of every record once: a skeleton is part of its private record."""
    whole = next((parts[part] for part in _WHOLE if part in parts), 0)
    masked = parts.get("common", parts.get("skeletons", 0))
    return max(whole, parts.get("public", 0) + parts.get("private", masked))
