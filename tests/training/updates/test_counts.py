"""The release of a table, seen from outside: its law, what enters it, and what tells one corpus from its neighbour."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from string import ascii_lowercase

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import binom, norm
from tiny import model

from chance import normal
from tables import names, vector
from taciturn.auditing.lower_bounds.two_sided import clopper_pearson, eps_lower
from taciturn.errors import UsageError
from taciturn.mechanisms.values import ValueTable
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.escape import escape
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.screening.policies.rare_words import common_words
from taciturn.screening.policies.rare_words import names as people
from taciturn.text.document import MASK
from taciturn.training.given import check_given
from taciturn.training.phase_terms import Counts
from taciturn.training.plan import Plan, Target
from taciturn.training.randomness.gaussian import SecretSource, add_noise, grid_of
from taciturn.training.randomness.keystream import stream_key
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.state.noise_key import release_digest
from taciturn.training.updates.counts import noised
from taciturn.training.values.contexts import Contexts
from taciturn.training.values.shapes import shape
from taciturn.training.values.slots import NONE, Slots
from taciturn.training.values.table import Table

ALARM = 1e-7
RARE = ["zq" + "".join(each) for each in product(ascii_lowercase, repeat=3)]
COMMON = sorted(w for w in common_words(4.0) - people() if w.isascii() and w.isalpha() and len(w) > 2)
Floats = NDArray[np.float64]


def slots(pairs: list[tuple[str, str]], least: int = 10**9) -> Slots:
    return Slots.of(pairs, Contexts.of([masked for _, masked in pairs], least))


def flat(table: Table, rule: Counts) -> Floats:
    """All that was noised and shown, in units of the noise's own σ_h."""
    parts = (table.value_counts, table.shape_counts, table.in_context, table.tails)
    return np.concatenate([share * part.ravel() for share, part in zip(rule.shares, parts, strict=True)])


# What enters


def canaries(groups: int, records: int, copies: int = 1) -> Slots:
    """``groups`` pairs of values that stand in ``records`` records each, and each of these so often."""
    masked = [f"{j}: <MASK> and <MASK>" for j in range(records)]
    pairs = [(m.replace(MASK, RARE[2 * g], 1).replace(MASK, RARE[2 * g + 1]), m) for g in range(groups) for m in masked]
    return slots(pairs * copies)


def entered(rule: Counts, records: int, copies: int = 1, groups: int = 1500, draws: int = 2) -> tuple[int, int]:
    """In how many of how many groups one of the values was shown."""
    drawn = canaries(groups, records, copies)
    hits = 0
    for step in range(draws):
        found = set(noised(drawn, rule, SecretSource(17), step).values)
        hits += sum(RARE[2 * g] in found or RARE[2 * g + 1] in found for g in range(groups))
    return hits, groups * draws


@pytest.mark.parametrize(("records", "threshold"), [(1, 4.5), (5, 7.0), (10, 11.0)])
def test_a_value_of_few_records_enters_no_more_often_than_stated(records: int, threshold: float) -> None:
    """Each group is a draw of its own: the number of groups shown is binomial, of the closed form's chance; with a false
    alarm of 10⁻⁷ it is no more than δ_h says, and with one of 10⁻⁷ more it exceeds δ_h of these for 8 records more."""
    rule = Counts(1.0, threshold)
    hits, of = entered(rule, records)
    stated = escape(rule.release, records)
    assert 0.02 < stated < 0.5
    assert hits <= binom.isf(ALARM, of, stated)
    one = norm.sf((threshold - rule.shares[0] * records) / rule.release.std)
    low, high = clopper_pearson(hits, of, ALARM)
    assert low <= 1 - (1 - one) ** 2 <= high, "not too seldom either: the threshold and the noise are what they say"
    hits, of = entered(rule, records + 8)
    assert hits > binom.isf(ALARM, of, stated)


def test_copies_of_a_record_bring_its_values_in_no_more_often() -> None:
    """Twenty copies of each of three records: as three records, and far from sixty, which would all be shown."""
    rule = Counts(1.0, 7.0)
    assert entered(rule, 3, 20, draws=1) == entered(rule, 3, 1, draws=1)
    hits, of = entered(rule, 3, 20)
    assert hits <= binom.isf(ALARM, of, escape(rule.release, 3))
    assert entered(rule, 60, draws=1, groups=50)[0] == 50


