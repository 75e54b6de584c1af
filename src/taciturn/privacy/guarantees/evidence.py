"""What was measured about a run besides its steps: plain numbers and facts that the theorems take as input."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, get_args

from taciturn.errors import DataError, UsageError, nearest
from taciturn.privacy import limits
from taciturn.privacy.guarantees import selection_law

Unit = Literal["sentence", "turn", "document"]
Order = Literal["redact-first", "as-published"]
Dedup = Literal["suspicious", "private", "all", "none", "near"]
LabelUnit = Literal["secret", "record"]
Allow = Literal["large-delta", "full-batch", "cannot-learn"]
PublicKind = Literal["time", "day", "date", "small-number", "money"]
ALLOWED: frozenset[str] = frozenset(get_args(Allow))
"""What a plan is refused for unless it is allowed by name (mechanisms/refusals.py says of each why)."""
PUBLIC_KINDS: frozenset[str] = frozenset(get_args(PublicKind))
_DIGEST = re.compile("(?:[0-9a-f]{32})?")


@dataclass(frozen=True, slots=True)
class Evidence:
    """Everything :func:`.claims.guarantees` needs beyond the ledger. Written as ``evidence.json``.

    delta: δ at which every ε is stated.
    redacted: the text that training read had every span π found replaced by the mask.
    all_private: π_c marks everything, so nothing was trained on without noise (but skeletons, if used).
    skeletons: the noiseless steps also read the skeletons of private records.
    unit: what a record is; a sentence adds a condition, since where one ends depends on the text.
    order, dedup: how the corpus was prepared; dedup "near" is any that looks at more than exact copies.
    labelled, missed_by_pi, missed_by_both: gold secrets, those π misses (including spans whose detection does not
        survive its own masking), and those neither policy marks. ``None``: nobody labelled any.
    label_unit: what the three count; "record": records that hold a secret, missed if one of their secrets is.
    population: the most records with a secret that the corpus can have, of which the labelled ones are a sample without
        replacement: all records less those looked at that hold none. None where nobody knows.
    miss_bounds: upper bounds of γ and δ₂ where the counts alone do not give them (a stratified sample).
    confidence: of each one-sided bound drawn from the labels.
    groups: (name, k): k records still hold secrets of the named group after redaction. Names are printed; never
        put a secret into one.
    records_per_user: the most protected records one user has.
    spans_not_stable: spans whose detection did not survive masking (they count as missed).
    preprocessing: why preparation was not record-local or public, one reason each (empty: it was).
    private_validation: decisions (early stopping, model choice, tuning) could look at validation text that is not known to
        be public (``valid_is`` of run.toml; a split of the corpus itself is private).
    protected: how many units steps with noise draw from (records, users, or units of both); None where none has noise.
    open_groups: (name, k): k records that steps without noise read, public ones or skeletons, hold a secret of that group
        or show a part of one. A group that is not in it was not looked for.
    allowed: what the plan was let through with although it is an error by default (``allow`` of run.toml), by name.
    public_values, public_digest: how many values π_c leaves unmarked because they are public anyway, and a digest of their
        set (32 hex digits; "" without any). public_kinds: whole kinds of values that it leaves unmarked, by name.
    seeded_noise: noise or sampling coins came from a stored seed.
    dial: share of spans π was made to miss on purpose, for an experiment.
    screened: (secrets looked for again in the records a person screened for the first phase of jft, those of them missed).
    units: numbers about what was drawn and clipped as one, where that is not a record: how many, where the corpus stands on
        the curve of UeDP, what caps dropped. ``selects``: a cap chose among units.
    other_runs, other_steps: how many other runs the corpus remembers, None if nobody knows, and their steps added up
        (privacy/certificates/history.py). selection: the law of the number of runs that this one was chosen from, drawn
        beforehand; how many they were is then in no file that is published.
    counts: the screened corpus's counts, repeated in the certificate.
    """

    delta: float
    redacted: bool = True
    all_private: bool = False
    skeletons: bool = False
    unit: Unit = "document"
    order: Order = "redact-first"
    dedup: Dedup = "suspicious"
    labelled: int = 0
    missed_by_pi: int | None = None
    missed_by_both: int | None = None
    label_unit: LabelUnit = "secret"
    population: int | None = None
    miss_bounds: tuple[float, float] | None = None
    confidence: float = 0.95
    groups: tuple[tuple[str, int], ...] = ()
    records_per_user: int | None = None
    spans_not_stable: int = 0
    preprocessing: tuple[str, ...] = ()
    private_validation: bool = False
    protected: int | None = None
    open_groups: tuple[tuple[str, int], ...] = ()
    allowed: tuple[str, ...] = ()
    public_values: int = 0
    public_digest: str = ""
    public_kinds: tuple[PublicKind, ...] = ()
    seeded_noise: bool = False
    dial: float | None = None
    screened: tuple[int, int] | None = None
    units: Mapping[str, float] = field(default_factory=dict)
    selects: bool = False
    other_runs: int | None = None
    other_steps: tuple[Mapping[str, Any], ...] = ()
    selection: Mapping[str, str | float] | None = None
    counts: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        limits.delta("evidence: delta", self.delta)
        limits.number("evidence: confidence", self.confidence, 1e-9, 1 - 1e-12)
        self._within_limits()
        if self.unit not in ("sentence", "turn", "document"):
            raise UsageError(f"evidence: unit {self.unit!r} is unknown")
        if self.order not in ("redact-first", "as-published"):
            raise UsageError(f"evidence: order {self.order!r} is unknown")
        if self.dedup not in ("suspicious", "private", "all", "none", "near"):
            raise UsageError(f"evidence: dedup {self.dedup!r} is unknown")
        if (self.missed_by_pi is None) != (self.missed_by_both is None):
            raise UsageError("evidence: give both missed_by_pi and missed_by_both, or neither")
        missed = (self.missed_by_both or 0, self.missed_by_pi or 0, self.labelled)
        if not 0 <= missed[0] <= missed[1] <= missed[2]:
            raise UsageError(f"evidence: expected 0 ≤ missed_by_both ≤ missed_by_pi ≤ labelled, found {missed}")
        if self.label_unit not in ("secret", "record"):
            raise UsageError(f"evidence: label_unit {self.label_unit!r} is unknown")
        if self.population is not None and not (self.label_unit == "record" and self.population >= self.labelled > 0):
            raise UsageError(
                f"evidence: population counts labelled records and more, found {self.labelled} of {self.population}"
            )
        if self.miss_bounds is not None:
            gamma, delta2 = self.miss_bounds
            if not (self.labels and 0 <= delta2 <= 1 and 0 <= gamma <= 1):
                raise UsageError(f"evidence: miss_bounds need labels and must lie in [0, 1], found {self.miss_bounds}")
        if any(name not in ALLOWED for name in self.allowed):
            raise UsageError(f"evidence: allowed takes {', '.join(sorted(ALLOWED))}, found {list(self.allowed)}")
        if bool(self.public_values) != bool(self.public_digest) or not _DIGEST.fullmatch(self.public_digest):
            raise UsageError(
                "evidence: public_values and public_digest go together; expected a digest of 32 hex digits"
            )
        if any(kind not in PUBLIC_KINDS for kind in self.public_kinds):
            raise UsageError(
                f"evidence: public_kinds takes {', '.join(sorted(PUBLIC_KINDS))}, found {list(self.public_kinds)}"
            )
        if (self.other_runs or 0) < 0 or (self.other_steps and not self.other_runs):
            raise UsageError("evidence: other_runs cannot be negative, and other_steps need other runs")
        if self.selection is not None and self.other_runs is not None:
            raise UsageError(
                "evidence: the number of runs that one was chosen from is never told; expected other_runs none"
            )
        if self.selection is not None:
            selection_law.from_json(self.selection)

    def _within_limits(self) -> None:
        """What a file may say (limits.py), before anything is computed from it: of each field, then of some more closely."""
        for each in fields(self):
            limits.check_plain(f"evidence: {each.name}", getattr(self, each.name))
        limits.whole("evidence: labelled", self.labelled, limits.COUNT)
        limits.whole("evidence: population", self.population or 0, limits.COUNT)
        limits.whole("evidence: public_values", self.public_values, limits.COUNT)
        limits.few("evidence: public_kinds", self.public_kinds, len(PUBLIC_KINDS))
        limits.whole("evidence: spans_not_stable", self.spans_not_stable, limits.COUNT)
        limits.whole("evidence: records_per_user", self.records_per_user or 0, limits.GROUP)
        limits.whole("evidence: other_runs", self.other_runs or 0, limits.COUNT)
        limits.number("evidence: dial", self.dial or 0.0, 0, 1)
        limits.whole("evidence: protected", self.protected or 0, limits.COUNT)
        for groups in (self.groups, self.open_groups):
            limits.few("evidence: groups", groups, limits.GROUPS)
            for _, k in groups:
                limits.whole("evidence: records of a group", k, limits.GROUP)
        for name, value in self.units.items():
            limits.number(f"evidence: units.{name}", value, 0, limits.COUNT)
        for name, count in self.counts.items():
            limits.whole(f"evidence: counts.{name}", count, limits.COUNT)
        for number in self.screened or ():
            limits.whole("evidence: screened", number, limits.COUNT)

    @property
    def labels(self) -> bool:
        """Whether there is anything to estimate miss rates from."""
        return self.labelled > 0 and self.missed_by_pi is not None

    def to_json(self) -> dict[str, Any]:
        value = asdict(self)
        value["miss_bounds"] = None if self.miss_bounds is None else list(self.miss_bounds)
        value["groups"] = [list(each) for each in self.groups]
        value["open_groups"] = [list(each) for each in self.open_groups]
        value["allowed"] = list(self.allowed)
        value["public_kinds"] = list(self.public_kinds)
        value["preprocessing"] = list(self.preprocessing)
        value["other_steps"] = [dict(each) for each in self.other_steps]
        value["selection"] = None if self.selection is None else dict(self.selection)
        value["counts"] = dict(self.counts)
        return value

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Evidence:
        """Inverse of :meth:`to_json`. DataError on unknown fields, wrong types or impossible numbers."""
        from pydantic import TypeAdapter, ValidationError

        if not isinstance(value, Mapping):
            raise DataError(f"evidence: expected a JSON object, found {type(value).__name__}")
        known = {each.name for each in fields(Evidence)}
        for name in value:
            if name not in known:
                raise DataError(f"evidence: {limits.short(name)} is not a field; {nearest(str(name)[:64], known)}")
        try:
            return TypeAdapter(Evidence).validate_json(_json(value), strict=True)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise DataError(f"evidence: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        except UsageError as error:
            raise DataError(str(error)) from error


def _json(value: Mapping[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(dict(value))
