"""guarantees.md §2 and §3 on random small corpora: D against D', one secret (or a group of them) replaced by <MASK>."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neighbours import (
    SCOPES,
    context_policy,
    corpora,
    distance,
    local_policies,
    neighbours,
    policies,
    run,
    skeleton,
    words_policy,
)
from taciturn.mechanisms.corpus import residual_units
from taciturn.screening import Policy, ScreenedCorpus, screen
from taciturn.screening.redact import redact
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus


@settings(max_examples=150, deadline=None)
@given(neighbours(), policies, policies, st.sampled_from(SCOPES))
def test_one_secret_changes_nothing_when_detected_and_one_record_otherwise(
    pair: tuple[list[str], list[str], int, str], pi: Policy, wide: Policy, scope: str
) -> None:
    texts, masked, at, _ = pair
    ours, theirs = run(texts, pi, wide, scope), run(masked, pi, wide, scope)
    before, after = (m.text for m in redact([texts[at], masked[at]], pi))
    if ours.table["part"].to_pylist()[at] == "public":
        assert before != after  # no mask in it: undetected, and outside what CRT promises
        return
    assert ours.table["part"].to_pylist() == theirs.table["part"].to_pylist()
    assert ours.texts("public") == theirs.texts("public")
    if before == after:
        assert ours.texts("private") == theirs.texts("private")
    else:
        change = distance(ours.texts("private"), theirs.texts("private"))
        assert change == 1 if scope == "none" else change <= 1
    if skeleton(texts[at], pi, wide) == skeleton(masked[at], pi, wide):
        assert Counter(ours.texts("skeletons")) == Counter(theirs.texts("skeletons"))


@settings(max_examples=150, deadline=None)
@given(neighbours(), local_policies, local_policies)
def test_skeletons_stay_when_word_by_word_policies_mark_the_secret(
    pair: tuple[list[str], list[str], int, str], pi: Policy, wide: Policy
) -> None:
    texts, masked, _, secret = pair
    both = [words for p in (pi, wide) for d in p.detectors for words in re.findall(r"\w", d.pattern[3:-3])]  # type: ignore[attr-defined]
    if not set(secret.split(" ")) <= {*both, MASK}:
        return
    ours, theirs = run(texts, pi, wide), run(masked, pi, wide)
    assert ours.counts.skeletons_refused == theirs.counts.skeletons_refused == 0
    assert Counter(ours.texts("skeletons")) == Counter(theirs.texts("skeletons"))
    assert not any(word in s.split(" ") for s in ours.texts("skeletons") for word in both)


@settings(max_examples=100, deadline=None)
@given(corpora, st.sets(st.sampled_from(("x", "y")), min_size=1), local_policies, st.sampled_from(SCOPES))
def test_a_group_changes_at_most_k_records(texts: list[str], group: set[str], pi: Policy, scope: str) -> None:
    wide = words_policy(sorted(group))  # π_c marks the group: the condition of the group theorem
    masked = [" ".join(MASK if w in group else w for w in t.split(" ")) for t in texts]
    ours, theirs = run(texts, pi, wide, scope), run(masked, pi, wide, scope)
    assert ours.texts("public") == theirs.texts("public")
    assert distance(ours.texts("private"), theirs.texts("private")) <= ours.group_size(sorted(group))


@settings(max_examples=300, deadline=None)
@given(corpora, st.sets(st.sampled_from(("x", "y")), min_size=1), policies, policies, st.sampled_from(SCOPES))
def test_a_group_of_which_no_secret_is_public_needs_nothing_else_from_the_policies(
    texts: list[str], group: set[str], pi: Policy, wide: Policy, scope: str
) -> None:
    """Whatever they mark of other secrets: the count in public records is 0 exactly where masking the group changes none."""
    masked = [" ".join(MASK if w in group else w for w in t.split(" ")) for t in texts]
    ours, theirs = run(texts, pi, wide, scope), run(masked, pi, wide, scope)
    left = ours.group_size(sorted(group), "public")
    assert (left == 0) == (ours.texts("public") == theirs.texts("public"))
    if not left:
        assert distance(ours.texts("private"), theirs.texts("private")) <= ours.group_size(sorted(group))


@settings(max_examples=300, deadline=None)
@given(corpora, st.sets(st.sampled_from(("x", "y")), min_size=1), local_policies, local_policies)
def test_a_group_of_which_no_part_is_left_in_skeletons_leaves_them_as_they_are(
    texts: list[str], group: set[str], pi: Policy, wide: Policy
) -> None:
    masked = [" ".join(MASK if w in group else w for w in t.split(" ")) for t in texts]
    ours, theirs = run(texts, pi, wide), run(masked, pi, wide)
    if ours.group_size(sorted(group), "public") == ours.group_size(sorted(group), "skeletons") == 0:
        assert Counter(ours.texts("skeletons")) == Counter(theirs.texts("skeletons"))


@settings(max_examples=60, deadline=None)
@given(corpora, policies, policies, st.sampled_from(SCOPES))
def test_nothing_is_lost(texts: list[str], pi: Policy, wide: Policy, scope: str) -> None:
    screened = run(texts, pi, wide, scope)
    counts = screened.counts
    assert counts.read == len(texts) == counts.public + counts.private
    assert screened.texts("original") == texts
    assert len(screened.texts("private")) == counts.private
    assert all(MASK not in text for text in screened.texts("public"))
    assert not any(pi.find([t])[0].spans or wide.find([t])[0].spans for t in screened.texts("public"))


def test_the_published_order_breaks_detected_means_zero() -> None:
    pi = wide = words_policy(["x"])
    d, neighbour = ["a x", "a x"], [f"a {MASK}", "a x"]
    published = [run(texts, pi, wide, order="as-published") for texts in (d, neighbour)]
    assert sorted(published[0].texts("private")) == sorted([f"a {MASK}", MASK])
    assert sorted(published[1].texts("private")) == [f"a {MASK}", f"a {MASK}"]
    assert not published[0].manifest.guarantee_ok
    assert published[0].manifest.reasons
    for scope in SCOPES:
        assert run(d, pi, wide, scope).texts("private") == run(neighbour, pi, wide, scope).texts("private")


def test_one_unique_secret_may_change_two_records() -> None:
    """The published Proposition 7 counts unique secrets: one here, and two records change."""
    pi, wide = words_policy([]), words_policy(["x"])
    ours = run(["a x", "b x"], pi, wide)
    theirs = run([f"a {MASK}", f"b {MASK}"], pi, wide)
    assert distance(ours.texts("private"), theirs.texts("private")) == 2 == ours.group_size(["x"])


@pytest.mark.parametrize(("scope", "size"), [("suspicious", 3), ("private", 1), ("all", 1), ("none", 3)])
def test_copies_of_a_secret_count_unless_their_masked_form_is_deduplicated_too(scope: str, size: int) -> None:
    pi, wide = words_policy([]), words_policy(["x"])
    ours, theirs = run(["a x"] * 3, pi, wide, scope), run([f"a {MASK}"] * 3, pi, wide, scope)
    assert distance(ours.texts("private"), theirs.texts("private")) == size == ours.group_size(["x"])


def test_copies_count_once_when_something_beside_the_secret_keeps_them_suspicious() -> None:
    pi, wide = words_policy([]), words_policy(["x", "y"])
    ours, theirs = run(["a x b y"] * 3, pi, wide), run([f"a {MASK} b y"] * 3, pi, wide)
    assert distance(ours.texts("private"), theirs.texts("private")) == 1 == ours.group_size(["x"])


def test_a_partly_masked_secret_is_in_the_group() -> None:
    pi, wide = words_policy(["x"]), words_policy(["y"])
    ours = run(["a x b y"], pi, wide)
    assert ours.texts("private") == [f"a {MASK} b y"]
    assert ours.group_size(["x b y"]) == 1
    assert ours.group_size(["x"]) == 0


def test_a_record_whose_skeleton_depends_on_what_it_masks_has_none() -> None:
    pi, wide = words_policy(["y"]), context_policy([r"\b(x)\b", r"x a (b)"])
    refused = run(["y c x a b"], pi, wide)
    assert refused.texts("skeletons") == []
    assert refused.counts.skeletons_refused == 1
    # Its neighbour passes the check and has one: the certificate's condition names such records.
    assert run([f"y c {MASK} a b"], pi, wide).counts.skeletons == 1
    assert any("skeleton failed" in c for c in refused.manifest.conditions)


def test_a_span_that_does_not_survive_its_own_masking_is_not_detected() -> None:
    pi = context_policy([r"\b(x)\b", r"x a (b)"])
    ours = run(["x a b"], pi, words_policy([]))
    assert ours.texts("private") == [f"{MASK} a {MASK}"]
    assert (ours.counts.spans, ours.counts.spans_undetected_after_check) == (2, 1)
    assert ours.group_size(["x"]) == 1
    assert ours.group_size(["b"]) == 0


def test_duplicates_are_looked_up_apart_in_public_and_private() -> None:
    """A record that is private for another reason must not decide whether an equal public one stays."""
    documents = list(Corpus.from_texts(["a b", "a b"]).documents())
    documents[0] = replace(documents[0], private_because="undecodable bytes")
    nothing = words_policy([])
    screened = screen(Corpus.from_documents(documents), nothing, nothing, unit="document", dedup="all")
    assert screened.texts("public") == ["a b"]
    assert screened.texts("private") == ["a b"]


def residual_terms(corpus: ScreenedCorpus) -> Counter[tuple[str, ...]]:
    """What the units of crt_residual add: (record, its skeleton), or (record,) where it has none."""
    rows = corpus.texts("private") + corpus.texts("skeletons")
    units = residual_units(corpus)
    assert len(units) == len(corpus.texts("private"))
    return Counter(tuple(rows[row] for row in units.of(u)) for u in range(len(units)) if len(units.of(u)))


@settings(max_examples=300, deadline=None)
@given(neighbours(), policies, policies, st.sampled_from(["suspicious", "private", "all"]))
def test_the_terms_of_neighbours_differ_in_one_that_vanishes(
    pair: tuple[list[str], list[str], int, str], pi: Policy, wide: Policy, scope: str
) -> None:
    """guarantees.md §3.5: at most one term differs, and none is left in D' where π_c marks nothing in the masked record."""
    texts, masked, at, _ = pair
    ours, theirs = run(texts, pi, wide, scope), run(masked, pi, wide, scope)
    parts = [corpus.table["part"].to_pylist() for corpus in (ours, theirs)]
    here, there = (corpus.table["skeleton"].to_pylist()[at] for corpus in (ours, theirs))
    if parts[0] != parts[1] or here != there:
        return  # outside the conditions of §3.1
    lost, come = (
        residual_terms(ours) - residual_terms(theirs),
        residual_terms(theirs) - residual_terms(ours),
    )
    assert lost.total() <= 1
    assert come.total() <= 1
    (after,) = redact([masked[at]], pi)
    if here is not None and not wide.find([after.text])[0].spans:
        assert not come
