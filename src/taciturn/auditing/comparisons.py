"""Several comparisons in one audit share one error: each more attack is one more chance of a false alarm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from taciturn.auditing.finding import LEAK, Finding

ALPHA = 0.05
"""Of all lower bounds that one audit holds against a certificate; each has a confidence of 1 − ALPHA/number (Bonferroni)."""


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values (Holm 1979): to call every comparison whose value is below α errs with probability at most α,
    whatever depends on what.

    >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03])]
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.arange(len(order), 0, -1) * np.asarray(p_values, float)[order]
    out = np.empty(len(order))
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(p) for p in out]


def holm_corrected(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of one audit, with null["p_holm"] and detail["comparisons"]. What is a leak by its own p-value alone is
    inconclusive; a small p-value of its own is never "no leak found"."""
    out = []
    for found, p in zip(findings, holm([found.null["p"] for found in findings]), strict=True):
        found = replace(
            found,
            null={**found.null, "p_holm": p},
            detail={**found.detail, "comparisons": len(findings)},
        )
        refuted = (found.detail.get("certificate") or {}).get("exceeded")
        if found.verdict == "leak" and p >= LEAK and not refuted:
            why = f"p = {found.null['p']:.2g} alone, {p:.2g} as one of the {len(findings)} comparisons of this audit (Holm)"
            found = replace(found, verdict="inconclusive", notes=(*found.notes, why))
        out.append(found)
    return out
