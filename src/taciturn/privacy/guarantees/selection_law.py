"""How many runs the best is chosen from: a law by name, drawn from the operating system's entropy.

The price of choosing (private_selection.py) holds for a number of runs drawn beforehand, from a law that anyone may know,
and never told: a number that a person thought of, or stopped at, has no such price.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

import numpy as np

from taciturn.errors import DataError, UsageError, nearest
from taciturn.privacy import limits
from taciturn.privacy.guarantees.private_selection import NegativeBinomial, Poisson, Runs

SHAPES = {"geometric": 1.0, "logarithmic": 0.0}
"""Truncated negative binomial laws with a name, by their shape η."""

FORM = "LAW:MEAN with LAW poisson, geometric, logarithmic or shape=η, e.g. geometric:10"
_MOST = 1 << 24  # the law's tail beyond so many runs is below what 53 random bits resolve, for any mean below a million


def law(text: str) -> tuple[str, float | None]:
    """(name, shape) of LAW in ``LAW:MEAN``; the shape of a Poisson law is None.

    >>> law("geometric"), law("shape=-0.5"), law("poisson")
    (('negative-binomial', 1.0), ('negative-binomial', -0.5), ('poisson', None))
    """
    if text == "poisson":
        return "poisson", None
    if text in SHAPES:
        return "negative-binomial", SHAPES[text]
    key, equals, value = text.partition("=")
    if key == "shape" and equals:
        try:
            return "negative-binomial", float(value)
        except ValueError:
            raise UsageError(f"selection: shape=η takes a number above −1, found {value!r}") from None
    raise UsageError(f"selection: {text!r} is no law; {nearest(text, ['poisson', *SHAPES])}; expected {FORM}")


def selection_law(name: str, shape: float | None, mean: float) -> Runs:
    """The law of ``name`` with this mean. Raises UsageError for a mean or a shape that it cannot have."""
    return Poisson(mean) if name == "poisson" else NegativeBinomial(mean, 1.0 if shape is None else shape)


def parse(text: str) -> Runs:
    """A law written as :data:`FORM` says.

    >>> parse("logarithmic:10")
    NegativeBinomial(mean=10.0, shape=0.0)
    """
    head, _, mean = text.partition(":")
    try:
        number = float(mean)
    except ValueError:
        raise UsageError(f"selection {text!r}: expected {FORM}") from None
    return selection_law(*law(head), number)


def describe(runs: Runs) -> str:
    """The law in words."""
    if isinstance(runs, Poisson):
        return f"a Poisson law of mean {runs.mean:g}"
    names = {shape: f"a {name} law" for name, shape in SHAPES.items()}
    named = names.get(runs.shape, f"a truncated negative binomial law (η = {runs.shape:g})")
    return f"{named} of mean {runs.mean:g}"


def to_json(runs: Runs) -> dict[str, Any]:
    if isinstance(runs, Poisson):
        return {"law": "poisson", "mean": runs.mean}
    return {"law": "negative-binomial", "mean": runs.mean, "shape": runs.shape}


def from_json(value: Mapping[str, Any]) -> Runs:
    """Inverse of :func:`to_json`; DataError on anything else."""
    fields = {"law", "mean"} | ({"shape"} if value.get("law") == "negative-binomial" else set())
    numbers = [value.get(name) for name in fields - {"law"}]
    known = value.get("law") in ("poisson", "negative-binomial")
    if not known or set(value) != fields or not all(type(n) in (int, float) for n in numbers):
        raise DataError(f"selection: not a law as taciturn writes it: {sorted(value)}")
    try:
        limits.number("mean", value["mean"], 1e-6, 1e6)
        limits.number("shape", value.get("shape", 0), -0.999, 1e3)
        return selection_law(str(value["law"]), value.get("shape"), float(value["mean"]))
    except UsageError as error:
        raise DataError(f"selection: {error}") from error


def draw(runs: Runs) -> int:
    """A number of runs from the operating system's entropy; 0 may come of a Poisson law.

    Inverts the distribution function at 53 random bits, so it is within 1e-15 of the law in total variation.
    """
    return inverted(runs, (secrets.randbits(53) + 0.5) * 2.0**-53)


def inverted(runs: Runs, u: float) -> int:
    """The smallest k with P(K ≤ k) ≥ u."""
    none = float(np.exp(-runs.mean)) if isinstance(runs, Poisson) else 0.0
    most = 1024
    while True:
        reached = none + np.cumsum(runs.probabilities(most))
        if reached[-1] >= u or most >= _MOST:
            return 0 if u <= none else int(np.searchsorted(reached, u)) + 1
        most *= 8
