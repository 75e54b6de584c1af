"""Policies made from policies: remembered, joined, and made to miss on purpose."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from taciturn.errors import UsageError
from taciturn.screening.policies.base import CLEAN, KEPT, LONGEST, Policy, union
from taciturn.screening.policies.finder import Finder
from taciturn.screening.policies.regex import Regex
from taciturn.text.spans import Detection, Span, merge


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
        if len(memory) + len(found) > KEPT:
            memory.clear()
        memory.update({t: d for t, d in found.items() if d is not CLEAN and len(t) <= LONGEST})
        return answers

    def local(self, texts: Sequence[str]) -> list[bool]:
        return self.policy.local(texts)

    def words(self, texts: Sequence[str]) -> list[Detection]:
        return self.policy.words(texts)

    def patterns(self, texts: Sequence[str]) -> list[Detection]:
        return self.policy.patterns(texts)

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return self.policy.apart(texts)


@dataclass(frozen=True, slots=True)
class Sharing:
    """``policy``, where patterns that π has as well are not searched for again: their spans are taken from what ``pi``
    found, those of the other detectors from ``rest``. shared: names of these patterns."""

    policy: Policy
    pi: Finder
    rest: Finder
    shared: frozenset[str]

    @classmethod
    def of(cls, policy: Finder, pi: Cached) -> Finder:
        """``policy`` remembered where the spans of π do not say whose they are."""
        plain = pi.policy
        if not (isinstance(policy, Policy) and isinstance(plain, Policy)):
            return Cached(policy)
        rest = _beside(policy, plain)
        shared = frozenset(d.name for d in policy.detectors if d not in rest.detectors)
        sure = sum(d.name in shared for d in plain.detectors) == len(shared) and not policy.covers_all
        if not shared or not sure or not all(isinstance(d, Regex) for d in plain.detectors):
            return Cached(policy)
        return cls(policy, pi, Cached(rest), shared)

    @property
    def identity(self) -> str:
        return self.policy.identity

    def find(self, texts: Sequence[str]) -> list[Detection]:
        answers = list(self.rest.find(texts))
        for i, sure in enumerate(self.pi.find(texts)):
            if sure.status != "ok":
                answers[i] = self.policy.find([texts[i]])[0]
            elif mine := tuple(span for span in sure.spans if span.detector in self.shared):
                answers[i] = union([Detection(mine), answers[i]]) if answers[i] is not CLEAN else Detection(mine)
        return answers

    def words(self, texts: Sequence[str]) -> list[Detection]:
        return self.policy.words(texts)

    def patterns(self, texts: Sequence[str]) -> list[Detection]:
        return self.policy.patterns(texts)

    def local(self, texts: Sequence[str]) -> list[bool]:
        return self.policy.local(texts)

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return self.policy.apart(texts)


def _beside(policy: Policy, first: Policy) -> Policy:
    """What of a policy another one does not have."""
    known = [detector.definition() for detector in first.detectors]
    return Policy(tuple(d for d in policy.detectors if d.definition() not in known), policy.name)


@dataclass(frozen=True, slots=True)
class Joined:
    """Everything either policy marks: what a skeleton masks."""

    first: Finder
    second: Finder

    @classmethod
    def of(cls, first: Finder, second: Finder) -> Finder:
        """Of two plain policies with no detector run twice."""
        a, b = (each.policy if isinstance(each, Cached | Sharing) else each for each in (first, second))
        if not (isinstance(a, Policy) and isinstance(b, Policy)):
            return cls(first, second)
        rest = second.rest if isinstance(second, Sharing) else Cached(_beside(b, a))
        return cls(first, rest) if _beside(b, a).detectors else first

    @property
    def identity(self) -> str:
        return f"{self.first.identity}+{self.second.identity}"

    def find(self, texts: Sequence[str]) -> list[Detection]:
        return _each(self.first.find(texts), self.second.find(texts))

    def words(self, texts: Sequence[str]) -> list[Detection]:
        return _each(self.first.words(texts), self.second.words(texts))

    def patterns(self, texts: Sequence[str]) -> list[Detection]:
        return _each(self.first.patterns(texts), self.second.patterns(texts))

    def local(self, texts: Sequence[str]) -> list[bool]:
        return [a and b for a, b in zip(self.first.local(texts), self.second.local(texts), strict=True)]

    def apart(self, texts: Sequence[str]) -> list[bool]:
        return [a and b for a, b in zip(self.first.apart(texts), self.second.apart(texts), strict=True)]


def _each(first: Sequence[Detection], second: Sequence[Detection]) -> list[Detection]:
    return [a if b is CLEAN else b if a is CLEAN else union((a, b)) for a, b in zip(first, second, strict=True)]


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

    def patterns(self, texts: Sequence[str]) -> list[Detection]:
        return self.find(texts)

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
