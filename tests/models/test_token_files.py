"""Tokens laid down chunk by chunk are those of all records at once, and their files have no name that anybody could open."""

from __future__ import annotations

import os
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.models import token_files
from taciturn.models.prompt import Prompt
from taciturn.models.sensitive import encode_sensitive
from taciturn.models.sequences import mask_id
from taciturn.models.tasks import encode_task
from taciturn.models.template import set_template
from taciturn.models.token_files import Column, laid_out
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import Tokens, encode_all
from taciturn.text.chat import join
from taciturn.text.document import MASK

TOKENIZER = set_template(byte_tokenizer(), "plain")
ID = mask_id(TOKENIZER)
TEXTS = st.sampled_from(
    [
        "it rains",
        MASK,
        f"call {MASK} now",
        "",
        f"{MASK}{MASK}",
        join([("user", "how are you"), ("assistant", "fine")]),
        join([("first", "a b"), ("second", "c")]),
    ]
)


def whole(value: Any) -> Any:
    """Everything a Tokens says, to be compared."""
    said = {field.name: getattr(value, field.name) for field in fields(value)}
    if said["answers"] is not None:
        said["answers"] = (said["answers"].at.tolist(), said["answers"].words.tolist())
    return {k: (v.tolist(), v.dtype.str) if isinstance(v, np.ndarray) else v for k, v in said.items()}


def cut(items: list[Any], cuts: list[int]) -> list[list[Any]]:
    places = sorted({0, len(items), *(c for c in cuts if c < len(items))})
    return [items[a:b] for a, b in pairwise(places)] or [[]]


@settings(max_examples=60, deadline=None)
@given(texts=st.lists(TEXTS, max_size=12), cuts=st.lists(st.integers(0, 12)), limit=st.sampled_from([None, 6]))
def test_chunks_of_any_mixture_come_to_the_same(texts: list[str], cuts: list[int], limit: int | None) -> None:
    want = encode_all(TOKENIZER, texts, limit)
    found = laid_out((encode_all(TOKENIZER, some, limit) for some in cut(texts, cuts)), ID)
    assert whole(found) == whole(want)


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(TEXTS, min_size=1, max_size=8), most=st.integers(1, 30))
def test_pieces_put_together_are_the_tokens(texts: list[str], most: int) -> None:
    tokens = encode_all(TOKENIZER, texts)
    pieces = list(tokens.pieces(most))
    assert all(len(piece) == 1 or len(piece.flat) <= most for piece in pieces)
    found = whole(laid_out(pieces, ID))
    assert found == {**whole(tokens), "truncated": 0}
    nothing = [not any(tokens.targets(i, ID)) for i in range(len(tokens))]
    assert tokens.aimless(ID).tolist() == nothing
    assert tokens.longest == max(map(len, (tokens[i] for i in range(len(tokens)))))


@pytest.mark.parametrize(
    "task",
    [
        {"task": "classify", "names": ["a", "b"]},
        {"task": "prompt", "prompt": Prompt("{text} It was{mask}", {"a": "x", "b": "y"})},
    ],
)
def test_labels_and_answers_come_to_the_same(task: dict[str, Any], tmp_path: Path) -> None:
    texts, labels = ["it rains", MASK, "sun", "no", "a longer text"], ["a", None, "b", "b", "a"]
    want = encode_task(TOKENIZER, texts, 24, labels=labels, **task)
    rows = cut(list(zip(texts, labels, strict=True)), [2, 3])
    chunks = (encode_task(TOKENIZER, [t for t, _ in some], 24, labels=[x for _, x in some], **task) for some in rows)
    assert whole(laid_out(chunks, ID, tmp_path)) == whole(want)


def test_sensitive_tokens_come_to_the_same(tmp_path: Path) -> None:
    originals, redacted = ["to Ann", "all", "to Bob or Cyd"], [f"to {MASK}", MASK, f"to {MASK} or {MASK}"]

    def coded(a: int, b: int) -> Tokens:
        found = encode_sensitive(TOKENIZER, originals[a:b], redacted[a:b])
        return Tokens(found.tokens.flat, found.tokens.offsets, 0, found.tokens.scored, sensitive=found.flags)

    assert whole(laid_out([coded(0, 1), coded(1, 3)], ID, tmp_path)) == whole(coded(0, 3))
    assert whole(laid_out([coded(0, 0)], ID, tmp_path)) == whole(coded(0, 0))


def test_a_record_is_named_by_its_place_among_all() -> None:
    with pytest.raises(DataError, match="record 7"):
        encode_sensitive(TOKENIZER, ["other"], [f"to {MASK}"], first=7)


def test_a_file_has_no_name_and_one_reader(tmp_path: Path) -> None:
    column = Column(np.int32, tmp_path)
    column.add([1, 2])
    seen = os.fstat(column._file.fileno())
    assert seen.st_mode & 0o777 == 0o600
    assert seen.st_nlink == 0
    assert not list(tmp_path.iterdir())
    first = column.array()
    column.add(np.array([3]))
    assert (first.tolist(), column.array().tolist()) == ([1, 2], [1, 2, 3])
    column.close()
    assert first.tolist() == [1, 2], "the map outlives the file"
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 5


def test_a_full_disk_is_said_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(token_files.Column, "add", full)
    with pytest.raises(DataError, match=r"No space left on device.*free space"):
        laid_out([encode_all(TOKENIZER, ["a"])], ID, tmp_path)
