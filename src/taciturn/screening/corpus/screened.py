"""A screened corpus as the rest of taciturn sees it: parts of text, counts, and how large a group of secrets is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.corpus.manifest import MANIFEST, Counts, Manifest, file_digest
from taciturn.screening.corpus.occurrences import may_show, places, regardless_of_case
from taciturn.screening.corpus.stored import fetched
from taciturn.text.document import MASK
from taciturn.text.notebook import table
from taciturn.text.urls import here, is_url

Part = Literal["public", "private", "skeletons", "common", "redacted", "removed", "original"]
PARTS: tuple[Part, ...] = get_args(Part)


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
        """One row a record, in corpus order: the columns of sink.RECORDS and ``duplicate``. In the published order a copy
        is a ``<MASK>`` before anything looks at it, so it is private."""
        table, duplicate = self._read("records"), self._read("duplicates")["duplicate"]
        if self.manifest.order == "as-published":
            part = pc.if_else(duplicate, "private", table["part"])
            table = table.set_column(table.schema.get_field_index("part"), "part", part)
        return table.append_column("duplicate", duplicate)

    @cached_property
    def originals(self) -> pa.Table:
        """One row a record: the columns of sink.ORIGINALS. Raises DataError when originals were not kept."""
        if not self.manifest.originals:
            raise DataError(
                "the original texts of this screened corpus were not kept; screen again with keep_originals"
            )
        return self._read("originals")

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
        if part not in PARTS:
            raise UsageError(f"part '{part}' is unknown; {nearest(part, PARTS)}")
        if part == "original":
            return _strings(self.originals, "original")
        if part == "redacted":
            return _strings(self.table, "redacted")
        if part == "removed":
            return [_removed(text) for text in _strings(self.table, "redacted")]
        if part in ("skeletons", "common"):
            return [s for s in self.table["skeleton"].to_pylist() if s is not None]
        return [text for text, _ in self._rows(part)]

    def labels(self, part: Part) -> list[str | None]:
        """The labels of ``texts(part)``, one each. A text that is only "<MASK>" has none: a removed copy must not show
        which class it was of."""
        texts = self.texts(part)
        if part in ("public", "private"):
            found = [label for _, label in self._rows(part)]
        else:
            kept = (
                self.table["skeleton"].is_valid().to_pylist()
                if part in ("skeletons", "common")
                else [True] * len(self.table)
            )
            found = [label for label, keep in zip(self.table["label"].to_pylist(), kept, strict=True) if keep]
        return [None if text == MASK else label for text, label in zip(texts, found, strict=True)]

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
        originals = self.originals
        if "stands" not in originals.column_names:
            raise DataError(
                "this screened corpus does not say what stands behind its masks, an older version wrote it; screen again"
            )
        columns = (originals[name].to_pylist() for name in ("original", "behind", "stands"))
        for skeleton, text, behind, stands in zip(self.table["skeleton"].to_pylist(), *columns, strict=True):
            if skeleton is not None:
                yield skeleton, text, behind, stands

    def _rows(self, part: Part) -> Iterator[tuple[str, str | None]]:
        """Texts of the public or the private part, with their labels."""
        columns = (self.table[name].to_pylist() for name in ("part", "redacted", "label", "duplicate"))
        for where, text, label, duplicate in zip(*columns, strict=True):
            if where == part and not (duplicate and part == "public"):
                yield MASK if duplicate else text, label

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
            return sum(bool(places(text, wanted)) for text in self.texts(part))
        if part not in PARTS:
            raise UsageError(f"part '{part}' is unknown; {nearest(part, PARTS)}")
        original = self.originals
        if part in ("skeletons", "common"):
            both = zip(_strings(original, "original"), self.table["skeleton"].to_pylist(), strict=True)
            return sum(may_show(text, skeleton, wanted) for text, skeleton in both if skeleton is not None)
        columns = (
            *(self.table[n] for n in ("part", "redacted", "label")),
            *(original[n] for n in ("original", "stable", "suspects")),
        )
        once: set[tuple[str, str | None]] = set()
        each = 0
        for where, redacted, label, text, stable, suspects in zip(*(c.to_pylist() for c in columns), strict=True):
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

    def _read(self, kind: str) -> pa.Table:
        if self.held is not None:
            return self.held[kind]
        assert self.path is not None
        return _read(self.path, self.manifest, kind)


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


def _strings(table: pa.Table, column: str) -> list[str]:
    return [str(value) for value in table[column].to_pylist()]


def _pairs(flat: Sequence[int]) -> set[tuple[int, int]]:
    return set(zip(flat[::2], flat[1::2], strict=True))


def _read(path: Path, manifest: Manifest, kind: str) -> pa.Table:
    tables = []
    for shard in manifest.shards:
        if shard.path.startswith(f"{kind}/"):
            with (path / shard.path).open("rb") as handle:
                # One thread: a pool that is still starting when a short command ends aborts the interpreter.
                tables.append(pq.ParquetFile(handle, pre_buffer=False).read(use_threads=False))
    if not tables:
        raise DataError(f"'{path.name}' has no {kind}; screen again")
    table = pa.concat_tables(tables)
    expected = manifest.counts.public + manifest.counts.private
    if table.num_rows != expected:
        raise DataError(
            f"'{path.name}': {table.num_rows} rows of {kind} where the manifest counts {expected}; screen again"
        )
    return table
