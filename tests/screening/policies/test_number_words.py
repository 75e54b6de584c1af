"""Number words of eight languages against a library that spells numbers out (num2words)."""

from __future__ import annotations

import re

import pytest
from num2words import num2words

from taciturn.screening import policy
from taciturn.screening.policies.number_runs import runs
from taciturn.screening.policies.number_words import said, sizes

AND = {"et", "y", "e", "and"}
LANGUAGES = ("en", "de", "fr", "fr_CH", "fr_BE", "es", "it", "nl", "pl", "pt", "pt_BR")


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_number_below_a_hundred_is_known_and_is_one_run_with_its_digits(language: str) -> None:
    differences = []
    for number in range(100):
        words = num2words(number, lang=language)
        unknown = [w for w in re.split(r"[\s-]+", words.lower()) if w not in AND and w not in sizes()]
        found = runs(words)
        if unknown or len(found) != 1 or found[0].digits != len(str(number)):
            differences.append((number, words, unknown, [run.digits for run in found]))
    assert differences == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_number_said_in_pairs_is_a_secret_and_one_number_is_none(language: str) -> None:
    pairs = " ".join(num2words(n, lang=language) for n in (6, 12, 34, 71, 97))
    (span,) = policy("number-said").find([f"… {pairs}. …"])[0].spans
    assert (span.start, span.end) == (2, 2 + len(pairs))
    for number in range(100):
        assert policy("number-said").find([num2words(number, lang=language)])[0].spans == ()


def test_digits_said_in_a_row() -> None:
    assert said(["double", "four", "two", "one"]) == 4
    assert said(["twenty", "one", "thirty"]) == 4
    assert said(["vingt", "douze"]) == 4  # twenty, twelve: no quatre before it
    assert said(["quatre", "vingts", "douze", "seize"]) == 4
