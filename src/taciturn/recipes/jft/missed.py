"""What the detectors of JFT miss on annotated text, measured as section 3.1 does: sensitive tokens missed, of all tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.recipes.cells import Row, Work
from taciturn.recipes.jft.paper import LEVELS
from taciturn.recipes.recipe import Cell, Inputs, Results, Table

if TYPE_CHECKING:
    from taciturn.text.document import Record

SETS = {"abcd": "test", "customersim": "test", "multidogo": "valid", "wikigold": "all", "wnut17": "valid"}
"""Annotated sets and their splits; a detector learns from none of them."""
MOST = 1500
"""Records of a set, evenly spread."""
SAMPLES, SIZE = 10, 40
"""The paper draws .01 % ten times, of MNLI 39 records."""


def measured(inputs: Inputs, work: Work) -> Results:
    """Share of the tokens that each level misses on each annotated set, with the paper's interval."""
    assert inputs.data is not None
    rows: list[tuple[Cell, ...]] = []
    for name, split in SETS.items():
        for level in LEVELS:
            key = {"missed": name, "split": split, "level": level, "most": MOST, "given": inputs.data.resolve().name}
            row = work.cell(key, partial(_measure, inputs.data, name, split, level))
            low, high = (100 * row[end] for end in ("low", "high"))
            shares = (100 * row["sensitive"], 100 * row["marked"], row["recall"], 100 * row["missed"])
            rows.append((f"{name}, {level}", row["records"], row["tokens"], *shares, f"{low:.2f} to {high:.2f}"))
    columns = ("set, detector", "records", "tokens", "sensitive, %", "marked, %", "recall", "m, %", "95 % of samples")
    note = (
        "m: sensitive tokens that are missed, of all tokens; a word is a token. Last column: the 95 % interval of its mean "
        f"in {SAMPLES} samples of {SIZE} records, as the paper estimates it; m itself is of all records. Recall is of "
        "sensitive tokens. What is annotated is what these sets' makers looked for; of ABCD also what a pattern found."
    )
    setting = (
        f"Annotated sets of the folder given, {MOST:,} records of each at most; spaCy's small model at four levels."
    )
    return Results(
        setting, tables=(Table("What the detectors miss", columns, tuple(rows), note=note),), says=_says(rows)
    )


def _says(rows: Sequence[tuple[Cell, ...]]) -> tuple[str, ...]:
    high = [row for row in rows if str(row[0]).endswith(LEVELS[1])]
    missed, recall = ([float(row[at] or 0) for row in high] for at in (6, 5))
    return (
        f"The high entity level, which the paper screens with, misses {min(missed):.2f} to {max(missed):.2f} % of the "
        f"tokens, at a recall of {min(recall):.2f} to {max(recall):.2f}; the paper has .3 to 1.2 % on MNLI, which is other "
        "text with other labels.",
        "Every ε of lightly-noised fine-tuning is calibrated to m; it is an average over tokens and no bound for the one "
        "that was missed ([guarantees, section 8](../guarantees.md#8-where-the-papers-differ-from-what-holds)).",
    )


def _measure(folder: Path, name: str, split: str, level: str) -> Row:
    import taciturn as tt
    from taciturn.data.loaders import load
    from taciturn.text.segment import split as cut

    documents = load(name, folder, split).corpus.documents()
    every = [record for d in documents for record in cut(d, "turn" if d.turns else "document") if record.body.strip()]
    records = every[:: max(1, -(-len(every) // MOST))]
    marks = [
        [(s.start, s.end) for s in found.spans] for found in tt.policy(f"spacy:{level}").find([r.body for r in records])
    ]
    return {"records": len(records), **rates(counts(records, marks))}


def counts(records: Sequence[Record], marks: Sequence[Sequence[tuple[int, int]]]) -> Any:
    """[N, 4]: words of each record, sensitive ones, marked ones, sensitive ones that are not marked. A word that is touched
    counts, as redaction takes it away or leaves a part of it."""
    import re

    import numpy as np

    def touched(word: tuple[int, int], spans: Sequence[tuple[int, int]]) -> bool:
        return any(start < word[1] and word[0] < end for start, end in spans)

    found = []
    for record, spans in zip(records, marks, strict=True):
        words = [match.span() for match in re.finditer(r"\S+", record.body)]
        gold = [touched(word, [(s.start, s.end) for s in record.gold]) for word in words]
        marked = [touched(word, spans) for word in words]
        missed = sum(g and not m for g, m in zip(gold, marked, strict=True))
        found.append((len(words), sum(gold), sum(marked), missed))
    return np.array(found)


def rates(counted: Any, seed: int = 0) -> Mapping[str, float]:
    """Shares of all words, and the 95 % interval of the mean miss rate of SAMPLES samples of SIZE records (Student's t)."""
    import math
    import random
    from statistics import mean, stdev

    from scipy import stats

    words, sensitive, marked, missed = map(int, counted.sum(0))
    draw = random.Random(seed)
    samples = [counted[draw.sample(range(len(counted)), min(SIZE, len(counted)))].sum(0) for _ in range(SAMPLES)]
    each = [float(sample[3] / sample[0]) for sample in samples]
    half = float(stats.t.ppf(0.975, SAMPLES - 1)) * stdev(each) / math.sqrt(SAMPLES)
    return {
        "tokens": words, "sensitive": sensitive / words, "marked": marked / words, "missed": missed / words,
        "recall": 1 - missed / max(sensitive, 1), "low": max(0.0, mean(each) - half), "high": mean(each) + half,
    }  # fmt: skip
