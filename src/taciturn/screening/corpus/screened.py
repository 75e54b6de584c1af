"""A screened corpus as the rest of taciturn sees it: parts of text, counts, and how large a group of secrets is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.corpus.batches import ROWS, of_folder, side_by_side
from taciturn.screening.corpus.manifest import MANIFEST, Counts, Manifest, file_digest
from taciturn.screening.corpus.occurrences import may_show, places, regardless_of_case
from taciturn.screening.corpus.sink import ORIGINALS, RECORDS
from taciturn.screening.corpus.stored import fetched
from taciturn.text.document import MASK
from taciturn.text.notebook import table
from taciturn.text.urls import here, is_url

Part = Literal["public", "private", "skeletons", "common", "redacted", "removed", "original"]
PARTS: tuple[Part, ...] = get_args(Part)
_TEXT: dict[str, str] = {"skeletons": "skeleton", "common": "skeleton", "original": "original"}
_COUNTED_AS: dict[str, str] = {
    "public": "public",
    "private": "private",
    "skeletons": "skeletons",
    "common": "skeletons",
}
_KINDS = {"records": RECORDS.names, "originals": ORIGINALS.names, "duplicates": ["duplicate"]}
_NO_ORIGINALS = "the original texts of this screened corpus were not kept; screen again with keep_originals"


@dataclass(frozen=True)
class ScreenedCorpus:
    """manifest: what it says about itself. path: its folder (of one by URL: its copy here), None in memory. held: the tables
    of one in memory, by kind; those of a folder are read when asked for."""

    manifest: Manifest
    path: Path | None = None
    held: Mapping[str, pa.Table] | None = None

    @classmethod
    def load(cls, place: str | os.PathLike[str]) -> ScreenedCorpus:
        """A screened corpus from its folder or URL (see stored.py). Raises DataError if a file is missing or not what the
        manifest says; Unreachable."""
        name = here(os.fspath(place))
        if is_url(name):
            return cls(*fetched(name))
        path = Path(name)
        manifest = Manifest.read(path / MANIFEST)
        for shard in manifest.shards:
            file = path / shard.path
            if not file.is_file():
                raise DataError(f"'{path.name}': {shard.path} is missing; screen again")
            if file_digest(file) != shard.digest:
                raise DataError(f"'{path.name}': {shard.path} was changed after screening; screen again")
        return cls(manifest, path)

    @cached_property
    def table(self) -> pa.Table:
        """One row a record, in corpus order: the columns of sink.RECORDS and ``duplicate``; all of it in memory. In the
        published order a copy is a ``<MASK>`` before anything looks at it, so it is private."""
        return _table(self.batches(*RECORDS.names, "duplicate"), RECORDS.append(pa.field("duplicate", pa.bool_())))

    @cached_property
    def originals(self) -> pa.Table:
        """One row a record: the columns of sink.ORIGINALS. Raises DataError when originals were not kept."""
        self._check("original")
        return _table(self._stream("originals"), ORIGINALS)

    @property
    def key(self) -> str:
        """Content key; a function of the private text (see Manifest)."""
        return self.manifest.key

    @property
    def counts(self) -> Counts:
        return self.manifest.counts

    def __repr__(self) -> str:
        place, counts = "in memory" if self.path is None else self.path.name, self.counts
        told = f"{counts.read:,} records, {counts.public:,} public, {counts.private:,} private"
        return f"<ScreenedCorpus {place}: {told}; key {self.manifest.key}>"

    def _repr_html_(self) -> str:
        counts = self.counts
        names = ("read", "public", "private")
        return table("screened corpus", [(name, getattr(counts, name)) for name in names])

    def texts(self, part: Part) -> list[str]:
        """The texts of a part, in corpus order.

        public: public records (copies removed by dedup="all" left out). private: every private record after redaction and
        dedup; a removed copy is exactly "<MASK>" and stays in the list. skeletons: of private records that have one, copies
        included; common: the same, of which a run lets some values stand (``behind``). redacted: all records after
        redaction, before dedup. removed: these without the masks, and what they leave joined by one space (a record of
        nothing else stays "<MASK>"). original: all records untouched.
        Raises DataError for "original" when originals were not kept.
        """
        return [text for rows in self.stream(part) for text in rows["text"]]

    def labels(self, part: Part) -> list[str | None]:
        """The labels of ``texts(part)``, one each. A text that is only "<MASK>" has none: a removed copy must not show
        which class it was of."""
        return [label for rows in self.stream(part, "label") for label in rows["label"]]

    def size(self, *parts: Part) -> int:
        """How many texts these parts have; they are not all read into memory."""
        for part in parts:
            self._check(part)
        return sum(self._sizes[_COUNTED_AS.get(part, "redacted")] for part in parts)

    def stream(self, part: Part, *beside: str) -> Iterator[dict[str, list[Any]]]:
        """``texts(part)``, under "text", a few thousand at a time, and what stands ``beside`` them: ``label`` as ``labels``
        has it, other columns (of sink.RECORDS and sink.ORIGINALS) as they are."""
        self._check(part)
        column = _TEXT.get(part, "redacted")
        for rows in self.batches(column, "part", "duplicate", *beside):
            found = rows if (kept := _kept(part, rows)) is None else rows.filter(kept)
            text = found[column]
            if part == "private":
                text = pc.if_else(found["duplicate"], MASK, text)
            texts = [_removed(each) for each in text.to_pylist()] if part == "removed" else text.to_pylist()
            out = {"text": texts, **{name: found[name].to_pylist() for name in beside}}
            if "label" in out:
                out["label"] = [None if t == MASK else x for t, x in zip(texts, out["label"], strict=True)]
            yield out

    def batches(self, *columns: str) -> Iterator[pa.RecordBatch]:
        """Rows of ``table`` and ``originals``, with these columns of the two, a few thousand at a time.

        Raises DataError for columns of originals when these were not kept.
        """
        names = {name: kind for kind, schema in _KINDS.items() for name in schema}
        wanted: dict[str, list[str]] = {}
        for name in dict.fromkeys(columns):
            wanted.setdefault(names[name], []).append(name)
        blanked = self.manifest.order == "as-published" and "part" in columns
        if blanked:
            wanted["duplicates"] = ["duplicate"]
        if "originals" in wanted and not self.manifest.originals:
            raise DataError(_NO_ORIGINALS)
        for rows in side_by_side({kind: self._stream(kind, some) for kind, some in wanted.items()}):
            if lacking := set(columns).difference(rows.schema.names):
                raise DataError(
                    f"this screened corpus does not say {' and '.join(sorted(lacking))} of its records, an older version "
                    "wrote it; screen again"
                )
            if blanked:
                part = pc.if_else(rows["duplicate"], "private", rows["part"])
                rows = rows.set_column(rows.schema.get_field_index("part"), "part", part)
            yield rows.select(list(dict.fromkeys(columns)))

    def _check(self, part: Part) -> None:
        if part not in PARTS:
            raise UsageError(f"part '{part}' is unknown; {nearest(part, PARTS)}")
        if part == "original" and not self.manifest.originals:
            raise DataError(_NO_ORIGINALS)

    @cached_property
    def _sizes(self) -> dict[str, int]:
        found = dict.fromkeys(("public", "private", "skeletons", "redacted"), 0)
        for rows in self.batches("part", "duplicate", "skeleton"):
            found["redacted"] += rows.num_rows
            for part in ("public", "private", "skeletons"):
                found[part] += pc.sum(_kept(part, rows)).as_py() or 0
        return found

    def _stream(self, kind: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        if self.held is not None:
            table = self.held[kind]
            names = table.column_names if columns is None else [n for n in columns if n in table.column_names]
            return iter(table.select(names).to_batches(ROWS))
        assert self.path is not None
        return of_folder(self.path, self.manifest, kind, columns)

    def behind(self) -> list[list[str | None]]:
        """For each of ``texts("skeletons")``, of each of its masks, the original text that stands there; None where the
        record has no value for it (standing.py).

        Raises DataError when originals were not kept, or were kept by a version that did not note what stands where.
        """
        return [
            [text[a:b] if b > a else None for a, b in zip(behind[::2], behind[1::2], strict=True)]
            or [None] * skeleton.count(MASK)
            for skeleton, text, behind, _ in self._with_skeleton()
        ]

    def standing(self) -> list[list[str | None]]:
        """``behind``, with None for all of a record in which no value may be shown where it stands: masking some of it may
        change what π redacts elsewhere."""
        may = [stands for *_, stands in self._with_skeleton()]
        return [there if ok else [None] * len(there) for there, ok in zip(self.behind(), may, strict=True)]

    def _with_skeleton(self) -> Iterator[tuple[str, str, list[int], bool]]:
        for rows in self.stream("skeletons", "original", "behind", "stands"):
            yield from zip(rows["text"], rows["original"], rows["behind"], rows["stands"], strict=True)

    def group_size(self, secrets: Sequence[str], part: Part = "private") -> int:
        """k(S): an upper bound on the records of ``part`` that change when every secret of S is replaced by ``<MASK>``.

        original: every record that holds one of the secrets (letter case aside), found or not. redacted: every record that
        still changes after redaction (removed: the same). private: of these, the private ones, after deduplication. public:
        those in which a secret stands to be read, where none should. skeletons, common: those whose skeleton may show a part
        of one (what stands in a common part is known to its run alone).

        After redaction a record changes if one of the secrets stands in its original text (letter case aside) and not each
        time exactly on a span that π masks and that survived the check; so a partly masked secret counts. Equal private
        records count once where the neighbours are deduplicated too: always in scopes "all" and "private"; in scope
        "suspicious" if π_c marks something beside the secrets, else the copies of s(<MASK>) are no longer suspicious
        and all of them stay.

        Raises DataError when originals were not kept: redacted text alone cannot show a partly masked secret. UsageError
        for an unknown part.
        """
        wanted = sorted({regardless_of_case(s) for s in secrets if s})
        if part == "public":
            return sum(bool(places(text, wanted)) for rows in self.stream(part) for text in rows["text"])
        if part in ("skeletons", "common"):
            both = (zip(rows["original"], rows["text"], strict=True) for rows in self.stream(part, "original"))
            return sum(may_show(text, skeleton, wanted) for pairs in both for text, skeleton in pairs)
        self._check(part)
        names = ("part", "redacted", "label", "original", "stable", "suspects")
        rows = (row for batch in self.batches(*names) for row in zip(*(c.to_pylist() for c in batch), strict=True))
        once: set[tuple[str, str | None]] = set()
        each = 0
        for where, redacted, label, text, stable, suspects in rows:
            found = places(text, wanted)
            if part == "original":
                each += bool(found)
                continue
            if found <= _pairs(stable) or (part == "private" and where != "private"):
                continue
            if part in ("redacted", "removed"):
                each += 1
                continue
            left = places(redacted, wanted)
            beside = any(all(end <= a or b <= start for a, b in left) for start, end in _pairs(suspects))
            if self.manifest.dedup in ("all", "private") or (self.manifest.dedup == "suspicious" and left and beside):
                once.add((text, label))
            else:
                each += 1
        return len(once) + each


def load(place: str | os.PathLike[str]) -> ScreenedCorpus:
    """A screened corpus from its folder or URL."""
    return ScreenedCorpus.load(place)


def folder_of(place: str | os.PathLike[str]) -> Path:
    """The folder of a screened corpus on this machine; one by URL is fetched into its copy."""
    name = here(os.fspath(place))
    return fetched(name)[1] if is_url(name) else Path(name)


def _removed(text: str) -> str:
    """De-identification by removal: what stands around a mask, with one space in its place."""
    if MASK not in text:
        return text
    return " ".join(stretch.strip(" ") for stretch in text.split(MASK) if stretch.strip(" ")) or MASK


def _pairs(flat: Sequence[int]) -> set[tuple[int, int]]:
    return set(zip(flat[::2], flat[1::2], strict=True))


def _table(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Batches as one table. schema: of one without rows."""
    found = list(batches)
    return pa.Table.from_batches(found, None if found else schema)


def _kept(part: str, rows: pa.RecordBatch) -> pa.Array | None:
    """Which rows have a text of a part; None for all."""
    if part == "public":
        return pc.and_(pc.equal(rows["part"], "public"), pc.invert(rows["duplicate"]))
    if part == "private":
        return pc.equal(rows["part"], "private")
    return rows["skeleton"].is_valid() if part in ("skeletons", "common") else None
