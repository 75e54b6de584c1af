"""Public values are spared as whole spans, by what a record alone says, and never next to a mask (guarantees.md §3.1)."""

from __future__ import annotations

import re
from itertools import combinations
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening import Everything, Policy, Regex, Words, policy, screen
from taciturn.screening.maskings import runs
from taciturn.screening.policies.public import LONGEST_VALUE, Public, key
from taciturn.screening.policies.public_kinds import KINDS
from taciturn.screening.policies.view import WORD
from taciturn.screening.redact import BRIDGED, REACH, redact
from taciturn.screening.rows import Local
from taciturn.screening.sparing import Sparing
from taciturn.text.document import MASK, Record
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span

PII, WIDE, STRICT = policy("pii"), policy("conservative"), policy("conservative:strict")
PAIRS = {"plain": (PII, WIDE), "strict": (PII, STRICT), "customersim": (policy("customersim"), WIDE)}
PIECES = (
    "they came to 77 the st. in may call me Rhonda Young, 980.322.8737 (555) 010-7788 at 12 main street Apt. 5 , WI 42884 "
    f"x@y.org ref #7GAWK763 slevin May I phone {MASK} é １２ my name is Suite 455 - ( ) road 4 Young's Bank of America "
    "March 1980 17:30 5 pm Monday, Monday The Copper Kettle."
).split()
TEXTS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=9).map(" ".join)
VALUES = st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3).map(" ".join), max_size=12)
PUBLIC = st.builds(Public.of, VALUES, st.sets(st.sampled_from(KINDS)))


def sparing(public: Public, pair: tuple[Policy, Policy] = (PII, WIDE)) -> Local:
    return Local.of(pair[0], Sparing.of(*pair, public))


def skeleton(text: str, local: Local) -> tuple[str | None, bool]:
    """(skeleton, refused), as screening has them."""
    return local._skeleton([text])[0]


def record(text: str) -> Record:
    return Record("a", "a", 0, len(text), text)


def part(text: str, local: Local) -> str:
    return local.rows([record(text)])[0].part


def marks(text: str, local: Local) -> tuple[tuple[int, int], ...]:
    assert local.both is not None
    return redact([text], local.both, BRIDGED)[0].marks


def without(text: str, spans: list[tuple[int, int]]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + MASK + text[end:]
    return text


@settings(max_examples=1000, deadline=None)
@given(TEXTS, PUBLIC, st.sampled_from(sorted(PAIRS)), st.randoms(use_true_random=False))
def test_masking_words_that_are_not_public_changes_no_part_and_no_kept_skeleton(
    text: str, public: Public, name: str, chance: Random
) -> None:
    """s(x) and s(<MASK>) for x in a span whose whole value is not public, and for any number of such words at once."""
    local = sparing(public, PAIRS[name])
    kept, refused = skeleton(text, local)
    masks = marks(text, local)
    words = [word.span() for start, end in masks for word in WORD.finditer(text, start, end)]
    single = [without(text, [run]) for mark in masks for run in runs(text, mark)][:20]
    assert {row.part for row in local.rows([record(t) for t in (text, *single)])} <= {"private"} or not masks
    assert refused or {found for found, _ in local._skeleton(single)} <= {kept}
    assert local.both is not None
    if words and not refused and local.both.apart([text]) == [True]:
        several = [without(text, chance.sample(words, chance.randint(1, len(words)))) for _ in range(5)]
        assert set(local._skeleton(several)) == {(kept, False)}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map(" ".join), PUBLIC)
def test_all_sets_of_marked_words_of_short_texts(text: str, public: Public) -> None:
    local = sparing(public)
    found = skeleton(text, local)
    words = [word.span() for start, end in marks(text, local) for word in WORD.finditer(text, start, end)]
    assume(0 < len(words) <= 6 and not found[1] and local.both is not None and local.both.apart([text]) == [True])
    for size in range(1, len(words) + 1):
        for some in combinations(words, size):
            assert skeleton(without(text, list(some)), local) == found


@settings(max_examples=1000, deadline=None)
@given(TEXTS, PUBLIC)
def test_what_is_spared_is_what_a_slow_search_over_all_runs_spares(text: str, public: Public) -> None:
    """The oracle colours tokens and tries every run of them."""
    narrowed = Sparing.of(PII, WIDE, public)
    (found,), (sure,), (kept,) = WIDE.find([text]), PII.find([text]), narrowed.find([text])
    tokens = [m.span() for m in re.finditer(r"\S+", text)]

    def hit(token: tuple[int, int], spans: tuple[Span, ...]) -> bool:
        return any(s.start < token[1] and token[0] < s.end for s in spans)

    bad = [hit(t, sure.spans) or MASK in text[slice(*t)] for t in tokens]
    loud = [hit(t, found.spans) or b for t, b in zip(tokens, bad, strict=True)]
    silent = [not any(map(str.isalnum, text[slice(*t)])) for t in tokens]
    span_of: dict[int, int] = {}
    for i in (i for i, is_loud in enumerate(loud) if is_loud):
        before = max((j for j in range(i) if loud[j]), default=None)
        joined = before is not None and all(silent[before + 1 : i])
        span_of[i] = span_of[before] if joined and before is not None else i
    spoilt = {span_of[i] for i in span_of if bad[i]}
    free: set[int] = set()
    for i in range(len(tokens)):
        for j in range(i, len(tokens)):
            inside = {span_of[k] for k in span_of if i <= k <= j}
            crossed = {span_of[k] for k in span_of if not i <= k <= j} & inside
            if public.has(key(text[tokens[i][0] : tokens[j][1]])) and not crossed and not inside & spoilt:
                free |= set(range(i, j + 1))
    assert set(kept.spans) <= set(found.spans)
    for i, token in enumerate(tokens):
        assert hit(token, kept.spans) == (hit(token, found.spans) and i not in free)


