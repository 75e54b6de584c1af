"""Events as files have them: a closed set of kinds and fields, each number within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from taciturn.errors import GuaranteeError, UsageError, nearest
from taciturn.privacy import limits
from taciturn.privacy.accounting.events import (
    TWO_LEVEL,
    Event,
    KindsGaussian,
    NonPrivate,
    PoissonGaussian,
    SelectiveGaussian,
    ThresholdedCounts,
    TwoLevelGaussian,
)

_FIELDS = {
    "poisson-gaussian": {"event", "rate", "noise_multiplier"},
    "kinds-gaussian": {"event", "rates", "noise_multiplier"},
    "two-level-gaussian": {"event", *TWO_LEVEL},
    "selective-gaussian": {"event", "rate", "noise_multiplier", "state_noise", "runs"},
    "thresholded-counts": {
        "event",
        "noise_multiplier",
        "threshold",
        "record_weight",
        "keys",
        "shares",
        "one_sided",
        "copies",
    },
    "non-private": {"event", "reads"},
}  # fmt: skip


def _within_limits(kind: str, fields: Mapping[str, Any]) -> None:
    """What a file may say of an event (limits.py); a rate of zero is of a kind of unit that is never read."""
    for name, value in fields.items():
        where = f"event {kind!r}: {name}"
        if name in ("rates", "reads", "shares"):
            if not isinstance(value, list):
                raise UsageError(f"{where}: expected a list, found {type(value).__name__}")
            limits.few(where, value, 8)
            if name == "rates":
                for rate in value:
                    limits.number(where, rate, 0 if rate == 0 else limits.RATE[0], limits.RATE[1])
            elif name == "shares":
                for share in value:
                    limits.number(where, share, *limits.RATE)
        elif name == "one_sided":
            if not isinstance(value, bool):
                raise UsageError(f"{where}: expected true or false, found {limits.short(value)}")
        elif "rate" in name:
            limits.number(where, value, *limits.RATE)
        elif "noise" in name or name in ("threshold", "record_weight"):
            limits.number(where, value, *limits.NOISE)
        else:
            limits.whole(where, value, limits.MANY if name == "keys" else limits.GROUP)


def from_json(value: Mapping[str, Any]) -> Event:
    """The event ``to_json`` described.

    Raises:
        GuaranteeError: an unknown event or field, or values no event has. A ledger is evidence, so this is exit code 4.

    >>> from_json({"event": "poisson-gaussian", "rate": 0.1, "noise_multiplier": 2.0})
    PoissonGaussian(rate=0.1, noise_multiplier=2.0)
    """
    if not isinstance(value, Mapping):
        raise GuaranteeError(f"event: expected a JSON object, found {type(value).__name__}")
    kind = value.get("event")
    if not isinstance(kind, str) or kind not in _FIELDS:
        hint = nearest(str(kind)[:64], _FIELDS)
        raise GuaranteeError(f"event {limits.short(kind)} is unknown, so no guarantee covers it; {hint}")
    if set(value) != _FIELDS[kind]:
        raise GuaranteeError(
            f"event {kind!r}: expected the fields {sorted(_FIELDS[kind])}, found {limits.short(sorted(value))}"
        )
    fields = {name: item for name, item in value.items() if name != "event"}
    try:
        _within_limits(kind, fields)
        match kind:
            case "non-private":
                return NonPrivate(tuple(fields["reads"]))
            case "kinds-gaussian":
                return KindsGaussian(tuple(fields["rates"]), fields["noise_multiplier"])
            case "two-level-gaussian":
                return TwoLevelGaussian(**fields)
            case "selective-gaussian":
                return SelectiveGaussian(**fields)
            case "thresholded-counts":
                return ThresholdedCounts(**{**fields, "shares": tuple(fields["shares"])})
        return PoissonGaussian(**fields)
    except (UsageError, TypeError) as error:
        raise GuaranteeError(str(error)) from error
