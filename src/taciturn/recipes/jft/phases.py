"""Options and noised phases of a cell, and what the paper's accounting says of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any


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
