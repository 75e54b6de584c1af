"""The miss rate of a detector: counted as a slow loop counts, with the paper's interval, from a folder to a page."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from taciturn.recipes.build import ROWS, build
from taciturn.recipes.jft import missed
from taciturn.recipes.recipe import Inputs
from taciturn.text.document import Record
from taciturn.text.spans import Span

TEXT = st.text(alphabet="ab ", min_size=1, max_size=12)
SPANS = st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=3)


@given(TEXT, SPANS, SPANS)
def test_counts_are_those_of_a_loop_over_characters(
    text: str, gold: list[tuple[int, int]], found: list[tuple[int, int]]
) -> None:
    spans, marks = ([(a, min(a + n, len(text))) for a, n in each if a < len(text)] for each in (gold, found))
    record = Record("r", "d", 0, len(text), text, gold=tuple(Span(a, b) for a, b in spans))
    slow, at = [0, 0, 0, 0], 0
    for word in text.split(" "):
        places = set(range(at, at + len(word)))
        at += len(word) + 1
        if word:
            is_gold = any(places & set(range(a, b)) for a, b in spans)
            is_marked = any(places & set(range(a, b)) for a, b in marks)
            for i, holds in enumerate((True, is_gold, is_marked, is_gold and not is_marked)):
                slow[i] += holds
    assert missed.counts([record], [marks]).tolist() == [slow]


def test_the_interval_is_that_of_ten_samples_and_covers_what_does_not_vary() -> None:
    """Where all records are alike there is nothing to draw; else it is Student's interval of ten means."""
    alike = missed.rates(np.tile([10, 4, 3, 1], (100, 1)))
    assert alike["low"] == pytest.approx(0.1)
    assert alike["high"] == pytest.approx(0.1)
    assert alike["recall"] == 0.75
    rng = np.random.default_rng(3)
    counted = np.stack([np.full(500, 10), np.full(500, 4), np.full(500, 3), rng.integers(0, 4, 500)], 1)
    found = missed.rates(counted, seed=5)
    import random

    draw = random.Random(5)
    shares = [counted[draw.sample(range(500), 40)][:, 3].sum() / 400 for _ in range(10)]
    half = stats.t.ppf(0.975, 9) * stdev(shares) / math.sqrt(10)
    assert (found["low"], found["high"]) == pytest.approx((mean(shares) - half, mean(shares) + half))
    assert found["low"] < found["missed"] < found["high"]


def test_a_detector_that_sees_nothing_misses_all_that_is_sensitive() -> None:
    record = Record("r", "d", 0, 9, "a bb ccc!", gold=(Span(2, 4),))
    found = missed.rates(missed.counts([record] * 50, [[]] * 50))
    assert found["missed"] == found["sensitive"] == pytest.approx(1 / 3)
    assert found["recall"] == 0


def test_a_folder_of_annotated_sets_becomes_the_medium_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("spacy")
    monkeypatch.setattr(missed, "SETS", {"customersim": "test"})
    turn = {
        "speaker": "user",
        "text": "I am Zoe Lee of Rome.",
        "spans": [{"start": 5, "end": 12, "value": "Zoe Lee", "slot": "name"}],
    }
    (tmp_path / "given" / "customersim").mkdir(parents=True)
    with gzip.open(tmp_path / "given" / "customersim" / "test.jsonl.gz", "wt") as file:
        file.write(json.dumps({"dialogue_id": "1", "turns": [turn] * 3}) + "\n")
    built = build("jft-table3", Inputs("medium", data=tmp_path / "given"), tmp_path / "out")
    (table,) = built.results.tables
    assert len(table.rows) == 4
    page = (tmp_path / "out" / "jft-table3-medium.md").read_text()
    assert "`taciturn recipe run jft-table3 --medium --data DATA`" in page
    rows = (tmp_path / "out" / ROWS / "jft-table3-medium.jsonl").read_text()
    assert "Zoe" not in rows + page
    assert str(tmp_path) not in rows