def test_what_is_shown_was_above_the_threshold_before_it_was_rounded() -> None:
    """On a grid of 1 a count of .6 is shown as 1: above .9, and was not."""
    rule = replace(Counts(1.0, 0.9), noise_multiplier=600.0)
    assert grid_of(rule.release.std) == 1.0
    n, none = 200_000, np.full(200_000, NONE)
    values = tuple(f"{i:06d}" for i in range(n))
    drawn = Slots(
        Contexts(((None, None),)), np.ones(n, bool), np.ones(n, np.int64), np.arange(n), np.arange(n),
        np.zeros(n, np.int64), np.arange(n), none, none, np.zeros(n, np.int64), values, (),
    )  # fmt: skip
    raw = np.full(n, rule.shares[0])
    add_noise(stream_key(3, "noise", 0, 0), [raw], [0], rule.release.std, 1.0, None)
    shown = np.array([int(value) for value in noised(drawn, rule, SecretSource(3), 0).values])
    assert np.sum((raw > 0.5) & (raw <= 0.9)) > 5, "such as would be shown by mistake"
    assert raw[shown].min() > rule.threshold
    assert len(shown) > 0.9 * np.sum(raw > 2)


# What tells neighbours apart

REPLICAS, OTHERS = 64, 45


def world(changed: bool) -> Slots:
    """``REPLICAS`` corpora side by side that have no word of a class, value or shape in common: in each one record says
    two things, or two others when ``changed``; the others say all four, often enough for all tables to show them. What
    follows them is the same, as the table of that is of all corpora together."""
    pairs = []
    for r in range(REPLICAS):
        words, around = COMMON[4 * r : 4 * r + 4], RARE[2 * r : 2 * r + 2]
        here, there = ((f"{words[i]} 1.", f"{words[i + 1]} 1.") for i in (0, 2))
        for j in range(2 * OTHERS + 1):
            masked = f"{j}: {around[0]} <MASK> {around[1]} <MASK>"
            said = (there if changed else here) if j == 0 else (here, there)[j % 2]
            pairs.append((masked.replace(MASK, said[0], 1).replace(MASK, said[1]), masked))
    return slots(pairs, 2)


def owners(table: Table) -> NDArray[np.int64]:
    """Of every number of a table the corpus it counts in."""
    word = {name: r for r in range(REPLICAS) for name in COMMON[4 * r : 4 * r + 4]}
    left = {name: r for r in range(REPLICAS) for name in RARE[2 * r : 2 * r + 2]}
    keys = [word[name.split(" ")[0]] for name in (*table.values, *table.shapes)]
    classes = [left.get(before or "", REPLICAS) for before, _ in table.contexts.classes]
    in_context = np.repeat(classes, len(keys) + 1)
    return np.concatenate([keys, in_context, np.full(table.tails.size, REPLICAS)]).astype(np.int64)  # tails are of all


def statistics(draws: int, mu: float, rule: Counts) -> tuple[Floats, Floats, float]:
    """The projection on the true difference, the best statistic there is, of each corpus of each draw in both worlds; and
    how many standard deviations of the noise as accounted the worlds are apart."""
    worlds = world(False), world(True)
    exact = [noised(each, replace(rule, noise_multiplier=1e-9), SecretSource(1), 0) for each in worlds]
    assert exact[0].values == exact[1].values
    assert len(exact[0].values) == len(exact[0].shapes) == 4 * REPLICAS
    difference, owner = flat(exact[1], rule) - flat(exact[0], rule), owners(exact[0])
    apart = np.sqrt(np.bincount(owner, difference**2)[:REPLICAS])
    assert np.allclose(apart, math.sqrt(0.6**2 + 0.35**2 + 0.65**2) * rule.release.distance, rtol=1e-3)
    middle = np.bincount(owner, difference * (flat(exact[0], rule) + flat(exact[1], rule)) / 2)[:REPLICAS]
    found: list[list[Floats]] = [[], []]
    for which, each in enumerate(worlds):
        for draw in range(draws):
            table = noised(each, rule, SecretSource(1000 * which + draw), 0)
            assert table.values == exact[0].values
            found[which].append((np.bincount(owner, difference * flat(table, rule))[:REPLICAS] - middle) / apart**2)
    return np.concatenate(found[0]), np.concatenate(found[1]), float(apart[0] / rule.release.distance * mu)


def test_the_best_statistic_stays_below_epsilon_and_above_that_of_half_the_distance() -> None:
    """4,096 corpora in each world. By Clopper and Pearson the lower bound exceeds a true ε with probability 10⁻⁷ at most;
    that it exceeds the ε of half the distance too shows that it could."""
    mu, delta = 1.0, 0.2
    rule = Counts(1 / mu, 7.0)
    here, there, apart = statistics(64, mu, rule)
    n = len(here)
    at = norm.isf(0.15) / apart - 0.5  # a false alarm in seven, fixed beforehand
    lower = eps_lower(int((there > at).sum()), n, int((here > at).sum()), n, delta, 1 - ALARM, one_direction=True)
    event = rule.release
    assert lower <= compose({event: 1}, "substitution").epsilon(delta)
    assert lower > compose({PoissonGaussian(1.0, 4 / mu): 1}, "substitution").epsilon(delta)
    assert np.std(np.concatenate([here + 0.5, there - 0.5])) * apart == pytest.approx(1, abs=0.06)


