"""The same pieces on Ray Data, on one machine or a cluster.

A node that sees the output folder writes into it. Another one screens into a folder of its own, and the files of each piece
come back through Ray: nodes need to share nothing but the input, by path or by URL.
"""

from __future__ import annotations

import logging
import os
import pickle
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from taciturn.errors import LostProcess, MissingExtra, TaciturnError
from taciturn.screening.corpus.piece import Job
from taciturn.screening.corpus.store import Finished, make_folders, mark, put_in, recall, screen_piece, taken_out
from taciturn.screening.engines.local import Progress
from taciturn.text.readers.pieces import Piece


class Screener:
    """An actor of Ray Data: policies are loaded once, and each batch is the number of one piece.

    work: the job and its pieces, pickled, in Ray's store. here: the mark of the output folder (``store.mark``).
    """

    def __init__(self, work: Any, folder: Path, here: bytes | None, originals: bool) -> None:
        self._reference, self._folder, self._here, self._originals = work, folder, here, originals

    @cached_property
    def _work(self) -> tuple[Job, dict[int, Piece]]:
        # Not in __init__: an actor that fails there is started again for ever.
        import ray

        job, pieces = pickle.loads(ray.get(self._reference))
        return job, {piece.number: piece for piece in pieces}

    def __call__(self, batch: pa.Table) -> pa.Table:
        job, pieces = self._work
        [number] = batch["piece"].to_pylist()
        files: list[tuple[str, bytes]] = []
        if mark(self._folder) == self._here:
            screen_piece(job, pieces[number], self._folder, self._originals)
        else:
            with tempfile.TemporaryDirectory() as scratch:  # of mode 0700
                make_folders(Path(scratch), self._originals)
                screen_piece(job, pieces[number], Path(scratch), self._originals)
                files = taken_out(Path(scratch), number)
        return pa.table([[number], [[name for name, _ in files]], [[data for _, data in files]]], schema=_COMES_BACK)


_COMES_BACK = pa.schema({"piece": pa.int64(), "names": pa.list_(pa.string()), "files": pa.list_(pa.large_binary())})


def distributed(
    job: Job, pieces: Sequence[Piece], folder: Path, originals: bool, workers: int, progress: Progress
) -> Iterator[Finished]:
    """The pieces, screened, in their order. Ray does the pieces of a worker that died again, elsewhere; a piece twice done
    is the same files. Uses the Ray that runs, else starts one here with ``workers`` processors for as long as it takes."""
    if not pieces:
        return
    try:
        import ray
    except ImportError:
        raise MissingExtra("ray", "ray") from None

    with _running(ray, workers):
        work = ray.put(ray.cloudpickle.dumps((job, pieces)))  # detectors of a script go by value
        numbers = ray.data.from_items([{"piece": p.number} for p in pieces], override_num_blocks=len(pieces))
        screened = numbers.map_batches(
            Screener,
            fn_constructor_args=(work, folder, mark(folder), originals),
            batch_size=1,
            batch_format="pyarrow",
            # One piece at a time each: what waits in the queue of a busy actor an idle one cannot take.
            compute=ray.data.ActorPoolStrategy(size=min(workers, len(pieces)), max_tasks_in_flight_per_actor=1),
        )
        ready: set[int] = set()
        rest = list(pieces)
        for row in screened.iter_rows():
            put_in(folder, zip(row["names"], row["files"], strict=True))
            ready.add(int(row["piece"]))
            while rest and rest[0].number in ready:
                piece = rest.pop(0)
                finished = recall(folder, piece.number)
                if finished is None:
                    raise LostProcess("a piece that Ray finished is not in the output folder, or not as it was written")
                progress(finished.done.rows, piece.size)
                yield finished


@contextmanager
def _running(ray: Any, workers: int) -> Iterator[None]:
    ours = not ray.is_initialized()
    # Ray reports on standard output, between the lines of our results, until it is down.
    with redirect_stdout(sys.stderr):
        if ours:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing leaves this machine
            logging.getLogger("ray").setLevel(logging.ERROR)
            ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        ray.data.DataContext.get_current().enable_progress_bars = False
        try:
            yield
        except ray.exceptions.RayError as error:
            raise _cause(error) or error from None
        finally:
            if ours:
                ray.shutdown()


def _cause(error: BaseException | None) -> TaciturnError | None:
    """What a worker raised, under Ray's wrapping."""
    while error is not None and not isinstance(error, TaciturnError):
        error = getattr(error, "cause", None) or error.__cause__
    return error
