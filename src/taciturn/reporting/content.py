"""Everything the report shows, as one dictionary of numbers and short words: the page and ``--json`` both come from it.

Only numbers and a short list of named settings are taken from the run folders. Free text (paths, patterns, templates) is
left out, so that nothing a user typed can carry a secret onto the page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from taciturn.auditing.finding import Finding
from taciturn.privacy.accountant import Profile, compose
from taciturn.privacy.claims import Cost
from taciturn.privacy.guarantee import to_number
from taciturn.privacy.theorems import recall_bound
from taciturn.reporting import curves, provenance, summary
from taciturn.reporting.view import RunView

POINTS = 400
"""A curve along training keeps at most this many points."""


def data(runs: Sequence[RunView]) -> dict[str, Any]:
    """The content of a report over one or several runs as plain JSON values; ∞ is the string "inf"."""
    plain: dict[str, Any] = _plain(collect(runs))
    return plain


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return to_number(value) if isinstance(value, float) else value


def collect(runs: Sequence[RunView]) -> dict[str, Any]:
    """As ``data``, with ∞ as a float."""
    if not runs:
        raise ValueError("a report needs at least one run")
    names = _labels([run.name for run in runs])
    labelled = list(zip(names, runs, strict=True))
    headline, words = summary.verdict(runs, names)
    budget = _budget(labelled)
    return {
        "title": f"{headline} · taciturn report",
        "headline": headline,
        "verdict": words,
        "runs": [summary.run_row(run, name, slot) for slot, (name, run) in enumerate(labelled)],
        "claims": _claims(labelled),
        "uncertified": [name for name, run in labelled if run.certificate is None],
        **budget,
        "training": _training(labelled),
        "findings": [_finding(f, name, slot) for slot, (name, run) in enumerate(labelled) for f in run.findings or ()],
        "unaudited": [name for name, run in labelled if run.findings is None],
        "attacks": _attacks(labelled),
        "corpora": provenance.corpora(labelled),
        "settings": [provenance.settings(run, name) for name, run in labelled],
        "environment": provenance.environment(labelled),
        "limits": provenance.limits(runs),
    }


def _labels(names: Sequence[str]) -> list[str]:
    """Run names, numbered where two are the same.

    >>> _labels(["crt", "mail", "crt"])
    ['crt (1)', 'mail', 'crt (2)']
    """
    total, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} ({seen[name]})" if total[name] > 1 else name)
    return labels


def _claims(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """Every claim once, with the runs that make it."""
    claims: list[dict[str, Any]] = []
    for slot, (name, run) in enumerate(labelled):
        for g in run.guarantees:
            ticks = [{"text": a.text, "enforced": a.enforced} for a in g.assumptions]
            claim = {
                "notion": g.notion,
                "unit": g.unit,
                "relation": g.relation,
                "epsilon": g.epsilon,
                "delta": g.delta,
                "status": g.status,
                "theorem": g.theorem,
                "accountant": g.accountant,
                "words": g.words(),
                "assumptions": ticks,
                "open": sum(not t["enforced"] for t in ticks),
            }
            same = [c for c in claims if {k: v for k, v in c.items() if k != "runs"} == claim]
            if not same:
                same = [claim | {"runs": []}]
                claims += same
            same[0]["runs"].append({"run": name, "slot": slot})
    return claims


def _target_delta(run: RunView) -> float | None:
    target = run.plan.get("target") or {}
    value = target.get("delta") or run.evidence.get("delta")
    return None if value is None else float(value)


def _budget(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """Curves of ε against δ and γ. Relations and units do not mix: each has its own list."""
    by_relation: dict[str, list[dict[str, Any]]] = {}
    bayes, infinite = [], []
    for slot, (name, run) in enumerate(labelled):
        relation = run.plan.get("relation", "substitution")
        cost, delta = Cost.of(run.plan, run.events), _target_delta(run)
        points = curves.epsilon_delta(cost)
        if not points:
            infinite.append(name)
        if not points or not cost.noised:
            continue
        curve = {"claimed_delta": delta, "delta": [p[0] for p in points], "epsilon": [p[1] for p in points]}
        by_relation.setdefault(_neighbours(run), []).append({"run": name, "slot": slot, **curve})
        if relation == "substitution" and delta is not None and run.evidence.get("redacted", True):
            profile = compose(run.events, "substitution")
            bayes.append({"run": name, "slot": slot, **_bayesian(run, profile, delta)})
    return {"epsilon_delta": by_relation, "epsilon_gamma": bayes, "unbounded": infinite}


def _neighbours(run: RunView) -> str:
    """The relation a run is accounted by, and of what, where that is not a record."""
    units = {phase.get("unit", "record") for phase in run.plan.get("phases", ()) if phase.get("unit")} - {
        "record",
        "residual",
    }
    relation, group = str(run.plan.get("relation", "substitution")), int(run.plan.get("group", 1))
    of = f" of {group} units" if units == {"user-entity"} else " of a user" if units else ""
    return relation + of


def _bayesian(run: RunView, profile: Profile, delta: float) -> dict[str, Any]:
    """The curve of Theorem 8.3 as the certificate states it: where δ₂ is above δ, at δ + δ₂.

    δ₂ is 0 when nothing is trained on without noise but skeletons; without labels it is not known (``established``).
    """
    evidence = run.evidence
    labelled, missed = int(evidence.get("labelled") or 0), evidence.get("missed_by_pi")
    confidence = float(evidence.get("confidence") or 0.95)
    known = labelled > 0 and missed is not None
    covered = run.plan.get("mechanism") == "dpsgd" or bool(evidence.get("all_private"))
    gamma = recall_bound(int(missed or 0), labelled, confidence) if known else None
    both = recall_bound(int(evidence.get("missed_by_both") or 0), labelled, confidence) if known else None
    delta2 = 0.0 if covered else both
    total = delta if delta2 is None or delta2 < delta else min(delta + delta2, 1 - 1e-12)
    points = curves.epsilon_gamma(profile, total, delta2 or 0.0)
    at = None if gamma is None else curves.epsilon_gamma(profile, total, delta2 or 0.0, [gamma])
    return {
        "delta": total,
        "gamma": [p[0] for p in points],
        "epsilon": [p[1] for p in points],
        "measured": at[0] if at else None,
        "delta2": delta2,
        "established": covered or known,
    }


def _training(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    held_out, spent = [], []
    for slot, (name, run) in enumerate(labelled):
        evals = [r for r in run.rows("eval") if r.get("perplexity") is not None and r.get("split") != "test"]
        if evals:
            held_out.append(
                {
                    "run": name,
                    "slot": slot,
                    "step": [row.get("step") for row in evals],
                    "epoch": [row.get("epoch") for row in evals],
                    "perplexity": [row["perplexity"] for row in evals],
                }
            )
        steps = [
            r for r in run.rows("step") if isinstance(r.get("epsilon"), int | float) and math.isfinite(r["epsilon"])
        ]
        if any(row["epsilon"] for row in steps):
            kept = _thin([(row["step"], row["epsilon"]) for row in steps])
            spent.append({"run": name, "slot": slot, "step": [k[0] for k in kept], "epsilon": [k[1] for k in kept]})
    targets = {e for _, run in labelled if (e := (run.plan.get("target") or {}).get("epsilon"))}
    return {"perplexity": held_out, "spent": spent, "target": targets.pop() if len(targets) == 1 else None}


def _thin(points: Sequence[tuple[float, float]], most: int = POINTS) -> list[tuple[float, float]]:
    """At most ``most`` points, evenly spread, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]


