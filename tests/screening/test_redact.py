"""Redact: one mask for a union, fixed point, literal masks, the dial, exact deduplication."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening import Regex, dedup, policy
from taciturn.screening.dedup import Digests, copies
from taciturn.screening.partition import part
from taciturn.screening.policies.derived import Cached, Missing
from taciturn.screening.policies.finder import Finder
from taciturn.screening.redact import ADJACENT, BRIDGED, maximal, redact, substitute, survives
from taciturn.text.document import MASK
from taciturn.text.spans import Span


def pattern(expression: str, example: str = "ab 1 (x) a1") -> Finder:
    return policy(Regex("test", expression, must_find=(example,)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("card 4151 3217 6243 3448.com", "card <MASK>"),
        ("a@b.org c@d.org", "<MASK>"),
        ("a@b.org, c@d.org", "<MASK>, <MASK>"),
        ("a@b.org\nc@d.org", "<MASK>\n<MASK>"),
        ("<MASK> <MASK> and <MASK><MASK>", "<MASK> and <MASK>"),
        ("<MASK> a@b.org", "<MASK>"),
        ("nothing here", "nothing here"),
        ("", ""),
    ],
)
def test_unions_and_neighbours_become_one_mask(text: str, expected: str) -> None:
    p = policy("email", "card", Regex("host", r"\d[\w.]*\.com", must_find=("1.com",)))
    assert redact([text], p)[0].text == expected


def test_no_character_inside_a_finding_survives() -> None:
    text = "My name is Dana Vale, my email is dana@example.com"
    assert redact([text], policy("name", "email"))[0].text == "My name is <MASK>, my email is <MASK>"


def test_redaction_repeats_until_nothing_changes() -> None:
    nested = pattern(r"\(\w*\)|\((?:\x1a|\s)*\)")  # brackets around a mask are found on the next pass
    masked = redact(["(((x)))"], nested)[0]
    assert masked.text == MASK
    assert masked.settled
    assert masked.marks == ((2, 5),)


def test_a_text_that_does_not_settle_is_masked_whole() -> None:
    creeping = pattern(r"a(?=1|\x1a)")
    masked = redact(["b" + "a" * 30 + "1"], creeping)[0]
    assert masked.text == MASK
    assert not masked.settled
    assert redact(["aaa1"], creeping)[0].text == f"{MASK}1"


texts = st.lists(st.sampled_from(["a", "b1", "1", " ", ",", "-", MASK, "\n", "é", "<", "MASK>"]), max_size=10).map(
    "".join
)


@given(
    texts, st.sampled_from([r"\d", r"[ab]", r"\w+", r"a.", r"\S+", r"[^a]{2}"]), st.sampled_from([ADJACENT, BRIDGED])
)
def test_the_result_is_a_fixed_point_and_nothing_marked_is_left(
    text: str, expression: str, joint: re.Pattern[str]
) -> None:
    p = pattern(expression)
    masked = redact([text], p, joint)[0]
    again = redact([masked.text], p, joint)[0]
    assert again.text == masked.text
    assert not [
        s for s in p.find([masked.text])[0].spans if masked.text[s.start : s.end].replace(MASK, "").strip(" \t")
    ]
    assert all(start < end for start, end in masked.marks)


@given(texts, st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), max_size=4))
def test_substitution_keeps_everything_outside_the_intervals(text: str, pairs: Sequence[tuple[int, int]]) -> None:
    spans = [Span(min(a, len(text)), min(b, len(text))) for a, b in pairs if min(a, len(text)) < min(b, len(text))]
    intervals = maximal(text, spans, ADJACENT)
    kept = [c for i, c in enumerate(text) if not any(a <= i < b for a, b in intervals)]
    outcome = substitute(text, intervals)
    strip = re.compile(rf"{MASK}|[ \t]")
    assert strip.sub("", outcome) == strip.sub("", "".join(kept)) or MASK in text or "MASK>" in text
    assert not any(re.search(rf"{MASK}[ \t]*{MASK}", outcome) for _ in [0])
    assert all(
        not (a < m.start() < b < m.end() or m.start() < a < m.end() < b)
        for a, b in intervals
        for m in re.finditer(MASK, text)
    )


def test_survival_in_a_long_record_is_judged_near_the_span() -> None:
    p = policy("phone")
    text = "word " * 2000 + "980.322.8737 " + "word " * 2000 + "(555) 010-1234"
    marks = redact([text], p)[0].marks
    assert survives([(text, marks)], p) == [[True, True]]


def test_skeleton_masks_bridge_punctuation_and_redaction_masks_do_not() -> None:
    p = pattern(r"\d+")
    assert redact(["12-34, 56 a"], p, BRIDGED)[0].text == "<MASK> a"
    assert redact(["12-34, 56 a"], p)[0].text == "<MASK>-<MASK>, <MASK> a"


class TestDial:
    numbers = tuple(f"call 980.322.{i:04d} now" for i in range(2000))

    def test_it_drops_about_the_share_asked_for(self) -> None:
        """2,000 coins of .1: 200 ± 5 standard deviations of 13.4, false alarm about 6e-7 (and the seed is fixed)."""
        dropped = sum(
            m.text == t
            for m, t in zip(redact(self.numbers, Missing(policy("phone"), 0.1, 3)), self.numbers, strict=True)
        )
        assert 133 <= dropped <= 267

    def test_copies_share_one_fate_and_seeds_differ(self) -> None:
        fate = [MASK in m.text for m in redact(self.numbers, Missing(policy("phone"), 0.5, 1))]
        again = [
            MASK in m.text for m in redact([f"(again) {t}" for t in self.numbers], Missing(policy("phone"), 0.5, 1))
        ]
        other = [MASK in m.text for m in redact(self.numbers, Missing(policy("phone"), 0.5, 2))]
        assert fate == again
        assert fate != other

    def test_case_and_spacing_do_not_matter(self) -> None:
        p = policy("email")
        for seed in range(20):
            fates = {MASK in m.text for m in redact(["x DANA@b.org", "y dana@b.org"], Missing(p, 0.5, seed))}
            assert len(fates) == 1

    def test_its_ends_and_its_range(self) -> None:
        assert redact(self.numbers[:50], Missing(policy("phone"), 0.0)) == redact(self.numbers[:50], policy("phone"))
        assert [m.text for m in redact(self.numbers, Missing(policy("phone"), 1.0))] == list(self.numbers)
        with pytest.raises(UsageError, match="miss_rate"):
            Missing(policy("phone"), 1.5)


def test_remembered_detections_are_the_same() -> None:
    p = policy("pii")
    cached = Cached(p)
    batch = ["call 980.322.8737", "a@b.org", "call 980.322.8737"]
    assert cached.find(batch) == cached.find(batch[::-1])[::-1] == p.find(batch)


def keep_first(texts: Sequence[str], scope: str) -> list[str]:
    """The obvious loop."""
    return [
        MASK if t != MASK and scope != "none" and (scope in ("all", "private") or "!" in t) and t in texts[:i] else t
        for i, t in enumerate(texts)
    ]


@given(
    st.lists(st.sampled_from(["a", "b!", "c!", MASK]), max_size=8),
    st.sampled_from(["suspicious", "private", "all", "none"]),
)
def test_dedup_equals_the_obvious_loop(batch: list[str], scope: str) -> None:
    digests = Digests(scope, b"k" * 32)  # type: ignore[arg-type]
    cut = len(batch) // 3
    parts = [batch[:cut], batch[cut:]]
    entries = [
        b"".join(e for i, t in enumerate(texts) if (e := digests.entry(i, t, True, "!" in t, None)) is not None)
        for texts in parts
    ]
    copied, public = copies(entries, [len(texts) for texts in parts])
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as small:
        small.setattr(dedup, "_AT_ONCE", 2)
        small.setattr(dedup, "_DEALT", 3)
        dealt, _ = copies(entries, [len(texts) for texts in parts], Path(folder))
        assert not list(Path(folder).iterdir())
    assert all(np.array_equal(one, other) for one, other in zip(dealt, copied, strict=True))
    outcome = [MASK if again else t for t, again in zip(batch, np.concatenate(copied), strict=True)]
    assert outcome == keep_first(batch, scope)
    assert public == 0


@pytest.mark.parametrize(
    ("redacted", "marked", "failed", "because", "expected"),
    [
        ("plain", False, False, None, "public"),
        ("plain", True, False, None, "private"),
        ("plain", False, True, None, "private"),
        ("plain", False, False, "NUL", "private"),
        (f"a {MASK}", False, False, None, "private"),
    ],
)
def test_partition(redacted: str, marked: bool, failed: bool, because: str | None, expected: str) -> None:
    assert part(redacted, marked=marked, failed=failed, private_because=because) == expected


def test_a_long_record_with_many_spans_is_checked_in_flat_memory() -> None:
    """Replacing each of 2,000 spans in the whole of a 60,000-character record would take 240 MB of copies."""
    import tracemalloc

    p = policy("digits")
    text = "about 12345 words, then some more " * 2000
    marks = redact([text], p)[0].marks
    tracemalloc.start()
    (answers,) = survives([(text, marks)], p)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(answers) == 2000
    assert all(answers)
    assert peak < 40e6
