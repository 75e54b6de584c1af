"""Bounds against their definitions, and exact coverage by enumeration; simulations state their false-alarm rate."""

from __future__ import annotations

import itertools
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom, hypergeom

from taciturn.errors import UsageError
from taciturn.exact_bounds import finite_upper, upper
from taciturn.screening.bounds import Stratum, lower, needed, needed_at, ratio_upper
from taciturn.screening.measuring.sample import allocate


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (0, 200), (1, 10), (20, 200), (198, 200)])
def test_upper_solves_the_binomial_equation(hits: int, n: int) -> None:
    root = brentq(lambda p: binom.cdf(hits, n, p) - 0.05, 1e-12, 1 - 1e-12, xtol=1e-14)
    assert upper(hits, n) == pytest.approx(root, abs=1e-10)
    assert lower(n - hits, n) == pytest.approx(1 - root, abs=1e-10)


def test_ends() -> None:
    assert upper(0, 0) == upper(7, 7) == 1.0
    assert lower(0, 0) == lower(0, 7) == 0.0
    assert ratio_upper([], []) == ratio_upper([Stratum(10, 0, 0)], [Stratum(10, 0, 0)]) == 1.0
    assert finite_upper(0, 0, 7) == finite_upper(7, 7, 9) == 1.0
    with pytest.raises(UsageError, match="cannot come from a population of 6"):
        finite_upper(0, 7, 6)


@pytest.mark.parametrize("population", [30, 60])
def test_sampling_without_replacement_keeps_the_level(population: int) -> None:
    """Exact: every number of misses in the population, every sample size."""
    for n in (5, 10, 20):
        bounds = np.array([upper(x, n) for x in range(n + 1)])
        for missed in range(population + 1):
            mass = hypergeom.pmf(np.arange(n + 1), population, missed, n)
            assert mass[bounds < missed / population].sum() <= 0.05 + 1e-12


@pytest.mark.parametrize(("bound", "misses"), [(0.01, 0), (0.01, 3), (0.3, 1)])
def test_needed_is_the_smallest_number(bound: float, misses: int) -> None:
    n = needed(bound, misses)
    assert upper(misses, n) <= bound < upper(misses, n - 1)


