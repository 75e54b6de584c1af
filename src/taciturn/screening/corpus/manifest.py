"""What a screened corpus says about itself: no text, only names, digests, options and counts."""

from __future__ import annotations

import hashlib
from pathlib import Path

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError
from taciturn.screening.bridges import Bridge
from taciturn.screening.corpus.gold import Gold
from taciturn.screening.policies.public import said_kinds
from taciturn.screening.policies.public_kinds import Kind

FORMAT = 3
MANIFEST = "manifest.json"
RUNS = "runs.jsonl"
"""The runs made on a corpus, which training writes into its folder (certificates/history.py, not to be imported here)."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Counts(_Frozen):
    """Records, spans and what became of them. read == public + private + quarantined, always.

    blank: lines and records of white space, skipped and not in ``read``. left_out: parts that are no text (attachments,
    pictures of cards), skipped too. duplicates: removed copies, still in the part they were in. suspicious: private records
    in whose redacted text π_c still marks something. skeletons: private records that have one; skeletons_refused: those
    whose skeleton did not survive the per-record check; values_refused: those with a skeleton of which no value may stand,
    as masking one may change whether π marks another. spans: maximal spans π found; spans_undetected_after_check: those
    of them for which Redact(s(x)) differs from Redact(s(<MASK>)). gold_missed_by_pi: labelled spans for which that equality
    fails (or that count as missed by both). gold_missed_by_both: labelled spans in a public record, or, with skeletons, in
    a record whose skeleton differs from its neighbour's: no finite ε covers them. detector_failures: records on which a
    detector did not finish, and how often for each reason. cleaned: documents that cleaning removed, not in ``read``.
    corrected: records with marks that a person added (policies/corrections.py).
    """

    documents: int = 0
    read: int = 0
    public: int = 0
    private: int = 0
    quarantined: int = 0
    blank: int = 0
    left_out: int = 0
    duplicates: int = 0
    suspicious: int = 0
    skeletons: int = 0
    skeletons_refused: int = 0
    values_refused: int = 0
    spans: int = 0
    spans_undetected_after_check: int = 0
    gold_spans: int = 0
    gold_missed_by_pi: int = 0
    gold_missed_by_both: int = 0
    detector_failures: int = 0
    detector_truncated: int = 0
    detector_timeout: int = 0
    detector_error: int = 0
    unsettled: int = 0
    cleaned: int = 0
    corrected: int = 0

    def check(self) -> Counts:
        """Itself; AssertionError when a record was lost."""
        if self.read != self.public + self.private + self.quarantined:
            raise AssertionError(
                f"records lost: {self.read} read, {self.public} + {self.private} + {self.quarantined} kept"
            )
        return self


class PolicyName(_Frozen):
    """identity: hash of the definitions. covers_all: marks every character of every text."""

    name: str
    identity: str
    covers_all: bool = False


class Policies(_Frozen):
    pi: PolicyName
    conservative: PolicyName


class PublicValues(_Frozen):
    """What π_c leaves unmarked. values: how many; digest: of their set (``Public.digest``), "" without any; kinds: names."""

    values: int = Field(ge=0)
    digest: str = Field(pattern="^([0-9a-f]{32})?$")
    kinds: tuple[Kind, ...]

    @property
    def said(self) -> str:
        """
        >>> PublicValues(values=2, digest="0123456789abcdef" * 2, kinds=("time",)).said
        'one of the 2 public values (digest 01234567) or a time of day'
        """
        values = f"one of the {self.values} public values (digest {self.digest[:8]})" if self.values else ""
        return " or ".join(filter(None, (values, said_kinds(self.kinds))))


class Input(_Frozen):
    name: str
    digest: str


class CleanedSource(_Frozen):
    """Documents of an input file, by what cleaning did: read == kept + removed."""

    name: str
    read: int
    kept: int
    removed: int


class Shard(_Frozen):
    """path: below the screened folder. digest: BLAKE2b-256 of the file."""

    path: str
    rows: int
    digest: str


class Manifest(_Frozen):
    """manifest.json. It holds no clock, so that the same corpus and options give the same bytes.

    key: content key, a hash of the input digests, the policies, the options (of reading, too) and the screening code. It
    depends on the private text: it stays in this folder, and must be blinded before it is published. guarantee_ok: whether
    the preprocessing is the one the proofs need; reasons: why not. conditions: what the proofs assume of the policies.
    bridge: what skeletons mask between and beside marks. public: what π_c leaves unmarked because it is public anyway.
    labels: whether records carry labels, which nothing redacts. gold: what became of labelled secrets, by label. clean: how
    documents were left out before screening, and cleaned, from which sources.
    """

    format: int = FORMAT
    taciturn: str
    key: str
    inputs: tuple[Input, ...]
    unit: str
    dedup: str
    order: str
    miss_rate: float
    miss_seed: int
    policies: Policies
    public: PublicValues | None = None
    skeletons: bool
    bridge: Bridge = "signs"
    originals: bool
    labels: bool = False
    clean: str = "none"
    cleaned: tuple[CleanedSource, ...] = ()
    counts: Counts
    gold: tuple[Gold, ...] = ()
    shards: tuple[Shard, ...] = ()
    warnings: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    guarantee_ok: bool = True
    reasons: tuple[str, ...] = Field(default=())

    def to_json(self) -> bytes:
        return orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Raises DataError if the file is absent, damaged or of another format."""
        try:
            return cls.parse(path.read_bytes(), path.parent.name)
        except FileNotFoundError:
            raise DataError(
                f"no {path.name} in '{path.parent.name}': not a screened corpus, or one that was never finished"
            ) from None
        except OSError as error:
            raise DataError(
                f"{path.name} in '{path.parent.name}' cannot be read ({type(error).__name__}); screen again"
            ) from None

    @classmethod
    def parse(cls, content: bytes, where: str) -> Manifest:
        """From the bytes of manifest.json in ``where``. Raises DataError if they are damaged or of another format."""
        try:
            data = orjson.loads(content)
        except orjson.JSONDecodeError as error:
            raise DataError(f"{MANIFEST} in '{where}' cannot be read ({type(error).__name__}); screen again") from None
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise DataError(f"'{where}' is not of screened-corpus format {FORMAT}; screen again with this version")
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            first = error.errors(include_input=False)[0]
            raise DataError(
                f"{MANIFEST}: field '{'.'.join(map(str, first['loc']))}': {first['msg'].lower()}; screen again"
            ) from None


def file_digest(path: Path) -> str:
    """BLAKE2b-256 of a file, hexadecimal."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, lambda: hashlib.blake2b(digest_size=32)).hexdigest()
