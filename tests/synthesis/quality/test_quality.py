"""Measures of quality: against slow oracles, under their nulls, and on texts of which it is known how good they are."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import taciturn as tt
from synthesis_runs import SECRET, rows
from taciturn.api import TrainedRun
from taciturn.errors import DataError, UsageError
from taciturn.reporting.quality import copying, write
from taciturn.synthesis.quality.distances import length_distance, ngram_distance, permuted, words
from taciturn.synthesis.quality.frontier import area, mauve_like, of_ngrams
from taciturn.synthesis.quality.measure import measure
from taciturn.synthesis.quality.overlap import LENGTHS, copied
from taciturn.synthesis.quality.usefulness import SEEDS, usefulness

pytest.importorskip("sklearn", reason="scikit-learn comes with the extra taciturn[quality]")

WORDS = [
    *("the", "a", "lamp", "parcel", "is", "was", "broken", "came", "on", "in", "time", "late", "thanks", "please"),
    *("call", "me", "back", "again", "today"),
]
sentences = st.lists(st.sampled_from(WORDS[:6]), max_size=6)


def made_up(number: int, seed: int, vocabulary: list[str] = WORDS, length: int = 9) -> list[list[str]]:
    draw = random.Random(seed)
    return [draw.choices(vocabulary, k=length) for _ in range(number)]


def which(ours: int, theirs: int) -> np.ndarray:
    return np.arange(ours + theirs) < ours


@given(
    st.lists(sentences, min_size=1, max_size=5), st.lists(sentences, min_size=1, max_size=5), st.sampled_from((1, 2))
)
def test_the_distance_of_words_is_jensen_shannon_by_hand(a: list[list[str]], b: list[list[str]], n: int) -> None:
    p, q = (Counter(tuple(t[i : i + n]) for t in texts for i in range(len(t) - n + 1)) for texts in (a, b))
    found = ngram_distance([*a, *b], n, which(len(a), len(b)), 0).value
    if not p or not q:
        assert found in (0.0, 1.0)
        return
    total = 0.0
    for key in p.keys() | q.keys():
        x, y = p[key] / p.total(), q[key] / q.total()
        total += sum(z / 2 * math.log2(2 * z / (x + y)) for z in (x, y) if z)
    assert found == pytest.approx(math.sqrt(max(total, 0.0)), abs=1e-6)


def kl(p: list[float], r: list[float]) -> float:
    return sum(a * math.log(a / b) for a, b in zip(p, r, strict=True) if a)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=6))
def test_the_area_is_that_of_the_published_frontier(counts: list[tuple[int, int]]) -> None:
    """By the definition, point by point; the average of both axes, as the authors' code takes it."""
    ours, theirs = np.array([a for a, _ in counts]), np.array([b for _, b in counts])
    if not ours.sum() or not theirs.sum():
        return
    p, q = (list(map(float, each / each.sum())) for each in (ours, theirs))
    points = [(0.0, 1.0), (1.0, 0.0)]
    for w in np.linspace(1e-6, 1 - 1e-6, 25):
        r = [w * a + (1 - w) * b for a, b in zip(p, q, strict=True)]
        points.append((math.exp(-5 * kl(q, r)), math.exp(-5 * kl(p, r))))
    both = 0.0
    for axis in (0, 1):
        points.sort(key=lambda point: (point[axis], -point[1 - axis]))
        both += sum((b[axis] - a[axis]) * (a[1 - axis] + b[1 - axis]) / 2 for a, b in pairwise(points)) / 2
    assert area(ours, theirs) == pytest.approx(both, abs=1e-6)
    assert area(ours, ours) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_alike_is_not_told_apart_and_what_differs_is(seed: int) -> None:
    alike, other = made_up(120, seed), made_up(120, 90 + seed)
    odd = made_up(120, 50 + seed, [*WORDS[3:], "quarterly", "revenue"], 12)
    for ours, differs in ((other, False), (odd, True)):
        both, mine = [*ours, *alike], which(len(ours), len(alike))
        lengths = np.array([len(each) for each in both])
        found = [
            ngram_distance(both, 1, mine, seed),
            ngram_distance(both, 2, mine, seed),
            mauve_like(of_ngrams(both, seed), mine, seed),
        ]
        assert [each.differs for each in found] == [differs] * 3
        assert length_distance(lengths, mine, seed).value == pytest.approx(3.0 if differs else 0.0)


@pytest.mark.chance(1e-6)
def test_a_permutation_p_is_at_most_its_level_by_chance() -> None:
    """The p of 300 comparisons of like with like: at most .05 in a share of .05, binomial; false-alarm rate 1e-6."""
    rng = np.random.default_rng()
    below = 0
    for _ in range(300):
        values = rng.normal(size=24)
        found = permuted(
            "", lambda mine, v=values: abs(v[mine].mean() - v[~mine].mean()), which(12, 12), int(rng.integers(2**31))
        )
        below += found.p <= 0.05
    assert below <= 38  # P(Binomial(300, .05) > 38) < 1e-6


