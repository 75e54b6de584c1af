"""UeDP's Algorithm 1 as printed, in one dimension: an attack that beats the ε its paper claims (Lai et al. 2022).

    python examples/beat_the_published_uedp_epsilon.py

The corpus: |U| users; all of them use one entity e′, a product's name say. A user's sentence with e′ pulls by +3β, the
others by −β together, so its clipped update is +β when e′ is drawn and −β when it is not. The other world lacks one user
u′ and, as the paper's Definition 2 has it, every sentence with e′. The noise is line 14's: z(q_u|U| + 1)β on the sum.
Lemma 1 and Theorem 1 charge one user's update of β at the rate q_u·q_e; what moves is every drawn user's, by 2β. The
sensitive share of the sentences is what the published curves multiply the rate by (docs/guarantees.md, section 8).

The attacker sees all noisy updates and takes the likelihood ratio; its threshold is fixed on one half of the runs, the
other half gives a lower bound (Clopper and Pearson) wrong with probability at most 1 − confidence. Exit code 0 if it lies
above the published ε and below what taciturn proves of the same algorithm.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from scipy.stats import binom

from taciturn.auditing.lower_bounds.two_sided import eps_lower
from taciturn.privacy.guarantees.published_uedp import published_bound, published_claim

USERS, USER_RATE, ENTITY_RATE, Z, STEPS, DELTA, BETA = 100, 0.05, 0.5, 2.0, 20, 1e-5, 1.0
WITH, WITHOUT = (3.0 * BETA,), (-0.5 * BETA, -0.5 * BETA)  # gradients of a user's sentences with e′, and of the others
NOISE = Z * (USER_RATE * USERS + 1) * BETA  # line 14, times the common denominator


def local_update(with_entity: tuple[float, ...], others: tuple[float, ...], drawn: bool) -> float:
    """Lines 20 to 30, one local step of rate 1 in the direction of the gradients, weights 1; q_s = 1 draws the others."""
    total = (sum(with_entity) if drawn else 0.0) + sum(others)
    return total * min(1.0, BETA / abs(total)) if total else 0.0


def updates(rng: np.random.Generator, runs: int, present: bool) -> np.ndarray:
    """Line 13's sums with line 15's noise, (runs, STEPS); ``present``: with u′ and e′."""
    others = rng.binomial(USERS - 1, USER_RATE, (runs, STEPS))  # line 8, of the users who stay
    entity = rng.random((runs, STEPS)) < ENTITY_RATE  # line 10
    pull, rest = local_update(WITH, WITHOUT, True), local_update(WITH, WITHOUT, False)
    if present:
        one = (rng.random((runs, STEPS)) < USER_RATE) * local_update((), (BETA,), True)  # u′, in sentences without e′
        total = others * np.where(entity, pull, rest) + one
    else:
        total = others * rest
    return np.asarray(total + NOISE * rng.standard_normal((runs, STEPS)))


def density(x: np.ndarray, present: bool) -> np.ndarray:
    """Of one noisy sum, without the constant."""
    n = np.arange(USERS)
    law, pull, rest = (
        binom.pmf(n, USERS - 1, USER_RATE),
        local_update(WITH, WITHOUT, True),
        local_update((), WITHOUT, True),
    )
    cases = [(1.0, rest, 0.0)]
    if present:
        cases = [
            (e * u, side, one)
            for e, side in ((ENTITY_RATE, pull), (1 - ENTITY_RATE, rest))
            for u, one in ((USER_RATE, BETA), (1 - USER_RATE, 0.0))
        ]
    total = np.zeros_like(x)
    for weight, side, one in cases:
        total += weight * np.exp(-0.5 * ((x[:, None] - side * n - one) / NOISE) ** 2) @ law
    return total


def attack(runs: int, seed: int, confidence: float) -> float:
    """Lower bound on ε at DELTA, as in beat_the_add_remove_epsilon.py."""
    rng = np.random.default_rng(seed)
    x = np.linspace(-8 * NOISE - USERS / 4, 8 * NOISE + USERS / 4, 4001)
    ratio = np.log(density(x, True)) - np.log(density(x, False))
    worlds = [np.interp(updates(rng, runs, present), x, ratio).sum(axis=1) for present in (True, False)]
    (train1, test1), (train0, test0) = (np.split(world, [runs // 2]) for world in worlds)
    n, ranked = len(train0), np.sort(train0)[::-1]
    passing = np.unique(np.geomspace(20, n / 4, 40).astype(int))
    bounds = [
        eps_lower(int((train1 > ranked[k]).sum()), n, int(k), n, DELTA, confidence, one_direction=True) for k in passing
    ]
    threshold = ranked[passing[int(np.argmax(bounds))]]
    hits, alarms = int((test1 > threshold).sum()), int((test0 > threshold).sum())
    return eps_lower(hits, len(test1), alarms, len(test0), DELTA, confidence, one_direction=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000, help="runs of each world (even)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--confidence", type=float, default=0.999)
    args = parser.parse_args(argv)
    share = len(WITH) / (len(WITH) + len(WITHOUT))
    claim = published_claim(USER_RATE, ENTITY_RATE, share, Z, STEPS, DELTA).epsilon
    proved = published_bound(USERS - 1, USER_RATE, NOISE / BETA, STEPS, DELTA).epsilon
    found = attack(args.runs, args.seed, args.confidence)
    print(
        f"{USERS} users, q_u = {USER_RATE}, q_e = {ENTITY_RATE}, z = {Z}, {STEPS} steps, δ = {DELTA}, "
        f"{args.runs:,} runs each, seed {args.seed}"
    )
    print(f"  ε as published                               {claim:6.3f}")
    print(f"  ε of the attack, at least (p = {1 - args.confidence:.0e})         {found:6.3f}")
    print(f"  ε as proved here for the same algorithm      {proved:6.3f}")
    return 0 if claim < found <= proved else 1


if __name__ == "__main__":
    sys.exit(main())
