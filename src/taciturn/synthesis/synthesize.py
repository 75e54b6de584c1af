"""Write a synthetic corpus: draw, drop what is empty, marked or a copy, keep, until there are enough."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path

from taciturn.errors import DataError, Interrupted, MismatchError, UsageError
from taciturn.mechanisms.lock import reading
from taciturn.mechanisms.settings import load_config
from taciturn.models.hf import load_exported, task_of
from taciturn.privacy.certificates.digests import tree
from taciturn.privacy.certificates.exported_model import BESIDE, COPIED
from taciturn.screening.corpus.manifest import MANIFEST, file_digest
from taciturn.screening.corpus.manifest import Manifest as ScreenedManifest
from taciturn.screening.policies import Policy
from taciturn.synthesis import readme
from taciturn.synthesis.claims import Allow, Claims, claims_of, model_folder
from taciturn.synthesis.corpus import Counts, Making, Manifest, Piece, Row, making
from taciturn.synthesis.draw import Drawn, Writer
from taciturn.synthesis.settings import Settings, digest, lines, refuse_own
from taciturn.text.document import MASK

FEW, PIECE = 16, 256
"""Texts drawn for the first file, and at most for one: each is twice the one before, so that few texts take few draws. An
interruption loses one file's at most."""

MOST = 20
"""Texts drawn for one that is kept, at most, over all: a model that repeats itself does not go on for ever."""

Notify = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Synthesis:
    """A finished corpus. again: whether it was there already, from the same model and settings."""

    folder: Path
    manifest: Manifest
    again: bool = False


def synthesize(
    run: Path,
    number: int,
    out: Path,
    settings: Settings,
    *,
    allow: Sequence[Allow] = (),
    notify: Notify = lambda *_: None,
) -> Synthesis:
    """Write ``number`` texts of the model in ``run`` (a run, an export, any model folder) to the new folder ``out``.

    The files are a function of the model, ``number`` and ``settings``. notify: told (texts kept, texts drawn).

    Raises GuaranteeError as ``claims_of``; UsageError for a model that does not write; DataError if ``out`` is something
    else, and when the model has written MOST · ``number`` texts and too few of them can be kept; Interrupted by Ctrl-C,
    after which the same call goes on.
    """
    if number < 1:
        raise UsageError(f"n: expected at least 1 text, found {number}")
    with ExitStack() as stack:
        stack.enter_context(reading(run))
        where = model_folder(run)
        key = digest({"model": digests(where), "settings": settings.to_json(), "taciturn": version("taciturn")})
        if (out / MANIFEST).is_file():
            return _again(out, key, number)
        claims = claims_of(run, settings.conditions, allow)
        folder = stack.enter_context(making(out, key, settings.format))
        writer = _writer(where, settings)
        kept = 0
        try:
            pieces = []
            for piece in _pieces(folder, writer, number, notify):
                pieces.append(piece)
                kept += piece.counts.kept
        except KeyboardInterrupt:
            raise Interrupted(f"stopped with {kept:,} of {number:,} texts kept; the same command goes on") from None
        return Synthesis(out, _finish(folder, pieces, claims, settings, key, number, run))


def read_openings(run: Path, **files: Path | None) -> dict[str, tuple[str, ...]]:
    """The lines of each file that is named. Raises UsageError for a file that the corpus of the run was screened from."""
    found = {what: path for what, path in files.items() if path is not None}
    refuse_own(list(found.values()), _inputs(run))
    return {what: lines(path, f"--{what}") for what, path in found.items()}


def digests(model: Path) -> dict[str, str]:
    """Digest of every file of a model by its path."""
    return {name: file_digest(model / name) for name in sorted(tree(model)) if name not in BESIDE}


def _again(out: Path, key: str, number: int) -> Synthesis:
    manifest = Manifest.read(out)
    if (manifest.key, manifest.number) != (key, number):
        raise MismatchError(
            f"{out} holds another synthetic corpus (another model, number, seed or other settings): name a new folder"
        )
    return Synthesis(out, manifest, again=True)


