"""What attacks found: rows of the table, arrays behind the plots, and each lower bound beside the certified ε."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taciturn.auditing.finding import Finding
from taciturn.privacy.guarantees.guarantee import from_number
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections import summary
from taciturn.reporting.verdict import attack_words

GRID = (0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9)
"""False positive rates at which the table under a ROC curve stands."""

_SCORES = {
    "loss": "loss",
    "reference": "reference ratio",
    "zlib": "loss over zlib",
    "min_k": "Min-K %",
    "min_k_plus": "Min-K %++",
    "rmia": "RMIA",
    "perplexity": "perplexity",
}


_ABOUT = {
    "confidentiality": ("a secret in one record", "secrets in {k} records at once"),
    "dp": ("one record, there or not", "{k} records at once, there or not"),
    "user-dp": ("one user, there or not", "{k} users at once, there or not"),
    "uedp": ("one unit of a user and an entity, there or not", "a user and an entity with {k} units, there or not"),
}


def finding(found: Finding, name: str, slot: int) -> dict[str, Any]:
    """One row of the table of attacks."""
    detail = found.detail
    return {
        "run": name,
        "slot": slot,
        "attack": attack_words(found.attack),
        "score": found.score,
        "unit_of_score": found.unit_of_score,
        "interval": found.interval,
        "null": {k: found.null.get(k) for k in ("mean", "p95", "p", "p_holm")},
        "controls": {k: found.controls.get(k) for k in ("positive", "negative", "base")},
        "verdict": found.verdict,
        "notes": list(found.notes),
        "accuracy": detail.get("accuracy"),
        "accuracy_p95": found.null.get("accuracy_p95"),
        "tpr_at_fpr_0.01": (detail.get("tpr_at_fpr_0.01") or [None])[0],
        "blind": found.controls.get("blind"),
        "epsilon_lower": detail.get("eps_lower"),
        "scores": list(_scores(detail.get("attacks") or {})),
    }


def _scores(attacks: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every membership score that was tried, not only the one the verdict is of."""
    for key, each in attacks.items():
        tpr = (each.get("tpr_at_fpr_0.01") or [None])[0]
        told = {"auc": each.get("auc"), "interval": each.get("interval"), "p": each.get("p"), "tpr_at_fpr_0.01": tpr}
        yield {"score": _SCORES.get(key, "another score"), **told}


def against(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """Lower bounds of attacks beside the certified ε of the same notion, relation and unit.

    lower: the ε that the attack proves at least, at the δ of the claim. upper: the certified ε, None where no statement of
    the certificate is about the same (``why``). noise_at_most: the most noise that the guesses of the coins leave possible,
    as a multiple of the ledger's.
    """
    return [
        {"run": name, "slot": slot, "attack": attack_words(found.attack), **_compared(found)}
        for slot, (name, run) in enumerate(labelled)
        for found in run.findings or ()
        if found.detail.get("certificate") or found.detail.get("eps_lower") is not None
    ]


def _compared(found: Finding) -> dict[str, Any]:
    compared = found.detail.get("certificate") or {}
    upper = compared.get("epsilon")
    missing = compared.get("why") or "audited without a certificate beside the model: run the audit again"
    k = compared.get("k") or 1
    lower = compared.get("eps_lower", found.detail.get("eps_lower"))
    return {
        "about": _about(compared) if compared else "not compared",
        "k": k,
        "delta": compared.get("delta"),
        "lower": None if lower is None else float(lower),
        "upper": None if upper is None else from_number(upper),
        "exceeded": bool(compared.get("exceeded")),
        "noise_at_most": compared.get("noise_at_most"),
        "why": None if upper is not None else missing,
    }


def _about(compared: Mapping[str, Any]) -> str:
    one, many = _ABOUT.get(str(compared.get("notion")), ("one unit, there or not", "{k} units at once, there or not"))
    k = compared.get("k") or 1
    return f"{one if k == 1 else many.format(k=k)}, by {compared.get('relation')}"


def arrays(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """Arrays behind the plots of the audit."""
    exposures, rocs, p95, top = [], [], None, 0.0
    for slot, (name, run) in enumerate(labelled):
        found = run.finding("exposure")
        if found and (values := _floats(found, "exposures")):
            exposures.append({"run": name, "slot": slot, "exposures": values})
            p95 = found.null.get("p95", p95)
            top = max(top, summary.perfect(found))
        for attack in summary.MEMBERSHIP:
            found = run.finding(attack)
            if found and (fpr := _floats(found, "roc_fpr")):
                tpr = _floats(found, "roc_tpr")
                at = [[x, _step(fpr, tpr, x)] for x in GRID]
                rocs.append(
                    {
                        "run": name,
                        "slot": slot,
                        "attack": attack_words(attack),
                        "fpr": fpr,
                        "tpr": tpr,
                        "at": at,
                    }
                )
    return {"exposure": {"runs": exposures, "p95": p95, "bits": top}, "roc": rocs}


def _step(fpr: Sequence[float], tpr: Sequence[float], x: float) -> float:
    """The true positive rate reached at a false positive rate of at most x."""
    return max((t for f, t in zip(fpr, tpr, strict=True) if f <= x), default=0.0)


def _floats(found: Finding, key: str) -> list[float]:
    return [float(v) for v in found.detail.get(key) or ()]
