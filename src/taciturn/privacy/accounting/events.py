"""What a training step may be, as far as any guarantee is concerned.

An event is a contract. :class:`PoissonGaussian` says that every unit of the protected part (a record, a user) was drawn by
its own coin, that what it adds was clipped to norm C, and that Normal(0, (σC)²) was added to the sum;
:class:`KindsGaussian` that units of several kinds had coins of several rates; :class:`TwoLevelGaussian` that users and
entities were drawn, and bounds how many units hang on each; :class:`SelectiveGaussian` that a model's states were noised as
well; :class:`ThresholdedCounts` that counts were noised and only large ones shown. :class:`NonPrivate` says that no noise
was added, and names the parts that were read. An event nobody wrote a theorem for is refused, not guessed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from taciturn.errors import UsageError, nearest

Part = Literal["public", "private", "skeletons", "common", "redacted", "removed", "original"]
Relation = Literal["add-remove", "substitution"]

PARTS: frozenset[str] = frozenset(get_args(Part))
RELATIONS: frozenset[str] = frozenset(get_args(Relation))
FREE: frozenset[str] = frozenset({"public", "skeletons"})
"""Parts that are the same for both neighbours, so that reading them without noise costs nothing."""


@dataclass(frozen=True, slots=True, order=True)
class PoissonGaussian:
    """One step: Poisson sampling at ``rate`` in (0, 1], noise of standard deviation ``noise_multiplier`` × C on the sum.

    An empty draw is a step like any other.
    """

    rate: float
    noise_multiplier: float

    def __post_init__(self) -> None:
        for name in ("rate", "noise_multiplier"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise UsageError(f"PoissonGaussian {name}: expected a finite number, found {value!r}")
            object.__setattr__(self, name, float(value))
        if not 0 < self.rate <= 1:
            raise UsageError(f"PoissonGaussian rate: expected a probability in (0, 1], found {self.rate}")
        if self.noise_multiplier <= 0:
            raise UsageError(
                f"PoissonGaussian noise_multiplier: expected a positive number, found {self.noise_multiplier}; "
                "a step without noise is NonPrivate(reads=...)"
            )

    def to_json(self) -> dict[str, Any]:
        return {"event": "poisson-gaussian", "rate": self.rate, "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True, slots=True, order=True)
class KindsGaussian:
    """One step over units of several kinds, drawn independently at the ``rates`` of their kinds; noise as in
    :class:`PoissonGaussian`. A rate of zero is of a kind that is never read."""

    rates: tuple[float, ...]
    noise_multiplier: float

    def __post_init__(self) -> None:
        if not isinstance(self.rates, tuple) or not any(self.rates):
            raise UsageError(f"KindsGaussian rates: expected one rate a kind, some above 0, found {self.rates!r}")
        checked = tuple(PoissonGaussian(rate, self.noise_multiplier).rate if rate else 0.0 for rate in self.rates)
        object.__setattr__(self, "rates", checked)

    @property
    def worst(self) -> PoissonGaussian:
        """What bounds any number of units: a unit of rate q < q' is one of rate q' thinned by a coin of its own, q/q', the
        same in both worlds (guarantees.md §4.4)."""
        return PoissonGaussian(max(self.rates), self.noise_multiplier)

    def to_json(self) -> dict[str, Any]:
        return {"event": "kinds-gaussian", "rates": list(self.rates), "noise_multiplier": self.noise_multiplier}


@dataclass(frozen=True, slots=True, order=True)
class TwoLevelGaussian:
    """One step in which a unit is used iff its user (``user_rate``) and all its entities (``entity_rate``, or less) are
    drawn; noise as in :class:`PoissonGaussian`. What follows is what the corpus was checked to keep: at most
    ``units_per_user`` units a user, ``users_per_entity`` users an entity, ``units_per_user_entity`` units of both."""

    user_rate: float
    entity_rate: float
    units_per_user: int
    users_per_entity: int
    units_per_user_entity: int
    noise_multiplier: float
    _LEAST: ClassVar[int] = 1

    def __post_init__(self) -> None:
        for rate in (self.user_rate, self.entity_rate):
            PoissonGaussian(rate, self.noise_multiplier)
        for name in ("units_per_user", "users_per_entity", "units_per_user_entity"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < self._LEAST:
                raise UsageError(f"TwoLevelGaussian {name}: expected a whole number ≥ {self._LEAST}, found {value!r}")

    def to_json(self) -> dict[str, Any]:
        return {"event": "two-level-gaussian", **{name: getattr(self, name) for name in TWO_LEVEL}}


TWO_LEVEL = (
    "user_rate", "entity_rate", "units_per_user", "users_per_entity", "units_per_user_entity", "noise_multiplier",
)  # fmt: skip


@dataclass(frozen=True, slots=True, order=True)
class SelectiveGaussian:
    """One step: Poisson sampling at ``rate`` in (0, 1], seen by the attacker; ``noise_multiplier`` × C on the sum of private
    gradients; ``state_noise`` × C_h on the state after each of at most ``runs`` ≥ 1 sensitive runs of a record."""

    rate: float
    noise_multiplier: float
    state_noise: float
    runs: int

    def __post_init__(self) -> None:
        for name in ("rate", "noise_multiplier", "state_noise"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
                raise UsageError(f"SelectiveGaussian {name}: expected a finite number, found {value!r}")
            object.__setattr__(self, name, float(value))
        if not 0 < self.rate <= 1:
            raise UsageError(f"SelectiveGaussian rate: expected a probability in (0, 1], found {self.rate}")
        for name in ("noise_multiplier", "state_noise"):
            if getattr(self, name) <= 0:
                raise UsageError(
                    f"SelectiveGaussian {name}: expected a positive number, found {getattr(self, name)}; a step without "
                    "noise is NonPrivate(reads=...)"
                )
        if isinstance(self.runs, bool) or not isinstance(self.runs, int) or self.runs < 1:
            raise UsageError(f"SelectiveGaussian runs: expected a whole number ≥ 1, found {self.runs!r}")

    @property
    def effective(self) -> float:
        """σ_eff: what all noises of one step are worth together.

        >>> round(SelectiveGaussian(0.1, 2.0, 4.0, 4).effective, 4)
        1.4142
        """
        return float((self.noise_multiplier**-2 + self.runs * self.state_noise**-2) ** -0.5)

    def to_json(self) -> dict[str, Any]:
        return {
            "event": "selective-gaussian",
            "rate": self.rate,
            "noise_multiplier": self.noise_multiplier,
            "state_noise": self.state_noise,
            "runs": self.runs,
        }


@dataclass(frozen=True, slots=True, order=True)
class ThresholdedCounts:
    """One release of noised counts of what stands in records (guarantees.md §3.7): Normal(0, σ_h²) on every count, and of
    tables whose keys are not known beforehand only the keys whose noised count exceeds ``threshold``.

    noise_multiplier: σ_h in units of Δ. record_weight: m₀, a record's squared weight at most. keys: of each open table that
    one record adds to at most, M; of n a record adds min(1, √(m₀/n)) to each. shares: the weights of the open tables among
    all, whose squares add up to at most one. one_sided: whether a record that becomes another with the same skeleton only
    takes from counts, or only adds, so that Δ is √m₀ and not √(2m₀). copies: 0, or m where steps without noise read what was
    shown where it stands in records, known to be one-sided: then what is protected stands in at most m of them.
    """

    noise_multiplier: float
    threshold: float
    record_weight: float
    keys: int
    shares: tuple[float, ...]
    one_sided: bool = False
    copies: int = 0

    def __post_init__(self) -> None:
        for name in ("noise_multiplier", "threshold", "record_weight"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
                raise UsageError(f"ThresholdedCounts {name}: expected a positive number, found {value!r}")
            object.__setattr__(self, name, float(value))
        if isinstance(self.keys, bool) or not isinstance(self.keys, int) or self.keys < 1:
            raise UsageError(f"ThresholdedCounts keys: expected a whole number ≥ 1, found {self.keys!r}")
        if isinstance(self.copies, bool) or not isinstance(self.copies, int) or self.copies < 0:
            raise UsageError(f"ThresholdedCounts copies: expected a whole number, found {self.copies!r}")
        if not isinstance(self.one_sided, bool) or (self.copies and not self.one_sided):
            raise UsageError("ThresholdedCounts one_sided: expected true or false, and true where values stand")
        if not isinstance(self.shares, tuple) or not self.shares or sum(a * a for a in self.shares) > 1 + 1e-12:
            raise UsageError(
                f"ThresholdedCounts shares: expected weights whose squares add up to at most 1, found {self.shares!r}"
            )
        if any(not 0 < a <= 1 for a in self.shares):
            raise UsageError(f"ThresholdedCounts shares: expected weights in (0, 1], found {self.shares!r}")
        object.__setattr__(self, "shares", tuple(map(float, self.shares)))

    @property
    def distance(self) -> float:
        """Δ: how far one record that becomes another with the same skeleton moves all tables together, in L2."""
        return math.sqrt(self.record_weight * (1 if self.one_sided else 2))

    @property
    def std(self) -> float:
        """σ_h."""
        return self.noise_multiplier * self.distance

    @property
    def gaussian(self) -> PoissonGaussian:
        """The same loss on keys that both worlds have: by substitution the pair N(±1) at 2σ_h/Δ, a Gaussian of μ = Δ/σ_h."""
        return PoissonGaussian(1.0, 2 * self.noise_multiplier)

    def to_json(self) -> dict[str, Any]:
        return {
            "event": "thresholded-counts",
            "noise_multiplier": self.noise_multiplier,
            "threshold": self.threshold,
            "record_weight": self.record_weight,
            "keys": self.keys,
            "shares": list(self.shares),
            "one_sided": self.one_sided,
            "copies": self.copies,
        }


@dataclass(frozen=True, slots=True, order=True)
class NonPrivate:
    """One step without noise that read ``reads`` (kept sorted and unique)."""

    reads: tuple[Part, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.reads, tuple) or not self.reads:
            raise UsageError(f"NonPrivate reads: expected at least one of {sorted(PARTS)}, found {self.reads!r}")
        for part in self.reads:
            if part not in PARTS:
                raise UsageError(
                    f"NonPrivate reads: {part!r} is not a part of a screened corpus; {nearest(part, PARTS)}"
                )
        object.__setattr__(self, "reads", tuple(sorted(set(self.reads))))

    @property
    def free(self) -> bool:
        """Whether only neighbour-invariant parts were read."""
        return set(self.reads) <= FREE

    @property
    def shows_records(self) -> bool:
        """Whether more was read than public records, so that a record's presence may show (guarantees.md §3.1)."""
        return self.reads != ("public",)

    def to_json(self) -> dict[str, Any]:
        return {"event": "non-private", "reads": list(self.reads)}


Event = PoissonGaussian | KindsGaussian | TwoLevelGaussian | SelectiveGaussian | ThresholdedCounts | NonPrivate
