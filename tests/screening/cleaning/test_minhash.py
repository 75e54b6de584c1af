"""Cleaning: what it removes is verified, counted by source and stopped above half of one; and no claim survives it."""

from __future__ import annotations

import json
import random
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.screening import ScreenedCorpus, policy, screen
from taciturn.screening.cleaning import clean, minhash
from taciturn.screening.cleaning.clean import SINGLES, Cleaned, Source, left_out
from taciturn.screening.cleaning.minhash import Index, Near, candidate, rows
from taciturn.screening.engines import choose
from taciturn.text.document import Document
from taciturn.text.readers import Corpus, corpus, read
from taciturn.text.readers.tally import Tally

PI, WIDE = policy("phone", "email"), policy("conservative")
WORDS = [a + b for a in ("ba", "ko", "mi", "tu", "re", "sal", "dor") for b in ("n", "lia", "ster", "vo", "x", "quen")]


def made_up(count: int, seed: int, *, length: int = 60, edits: int = 3) -> list[str]:
    """Every other text is an earlier one with up to ``edits`` words changed."""
    draw = random.Random(seed)
    texts: list[list[str]] = []
    for number in range(count):
        words = draw.choices(WORDS, k=length) if number % 2 == 0 or not texts else list(draw.choice(texts))
        for _ in range(draw.randint(0, edits) if number % 2 else 0):
            words[draw.randrange(length)] = draw.choice(WORDS)
        texts.append(words)
    return [" ".join(words) for words in texts]


def shingles(text: str) -> set[tuple[str, ...]]:
    words = text.casefold().split()
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))}


def likeness(a: str, b: str) -> float:
    one, other = shingles(a), shingles(b)
    return len(one & other) / len(one | other)


def removed(texts: list[str], **options: object) -> list[int]:
    held = Corpus.from_texts(texts)
    out = left_out(held, held.pieces()[0], "minhash", most=1, **options).left_out  # type: ignore[arg-type]
    return sorted(out.get(0, ()))


@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_nothing_is_removed_that_is_not_close_to_a_document_that_stays(threshold: float) -> None:
    """All pairs of 300 documents. A near-duplicate is missed with probability at most 1 - RECALL = 1 %, so that more than
    the 1 - 10⁻⁶ quantile of Bin(n, 1 %) missed is a false alarm once in a million."""
    texts = made_up(300, seed=4)
    out = set(removed(texts, threshold=threshold))
    kept = [i for i in range(300) if i not in out]
    assert all(any(k < i and likeness(texts[k], texts[i]) >= threshold for k in kept) for i in out)
    missed = sum(any(k < i and likeness(texts[k], texts[i]) >= threshold for k in kept) for i in kept)
    assert len(out) > 50
    assert missed <= binom.ppf(1 - 1e-6, len(out) + missed, 1 - minhash.RECALL)


def test_the_share_of_pairs_that_become_candidates_is_that_of_the_formula() -> None:
    """2,000 pairs in each of three likenesses; the two-sided test of each fails falsely once in a million. A pair is counted
    apart from all others (an index of two documents), so the counts are binomial."""
    draw = np.random.default_rng(0)
    r = rows(0.8)
    for index in (0.5, 0.7, 0.85):
        size = 200
        common = round(2 * size * index / (1 + index))
        hits, pairs = 0, 2000
        exact = common / (2 * size - common)
        for _ in range(0, pairs, 100):
            every = draw.integers(0, 1 << 64, (100, 2 * size - common), dtype=np.uint64)
            sets = [part for each in every for part in (each[:size], each[size - common :])]
            keys = minhash._band_keys(sets, [None] * len(sets), r)
            hits += int((keys[::2] == keys[1::2]).any(axis=1).sum())
        p = candidate(exact, r)
        assert binom.ppf(5e-7, pairs, p) <= hits <= binom.ppf(1 - 5e-7, pairs, p), (index, hits / pairs, p)


def test_shingles_are_words_not_characters_and_fold_case() -> None:
    def of(text: str) -> list[int]:
        return Near().shingles([text])[0].tolist()  # type: ignore[no-any-return]

    assert len(of("One two three four five six, seven!")) == 3
    assert of("ONE two\nthree") == of("one, two three")
    assert len(of("one two")) == len(of("?!")) == len(of("\u6211\u5011\u8d70")) == 1
    assert of("one two") != of("two one")
    assert of("?!") != of("...")
    assert len(of("a b c d e " * 50)) == 5


