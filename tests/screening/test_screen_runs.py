"""Skeletons are the same whatever run of marked words is masked, or they are refused (guarantees.md §3.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.screening import Regex, policy, screen
from taciturn.screening.policies.derived import Cached, Joined, Missing
from taciturn.screening.policies.relax import sees_over
from taciturn.screening.policies.view import View
from taciturn.screening.redact import BRIDGED, redact
from taciturn.screening.runs import MOST, runs, steady
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus

PII, WIDE, STRICT = policy("pii"), policy("conservative"), policy("conservative:strict")
POLICIES = {"pii": PII, "wide": WIDE, "both": Joined(PII, WIDE), "once": Joined.of(Cached(PII), Cached(STRICT))}
SECRETS = policy("secrets")
APART = [d for p in (PII, STRICT, SECRETS) for d in p.detectors if getattr(d, "apart", False)]
PIECES = st.sampled_from(
    "they came to 77 the st. in may call me Rhonda Young, 980.322.8737 (555) 010-7788 at 12 main street Apt. 5 , WI 42884 "
    f"x@y.org a@b http://a.b/c www.x.org/y ref #7GAWK763 slevin I'm May I phone number 078-05-1126 {MASK} é e\u0301 １２ "
    "=\u0338 my name is password: rosebud Suite 455 Lahti 15110 \u0661\u0662".split()
)
TEXTS = st.lists(PIECES, min_size=1, max_size=9).map(" ".join)


def kept(text: str, finder: object) -> bool:
    """Run by run, as the definition has it."""
    (whole,) = redact([text], finder, BRIDGED)  # type: ignore[arg-type]
    places = [x for mark in whole.marks for x in runs(text, mark)]
    others = redact([text[:start] + MASK + text[end:] for start, end in places], finder, BRIDGED)  # type: ignore[arg-type]
    return all((other.text, other.failed) == (whole.text, whole.failed) for other in others)


def screened(text: str, wide: str = "conservative", **options: object) -> tuple[list[str], int]:
    out = screen(Corpus.from_texts([text]), PII, policy(wide), unit="document", **options)  # type: ignore[arg-type]
    return out.texts("skeletons"), out.counts.skeletons_refused


def test_a_part_of_a_mark_that_changes_the_skeleton_refuses_it() -> None:
    """Masking "77" leaves "the st." unmarked, which shows that it was no address."""
    assert screened("they came to 77 the st. in may") == ([], 1)
    assert screened("they came to 77 Elm in may") == ([f"they came to {MASK} in may"], 0)
    assert redact(["they came to 77 the st. in may"], WIDE, BRIDGED)[0].text == f"they came to {MASK}. in may"


def test_one_marked_word_alone_is_tested_for_what_it_holds_up() -> None:
    """The only mark, but masking a part of it is not what redaction did."""
    finder = policy(Regex("pair", r"aa (?:bb|\x1a+)|aa", must_find=("aa bb",)))
    assert not kept("aa bb", finder)
    assert steady(["aa bb"], redact(["aa bb"], finder, BRIDGED), finder, BRIDGED) == [False]


def test_a_record_that_is_all_mask_is_refused_where_a_part_decides_that() -> None:
    """Without the cue "name" it would have a skeleton: its neighbour has one, so the certificate has to except it."""
    assert screened("my name is bob", "conservative:strict") == ([], 1)
    assert screened("Rhonda Young", "conservative:strict") == ([], 0)
    assert screened("my name is bob", "all-private") == ([], 0)


def test_a_mark_of_too_many_words_is_refused_untested() -> None:
    finder = policy(Regex("many", r"<.*>|\w+", must_find=("<a>",)))
    for words, answer in ((MOST, True), (MOST + 1, False)):
        text = " ".join(["a"] * words)
        assert steady([text], redact([text], finder, BRIDGED), finder, BRIDGED) == [answer]
        assert finder.local([text]) == [False]


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from(sorted(POLICIES)))
def test_the_quick_way_says_what_masking_every_run_says(text: str, name: str) -> None:
    finder = POLICIES[name]
    masked = redact([text], finder, BRIDGED)
    assert steady([text], masked, finder, BRIDGED) == [kept(text, finder)]


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(0, 5))
def test_a_policy_made_to_miss_is_tested_too(text: str, seed: int) -> None:
    finder = Joined(Missing(PII, 0.5, seed), WIDE)
    assert steady([text], redact([text], finder, BRIDGED), finder, BRIDGED) == [kept(text, finder)]


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS)
def test_apart_means_that_a_mask_parts_what_is_found(left: str, right: str) -> None:
    """The declaration attacked: of each pattern on any text, and of policies where they say so of a text that may be masked
    to L<MASK>R."""
    text = f"{left} {MASK} {right}"
    parts = [text, f"{left} {MASK}", f"{MASK} {right}"]
    shift = len(text) - len(parts[2])
    views = [View.of(part) for part in parts]
    found = [(d.name, d.find(views)) for d in APART]
    found += [(p.name, p.find(parts)) for p in (PII, WIDE, SECRETS) if p.apart([text]) == [True]]
    for name, detections in found:
        whole, before, after = ({(s.start, s.end) for s in d.spans} for d in detections)
        assert whole == before | {(start + shift, end + shift) for start, end in after}, name


@settings(max_examples=150, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=3), st.data())
def test_knowing_what_was_masked_changes_nothing(texts: list[str], data: st.DataObject) -> None:
    masked = []
    for text in texts:
        words = text.split(" ")
        start = data.draw(st.integers(0, len(words) - 1))
        end = data.draw(st.integers(start + 1, len(words)))
        masked.append(" ".join([*words[:start], MASK, *words[end:]]))
    for finder in (PII, WIDE, SECRETS):
        assert finder.find(masked, texts) == finder.find(masked)


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_a_text_that_is_local_needs_no_test(text: str) -> None:
    """The declaration attacked: every run of every mark, where ``local`` says that none matters."""
    for finder in (PII, WIDE, STRICT):
        if finder.local([text]) == [True]:
            assert kept(text, finder)


@pytest.mark.parametrize(
    ("pattern", "sees"),
    [
        (r"(?<!\w)\d+(?!\w)", False), (r"\S+", True), (r"[^a]", True), (r"\d(?=\D{6})", True), (r"\d(?=\D{5})", False),
        (r"\d(?=\D(?=.*x))", True), (r"\d(?=\w*x)", False), (r"^\d+$", False), (r"(?<=[^a])b", False),
        (r"(?<!.{6})b", True), (r"(?:a|.)b", True), (r"(a)(?(1)b|.)", True), ("\x1a", True),
    ],
)  # fmt: skip
def test_what_a_pattern_sees_over(pattern: str, sees: bool) -> None:
    assert sees_over(pattern, "\x1a", len(MASK)) == sees
