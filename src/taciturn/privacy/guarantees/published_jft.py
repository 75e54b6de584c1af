"""What JFT's light noise is said to cost (Shi et al. 2022, section 3.1 and Table 3), and what it costs: estimates.

The paper adds a little noise in phase one for the secrets that its detector missed, and accounts it at the rate p·m: as
if each step tossed a coin of the miss rate m for a missed secret. A miss is a property of the text, and is in the batch
whenever its record is, at rate p. The rates, noise and steps below are those of the authors' released code; the paper
prints ranges of ε for both phases together, which are these by exact accounting under add and remove, plus one
constant for phase two (2.56 on WikiText-2, 1.05 on ABCD).

    phase one, δ = 1e-6                  WikiText-2         ABCD            printed, with phase two
    at p·m, exact, add and remove        .17 to .36         .03 to .55      2.73 to 2.92, 1.08 to 1.60
    at p·m, Rényi, add and remove        .96 to 1.08        .87 to 1.43
    at p,   Rényi, add and remove        85.5               66.1
    at p,   exact, add and remove        81.2               62.4
    at p,   exact, substitution          159                110

Only the last line is about a secret that was missed (JFT's Definition 3 substitutes a record).
"""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import Profile, compose
from taciturn.privacy.accounting.events import PoissonGaussian, Relation
from taciturn.privacy.accounting.renyi import renyi


@dataclass(frozen=True, slots=True)
class LightNoise:
    """Phase one of a published run. ``misses``: the ends of the 95 % range of m (equal: one assumed miss rate)."""

    task: str
    rate: float
    misses: tuple[float, float]
    noise_multiplier: float
    steps: int
    delta: float

    def profile(self, thinned: float = 1.0, relation: Relation = "add-remove") -> Profile:
        """The curve at the rate p · ``thinned``."""
        return compose({PoissonGaussian(self.rate * thinned, self.noise_multiplier): self.steps}, relation)


PUBLISHED = (
    LightNoise("wikitext-2", 512 / 2361, (0.00356, 0.0072), 0.9445556640625, 1000, 1e-6),
    LightNoise("abcd", 256 / 2547, (0.0008067672103024004, 0.0116932327896976), 0.8302978515625, 1960, 1e-6),
    LightNoise("mnli", 6000 / 392702, (0.0028822402538490497, 0.01076488972382562), 0.60368652, 1081, 1.2732300828e-6),
    LightNoise("qqp", 6000 / 363846, (0.003212509558241031, 0.011670125552614308), 0.61416016, 777, 1.3742077692e-6),
    LightNoise("qnli", 2000 / 104743, (0.001244755937890738, 0.006136074703850561), 0.51037598, 282, 4.7735886885e-6),
    LightNoise("sst-2", 1000 / 67349, (1e-8, 0.018063928918950645), 0.5541748, 180, 7.4240152044e-6),
    LightNoise("wikitext-2, conservative", 512 / 2361, (0.15, 0.15), 8.345989990234376, 980, 1e-6),
    LightNoise("abcd, conservative", 256 / 2547, (0.05, 0.05), 2.09951171875, 1840, 1e-6),
)


@dataclass(frozen=True, slots=True)
class LightNoiseClaim:
    """ε of phase one at p·m, by exact accounting and by Rényi divergences: a published claim, not a bound.

    missed, missed_renyi: what holds for a missed secret, at p, by substitution; and by Rényi under add and remove.
    """

    exact: float
    renyi: float
    missed: float
    missed_renyi: float
    delta: float
    status: str = "published-claim"


def light_noise(run: LightNoise, miss: float) -> LightNoiseClaim:
    """What the paper's procedure says of phase one at the miss rate ``miss``, beside what holds.

    >>> claim = light_noise(PUBLISHED[0], 0.0072)
    >>> round(claim.exact, 2), round(claim.renyi, 2), round(claim.missed_renyi), round(claim.missed)
    (0.36, 1.08, 86, 159)
    """
    if isinstance(miss, bool) or not 0 < miss <= 1:
        raise UsageError(f"miss: expected a miss rate in (0, 1], found {miss!r}")
    thinned, whole = run.profile(miss), run.profile()
    missed = run.profile(relation="substitution").epsilon(run.delta)
    return LightNoiseClaim(
        thinned.epsilon(run.delta),
        renyi(thinned).epsilon(run.delta),
        missed,
        renyi(whole).epsilon(run.delta),
        run.delta,
    )