TEXT = st.lists(st.sampled_from("abcd"), min_size=1, max_size=40)


@given(st.lists(TEXT, min_size=2, max_size=5))
@settings(max_examples=200, deadline=None)
def test_hashed_shingles_have_the_likeness_of_the_shingles(texts: list[list[str]]) -> None:
    plain = [" ".join(words) for words in texts]
    sets = Near().shingles(plain)
    assert all((np.diff(each.astype(object)) > 0).all() for each in sets)
    for (a, one), (b, other) in combinations(zip(sets, plain, strict=True), 2):
        mine, theirs = set(a.tolist()), set(b.tolist())
        assert len(mine & theirs) / len(mine | theirs) == likeness(one, other)


def test_likeness_is_not_passed_along_a_chain() -> None:
    """a ~ b ~ c, a and c unlike: b goes, c stays. With b first, both are like a document that stays, and go."""
    words = [f"w{i}" for i in range(200)]
    a, b, c = (" ".join([*words[:end], *(f"new{i}" for i in range(end, 200))]) for end in (200, 185, 170))
    assert likeness(a, b) >= 0.8 <= likeness(b, c)
    assert likeness(a, c) < 0.8
    assert removed([a, b, c]) == [1]
    assert removed([c, b, a]) == [1]
    assert removed([b, a, c]) == [1, 2]


def test_labels_keep_documents_apart_and_the_first_stays() -> None:
    text = " ".join(WORDS)
    labels = ("x", "y", None, "x", None)
    held = Corpus.from_documents(Document(str(i), text, label=label) for i, label in enumerate(labels))
    for how in ("minhash", "bloom"):
        if how == "bloom":
            pytest.importorskip("rbloom", reason="needs the near extra")
        assert left_out(held, held.pieces()[0], how, most=1).left_out == {0: frozenset({3, 4})}  # type: ignore[arg-type]


def test_a_crowd_of_half_alike_documents_is_looked_at_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts that share a long passage are candidates for one another and not near-duplicates."""
    looked: list[int] = []
    close = Near._close
    monkeypatch.setattr(Near, "_close", lambda self, mine, number: looked.append(number) or close(self, mine, number))
    monkeypatch.setattr(minhash, "MOST", 20)
    shared = " ".join(f"s{i}" for i in range(150))
    texts = [f"{shared} {' '.join(f'w{n}-{i}' for i in range(25))}" for n in range(300)]
    assert likeness(texts[0], texts[1]) < 0.8
    assert not removed(texts)
    assert 300 < len(looked) <= 20 * 300
    assert removed([*texts, texts[7], texts[250]]) == [300, 301]


def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = made_up(400, seed=1)
    whole = removed(texts)
    monkeypatch.setattr(clean, "_BATCH", 7)
    monkeypatch.setattr(minhash, "MOST", 3)
    few = removed(texts)
    monkeypatch.setattr(clean, "_BATCH", 400)
    assert removed(texts) == few
    monkeypatch.undo()
    monkeypatch.setattr(clean, "_BATCH", 7)
    assert removed(texts) == whole


def test_p25_every_number_is_a_document() -> None:
    """huggingface/datatrove#249: an id that stood for "none" came out as a document to remove."""
    index = Index()
    first = (1 << 32) - 3
    for number in range(first, first + 6):  # across 4294967295
        index.add(np.array([0, (1 << 64) - 1, number], dtype=np.uint64), np.full(3, number, dtype=np.int64))
    found = index.find(np.array([0, 1, first + 2, (1 << 64) - 1], dtype=np.uint64))
    every = list(range(first, first + 6))
    assert found == {0: every, (1 << 64) - 1: every, first + 2: [first + 2]}
    texts = made_up(300, seed=2)
    held = Corpus.from_texts(texts)
    cleaned = left_out(held, held.pieces()[0], "minhash")
    assert cleaned.left_out.keys() == {0}
    assert cleaned.left_out[0] < set(range(300))
    (source,) = cleaned.sources
    assert (source.name, source.read, source.kept + source.removed) == ("memory", 300, 300)
    assert source.removed == cleaned.removed == len(cleaned.left_out[0])