def _writer(where: Path, settings: Settings) -> Writer:
    model, tokenizer = load_exported(where)
    if task_of(model.config) != "causal":
        raise UsageError(f"{where} is a {task_of(model.config)} model, which writes no text: expected a causal one")
    if settings.skeletons and tokenizer.convert_tokens_to_ids(MASK) in (None, tokenizer.unk_token_id):
        raise UsageError(f"{where}: its tokenizer has no {MASK}, so there are no skeletons to fill: leave them out")
    return Writer.of(model, tokenizer, settings)


def _pieces(folder: Making, writer: Writer, number: int, notify: Notify) -> Iterator[Piece]:
    """Pieces until ``number`` texts are kept: those that are there already, then new ones."""
    seen: set[bytes] = set()
    chosen, counts, first = writer.settings.filter(), Counts(), 0
    for at in count():
        if counts.kept >= number:
            return
        if counts.drawn >= MOST * number and counts.drawn >= MOST * PIECE:
            raise DataError(
                f"of {counts.drawn:,} texts drawn {counts.kept:,} could be kept ({counts.copies:,} are copies of earlier "
                f"ones, {counts.marked:,} marked by the policy, {counts.empty:,} empty), expected {number:,}: ask for "
                "fewer, raise temperature or top_p, or keep copies; what is kept so far stays"
            )
        piece, size = folder.piece(at), min(PIECE, FEW << min(at, 16))
        if piece is None:
            texts = writer.draw(at, range(first, first + size), partial(_tell, notify, counts))
            rows, found = _sift(texts, chosen, seen, writer.settings.keep_copies)
            piece = folder.write(at, rows, found)
        elif not writer.settings.keep_copies:
            seen.update(_mark(row["text"]) for row in folder.rows(piece.shard))
        counts, first = counts + piece.counts, first + size
        notify(counts.kept, counts.drawn)
        yield piece


def _tell(notify: Notify, before: Counts, drawn: int) -> None:
    notify(before.kept, before.drawn + drawn)


def _sift(
    texts: Sequence[Drawn], chosen: Policy | None, seen: set[bytes], keep_copies: bool
) -> tuple[list[Row], Counts]:
    """What is kept of ``texts``, each of which counts once; ``seen`` gets the marks of what is kept."""
    found = chosen.find([each.text for each in texts]) if chosen else [None] * len(texts)
    rows: list[Row] = []
    empty = copies = marked = cut = 0
    for each, detection in zip(texts, found, strict=True):
        if not each.text.strip():
            empty += 1
        elif MASK in each.text or (detection is not None and (detection.spans or detection.status != "ok")):
            marked += 1
        elif not keep_copies and (mark := _mark(each.text)) in seen:
            copies += 1
        else:
            if not keep_copies:
                seen.add(mark)
            cut += each.cut
            rows.append({"text": each.text} | ({"label": each.label} if each.label is not None else {}))
    counts = {"kept": len(rows), "empty": empty, "copies": copies, "marked": marked, "cut": cut}
    return rows, Counts(drawn=len(texts), **counts)


def _finish(
    folder: Making, pieces: Sequence[Piece], claims: Claims, settings: Settings, key: str, number: int, run: Path
) -> Manifest:
    counts = Counts()
    for piece in pieces:
        counts += piece.counts
    manifest = Manifest(
        taciturn=version("taciturn"), key=key, number=number, settings=settings.to_json(), counts=counts,
        claims=claims.to_json(), shards=(),
    )  # fmt: skip
    copied = [name for name in COPIED if claims.certified and (run / name).is_file()]
    others: Mapping[str, bytes] = {name: (run / name).read_bytes() for name in copied}
    return folder.finish(pieces, manifest, {**others, "README.md": readme.render(manifest, claims).encode()})


def _inputs(run: Path) -> frozenset[str]:
    """Digests of the files that the corpus of a run was screened from, where that corpus is at hand. No text is opened."""
    try:
        config = load_config(run / "run.toml")
        return frozenset(each.digest for each in ScreenedManifest.read(Path(config.corpus) / MANIFEST).inputs)
    except (DataError, UsageError):
        return frozenset()


def _mark(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
