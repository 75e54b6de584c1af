"""Exposure of several plantings in one audit: one finding each, and one over all canaries.

A planting is a template with its secrets. Plantings of one template share one enumeration.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from taciturn.auditing import nulls
from taciturn.auditing.canaries.templates import Planted
from taciturn.auditing.exposure.exposure import finding_from_ranks
from taciturn.auditing.exposure.ranking import Ranked, ranked
from taciturn.auditing.finding import Finding, verdict_of
from taciturn.errors import UsageError

ASSUMES = (
    "the combined p-value takes the secrets to be drawn uniformly and independently of each other and of all else the "
    "model saw, as planting does; it does not hold for secrets chosen by hand"
)


def exposures(model: Any, tokenizer: Any, plantings: Sequence[Planted], **options: Any) -> list[Finding]:
    """The finding of one planting, "exposure"; of several, "exposure-1", "exposure-2-missed", … and last "exposure", over
    all of them. options: see :func:`taciturn.auditing.exposure.exposure.exposure`."""
    found: list[Finding] = []
    every = _ranks(model, tokenizer, plantings, options)
    for number, planted in enumerate(plantings, 1):
        finding = finding_from_ranks(every[number - 1])
        told = {"kind": planted.kind, "copies": planted.copies, "canaries": len(planted.secrets)}
        name = "-".join(["exposure", str(number), *([planted.kind] if planted.kind else [])])
        found.append(
            replace(
                finding,
                attack=name if len(plantings) > 1 else "exposure",
                detail={**finding.detail, **told},
            )
        )
    return found if len(found) == 1 else [*found, combined(found)]


def _ranks(model: Any, tokenizer: Any, plantings: Sequence[Planted], options: dict[str, Any]) -> list[Ranked]:
    out: dict[int, Ranked] = {}
    for template in dict.fromkeys(planted.template for planted in plantings):
        of_it = [i for i, planted in enumerate(plantings) if planted.template == template]
        secrets = [secret for i in of_it for secret in plantings[i].secrets]
        if len(set(secrets)) < len(secrets):
            raise UsageError("exposure: two plantings of one template hold the same secret; plant each secret once")
        whole = ranked(model, tokenizer, template, secrets, **options)
        start = 0
        for i in of_it:
            end = start + len(plantings[i].secrets)
            out[i], start = whole.part(start, end), end
    return [out[i] for i in range(len(plantings))]


def combined(findings: Sequence[Finding]) -> Finding:
    """One finding over the canaries of several: the highest and the mean exposure, and Fisher's combined p-value.

    null: "p_max" of the highest, "p_fisher" of all; the verdict is of "p", twice the smaller one (Bonferroni), so that
    neither many small leaks nor one large leak goes unseen. Means and the 95 % point are those of large |R|.
    """
    p_values = np.concatenate([finding.detail["p_values"] for finding in findings])
    bits = np.concatenate([finding.detail["exposures"] for finding in findings])
    control = np.concatenate([finding.detail["control_exposures"] for finding in findings])
    p_max, p_fisher = _combined_p(findings)
    p = min(1.0, 2 * min(p_max, p_fisher))
    problems = list(dict.fromkeys(n for finding in findings for n in finding.notes if "control failed" in n))
    n = len(p_values)
    return Finding(
        attack="exposure",
        score=float(bits.max()),
        unit_of_score="bits",
        interval=None,
        null={
            "mean": nulls.exposure_max_mean_large(n),
            "p95": nulls.exposure_max_p95(n),
            "p": p,
            "p_max": p_max,
            "p_fisher": p_fisher,
            "single_mean": nulls.exposure_max_mean_large(1),
            "single_p95": nulls.exposure_max_p95(1),
        },
        controls={
            "positive": findings[0].controls["positive"],
            "positive_max": findings[0].controls["positive_max"],
            "negative": float(control.max()),
            "negative_mean": float(control.mean()),
        },
        verdict=verdict_of(p, problems),
        detail={
            "exposures": bits.tolist(),
            "p_values": p_values.tolist(),
            "control_exposures": control.tolist(),
            "mean": float(bits.mean()),
            "max_possible": max(finding.detail["max_possible"] for finding in findings),
            "assumes": ASSUMES,
            "by_planting": [_row(finding) for finding in findings],
            "by_kind": _by_kind(findings),
        },
        notes=tuple(problems),
    )


def _row(finding: Finding) -> dict[str, Any]:
    kept = ("kind", "canaries", "copies", "candidates", "mean", "search")
    return {
        "attack": finding.attack,
        **{key: finding.detail[key] for key in kept},
        "max": finding.score,
        "p": finding.null["p"],
        "p_mean": finding.null["p_mean"],
    }


def _by_kind(findings: Sequence[Finding]) -> dict[str, dict[str, Any]]:
    """Of the canaries of one kind: how many, highest and mean exposure, p of the highest, Fisher's p."""
    out: dict[str, dict[str, Any]] = {}
    for kind in dict.fromkeys(str(finding.detail["kind"]) for finding in findings):
        some = [finding for finding in findings if finding.detail["kind"] == kind]
        bits = np.concatenate([finding.detail["exposures"] for finding in some])
        p_max, p_fisher = _combined_p(some)
        out[kind or "not said"] = {
            "canaries": len(bits),
            "max": float(bits.max()),
            "mean": float(bits.mean()),
            "p": p_max,
            "p_fisher": p_fisher,
        }
    return out


def _combined_p(findings: Sequence[Finding]) -> tuple[float, float]:
    """p-values of the highest exposure and of all together (Fisher). Secrets of one template are distinct."""
    p_values = np.concatenate([finding.detail["p_values"] for finding in findings])
    canaries = Counter[int]()
    for finding in findings:
        canaries[finding.detail["candidates"]] += len(finding.detail["p_values"])
    distinct = math.prod(nulls.all_distinct(n, size) for size, n in canaries.items())
    p_fisher = min(1.0, nulls.fisher_p(p_values) / distinct) if distinct else 1.0
    return nulls.exposure_min_p(float(p_values.min()), canaries), p_fisher