def test_p25_lost_documents_do_not_pass() -> None:
    with pytest.raises(AssertionError, match="3 read, 1 \\+ 1"):
        Source("a", 3, 1, 1)
    with pytest.raises(AssertionError, match="1 removed by source, 2 by piece"):
        Cleaned({0: frozenset({1, 2})}, (Source("a", 3, 2, 1),))


def files(folder: Path) -> list[Path]:
    """a has few near-duplicates; b repeats itself and a."""
    base = made_up(60, seed=3, edits=12)
    for name, texts in (("a", base), ("b", [*base[:20], *base[:10]])):
        lines = (json.dumps({"id": f"{name}{i}", "text": f"{text}\n"}) for i, text in enumerate(texts))
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return [folder / "a.jsonl", folder / "b.jsonl"]


def test_p26_more_than_half_of_a_source_stops(tmp_path: Path) -> None:
    """marin-community/marin#6854: 859,092 records became two, and nobody was told."""
    paths = files(tmp_path)
    with pytest.raises(DataError, match=r"30 of 30 documents of 'b.jsonl': more than the 50 %.*clean_most") as caught:
        screen(read(*paths, id="id"), PI, WIDE, clean="minhash", out=tmp_path / "out")
    assert "a.jsonl" not in str(caught.value)
    assert WORDS[0] not in str(caught.value)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.jsonl", "b.jsonl"]
    done = screen(read(*paths, id="id"), PI, WIDE, clean="minhash", clean_most=1, out=tmp_path / "out")
    a, b = done.manifest.cleaned
    assert (b.name, b.read, b.kept, b.removed) == ("b.jsonl", 30, 0, 30)
    assert a.read == 60 == a.kept + a.removed
    assert done.counts.cleaned == a.removed + b.removed
    assert done.counts.documents == a.kept + b.kept
    with pytest.raises(DataError, match="70 %"):
        screen(read(*paths, id="id"), PI, WIDE, clean="minhash", clean_most=0.7)


def test_p26_different_texts_with_common_phrases_all_stay() -> None:
    """What chained by character 5-grams: templates with many words in common."""
    names = [f"{a} {b}" for a, b in combinations(WORDS, 2)][:300]
    texts = [
        f"Dear {name}, your order {i} has left our house today, kind regards {name} {i}" for i, name in enumerate(names)
    ]
    assert removed(texts) == []


def test_files_of_one_document_are_one_source(tmp_path: Path) -> None:
    """Else a folder of mails could not be cleaned: the one document of a file is all of it."""
    for number, text in enumerate([*made_up(6, seed=5, edits=0)]):
        (tmp_path / f"{number}.txt").write_text(text)
    held = read(tmp_path / "*.txt")
    assert left_out(held, held.pieces()[0], "minhash").sources == (Source(SINGLES, 6, 3, 3),)
    with pytest.raises(DataError, match="3 of 6 documents of 'the files of one document each'"):
        left_out(held, held.pieces()[0], "minhash", most=0.4)


def test_what_is_refused() -> None:
    held = Corpus.from_texts(["a"])
    with pytest.raises(UsageError, match="did you mean 'minhash'"):
        screen(held, PI, WIDE, clean="minhsh")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="from 0 to 1"):
        screen(held, PI, WIDE, clean="minhash", clean_most=50)
    with pytest.raises(UsageError, match="above 0"):
        left_out(held, held.pieces()[0], "minhash", threshold=0)
    assert left_out(held, held.pieces()[0], "none") == Cleaned()


