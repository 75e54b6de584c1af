from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from taciturn.errors import DataError
from taciturn.text.document import MASK
from taciturn.training.phase_terms import Counts
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.updates.counts import noised
from taciturn.training.values.contexts import FOLLOWS, Contexts
from taciturn.training.values.shapes import shape
from taciturn.training.values.slots import TAILS, Slots
from taciturn.training.values.table import SPREAD, Table


def table(values: dict[str, float], shapes: dict[str, float], rest: float = 0.0, std: float = 0.01) -> Table:
    """Of one context, in which all stands."""
    counts, forms = np.array(list(values.values())), np.array(list(shapes.values()))
    return Table(
        tuple(values), tuple(shapes), Contexts(((None, None),)), counts, forms,
        np.array([[*counts, *forms, rest]]), np.array([[3.0, 1.0, *[0.0] * (len(TAILS) - 2)]] * len(FOLLOWS)), (std,) * 4,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_the_file_is_the_table(seed: int) -> None:
    pairs = [(f"at {v} on {d}", f"at {MASK} on {MASK}") for v in ("17:45", "18:00", "é?") for d in ("Monday.", "9")]
    one = noised(Slots.of(pairs, Contexts.of([m for _, m in pairs], 1)), Counts(0.01, 0.1), SecretSource(seed), 0)
    assert one.values
    assert one.shapes
    other = Table.from_bytes(one.to_bytes())
    assert other.to_bytes() == one.to_bytes()
    assert (other.values, other.shapes, other.contexts, other.stds) == (one.values, one.shapes, one.contexts, one.stds)
    for name in ("value_counts", "shape_counts", "in_context", "tails"):
        assert np.array_equal(getattr(other, name), getattr(one, name))
    draws = [each.draw(0, 0, 20, np.random.default_rng(1)) for each in (one, other)]
    assert draws[0] == draws[1]


@pytest.mark.parametrize("change", [
    b"", b"[]", b"{}", b"\xff", {"schema": "taciturn-values/2"}, {"values": 3}, {"values": ["a"]}, {"contexts": [["a"]]},
    {"stds": [1, 2, 3]}, {"in_context": [[1.0]]}, {"tails": "x"}, {"value_counts": [1.0]}, {"stds": None},
])  # fmt: skip
def test_other_files_are_refused(change: bytes | dict[str, object]) -> None:
    whole = orjson.loads(table({"Monday": 3.0, "9": 1.0}, {"d": 1.0}).to_bytes())
    with pytest.raises(DataError, match="table of values"):
        Table.from_bytes(change if isinstance(change, bytes) else orjson.dumps({**whole, **change}))


def test_draws_follow_the_counts() -> None:
    """Chi-square at 10⁻⁷, of the numbers drawn at a fixed seed: values as counted, beside them the shape's others."""
    made = table({"Monday": 500.0, "Tuesday": 300.0, "17:45": 200.0}, {"dd:dd": 400.0}, rest=0.0)
    drawn = made.draw(0, 1, 20_000, np.random.default_rng(3))
    tails = Counter(d[-1] == "." for d in drawn)
    keys = Counter(v if v in made.values else shape(v) for v in (d.rstrip(".") for d in drawn))
    times = keys.pop("dd:dd")
    same = 1 / (24 * 12)  # of the times made up are 17:45 too
    clear, spread = np.array([500, 300, 200, 400]), np.array([500, 300, 200, 400 - 200])
    share = (clear + SPREAD * spread / spread.sum()) / (clear.sum() + SPREAD)
    expected = 20_000 * np.array([share[0], share[1], share[2] + share[3] * same, share[3] * (1 - same)])
    observed = np.array([keys["Monday"], keys["Tuesday"], keys["17:45"], times])
    assert observed.sum() == 20_000
    assert ((observed - expected) ** 2 / expected).sum() < chi2(3).isf(1e-7)
    assert ((np.array([tails[False], tails[True]]) - [15_000, 5_000]) ** 2 / [15_000, 5_000]).sum() < chi2(1).isf(1e-7)


def test_a_context_fills_what_it_explains() -> None:
    assert table({"Monday": 60.0}, {}, rest=40.0).drawn.filled[0] == pytest.approx(0.6, abs=0.01)
    assert table({"Monday": 60.0}, {}, rest=40.0).coverage == pytest.approx(0.6, abs=0.01)
    nothing = table({}, {}, rest=40.0)
    assert nothing.drawn.filled[0] == nothing.coverage == 0.0


def test_counts_below_the_noise_say_nothing_in_a_context() -> None:
    one = table({"Monday": 50.0, "Tuesday": 50.0}, {}, std=1.0)
    two = replace(
        one, contexts=Contexts((("on", None), (None, None))),
        in_context=np.array([[50.0, 2.9, 0.0], [0.0, 47.1, 0.0]]), tails=np.ones((len(FOLLOWS), len(TAILS))),
    )  # fmt: skip
    found = Counter(v.rstrip("".join(TAILS)) for v in two.draw(0, 0, 4000, np.random.default_rng(1)))
    assert found["Tuesday"] / 4000 == pytest.approx(SPREAD / 2 / (50 + SPREAD), abs=0.04)


numbers = st.floats(-50, 50)


@given(st.lists(numbers, min_size=2, max_size=2), numbers, st.lists(numbers, min_size=4, max_size=4), st.data())
def test_any_noise_leaves_distributions(
    values: list[float], shape_count: float, row: list[float], data: st.DataObject
) -> None:
    tails = data.draw(st.lists(numbers, min_size=len(TAILS), max_size=len(TAILS)))
    made = Table(
        ("17:45", "Monday"), ("dd:dd",), Contexts(((None, None),)), np.array(values), np.array([shape_count]),
        np.array([row]), np.array([tails] * len(FOLLOWS)), (1.0, 2.0, 3.0, 4.0),
    )  # fmt: skip
    assert 0 <= made.drawn.filled[0] <= 1
    assert 0 <= made.coverage <= 1
    assert np.all(np.diff(made.drawn.keys[0]) >= 0)
    if made.drawn.filled[0] > 0:
        assert made.drawn.keys[0, -1] == made.drawn.tails[0, -1] == 1, "else a draw might fall behind the last"
        assert all(made.draw(0, 0, 30, np.random.default_rng(1)))
