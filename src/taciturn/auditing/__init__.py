"""Attacks that test what the guarantees claim, each with its null, its controls and a verdict (docs/attacks.md).

Single attacks are functions of the modules named after them, such as ``taciturn.auditing.exposure.exposure.exposure`` and
``taciturn.auditing.membership.membership.membership``; the random split before training is
``taciturn.auditing.membership.split.split``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from taciturn.auditing.canaries.templates import Planted, Template, draw, plant
    from taciturn.auditing.exposure.ranking import ranks
    from taciturn.auditing.finding import Finding
    from taciturn.auditing.lower_bounds.against_certificate import Audited, against_run
    from taciturn.auditing.lower_bounds.f_dp import Curve, mu_lower
    from taciturn.auditing.lower_bounds.noise_level import Steps, noise_upper
    from taciturn.auditing.lower_bounds.one_run import OneRun, one_run
    from taciturn.auditing.membership.gradient import gradient_membership
    from taciturn.auditing.membership.gradient_scores import gradient_scores
    from taciturn.auditing.membership.membership import group_membership
    from taciturn.auditing.membership.split import Split
    from taciturn.auditing.run import audit

_NAMES = {
    "canaries.templates": ("Planted", "Template", "draw", "plant"),
    "exposure.ranking": ("ranks",),
    "finding": ("Finding",),
    "lower_bounds.against_certificate": ("Audited", "against_run"),
    "lower_bounds.f_dp": ("Curve", "mu_lower"),
    "lower_bounds.noise_level": ("Steps", "noise_upper"),
    "lower_bounds.one_run": ("OneRun", "one_run"),
    "membership.gradient": ("gradient_membership",),
    "membership.gradient_scores": ("gradient_scores",),
    "membership.membership": ("group_membership",),
    "membership.split": ("Split",),
    "run": ("audit",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
__all__ = [
    "Audited",
    "Curve",
    "Finding",
    "OneRun",
    "Planted",
    "Split",
    "Steps",
    "Template",
    "against_run",
    "audit",
    "draw",
    "gradient_membership",
    "gradient_scores",
    "group_membership",
    "mu_lower",
    "noise_upper",
    "one_run",
    "plant",
    "ranks",
]


def __getattr__(name: str) -> Any:
    """Import on first use: canaries and findings are read where torch is not installed."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
