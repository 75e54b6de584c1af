"""CustomerSim: exact spans, reproducible, disjoint people, and the shape of the corpus it stands in for."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.data import people, phrases
from taciturn.data.customersim import VERIFY, Statistics, simulate, statistics, write
from taciturn.errors import UsageError
from taciturn.text.document import Document
from taciturn.text.readers import read
from taciturn.text.segment import split

SHAPES = {
    "name": r"[A-Z][a-z]+ [A-Z][a-z]+",
    "address": r"(\d+|PO Box) .+, [A-Z]{2} \d{5}",
    "phone_number": r"(\+1 |001-)?\(?\d{3}\)?[ .-]?\d{3}[ .-]?\d{4}",
    "order_number": r"\d{3}-\d{5}-\d{4}",
    "tracking_number": r"[A-Z0-9]{10}",
}


@pytest.fixture(scope="module")
def train() -> list[Document]:
    return simulate(3_000, seed=1)


def values(documents: list[Document], label: str) -> list[str]:
    return [d.text[s.start : s.end] for d in documents for s in d.gold if s.label == label]


def test_spans_mark_every_secret_exactly(train: list[Document]) -> None:
    assert {span.label for d in train for span in d.gold} == set(SHAPES)
    for label, shape in SHAPES.items():
        assert all(re.fullmatch(shape, value) for value in values(train, label))
    for document in train[:300]:
        secrets = [(s.label, document.text[s.start : s.end]) for s in document.gold]
        rest = document.text
        for span in sorted(document.gold, reverse=True):
            rest = rest[: span.start] + rest[span.end :]
        assert not any(value in rest for _, value in secrets)
        assert not re.search(r"\d", rest)
        assert len(set(secrets)) == 3  # the name, one way to verify it, the tracking number


def test_dialogues_follow_the_agenda(train: list[Document]) -> None:
    for document in train:
        assert [t.speaker for t in document.turns] == ["SYS", "USR"] * (len(document.turns) // 2) + ["SYS"] * (
            len(document.turns) % 2
        )
        assert "".join(document.text[t.start : t.end] for t in document.turns) == document.text
        assert all(document.text[t.end - 1] == "\n" for t in document.turns)
        labels = [s.label for s in document.gold]
        assert labels[0] == "name"
        assert labels[1] in VERIFY
        assert "tracking_number" in labels
        assert [r.text for r in split(document, "turn")] == [document.text[t.start : t.end] for t in document.turns]


def test_sizes_lengths_and_slots(train: list[Document]) -> None:
    """Each share has a standard error below .01 at 3,000 dialogues; the bounds are at least 5 of them away."""
    found = statistics(train)
    assert found.dialogues == 3_000
    assert found.mean_turns == pytest.approx(8.5, abs=0.1)
    assert found.turns[8] + found.turns[9] > 0.93
    assert set(found.turns) <= set(range(6, 12))
    assert all(found.slots[slot] == pytest.approx(1 / 3, abs=0.05) for slot in VERIFY)
    assert found.slots["name"] == pytest.approx(1.02, abs=0.02)
    assert found.slots["tracking_number"] == pytest.approx(1.02, abs=0.02)
    assert found.mean_tokens * 12_000 > 1_050_000  # the full size passes a million tokens
    assert 370 < found.mean_characters < 410


def test_close_to_the_published_corpus(shared: Path) -> None:
    def published(split: str) -> Statistics:
        documents = read(shared / "data" / "customersim" / f"{split}.jsonl.gz").documents()
        return statistics(d for d in documents if not d.id.startswith("canary"))

    theirs, ours = published("train"), statistics(simulate(10_000, seed=0))
    assert ours.dialogues == theirs.dialogues == 10_000
    assert ours.mean_turns == pytest.approx(theirs.mean_turns, abs=0.05)
    for count in range(6, 12):
        assert ours.turns[count] == pytest.approx(theirs.turns[count], abs=0.03)
    assert ours.slots.keys() == theirs.slots.keys()
    for slot, mean in theirs.slots.items():
        assert ours.slots[slot] == pytest.approx(mean, abs=0.03)
    assert 1.0 <= ours.mean_characters / theirs.mean_characters <= 1.15
    assert 1.0 <= ours.mean_words / theirs.mean_words <= 1.15
    assert 1.0 <= ours.mean_tokens / theirs.mean_tokens <= 1.15


def test_sentences_are_our_own(shared: Path) -> None:
    documents = read(shared / "data" / "customersim" / "train.jsonl.gz").documents()
    theirs = {document.text[t.start : t.end].strip() for document in documents for t in document.turns if not any(
        t.start <= s.start < t.end for s in document.gold)}  # fmt: skip
    ours = [*phrases.GREET, *(text for slot in phrases.ASK.values() for text in slot), *phrases.DONE, *phrases.BYE]
    assert not theirs & set(ours)


def test_people_of_different_splits_differ() -> None:
    names = {
        split: set(values(simulate(1_000, seed=seed, split=split), "name")) for seed, split in enumerate(people.SHARES)
    }
    assert not names["train"] & names["valid"]
    assert not names["train"] & names["test"]
    assert not names["valid"] & names["test"]
    assert len(set(people.FIRST)) * len(set(people.LAST)) > 10_000
    assert len(names["train"]) > 950


def test_same_arguments_same_text_in_any_process() -> None:
    script = "from taciturn.data.customersim import simulate; print(repr(simulate(40, 7, 'valid')))"
    runs = {
        hashlib.sha256(
            subprocess.run(
                [sys.executable, "-c", script],
                env={**os.environ, "PYTHONHASHSEED": seed},
                capture_output=True,
                check=True,
            ).stdout
        ).hexdigest()
        for seed in ("0", "1")
    }
    assert len(runs) == 1
    assert simulate(40, 7, "valid") == simulate(60, 7, "valid")[:40]
    assert simulate(40, 7, "valid") != simulate(40, 8, "valid")
    assert [d.text for d in simulate(40, 7)] != [d.text for d in simulate(40, 7, "valid")]


def test_written_files_read_back(tmp_path: Path) -> None:
    paths = write(tmp_path / "sim", sizes=(30, 5, 4), seed=3)
    assert [path.name for path in paths] == ["train.jsonl", "valid.jsonl", "test.jsonl"]
    for path, size in zip(paths, (30, 5, 4), strict=True):
        assert read(path).documents() == simulate(size, 3, path.stem)
    assert sorted(p.name for p in (tmp_path / "sim").iterdir()) == ["test.jsonl", "train.jsonl", "valid.jsonl"]
    assert len(read(*paths).documents()) == 39


def test_wrong_arguments() -> None:
    with pytest.raises(UsageError, match="did you mean 'train'"):
        simulate(1, 0, "trian")
    with pytest.raises(UsageError, match="one number for each"):
        write(Path("unused"), sizes=(1, 2))
    with pytest.raises(UsageError):
        simulate(-1, 0)
    with pytest.raises(UsageError):
        statistics([])
