"""Files of public values, and kinds of them."""

from __future__ import annotations

import codecs
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.privacy.guarantees.evidence import PUBLIC_KINDS
from taciturn.screening.policies.public import LONGEST_VALUE, Public, key
from taciturn.screening.policies.public_kinds import FORMS, KINDS, LONGEST, SAID, piece


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "data",
    [
        b"Ely\nThe Copper Kettle\n",
        b"Ely\r\nThe Copper Kettle\r\n",
        codecs.BOM_UTF8 + b"Ely\nThe Copper Kettle",
        b"Ely\nely\n\n  \nEly.\nTHE  copper kettle\n",
    ],
)
def test_line_ends_marks_of_order_copies_and_blanks_do_not_matter(tmp_path: Path, data: bytes) -> None:
    found = Public.read([written(tmp_path / "v.txt", data)])
    assert found is not None
    assert found.values == {"ely", "the copper kettle"}
    assert found.digest == Public.of(["The Copper Kettle", "Ely"]).digest
    assert found.files == (("v.txt", hashlib.sha256(data).hexdigest()),)


def test_several_files_are_one_set(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, data) for name, data in (("a", b"Ely\n"), ("b", b"Ely\nYork\n"))]
    found = Public.read(paths, ["day"])
    assert found == Public.of(["York", "Ely"], ["day"])
    assert Public.read() is None


@pytest.mark.parametrize("size", [LONGEST_VALUE + 1, 3_000_000])
def test_a_huge_line_is_left_out_with_a_warning_that_quotes_nothing(tmp_path: Path, size: int) -> None:
    path = written(tmp_path / "v.txt", b"Ely\n" + b"q" * size + b"\nYork\n<MASK>\na\x1eb\n")
    with pytest.warns(UserWarning, match="1 longer than 128 characters, 1 with <MASK>, 1 with the border") as told:
        found = Public.read([path])
    assert found is not None
    assert found.values == {"ely", "york"}
    assert "qq" not in str(told[0].message)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "no value in v.txt, expected one a line; it is empty"),
        (b"\n \n", "it is empty"),
        (b"...\n", "1 empty, or without a letter and a digit"),
        (b"q" * 5000, "1 longer than 128"),
        ("Ely".encode("utf-16"), "is not UTF-8"),
    ],
)
def test_a_file_without_a_value_is_an_error(tmp_path: Path, data: bytes, said: str) -> None:
    with pytest.raises(DataError, match=said):
        Public.read([written(tmp_path / "v.txt", data)])


def test_a_missing_file_and_an_unknown_kind_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"v.txt cannot be read \(FileNotFoundError\)"):
        Public.read([tmp_path / "v.txt"])
    with pytest.raises(UsageError, match="'times' is none; did you mean 'time'"):
        Public.read([], ["times"])
    with pytest.raises(UsageError, match="'times' is none"):
        Public.of([], ["times"])


def test_values_are_not_in_what_is_shown_of_them() -> None:
    assert "ely" not in repr(Public.of(["Ely"])).casefold()


def test_a_file_of_the_corpus_is_refused(tmp_path: Path) -> None:
    found = Public.read([written(tmp_path / "v.txt", b"Ely\n")])
    assert found is not None
    assert found.apart_from({"mail.txt": "0" * 64}) is found
    with pytest.raises(UsageError, match=r"v\.txt is one of the files to screen"):
        found.apart_from({"mail.txt": hashlib.sha256(b"Ely\n").hexdigest()})


@given(st.text(max_size=30))
def test_a_key_does_not_depend_on_what_stands_around_a_value(text: str) -> None:
    assert key(f' ("{text}.") ') == key(text)


def test_kinds_have_words_and_certificates_know_them() -> None:
    assert set(KINDS) == set(FORMS) == set(SAID) == PUBLIC_KINDS


@pytest.mark.parametrize(
    ("kind", "yes", "no"),
    [
        (
            "time",
            ["17:30", "5:30 pm", "5 PM.", "5pm", "9.30am", "noon", "(half past five)", "5 o'clock"],
            ["5", "17.30", "25:00", "17:75", "1730", "17:30 18:30", "17:30, 5 pm", "555 pm"],
        ),
        ("day", ["Monday", "Mondays", "MARCH,", "December"], ["May", "April", "June", "Monday Tuesday", "Mon", "today"]),
        (
            "date",
            ["March 15", "15th of March", "Monday, 3 May", "the 3rd"[4:], "Sept. 3rd", "31 Dec"],
            ["March 15 1980", "15/03", "March", "32 March", "3 May, 4 May", "3", "33rd"],
        ),
        (
            "small-number",
            ["5", "12.", "(07)", "twelve", "Zero"],
            ["123", "#5", "$5", "5%", "-5", "+5", "5 6", "5-6", "twenty"],
        ),
        (
            "money",
            ["$5", "£ 12.50", "1,200 dollars", "99 cents", "5€"],
            ["5", "$12,345", "12345 dollars", "$5 $6", "$5.123"],
        ),
    ],
)  # fmt: skip
def test_kinds(kind: str, yes: list[str], no: list[str]) -> None:
    public = Public.of([], [kind])
    assert [value for value in yes if not public.has(key(value))] == []
    assert [value for value in no if public.has(key(value))] == []


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=300)
@given(st.data())
def test_every_token_of_a_kind_is_a_piece_and_no_value_has_too_many(kind: str, data: st.DataObject) -> None:
    """Otherwise a value would be missed, or a word taken for one that is never spared."""
    value = data.draw(st.from_regex(FORMS[kind], fullmatch=True))  # type: ignore[index]
    tokens = value.split(" ")
    assert len(tokens) <= LONGEST
    assert all(piece(key(token)) for token in tokens if key(token))
    assert len(value) <= LONGEST_VALUE
