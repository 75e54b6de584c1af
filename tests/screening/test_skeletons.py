"""Skeletons are the same whatever marked words are masked, or they are refused (guarantees.md §3.1)."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taciturn.screening import Regex, policy, screen
from taciturn.screening.bridges import places
from taciturn.screening.maskings import MOST, runs
from taciturn.screening.policies.derived import Missing
from taciturn.screening.policies.relax import sees_over
from taciturn.screening.policies.view import WORD, View
from taciturn.screening.redact import BRIDGED, redact
from taciturn.screening.rows import Local
from taciturn.screening.skeletons import has_one_skeleton
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus
from timing import in_proportion

PII, WIDE, STRICT = policy("pii"), policy("conservative"), policy("conservative:strict")
PAIRS = {"plain": (PII, WIDE), "strict": (PII, STRICT), "customersim": (policy("customersim"), WIDE)}
LOCALS = {name: Local.of(*pair) for name, pair in PAIRS.items()}
LOCALS |= {bridge: Local.of(*PAIRS["plain"], bridge=bridge) for bridge in ("signs", "short")}
SECRETS = policy("secrets")
APART = [d for p in (PII, STRICT, SECRETS) for d in p.detectors if getattr(d, "apart", False)]
PIECES = st.sampled_from(
    "they came to 77 the st. in may call me Rhonda Young, 980.322.8737 (555) 010-7788 at 12 main street Apt. 5 , WI 42884 "
    f"x@y.org a@b mail@the.com http://a.b/c www.x.org/y ref #7GAWK763 slevin I'm May I phone number 078-05-1126 {MASK} é "
    "e\u0301 １２ =\u0338 my name is password: rosebud Suite 455 Lahti 15110 \u0661\u0662 - ( ) road 4 star Young's "
    "of the de la and a le street Inc. &amp; c/o".split()
)
TEXTS = st.lists(PIECES, min_size=1, max_size=9).map(" ".join)


def skeleton(text: str, local: Local) -> tuple[str | None, bool]:
    """(skeleton, refused), as screening has them."""
    return local._skeleton([text])[0]


def marks(text: str, local: Local) -> tuple[tuple[int, int], ...]:
    assert local.both is not None
    return redact([text], local.both, BRIDGED)[0].marks


def marked_words(text: str, local: Local) -> list[tuple[int, int]]:
    """Words of places: of marks, and those that are masked with them."""
    its = places(text, marks(text, local), local.bridge)
    return [word.span() for start, end in its for word in WORD.finditer(text, start, end)]


def without(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + MASK + text[end:]
    return text


def screened(text: str, wide: str = "conservative", pi: Any = PII) -> tuple[list[str], int]:
    out = screen(Corpus.from_texts([text]), pi, policy(wide), unit="document")
    return out.texts("skeletons"), out.counts.skeletons_refused


def test_a_part_of_a_mark_that_changes_the_skeleton_refuses_it() -> None:
    """Masking "77" leaves "the st." unmarked, which shows that it was no address."""
    assert redact(["they came to 77 the st. in may"], WIDE, BRIDGED)[0].text == f"they came to {MASK}. in may"
    assert screened("they came to 77 the st. in may") == ([], 1)
    assert screened("they came to 77 Elm in may") == ([f"they came to {MASK} in may"], 0)


@pytest.mark.parametrize(
    "text",
    [
        "call (555) 010-7700 now",
        "call +1 980.322.8737 now",
        "call mail@the.com now",
        'call "Rhonda Young" now',
        "call Rhonda's. now",
    ],
)
def test_what_is_attached_to_a_mark_costs_no_skeleton(text: str) -> None:
    assert screened(text) == ([f"call {MASK} now"], 0)


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from(sorted(LOCALS)), st.randoms(use_true_random=False))
def test_no_masking_of_marked_words_changes_a_kept_skeleton(text: str, name: str, chance: Random) -> None:
    """Any run of words of a mark; and where no detector looks over a mask any number of words, and the neighbour is not
    refused either."""
    local = LOCALS[name]
    kept, refused = skeleton(text, local)
    words = marked_words(text, local)
    if refused or not words:
        return
    for mark in marks(text, local):
        for run in runs(text, mark):
            assert skeleton(without(text, [run]), local)[0] == kept
    assert local.both is not None
    if local.both.apart([text]) == [True]:
        for _ in range(5):
            some = chance.sample(words, chance.randint(1, len(words)))
            assert skeleton(without(text, some), local) == (kept, False)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5).map(" ".join))
def test_all_sets_of_marked_words_of_short_texts(text: str) -> None:
    local = LOCALS["plain"]
    found, words = skeleton(text, local), marked_words(text, local)
    assume(0 < len(words) <= 7 and not found[1] and local.both is not None and local.both.apart([text]) == [True])
    for size in range(1, len(words) + 1):
        for some in combinations(words, size):
            assert skeleton(without(text, list(some)), local) == found


def test_a_record_that_is_all_mask_is_refused_where_a_part_decides_that() -> None:
    """Without the cue "name" it would have a skeleton: its neighbour has one, so the certificate has to except it."""
    assert screened("my name is bob", "conservative:strict") == ([], 1)
    assert screened("Rhonda Young", "conservative:strict") == ([], 0)
    assert screened("my name is bob", "all-private") == ([], 0)


def test_a_long_record_is_looked_at_in_parts_and_in_linear_time() -> None:
    """What fails fails wherever it stands, what holds holds, and twice the text takes twice as long."""
    good, bad = (
        "call Rhonda Young at (555) 010-7788 or 980.322.8737 about the order ",
        "they came to 77 the st. in may ",
    )
    local = LOCALS["plain"]
    assert not skeleton(good * 18, local)[1]
    assert all(skeleton(good * before + bad + good * after, local)[1] for before, after in [(0, 18), (7, 9), (18, 0)])
    few, many = (partial(skeleton, good * n) for n in (20, 60))
    assert in_proportion(lambda: few(Local.of(*PAIRS["plain"])), lambda: many(Local.of(*PAIRS["plain"])), 6)


def test_models_are_tested_run_by_run() -> None:
    """What may look over a mask is taken for a model: one mark, but masking a part of it is not what redaction did."""
    finder = policy(Regex("pair", r"aa (?:bb|\x1a+)|aa", must_find=("aa bb",)))
    assert finder.apart(["aa bb"]) == [False]
    assert has_one_skeleton(["aa bb"], redact(["aa bb"], finder, BRIDGED), finder, "signs") == [False]
    assert runs("at 77 the st.", (3, 13)) == [(3, 5), (3, 9), (3, 12), (3, 13), (6, 9), (6, 12), (10, 12)]


def test_a_mark_of_too_many_words_is_refused_untested_by_models() -> None:
    finder = policy(Regex("many", r"<.*>|\w+", must_find=("<a>",)))
    for words, answer in ((MOST, True), (MOST + 1, False)):
        text = " ".join(["a"] * words)
        assert has_one_skeleton([text], redact([text], finder, BRIDGED), finder, "signs") == [answer]
        assert finder.local([text]) == finder.apart([text]) == [False]


@settings(max_examples=100, deadline=None)
@given(TEXTS, st.integers(0, 5))
def test_a_policy_made_to_miss_is_tested_too(text: str, seed: int) -> None:
    local = Local.of(Missing(PII, 0.5, seed), WIDE)
    kept, refused = skeleton(text, local)
    for span in [] if refused else marked_words(text, local):
        assert skeleton(without(text, [span]), local)[0] in {kept, None}


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


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(sorted(LOCALS)))
def test_a_text_that_is_local_needs_no_test(text: str, name: str) -> None:
    """The declaration attacked: every word of every mark, where ``local`` says that none matters."""
    both = LOCALS[name].both
    assert both is not None
    if both.local([text]) == [True]:
        assert all(
            skeleton(without(text, [w]), LOCALS[name]) == skeleton(text, LOCALS[name])
            for w in marked_words(text, LOCALS[name])
        )


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
