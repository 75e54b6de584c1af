"""Plots: inline SVG that stands alone among others."""

from __future__ import annotations

import math
import re

import pytest

from taciturn.reporting.figures import plots
from taciturn.reporting.figures.drawing import Line

LINES = [Line("a", 0, [1.0, 2.0, 3.0], [30.0, 3.0, 2.0]), Line("b", 9, [1.0, 3.0], [30.0, 2.5])]


def test_two_of_the_same_do_not_share_ids() -> None:
    first, second = (plots.utility(LINES, "epoch", "perplexity", key) for key in ("one", "two"))
    ids = [set(re.findall(r'id="([^"]+)"', svg)) for svg in (first, second)]
    assert all(ids)
    assert not ids[0] & ids[1]


def test_equal_input_gives_equal_bytes() -> None:
    assert plots.utility(LINES, "epoch", "perplexity", "k") == plots.utility(LINES, "epoch", "perplexity", "k")


def test_names_are_escaped_and_read_aloud() -> None:
    svg = plots.utility([Line('<b>"x"', 0, [1.0, 2.0], [2.0, 1.0])], "epoch", "perplexity", "k")
    assert "<b>" not in svg
    assert 'aria-label="Held-out perplexity along training for &lt;b&gt;&quot;x&quot;"' in svg


@pytest.mark.parametrize("log", [False, True])
def test_empty_and_degenerate_input_is_drawn(log: bool) -> None:
    assert plots.roc([Line("a", 0, [0.0, 0.0, 1.0], [0.0, 1.0, 1.0])], log, "k").startswith("<svg")
    assert plots.exposure([("a", 0, [0.0, 19.93])], math.log2(10**6), None, "k").startswith("<svg")
    assert plots.spent([Line("a", 0, [1.0], [0.5])], None, "k").startswith("<svg")


def test_a_run_name_with_dollars_is_not_mathematics() -> None:
    svg = plots.exposure([("cost $5 and $6", 0, [1.0])], 20.0, 7.61, "k")
    assert ">cost $5 and $6</text>" in svg