@given(st.lists(sentences, max_size=4), st.lists(sentences, max_size=4), st.lists(sentences, max_size=4))
def test_what_is_copied_is_counted_as_by_hand(a: list[list[str]], b: list[list[str]], known: list[list[str]]) -> None:
    def share(texts: list[list[str]], n: int) -> float:
        there = {tuple(t[i : i + n]) for t in known for i in range(len(t) - n + 1)}
        runs = [[tuple(t[i : i + n]) in there for i in range(len(t) - n + 1)] for t in texts if len(t) >= n]
        return sum(sum(r) / len(r) for r in runs) / len(runs) if runs else 0.0

    for each in copied(a, b, known, 0):
        assert each.synthetic == pytest.approx(share(a, each.words))
        assert each.held_out == pytest.approx(share(b, each.words))
        assert each.texts == tuple(sum(len(t) >= each.words for t in texts) for texts in (a, b))
        assert each.interval is None


def test_a_model_that_repeats_training_text_is_told_from_one_that_writes_like_people() -> None:
    common = made_up(400, 1, length=20)
    training, held_out = common[:300], common[300:]
    parrot = [*made_up(70, 2, length=20), *training[:30]]
    by_length = {each.words: each for each in copied(parrot, held_out, training, 0)}
    assert [by_length[n].more for n in LENGTHS[1:3]] == [True, True]
    assert by_length[32].more is None  # no text is that long
    fresh = {each.words: each for each in copied(made_up(100, 3, length=20), held_out, training, 0)}
    assert [fresh[n].more for n in LENGTHS[:3]] == [False] * 3
    assert fresh[4].held_out > 0  # shared by people who never met
    assert "repeats what it was trained on" in copying({"copied": [each.to_json() for each in by_length.values()]})
    assert "No more of it" in copying({"copied": [each.to_json() for each in fresh.values()]})


def labelled(number: int, seed: int, truth: float = 1.0) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    texts, labels = [], []
    for i in range(number):
        label = ("good", "bad")[i % 2]
        texts.append(" ".join([*draw.choices(WORDS, k=5), {"good": "thanks", "bad": "broken"}[label]]))
        labels.append(label if draw.random() < truth else ("good", "bad")[(i + 1) % 2])
    return texts, labels


def test_text_of_random_labels_is_of_no_use_and_text_of_right_ones_is() -> None:
    held_out, original = labelled(200, 1), labelled(200, 2)
    right = usefulness(labelled(200, 3), original, held_out, 0)
    wrong = usefulness(labelled(200, 3, truth=0.5), original, held_out, 0)
    assert right is not None
    assert wrong is not None
    assert len(right.synthetic) == len(right.original) == SEEDS >= 3
    assert right.majority == 0.5
    assert min(right.synthetic) > 0.9
    assert right.interval is not None
    assert right.interval[0] <= 0.02
    assert wrong.interval is not None
    assert wrong.interval[1] < 0
    assert usefulness(labelled(20, 1), None, (held_out[0], ["good"] * 200), 0) is None


def test_the_page_is_for_its_owner_and_tells_no_text(run: TrainedRun, tmp_path: Path) -> None:
    made = run.synthesize(40, tmp_path / "made", labels=["good", "bad"], max_tokens=12)
    seen = tt.read(rows(), label="label")
    held = tt.read(({**row, "text": row["text"].replace(SECRET, "Quill")} for row in rows()), label="label")
    found = made.quality(held, seen, out=tmp_path / "own")
    assert [each["words"] for each in found["copied"]] == list(LENGTHS)
    assert found["compared"] == {"synthetic": 40, "held_out": 40, "training": 40}
    own = tmp_path / "own"
    assert own.stat().st_mode & 0o777 == 0o700
    for name in ("quality.html", "quality.json"):
        assert (own / name).stat().st_mode & 0o777 == 0o600
        told = (own / name).read_text()
        assert not any(word in told for word in (SECRET, "Quill", "the lamp"))
        assert "owner" in told
    assert json.loads((own / "quality.json").read_text()) == json.loads(json.dumps(found))
    before = {path.name for path in made.folder.iterdir()}
    with pytest.raises(UsageError, match="lies in the corpus"):
        write(made.folder / "quality", made.folder, found)
    assert {path.name for path in made.folder.iterdir()} == before


def test_too_few_texts_compare_with_nothing(run: TrainedRun, tmp_path: Path) -> None:
    made = run.synthesize(20, tmp_path / "made", max_tokens=12)
    with pytest.raises(DataError, match="3 held-out texts"):
        measure(made.folder, tt.read(["one", "two", "three"]).documents())


def test_words_are_words_and_signs() -> None:
    assert words("A b,\nC") == ["a", "b", ",", "c"]
