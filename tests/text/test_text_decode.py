"""What a text says once its encodings are read, and the way back."""

from __future__ import annotations

import base64
import html
import quopri
import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.text.decode import CODED, DEPTH, Decoded, decode, mixed
from taciturn.text.document import MASK

PIECES = (
    "anna", "Berg", "@", "example.com", " ", "\n", "=\n", "-\r\n", "&#64;", "&amp;", "&eacute;", "%40", "%C3%A9",
    "=3D", "=E9", r"\u0041", r"\ud83d\ude00", r"\n", "<b>", "</td>", "<!-- x -->", "\x1b[31m", "\x1b]0;t\x07", "<",
    "&", "%", "\\", "é", "а", MASK, "\x1e", "\x1f", "cGFzc3dvcmQ6IGh1bnRlcjI=", "QUFB", "0123456789abcdef",
)  # fmt: skip
texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=14).map("".join), st.text(max_size=40))


@given(texts)
def test_offsets_are_in_bounds_and_in_order(text: str) -> None:
    decoded = decode(text)
    places = [decoded.original(i, i + 1) for i in range(len(decoded.text))]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert [start for start, _ in places] == sorted(start for start, _ in places)
    assert [end for _, end in places] == sorted(end for _, end in places)


@given(texts, st.data())
def test_what_is_not_encoded_stands_where_it_stood(text: str, data: st.DataObject) -> None:
    decoded = decode(text)
    for i, char in enumerate(decoded.text):
        start, end = decoded.original(i, i + 1)
        if end - start == 1 and text[start] != char:  # one character for one: a letter that looks like another
            assert not text[start].isascii()
    if decoded.text:
        low = data.draw(st.integers(0, len(decoded.text) - 1))
        high = data.draw(st.integers(low + 1, len(decoded.text)))
        start, end = decoded.original(low, high)
        inside = [decoded.original(i, i + 1) for i in range(low, high)]
        assert (start, end) == (inside[0][0], inside[-1][1])


@given(texts)
def test_what_may_be_read_is_seen_beforehand(text: str) -> None:
    """The premise of ``local`` (base.py): where CODED and ``mixed`` find nothing, nothing is read."""
    if decode(text).layers:
        assert re.search(CODED, text) or mixed(text)


@given(texts, st.data())
def test_masking_makes_no_encoding(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
    masked = text[: cuts[0]] + MASK + text[cuts[1] :]
    if not re.search(CODED, text) and not mixed(text):
        assert decode(masked) == Decoded(masked, ())


@given(texts)
def test_masks_and_the_form_of_messages_are_not_made(text: str) -> None:
    read = decode(text).text
    assert read.count("\x1e") <= text.count("\x1e")
    assert read.count("\x1a") <= text.count("\x1a")


word = st.text(st.characters(categories=("Lu", "Ll", "Nd"), max_codepoint=0x17F), min_size=1, max_size=12)


@given(word, word, st.sampled_from([0, 1, 2, 3]))
def test_a_secret_is_read_whatever_it_was_written_in(name: str, place: str, depth: int) -> None:
    secret = f"{name}@{place}.example"
    ways = {
        "entities": "".join(f"&#{ord(c)};" for c in secret),
        "hexadecimal": "".join(f"&#x{ord(c):x};" for c in secret),
        "percent": quote(secret, safe=""),
        "quoted": quopri.encodestring(secret.encode(), quotetabs=True).decode(),
        "json": "".join(f"\\u{ord(c):04x}" for c in secret),
        "colours": "\x1b[1;31m".join(secret),
        "tags": "<b>".join(secret),
    }
    for way, coded in ways.items():
        for _ in range(depth if way == "entities" else 0):
            coded = html.escape(coded)
        if depth < DEPTH or way != "entities":
            text = f"to {coded} now"
            found = decode(text)
            assert found.text == f"to {secret} now", way
            start, end = found.original(3, 3 + len(secret))
            assert text[start:end] == coded or coded.startswith(text[start:end]) or text[start:end] in coded


@given(st.text(st.characters(categories=("Lu", "Ll", "Nd", "Zs"), max_codepoint=0x2FF), min_size=12, max_size=200))
def test_base64_is_read_whole_and_over_lines(secret: str) -> None:
    packed = base64.b64encode(secret.encode()).decode()
    wrapped = base64.encodebytes(secret.encode()).decode().rstrip("\n")
    for coded in (packed, packed.rstrip("="), wrapped):
        text = f"x {coded} y"
        assert text.index(coded) == 2
        if secret.isprintable():
            found = decode(text)
            assert found.text == f"x {decode(secret).text} y"
            assert found.original(2, 3) == (2, 2 + len(coded))


@pytest.mark.parametrize(
    "plain", ["internationalization", "a_long_identifier_name", "/usr/share/doc/python3", "0" * 40, "x = 5"]
)
def test_long_words_are_no_base64(plain: str) -> None:
    assert decode(plain) == Decoded(plain, ())


def test_letters_of_two_scripts_in_a_word() -> None:
    assert decode("раsswоrd: hunter2").text == "password: hunter2"  # Cyrillic р, а and о
    assert decode("пароль: тайна").layers == ()  # a word of one script is what it says
    assert decode("αβγ and АВС").layers == ()


def test_cells_of_a_table_stay_apart() -> None:
    assert decode("<tr><td>Anna</td><td>Berg</td></tr>").text.split() == ["Anna", "Berg"]
    assert decode("a<MASK>b").layers == ()
