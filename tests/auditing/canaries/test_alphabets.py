"""Secrets of letters and of words: named, read from lists, written to canaries.json and read back."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.auditing.canaries.alphabets import NAMED, alphabet, read_words
from taciturn.auditing.canaries.templates import Planted, Template, draw, plant, read_plantings, write_plantings
from taciturn.errors import DataError, UsageError

WORDS = ("abacus", "abdomen", "zoom", "zoology")
WORD_LISTS = st.lists(st.text("abcé'", min_size=1, max_size=4), min_size=2, max_size=9, unique=True).map(tuple)


def test_names_and_what_is_near_them() -> None:
    assert alphabet("digits") == "0123456789"
    assert len(alphabet("letters")) == 26
    assert Template("x {}", alphabet("hex"), 5).size == 16**5
    with pytest.raises(UsageError, match="did you mean 'letters'"):
        alphabet("leters")


def test_word_lists_plain_and_numbered(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("\n".join(WORDS) + "\n\n")
    (tmp_path / "dice.txt").write_text("".join(f"1111{i}\t{word}\n" for i, word in enumerate(WORDS, 1)))
    assert alphabet(f"words:{tmp_path / 'plain.txt'}") == read_words(tmp_path / "dice.txt") == WORDS


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("one\n", "at least two words"),
        ("one\ntwo\n\none\n", "line 4: the same word as in line 1"),
        (b"\xff\n", "UTF-8"),
    ],
)
def test_bad_word_lists_are_named_and_not_quoted(tmp_path: Path, content: str | bytes, said: str) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=said) as error:
        read_words(path)
    assert str(error.value).startswith("word list list.txt")
    with pytest.raises(DataError, match=r"none\.txt: cannot be read"):
        read_words(tmp_path / "none.txt")


@given(WORD_LISTS, st.integers(1, 3), st.data())
def test_index_and_passphrase_are_inverse(words: tuple[str, ...], length: int, data: st.DataObject) -> None:
    template = Template("x {}", words, length)
    i = data.draw(st.integers(0, template.size - 1))
    assert template.index(template.secret(i)) == i
    assert len(template.secret(i).split(" ")) == length


def test_foreign_words_are_counted_not_quoted() -> None:
    template = Template("say {}", WORDS, 2)
    for secret in ("abacus", "abacus hunter2", "abacus  zoom"):
        with pytest.raises(UsageError, match="expected 2 words of an alphabet of 4") as error:
            template.index(secret)
        assert "hunter2" not in str(error.value)
        assert "abacus" not in str(error.value)


@pytest.mark.parametrize("words", [("a", "a"), ("a",), ("a", "b c"), ("a", "")])
def test_words_are_different_and_whole(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="alphabet: expected"):
        Template("x {}", words, 2)


def test_passphrases_from_more_candidates_than_a_machine_word_counts() -> None:
    template = Template("pass: {}", tuple(f"w{i}" for i in range(7776)), 6)
    drawn = draw(template, 20, seed=1)
    assert template.size > 2**63
    assert len({*drawn, *draw(template, 20, seed=1, without=drawn)}) == 40
    (document,) = plant([], template, drawn[:1], 1, 0)
    (span,) = document.gold
    assert document.text[span.start : span.end] == drawn[0]


def test_several_plantings_are_one_private_file(tmp_path: Path) -> None:
    path = tmp_path / "canaries.json"
    words, digits = Template("say {}", WORDS, 3), Template("My ID is: {}", length=5)
    plantings = (
        Planted(words, tuple(draw(words, 2, 0)), 3, "missed"),
        Planted(digits, tuple(draw(digits, 4, 0)), 20, "caught"),
        Planted(Template("k {}", NAMED["hex"], 4), ("beef",)),
    )
    write_plantings(path, plantings)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_plantings(path) == plantings
    with pytest.raises(DataError, match="expected one planting, found 3"):
        Planted.read(path)
    write_plantings(path, plantings[:1])
    assert Planted.read(path) == plantings[0]
    for bad in ([], [{"template": "x {}", "secrets": ["1"]}, 3]):
        path.write_text(json.dumps(bad))
        with pytest.raises(DataError, match=r"canaries\.json: expected"):
            read_plantings(path)
    path.write_text(json.dumps({"template": "x {}", "secrets": ["12"], "kind": "mised"}))
    with pytest.raises(UsageError, match="did you mean 'missed'"):
        read_plantings(path)
