"""Pieces screened by several processes of this machine."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

from taciturn.errors import LostProcess
from taciturn.screening.corpus.piece import Job
from taciturn.screening.corpus.store import Finished, screen_piece
from taciturn.text.atomic import create
from taciturn.text.readers.pieces import Piece

Progress = Callable[[int, int], None]
"""Told (records, code points) as they are screened."""

_TRIES = 3
_LOOK = 0.25  # seconds between looks at the workers' counters


def pooled(
    job: Job, pieces: Sequence[Piece], folder: Path, originals: bool, workers: int, progress: Progress
) -> Iterator[Finished]:
    """The pieces, screened, in their order. Raises LostProcess when a piece loses its worker again and again."""
    done: dict[int, Finished] = {}
    rest = list(pieces)
    for turn in range(_TRIES):
        try:
            for finished in _pool(job, [p for p in rest if p.number not in done], folder, originals, workers, progress):
                done[finished.done.number] = finished
                while rest and rest[0].number in done:
                    yield done.pop(rest.pop(0).number)
        except BrokenProcessPool:
            if turn == _TRIES - 1:
                raise lost_process(rest[0]) from None
        else:
            return


def lost_process(piece: Piece) -> LostProcess:
    where = f"part {piece.number}" if piece.stretch is None else f"part {piece.number} (from {piece.stretch.start})"
    return LostProcess(
        f"worker processes died {_TRIES} times, the last time at {where}; most likely memory ran out: use fewer workers. "
        "What is finished was kept; run the same command again to go on"
    )


def _pool(
    job: Job, pieces: Sequence[Piece], folder: Path, originals: bool, workers: int, progress: Progress
) -> Iterator[Finished]:
    """Pieces as they are finished. Workers are spawned: a fork of a process with threads may hang."""
    path = folder / "work" / "job"
    # What a process is started with goes through a pipe, and writing much to the pipe of one that dies at once never ends.
    with create(path) as handle:
        pickle.dump(job, handle)
    context = multiprocessing.get_context("spawn")
    counters = context.Array("q", 2)
    told = [0, 0]
    with ProcessPoolExecutor(workers, context, _begin, (path, folder, originals, counters)) as pool:
        waiting: set[Future[Finished]] = {pool.submit(_work, piece) for piece in pieces}
        try:
            while waiting:
                ready, waiting = wait(waiting, _LOOK, FIRST_COMPLETED)
                with counters:
                    now = [counters[0], counters[1]]
                if now != told:
                    progress(now[0] - told[0], now[1] - told[1])
                    told = now
                for future in ready:
                    yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


_worker: dict[str, Any] = {}


def _begin(path: Path, folder: Path, originals: bool, counters: Any) -> None:
    """A worker's first act. It ends with its parent: nobody else would end it if that was killed."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()

    with path.open("rb") as handle:
        job: Job = pickle.load(handle)

    def progress(records: int, characters: int) -> None:
        with counters:
            counters[0] += records
            counters[1] += characters

    _worker["screen"] = lambda piece: screen_piece(job, piece, folder, originals, progress)


def _follow(parent: Any) -> None:
    parent.join()
    os._exit(1)


def _work(piece: Piece) -> Finished:
    finished: Finished = _worker["screen"](piece)
    return finished
