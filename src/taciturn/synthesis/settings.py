"""What a synthetic corpus depends on beside the model, all of it the user's: seed, decoding, openings, filter."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import orjson

from taciturn.auditing.extraction.decoding import Decoding
from taciturn.errors import DataError, UsageError, nearest
from taciturn.screening.policies.registry import split
from taciturn.text.document import MASK

if TYPE_CHECKING:
    from taciturn.screening.policies import Policy

Format = Literal["jsonl", "parquet"]
LABEL = "{label}"
OF_FILES = ("values", "wordlist", "corrections")
"""Families of policies that are made from a file, which may be private text."""
OF_MODELS = ("spacy", "presidio", "tokens", "tokens-wide", "gliner")
"""Families that find by a model, which somebody fitted on something."""


@dataclass(frozen=True, slots=True)
class Settings:
    """seed: of all draws. max_tokens: drawn for a text at most. top_p: nucleus sampling (Holtzman et al. 2020). batch: texts
    drawn at once. format: of the files. keep_copies: whether a text that was written before is kept.

    At most one of these says what a text begins with: labels, put into ``template`` in turn, equally many each; prompts,
    beginnings of texts; skeletons, whole texts in which each `<MASK>` is filled by a few tokens, drawn without top_p and the
    like. policy: names of detectors; a text in which they mark anything is dropped.

    Raises UsageError for values outside these, and for a policy made from a file: it could be private text.
    """

    seed: int = 0
    max_tokens: int = 128
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 0.95
    batch: int = 32
    format: Format = "jsonl"
    keep_copies: bool = False
    labels: tuple[str, ...] = ()
    template: str = f"{LABEL}: "
    prompts: tuple[str, ...] = field(default=(), repr=False)
    skeletons: tuple[str, ...] = field(default=(), repr=False)
    policy: str = ""

    def __post_init__(self) -> None:
        if sum(map(bool, (self.labels, self.prompts, self.skeletons))) > 1:
            raise UsageError("a text begins with a label, a prompt or a skeleton: name one of the three")
        if self.template.count(LABEL) != 1:
            raise UsageError(f"template: expected {LABEL} once, as in '{LABEL}: ', found {self.template!r}")
        if len(set(self.labels)) < len(self.labels):
            raise UsageError("labels: each once; they come equally often")
        if self.format not in ("jsonl", "parquet"):
            raise UsageError(f"format: expected jsonl or parquet, found {self.format!r}")
        if self.seed < 0 or self.max_tokens < 1 or self.batch < 1:
            raise UsageError(
                "expected seed of at least 0, max_tokens and batch of at least 1, found "
                f"{self.seed}, {self.max_tokens}, {self.batch}"
            )
        if without := sum(MASK not in text for text in self.skeletons):
            raise UsageError(f"skeletons: {without} of {len(self.skeletons)} hold no {MASK} to fill")
        self.decoding()
        self.filter()

    @staticmethod
    def of(options: Mapping[str, Any]) -> Settings:
        """From keyword arguments, with lists for tuples; raises UsageError that names the nearest when one is unknown."""
        known = [f.name for f in fields(Settings)]
        for name in options:
            if name not in known:
                raise UsageError(f"synthesize: unknown option {name!r}: {nearest(name, known)}")
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in options.items()
        }
        return Settings(**given)

    def decoding(self) -> Decoding:
        return Decoding(self.temperature, self.top_k, self.top_p)

    def filter(self) -> Policy | None:
        """The policy, None for none."""
        from taciturn.screening.policies import policy

        names = self._policies()
        for name in names:
            if name.partition(":")[0] in OF_FILES:
                raise UsageError(
                    f"policy {name.partition(':')[0]!r} is made from a file, and what it drops would tell what is in it; "
                    "filter by detectors that know no list of yours, such as pii or email"
                )
        return policy(*names) if names else None

    @property
    def conditions(self) -> tuple[str, ...]:
        """What must be true of what the user gives, and nobody but the user can know."""
        given = "labels" if self.labels else "prompts" if self.prompts else "skeletons" if self.skeletons else ""
        told = [f"the {given} that the texts begin with were not made from the private text"] if given else []
        of_models = {name.partition(":")[0].partition("@")[0] for name in self._policies()} & set(OF_MODELS)
        told += [f"the model of the filter {name!r} was not fitted on the private text" for name in sorted(of_models)]
        return tuple(told)

    def _policies(self) -> list[str]:
        return split(self.policy.split(" + "))

    def openings(self) -> tuple[str, ...]:
        """What texts begin with, in turn."""
        if self.labels:
            return tuple(self.template.replace(LABEL, label) for label in self.labels)
        return self.prompts or self.skeletons or ("",)

    def to_json(self) -> dict[str, Any]:
        """All that decides what is written; of prompts and skeletons, which are not repeated, a digest."""
        settings = asdict(self)
        chosen = self.filter()
        for name in ("prompts", "skeletons"):
            texts = settings.pop(name)
            settings[name] = {"number": len(texts), "digest": digest(list(texts))} if texts else None
        return settings | {"labels": list(self.labels), "policy_identity": chosen.identity if chosen else ""}


def digest(value: Any) -> str:
    """BLAKE2b-256 of JSON."""
    return hashlib.blake2b(orjson.dumps(value, option=orjson.OPT_SORT_KEYS), digest_size=32).hexdigest()


def lines(path: Path, what: str) -> tuple[str, ...]:
    """The lines of a UTF-8 file, blank ones left out. Raises DataError when there are none."""
    try:
        found = tuple(line for line in path.read_text("utf-8").splitlines() if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{what}: {path} cannot be read ({type(error).__name__}): expected UTF-8, one a line") from None
    if not found:
        raise DataError(f"{what}: {path} has no line with text")
    return found


def refuse_own(files: Sequence[Path], digests: frozenset[str]) -> None:
    """Raise UsageError where one of ``files`` is a file that the corpus was screened from. digests: of those."""
    from taciturn.text.readers import read

    for path in files:
        for name, found in read(path, format="lines").digests().items():
            if found in digests:
                raise UsageError(
                    f"{name}: the corpus was screened from that very file, so its lines are private text and no certificate "
                    "covers a corpus that repeats them; give text that is public"
                )
