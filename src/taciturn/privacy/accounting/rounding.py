"""Every ε and μ of a certificate, rounded up; and whether a certified number agrees with one computed again.

Another machine's transforms differ in their last bits, which δ − ε inversion magnifies with the number of steps and 1/δ:
between NumPy's and SciPy's ε moved by 1e-9 of itself for 1,000 steps at δ = 1e-5, and by up to 4e-6 at δ = 1e-9, so where
a plain transform blurs δ, ε is taken from tilted ones (grids.BLURRED), which move it by less than 1e-7
(tests/privacy/accounting/test_rounding.py). An issued ε is rounded up to nine digits, and a verifier lets it lie below its
own by NOISE and no more: less would be a stronger claim than the run supports. More is a weaker one, as from an accountant
that was looser, and true. μ is read off differences of a curve far out, which moves it by up to 6e-6,
at δ = 1e-9 by 4e-5: it is rounded up to the four digits that are printed, and may be what they are for a μ that is smaller
by NOISE_OF_MU; no less.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from typing import Any

from taciturn.privacy.accounting.tradeoff import shortened

DIGITS = 9
NOISE = 5e-7
NOISE_OF_MU = 1e-4
EXACT = 1e-9
"""Of numbers that bound no attack: miss rates and factors, in either direction."""


def bounds_attacks(name: str) -> bool:
    """Whether a field holds what an attack may learn or find at most (an ε, a μ, a share), so that less is the stronger
    claim."""
    return name in ("epsilon", "mu", "detected") or name.startswith("epsilon_") or name.endswith("_epsilon")


def up(value: float) -> float:
    """The smallest number of nine digits that is no less. Rounding to a double is monotone, so neither is the result.

    >>> up(2.8400000001), up(3.0), up(math.inf)
    (2.84000001, 3.0, inf)
    """
    if value == 0 or not math.isfinite(value):
        return value
    return float(Context(prec=DIGITS, rounding=ROUND_CEILING).create_decimal(repr(value)))


def upwards(value: Any, name: str = "") -> Any:
    """``value`` (plain JSON) with every ε and μ in it rounded up, but for what is quoted from other files."""
    if isinstance(value, dict):
        quoted = ("plan", "evidence", "target", "ledger_steps")
        return {key: inner if key in quoted else upwards(inner, key) for key, inner in value.items()}
    if isinstance(value, list):
        return [upwards(inner, name) for inner in value]
    if not (isinstance(value, float) and bounds_attacks(name)):
        return value
    return shortened(value) if name == "mu" else up(value)


def agrees(name: str, certified: float, recomputed: float) -> bool:
    """Whether a certified number, of the field ``name``, is what was computed again (not rounded), or claims less."""
    if name == "mu":
        return certified >= shortened(recomputed * (1 - NOISE_OF_MU))
    if bounds_attacks(name) and recomputed == 0:  # worlds that are the same: no accountant is looser about that
        return 0 <= certified <= NOISE
    if bounds_attacks(name):
        return certified >= recomputed * (1 - NOISE)
    return math.isclose(certified, recomputed, rel_tol=EXACT)
