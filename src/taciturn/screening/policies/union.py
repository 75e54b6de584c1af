"""One policy from whatever a caller has: names, presets, families, detector objects, other policies, a TOML file."""

from __future__ import annotations

from pathlib import Path

from taciturn.errors import UsageError, nearest
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.custom import detectors
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.registry import names, resolve, split


def policy(*parts: str | Detector | Policy, name: str | None = None, file: str | Path | None = None) -> Policy:
    """The union of named detectors, presets, families, detector objects, other policies and the detectors of a TOML file. A
    text may name several, as on a command line: "pii,us".

    >>> policy("ssn", "email").name
    'ssn,email'

    Raises UsageError for an unknown name (naming the nearest), for nothing at all, and for two detectors of one name.
    """
    chosen: dict[str, Detector] = {}
    labels: list[str] = []

    def add(detector: Detector) -> None:
        if chosen.setdefault(detector.name, detector) != detector:
            raise UsageError(f"policy: two different detectors are called '{detector.name}'; rename one")

    apart = [each for part in parts for each in (split(part) if isinstance(part, str) else [part])]
    for part in apart:
        labels.append(part if isinstance(part, str) else part.name)
        for detector in _resolve(part):
            add(detector)
    if file is not None:
        labels.append(Path(file).name)
        for detector in detectors(Path(file)):
            add(detector)
    if not chosen:
        raise UsageError("policy: no detector given; " + nearest("", names()))
    return Policy(tuple(chosen.values()), name or ",".join(labels))


def _resolve(part: str | Detector | Policy) -> list[Detector]:
    if isinstance(part, Policy):
        return list(part.detectors)
    return resolve(part) if isinstance(part, str) else [part]
