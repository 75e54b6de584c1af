"""What a labelled sample allows to be said: numbers and sentences, no text of any record."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import attrgetter
from typing import Any

from taciturn.screening.bounds import needed, needed_at
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import Line, counted
from taciturn.screening.measuring.judge import Judged, Secret
from taciturn.screening.measuring.recall import Rate, Rates, groups, rates, stratified

FORMAT = 2


def findings(
    screened: ScreenedCorpus,
    lines: Sequence[Line],
    judged: Sequence[Judged],
    names: Mapping[str, tuple[str, str]],
    confidence: float = 0.95,
    want: float | None = None,
) -> dict[str, Any]:
    """Everything recall.json holds. names: of π and π_c, as (name, identity). want: a bound asked for."""
    overall = rates(lines, judged, confidence)
    status = Counter(line.label_status for line in lines)
    weighted = stratified(line.stratum for line in lines)
    return {
        "format": FORMAT,
        "corpus": screened.key,
        "policies": {role: {"name": name, "identity": identity} for role, (name, identity) in names.items()},
        "sample": {
            "lines": len(lines),
            "labelled": status["done"],
            "looked_at": len(judged),
            "todo": status["todo"],
            "skipped": status["skip"],
            "passed_over": len(judged) - status["done"] - status["skip"],
            "records": lines[0].records,
            "population": lines[0].population,
            "design": "stratified" if weighted else "simple",
            "seed": lines[0].seed,
        },
        "confidence": confidence,
        "unit": "record",
        # A certificate takes one number of records for both rates: the smaller one (unsure secrets count only if missed).
        "labels": overall.both.records,
        "missed_by_pi": min(overall.pi.records_missed, overall.both.records),
        "missed_by_both": overall.both.records_missed,
        "bounds": {"gamma": overall.pi.bound, "delta2": overall.both.bound},
        "method": _WEIGHTED if weighted else _SIMPLE,
        "overall": asdict(overall),
        "kinds": _each(lines, judged, confidence, attrgetter("label")),
        "casing": _each(lines, judged, confidence, attrgetter("casing")),
        "claims": list(claims(overall, confidence)),
        "conditions": list(conditions(lines, overall)),
        "wanted": None if want is None else labels_for(want, overall.both, len(judged), confidence, lines[0].records),
    }


_SIMPLE = (
    "hypergeometric (drawn without replacement), one-sided, on records that hold a secret; as many of them as may be"
)
_WEIGHTED = "a betting test of every share at weights by stratum, one-sided, on records that hold a secret"


def _each(
    lines: Sequence[Line], judged: Sequence[Judged], confidence: float, key: Callable[[Secret], str]
) -> dict[str, Any]:
    """Rates of every group of secrets, the most frequent first."""
    return {
        name: asdict(rates(lines, judged, confidence, lambda secret, name=name: key(secret) == name))  # type: ignore[misc]
        for name in groups(judged, key)
    }


def claims(overall: Rates, confidence: float) -> Iterator[str]:
    """What a certificate may say."""
    for symbol, what, rate in (
        ("γ", "π misses", overall.pi),
        ("δ₂", "neither π nor π_c covers", overall.both),
    ):
        yield (
            f"{symbol} ≤ {up(rate.bound)}: {what} a secret in at most {percent(rate.bound)} of the records that hold one "
            f"({100 * confidence:g} % confidence; {rate.records_missed} of {rate.records} labelled records)"
        )
    yield (
        f"recall of π ≥ {down(1 - overall.pi.bound)}, of π and π_c together ≥ {down(1 - overall.both.bound)}, "
        "by records; a Bayesian guarantee (Theorem 8.3) holds at these bounds, and δ cannot go below δ₂"
    )


def conditions(lines: Sequence[Line], overall: Rates) -> Iterator[str]:
    """What the bounds assume."""
    yield "the person found every secret in the records they labelled"
    status = Counter(line.label_status for line in lines)
    passed = len(counted(lines)) - status["done"] - status["skip"]
    if left := status["todo"] - passed:
        yield f"the {left} records left unlabelled below the last one looked at were not left because of what the others say"
    if passed:
        yield f"{passed} records that were passed over, above one that was labelled, count as ones that could not be judged"
    if unsure := status["skip"] + passed:
        yield f"{unsure} records that could not be judged count as a missed secret unless every word of them is covered"
    if overall.pi.secrets > overall.pi.records:
        yield "bounds by secret take the secrets of one record as independent; bounds by record do not, claims use those"
    if lines[0].population != "all":
        yield f"only {lines[0].population} records were sampled: nothing is known of the others, and no certificate takes it"


def labels_for(want: float, rate: Rate, labelled: int, confidence: float, most: int) -> dict[str, Any]:
    """How many records with a secret, and how many records in all at this rate of secrets, bring the bound to ``want``:
    without a miss, with the misses there are, and if misses go on as they did. Never more than ``most``, which is all."""
    per_record = labelled / rate.records if rate.records else None
    answers = {
        "without_a_miss": needed(want, 0, confidence),
        "with_the_misses_so_far": needed(want, rate.records_missed, confidence),
        "at_this_miss_rate": needed_at(want, rate.records_missed / rate.records, confidence) if rate.records else None,
    }
    return {
        "bound": want,
        "records_with_a_secret": answers,
        "records_to_label": {
            k: None if v is None or per_record is None else min(math.ceil(v * per_record), most)
            for k, v in answers.items()
        },
    }


def up(value: float) -> str:
    """Three significant digits, rounded up.

    >>> up(0.014867), up(1.0)
    ('0.0149', '1')
    """
    if value <= 0:
        return "0"
    scale = 10.0 ** (2 - math.floor(math.log10(value)))
    return f"{math.ceil(value * scale - 1e-9) / scale:.3g}"


def down(value: float) -> str:
    """Four decimals, rounded down."""
    return f"{math.floor(max(value, 0.0) * 1e4 + 1e-9) / 1e4:.4g}"


def percent(value: float) -> str:
    return f"{up(100 * value)} %"
