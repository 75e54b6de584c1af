"""Draws docs/images/gallery/ from made-up numbers: `python docs/gallery.py`. One picture a kind of plot."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path

import taciturn.reporting.figures.budget as budget
from taciturn.reporting.figures import plots
from taciturn.reporting.figures.drawing import Line

FOLDER = Path(__file__).parent / "images" / "gallery"


def _lines(x: list[float], *curves: Callable[[float], float]) -> list[Line]:
    return [
        Line(name, slot, x, [curve(v) for v in x]) for slot, (name, curve) in enumerate(zip("ab", curves, strict=False))
    ]


def pictures() -> dict[str, str]:
    """The name of each plot of reporting/figures/plots.py and what it draws of numbers made up here."""
    share = [i / 50 for i in range(51)]
    deltas = [10.0**-i for i in range(8, 1, -1)]
    steps = [float(i) for i in range(1, 21)]
    rates = [10 ** (-3 + 3 * i / 60) for i in range(61)]
    coins = random.Random(1)
    found = _lines(share, lambda v: v**0.6, lambda v: v**0.4)
    missed = _lines(rates, lambda v: 3 * v**0.4 + 0.2)
    at = [(v, 3 * v**0.4 + 0.2) for v in (0.02, 0.05, 0.1)]
    exposures = [-math.log2(1 - coins.random()) for _ in range(40)]
    return {
        "trade_off": plots.trade_off(found, found, [(0.1, 0.1**0.6), (0.1, 0.1**0.4)], "g1"),
        "epsilon_delta": plots.epsilon_delta(
            _lines(deltas, lambda v: 1 - math.log10(v) / 3, lambda v: 2 - math.log10(v) / 2), 1e-5, "g2"
        ),
        "epsilon_k": plots.epsilon_k(_lines([1, 2, 4, 8, 16], lambda v: 0.6 * v, lambda v: 0.9 * v), "records", "g3"),
        "bayesian": plots.bayesian(missed, [plots.Band(0, *at)], "g4"),
        "utility": plots.utility(
            _lines(steps, lambda v: 40 + 200 / v, lambda v: 30 + 150 / v), "step", "perplexity", "g5"
        ),
        "spent": plots.spent(_lines(steps, lambda v: 0.6 * v**0.5, lambda v: 0.4 * v**0.5), 3.0, "g6"),
        "against": plots.against([("a", 0, 0.4, 2.9), ("b", 1, 1.1, 4.2)], "g7"),
        "exposure": plots.exposure([("a", 0, exposures), ("b", 1, [v + 4 for v in exposures])], 20.0, 9.0, "g8"),
        "roc": plots.roc(_lines(rates, lambda v: v**0.8, lambda v: v**0.6), True, "g9"),
        "what_if": plots.what_if(_lines([0.5, 1, 2, 4], lambda v: 6 / v, lambda v: 9 / v), "σ", "ε", False, "g10"),
    }


def write(folder: Path = FOLDER) -> None:
    """A file a plot, with the report's colours in it, light and dark."""
    css = (Path(budget.__file__).parents[1] / "style.css").read_text("utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    for name, svg in pictures().items():
        (folder / f"{name}.svg").write_text(budget._alone(svg, css, name.replace("_", " "), ()), "utf-8")


if __name__ == "__main__":
    write()
