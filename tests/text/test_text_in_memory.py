"""Rows that are in memory: what people hand over from a notebook, and what they are told where that is something else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import taciturn as tt
from taciturn.errors import DataError, UsageError
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Corpus, Quarantined

ROWS = [
    {"body": "call me at 555 010 7788", "who": "ana", "n": 1},
    {"body": "hello", "who": "bo", "n": 2},
    {"body": "  ", "who": "cy", "n": 3},
    {"body": None, "who": "di", "n": 4},
]


def frame(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(rows)


def polars(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("polars", reason="polars is not installed").DataFrame(rows)


def dataset(rows: list[dict[str, Any]]) -> Any:
    return pytest.importorskip("datasets").Dataset.from_list(rows)


def generator(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield from rows


KINDS: dict[str, Callable[[list[dict[str, Any]]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": generator,
    "pandas": frame,
    "polars": polars,
    "pyarrow": pa.Table.from_pylist,
    "datasets": dataset,
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_read_as_those_of_a_file(kind: str, tmp_path: Path) -> None:
    corpus = tt.read(KINDS[kind](ROWS), text="body", user="who")
    found = list(corpus.items())
    assert found == list(corpus.items()), "it may be read again, a generator too"
    first, second, blank, empty = found
    assert isinstance(first, Document)
    assert (first.id, first.text, first.user) == ("memory:1", ROWS[0]["body"], "ana")
    assert isinstance(second, Document)
    assert isinstance(blank, Blank)
    assert isinstance(empty, Quarantined)
    assert (empty.location, "null" in empty.reason) == ("record 4", True)
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    read = list(tt.read(file, text="body", user="who").items())
    assert [(d.text, d.user) for d in read if isinstance(d, Document)] == [
        (d.text, d.user) for d in found if isinstance(d, Document)
    ]
    assert list(map(type, read)) == list(map(type, found))


@pytest.mark.parametrize("kind", KINDS)
def test_screened_rows_are_those_of_a_list(kind: str) -> None:
    rows = [{"body": f"my number is 555 010 77{i:02}, thank you", "who": f"u{i % 3}"} for i in range(40)]

    def screened(data: Any) -> Any:
        corpus = tt.read(data, text="body", user="who")
        return tt.screen(corpus, tt.policy("pii"), tt.policy("conservative"))

    found, want = screened(KINDS[kind](rows)), screened(rows)
    assert found.table.equals(want.table)
    assert found.key == want.key
    assert found.counts.private == 40


def test_texts_are_the_field_that_is_read() -> None:
    assert [d.text for d in tt.read(["one", "two"]).documents()] == ["one", "two"]
    assert [d.text for d in tt.read((t for t in ("one", "two")), text="body").documents()] == ["one", "two"]
    assert [d.id for d in tt.read([Document("x", "one"), Document("y", "two")]).documents()] == ["x", "y"]


def test_conversations_turns_and_several_fields() -> None:
    chat = {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
    assert len(tt.read([chat], chat="openai").documents()) == 1
    turns = {"dialogue_id": "d", "turns": [{"speaker": "ana", "text": "hi"}, {"speaker": "bo", "text": "hello"}]}
    spoken = tt.read([turns], user="speaker").documents()
    assert [(d.id, d.user, d.text) for d in spoken] == [("d/1", "ana", "hi\n"), ("d/2", "bo", "hello\n")]
    mail = {"subject": "parcel", "body": "it is late"}
    assert tt.read([mail], text="subject,body").documents()[0].text == "parcel\n\nit is late"


def test_empty_cells_and_numbers_of_frames() -> None:
    pandas = pytest.importorskip("pandas")
    numbers = pandas.DataFrame({"text": ["a", "b", "c"], "user": pandas.array(["u", None, "v"]), "n": [1.5, None, 2.0]})
    first, empty, third = tt.read(numbers, user="user").items()
    assert isinstance(empty, Quarantined)
    assert "null" in empty.reason, "as in a file: a record of nobody is not one of somebody"
    assert [d.user for d in (first, third) if isinstance(d, Document)] == ["u", "v"]
    categories = pandas.DataFrame({"text": ["a", "b"], "user": pandas.Series(["u", "v"], dtype="category")})
    assert [d.user for d in tt.read(categories, user="user").documents()] == ["u", "v"]
    ids = pandas.DataFrame({"text": ["a", "b"], "id": [7, 8]})
    assert [d.id for d in tt.read(ids, id="id").documents()] == ["7", "8"]


@pytest.mark.parametrize(
    ("data", "error", "told"),
    [
        (3, UsageError, "expected names of files, or a list"),
        (b"bytes", UsageError, "found a bytes"),
        ([1, 2], DataError, "record 1: expected a text or a dictionary of fields, found int"),
        ({"train": [], "test": []}, UsageError, r"read\(data\['train'\]\)"),
        ([], DataError, "memory"),
        ([{"txt": "a"}], DataError, "no"),
    ],
)
def test_what_is_not_rows_is_named_with_what_to_do(data: Any, error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told) as caught:
        tt.read(data).documents()
    assert "bytes'" not in str(caught.value)


def test_a_key_that_may_be_text_is_not_shown() -> None:
    with pytest.raises(UsageError, match="a dict of 2 parts; read one") as caught:
        tt.read({"call Zelda at 555 010 7788": 1, "Omar": 2})
    assert "Zelda" not in str(caught.value)
    assert "Omar" not in str(caught.value)


def test_a_list_of_names_of_files_is_no_list_of_texts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(UsageError, match=r"read\(\*names\)"):
        tt.read([str(tmp_path / "a.txt")])
    assert len(tt.read(tmp_path / "a.txt").documents()) == 1
    with pytest.raises(UsageError, match="one of them"):
        tt.read(tmp_path / "a.txt", ["a text"])
    assert len(Corpus.from_texts([str(tmp_path / "a.txt")]).documents()) == 1


def test_splits_of_a_dataset_are_named() -> None:
    datasets = pytest.importorskip("datasets")
    both = datasets.DatasetDict({"train": dataset(ROWS), "test": dataset(ROWS)})
    with pytest.raises(UsageError, match="'train', 'test'"):
        tt.read(both)
    assert len(tt.read(both["train"], text="body", max_record_bytes=100).sources) == 0


def test_no_library_of_frames_is_imported() -> None:
    code = (
        "import sys, taciturn as tt; list(tt.read(['a', 'b']).items()); "
        "assert not {'pandas', 'polars', 'datasets'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
