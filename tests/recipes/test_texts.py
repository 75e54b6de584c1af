"""No test text stands in the training text, and what a prediction that looks at no text is worth."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import load_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.recipes import texts
from taciturn.recipes.cells import Work
from taciturn.recipes.crt.bench import Bench
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft import data as jft_data
from taciturn.recipes.jft.paper import TASKS
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.trained import constant
from taciturn.recipes.uedp import bench as uedp_bench
from taciturn.text.document import Document, Record

SMALL = Inputs("smoke")
WORDS = st.text(alphabet="aB \n", min_size=1, max_size=4)


def documents(words: list[str]) -> list[Document]:
    return [Document(str(at), each) for at, each in enumerate(words)]


def plain(text: str) -> str:
    return " ".join(text.split()).lower()


@given(st.lists(WORDS, max_size=8), st.lists(WORDS, max_size=8))
def test_what_is_left_is_what_a_slow_loop_leaves(test: list[str], train: list[str]) -> None:
    slow = [each for each in test if not any(plain(each) == plain(other) for other in train)]
    if test and not slow:
        with pytest.raises(DataError, match=f"all {len(test)} test texts stand in the training text"):
            texts.unseen(documents(test), documents(train))
        return
    kept, note = texts.unseen(documents(test), documents(train))
    assert [each.text for each in kept] == slow
    assert note.startswith(f"{len(test) - len(slow)} of {len(test)} test texts")
    assert [each.text for each in texts.unseen(documents(test), documents(train), 2)[0]] == slow[:2]


def test_a_note_and_an_error_quote_no_text() -> None:
    secret = documents(["my code is 4711"])
    with pytest.raises(DataError) as error:
        texts.unseen(secret, secret)
    _, note = texts.unseen([*secret, *documents(["other"])], secret)
    assert "4711" not in f"{error.value}{note}"


@pytest.mark.parametrize("name", ["sst2", "wikitext2"])
@pytest.mark.parametrize("size", ["smoke", "quick"])
def test_no_test_text_of_jft_stands_in_the_training_text(name: str, size: str, tmp_path: Path) -> None:
    inputs = Inputs(size)  # type: ignore[arg-type]
    bench = jft_bench.bench(name, inputs, Work(tmp_path))
    assert not {plain(d.text) for d in bench.documents} & {plain(r.text) for r in bench.test}
    assert len(bench.test) == bench.sizes.test
    assert "test texts stand in the training text and are left out" in bench.note


def test_a_folders_test_texts_are_kept_apart_too(tmp_path: Path) -> None:
    """As in half of what SST-2's own splits of phrases share."""
    for split, lines in {"train": ["good film\t1", "bad film\t0"], "dev": ["Good  film\t1", "dull\t0"]}.items():
        (tmp_path / f"{split}.tsv").write_text("\n".join(["sentence\tlabel", *lines]) + "\n")
    task = TASKS["sst2"]
    inputs = Inputs("quick", data=tmp_path)
    train, test, note = jft_data.loaded(task, inputs, jft_data.sizes(inputs, task))
    assert [d.text for d in train] == ["good film", "bad film"]
    assert [d.text for d in test] == ["dull"]
    assert "1 of 2 test texts" in note


def test_no_test_text_of_the_others_stands_in_the_training_text(tmp_path: Path) -> None:
    users = uedp_bench.bench("gpt2", SMALL, Work(tmp_path))
    assert not {plain(d.text) for d in users.documents} & {plain(r.text) for r in users.test}
    crt = Bench(SMALL, Work(tmp_path))
    test, note = crt.texts.test()
    train = {plain(line) for d in crt.texts.documents("train") for line in d.text.split("\n")}
    assert test
    assert not train & {plain(r.text) for r in test}
    assert not note.startswith("0 of")


def records(words: list[str], labels: list[str] | None = None) -> list[Record]:
    return [
        Record(str(at), str(at), 0, len(each), each, label=labels[at] if labels else None)
        for at, each in enumerate(words)
    ]


def test_the_constant_predictor_of_classes_is_the_largest_class() -> None:
    model = {"name": "x", "task": "classify"}
    assert constant(model, [], records(["a"] * 5, ["x", "y", "y", "y", "z"])) == 3 / 5


def test_the_constant_predictor_of_words_is_their_frequencies_by_hand() -> None:
    train, test = records(["abab", "ba"]), records(["aac", "a"])
    model = {"name": "lstm", "tokenizer": "bytes", "max_length": 64}
    tokenizer = load_tokenizer("bytes", "lstm")
    size, mask = len(tokenizer), mask_id(tokenizer)

    def scored(many: list[Record]) -> list[int]:
        coded = encode_all(tokenizer, [r.body for r in many])
        return [int(i) for at in range(len(coded)) for i in coded[at][1:] if i != mask]

    counts = Counter(scored(train))
    total = sum(counts.values()) + size
    nll = [-math.log((counts[each] + 1) / total) for each in scored(test)]
    assert constant(model, train, test) == pytest.approx(math.exp(sum(nll) / len(nll)))
    assert constant(model, train, records(["ab"])) < constant(model, train, records(["xy"]))
