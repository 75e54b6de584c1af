"""A detector made of one regular expression, an optional check, and examples it must find."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taciturn.errors import UsageError, nearest
from taciturn.screening.policies import number_runs
from taciturn.screening.policies.base import CLEAN
from taciturn.screening.policies.checks import CHECKS
from taciturn.screening.policies.number_runs import grown
from taciturn.screening.policies.relax import sees_over
from taciturn.screening.policies.view import BLANK, View
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span


@dataclass(frozen=True, slots=True)
class Regex:
    """``pattern`` on the folded shadow of a text, in one pass whatever its length; spans in original offsets.

    group: the group that is the span (0: the whole match). check: a name in ``checks.CHECKS``. digits, needs: a text with
    fewer digits, or with none of these strings, cannot match and is not searched. must_find: texts in which something must
    be found; they are tried when the detector is made. whole: a span takes in all of the numbers that it has a part of
    (number_runs.py).
    Raises UsageError: a pattern that does not compile, that may take exponential time, or that misses an example.
    """

    name: str
    pattern: str
    label: str = ""
    must_find: tuple[str, ...] = ()
    check: str = ""
    digits: int = 0
    needs: tuple[str, ...] = ()
    group: int = 0
    ignore_case: bool = False
    whole: bool = False
    compiled: re.Pattern[str] = field(init=False, repr=False, compare=False)
    apart: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.check and self.check not in CHECKS:
            raise UsageError(f"detector '{self.name}': unknown check '{self.check}'; {nearest(self.check, CHECKS)}")
        try:
            compiled = re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0)
        except (re.error, OverflowError) as error:
            raise UsageError(f"detector '{self.name}': the pattern does not compile: {error}") from None
        if nested_repeat(self.pattern):
            raise UsageError(
                f"detector '{self.name}': an unbounded repeat inside an unbounded repeat may take exponential time; "
                "bound one of them ({1,64}) or make the inner one possessive (++)"
            )
        if self.group > compiled.groups:
            raise UsageError(f"detector '{self.name}': group {self.group}, but the pattern has {compiled.groups}")
        object.__setattr__(self, "compiled", compiled)
        object.__setattr__(self, "apart", not sees_over(self.pattern, BLANK, len(MASK), self.ignore_case))
        if not self.must_find:
            raise UsageError(f"detector '{self.name}': must_find is empty; give at least one text it has to find")
        for number, example in enumerate(self.must_find, 1):
            if not any(True for _ in self.spans(View.of(example))):
                raise UsageError(f"detector '{self.name}': must_find example {number} is not found by its pattern")

    def definition(self) -> Mapping[str, object]:
        return {
            "kind": "regex",
            "name": self.name,
            "pattern": self.pattern,
            "label": self.label,
            "check": self.check,
            "digits": self.digits,
            "needs": list(self.needs),
            "group": self.group,
            "ignore_case": self.ignore_case,
            "whole": number_runs.VERSION if self.whole else 0,
        }

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [Detection(spans) if self._may(v) and (spans := tuple(self._matches(v))) else CLEAN for v in views]

    def spans(self, view: View) -> Iterator[Span]:
        """Matches that pass the check, left to right."""
        return self._matches(view) if self._may(view) else iter(())

    def _matches(self, view: View) -> Iterator[Span]:
        check = CHECKS.get(self.check)
        last = (0, 0)
        for match in self.compiled.finditer(view.shadow):
            start, end = match.span(self.group)
            if check is not None:
                kept = check(match.group(self.group))
                if kept is None:
                    continue
                start, end = start + kept[0], start + kept[1]
            if end > start and self.whole:
                start, end = grown(view.shadow, start, end)
            if end > start and (start, end) != last:
                last = start, end
                yield Span(*view.original(start, end), self.label or self.name, 1.0, self.name)

    def local(self, view: View) -> bool:
        """No match can arise from masking where the digits or strings that every match has are missing."""
        return not self._may(view)

    def _may(self, view: View) -> bool:
        if view.digits < self.digits:
            return False
        if not self.needs:
            return True
        shadow = view.shadow
        for part in self.needs:  # noqa: SIM110  any() with a generator costs more than the search it saves
            if part in shadow:
                return True
        return False


def nested_repeat(pattern: str) -> bool:
    """Whether an unbounded repeat contains another one that can give back what it took.

    >>> nested_repeat("(a+)+"), nested_repeat("(a++)+"), nested_repeat("(?:a{1,9}-)*"), nested_repeat("a*b*")
    (True, False, False, False)
    """
    # The standard library has no public parser of its patterns; this one has kept its name and shape since 3.11.
    parser = importlib.import_module("re._parser")
    return _nested(parser.parse(pattern), inside=False)


def _nested(node: Any, inside: bool) -> bool:
    for operator, argument in node:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            low, high, body = argument
            unbounded = int(high) > 1000 and low != high
            if unbounded and inside and name != "POSSESSIVE_REPEAT":
                return True
            if _nested(body, (inside or unbounded) and name != "POSSESSIVE_REPEAT"):
                return True
        elif name == "ATOMIC_GROUP":
            if _nested(argument, inside=False):
                return True
        elif name == "SUBPATTERN":
            if _nested(argument[-1], inside):
                return True
        elif name in ("ASSERT", "ASSERT_NOT"):
            if _nested(argument[1], inside):
                return True
        elif name == "BRANCH":
            if any(_nested(branch, inside) for branch in argument[1]):
                return True
        elif name == "GROUPREF_EXISTS" and any(
            _nested(branch, inside) for branch in argument[1:] if branch is not None
        ):
            return True
    return False