@given(TEXTS, VALUES)
def test_nothing_public_spares_nothing(text: str, values: list[str]) -> None:
    assert Sparing.of(PII, WIDE, None) is WIDE
    assert Sparing.of(PII, WIDE, Public()) is WIDE
    assert Sparing.of(PII, WIDE, Public.of([f"{v} zzz" for v in values] or ["zzz"])).find([text]) == WIDE.find([text])


CATALOGUE = Public.of(["The Copper Kettle", "Bank of America", "March", "Cambridge", "Ely", "12"], ["time", "day"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met at The Copper Kettle on Monday at 17:30", None),
        ("we met at the COPPER  kettle, (monday) at 5 pm.", None),
        ("we met Dana at the Copper Kettle", f"we met {MASK} at the Copper Kettle"),
        ("we met in Cambridge, we think", None),
        ("we met Bank of America people", None),
        ("we met Bank of America, Dana said", f"we met {MASK} said"),
        ("we met Cambridge Dana", f"we met {MASK}"),
        ("we met Dana, Cambridge", f"we met {MASK}"),
        ("born in March 15 1980 there", f"born in {MASK} there"),
        ("born in March, 1980 there", f"born in {MASK} there"),
        ("we met at the Copper Kettle Lane", f"we met at {MASK}"),
        ("we met in Cambridge's streets", f"we met in {MASK} streets"),
        ("we met in Cambridge-Ely today", f"we met in {MASK} today"),
        ("we met #12 and $12 and 12 people", f"we met {MASK} and 12 people"),
        (f"we met {MASK} March there", f"we met {MASK} there"),
        (f"we met March - {MASK} there", f"we met {MASK} there"),
        (f"we met {MASK} in March there", f"we met {MASK} in March there"),
        (f"we met{MASK} Ely there", f"we {MASK} there"),
        ("write to a@b.org Ely there", f"write to {MASK} there"),
        ("write to a@b.org at Ely there", f"write to {MASK} at Ely there"),
    ],
)
def test_whole_spans_only(text: str, expected: str | None) -> None:
    """None: public as it stands. Without a public value each of these is private."""
    out = screen(Corpus.from_texts([text]), PII, WIDE, unit="document", public=CATALOGUE)
    assert out.texts("public") == ([text] if expected is None else [])
    assert out.texts("skeletons") == ([] if expected is None else [expected])
    assert screen(Corpus.from_texts([text]), PII, WIDE, unit="document").texts("public") == []


def test_a_border_of_messages_parts_values() -> None:
    text = "\x1euser\x1fthe Copper\x1eassistant\x1fKettle it is"
    local = sparing(CATALOGUE)
    assert part(text, local) == "private"
    assert "Kettle" not in (skeleton(text, local)[0] or "")
    assert part("\x1euser\x1fthe Copper Kettle\x1eassistant\x1fEly it is", local) == "public"


SECRET_WORDS = ("Ely", "March", "12", "Cambridge", "Copper", "Kettle", "17:30", "Monday")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from(SECRET_WORDS), min_size=2, max_size=4, unique=True),
    st.sampled_from([" ", ", ", "-", " - ", "/", " (", "'"]),
    st.sampled_from(["we met {} there", "{} is it", "it is {}", "see {}. we went"]),
    st.booleans(),
)
def test_a_secret_of_public_words_never_stands_in_public_text_or_a_skeleton(
    words: list[str], joint: str, around: str, all_at_once: bool
) -> None:
    """The attack: each word of the secret is in the file by itself, the secret is not."""
    secret = joint.join(words)
    public = Public.of(SECRET_WORDS, ["time", "day", "small-number"]) if all_at_once else Public.of(words)
    assume(not public.has(key(secret)))
    texts = [around.format(secret), *(around.format(word) for word in words)]
    out = screen(Corpus.from_texts(texts), PII, WIDE, unit="document", public=public)
    parts = out.table["part"].to_pylist()
    skeletons = out.table["skeleton"].to_pylist()
    assert parts[0] == "private"
    assert not any(word in (skeletons[0] or "") for word in words)
    assert not any(secret in text for text in (*out.texts("public"), *out.texts("skeletons")))
    assert parts[1:] == ["public"] * len(words)  # or the test would see nothing


