"""The terms a phase is written in beside its sampler: what it does with what it drew, and what it shows the model.

A term is data, and says what it costs: a rule asks the sampler that it stands beside for the event of a step with its noise,
so no phase can be put together whose noise or rate is another than what is accounted for. How a rule is carried out, with
torch, is in its file of taciturn/training/updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

from taciturn.errors import UsageError
from taciturn.privacy.accounting.events import Event, NonPrivate, Part, SelectiveGaussian, ThresholdedCounts
from taciturn.training.samplers import Poisson, Sampler, Shuffle

Unit = Literal["record", "user", "user-entity", "residual"]
"""What is drawn and clipped as one: a record; all of a user's records; a user's records about one set of entities; a
private record beside its skeleton."""


class Rule(Protocol):
    """What a step does with what it drew. clip: C, zero in a plain step. noise_multiplier: σ in units of ``clip``, likewise.

    units: the kinds of units it can take. sensitive: whether its records come with flags of sensitive tokens; what it
    protects is then what the policy detects. dropout: whether dropout runs within its steps, which is said of a plan and
    decides nothing: passes of clipped gradients have none, whatever a rule says (persample/isolated.py).
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def clip(self) -> float: ...
    @property
    def noise_multiplier(self) -> float: ...
    @property
    def units(self) -> Sequence[Unit]: ...
    @property
    def sensitive(self) -> bool: ...
    @property
    def dropout(self) -> bool: ...

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:
        """What one step costs. Raises UsageError for a sampler beside which it has no accounting."""


@dataclass(frozen=True, slots=True)
class Plain:
    """Mean loss per token, no clipping, no noise."""

    clip: ClassVar[float] = 0.0
    noise_multiplier: ClassVar[float] = 0.0
    units: ClassVar[tuple[Unit, ...]] = ("record",)
    sensitive: ClassVar[bool] = False
    dropout: ClassVar[bool] = True

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:
        if not isinstance(sampler, Shuffle):
            raise UsageError("plain steps take shuffled batches")
        return NonPrivate(tuple(reads))


@dataclass(frozen=True, slots=True)
class ClipNoise:
    """Per-record gradients clipped to ``clip``, summed, plus Gaussian noise, over the constant q·N.

    clipping: flat; per-layer (each of L layers to clip/√L); automatic (normalised to clip); adaptive (flat, and ``clip``
    follows the ``quantile`` of the gradient norms at speed ``quantile_rate``, from a count noised with ``count_noise``).
    noise_multiplier: of the whole step. With adaptive clipping the sum gets more noise than that and the count the rest:
    a record moves the pair (sum/(z_Δ·C), (count − ½)/σ_b) by at most √(z_Δ⁻² + (2σ_b)⁻²) = 1/noise_multiplier
    (Andrew et al. 2021, Theorem 1).
    """

    clip: float
    noise_multiplier: float
    clipping: Literal["flat", "per-layer", "automatic", "adaptive"] = "flat"
    quantile: float = 0.5
    quantile_rate: float = 0.2
    count_noise: float = 10.0

    units: ClassVar[tuple[Unit, ...]] = ("record", "user", "user-entity")
    sensitive: ClassVar[bool] = False
    dropout: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.adapts and self.count_noise <= self.noise_multiplier / 2:
            raise UsageError(
                f"count_noise {self.count_noise:g} must be above half the noise multiplier {self.noise_multiplier:g}: the "
                "count alone would cost more than the whole step may"
            )

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:  # noqa: ARG002
        return sampler.gaussian(self.noise_multiplier)

    @property
    def adapts(self) -> bool:
        return self.clipping == "adaptive"

    @property
    def factors(self) -> str:
        """The name of the clipping rule in `taciturn.persample.clip.RULES`."""
        return "flat" if self.adapts else self.clipping

    @property
    def sum_noise(self) -> float:
        """z_Δ: the noise multiplier of the sum of gradients."""
        if not self.adapts or self.noise_multiplier == 0:
            return self.noise_multiplier
        return float((self.noise_multiplier**-2 - (2 * self.count_noise) ** -2) ** -0.5)


@dataclass(frozen=True, slots=True)
class SelectiveState:
    """Plain gradients of public tokens, per-record gradients of sensitive ones clipped to ``clip`` and noised, and the LSTM
    state clipped to ``state_clip`` and noised wherever a sensitive run ends (taciturn.training.updates.selective).

    noise_multiplier, state_noise: standard deviations in units of ``clip`` and ``state_clip``. runs: sensitive runs of a
    record after which the rest of it counts as sensitive.
    """

    clip: float
    noise_multiplier: float
    state_clip: float
    state_noise: float
    runs: int

    units: ClassVar[tuple[Unit, ...]] = ("record",)
    sensitive: ClassVar[bool] = True
    dropout: ClassVar[bool] = False

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:  # noqa: ARG002
        if not isinstance(sampler, Poisson):
            raise UsageError(f"no accounting for sensitive tokens drawn by {type(sampler).__name__}; use Poisson(rate)")
        return SelectiveGaussian(sampler.rate, self.noise_multiplier, self.state_noise, self.runs)


