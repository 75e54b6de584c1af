"""The RE2 scan in front of the patterns never hides a match, and says rightly when masking cannot make one."""

from __future__ import annotations

import re

import pytest
import re2
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taciturn.screening import Regex, policy
from taciturn.screening.policies import prefilter
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.patterns import detector, names
from taciturn.screening.policies.prefilter import Prefilter
from taciturn.screening.policies.regex import nested_repeat
from taciturn.screening.policies.relax import consumes, relaxed
from taciturn.screening.policies.view import BLANK, View
from taciturn.text.document import MASK
from taciturn.text.fold import fold
from taciturn.text.spans import merge

ALL = [detector(name) for name in names()]
FILTER = Prefilter.of(tuple((d.pattern, d.ignore_case) for d in ALL))

ATOMS = st.sampled_from(
    [
        r"\d",
        r"\w",
        r"\s",
        r"\S",
        r"\D",
        r"\W",
        ".",
        "a",
        "k",
        "i",
        "s",
        "[e-k]",
        "ı",
        "[ı-ſ]",
        "ß",
        "[a-f]",
        "[^a]",
        r"[^\W\d_]",
        r"[-. ]",
        "é",
        "[à-ü]",
        "@",
    ]
)
PIECES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.builds("(?:{}){}".format, inner, st.sampled_from(["", "?", "*", "+", "{2}", "{1,3}", "{2,12}", "*?", "++"])),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("{}{}".format, inner, inner),
        st.builds("(?i:{})".format, inner),
        st.builds("(?>{})".format, inner),
    ),
    max_leaves=6,
)
PATTERNS = st.builds(
    "{}({}){}{}".format,
    st.sampled_from(["", r"(?<!\w)", r"\b", "^"]),
    PIECES,
    PIECES,
    st.sampled_from(["", r"\1", "(?!x)", "$"]),
)


@settings(max_examples=400, deadline=None)
@given(
    PATTERNS,
    st.booleans(),
    st.lists(st.text("aAkKiIxßé1\u0661\u0130\u0131\u212a\u017f\u2028 -.@\x1a\n", max_size=10), min_size=8, max_size=8),
)
def test_relaxed_patterns_match_wherever_the_pattern_does(pattern: str, ignore_case: bool, texts: list[str]) -> None:
    assume(not nested_repeat(pattern))
    compiled = re.compile(pattern, re.IGNORECASE if ignore_case else 0)
    loose = re2.compile(relaxed(pattern, ignore_case).encode(), prefilter._options())
    for text in texts:
        shadow = fold(text).text
        found = compiled.search(shadow)
        if found is not None:
            assert loose.search(shadow.encode("utf-8", "surrogatepass"))
            assert BLANK not in found[0] or consumes(pattern, BLANK, ignore_case)


EXAMPLES = [example for d in ALL for example in d.must_find]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(EXAMPLES), st.text(max_size=30)), max_size=8), st.integers(1, 200))
def test_no_detector_loses_a_match(texts: list[str], block: int) -> None:
    shadows = [View.of(text).shadow for text in texts]
    before, prefilter._BLOCK = prefilter._BLOCK, block
    try:
        found = FILTER.candidates(shadows)
    finally:
        prefilter._BLOCK = before
    for number, each in enumerate(ALL):
        matches = [i for i, text in enumerate(texts) if any(True for _ in each.spans(View.of(text)))]
        assert set(matches) <= set(found.get(number, ()))
        assert found.get(number, []) == sorted(set(found.get(number, [])))


def test_examples_are_found_and_most_plain_text_is_not_searched() -> None:
    found = FILTER.candidates([View.of(text).shadow for text in EXAMPLES])
    assert all(len(found[number]) >= len(d.must_find) for number, d in enumerate(ALL))
    plain = ["hello, how can i help you today?", "the weather was fine and nobody minded."] * 20
    assert sum(map(len, FILTER.candidates(plain).values())) == 0


def test_what_re2_cannot_take_is_always_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefilter, "_MEMORY", 1 << 12)
    small = Prefilter.of(((r"\d{3}", False), (r"(?:\w{1,8} ){8}\d{8}[A-Z]{8}", True)))
    assert small.always
    assert set(small.candidates(["abc"])) >= set(small.always)


def test_lone_surrogates_hide_nothing() -> None:
    (found,) = policy("ssn").find(["\ud800 078-05-1126"])
    assert [(s.start, s.end) for s in found.spans] == [(2, 13)]


LOCAL = policy("pii", "conservative")
WORDS = st.sampled_from(
    "call me Rhonda 980.322.8737 at 12 Main Street , WI 42884 x@y.org http://a.b/ is ref 7GAWK763 slevin the phone number "
    f"078 05 1126 {MASK} \u0661\u0662".split()
)


@settings(max_examples=300, deadline=None)
@given(st.lists(WORDS, max_size=12), st.data())
def test_local_means_that_masking_whole_marked_words_changes_no_other_mark(
    words: list[str], data: st.DataObject
) -> None:
    text = " ".join(words)
    if not LOCAL.local([text])[0]:
        return
    marked = merge(LOCAL.find([text])[0].spans)
    chosen = [m for m in marked if data.draw(st.booleans())]
    rest = [m for m in marked if m not in chosen]
    masked, shift, moved = text, 0, []
    places = sorted([(m, True) for m in chosen] + [(m, False) for m in rest])
    for (start, end), mask in places:
        if mask:
            masked = masked[: start + shift] + MASK + masked[end + shift :]
            shift += len(MASK) - (end - start)
        else:
            moved.append((start + shift, end + shift))
    assert merge(LOCAL.find([masked])[0].spans) == moved


def test_a_policy_travels_without_its_compiled_sets() -> None:
    import pickle

    made = policy("pii")
    made.find(["warm up"])
    assert isinstance(made, Policy)
    again = pickle.loads(pickle.dumps(made))
    assert again == made
    assert again.identity == made.identity
    assert len(pickle.dumps(made)) < 100_000
    assert isinstance(again.detectors[0], Regex)


def test_a_folded_text_has_no_partner_of_k_and_s_outside_ascii() -> None:
    """relax.py gives only "i" its partners: of the others fold() makes ASCII."""
    partners = {c: [chr(o) for o in range(128, 0x110000) if re.fullmatch(c, chr(o), re.IGNORECASE)] for c in "aiksz"}
    assert partners == {"a": [], "i": ["\u0130", "\u0131"], "k": ["\u212a"], "s": ["\u017f"], "z": []}
    assert all(fold(f"x{o}\u0301 {o}").text.isascii() is False for o in partners["i"])
    assert all(o not in fold(text).text for o in "\u212a\u017f" for text in (o, f"é{o}ü", f"{o}\u0301", f"\u0301{o}"))


@pytest.mark.parametrize(("pattern", "text"), [("mayıs", "MAYIS"), ("[à-ſ]x", "sx")])
def test_a_letter_outside_ascii_finds_its_partner_inside(pattern: str, text: str) -> None:
    made = Policy((Regex("own", pattern, must_find=(text,), ignore_case=True),), "own")
    assert made.find([text])[0].spans
