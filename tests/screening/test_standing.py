"""What stands behind the masks of a skeleton, and that masking one value changes no other (guarantees.md §3.7)."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

import orjson
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neighbours import context_policies, context_policy, examples, words_policy
from slow_places import places
from taciturn.errors import DataError
from taciturn.screening import Policy, Regex, ScreenedCorpus, Words, policy, screen
from taciturn.screening.corpus.manifest import file_digest
from taciturn.screening.maskings import runs
from taciturn.screening.policies import registry
from taciturn.screening.policies.derived import Missing
from taciturn.screening.policies.public import LONGEST_VALUE, Public
from taciturn.screening.policies.view import WORD
from taciturn.screening.redact import BRIDGED, redact
from taciturn.screening.rows import Local, Row
from taciturn.screening.sparing import Sparing
from taciturn.text.document import MASK, Record
from taciturn.text.readers import Corpus

PII, WIDE, STRICT = policy("pii"), policy("conservative"), policy("conservative:strict")
PUBLIC = Public.of(["The Copper Kettle", "March", "12"], ["time"])
PAIRS = {
    "plain": (PII, WIDE),
    "strict": (PII, STRICT),
    "customersim": (policy("customersim"), WIDE),
    "multiwoz": (policy("multiwoz"), WIDE),
    "public": (PII, Sparing.of(PII, WIDE, PUBLIC)),
    "missing": (Missing(PII, 0.5, 1), WIDE),
}
LOCALS = {name: Local.of(*pair) for name, pair in PAIRS.items()}
PIECES = st.sampled_from(
    "they came to 77 the st. in may call me Rhonda Young, 980.322.8737 (555) 010-7788 at 12 main street Apt. 5 , WI 42884 "
    f"x@y.org a@b http://a.b/c ref #7GAWK763 slevin I'm May I phone 078-05-1126 {MASK} x{MASK}, é １２ my name is - ( ) _ "
    "Young's 17:30 The Copper Kettle March \x1euser\x1f \x1eassistant\x1fAnna CB1 2AB\n "
    "of the de and a le street, Inc. &amp;".split(" ")
)
TEXTS = st.lists(PIECES, min_size=1, max_size=9).map(" ".join).map(str.rstrip)
Interval = tuple[int, int]


def row(text: str, local: Local) -> Row:
    return rows([text], local)[0]


def rows(texts: Sequence[str], local: Local) -> list[Row]:
    return local.rows([Record(str(i), str(i), 0, len(text), text) for i, text in enumerate(texts)])


def values(row: Row) -> list[str | None]:
    """As ``ScreenedCorpus.standing`` has them; [] where none may stand."""
    return known(row) if row.stands else []


def known(row: Row) -> list[str | None]:
    """As ``ScreenedCorpus.behind`` has them."""
    return [row.body[a:b] if b > a else None for a, b in row.behind]


def without(text: str, spans: Iterable[Interval]) -> str:
    for start, end in sorted(spans, reverse=True):
        text = text[:start] + MASK + text[end:]
    return text


def marks(text: str, local: Local) -> tuple[Interval, ...]:
    assert local.both is not None
    return redact([text], local.both, BRIDGED)[0].marks


def marked_words(text: str, local: Local) -> list[Interval]:
    return [word.span() for start, end in places(text, local) for word in WORD.finditer(text, start, end)]


def neighbours_agree(text: str, maskings: Sequence[Sequence[Interval]], local: Local) -> int:
    """Fails if a masking with the same skeleton has other values than it must; how many have some."""
    ours = row(text, local)
    if not ours.stands:
        return 0
    assert local.both is not None
    apart = local.both.local([text]) == [True] or local.both.apart([text]) == [True]
    seen = 0
    for spans, theirs in zip(maskings, rows([without(text, spans) for spans in maskings], local), strict=True):
        if theirs.skeleton != ours.skeleton:
            assert not apart, "a kept skeleton changed"
            continue
        expected = [
            None if any(a < end and start < b for start, end in spans) else value
            for (a, b), value in zip(places(text, local), values(ours), strict=True)
        ]
        if theirs.stands or apart:
            assert values(theirs) == expected
            seen += any(expected)
    return seen


# What a mask stands for


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(sorted(LOCALS)))
def test_places_are_those_of_a_slow_search_and_values_put_back_give_the_text(text: str, name: str) -> None:
    local = LOCALS[name]
    found = row(text, local)
    if not found.behind:
        return
    its = places(text, local)
    assert found.skeleton == without(text, its)
    assert [value for value in zip(its, known(found), strict=True) if value[1] is not None] == [
        ((a, b), text[a:b]) for a, b in found.behind if b > a
    ]
    parts = found.skeleton.split(MASK)
    filled = parts[0] + "".join((value or MASK) + rest for value, rest in zip(known(found), parts[1:], strict=True))
    assert filled == without(text, [place for place, value in zip(its, known(found), strict=True) if value is None])
    behind = "(?s:.*)".join(map(re.escape, filled.split(MASK)))
    assert re.fullmatch(behind, found.redacted)


@settings(max_examples=300, deadline=None)
@given(TEXTS, st.sampled_from(sorted(LOCALS)))
def test_what_pi_masks_and_what_holds_a_mask_has_no_value(text: str, name: str) -> None:
    local = LOCALS[name]
    found = row(text, local)
    pi = [(s.start, s.end) for s in local.pi.find([text])[0].spans]
    for start, end in found.behind:
        assert not any(a < end and start < b for a, b in pi)
        assert not any(x in text[start:end] for x in (MASK, "\x1e", "\x1f"))
    if found.skeleton is None:
        assert not found.behind
    elif found.behind:
        assert len(found.behind) == found.skeleton.count(MASK)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("we met Dana at the Copper Kettle, on Monday.", ["Dana", "the Copper Kettle,", "Monday."]),
        ('"Dana\'s" is it', ['"Dana\'s"']),
        ("from Ely, (Foo - Bar) to Baz", ["Ely, (Foo - Bar)", "Baz"]),
        (f"we met {MASK} in Ely", [None, "Ely"]),
        (f"we met x{MASK}, in Ely", [None, "Ely"]),
        (f"we met Dana, {MASK} in Ely", [None, "Ely"]),
        ("call 980.322.8737 or Dana", [None, "Dana"]),
        ("call Dana 980.322.8737 or Ely", [None, "Ely"]),
        (f"in {'E' * (LONGEST_VALUE + 1)} or Ely", [None, "Ely"]),
        ("\x1euser\x1fin Ely\x1eassistant\x1fDana", ["Ely", "Dana"]),
    ],
)
def test_values(text: str, expected: list[str | None]) -> None:
    out = screen(Corpus.from_texts([text]), PII, WIDE, unit="document")
    assert out.behind() == [expected]
    assert out.counts.values_refused == 0


def test_a_value_does_not_reach_over_the_border_of_messages() -> None:
    over = context_policy([r"(Ely|\x1e|Dana|Foo)"])
    found = row("in Ely\x1eDana or Foo", Local.of(words_policy([]), over))
    assert found.skeleton == f"in {MASK} or {MASK}"
    assert values(found) == [None, "Foo"]


def test_what_a_later_pass_masks_has_no_value() -> None:
    """π marks y where a mask is two words before it: not in the text, but in what it redacts that to."""
    pi, wide = context_policy([r"\b(x)\b", r"\x1a or (y)"]), words_policy(["x", "y", "z"])
    found = row("x or y by z", Local.of(pi, wide))
    assert found.redacted == f"{MASK} or {MASK} by z"
    assert values(found) == [None, None, "z"]


def test_where_the_first_pass_does_not_make_the_skeleton_nothing_stands() -> None:
    """π_c marks y on its second pass: which mask stands for what can then not be read off its marks."""
    local = Local.of(words_policy([]), context_policy([r"\b(x)\b", r"\x1a or (y)"]))
    found = row("x or y by", local)
    assert found.skeleton == f"{MASK} or {MASK} by"
    assert found.behind == ()
    assert ("values_refused", 1) in found.tally
    assert values(row(f"{MASK} or y by", local)) == [None, "y"]


# Masking one changes no other


@settings(max_examples=150, deadline=None)
@given(TEXTS, st.sampled_from(sorted(LOCALS)))
def test_maskings_of_runs_of_marked_words_leave_the_other_values(text: str, name: str) -> None:
    local = LOCALS[name]
    neighbours_agree(text, [[run] for mark in marks(text, local) for run in runs(text, mark)], local)


@settings(max_examples=60, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=5).map(" ".join).map(str.rstrip), st.sampled_from(sorted(LOCALS)))
def test_all_sets_of_marked_words_of_short_texts(text: str, name: str) -> None:
    local = LOCALS[name]
    words = marked_words(text, local)
    assert local.both is not None
    if local.both.apart([text]) == [True] and len(words) <= 6:
        neighbours_agree(text, [some for n in range(1, len(words) + 1) for some in combinations(words, n)], local)


FRAMES = (
    "please note {} for two people on Monday.",
    "is it {}, or 17:45 with Anna Borg?",
    f"{MASK} {{}} at 9, {{}} or Ely",
)


@cache
def wide(level: str) -> Policy:
    return policy(level)


@pytest.mark.parametrize("level", ["conservative", "conservative:paranoid", "conservative:names"])
def test_maskings_under_every_policy_of_the_registry(level: str) -> None:
    place = ["conservative", "conservative:paranoid", "conservative:names"].index(level)
    kept = seen = 0
    for name in registry.names()[place::3]:
        local, rng = Local.of(policy(name), wide(level)), random.Random(name)
        for text in (frame.replace("{}", rng.choice(examples(name))) for frame in FRAMES):
            single = [[run] for mark in marks(text, local) for run in runs(text, mark)]
            found = neighbours_agree(text, single, local)
            kept, seen = kept + row(text, local).stands, seen + found
    assert kept > 60
    assert seen > 300


# Policies that look at what stands beside: π marks less, or more, of what π_c marks anyway


SMALL = ("Foo", "Ely", "Bar", "to", "it", ",", "Foo,", "Ely's", MASK)


@st.composite
def patterned(draw: st.DrawFn) -> Policy:
    """Marks some words where others stand beside them, or do not."""
    found = []
    for number in range(draw(st.integers(1, 3))):
        words = draw(st.lists(st.sampled_from([w for w in SMALL if w.isalpha()]), min_size=1, max_size=4))
        first = draw(st.integers(0, len(words) - 1))
        kept = words[first : draw(st.integers(first + 1, len(words)))]
        before, after = " ".join(words[:first]), " ".join(words[first + len(kept) :])
        pattern = rf"\b{before}{' ' * bool(before)}({' '.join(kept)}){' ' * bool(after)}{after}\b"
        example = " ".join(words)
        if draw(st.booleans()):
            pattern, example = rf"(?<!{draw(st.sampled_from(['Foo', 'Ely', 'it ']))} )\b({kept[0]})\b", kept[0]
        found.append(Regex(f"p{number}", pattern, must_find=(example,), group=1))
    return Policy(tuple(found), "patterned")


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.sampled_from(SMALL), min_size=1, max_size=7).map(" ".join),
    patterned(),
    st.one_of(st.just(Policy((Words(),), "words")), patterned(), st.just(words_policy(["Foo", "Ely", "Bar"]))),
    st.sampled_from([None, 0.0, 0.4]),
)
def test_policies_that_look_at_neighbours_keep_no_value_that_a_masking_changes(
    text: str, pi: Policy, wide: Policy, rate: float | None
) -> None:
    """All sets of marked words where both are apart, else all runs of them."""
    local = Local.of(pi if rate is None else Missing(pi, rate), wide)
    assert local.both is not None
    words = marked_words(text, local)
    single = [[run] for mark in marks(text, local) for run in runs(text, mark)]
    several = [some for n in range(1, len(words) + 1) for some in combinations(words, n)]
    apart = local.both.apart([text]) == [True] and len(words) <= 6
    neighbours_agree(text, several if apart else single, local)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.sampled_from((*"abcxy", MASK)), min_size=1, max_size=6).map(" ".join),
    context_policies,
    st.one_of(st.just(words_policy(["a", "x", "y"])), context_policies),
)
def test_models_keep_no_value_that_a_run_changes(text: str, pi: Policy, wide: Policy) -> None:
    """They may look over masks, and mark more on a later pass."""
    local = Local.of(pi, wide)
    neighbours_agree(text, [[run] for mark in marks(text, local) for run in runs(text, mark)], local)


AFTER = Policy((Regex("after", r"\bin Cambridge near (Ely)\b", "", ("in Cambridge near Ely",), group=1),), "after")
UNLESS = Policy((Regex("unless", r"(?<!Cambridge near )\b(Ely)\b", "", ("Ely",), group=1),), "unless")


@pytest.mark.parametrize("pi", [AFTER, Missing(AFTER, 0.0), UNLESS, Missing(UNLESS, 0.0)])
@pytest.mark.parametrize("around", [0, 18])
def test_a_value_that_depends_on_another_refuses_all(pi: Policy, around: int) -> None:
    """π finds Ely beside Cambridge, or only alone; π_c marks both anyway, so the skeleton shows nothing of that."""
    much = "call Rhonda Young about the order and then some more " * around
    text = f"{much}we are in Cambridge near Ely now {much}"
    local = Local.of(pi, WIDE)
    assert local.both is not None
    assert local.both.apart([text]) == [not isinstance(pi, Missing)]
    ours, theirs = row(text, local), row(text.replace("Cambridge", MASK), local)
    assert ours.skeleton is not None
    assert ours.skeleton == theirs.skeleton
    assert not ours.stands
    assert ("Ely" in known(ours)) == ("Ely" in ours.redacted)
    assert ("values_refused", 1) in ours.tally
    assert "Cambridge" not in values(theirs)
    assert ("Ely" in ours.redacted) != ("Ely" in theirs.redacted)
    good = row(text.replace("near", "or"), local)
    assert "Cambridge" in values(good)


def test_what_word_by_word_policies_mark_is_never_refused() -> None:
    pi = Policy((Words(),), "words")
    found = row("we met Dana and Ely or 17:45", Local.of(pi, policy("conservative:paranoid")))
    assert found.stands
    assert not any(name == "values_refused" for name, _ in found.tally)


# The corpus


def corpus(texts: Sequence[str], **options: object) -> ScreenedCorpus:
    return screen(Corpus.from_texts(texts), AFTER, WIDE, unit="document", **options)  # type: ignore[arg-type]


def test_every_skeleton_has_its_values_copies_too() -> None:
    texts = ["we are in Ely", "nothing here", "in Cambridge near Ely", "we are in Ely", f"we are in {MASK}"]
    for scope in ("private", "none"):
        out = corpus(texts, dedup=scope)
        assert out.counts.duplicates == (scope == "private")
        assert out.texts("skeletons") == [f"we are in {MASK}", f"in {MASK} near {MASK}", *[f"we are in {MASK}"] * 2]
        assert out.behind() == [["Ely"], ["Cambridge", None], ["Ely"], [None]]
        assert out.standing() == [["Ely"], [None, None], ["Ely"], [None]]
        assert out.counts.values_refused == 1
        assert any("1 private records have a skeleton into which no value" in w for w in out.manifest.warnings)
    assert corpus(texts, skeletons=False).counts.values_refused == 0
    with pytest.raises(DataError, match="were not kept"):
        corpus(texts, keep_originals=False).behind()


def test_a_folder_has_them_and_one_of_an_older_version_says_what_to_do(tmp_path: Path) -> None:
    texts = ["we are in Ely", "nothing here", "call Dana at 17:45"]
    out = corpus(texts, out=tmp_path / "s")
    assert out.behind() == corpus(texts).behind() == [["Ely"], ["Dana", "17:45"]]
    (file,) = (tmp_path / "s/originals").iterdir()
    pq.write_table(pq.read_table(file).drop_columns(["behind", "stands"]), file)
    path = tmp_path / "s/manifest.json"
    manifest = orjson.loads(path.read_bytes())
    del manifest["counts"]["values_refused"]
    for shard in manifest["shards"]:
        shard["digest"] = file_digest(tmp_path / "s" / shard["path"])
    path.write_bytes(orjson.dumps(manifest))
    old = ScreenedCorpus.load(tmp_path / "s")
    assert old.texts("original") == texts
    assert old.group_size(["Ely"]) == 1
    with pytest.raises(DataError, match="older version wrote it; screen again"):
        old.behind()
