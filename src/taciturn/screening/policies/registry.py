"""Policies by name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from taciturn.errors import UsageError, nearest
from taciturn.screening.policies import patterns
from taciturn.screening.policies.base import Detector, Everything, Policy
from taciturn.screening.policies.regex import Regex
from taciturn.screening.policies.words import Words


def _regexes(names: tuple[str, ...]) -> list[Detector]:
    return [patterns.built_in()[name] for name in names]


def _conservative() -> list[Detector]:
    # "handle" takes the whole of a word that has an '@' in it: user names, addresses, bare hosts.
    handle = Regex(
        "handle", r"(?<![^\s@])[^\s@]*+@\S*(?<![.,;:!?)\]\"'])", "handle", ("ask @dana", "a@b"), needs=("@",)
    )
    return [*_regexes(patterns.PII), handle, Words()]


PRESETS: dict[str, Callable[[], list[Detector]]] = {
    "pii": lambda: _regexes(patterns.PII),
    "customersim": lambda: _regexes(patterns.CUSTOMERSIM),
    "multiwoz": lambda: _regexes(patterns.MULTIWOZ),
    "conservative": _conservative,
    "all-private": lambda: [Everything()],
}


def names() -> list[str]:
    """Every name ``policy`` knows: single detectors, then presets."""
    return [*patterns.built_in(), *PRESETS]


def policy(*parts: str | Detector | Policy, name: str | None = None, file: str | Path | None = None) -> Policy:
    """The union of named detectors, presets, detector objects, other policies and the detectors of a TOML file.

    >>> policy("ssn", "email").name
    'ssn,email'

    Raises UsageError for an unknown name (naming the nearest), for nothing at all, and for two detectors of one name.
    """
    chosen: dict[str, Detector] = {}
    labels: list[str] = []

    def add(detector: Detector) -> None:
        if chosen.setdefault(detector.name, detector) != detector:
            raise UsageError(f"policy: two different detectors are called '{detector.name}'; rename one")

    for part in parts:
        labels.append(part if isinstance(part, str) else part.name)
        for detector in _resolve(part):
            add(detector)
    if file is not None:
        from taciturn.screening.policies.custom import detectors

        labels.append(Path(file).name)
        for detector in detectors(Path(file)):
            add(detector)
    if not chosen:
        raise UsageError("policy: no detector given; " + nearest("", names()))
    return Policy(tuple(chosen.values()), name or ",".join(labels))


def _resolve(part: str | Detector | Policy) -> list[Detector]:
    if isinstance(part, Policy):
        return list(part.detectors)
    if not isinstance(part, str):
        return [part]
    if part in PRESETS:
        return PRESETS[part]()
    if part in patterns.built_in():
        return [patterns.built_in()[part]]
    raise UsageError(f"policy: unknown name '{part}'; {nearest(part, names())}")
