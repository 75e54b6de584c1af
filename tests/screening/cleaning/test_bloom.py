"""Bloom filters: no copy is missed, and a document without one is removed no more often than they say."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import pytest
from scipy.stats import binom

from taciturn.screening.cleaning import minhash
from taciturn.screening.cleaning.bloom import ERROR, Copies, digest
from taciturn.text.document import Document

pytest.importorskip("rbloom", reason="needs the near extra")


def test_bloom_is_exact_on_a_small_corpus() -> None:
    draw = random.Random(0)
    texts = [f"{draw.randrange(3000)} {draw.choice(['é', 'e', chr(0xDC80)])}" for _ in range(10_000)]
    documents = [Document(str(i), text, label=draw.choice([None, "x"])) for i, text in enumerate(texts)]
    seen: set[tuple[str, str | None]] = set()
    expected = []
    for document in documents:
        expected.append((document.text, document.label) in seen)
        seen.add((document.text, document.label))
    assert Copies().removed(documents) == expected
    assert Copies(expected=100).removed(documents) == expected  # grows six times
    assert Copies().removed([Document("a", "x\n"), Document("b", "x\r\n"), Document("c", "x\r")]) == [
        False,
        True,
        False,
    ]


@pytest.mark.parametrize("expected", [20_000, 1000])
def test_bloom_errs_no_more_often_than_it_says(expected: int) -> None:
    """20,000 different documents at an error of 1 %: on average at most that many removed; Bin(20000, 1 %) exceeds its
    quantile once in a million. The filter that meets what it expects is full at the end, and errs less before."""
    judge = Copies(expected=expected, error=0.01)
    errors = sum(judge.removed([Document(str(i), f"text {i}") for i in range(20_000)]))
    assert errors <= binom.ppf(1 - 1e-6, 20_000, 0.01)
    assert ERROR == 1e-6


def test_bloom_needs_a_few_bytes_a_document() -> None:
    judge = Copies(expected=1000)
    judge.removed([Document(str(i), f"text {i}") for i in range(50_000)])
    assert sum(each.size_in_bits for each in judge._filters) / 8 < 12 * 50_000


def test_the_digest_is_the_same_in_every_process() -> None:
    code = (
        "from taciturn.screening.cleaning.bloom import digest; from taciturn.screening.cleaning.minhash import _hash\n"
        "from taciturn.text.document import Document\n"
        "print(digest(Document('a', 'text', label='l')).hex(), _hash('word'))"
    )
    outs = {
        subprocess.run(
            [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    }
    assert outs == {f"{digest(Document('b', 'text', label='l')).hex()} {minhash._hash('word')}\n".encode()}
