"""Policies made from policies: remembered, joined, and made to miss on purpose."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from taciturn.errors import UsageError
from taciturn.screening.policies.base import CLEAN, Finder, Policy, union
from taciturn.text.spans import Detection, Span, merge

_KEPT, _LONGEST = 1 << 15, 4096


@dataclass(frozen=True, slots=True)
class Cached:
    """The same detections, with those of recent short texts remembered: corpora repeat themselves, and the checks of
    redact.py look at each text several times."""

    policy: Finder
    _memory: dict[str, Detection] = field(default_factory=dict, repr=False, compare=False)

    @property
    def identity(self) -> str:
        return self.policy.identity

    def find(self, texts: Sequence[str]) -> list[Detection]:
        memory = self._memory
        new = [t for t in dict.fromkeys(texts) if t not in memory]
        if len(new) == len(texts):
            answers = self.policy.find(new)
            found = dict(zip(new, answers, strict=True))
        else:
            found = dict(zip(new, self.policy.find(new), strict=True)) if new else {}
            answers = [found[t] if t in found else memory[t] for t in texts]
        if len(memory) + len(found) > _KEPT:
            memory.clear()
        memory.update({t: d for t, d in found.items() if d is not CLEAN and len(t) <= _LONGEST})
        return answers

    def local(self, texts: Sequence[str]) -> list[bool]:
        return self.policy.local(texts)

    def words(self, texts: Sequence[str]) -> list[Detection]:
        return self.policy.words(texts)

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return self.policy.apart(texts)


@dataclass(frozen=True, slots=True)
class Joined:
    """Everything either policy marks: what a skeleton masks."""

    first: Finder
    second: Finder

    @classmethod
    def of(cls, first: Finder, second: Finder) -> Finder:
        """Of two plain policies with no detector run twice."""
        a, b = (each.policy if isinstance(each, Cached) else each for each in (first, second))
        if not (isinstance(a, Policy) and isinstance(b, Policy)):
            return cls(first, second)
        known = [detector.definition() for detector in a.detectors]
        rest = tuple(d for d in b.detectors if d.definition() not in known)
        return cls(first, Cached(Policy(rest, b.name))) if rest else first

    @property
    def identity(self) -> str:
        return f"{self.first.identity}+{self.second.identity}"

    def find(self, texts: Sequence[str]) -> list[Detection]:
        return [union(pair) for pair in zip(self.first.find(texts), self.second.find(texts), strict=True)]

    def words(self, texts: Sequence[str]) -> list[Detection]:
        return [union(pair) for pair in zip(self.first.words(texts), self.second.words(texts), strict=True)]

    def local(self, texts: Sequence[str]) -> list[bool]:
        return [a and b for a, b in zip(self.first.local(texts), self.second.local(texts), strict=True)]

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return [a and b for a, b in zip(self.first.apart(texts), self.second.apart(texts), strict=True)]


@dataclass(frozen=True, slots=True)
class Missing:
    """``policy`` made to miss a share γ = ``rate`` of what it finds, for experiments.

    The coin of a span is a hash of (seed, its text without regard to case and spacing): record-local, the same on every
    machine, and all copies of one secret share one fate. Overlapping and touching spans are one.
    """

    policy: Finder
    rate: float
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0.0 <= self.rate <= 1.0:
            raise UsageError(f"miss_rate must lie in [0, 1], found {self.rate:g}")

    @property
    def identity(self) -> str:
        return self.policy.identity

    def find(self, texts: Sequence[str]) -> list[Detection]:
        return [self._thin(text, found) for text, found in zip(texts, self.policy.find(texts), strict=True)]

    def words(self, texts: Sequence[str]) -> list[Detection]:
        return [self._thin(text, found) for text, found in zip(texts, self.policy.words(texts), strict=True)]

    def local(self, texts: Sequence[str]) -> list[bool]:
        # The coin falls on the text of a whole span, which masking a part of it changes.
        return [local and not d.spans for local, d in zip(self.policy.local(texts), self.find(texts), strict=True)]

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return self.local(texts)

    def _thin(self, text: str, detection: Detection) -> Detection:
        if not detection.spans:
            return detection
        kept = tuple(Span(a, b, "", 1.0, "union") for a, b in merge(detection.spans) if not self._misses(text[a:b]))
        return Detection(kept, detection.status) if kept or detection.status != "ok" else CLEAN

    def _misses(self, span: str) -> bool:
        folded = " ".join(span.casefold().split()).encode("utf-8", "surrogatepass")
        coin = hashlib.blake2b(folded, digest_size=8, key=str(self.seed).encode()[:64], person=b"miss-rate").digest()
        return int.from_bytes(coin, "big") < self.rate * 2.0**64