@pytest.mark.parametrize("gap", ["{} ", "{} and "])
def test_long_records_are_looked_at_in_pieces_that_make_no_value_public(gap: str) -> None:
    """A piece may end inside a span; what is left of that in it is longer than any value."""
    assert LONGEST_VALUE < REACH
    assert not Public.of(["Ely " * (LONGEST_VALUE // 4 + 1)]).values
    names = "".join(gap.format(name) for name in ["Ely", "Young"] * 90)
    text = f"call 980.322.8737 or {names} now in Ely today"
    public = Public.of(["Ely", "Ely Young " * 12, "Young Ely " * 12])
    local = sparing(public)
    kept, refused = skeleton(text, local)
    assert not refused
    assert kept is not None
    assert kept.endswith("in Ely today")
    assert ("Ely and" in kept) == ("and" in gap)
    assert "Young" not in kept
    at = text.index("Young", 600)
    assert skeleton(without(text, [(at, at + 5)]), local) == (kept, False)


def test_a_policy_that_marks_everything_has_no_span_to_spare() -> None:
    with pytest.raises(UsageError, match="marks every record whole"):
        Sparing.of(PII, Policy((Everything(),), "all-private"), CATALOGUE)


def test_what_a_detector_did_not_finish_is_not_spared() -> None:
    class Fails:
        name = "fails"

        def definition(self) -> dict[str, object]:
            return {"kind": "fails"}

        def find(self, views: object) -> list[object]:  # noqa: ARG002
            raise RuntimeError

        def local(self, view: object) -> bool:  # noqa: ARG002
            return False

    fails = Policy((*WIDE.detectors, Fails()), "fails")  # type: ignore[arg-type]
    for pi, wide in ((PII, fails), (fails, WIDE)):
        (kept,), (found,) = Sparing.of(pi, wide, CATALOGUE).find(["in Ely"]), wide.find(["in Ely"])
        assert kept == found
        assert kept.spans


SMALL = ("Foo", "Ely", "Bar", "to", "it", ",", "Foo,")


@st.composite
def patterned(draw: st.DrawFn) -> Policy:
    """Marks words by themselves (perhaps), and some words where others stand beside them."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        words = draw(st.lists(st.sampled_from([w for w in SMALL if w.isalpha()]), min_size=1, max_size=3))
        first = draw(st.integers(0, len(words) - 1))
        kept = words[first : draw(st.integers(first + 1, len(words)))]
        before, after = " ".join(words[:first]), " ".join(words[first + len(kept) :])
        pattern = rf"\b{before}{' ' * bool(before)}({' '.join(kept)}){' ' * bool(after)}{after}\b"
        found.append(Regex(f"p{number}", pattern, must_find=(" ".join(words),), group=1))
    return Policy((*found, Words()) if draw(st.booleans()) else tuple(found), "patterned")


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from((*SMALL, MASK)), min_size=1, max_size=6).map(" ".join),
    st.lists(st.lists(st.sampled_from(SMALL), min_size=1, max_size=3).map(" ".join), min_size=1, max_size=6),
    patterned(),
    patterned(),
)
def test_policies_that_look_at_neighbours_keep_no_skeleton_that_a_masking_changes(
    text: str, values: list[str], pi: Policy, wide: Policy
) -> None:
    """All sets of marked words: patterns that match in a stretch and not in the whole, or the other way round, would spare
    a word in one of two neighbours only."""
    local = sparing(Public.of([*values, "Ely"]), (pi, wide))
    found = skeleton(text, local)
    words = [word.span() for start, end in marks(text, local) for word in WORD.finditer(text, start, end)]
    assume(0 < len(words) <= 6 and not found[1] and local.both is not None and local.both.apart([text]) == [True])
    several = [without(text, list(some)) for n in range(1, len(words) + 1) for some in combinations(words, n)]
    assert set(local._skeleton(several)) == {found}


@pytest.mark.parametrize(("text", "masked"), [("we saw Foo it Ely", "Foo"), ("Bar to Ely it Foo", "Foo")])
def test_a_word_that_only_its_neighbourhood_keeps_from_being_spared_refuses_the_skeleton(
    text: str, masked: str
) -> None:
    """π marks the public value beside "Foo" alone: with "Foo" masked it would stand readable."""
    near = Regex("near", r"\bFoo it (Ely)\b", must_find=("Foo it Ely",), group=1)
    far = Regex("far", r"\b(Ely) it Foo\b", must_find=("Ely it Foo",), group=1)
    local = sparing(Public.of(["Ely"]), (Policy((near, far), "near"), WIDE))
    assert local.both is not None
    assert local.both.apart([text]) == [True]
    assert skeleton(text, local) == (None, True)
    assert "Ely" in (skeleton(text.replace(masked, MASK), local)[0] or "")
    plain = Local.of(Policy((near, far), "near"), WIDE)
    assert skeleton(text, plain)[1] is False
