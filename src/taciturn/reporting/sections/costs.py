"""What a guarantee costs to change its terms: ε against δ, against k at once, against the miss rate γ with its band;
and what it leaves to attacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from taciturn.auditing.lower_bounds.two_sided import clopper_pearson
from taciturn.errors import DataError
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.statements import miss_rates
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections import curves

_FACTS = frozenset(each.name for each in fields(Evidence))
_OF = {"record": "", "residual": "", "user": " of a user", "user-entity": " of units of a user and an entity"}
_AT_ONCE = {"record": "records", "residual": "records", "user": "users", "user-entity": "units of a user and an entity"}


def budget(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """Curves of ε. Relations and units do not mix: each has its own list."""
    by_delta: dict[str, list[dict[str, Any]]] = {}
    by_size: dict[str, list[dict[str, Any]]] = {}
    attacked: dict[str, list[dict[str, Any]]] = {}
    bayes, infinite = [], []
    for slot, (name, run) in enumerate(labelled):
        cost, delta = curves.Spending.of(run.plan, run.events), target_delta(run)
        points = curves.epsilon_delta(cost)
        if not points:
            infinite.append(name)
        if not points or not cost.noised:
            continue
        at, unit = {"run": name, "slot": slot}, _unit(run)
        about = f"{cost.relation}{_OF.get(unit, '')}{' of a detected secret' if cost.detected_only else ''}"
        group = f", {cost.group} at once" if cost.group > 1 else ""
        by_delta.setdefault(about + group, []).append(at | {"claimed_delta": delta} | _xy("delta", points))
        if delta is None:
            continue
        if found := curves.attacks(cost, delta):
            attacked.setdefault(about + group, []).append(at | _attacks(found, delta))
        if cost.grows and (sizes := curves.epsilon_k(cost, delta)):
            what = f"{_AT_ONCE.get(unit, 'records')}, {about}"
            by_size.setdefault(what, []).append(at | {"delta": delta} | _xy("k", sizes))
        if cost.relation == "substitution" and run.evidence.get("redacted", True):
            bayes.append(at | _bayesian(run, delta))
    return {
        "epsilon_delta": by_delta, "epsilon_k": by_size, "epsilon_gamma": bayes, "attacked": attacked, "unbounded": infinite,
    }  # fmt: skip


def _attacks(found: curves.Attacks, delta: float) -> dict[str, Any]:
    points = {"false_alarms": list(curves.ALARMS), "detected": found.detected, "gaussian": found.gaussian}
    return {"delta": delta, **points, "trade_off": found.told.to_json()}


def target_delta(run: RunView) -> float | None:
    """The δ at which a run states its costs."""
    target = run.plan.get("target") or {}
    value = target.get("delta") or run.evidence.get("delta")
    return None if value is None else float(value)


def evidence_of(run: RunView) -> Evidence | None:
    """The measured facts of a run, None where they are missing or of another version."""
    try:
        return Evidence.from_json({key: value for key, value in run.evidence.items() if key in _FACTS})
    except DataError:
        return None


def _unit(run: RunView) -> str:
    """What the noised steps draw and clip as one."""
    units = [phase.get("unit") or "record" for phase in run.plan.get("phases", ()) if phase.get("rule", {}).get("clip")]
    return str(units[-1]) if units else "record"


def _xy(x: str, points: curves.Points) -> dict[str, list[float]]:
    return {x: [p[0] for p in points], "epsilon": [p[1] for p in points]}


def _bayesian(run: RunView, delta: float) -> dict[str, Any]:
    """The curve of Theorem 8.3 as the certificate states it: where δ₂ is above δ, at δ + δ₂.

    δ₂ is 0 when nothing is trained on without noise but skeletons; without labels it is not known (``established``).
    measured: (γ, ε) at the bound of γ, what is claimed. band: γ's interval from the labels, with the ε of both ends and of
    the estimate; δ₂ stays at its bound throughout.
    """
    evidence = evidence_of(run)
    rates = miss_rates(evidence) if evidence else {}
    covered = run.plan.get("mechanism") == "dpsgd" or bool(run.evidence.get("all_private"))
    delta2 = 0.0 if covered else rates.get("delta2")
    total = delta if delta2 is None or delta2 < delta else min(delta + delta2, 1 - 1e-12)
    curve = curves.bayesian_curve(run.events, total, delta2 or 0.0)
    band = _band(evidence, rates["gamma"]) if evidence and rates else None
    ends = {} if band is None else {name: curve(band[name]) for name in ("low", "estimate", "high")}
    points = curves.epsilon_gamma(curve, delta2 or 0.0, (*curves.GAMMAS, *(band or {}).values()))
    at = (rates["gamma"], ends["high"]) if rates and math.isfinite(ends["high"]) else None
    return {
        "delta": total,
        **_xy("gamma", points),
        "measured": at,
        "band": None if band is None or evidence is None else {
            "gamma": band, "epsilon": ends, "confidence": evidence.confidence,
            "labelled": evidence.labelled, "missed": evidence.missed_by_pi,
        },
        "delta2": delta2,
        "established": covered or bool(rates),
    }  # fmt: skip


def _band(evidence: Evidence, high: float) -> dict[str, float]:
    """γ between Clopper–Pearson bounds, each one-sided at the evidence's confidence.

    A stratified sample bounds it from above only, and its plain share is no estimate: low and estimate are then 0 and the
    bound itself.
    """
    if evidence.miss_bounds is not None or not evidence.labelled:
        return {"low": 0.0, "estimate": high, "high": high}
    missed = evidence.missed_by_pi or 0
    low, _ = clopper_pearson(missed, evidence.labelled, 2 * (1 - evidence.confidence))
    return {"low": low, "estimate": missed / evidence.labelled, "high": high}
