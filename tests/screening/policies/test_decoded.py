"""A policy looks at a text as it stands and as it reads without its encodings."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.screening.policies import policy
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.regex import Regex
from taciturn.screening.redact import redact
from taciturn.text.chat import CLOSE, OPEN

PI = policy("pii", "us")
CASES = {
    "entities": "anna.berg&#64;example.com",
    "entities, twice": "anna.berg&amp;#x40;example.com",
    "percent": "anna.berg%40example.com",
    "quoted-printable": "anna.berg=40example.com",
    "soft line break": "anna.berg@exam=\nple.com",
    "hyphen at the end of a line": "anna.berg@exam-\nple.com",
    "json": r"anna.berg\u0040example.com",
    "tags": "anna.<b>berg</b>@example.com",
    "colours": "anna.\x1b[31mberg\x1b[0m@example.com",
    "base64": base64.b64encode(b"write to anna.berg@example.com").decode(),
    "another script": "аnna.bеrg@exаmple.com",
    "a card": "4111&nbsp;1111&nbsp;1111&nbsp;1111",
    "a card, terminal": "4111 \x1b[1m1111\x1b[0m 1111 1111",
    "tag characters": "anna.berg\U000e0020@\u2064example.com",
}


@pytest.mark.parametrize("name", CASES)
def test_an_encoded_secret_is_masked_whole(name: str) -> None:
    assert redact([f"please use {CASES[name]} from now on"], PI)[0].text == "please use <MASK> from now on"


@pytest.mark.parametrize("name", CASES)
def test_a_text_that_holds_an_encoding_is_never_local(name: str) -> None:
    if name != "tag characters":  # folded, not read
        assert PI.local([CASES[name]]) == PI.apart([CASES[name]]) == [False]


def test_a_text_without_an_encoding_may_be_local() -> None:
    plain = "ordinary correspondence, R&D, 5 % of x=3 (a/b) <3 - extraordinarily fine\nnext"
    assert policy("email").local([plain]) == policy("email").apart([plain]) == [True]


def test_a_span_is_named_once() -> None:
    text = "call 212-555-0187 &amp; ask, or a&#64;b.org"
    found = policy("phone", "email").find([text])[0].spans
    assert [text[s.start : s.end] for s in found] == ["212-555-0187", "a&#64;b.org"]


def test_heads_of_messages_stay_whatever_is_read() -> None:
    text = f"{OPEN}user{CLOSE}users &amp; a%40b.org"
    roles = Policy((Regex("role", r"users?", must_find=("user",)),), "roles").find([text])[0].spans
    assert [(s.start, s.end) for s in roles] == [(6, 11)]
    assert [text[s.start : s.end] for s in policy("email").find([text])[0].spans] == ["a%40b.org"]


letters = st.text(st.sampled_from("ab1@.<>&;=%- \n\\u04\x1b[m"), max_size=30)


@given(st.lists(letters, max_size=4))
def test_what_is_found_as_the_text_stands_is_found(texts: list[str]) -> None:
    """More is found, never less; each text by itself."""
    plain = Regex("ab", r"[ab1]+@[ab1]+", must_find=("a@b",))
    found = Policy((plain,), "one").find(texts)
    for text, detection in zip(texts, found, strict=True):
        spans = {(s.start, s.end) for s in detection.spans}
        assert {m.span() for m in plain.compiled.finditer(text)} <= spans
        assert Policy((plain,), "one").find([text]) == [detection]
        assert all(0 <= a < b <= len(text) for a, b in spans)
