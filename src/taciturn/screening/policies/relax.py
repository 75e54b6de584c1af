"""A pattern without what RE2 cannot do, matching wherever the pattern does and perhaps elsewhere.

RE2 scans a text once for hundreds of patterns at a time, in linear time, but has no lookaround and no back reference, and
knows letters and digits of ASCII only. As a filter in front of ``re`` it must never miss. So assertions become nothing, a
back reference becomes its group, possessive and atomic parts become plain ones, and long repeats lose their bounds, which
keeps the automaton small. It reads bytes of UTF-8: whatever class may hold a character outside ASCII takes any run of bytes
from 0x80 for it.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

_HIGH = r"\x80-\xff"
_MORE = r"[\x80-\xff]*"  # the bytes that follow the first of a character; also after ASCII, which does no harm
_COUNTED = 8  # repeats are counted up to here
# When case is ignored "i" has partners outside ASCII, U+0130 and U+0131. So have "k" and "s" (U+212A, U+017F), but a folded
# text holds none of these: NFKC makes ASCII of them.
_DOTS = r"\xc4[\xb0\xb1]"
_PARTNERS = {0x130: "i", 0x131: "i", 0x17F: "s", 0x212A: "k"}
_CATEGORIES = {
    "CATEGORY_DIGIT": re.compile(r"\d"),
    "CATEGORY_NOT_DIGIT": re.compile(r"\D"),
    "CATEGORY_WORD": re.compile(r"\w"),
    "CATEGORY_NOT_WORD": re.compile(r"\W"),
    "CATEGORY_SPACE": re.compile(r"\s"),
    "CATEGORY_NOT_SPACE": re.compile(r"\S"),
}


def relaxed(pattern: str, ignore_case: bool = False) -> str:
    """An RE2 pattern over bytes that matches the UTF-8 of every folded text in which ``pattern`` (``re``) matches.

    Folded (text/fold.py): a decimal digit of any script is an ASCII digit there, so ``\\d`` needs nothing else.

    >>> relaxed(r"(?<!\\w)(\\d{3})([- ])\\d{2}\\2\\d{20,30}(?!x)")
    '[0-9]{3}[\\\\x20\\\\x2d][0-9]{2}[\\\\x20\\\\x2d][0-9]{8,}'
    """
    # The standard library has no public parser of its patterns; this one has kept its name and shape since 3.11.
    parser = importlib.import_module("re._parser")
    tree = parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
    return _sequence(tree, bool(tree.state.flags & re.IGNORECASE), bool(tree.state.flags & re.DOTALL), {})


def needs_digit(pattern: str) -> bool:
    """Whether every match of a pattern contains an ASCII digit (what assertions look at is not in it).

    >>> [needs_digit(p) for p in ("a[0-9]{2,}", "a[0-9]?", "(?:[0-9]|x)", "a(?:b[0-9]|[1-4])+")]
    [True, False, False, True]
    """
    parser = importlib.import_module("re._parser")
    return _needs_digit(parser.parse(pattern))


def _needs_digit(nodes: Any) -> bool:
    for op, argument in nodes:
        match str(op):
            case "LITERAL":
                found = chr(argument) in "0123456789"
            case "IN":
                members, other, _ = _members(argument)
                found = not other and members <= set(range(ord("0"), ord("9") + 1))
            case "BRANCH":
                found = all(map(_needs_digit, argument[1]))
            case "SUBPATTERN":
                found = _needs_digit(argument[-1])
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                found = argument[0] > 0 and _needs_digit(argument[2])
            case _:
                found = False
        if found:
            return True
    return False


def consumes(pattern: str, character: str, ignore_case: bool = False) -> bool:
    """Whether a match of ``pattern`` may contain this ASCII control character (what assertions look at is not in it).

    >>> consumes(r"(?<!\\x1a)\\w+@\\w+", "\\x1a"), consumes(r"\\S+", "\\x1a")
    (False, True)
    """
    parser = importlib.import_module("re._parser")
    return _consumes(parser.parse(pattern, re.IGNORECASE if ignore_case else 0), ord(character))


def sees_over(pattern: str, character: str, length: int, ignore_case: bool = False) -> bool:
    """Whether a match of ``pattern`` may depend on what stands on both sides of ``length`` of these characters: it contains
    one, or looks across them.

    >>> [sees_over(pattern, "\\x1a", 6) for pattern in (r"(?<!\\S)\\w+", r"\\w+(?!.*x)", r"(?<=.{6}a)b")]
    [False, True, True]
    """
    parser = importlib.import_module("re._parser")
    return _consumes(parser.parse(pattern, re.IGNORECASE if ignore_case else 0), ord(character), length)


def _consumes(nodes: Any, code: int, length: int | None = None) -> bool:
    """length: count what assertions take in, too, where that may be as many characters; a nested one always may."""
    for op, argument in nodes:
        match str(op):
            case "LITERAL":
                found = argument == code
            case "NOT_LITERAL":
                found = argument != code
            case "ANY":
                found = True
            case "IN":
                members, _, negated = _members(argument)
                found = (code in members) != negated
            case "BRANCH":
                found = any(_consumes(branch, code, length) for branch in argument[1])
            case "SUBPATTERN" | "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                found = _consumes(argument[-1], code, length)
            case "ATOMIC_GROUP":
                found = _consumes(argument, code, length)
            case "GROUPREF_EXISTS":
                found = any(_consumes(branch, code, length) for branch in argument[1:] if branch is not None)
            case "ASSERT" | "ASSERT_NOT" if length is not None:
                far = int(argument[1].getwidth()[1]) >= length or "ASSERT" in repr(argument[1])
                found = far and _consumes(argument[1], code, 0)
            case "GROUPREF" | "ASSERT" | "ASSERT_NOT" | "AT" | "FAILURE":
                found = False
            case _:
                found = True
        if found:
            return True
    return False


def _sequence(nodes: Any, fold: bool, dot_all: bool, groups: dict[int, str]) -> str:
    return "".join(_node(str(op), argument, fold, dot_all, groups) for op, argument in nodes)


def _node(op: str, argument: Any, fold: bool, dot_all: bool, groups: dict[int, str]) -> str:
    match op:
        case "LITERAL":
            return _characters(_ascii({argument}, fold), other=argument > 127, fold=fold)
        case "NOT_LITERAL":
            return _characters(set(range(128)) - _cases({argument}, fold), other=True, fold=False)
        case "ANY":
            return _characters(set(range(128)) - (set() if dot_all else {10}), other=True, fold=False)
        case "IN":
            return _class(argument, fold)
        case "BRANCH":
            return f"(?:{'|'.join(_sequence(branch, fold, dot_all, groups) for branch in argument[1])})"
        case "SUBPATTERN":
            number, added, removed, body = argument
            fold = (fold or bool(added & re.IGNORECASE)) and not removed & re.IGNORECASE
            inner = _sequence(body, fold, dot_all or bool(added & re.DOTALL), groups)
            if number is not None:
                groups[number] = inner
            return inner
        case "ATOMIC_GROUP":
            return _sequence(argument, fold, dot_all, groups)
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            low, high, body = argument
            return _repeat(_sequence(body, fold, dot_all, groups), int(low), int(high))
        case "GROUPREF":
            return groups.get(argument, "")
        case "GROUPREF_EXISTS":
            return f"(?:{'|'.join(_sequence(b, fold, dot_all, groups) for b in argument[1:] if b is not None)}|)"
        case "ASSERT" | "ASSERT_NOT" | "AT":
            return ""
        case "FAILURE":
            return _characters(set(), other=False, fold=False)
    raise ValueError(f"pattern: {op} has no relaxed form")


def _repeat(body: str, low: int, high: int) -> str:
    if not body:
        return ""
    if (low, high) == (1, 1):
        return body
    wide = _single(body.removesuffix(_MORE)) and body.endswith(_MORE)
    if wide and high > 1:  # a class that takes several bytes for a character: no upper bound, then
        body, high = body.removesuffix(_MORE), _COUNTED + 1
    body = body if _single(body) else f"(?:{body})"
    if (low, high) == (0, 1):
        return f"{body}?"
    at_least = min(low, _COUNTED)
    if high <= _COUNTED:
        return f"{body}{{{low}}}" if low == high else f"{body}{{{low},{high}}}"
    return f"{body}*" if at_least == 0 else f"{body}+" if at_least == 1 else f"{body}{{{at_least},}}"


def _single(body: str) -> bool:
    """Whether a repeat behind it would apply to all of it: one class."""
    return body.startswith("[") and body.index("]") == len(body) - 1


def _class(items: Any, fold: bool) -> str:
    members, other, negated = _members(items)
    if negated:
        return _characters(set(range(128)) - _cases(members, fold), other=True, fold=False)
    return _characters(_ascii(members, fold), other=other, fold=fold)


def _members(items: Any) -> tuple[set[int], bool, bool]:
    """What a class lists: (ASCII members, whether others may be in it, whether it is negated)."""
    negated = str(items[0][0]) == "NEGATE"
    members: set[int] = set()
    other = negated
    for op, argument in items[1:] if negated else items:
        match str(op):
            case "LITERAL":
                members.add(argument)
            case "RANGE":
                other |= argument[1] > 127
                members.update(range(argument[0], min(argument[1], 127) + 1))
                members.update(c for c in _PARTNERS if argument[0] <= c <= argument[1])
            case "CATEGORY":
                category = str(argument)
                members.update(c for c in range(128) if _CATEGORIES[category].match(chr(c)))
                other |= category != "CATEGORY_DIGIT"
    return members, other or any(c > 127 for c in members), negated


def _ascii(members: set[int], fold: bool) -> set[int]:
    """With the partners inside ASCII of what is outside."""
    return members | {ord(_PARTNERS[c]) for c in members if c in _PARTNERS} if fold else members


def _cases(members: set[int], fold: bool) -> set[int]:
    return members | {ord(s) for c in members if c < 128 for s in chr(c).swapcase()} if fold else members


def _characters(members: set[int], other: bool, fold: bool) -> str:
    """One character: a class of ASCII, or the bytes of a character above it, or either."""
    inside = sorted(c for c in _cases(members, fold) if c < 128)
    if other:
        return f"[{_ranges(inside)}{_HIGH}]{_MORE}"
    if not inside:
        return r"[^\x00-\xff]"
    ascii_only = f"[{_ranges(inside)}]"
    return f"(?:{ascii_only}|{_DOTS})" if fold and ord("i") in inside else ascii_only


def _ranges(codes: list[int]) -> str:
    runs: list[list[int]] = []
    for code in codes:
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return "".join(_code(a) if a == b else f"{_code(a)}-{_code(b)}" for a, b in runs)


def _code(code: int) -> str:
    return chr(code) if chr(code).isalnum() else f"\\x{code:02x}"