def source(folder: Path) -> Path:
    texts = [f"{text}. Call 980.322.{i % 50:04d}." for i, text in enumerate(made_up(400, seed=6, edits=6))]
    path = folder / "in.jsonl"
    lines = (json.dumps({"id": f"d{i}", "text": text}) + "\n" for i, text in enumerate([*texts, *texts[::7]]))
    path.write_text("".join(lines))
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def cleaned_run(path: Path, out: Path | None, how: str, **options: object) -> ScreenedCorpus:
    return screen(read(path, id="id"), PI, WIDE, out=out, clean=how, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("how", ["minhash", "bloom"])
def test_pieces_workers_and_interruption_make_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "bloom":
        pytest.importorskip("rbloom", reason="needs the near extra")
    path = source(tmp_path)
    whole = cleaned_run(path, tmp_path / "whole", how)
    monkeypatch.setattr(corpus, "piece_size", lambda _: 20_000)
    assert len(read(path).pieces()[0]) > 5
    one = cleaned_run(path, tmp_path / "one", how)
    cleaned_run(path, tmp_path / "two", how, workers=2)
    held = cleaned_run(path, None, how)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert whole.table == one.table == held.table
    assert whole.counts == one.counts == held.counts
    assert whole.counts.cleaned > 5
    assert whole.manifest.cleaned == one.manifest.cleaned == held.manifest.cleaned

    whole_run = choose.run

    def stopped(*args: object) -> object:
        for number, finished in enumerate(whole_run(*args)):  # type: ignore[arg-type]
            if number == 3:
                raise KeyboardInterrupt
            yield finished

    with monkeypatch.context() as patch:
        patch.setattr("taciturn.screening.engines.choose.run", stopped)
        with pytest.raises(KeyboardInterrupt):
            cleaned_run(path, tmp_path / "out", how)
    assert len(list((tmp_path / ".out.unfinished" / "work").glob("*.json"))) >= 3
    seen: list[int] = []
    cleaned_run(path, tmp_path / "out", how, notify=lambda progress: seen.append(progress.resumed))
    assert seen[-1] > 0
    assert content(tmp_path / "out") == content(tmp_path / "one")


def test_what_stays_is_what_screening_without_the_rest_gives(tmp_path: Path) -> None:
    path = source(tmp_path)
    cleaned = cleaned_run(path, None, "minhash")
    held = read(path, id="id")
    out = left_out(held, held.pieces()[0], "minhash").left_out[0]
    documents = [item for _, item in held.read(held.pieces()[0][0], Tally()) if isinstance(item, Document)]
    alone = screen(Corpus.from_documents(d for i, d in enumerate(documents) if i not in out), PI, WIDE)
    assert cleaned.table == alone.table
    assert cleaned.key != screen(held, PI, WIDE).key


@pytest.mark.parametrize("name", ["crt", "dpsgd", "redacted"])
@pytest.mark.parametrize("how", ["minhash", "bloom"])
def test_a_cleaned_corpus_certifies_nothing(name: str, how: str, tmp_path: Path) -> None:
    """One record may decide about others, so neither one secret nor one record is protected; every claim says why."""
    if how == "bloom":
        pytest.importorskip("rbloom", reason="needs the near extra")
    texts = ["hello there"] * 3 + [f"my number is (555) 010-77{i:02}, ask for Zed Quill" for i in range(9)]
    screened = screen(Corpus.from_texts(texts), policy("phone"), WIDE, clean=how)  # type: ignore[arg-type]
    assert screened.counts.cleaned == 2
    assert not screened.manifest.guarantee_ok
    private = {"steps": 4, "batch": 4, "noise_multiplier": 1.5}
    options = {
        "crt": {"public": {"epochs": 1, "batch_size": 4}, "private": private, "skeletons": False},
        "dpsgd": private,
    }
    config = RunConfig(
        mechanism=name,
        corpus=Path("memory"),
        model={"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},  # type: ignore[arg-type]
        delta=1e-3,
        options=options.get(name, {"epochs": 1, "batch_size": 4}),
        seeds={"noise": "os"},  # type: ignore[arg-type]
    )
    train(config, tmp_path, screened=screened)
    certificate = certify(tmp_path)
    assert {g["status"] for g in certificate.guarantees} == {"none"}
    assert {g["epsilon"] for g in certificate.guarantees} == {"inf"}
    (reason,) = screened.manifest.reasons
    assert how in reason
    rests = [g for g in certificate.guarantees if g["theorem"] != "none"]
    assert rests
    assert all(reason in g["reason"] and "epsilon_if_detected" not in g["detail"] for g in rests)
    assert not certificate.release
    assert reason in certificate.reasons
    assert not verify(tmp_path / "certificate.json")
