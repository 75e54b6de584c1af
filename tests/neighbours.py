"""Random small corpora with a neighbour each, and made-up policies to screen them by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from taciturn.screening import Policy, ScreenedCorpus, screen
from taciturn.screening.policies import View, registry
from taciturn.screening.policies.patterns import detector
from taciturn.screening.policies.patterns import names as patterns
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus
from taciturn.text.spans import Detection, Span

WORDS = ("a", "b", "c", "x", "y")
SCOPES = ("suspicious", "private", "all", "none")


@dataclass(frozen=True)
class Marks:
    """Marks group 1 of every match: ``\\b(a|b)\\b`` is word by word, ``a (b)`` looks at the neighbours."""

    pattern: str
    name: str = "marks"

    def definition(self) -> Mapping[str, object]:
        return {"pattern": self.pattern}

    def find(self, views: Sequence[View]) -> list[Detection]:
        return [Detection(tuple(Span(*m.span(1)) for m in re.finditer(self.pattern, v.text))) for v in views]

    def local(self, view: View) -> bool:  # noqa: ARG002
        return False


def words_policy(words: Sequence[str]) -> Policy:
    return Policy((Marks(rf"\b({'|'.join(words) or '(?!)'})\b"),), "words")


def context_policy(patterns: Sequence[str]) -> Policy:
    return Policy(tuple(Marks(p, f"marks{i}") for i, p in enumerate(patterns)), "context")


def run(
    texts: Sequence[str], pi: Policy, wide: Policy, scope: str = "suspicious", order: str = "redact-first"
) -> ScreenedCorpus:
    return screen(Corpus.from_texts(texts), pi, wide, unit="document", dedup=scope, order=order)  # type: ignore[arg-type]


def distance(a: Sequence[str], b: Sequence[str]) -> int:
    """Elements to replace to turn one multiset into the other (they have one size)."""
    assert len(a) == len(b)
    return sum((Counter(a) - Counter(b)).values())


def skeleton(text: str, pi: Policy, wide: Policy) -> str | None:
    return run([text], pi, wide).table["skeleton"].to_pylist()[0]  # type: ignore[no-any-return]


records = st.lists(st.sampled_from((*WORDS, MASK)), min_size=1, max_size=4).map(" ".join)
corpora = st.lists(records, min_size=1, max_size=5)
local_policies = st.sets(st.sampled_from(WORDS)).map(sorted).map(words_policy)
context_policies = st.lists(
    st.one_of(
        st.sampled_from(WORDS).map(lambda w: rf"\b({w})\b"),
        st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda p: rf"\b{p[0]} ({p[1]})\b"),
        st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)).map(lambda p: rf"\b({p[0]} {p[1]})\b"),
        st.sampled_from(WORDS).map(lambda w: rf"^({w} [^ ]*)"),
        st.sampled_from(WORDS).map(lambda w: rf"\x1a ({w})"),
    ),
    max_size=3,
).map(context_policy)
policies = st.one_of(local_policies, context_policies)


@st.composite
def neighbours(draw: st.DrawFn) -> tuple[list[str], list[str], int, str]:
    """D, D', which record changes, and the secret: one to all of its words."""
    texts = draw(corpora)
    at = draw(st.integers(0, len(texts) - 1))
    tokens = texts[at].split(" ")
    start = draw(st.integers(0, len(tokens) - 1))
    end = draw(st.integers(start + 1, len(tokens)))
    masked = list(texts)
    masked[at] = " ".join([*tokens[:start], MASK, *tokens[end:]])
    return texts, masked, at, " ".join(tokens[start:end])


def examples(name: str) -> list[str]:
    """What a policy of the registry is written to find."""
    if name in patterns():
        return list(detector(name).must_find)
    if name in registry.patterns.PRESETS:
        return [detector(each).must_find[0] for each in registry.patterns.PRESETS[name][:6]]
    return ["call 555-010-7701 or Dana Vale", "password hunter2"]