# The release itself


def test_each_of_the_four_tables_has_the_noise_it_says() -> None:
    """Kolmogorov and Smirnov, 10⁻⁷ for each; and no two of them the same draws."""
    rule = Counts(0.7, 10.0)
    drawn, exact = world(False), replace(Counts(0.7, 10.0), noise_multiplier=1e-9)
    table, bare = noised(drawn, rule, SecretSource(5), 0), noised(drawn, exact, SecretSource(5), 0)
    parts = []
    for name, std, share in zip(
        ("value_counts", "shape_counts", "in_context", "tails"), table.stds, rule.shares, strict=True
    ):
        assert std == pytest.approx(rule.release.std / share)
        noise = (getattr(table, name) - getattr(bare, name)).ravel()
        normal(noise, std, ALARM, grid_of(rule.release.std) / share)
        parts.append(noise[:256] / std)
    for i, j in ((0, 1), (0, 2), (1, 2), (2, 3)):
        n = min(len(parts[i]), len(parts[j]))
        assert abs(np.corrcoef(parts[i][:n], parts[j][:n])[0, 1]) < min(6 / math.sqrt(n), 0.99)


def test_the_order_of_records_says_nothing() -> None:
    rule = replace(Counts(1.0, 1.0), noise_multiplier=1e-6)
    pairs = [(f"a {v} b", f"a {MASK} b") for v in ("17:45", "zqa", "the 9", "zqb.", "zqa?")]
    tables = [noised(slots(some, 1), rule, SecretSource(2), 0) for some in (pairs, pairs[::-1])]
    assert tables[0].values == tables[1].values == tuple(sorted(tables[0].values))
    assert tables[0].shapes == tables[1].shapes == tuple(sorted(tables[0].shapes))


def test_a_release_repeats_under_one_secret_and_step_and_under_no_other() -> None:
    rule, drawn = Counts(1.0, 4.0), canaries(50, 8)
    again = [
        noised(drawn, rule, SecretSource(secret), step).to_bytes() for secret, step in ((1, 0), (1, 0), (1, 1), (2, 0))
    ]
    assert again[0] == again[1]
    assert len(set(again)) == 3
    tiny = model()
    assert len({release_digest(tiny, None, table) for table in again}) == 3, "the ledger tells tables apart"


def test_what_is_counted_is_the_slow_sum_over_records() -> None:
    rule = Counts(1.0, 4.0)
    pairs = [(f"at 17:4{i} on zq{i % 3}.", f"at {MASK} on {MASK}") for i in range(9)]
    drawn = slots(pairs, 1)
    total: dict[object, float] = {}
    for pair in pairs:
        one = Slots.of([pair], drawn.contexts)
        for key, count in vector(one, rule, *names(drawn)).items():
            total[key] = total.get(key, 0.0) + count
    found = vector(drawn, rule, *names(drawn))
    assert all(found[key] == pytest.approx(total.get(key, 0.0)) for key in found)
    assert {key for key, count in total.items() if count} <= found.keys()
    assert shape("17:40") == "dd:dd"


def test_counts_are_of_all_records_or_have_no_accounting() -> None:
    rule = Counts(1.0, 4.0)
    assert rule.event(Poisson(1.0), ("private",)) == rule.release
    for sampler in (Poisson(0.5), Shuffle(4)):
        with pytest.raises(UsageError, match="no accounting"):
            rule.event(sampler, ("private",))
    with pytest.raises(UsageError, match="at most 1"):
        Counts(1.0, 4.0, shares=(0.6, 0.6, 0.6, 0.6))


def test_the_grid_is_float64_and_the_counts_are_exact_beneath_it() -> None:
    """A count of ten million keeps its last unit: the noise is not added in single precision."""
    array = torch.full((4,), 1e7 + 0.25, dtype=torch.float64)
    SecretSource(1).add_gaussian(0, [array], 1.0)
    assert torch.equal(array, (array * 1024).round() / 1024)
    assert bool((array != array.float()).any())


def test_values_that_were_found_are_not_counted_as_known() -> None:
    """What rests on known slots has half the noise's variance: no run begins with others."""
    pairs = [("see Dana", f"see {MASK}"), ("see Ely", f"see {MASK}")]
    phase = ValueTable().phase(len(pairs), Target(delta=1e-5), known=True)
    plan = Plan("crt", (phase,), 1, Target(), "key")
    with pytest.raises(UsageError, match="moves further than Δ"):
        check_given(plan, {phase.name: slots(pairs)}, {})
    found = Slots.of(pairs, Contexts.of([f"see {MASK}"], 1), None, [["Dana"], ["Ely"]])
    check_given(plan, {phase.name: found}, {})
    check_given(replace(plan, phases=(ValueTable().phase(2, Target(delta=1e-5)),)), {phase.name: slots(pairs)}, {})