def _finding(finding: Finding, name: str, slot: int) -> dict[str, Any]:
    detail = finding.detail
    return {
        "run": name,
        "slot": slot,
        "attack": summary.spoken(finding.attack),
        "score": finding.score,
        "unit_of_score": finding.unit_of_score,
        "interval": finding.interval,
        "null": {k: finding.null.get(k) for k in ("mean", "p95", "p")},
        "controls": {k: finding.controls.get(k) for k in ("positive", "negative")},
        "verdict": finding.verdict,
        "notes": list(finding.notes),
        "accuracy": detail.get("accuracy"),
        "accuracy_p95": finding.null.get("accuracy_p95"),
        "tpr_at_fpr_0.01": (detail.get("tpr_at_fpr_0.01") or [None])[0],
        "blind": finding.controls.get("blind"),
        "epsilon_lower": detail.get("eps_lower"),
    }


def _attacks(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """Arrays behind the plots of the audit."""
    exposures, rocs, p95, top = [], [], None, 0.0
    for slot, (name, run) in enumerate(labelled):
        finding = run.finding("exposure")
        if finding and (values := _floats(finding, "exposures")):
            exposures.append({"run": name, "slot": slot, "exposures": values})
            p95 = finding.null.get("p95", p95)
            top = max(top, summary.perfect(finding))
        for attack in summary.MEMBERSHIP:
            finding = run.finding(attack)
            if finding and (fpr := _floats(finding, "roc_fpr")):
                roc = {"fpr": fpr, "tpr": _floats(finding, "roc_tpr")}
                rocs.append({"run": name, "slot": slot, "attack": summary.spoken(attack), **roc})
    return {"exposure": {"runs": exposures, "p95": p95, "bits": top}, "roc": rocs}


def _floats(finding: Finding, key: str) -> list[float]:
    return [float(v) for v in finding.detail.get(key) or ()]
