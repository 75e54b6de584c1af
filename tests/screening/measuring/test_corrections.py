"""Corrections are part of π: record-local, closed under masking, covered by its identity, and never take a mark away."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.screening import Policy, ScreenedCorpus, load, policy, screen
from taciturn.screening.labels import LabelSpan, Line, read, write
from taciturn.screening.measuring.corrections import FILE, compare, corrected_policy, export, rescreen
from taciturn.screening.policies import View
from taciturn.screening.policies.corrections import Correction, Corrections, alignment, named
from taciturn.screening.redact import redact, survives
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span

SALT = "00" * 16
PHONE = "(555) 010-7788"
TEXTS = [
    f"ask for zorblat at {PHONE} after nine",
    "zorblat said that the quimble house is sold",
    "hello, how can I help you?",
    f"call {PHONE}",
]


def spans_of(text: str, *secrets: str) -> tuple[Span, ...]:
    return tuple(Span(text.index(s), text.index(s) + len(s), "name") for s in secrets)


def made(*corrections: tuple[str, tuple[str, ...]]) -> Corrections:
    return Corrections(tuple(Correction(text, spans_of(text, *secrets)) for text, secrets in corrections), SALT)


def pi_with(*corrections: tuple[str, tuple[str, ...]]) -> Policy:
    return policy("phone", made(*corrections))


def test_marks_what_the_person_marked_beside_what_pi_finds() -> None:
    pi = pi_with((TEXTS[0], ("zorblat",)), (TEXTS[1], ("quimble house",)))
    assert [m.text for m in redact(TEXTS, pi)] == [
        f"ask for {MASK} at {MASK} after nine",
        f"zorblat said that the {MASK} is sold",
        TEXTS[2],
        f"call {MASK}",
    ]


def test_a_corrected_span_is_detected() -> None:
    """Redact(s(x)) = Redact(s(<MASK>)) for each corrected span, π's own, a word of one; not for an unmarked word."""
    text = TEXTS[0]
    pi = pi_with((text, ("zorblat", "nine")))
    places = [(s.start, s.end) for s in spans_of(text, "zorblat", "nine", PHONE, "at")]
    assert survives([(text, places)], pi) == [[True, True, True, False]]
    house = TEXTS[1]
    word = spans_of(house, "quimble")[0]
    assert survives([(house, [(word.start, word.end)])], pi_with((house, ("quimble house",)))) == [[True]]


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_any_whole_words_may_be_masked(data: st.DataObject) -> None:
    """Masking words of a corrected text, whichever, never leaves a corrected word standing."""
    words = data.draw(st.lists(st.sampled_from(["zor", "bla", "and", "the", "quim", "x1"]), min_size=1, max_size=8))
    text = " ".join(words)
    starts = [sum(len(w) + 1 for w in words[:i]) for i in range(len(words))]
    marked = data.draw(st.sets(st.integers(0, len(words) - 1), min_size=1))
    gone = data.draw(st.sets(st.integers(0, len(words) - 1)))
    spans = tuple(Span(starts[i], starts[i] + len(words[i]), "name") for i in sorted(marked))
    detector = Corrections((Correction(text, spans),), SALT)
    shown = " ".join(MASK if i in gone else word for i, word in enumerate(words))
    view = View.of(shown)
    found = detector.find([view])[0].spans
    if len(set(words)) == len(words):  # repeated words may be aligned otherwise: more is marked, or the check says so
        wanted = {words[i] for i in marked - gone}
        assert {shown[s.start : s.end] for s in found} == wanted
    assert all(not view.text[s.start : s.end].isspace() for s in found)


def test_other_texts_are_left_alone() -> None:
    detector = made((TEXTS[0], ("zorblat",)))
    others = [
        "ask for zorblat at noon",
        TEXTS[0] + "!",
        f"zorblat {MASK}",
        f"ask for zor{MASK} at {PHONE} after nine",  # half a word: not the corrected text
        MASK,
        "",
    ]
    assert [d.spans for d in detector.find([View.of(t) for t in others])] == [()] * len(others)


def test_alignment() -> None:
    assert alignment(View.of(f"a {MASK} c"), "a b c") == [(0, 0, 2), (8, 3, 2)]
    assert alignment(View.of(f"{MASK} c"), "a b c") == [(0, 0, 0), (6, 3, 2)]
    assert alignment(View.of(f"a {MASK}"), "a b c") == [(0, 0, 2), (8, 5, 0)]
    assert alignment(View.of(f"a {MASK} d"), "a b c") is None
    assert alignment(View.of("a b c"), "a b c") == [(0, 0, 5)]
    assert alignment(View.of(f"a {MASK} c"), "a  c") is None


def test_a_long_record_is_checked_by_fragments() -> None:
    """``survives`` looks at 256 characters on either side of a span in a long record."""
    text = "the weather is nice " * 60 + "zorblat came by " + "and it rained all day " * 40
    pi = pi_with((text, ("zorblat",)))
    span = spans_of(text, "zorblat")[0]
    assert len(text) > 1024
    assert survives([(text, [(span.start, span.end)])], pi) == [[True]]
    assert "zorblat" not in redact([text], pi)[0].text


