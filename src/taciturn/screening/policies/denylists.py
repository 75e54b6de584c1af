"""detect-secrets' own detectors, run as ours are: on the folded text, bounded, behind the prefilter, with exact offsets.

Its scanner is not used: it reports lines and hashes instead of places, finds one keyword a line, and passes over what a
comment in the text ("pragma: allowlist secret") or a heuristic excuses. Its expressions and its measure of entropy are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from taciturn.errors import MissingExtra
from taciturn.screening.policies.regex import Regex

_CATEGORIES = {"CATEGORY_DIGIT": r"\d", "CATEGORY_SPACE": r"\s", "CATEGORY_WORD": r"\w"}
_BOUND, _LONG = 256, 1024
_UNBOUNDED = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|(\{\d+,\}|[+*])", re.DOTALL)
_ADDRESS = "8.8.8.8"  # what its detector of public addresses finds
_KEYWORDS = (
    'password: "hunter2"',
    '"hunter2" == password',
    "password = 'hunter2'",
    'password "hunter2";',
    'password => "hunter2"',
)
_ENTROPY = {"Base64HighEntropyString": "ds-base64", "HexHighEntropyString": "ds-hex"}


def detect_secrets() -> list[Regex]:
    """The detectors of that package under the names of its modules. Raises MissingExtra."""
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        raise MissingExtra("detect-secrets", "secrets") from None
    classes = sorted(set(get_mapping_from_secret_type_to_class().values()), key=lambda c: str(c.__name__))
    return [*_expressions(classes), *_keywords(), *_random()]


def _expressions(classes: list[Any]) -> Iterator[Regex]:
    """Each plugin that is a list of expressions: each repeat bounded to 256, the last one run on to the end of the token."""
    for plugin in classes:
        if hasattr(plugin, "denylist"):
            name = plugin.__module__.rpartition(".")[2].replace("_", "-")
            parts = [f"(?{_flags(r)}:{bounded(r.pattern)})" for r in plugin().denylist]
            pattern = f"(?:{'|'.join(parts)})[A-Za-z0-9_+/=-]*+"
            found = _ADDRESS if plugin.__name__ == "IPPublicDetector" else example(pattern)
            yield Regex(f"ds-{name}", pattern, label=name, must_find=(found,))


def _keywords() -> Iterator[Regex]:
    """What its keyword detector looks for in a file of no known type: quoted values beside a telling name, on one line."""
    table = import_module("detect_secrets.plugins.keyword").QUOTES_REQUIRED_DENYLIST_REGEX_TO_GROUP
    for number, (found, group) in enumerate(table.items(), 1):
        pattern = bounded(found.pattern.replace(r"[^\v", r"[^\n\v"), r"[^\n\v")
        # Nothing is lost by never giving back the rest of a name: what may come next takes any character.
        pattern = pattern.replace(r")\w{0,256}", r")\w{0,256}+")
        examples = tuple(text for text in _KEYWORDS if found.search(text))[:1]
        ignore = bool(found.flags & re.IGNORECASE)
        yield Regex(f"ds-keyword-{number}", pattern, "keyword", examples, group=group, ignore_case=ignore)


def _random() -> Iterator[Regex]:
    """Quoted strings of base64 or hexadecimal digits whose entropy is above the limit it has."""
    module = import_module("detect_secrets.plugins.high_entropy_strings")
    for plugin, check in _ENTROPY.items():
        pattern = getattr(module, plugin)().regex.pattern.replace("]+)", "]++)")
        text = "'0123456789abcdef0a1b2c3d4e5f'" if check == "ds-hex" else "'0Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9StUvWxYz'"
        yield Regex(f"{check}-entropy", pattern, "high-entropy", (text,), check, group=2)


def _flags(compiled: re.Pattern[str]) -> str:
    return ("i" if compiled.flags & re.IGNORECASE else "") + ("x" if compiled.flags & re.VERBOSE else "")


def bounded(pattern: str, long: str = "") -> str:
    """The same pattern with ``+``, ``*`` and ``{n,}`` bounded to 256, and to 1,024 after a class that begins with ``long``.

    >>> bounded(r"a+[+*]b{3,}")
    'a{1,256}[+*]b{3,256}'
    """
    before = ""

    def bound(match: re.Match[str]) -> str:
        nonlocal before
        if match[1]:
            before = match[1]
            return before
        low = {"+": "1", "*": "0"}.get(match[2]) or match[2][1:-2]
        inside = long and before.startswith(long) and pattern.endswith(before, 0, match.start())
        return f"{{{low},{_LONG if inside else _BOUND}}}"

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
