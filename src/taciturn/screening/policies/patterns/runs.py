"""Runs of digits and number words that are secrets by their length alone (policies/number_runs.py)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from taciturn.screening.policies import number_runs, number_words
from taciturn.screening.policies.number_runs import ALIKE
from taciturn.screening.policies.regex import Regex
from taciturn.screening.policies.shapes import Table
from taciturn.screening.policies.view import View
from taciturn.text.spans import Span

WRITTEN, SAID = 9, 6
"""Digits that a run has at least, written and in words, to be a secret for π."""

_JOINT = r"[-./,*()_ \r\n]{0,16}"
_NUMBER = rf"[0-9{ALIKE}](?:{_JOINT}[0-9{ALIKE}]){{{WRITTEN - 1},}}"


@dataclass(frozen=True, slots=True)
class Runs(Regex):
    """Runs in which ``pattern`` matches and that say at least so many digits: those of figures too, or else only those with
    three number words. Whether a run is marked depends on the run alone."""

    least: int = 1
    figures: bool = False

    def definition(self) -> Mapping[str, object]:
        own = {"kind": "runs", "least": self.least, "figures": self.figures, "version": number_runs.VERSION}
        return {**Regex.definition(self), **own}

    def _matches(self, view: View) -> Iterator[Span]:
        if self.compiled.search(view.shadow) is None:
            return
        for run in number_runs.runs(view.shadow):
            if run.words:
                found = run.digits >= self.least and (run.words > 2 or self.figures)
            else:
                found = self.figures and number_runs.is_secret(view.shadow, run, self.least)
            if found and not run.codes and self.compiled.search(view.shadow, run.start, run.end):
                yield Span(*view.original(run.start, run.end), self.label, 1.0, self.name)


def _said() -> str:
    """Three number words (or letters O) in a row."""
    word = number_words.beginnings()
    gap = r"(?:[ ,.-]{1,3}(?:(?:et|y|e)[ -])?|,? ?\r?\n {0,4})"
    return rf"(?<![^\W_]){word}{gap}{word}{gap}{word}"


TABLE: Table = {
    "number-run": partial(
        Runs,
        "number-run",
        _NUMBER,
        "number",
        ("4111.1111.1111.1111", "0 7 8 0 5 1 1 2 1", "4111 1111\n1111 1111", "078 O5 112l"),
        digits=5,
        least=WRITTEN,
        figures=True,
    ),
    "number-said": partial(
        Runs,
        "number-said",
        _said(),
        "number",
        ("four one one, double two, oh", "null sechs einundzwanzig drei fünf"),
        ignore_case=True,
        least=SAID,
    ),
    "number-words": partial(Runs, "number-words", _said(), "number", ("four one one",), ignore_case=True),
}
