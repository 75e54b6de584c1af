"""Where named secrets stand, in whatever case, and which skeletons may show a part of one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neighbours import run, words_policy
from taciturn.screening.corpus.occurrences import may_show, places, regardless_of_case
from taciturn.screening.policies import policy
from taciturn.text.document import MASK


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("in İzmir ask for Zed Quill", "Zed Quill"),  # a letter that is longer in lower case
        ("in İzmir ask for ZED QUILL", "zed quill"),
        ("ΟΔΟΣ ΟΔΟΣΑ", "οδος"),  # a letter whose lower case depends on what follows
        ("Straße 7, STRASSE 7", "straße 7"),
        ("meet at KELVIN", "kelvin"),
    ],
)
def test_a_secret_is_found_in_whatever_case(text: str, secret: str) -> None:
    found = places(text, [regardless_of_case(secret)])
    assert found
    assert all(end - start == len(secret) and end <= len(text) for start, end in found)
    screened = run([text], policy("phone"), policy("phone"))
    assert screened.group_size([secret], "public") == screened.group_size([secret], "original") == 1


def test_a_letter_that_grows_hid_a_group_from_k_and_from_what_refutes_it() -> None:
    texts = ["from İzmir, x says B"] * 2
    assert run(texts, words_policy([]), words_policy(["x"]), "none").group_size(["B"]) == 2
    assert run(texts, words_policy([]), words_policy([])).group_size(["B"], "public") == 2


def skeleton(words: list[str], masked: tuple[bool, ...]) -> str:
    out: list[str] = []
    for word, gone in zip(words, masked, strict=True):
        if not gone:
            out.append(word)
        elif out[-1:] != [MASK]:
            out.append(MASK)
    return " ".join(out)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abx"), st.booleans()), min_size=1, max_size=7),
    st.sampled_from(("x", "a x", "b", "a b x")),
)
def test_a_part_may_show_if_any_masking_with_that_skeleton_leaves_one(
    pairs: list[tuple[str, bool]], secret: str
) -> None:
    words, looked = [word for word, _ in pairs], secret.split()
    kept = skeleton(words, tuple(gone for _, gone in pairs))
    at = {j for i in range(len(words)) if words[i : i + len(looked)] == looked for j in range(i, i + len(looked))}
    maskings = [m for m in product((False, True), repeat=len(words)) if skeleton(words, m) == kept]
    assert may_show(" ".join(words), kept, [secret]) == any(not m[j] for m in maskings for j in at)


def test_what_is_no_masking_of_the_text_may_show_all() -> None:
    assert may_show("ask for Zed", "ask for Bob", ["zed"])
    assert may_show("ask for Zed", f"{MASK} {MASK} {MASK} {MASK}", ["zed"])
    assert not may_show("ask for Zed", f"ask {MASK}", ["bob"]), "the text has no such secret"


def test_a_secret_of_which_half_is_marked_shows_in_the_skeleton() -> None:
    screened = run(["ask for Zed Quill", "ask for Zed Moe", "no names"], words_policy([]), words_policy(["Zed"]))
    assert screened.texts("skeletons") == [f"ask for {MASK} Quill", f"ask for {MASK} Moe"]
    assert screened.group_size(["Zed Quill"], "skeletons") == 1, "it does not stand there whole"
    assert screened.group_size(["Zed"], "skeletons") == 0
