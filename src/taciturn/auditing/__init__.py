"""Attacks that test what the guarantees claim: canary exposure and membership inference, each with null and controls.

Single attacks are ``taciturn.auditing.exposure.exposure`` and ``taciturn.auditing.membership.membership``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taciturn.auditing.canaries import Planted, Template, draw, plant
    from taciturn.auditing.exposure import ranks
    from taciturn.auditing.finding import Finding
    from taciturn.auditing.membership import group_membership
    from taciturn.auditing.run import audit

_HOME = {
    "Planted": "canaries",
    "Template": "canaries",
    "draw": "canaries",
    "plant": "canaries",
    "ranks": "exposure",
    "Finding": "finding",
    "group_membership": "membership",
    "audit": "run",
}
__all__ = ["Finding", "Planted", "Template", "audit", "draw", "group_membership", "plant", "ranks"]


def __getattr__(name: str) -> Any:
    """Import on first use: canaries and findings are read where torch is not installed."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
