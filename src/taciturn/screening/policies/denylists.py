"""The expressions of detect-secrets' own detectors, run as ours are: folded, bounded, behind the prefilter."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from taciturn.errors import MissingExtra
from taciturn.screening.policies.regex import Regex

_CATEGORIES = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
_SKIPPED = ("IPPublicDetector", "PrivateKeyDetector")  # here as "ip" and "private-key"
_BOUND = 256
_UNBOUNDED = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(\{\d+,\}|[+*])", re.DOTALL)


def detect_secrets() -> list[Regex]:
    """The expressions of detect-secrets' own detectors, each repeat bounded to 256 and the last one run on to the end of the
    token, under the names of its modules. Raises MissingExtra."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        raise MissingExtra("detect-secrets", "secrets") from None
    classes = sorted(set(get_mapping_from_secret_type_to_class().values()), key=lambda c: str(c.__name__))
    return [
        Regex(f"ds-{name}", pattern, label=name, must_find=(example(pattern),))
        for name, pattern in _expressions(classes)
    ]


def _expressions(classes: list[Any]) -> Iterator[tuple[str, str]]:
    """(module, one expression) of each plugin that is a list of expressions."""
    for plugin in classes:
        if hasattr(plugin, "denylist") and plugin.__name__ not in _SKIPPED:
            parts = [f"(?{_flags(r)}:{bounded(r.pattern)})" for r in plugin().denylist]
            yield plugin.__module__.rpartition(".")[2].replace("_", "-"), f"(?:{'|'.join(parts)})[A-Za-z0-9_+/=-]*+"


def _flags(compiled: re.Pattern[str]) -> str:
    return ("i" if compiled.flags & re.IGNORECASE else "") + ("x" if compiled.flags & re.VERBOSE else "")


def bounded(pattern: str) -> str:
    """The same pattern with ``+``, ``*`` and ``{n,}`` bounded.

    >>> bounded(r"a+[+*]b{3,}")
    'a{1,256}[+*]b{3,256}'
    """

    def bound(match: re.Match[str]) -> str:
        if match[1]:
            return match[1]
        low = {"+": "1", "*": "0"}.get(match[2]) or match[2][1:-2]
        return f"{{{low},{_BOUND}}}"

    return _UNBOUNDED.sub(bound, pattern)


def example(pattern: str) -> str:
    """A short text in which ``pattern`` matches, for patterns whose assertions hold at the ends of a text.

    >>> example(r"(?:^|x)(ab|c)[0-9a-f]{3}\\.\\w+")
    'ab000.0'
    """
    # The standard library has no public parser of its patterns; this one has kept its name and shape since 3.11.
    return _example(import_module("re._parser").parse(pattern))


def _example(nodes: Any) -> str:
    return "".join(_piece(str(op), argument) for op, argument in nodes)


def _piece(op: str, argument: Any) -> str:
    match op:
        case "LITERAL":
            return chr(argument)
        case "ANY":
            return "x"
        case "NOT_LITERAL":
            return "y" if argument == ord("x") else "x"
        case "IN":
            candidates = (chr(c) for c in (*range(48, 58), *range(97, 123), *range(65, 91), *range(32, 48)))
            return next(c for c in candidates if _member(c, argument))
        case "BRANCH":
            return _example(argument[1][0])
        case "SUBPATTERN":
            return _example(argument[-1])
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _example(argument[2]) * int(argument[0])
    return ""


def _member(char: str, items: Any) -> bool:
    if str(items[0][0]) == "NEGATE":
        return not _member(char, items[1:])
    for op, argument in items:
        match str(op):
            case "LITERAL" if chr(argument) == char:
                return True
            case "RANGE" if argument[0] <= ord(char) <= argument[1]:
                return True
            case "CATEGORY" if re.match(_CATEGORIES[str(argument)], char):
                return True
    return False