def test_the_rest_of_the_corpus_does_not_matter() -> None:
    detector = made((TEXTS[0], ("zorblat",)), (TEXTS[1], ("quimble",)))
    views = [View.of(t) for t in TEXTS]
    together = detector.find(views)
    assert together == [detector.find([view])[0] for view in views]
    assert together == list(reversed(detector.find(list(reversed(views)))))
    again: Corrections = pickle.loads(pickle.dumps(detector))
    assert again.find(views) == together


def test_local_is_said_only_where_it_is_true() -> None:
    detector = made((TEXTS[0], ("zorblat",)))
    assert not detector.local(View.of("a zorblat is"))
    assert detector.local(View.of("hello zorblats"))


def test_identity_covers_the_corrections_and_tells_nobody() -> None:
    one = pi_with((TEXTS[0], ("zorblat",)))
    assert one.identity == pi_with((TEXTS[0], ("zorblat",))).identity
    assert one.identity != policy("phone").identity
    assert one.identity != pi_with((TEXTS[0], ("zorblat", "nine"))).identity
    salted = policy("phone", Corrections((Correction(TEXTS[0], spans_of(TEXTS[0], "zorblat")),), "11" * 16))
    assert one.identity != salted.identity
    assert "zorblat" not in repr(one)
    assert "zorblat" not in str(made((TEXTS[0], ("zorblat",))).definition())


# -- the files ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def screened(tmp_path: Path) -> ScreenedCorpus:
    (tmp_path / "talk.txt").write_text("\n".join(TEXTS * 3) + "\n")
    corpus = read_corpus(tmp_path)
    return screen(corpus, policy("phone"), policy("all-private"), unit="document", out=tmp_path / "s", dedup="none")


def read_corpus(folder: Path) -> Corpus:
    from taciturn.text.readers import read as read_files

    return read_files(folder / "talk.txt", format="lines")


def corrected(lines: list[Line], secret: str = "zorblat") -> list[Line]:
    return [
        line.model_copy(
            update={
                "label_status": "done",
                "spans": tuple(LabelSpan(start=s.start, end=s.end) for s in spans_of(line.text, secret))
                if secret in line.text
                else line.spans,
            }
        )
        for line in lines
    ]


def test_export_holds_what_pi_found(screened: ScreenedCorpus) -> None:
    lines = {line.text: line for line in export(screened, policy("phone"), 12, seed=1)}
    assert lines[TEXTS[0]].redacted == f"ask for zorblat at {MASK} after nine"
    assert [(s.start, s.end, s.label) for s in lines[TEXTS[0]].spans] == [(19, 33, "phone")]
    assert len({line.salt for line in lines.values()}) == 1
    with pytest.raises(MismatchError, match="not the policy"):
        export(screened, policy("email"), 3)


def test_screening_again_with_corrections(screened: ScreenedCorpus, tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"
    write(done, corrected(export(screened, policy("phone"), 12, seed=1)))
    changes = compare(screened, policy("phone"), read(done))
    # zorblat stands in two of the four texts, three times each; the phone beside it was taken away by the person
    assert (changes.records, changes.changed, changes.added, changes.kept) == (12, 6, 6, 3)
    again = rescreen(screened, read_corpus(tmp_path), policy("phone"), policy("all-private"), done, tmp_path / "again")
    assert again.texts("redacted")[:4] == [
        f"ask for {MASK} at {MASK} after nine",
        f"{MASK} said that the quimble house is sold",
        TEXTS[2],
        f"call {MASK}",
    ]
    counts = again.counts
    assert (counts.read, counts.spans, counts.spans_undetected_after_check) == (12, 12, 0)
    assert again.key != screened.key
    kept = tmp_path / "again" / FILE
    assert kept.stat().st_mode & 0o777 == 0o600
    assert corrected_policy(policy("phone"), kept).identity == again.manifest.policies.pi.identity
    assert load(tmp_path / "again").key == again.key
    with pytest.raises(UsageError, match="corrections already"):
        corrected_policy(corrected_policy(policy("phone"), kept), kept)


def test_other_files_are_refused(screened: ScreenedCorpus, tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"
    write(done, corrected(export(screened, policy("phone"), 12, seed=1)))
    (tmp_path / "talk.txt").write_text("\n".join(TEXTS) + "\n")
    with pytest.raises(MismatchError, match="not the files"):
        rescreen(screened, read_corpus(tmp_path), policy("phone"), policy("all-private"), done, tmp_path / "again")
    other = screen(Corpus.from_texts(["one", "two"]), policy("phone"), policy("all-private"), unit="document")
    with pytest.raises(MismatchError, match="not in this screened corpus"):
        compare(other, policy("phone"), read(done))


def test_files_that_will_not_do(screened: ScreenedCorpus, tmp_path: Path) -> None:
    path = tmp_path / "done.jsonl"
    lines = export(screened, policy("phone"), 4, seed=1)
    write(path, lines)
    with pytest.raises(DataError, match="label_status"):
        Corrections.read(path)
    with pytest.raises(DataError, match="label_status"):
        compare(screened, policy("phone"), lines)
    write(path, [line.model_copy(update={"label_status": "done", "salt": None}) for line in lines])
    with pytest.raises(DataError, match="salt"):
        Corrections.read(path)
    with pytest.raises(UsageError, match="no such file"):
        named("nowhere.jsonl", {})
    with pytest.raises(UsageError, match="unknown option"):
        named(str(path), {"threshold": 0.5})
    write(path, corrected(lines))
    assert [d.name for d in named(str(path), {})] == ["corrections"]
