"""What it costs to train many times and release the best run (Papernot and Steinke 2022; Liu and Talwar 2019).

Let Q be one run: it picks its hyperparameters at random from a fixed list (by a law that does not depend on private
text), trains, and returns the model with its score, all of it covered by Q's own guarantee. The tuned mechanism draws
the number of runs K, runs Q that often with fresh randomness and releases the single output of the highest score
(ties by a fixed order), and nothing else: not K, not the other scores.

**Theorem 2** (truncated negative binomial of shape η > −1 and γ in (0, 1), see :class:`NegativeBinomial`). If Q is
(λ, ε)-RDP and (λ̂, ε̂)-RDP, λ > 1, λ̂ ≥ 1, then the tuned mechanism is (λ, ε′)-RDP with

    ε′ = ε + (1 + η)(1 − 1/λ̂)·ε̂ + (1 + η)·ln(1/γ)/λ̂ + ln E[K]/(λ − 1).

**Theorem 6** (K ~ Poisson(μ); K = 0 releases something that does not depend on the text). If Q is (λ, ε)-RDP and
(ε̂, δ̂)-DP with ε̂ = ln(1 + 1/(λ − 1)), then the outcomes of K ≥ 1 add at most e^{(λ−1)ε″}, ε″ = ε + μ·δ̂ + ln μ/(λ − 1),
to Σ_y A(y)^λ A′(y)^{1−λ}. The outcome of K = 0 adds e^{−μ} to it, so here ε′ = ln(e^{−μ} + e^{(λ−1)ε″})/(λ − 1). ε″ alone,
as the theorem is usually quoted and as dp_accounting has it for μ ≥ 1, is too small at μ < 1: a test shows it.

RDP and DP are between the two neighbours in both orders, so both theorems hold under substitution as under add and
remove; the curve of Q is the one of :mod:`taciturn.privacy.accounting.renyi`, and δ̂ comes from Q's loss distribution. The
Rényi divergence of a mixture over hyperparameters is at most the largest of theirs (joint quasi-convexity), so a list of
different plans costs what the costliest order by order does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import Profile, accountant_name
from taciturn.privacy.accounting.renyi import ORDERS, RenyiCurve, renyi
from taciturn.privacy.accounting.tradeoff import TradeOff
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, Notion

NUMBER = Assumption("the number of runs was drawn from the named law, before and independently of any result", False)
SETTINGS = Assumption(
    "the settings of each run were drawn at random and afresh from one list, fixed without private text", False
)
SCORES = Assumption("each run's score is public text's, or inside the run's own guarantee", False)
ONLY_THE_BEST = Assumption(
    "only the run of the best score was released or looked at: not the number of runs, not the other scores", False
)
ASSUMPTIONS = (NUMBER, SETTINGS, SCORES, ONLY_THE_BEST)
_REFINED = 3  # orders at which δ̂ is asked of the loss distribution


@dataclass(frozen=True, slots=True)
class NegativeBinomial:
    """P(K = k) ∝ (1−γ)^k · Π_{l<k} (l+η)/(l+1), k ≥ 1, with the given mean: geometric at shape η = 1, logarithmic at 0.

    A small shape has a long tail and costs least for its mean.
    """

    mean: float
    shape: float = 1.0

    def __post_init__(self) -> None:
        if not 1 < self.mean < math.inf:
            raise UsageError(f"mean: expected a number above 1 of runs, found {self.mean!r}")
        if not -1 < self.shape < math.inf:
            raise UsageError(f"shape: expected a number above −1, found {self.shape!r}")

    @property
    def gamma(self) -> float:
        """The γ whose mean is ``mean``; rounded down, which costs more."""
        found = brentq(lambda log: math.log(_mean(math.exp(log), self.shape) / self.mean), -700.0, -1e-9, xtol=1e-12)
        return math.exp(float(found)) * (1 - 1e-9)

    def probabilities(self, most: int) -> np.ndarray:
        """P(K = 1), …, P(K = most)."""
        k = np.arange(1, most)
        ratios = (1 - self.gamma) * (k + self.shape) / (k + 1)
        first = _first(self.gamma, self.shape)
        return np.asarray(first * np.concatenate(([1.0], np.cumprod(ratios))))

    def curve(self, run: RenyiCurve) -> RenyiCurve:
        """Theorem 2 at every order of ``run``, λ̂ among the same orders."""
        orders, values, gamma = np.array(run.orders), np.array(run.values), self.gamma
        fixed = (1 + self.shape) * float(np.min((1 - 1 / orders) * values - math.log(gamma) / orders))
        return RenyiCurve(
            run.orders, tuple((values + fixed + math.log(self.mean * (1 + 1e-8)) / (orders - 1)).tolist())
        )


@dataclass(frozen=True, slots=True)
class Poisson:
    """K ~ Poisson(mean); with probability e^{−mean} there is no run at all, and something public is released."""

    mean: float

    def __post_init__(self) -> None:
        if not 0 < self.mean < math.inf:
            raise UsageError(f"mean: expected a positive number of runs, found {self.mean!r}")

    def probabilities(self, most: int) -> np.ndarray:
        """P(K = 1), …, P(K = most); the rest is K = 0 and the tail."""
        k = np.arange(1, most + 1)
        return np.asarray(np.exp(k * math.log(self.mean) - self.mean - np.array([math.lgamma(i + 1) for i in k])))

    def curve(self, run: RenyiCurve) -> RenyiCurve:
        """Theorem 6 at every order of ``run``, δ̂ from ``run`` itself (:func:`select` refines it)."""
        return RenyiCurve(run.orders, tuple(self._at(o, v, run.delta(_hat(o))) for o, v in _pairs(run)))

    def _at(self, order: float, value: float, delta_hat: float) -> float:
        some = (order - 1) * (value + self.mean * delta_hat) + math.log(self.mean)
        return max(0.0, float(np.logaddexp(-self.mean, some)) / (order - 1))


Runs = NegativeBinomial | Poisson


def _pairs(run: RenyiCurve) -> list[tuple[float, float]]:
    return list(zip(run.orders, run.values, strict=True))


def _hat(order: float) -> float:
    return math.log1p(1 / (order - 1))


def _mean(gamma: float, shape: float) -> float:
    """E[K] (Papernot and Steinke 2022, Definition 1): η(1−γ)/(γ(1−γ^η)), (1/γ − 1)/ln(1/γ) at η = 0."""
    if abs(shape) < 1e-9:
        return (1 / gamma - 1) / -math.log(gamma)
    return shape * (1 - gamma) / (gamma * -math.expm1(shape * math.log(gamma)))


def _first(gamma: float, shape: float) -> float:
    """P(K = 1) = (1−γ)η/(γ^{−η} − 1), (1−γ)/ln(1/γ) at η = 0."""
    if abs(shape) < 1e-9:
        return (1 - gamma) / -math.log(gamma)
    return (1 - gamma) * shape / math.expm1(-shape * math.log(gamma))


@dataclass(frozen=True, slots=True)
class Selected:
    """ε at ``delta`` (and the curve) of releasing the best run, beside what one run costs by the same means (``single``)."""

    epsilon: float
    delta: float
    single: float
    runs: Runs
    profile: Profile
    curve: RenyiCurve | None = None

    def guarantee(self, notion: Notion, unit: str, rests: tuple[Assumption, ...] = ASSUMPTIONS) -> Guarantee:
        """The statement; conditional, as only the person who tunes can keep all that the theorem asks for."""
        theorem = "Theorem 6" if isinstance(self.runs, Poisson) else "Theorem 2"
        common = (notion, unit, self.profile.relation, self.epsilon, self.delta)
        detail = {"mean_runs": self.runs.mean, "single_run_epsilon": self.single}
        source = f"best of a random number of runs (Papernot and Steinke 2022, {theorem})"
        name = f"Rényi divergences by quadrature; {accountant_name()}"
        if math.isinf(self.epsilon):
            reason = self.profile.reason or "no order of the Rényi curve gives a finite ε"
            return Guarantee(*common, "none", source, name, rests, reason, detail)
        attacks = None if self.curve is None else TradeOff.of(self.curve.curve(self.delta), self.epsilon, self.delta)
        return Guarantee(*common, "conditional", source, name, rests, detail=detail, trade_off=attacks)


def select(profiles: Profile | Sequence[Profile], runs: Runs, delta: float) -> Selected:
    """What it costs to release the best of ``runs`` many runs.

    profiles: the curve of one run, or of each plan on the list that a run picks from; one relation and group for all.

    >>> from taciturn.privacy.accounting.accountant import compose
    >>> from taciturn.privacy.accounting.events import PoissonGaussian
    >>> one = compose({PoissonGaussian(0.01, 1.0): 1000}, "substitution")
    >>> found = select(one, NegativeBinomial(mean=10), 1e-5)
    >>> round(found.single, 2), round(found.epsilon, 2)
    (3.11, 5.94)
    """
    each = (profiles,) if isinstance(profiles, Profile) else tuple(profiles)
    if len({(profile.relation, profile.group) for profile in each}) != 1:
        raise UsageError("profiles: expected at least one, all of one relation and group")
    blocked = next((profile for profile in each if profile.reason is not None), None)
    if blocked is None and (some := next((profile for profile in each if profile.shown), None)) is not None:
        blocked = replace(some, reason="a table of values is shown with a chance that no Rényi curve counts")
    if blocked is not None:
        return Selected(math.inf, delta, math.inf, runs, blocked)
    curves = [dict(_pairs(renyi(profile))) for profile in each]
    orders = tuple(order for order in ORDERS if all(order in curve for curve in curves))
    run = RenyiCurve(orders, tuple(max(curve[order] for curve in curves) for order in orders))
    chosen = runs.curve(run)
    found = chosen.epsilon(delta)
    if isinstance(runs, Poisson):
        found = min(found, _refined(each, run, runs, delta))
    return Selected(found, delta, run.epsilon(delta), runs, each[0], chosen)


def _refined(profiles: Sequence[Profile], run: RenyiCurve, runs: Poisson, delta: float) -> float:
    """ε with δ̂ from the loss distributions, at the orders that are best for the coarser δ̂."""
    coarse = [RenyiCurve((o,), (v,)).epsilon(delta) for o, v in _pairs(runs.curve(run))]
    best = math.inf
    for index in np.argsort(coarse)[:_REFINED]:
        order, value = run.orders[index], run.values[index]
        delta_hat = max(profile.delta(_hat(order)) for profile in profiles)
        best = min(best, RenyiCurve((order,), (runs._at(order, value, delta_hat),)).epsilon(delta))
    return best
