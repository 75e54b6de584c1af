"""Options and noised phases of a cell, and its ε: the paper's accounting of one, and what the certificate says."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from taciturn.recipes.cells import Row


def named(model: str | None) -> str:
    """Of a folder or of the hub, without the place where it lies: rows are shown to others."""
    return (model or "").rstrip("/").rsplit("/")[-1]


def portable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options without the folder that a file of ids lies in."""
    screened = options.get("screened")
    return {**options, "screened": {"ids": Path(screened["ids"]).name}} if screened else dict(options)


def phases(mechanism: str, options: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Noised phases and their options."""
    if mechanism == "dpsgd":
        return [("private", options)]
    light = [("redacted", options["light"])] if options.get("light") else []
    return [*light, *([("private", options["private"])] if "private" in options else [])]


def published(rate: float, sigma: float, steps: int, delta: float) -> float:
    """ε that the paper's accounting gives: exact, by add and remove."""
    from taciturn.privacy.accounting.accountant import compose
    from taciturn.privacy.accounting.events import PoissonGaussian

    return compose({PoissonGaussian(rate, sigma): steps}, "add-remove").epsilon(delta)


def epsilons(row: Row) -> tuple[float | None, float | None]:
    """(ε of a secret the policy detects, of one it misses) of a cell, as its certificate has them."""
    detected = missed = None
    for each in row["claims"]:
        if each["notion"] == "sdp":
            if "detects" in each["unit"]:
                detected = each["epsilon"]
            else:
                missed = each["epsilon"]
        elif each["notion"] == "confidentiality" and detected is None:
            detected = each["epsilon"]
            missed = each["epsilon"]
    return detected, missed
