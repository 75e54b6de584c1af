"""What runs amount to, in plain words: their methods, what attacks found, what is claimed, and how well they predict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from taciturn.auditing.finding import Finding
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.release import not_to_lean_on, refutations
from taciturn.reporting import formats
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections.front import leading_claims
from taciturn.reporting.verdict import attack_words, bounds

_METHODS = {
    "sgd": "plain training on the text as it is",
    "redacted": "plain training on redacted text",
    "dpsgd": "DP-SGD on every record",
    "own-loop": "DP-SGD under a loop of one's own",
    "crt": "confidentially redacted training",
    "crt_residual": "confidentially redacted training, with noise on residuals only",
    "jft": "just fine-tune twice",
    "selective_dpsgd": "selective DP-SGD",
    "uedp": "user-entity DP",
    "uedp-published": "user-entity DP as published",
    "user_dp": "user-level DP",
}
TOLD = 2
"""So many different claims of several models are told in the first paragraph."""
MEMBERSHIP = ("membership", "group-membership")


def method(run: RunView) -> str:
    """How the model was trained, for people who have not read the papers."""
    name = str(run.plan.get("mechanism", "unknown"))
    words = _METHODS.get(name, name)
    reads = {part for phase in run.plan.get("phases", ()) for part in phase.get("reads", ())}
    if name == "crt":
        words += ", with skeletons" if reads & {"skeletons", "common"} else ", as published"
    return words


def short(g: Guarantee) -> str:
    """The sentence of a claim without the numbers and terms in its brackets, for where those stand beside it."""
    return g.words().partition(f" ({g.label()}")[0].removesuffix(".") + "."


def bounded(run: RunView) -> bool:
    """Whether every leading claim is a bound that holds, with or without a condition."""
    return bounds(leading_claims(run))


def refuted(run: RunView) -> list[str]:
    """What evidence says against claims of a run."""
    return refutations(run.guarantees)


def perplexity(run: RunView, field: str = "perplexity") -> float | None:
    """The last perplexity (or another ``field`` of evaluations) on test text, or where there is none on validation text."""
    rows = [row for row in run.rows("eval") if row.get(field) is not None]
    rows = [row for row in rows if row.get("split") == "test"] or rows
    return float(rows[-1][field]) if rows else None


def leaks(run: RunView) -> bool:
    """Whether any attack succeeded."""
    return any(f.verdict == "leak" for f in run.findings or ())


def run_row(run: RunView, name: str, slot: int) -> dict[str, Any]:
    """One row of the summary table."""
    certificate = run.certificate or {}
    exposure = run.finding("exposure")
    return {
        "name": name,
        "slot": slot,
        "mechanism": run.plan.get("mechanism"),
        "method": method(run),
        "accuracy": perplexity(run, "accuracy"),
        "perplexity": perplexity(run),
        "perplexity_public_tokens": perplexity(run, "perplexity_public_tokens"),
        "exposure": None if exposure is None else _exposure(exposure),
        "membership": [_membership(f) for attack in MEMBERSHIP if (f := run.finding(attack))],
        "guarantees": [
            {
                "words": g.words(),
                "short": short(g),
                "notion": g.notion,
                "unit": g.unit,
                "relation": g.relation,
                "status": g.status,
                "lean": not not_to_lean_on(g),
                "epsilon": g.epsilon,
                "delta": g.delta,
                "attacked": ""
                if g.trade_off is None
                else f"{g.trade_off.share()} at {g.trade_off.alarms()} false alarms",
                "open": sum(not each.enforced for each in g.assumptions),
            }
            for g in leading_claims(run)
        ],
        "certified": run.certificate is not None,
        "audited": run.findings is not None,
        "release": certificate.get("release"),
        "reasons_against_release": [str(reason) for reason in certificate.get("reasons") or ()],
    }


def told(runs: Sequence[RunView], names: Sequence[str]) -> list[str]:
    """The paragraph under the verdict: who leaks, who does not, under which guarantee, at what cost."""
    audited = [(n, r) for n, r in zip(names, runs, strict=True) if r.findings]
    leaking = [(n, r) for n, r in audited if leaks(r)]
    unsure = [(n, r) for n, r in audited if any(f.verdict == "inconclusive" for f in r.findings or ())]
    quiet = [(n, r) for n, r in audited if all(f.verdict == "no leak found" for f in r.findings or ())]
    lines = []
    if leaking:
        lines.append(_leak_words(leaking))
    if unsure:
        lines.append(_unsure_words(unsure))
    if quiet:
        lines.append(_quiet_words(quiet))
    if spared := [n for n in names if n not in [name for name, _ in audited]]:
        lines.append(f"{_and(spared)} {'has' if len(spared) == 1 else 'have'} not been attacked.")
    against = [(n, why) for n, r in zip(names, runs, strict=True) for why in refuted(r)]
    lines.extend(f"Evidence refutes what {n} was to promise: {why}." for n, why in against)
    lines.extend(_claim_words(runs, names))
    lines.extend(_quality_words(runs, names))
    return lines


def _quality_words(runs: Sequence[RunView], names: Sequence[str]) -> list[str]:
    """The accuracy of classifiers, the perplexity of the other models."""
    models = [(n, r) for n, r in zip(names, runs, strict=True) if perplexity(r, "accuracy") is None]
    outside = all(perplexity(run, "perplexity_public_tokens") is not None for _, run in models)
    field = "perplexity_public_tokens" if outside else "perplexity"
    told = {
        "accuracy": [
            (n, formats.rate(a)) for n, r in zip(names, runs, strict=True) if (a := perplexity(r, "accuracy"))
        ],
        f"perplexity{' outside known secrets' if outside else ''}": [
            (n, formats.general(p)) for n, r in models if (p := perplexity(r, field)) is not None
        ],
    }
    return [
        f"Held-out {what}: {_and([f'{v} for {n}' for n, v in values] if len(runs) > 1 else [values[0][1]])}."
        for what, values in told.items()
        if values
    ]


def _claim_words(runs: Sequence[RunView], names: Sequence[str]) -> list[str]:
    """One run: its leading claims, of more than two open assumptions their number. Several: each claim once, short, with the
    models that share it."""
    if len(runs) == 1:
        return [claim.in_short() for claim in leading_claims(runs[0])] or [
            f"{names[0]} is not certified: nothing is promised."
        ]
    labelled = list(zip(names, runs, strict=True))
    sharing: dict[str, list[str]] = {}
    for name, run in labelled:
        for g in leading_claims(run) if bounded(run) else ():
            size = f"ε = {formats.bound(g.epsilon)} at δ = {formats.bound(g.delta)}"
            words = f"{size} for {g.unit} ({g.notion}, neighbours by {g.relation}, {g.status})"
            sharing.setdefault(words, []).append(name)
    lines = [f"Against every attack, {_and(who)} promise{'s' * (len(who) == 1)} {w}." for w, who in sharing.items()]
    if len(lines) > TOLD:
        covered = [name for name, run in labelled if bounded(run)]
        lines = [f"Against every attack, {_and(covered)} hold a bound each; the summary says of what, and how large."]
    if lacking := [name for name, run in labelled if not bounded(run)]:
        lines.append(f"No bound covers every secret in {_and(lacking)}.")
    return lines


def _leak_words(leaking: Sequence[tuple[str, RunView]]) -> str:
    scores = [(n, f) for n, r in leaking if (f := r.finding("exposure")) and f.verdict == "leak"]
    if not scores:
        attacks = sorted({attack_words(f.attack) for _, r in leaking for f in r.findings or () if f.verdict == "leak"})
        return f"{_and([n for n, _ in leaking])} leak under the {_and(attacks)} attack."
    equal: dict[str, list[str]] = {}
    for name, finding in scores:
        equal.setdefault(formats.bits(finding.score), []).append(name)
    told = _and([f"{score} bits in {_and(who)}" for score, who in equal.items()])
    p95 = scores[0][1].null.get("p95")
    chance = f"; a model that never saw the canaries stays below {formats.bits(p95)} in 95 of 100 cases" if p95 else ""
    return f"The highest canary exposure is {told}{chance}."


def _unsure_words(unsure: Sequence[tuple[str, RunView]]) -> str:
    tried = sorted({attack_words(f.attack) for _, r in unsure for f in r.findings or () if f.verdict == "inconclusive"})
    return f"The {_and(tried)} attack{'s' * (len(tried) > 1)} decided nothing about {_and([n for n, _ in unsure])}."


def _quiet_words(quiet: Sequence[tuple[str, RunView]]) -> str:
    tried = sorted({attack_words(f.attack) for _, r in quiet for f in r.findings or ()})
    return f"The {_and(tried)} attack{'s' if len(tried) > 1 else ''} found no leak in {_and([n for n, _ in quiet])}."


def _exposure(finding: Finding) -> dict[str, Any]:
    top = perfect(finding)
    return {
        "score": finding.score,
        "p95": finding.null.get("p95"),
        "p": finding.null.get("p"),
        "verdict": finding.verdict,
        "share": round(min(1.0, max(0.0, (finding.score or 0.0) / top)), 3),
        "mark": round(min(1.0, (finding.null.get("p95") or 0.0) / top), 3),
    }


def _membership(finding: Finding) -> dict[str, Any]:
    return {
        "score": finding.score,
        "measure": ("group " if finding.attack == "group-membership" else "") + finding.unit_of_score,
        "chance": finding.null.get("mean", 0.5),
        "p95": finding.null.get("p95"),
        "p": finding.null.get("p"),
        "verdict": finding.verdict,
    }


def perfect(exposure: Finding) -> float:
    """Bits of perfect memorisation: log2 of the number of candidates."""
    return float(exposure.detail.get("max_possible") or math.log2(10**6))


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1] if parts else ""
