"""A screened corpus read a few rows at a time has what it has in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.screening.corpus import batches, screened
from taciturn.screening.corpus.batches import side_by_side
from taciturn.screening.corpus.screened import Part, ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus

DOCUMENTS = [
    Document(f"d{i}", f"call (555) 010-77{i % 3:02} ok" if i % 2 else f"see you at {i % 4}", label=f"l{i % 2}")
    for i in range(17)
] + [Document("only", "(555) 010-7701", label="l0")]


def rows_of(corpus: ScreenedCorpus, part: str) -> list[tuple[str, str | None]]:
    """Texts and labels of a part, the slow way: row by row over whole tables."""
    found = []
    for row, original in zip(corpus.table.to_pylist(), corpus.originals.to_pylist(), strict=True):
        text = {"original": original["original"], "skeletons": row["skeleton"], "common": row["skeleton"]}
        shown = text.get(part, row["redacted"])
        if part in ("public", "private"):
            if row["part"] != part or (part == "public" and row["duplicate"]):
                continue
            shown = MASK if row["duplicate"] else shown
        if part == "removed" and MASK in shown:
            shown = " ".join(each.strip(" ") for each in shown.split(MASK) if each.strip(" ")) or MASK
        if shown is not None:
            found.append((shown, None if shown == MASK else row["label"]))
    return found


@pytest.mark.parametrize("dedup", ["all", "none"])
@pytest.mark.parametrize("order", ["redact-first", "as-published"])
@pytest.mark.parametrize("kept", ["memory", "disk"])
def test_every_part(dedup: Any, order: Any, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = None if kept == "memory" else tmp_path / "s"
    corpus = screen(
        Corpus.from_documents(DOCUMENTS), policy("phone"), policy("conservative"), unit="document", dedup=dedup,
        order=order, out=out,
    )  # fmt: skip
    for module in (batches, screened):
        monkeypatch.setattr(module, "ROWS", 5)
    for part in get_args(Part):
        want = rows_of(corpus, part)
        assert list(zip(corpus.texts(part), corpus.labels(part), strict=True)) == want
        assert corpus.size(part) == len(want)
        assert max(len(rows["text"]) for rows in corpus.stream(part)) <= 5
    assert corpus.size("public", "private") == len(rows_of(corpus, "public") + rows_of(corpus, "private"))


def test_what_is_not_there_is_said() -> None:
    corpus = screen(Corpus.from_documents(DOCUMENTS), policy("phone"), policy("conservative"), keep_originals=False)
    for ask in (corpus.texts, corpus.size):
        with pytest.raises(DataError, match="were not kept"):
            ask("original")
        with pytest.raises(UsageError, match="unknown"):
            ask("nothing")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="were not kept"):
        next(corpus.batches("redacted", "suspects"))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 4), max_size=6), st.lists(st.integers(0, 4), max_size=6))
def test_rows_stand_side_by_side_whatever_their_batches(first: list[int], second: list[int]) -> None:
    def cut(name: str, sizes: list[int]) -> list[pa.RecordBatch]:
        ends = [sum(sizes[: i + 1]) for i in range(len(sizes))]
        return [
            pa.RecordBatch.from_pydict({name: pa.array(range(e - n, e), pa.int64())})
            for n, e in zip(sizes, ends, strict=True)
        ]

    wide = side_by_side({"a": iter(cut("a", first)), "b": iter(cut("b", second))})
    if sum(first) != sum(second):
        with pytest.raises(DataError, match="screen again"):
            list(wide)
        return
    found = [row for batch in wide for row in batch.to_pylist()]
    assert found == [{"a": i, "b": i} for i in range(sum(first))]
