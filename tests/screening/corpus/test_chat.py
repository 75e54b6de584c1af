"""Conversations, pairs and labels through screening: borders of messages are borders, and labels are part of a record."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening import Everything, Policy, Regex, ScreenedCorpus, load, policy, screen
from taciturn.screening.corpus import options
from taciturn.screening.policies.patterns import built_in
from taciturn.screening.redact import BRIDGED, redact
from taciturn.text.chat import CLOSE, OPEN, ROLES, join, pair, parse
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus, read

EXAMPLES = [example for detector in built_in().values() for example in detector.must_find]
pieces = st.lists(
    st.sampled_from(
        [*EXAMPLES, "Dana", "Vale", "980.322", ".8737", "it is", "my name is", "user", "a@", "b.org", " ", "№"]
    ),
    max_size=3,
).map(" ".join)
conversations = st.lists(st.tuples(st.sampled_from(ROLES), pieces), min_size=1, max_size=4)


@pytest.mark.parametrize("name", ["pii", "customersim", "digits", "name", "conservative"])
@settings(max_examples=60, deadline=None)
@given(said=conversations)
def test_a_detector_sees_each_message_as_if_it_stood_alone(name: str, said: list[tuple[str, str]]) -> None:
    p = policy(name)
    whole = redact([join(said)], p)[0].text
    alone = [m.text for m in redact([content for _, content in said], p)]
    assert whole == join((role, content) for (role, _), content in zip(said, alone, strict=True))


def test_no_detector_joins_what_a_border_parts() -> None:
    for left, right in (("980.322.", "8737"), ("dana@", "example.org"), ("4111 1111", "1111 1111"), ("Dana", "Vale")):
        found = policy("pii", "name").find([join([("user", left), ("assistant", right)])])[0].spans
        assert not found
    greedy = policy(Regex("all", r"\w+", must_find=("a",)))
    text = join([("user", "ab"), ("user", "cd")])
    assert [text[s.start : s.end] for s in greedy.find([text])[0].spans] == ["ab", "cd"]


def test_skeletons_keep_the_borders_of_messages() -> None:
    marks = policy("digits")
    text = join([("user", "12, 34"), ("assistant", "56"), ("user", "78 a")])
    assert redact([text], marks, BRIDGED)[0].text == join([("user", MASK), ("assistant", MASK), ("user", f"{MASK} a")])
    assert redact([f"1{OPEN}_{CLOSE}2 _.3"], marks, BRIDGED)[0].text == f"{MASK}{OPEN}_{CLOSE}{MASK}"


def test_a_policy_that_marks_over_borders_masks_the_messages_and_not_the_borders() -> None:
    swallow = policy(Regex("swallow", rf"bad[^z]*{OPEN}\w+{CLOSE}", must_find=(f"bad{OPEN}user{CLOSE}",)))
    document = Document("d", join([("user", "one bad thing"), ("assistant", "two"), ("user", "three")]))
    screened = screen(Corpus.from_documents([document]), swallow, policy("conservative"), unit="document")
    (text,) = screened.texts("private")
    assert [m.role for m in parse(text)] == ["user", "assistant", "user"]
    assert [m.content for m in parse(text)] == [f"one {MASK}", MASK, "three"]


def test_conversations_are_documents_whatever_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_text(json.dumps({"prompt": "Hi. Who?", "completion": "Me, 980.322.8737."}) + "\n")
    corpus = read(path, chat="pairs")
    both = policy("phone"), policy("conservative")
    screened = screen(corpus, *both)
    assert screened.manifest.unit == "document"
    assert screened.texts("private") == [join([("user", "Hi. Who?"), ("assistant", f"Me, {MASK}.")])]
    with pytest.raises(UsageError, match="unit is 'document'"):
        screen(corpus, *both, unit="sentence")
    assert screen(read(path, text="prompt"), *both).manifest.unit == "sentence"


TEXTS = [
    "fine",
    "ask Slevin",
    "ask Slevin",
    "ask Slevin",
    "call 980.322.8737",
    "call 980.322.8737",
    "fine",
    "980.322.8737",
]
LABELS = ["a", "a", "a", "b", "a", "b", None, "a"]


def labelled(texts: Sequence[str] = TEXTS, out: Path | None = None, scope: str = "suspicious") -> ScreenedCorpus:
    documents = [
        Document(str(i), text, label=label)
        for i, (text, label) in enumerate(zip(texts, LABELS[: len(texts)], strict=True))
    ]
    return screen(
        Corpus.from_documents(documents),
        policy("phone"),
        policy("conservative"),
        unit="document",
        dedup=scope,  # type: ignore[arg-type]
        out=out,
    )


def test_labels_stay_with_their_texts(tmp_path: Path) -> None:
    screened = labelled(out=tmp_path / "s")
    wanted = {
        "public": ["a", None],
        "private": ["a", None, "b", "a", "b", None],  # a removed copy has none, nor has a text that is only a mask
        "skeletons": ["a", "a", "b", "a", "b"],
        "redacted": ["a", "a", "a", "b", "a", "b", None, None],
        "original": LABELS,
    }
    for corpus in (screened, labelled(), load(tmp_path / "s")):
        for part, labels in wanted.items():
            assert corpus.labels(part) == labels, part  # type: ignore[arg-type]
            assert len(corpus.texts(part)) == len(labels)  # type: ignore[arg-type]
    assert screened.texts("private")[1] == MASK
    assert screened.manifest.labels
    assert any("label" in condition for condition in screened.manifest.conditions)
    assert not screen(
        Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), unit="document"
    ).manifest.labels


@pytest.mark.parametrize("scope", ["suspicious", "private", "all", "none"])
@given(
    st.lists(
        st.tuples(st.sampled_from(["Slevin", "b Slevin", "b"]), st.sampled_from(["x", "y", None])),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_one_secret_changes_one_labelled_record(scope: str, records: list[tuple[str, str | None]]) -> None:
    """Neighbours as multisets of (text, label), which is what a classifier reads."""

    def private(texts: Sequence[str]) -> Counter[tuple[str, str | None]]:
        documents = [Document(str(i), t, label=y) for i, (t, (_, y)) in enumerate(zip(texts, records, strict=True))]
        done = screen(
            Corpus.from_documents(documents),
            policy("phone"),
            policy("conservative"),
            unit="document",
            dedup=scope,  # type: ignore[arg-type]
        )
        return Counter(zip(done.texts("private"), done.labels("private"), strict=True))

    texts = [text for text, _ in records]
    masked = [texts[0].replace("Slevin", MASK), *texts[1:]]
    if texts[0] != masked[0]:
        assert sum((private(texts) - private(masked)).values()) <= 1


def test_a_group_counts_copies_with_different_labels_apart() -> None:
    assert labelled(TEXTS[:4], scope="private").group_size(["Slevin"]) == 2


@pytest.fixture
def _fresh_digest() -> Iterator[None]:
    options.code_digest.cache_clear()
    yield
    options.code_digest.cache_clear()


@pytest.mark.usefixtures("_fresh_digest")
def test_p28_an_edited_pattern_or_reader_gives_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "hello", "other": "there"}\n')

    def key(**how: str) -> str:
        return screen(read(source, **how), policy("phone"), policy("conservative")).key

    before = key()
    assert key() == before
    assert key(text="other") != before  # other text of the same bytes
    copies = {}
    for package in ("taciturn.text", "taciturn.screening"):
        copies[package] = tmp_path / package
        shutil.copytree(str(files(package)), copies[package])
    monkeypatch.setattr(options, "files", copies.__getitem__)
    options.code_digest.cache_clear()
    assert key() == before
    words = copies["taciturn.screening"] / "policies" / "rare_words.py"
    words.write_text(words.read_text() + "# edited\n")
    options.code_digest.cache_clear()
    after = key()
    assert after != before
    source.write_text('{"text": "hello!", "other": "there"}\n')
    assert key() not in (before, after)


def test_the_heads_of_messages_are_never_marked_whatever_a_detector_says() -> None:
    """A recogniser takes "first" for an ordinal; masking it would lose the border between the texts of a pair."""
    text = join([("first", "Who came first?"), ("second", "Ann came first.")])
    greedy = Policy((Regex("greedy", r"(?s)first.*", "word", must_find=("first",)),), "greedy")
    (found,) = greedy.find([text])
    assert [text[s.start : s.end] for s in found.spans] == ["Who came first?", "Ann came first."]
    redacted = redact([text], greedy)[0].text
    assert pair(redacted) is not None
    assert [m.content for m in pair(redacted) or () if m] == ["<MASK>", "<MASK>"]
    everything = Policy((Everything(),), "all")
    assert redact([text], everything)[0].text == "<MASK>"