@dataclass(frozen=True, slots=True)
class Residual:
    """The mean gradient of ``batch_size`` skeletons, as it is, plus clipped and noised differences between the gradients of
    private records and of their skeletons (docs/guarantees.md, "Residuals"). The skeletons are drawn apart from the
    records: those of the records drawn would show which were."""

    noised: ClipNoise
    batch_size: int

    units: ClassVar[tuple[Unit, ...]] = ("residual",)
    sensitive: ClassVar[bool] = False
    dropout: ClassVar[bool] = False

    @property
    def clip(self) -> float:
        return self.noised.clip

    @property
    def noise_multiplier(self) -> float:
        return self.noised.noise_multiplier

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:
        return self.noised.event(sampler, reads)


@dataclass(frozen=True, slots=True)
class LocalUpdates:
    """Each drawn user trains a copy of the model on what was drawn of its records, by plain SGD at ``lr`` in batches of
    ``batch_size`` for ``epochs``; what it moved is clipped to ``clip``, weighted, summed, and noised once (McMahan et al.
    2018, Algorithm 1; UeDP, Algorithm 1).

    noise_multiplier: of the sum, in units of ``clip``. caps: ŵ_u, ŵ_e and ŵ_s of the weights min(n/ŵ, 1) of users, detected
    and extended entities (UeDP, lines 3–5); None for weights of one.
    """

    clip: float
    noise_multiplier: float
    lr: float
    batch_size: int
    epochs: int = 1
    caps: tuple[float, float, float] | None = None

    units: ClassVar[tuple[Unit, ...]] = ("user",)
    sensitive: ClassVar[bool] = False
    dropout: ClassVar[bool] = True

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:  # noqa: ARG002
        return sampler.gaussian(self.noise_multiplier)


@dataclass(frozen=True, slots=True)
class Counts:
    """One release of how often values, shapes of values, both in their contexts, and what follows them stand behind the
    masks of a record's skeleton; values and shapes are shown if their noised counts exceed ``threshold``.

    noise_multiplier: σ_h in units of Δ (:class:`.events.ThresholdedCounts`). record_weight: m₀; of n masks a record adds
    min(1, √(m₀/n)) once to each thing it has. keys: M, masks of a record that count. shares: weights of the four (docs/
    guarantees.md §3.7). one_sided: the values are known where they stand, and to be there whatever else is masked. copies:
    of values that plain steps read where they stand, 0 where none do.
    """

    noise_multiplier: float
    threshold: float
    record_weight: float = 2.0
    keys: int = 16
    shares: tuple[float, float, float, float] = (0.6, 0.35, 0.65, 0.21)
    one_sided: bool = False
    copies: int = 0

    clip: ClassVar[float] = 0.0
    units: ClassVar[tuple[Unit, ...]] = ("record",)
    sensitive: ClassVar[bool] = False
    dropout: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if (
            sum(share * share for share in (*self.shares, self.shares[-1])) > 1
        ):  # what follows a mask is never one-sided
            raise UsageError(
                f"shares: expected weights whose squares, the last twice, add up to at most 1, found {self.shares}"
            )

    @property
    def release(self) -> ThresholdedCounts:
        """What is released, whatever is drawn: all of it, as nothing else is accounted for."""
        shown = self.shares[:2]
        return ThresholdedCounts(
            self.noise_multiplier, self.threshold, self.record_weight, self.keys, shown, self.one_sided, self.copies
        )

    def event(self, sampler: Sampler, reads: Sequence[Part]) -> Event:  # noqa: ARG002
        if sampler != Poisson(1.0):
            raise UsageError("counts are of all records, drawn by Poisson(1.0): no accounting for a sample of them")
        return self.release


@dataclass(frozen=True, slots=True)
class Fill:
    """What stands in the place of `<MASK>`: up to ``longest`` tokens sampled anew for every batch, from the model as it was
    at the start (initial) or as it is (self). loss: whether those tokens are targets. Free, as it looks at nothing but the
    text with its masks and the model (docs/guarantees.md, "Filled skeletons").

    table: the phase whose table of values fills masks first, with the best of ``candidates`` in the eyes of that model;
    these tokens are targets like all others. With ``longest`` 0 the other masks stay. known: a digest of the public values
    that shapes are made of, None for built-in lists.
    """

    source: Literal["initial", "self"]
    loss: bool = False
    longest: int = 3
    table: str | None = None
    candidates: int = 1
    known: str | None = None

    @property
    def asks(self) -> bool:
        """Whether a model is asked at all."""
        return bool(self.longest) or self.candidates > 1
