"""Who screens the pieces: this process, several processes here, or Ray. The bytes that come out are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from taciturn.screening.corpus.piece import Job
from taciturn.screening.corpus.store import Finished, screen_piece
from taciturn.screening.engines.local import Progress, pooled
from taciturn.text.readers.pieces import Piece

Engine = Literal["local", "ray"]


def run(
    engine: Engine, workers: int, job: Job, pieces: Sequence[Piece], folder: Path, originals: bool, progress: Progress
) -> Iterator[Finished]:
    """The pieces, screened, in their order. Raises LostProcess when a piece loses its worker again and again."""
    if engine == "ray":
        from taciturn.screening.engines.ray import distributed

        return distributed(job, pieces, folder, originals, workers, progress)
    if workers == 1 or len(pieces) == 1:
        return (screen_piece(job, piece, folder, originals, progress) for piece in pieces)
    return pooled(job, pieces, folder, originals, min(workers, len(pieces)), progress)
