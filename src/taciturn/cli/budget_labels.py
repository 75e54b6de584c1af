"""What labelled secrets allow: δ₂, and how many labels a smaller one takes."""

from __future__ import annotations

from typing import Any

CONFIDENCE = 0.95


def labels(labelled: int, missed: int, delta: float) -> dict[str, Any]:
    """What labels allow, and how many a δ₂ of ``delta`` takes, without a miss and with those there are."""
    from taciturn.errors import UsageError
    from taciturn.privacy.guarantees.theorems import labels_needed, recall_bound

    if labelled < 0:
        raise UsageError(f"--labelled: expected a number of secrets, found {labelled}")
    return {
        "labelled": labelled,
        "missed": missed,
        "delta2": recall_bound(missed, labelled, CONFIDENCE),
        "confidence": CONFIDENCE,
        "delta": delta,
        "needed": labels_needed(delta, 0, CONFIDENCE),
        "needed_with_these_misses": labels_needed(delta, missed, CONFIDENCE),
        "status": "conditional: the labels are a random sample of the secrets to protect",
    }


def print_labels(found: dict[str, Any]) -> None:
    from taciturn.cli.show import out
    from taciturn.privacy.guarantees.guarantee import round_up

    level = f"{100 * found['confidence']:g} %"
    out.print(
        f"δ₂ ≤ {round_up(found['delta2'])} from {found['missed']:,} missed of {found['labelled']:,} labelled secrets "
        f"(Clopper–Pearson, one-sided {level}; {found['status']})",
        soft_wrap=True,
    )
    more = f"; {found['needed_with_these_misses']:,} with {found['missed']:,} missed" if found["missed"] else ""
    enough = "it is within δ" if found["delta2"] <= found["delta"] else "a certificate adds it to δ"
    out.print(
        f"{enough} = {found['delta']:g}: δ₂ ≤ δ takes {found['needed']:,} labelled secrets without a miss{more}",
        soft_wrap=True,
    )
