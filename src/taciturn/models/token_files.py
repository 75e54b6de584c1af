"""Tokens that need no memory: chunk after chunk is laid down in files without a name, and read through memory maps.

They are private text. The files are open to their owner alone and stand in no folder, so that nothing of them is left when
the process ends, however it ends; a run that is resumed makes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from errno import EDQUOT, EFBIG, ENOSPC
from io import BytesIO
from mmap import ACCESS_READ, mmap
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from taciturn.errors import DataError
from taciturn.models.tokens import Tokens, implied_targets

KINDS: dict[str, DTypeLike] = {
    "flat": np.int32,
    "offsets": np.int64,
    "scored": np.bool_,
    "labels": np.int64,
    "segments": np.int8,
    "sensitive": np.bool_,
    "at": np.int64,
}


class Column:
    """An array that grows at its end, in a file without a name; without a folder, in memory."""

    def __init__(self, kind: DTypeLike, folder: Path | None) -> None:
        self._kind = np.dtype(kind)
        self._file: IO[bytes] = BytesIO() if folder is None else TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, values: ArrayLike) -> None:
        self._file.write(np.ascontiguousarray(values, self._kind).data)

    def close(self) -> None:
        """Nothing is added any more; arrays stay what they are."""
        self._file.close()

    def array(self) -> NDArray[Any]:
        """What was added so far, [n], read only."""
        if isinstance(self._file, BytesIO):
            return np.frombuffer(self._file.getvalue(), self._kind)
        self._file.flush()
        size = self._file.tell()
        mapped: Any = mmap(self._file.fileno(), size, access=ACCESS_READ) if size else b""
        return np.frombuffer(mapped, self._kind)


def laid_out(chunks: Iterable[Tokens], mask: int, folder: Path | None = None) -> Tokens:
    """Chunks of records, at least one, as the tokens of all of them. folder: whose disk holds them; None for memory.

    Where some chunks say what is scored, or which text of a pair a token is of, and others leave it to the rule, the rule is
    written out. Raises DataError where the disk is full.
    """
    columns: dict[str, Column] = {}
    opened = ExitStack()

    def add(name: str, values: ArrayLike) -> None:
        if name not in columns:
            columns[name] = opened.enter_context(closing(Column(KINDS[name], folder)))
        columns[name].add(values)

    implied: dict[str, Callable[[Tokens], NDArray[Any]]] = {
        "scored": lambda tokens: implied_targets(tokens.flat, tokens.offsets, mask),
        "segments": lambda tokens: np.zeros(len(tokens.flat), np.int8),
    }
    truncated = total = 0
    try:
        with opened:
            add("offsets", [0])
            add("flat", [])
            for chunk in chunks:
                for name, rule in implied.items():
                    given = getattr(chunk, name)
                    if given is not None and name not in columns:
                        so_far = Tokens(columns["flat"].array(), columns["offsets"].array())
                        add(name, [])
                        for piece in so_far.pieces():
                            add(name, rule(piece))
                    if name in columns:
                        add(name, rule(chunk) if given is None else given)
                add("flat", chunk.flat)
                add("offsets", chunk.offsets[1:] + total)
                for name in ("labels", "sensitive"):
                    if getattr(chunk, name) is not None:
                        add(name, getattr(chunk, name))
                if chunk.answers is not None:
                    add("at", chunk.answers.at)
                total += len(chunk.flat)
                truncated += chunk.truncated
            found = {name: column.array() for name, column in columns.items()}
    except OSError as error:
        if error.errno not in (ENOSPC, EDQUOT, EFBIG):
            raise
        raise DataError(
            f"{folder} could not be written ({error.strerror}): the tokens of all records, 4 bytes each, are kept on that "
            "disk while a run lasts; free space and repeat the command"
        ) from error
    at = found.pop("at", None)
    answers = None if chunk.answers is None or at is None else replace(chunk.answers, at=at)
    return Tokens(**found, truncated=truncated, masking=chunk.masking, answers=answers)