def test_needed_at_a_rate() -> None:
    n = needed_at(0.05, 0.02)
    assert n is not None
    assert upper(-(-n * 2 // 100), n) <= 0.05
    assert needed_at(0.05, 0.05) is None
    assert needed_at(0.01, 0.0) == needed(0.01) == 299
    with pytest.raises(UsageError, match="must lie in"):
        needed(0.0)


def test_sixty_of_sixty_labelled_and_none_missed_is_none() -> None:
    assert finite_upper(0, 60, 60) == 0.0
    assert finite_upper(3, 60, 60) == 3 / 60
    everything = [Stratum(40, 40, 30), Stratum(20, 20, 30)]
    assert ratio_upper([Stratum(40, 40, 0), Stratum(20, 20, 0)], everything) == 0.0
    assert ratio_upper([Stratum(40, 40, 1), Stratum(20, 20, 2)], everything) == 3 / 60


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_the_hypergeometric_bound_is_its_definition(n: int, confidence: float) -> None:
    """By trying every size of the population up to the largest, and every number of hits in it."""
    for most, hits in itertools.product((n, n + 1, n + 9, 4 * n), range(n)):
        slow = max(
            missed / size
            for size in range(n, most + 1)
            for missed in range(hits, size - (n - hits) + 1)
            if hypergeom.cdf(hits, size, missed, n) > (1 - confidence) * (1 - 1e-9)
        )
        assert finite_upper(hits, n, most, confidence) == pytest.approx(slow, abs=1e-12)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_a_bound_that_needs_no_size_is_above_that_of_every_size(confidence: float) -> None:
    """Where nearly all were missed the binomial tail is the smaller one: there it is 1."""
    for n in (2, 4, 7):
        for size, missed in ((k, m) for k in range(n, 20 * n + 1) for m in range(k + 1)):
            tail = hypergeom.cdf(range(n), size, missed, n)
            short = [
                hits for hits in range(n) if tail[hits] > 1 - confidence and upper(hits, n, confidence) < missed / size
            ]
            assert short == [], (n, size, missed)
    assert upper(6, 7, confidence) == 1.0 > upper(5, 7, confidence)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
def test_a_known_size_never_widens_the_bound(confidence: float) -> None:
    for n in (1, 2, 3, 7, 20, 60):
        for hits in range(n + 1):
            bounds = [finite_upper(hits, n, most, confidence) for most in (n, n + 1, 2 * n, 5 * n, 19 * n, 21 * n)]
            assert max(bounds) <= upper(hits, n, confidence) + 1e-12
            assert bounds == sorted(bounds)


def test_a_bound_of_a_large_sample_is_exact_too() -> None:
    for hits, n, most in ((3, 900, 1800), (300, 900, 1200), (880, 900, 950)):
        worst = finite_upper(hits, n, most)
        size = next(k for k in range(most, n - 1, -1) if abs(worst * k - round(worst * k)) < 1e-9 * k)
        missed = round(worst * size)
        assert hypergeom.cdf(hits, size, missed, n) >= 0.05 * (1 - 1e-5)
        assert hypergeom.cdf(hits, most, int(worst * most) + 1, n) <= 0.05


@pytest.mark.parametrize(("records", "drawn"), [(12, 5), (14, 11), (9, 9)])
def test_the_rate_among_records_with_a_secret_keeps_the_level(records: int, drawn: int) -> None:
    """Exact, though nobody knows how many records hold a secret: every such number, every number of misses among them, every
    outcome of a simple random sample of records."""
    bounds = {(h, m): finite_upper(m, h, records - drawn + h) for h in range(1, drawn + 1) for m in range(h + 1)}
    for held in range(1, records + 1):
        for missed in range(held + 1):
            wrong = sum(
                hypergeom.pmf(h, records, held, drawn) * hypergeom.pmf(m, held, missed, h)
                for (h, m), bound in bounds.items()
                if h <= held and bound < missed / held - 1e-12
            )
            assert wrong <= 0.05 + 1e-9


def test_doubt_never_helps_where_the_size_is_known() -> None:
    """A record in doubt counts as a miss if it would be one, else as nothing: whatever it is, the bound is no smaller."""
    for n, hits, more in itertools.product(range(1, 14), range(14), (0, 1, 3, 30)):
        if hits <= n:
            counted = finite_upper(hits, n, n + more)
            assert counted >= finite_upper(hits, n + 1, n + 1 + more) - 1e-12  # it held a secret, found
            if hits:
                assert counted >= finite_upper(hits - 1, n - 1, n - 1 + more) - 1e-12  # it held none


def _by_size(records: int, missed: int) -> tuple[list[Stratum], list[Stratum]]:
    """Three strata drawn by size, a quarter of the records in the first."""
    parts = [(0.25, missed), (0.25, 0), (0.5, 0)]
    hits = [Stratum(int(40_000 * w), int(400 * w), m) for w, m in parts]
    base = [Stratum(int(40_000 * w), int(400 * w), int(records * w)) for w, _ in parts]
    return hits, base


WIDTHS = [(40, 0), (40, 1), (80, 0), (80, 1), (80, 3), (200, 0), (200, 2), (200, 10), (200, 40)]


@pytest.mark.parametrize(("records", "missed"), WIDTHS)
def test_strata_drawn_by_size_lose_nothing_without_a_miss_and_little_with_some(records: int, missed: int) -> None:
    """Twice as wide is what two bounds at half the error each were."""
    simple = upper(missed, records)
    for expected in (0.8 * records, records, 1.5 * records):
        bound = ratio_upper(*_by_size(records, missed), expected=expected)
        if not missed:
            assert bound == pytest.approx(simple, rel=1e-3)
        if expected == records:
            assert simple * (1 - 1e-9) <= bound <= (1.3 if missed else 1.001) * simple


def test_the_table_of_widths_is_computed() -> None:
    rows = [
        f"| {records} | {missed} | {upper(missed, records):.4f} | "
        f"{ratio_upper(*_by_size(records, missed), expected=records):.4f} |"
        for records, missed in WIDTHS
    ]
    page = (Path(__file__).parents[2] / "docs" / "detectors.md").read_text("utf-8")
    assert [row for row in rows if row not in page] == []


def test_no_bound_of_strata_drawn_below_their_share_could_keep_up() -> None:
    """One stratum drawn at half its share: with n/4 fewer draws from it, its misses stay unseen more often than the simple
    bound allows, so a bound as narrow as that one would not hold."""
    size, drawn, theta = 20_000, 100, upper(0, 40)
    held = 4_000  # of 40,000 records, all misses in the half that is drawn at half its share
    unseen = hypergeom.pmf(0, size, int(theta * held) + 1, drawn)
    assert unseen > 4 * 0.05
    assert hypergeom.pmf(0, 2 * size, int(theta * held) + 1, 2 * 2 * drawn) < 0.06  # the simple sample of as many, 400


def _coverage(sizes: list[int], drawn: list[int], held: list[int], lost: list[int], expected: float, seed: int) -> int:
    """In how many of 200 samples, drawn without replacement, the bound is below the truth."""
    generator, truth, failures = np.random.default_rng(seed), sum(lost) / sum(held), 0
    for _ in range(200):
        base, hits = [], []
        for size, n, k, m in zip(sizes, drawn, held, lost, strict=True):
            found = generator.multivariate_hypergeometric([m, k - m, size - k], n)
            base.append(Stratum(size, n, int(found[0] + found[1])))
            hits.append(Stratum(size, n, int(found[0])))
        failures += ratio_upper(hits, base, expected=expected) < truth
    return failures


@pytest.mark.parametrize("expected", [5.0, 400.0])
@pytest.mark.parametrize(
    ("sizes", "drawn", "held", "lost"),
    [
        ([6000, 4000], [240, 160], [600, 400], [30, 0]),  # by size
        ([6000, 4000], [60, 340], [120, 2800], [90, 60]),  # the misses where little is drawn
        ([9000, 900, 100], [90, 9, 1], [300, 300, 90], [3, 3, 60]),
        ([300, 200], [150, 100], [300, 200], [12, 0]),  # everything holds a secret, half is drawn
    ],
)
def test_the_betting_bound_keeps_the_level_whatever_is_expected(
    sizes: list[int], drawn: list[int], held: list[int], lost: list[int], expected: float
) -> None:
    """Fixed seeds. At a true level of 5 % 10 failures of 200 are expected, and 28 or more have a probability of 1e-6."""
    assert _coverage(sizes, drawn, held, lost, expected, seed=17) < 28


def test_the_betting_bound_keeps_the_level_exactly() -> None:
    """By enumeration of every outcome: two strata of unlike rates, a grid of shares with a secret and of those missed."""
    sizes, drawn = (80, 20), (7, 4)
    each = [[(h, m) for h in range(n + 1) for m in range(h + 1)] for n in drawn]
    outcomes = list(itertools.product(*each))
    bounds = np.array(
        [
            ratio_upper(
                [Stratum(s, n, m) for s, n, (_, m) in zip(sizes, drawn, of, strict=True)],
                [Stratum(s, n, h) for s, n, (h, _) in zip(sizes, drawn, of, strict=True)],
                confidence=0.8,
                expected=6,
            )
            for of in outcomes
        ]
    )
    for rates in itertools.product((0.3, 1.0), (0.1, 0.5, 0.9), (0.3, 1.0), (0.1, 0.5, 0.9)):
        held = [size * share for size, share in zip(sizes, rates[::2], strict=True)]
        truth = sum(k * m for k, m in zip(held, rates[1::2], strict=True)) / sum(held)
        mass = [
            [binom.pmf(h, n, k) * binom.pmf(m, h, r) for h, m in of]
            for n, of, k, r in zip(drawn, each, rates[::2], rates[1::2], strict=True)
        ]
        wrong = np.outer(*mass).ravel()[bounds < truth - 1e-9].sum()
        assert wrong <= 0.2 + 1e-9


def test_a_stratum_nobody_looked_at_may_be_all_misses() -> None:
    seen = [Stratum(900, 300, 0)], [Stratum(900, 300, 90)]
    unseen = Stratum(100, 0, 0)
    bound = ratio_upper([*seen[0], unseen], [*seen[1], unseen], expected=90)
    assert bound >= 100 / (100 + 270)  # as many misses as records there, among the 270 or so with a secret elsewhere
    assert ratio_upper(*seen, expected=90) == pytest.approx(upper(0, 90), rel=1e-3)


@pytest.mark.parametrize("sizes", [[1000, 100, 3], [5, 5, 5], [1, 200], [7]])
def test_every_draw_goes_where_one_stands_for_most(sizes: list[int]) -> None:
    for n in range(1, min(sum(sizes), 40) + 1):
        drawn = allocate(sizes, n)
        assert sum(drawn) == n
        assert all(d <= s for d, s in zip(drawn, sizes, strict=True))
        if n >= len(sizes):
            worst = max(Fraction(s, d) for s, d in zip(sizes, drawn, strict=True))
            assert worst == 1 or sum(s // worst + 1 for s in sizes) > n  # no division of n has a smaller one
    assert allocate(sizes, 10_000) == sizes


def test_the_page_says_by_what_the_weighted_bound_is_wider() -> None:
    page = (Path(__file__).parents[2] / "docs" / "detectors.md").read_text("utf-8")
    wider = max(
        ratio_upper(*_by_size(records, missed), expected=records) / upper(missed, records) for records, missed in WIDTHS
    )
    said = re.search(r"at most (\d+) % wider", page)
    assert said is not None
    assert 100 * (wider - 1) <= int(said[1]) <= 100 * (wider - 1) + 5


def test_numbers_too_large_to_go_through_get_the_bound_that_needs_no_size() -> None:
    """A certificate may name any: 10^9 of 1.5 · 10^9 would take more memory than there is."""
    for hits, n, population in [(5, 10**9, 15 * 10**8), (5, 10**6, 2 * 10**6), (10**6, 10**9, 10**9 + 1)]:
        assert finite_upper(hits, n, population) == upper(hits, n)
    assert finite_upper(10**6, 10**9, 10**9) == 1e-3
