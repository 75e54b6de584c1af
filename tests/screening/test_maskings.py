"""What spares work in screening, and in its test of maskings, changes no answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.screening import Policy, Regex, policy
from taciturn.screening.maskings import _Asked
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.derived import Cached, Sharing
from taciturn.screening.policies.public import Public
from taciturn.screening.rows import Local
from taciturn.screening.sparing import Sparing
from taciturn.text.document import MASK, Record
from taciturn.text.spans import merge

PII, WIDE = policy("pii"), policy("conservative")
SPARED = Sparing.of(PII, WIDE, Public.of(["blue", "main street", "hello from Cambridge"]))
WORDS = st.sampled_from(
    "call me Rhonda 980.322.8737 at 12 Main main Street street , the of and WI 42884 x@y.org ref 7GAWK763 slevin phone "
    "x&#64;y.org 980%2E322.8737 an<b>na</b> Rh=6Fnda &amp; "
    f"number one two three may 14 Mai (078 05 1126) hello from {MASK} \u0661\u0662 é Cambridge blue Acme Road 4111".split()
)
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=14).map(" ".join), min_size=1, max_size=6)


def records(texts: list[str]) -> list[Record]:
    return [Record(str(i), str(i), 0, len(text), text) for i, text in enumerate(texts)]


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from([WIDE, SPARED]))
def test_stretches_that_are_sure_are_the_same(texts: list[str], wide: Policy) -> None:
    found = Local.of(PII, wide).rows(records(texts))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Asked, "sure", lambda *_: False)
        assert Local.of(PII, wide).rows(records(texts)) == found


@settings(max_examples=150, deadline=None)
@given(TEXTS)
def test_shared_patterns_find_what_the_policy_finds(texts: list[str]) -> None:
    shared = Sharing.of(WIDE, Cached(PII))
    assert isinstance(shared, Sharing)
    assert "phone" in shared.shared
    for one, other in zip(shared.find(texts), WIDE.find(texts), strict=True):
        assert (merge(one.spans), one.status, one is CLEAN) == (merge(other.spans), other.status, other is CLEAN)


def test_a_pattern_of_the_same_name_is_not_taken_for_another() -> None:
    own = Policy((*PII.detectors, Regex("phone", "hello", must_find=("hello",))), "own")
    shared = Sharing.of(WIDE, Cached(own))
    assert isinstance(shared, Cached)
    assert shared.find(["hello"]) == WIDE.find(["hello"])


def test_a_mark_that_only_a_stretch_has_is_seen() -> None:
    dog = Regex("dog", r"(?<!Bob )dog", must_find=("dog",))
    (row,) = Local.of(PII, Policy((*WIDE.detectors, dog), "own")).rows(records(["Bob dog runs."]))
    assert (row.skeleton, dict(row.tally).get("skeletons_refused")) == (None, 1)
