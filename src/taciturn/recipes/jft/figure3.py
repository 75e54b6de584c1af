"""JFT, Figure 3: one canary planted once."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.jft.canaries import DIFFERS, Ends, attack, results
from taciturn.recipes.jft.figure2 import KINDS
from taciturn.recipes.jft.paper import NEEDS, PAPER
from taciturn.recipes.recipe import Inputs, Recipe, Results, Table
from taciturn.recipes.verdicts import Order

RECIPE = Recipe(
    name="jft-figure3",
    paper="jft",
    item="Figure 3",
    title="canary insertion, one copy",
    asks="Does a secret that stands once in the data leak at all?",
    paper_setting=f"As Figure 2, the canary once. {PAPER}.",
    our_setting="As Figure 2, the canary once.",
    differs=DIFFERS,
    published=(
        Table("Exposure, bits", ("models", "exposure"), (("all of them, no-DP included", "below 3"),), "section A.5"),
    ),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """The same runs on other data."""
    kinds = inputs.pick(KINDS[:1], KINDS, KINDS)
    return results(attack(inputs, work, 1, 1), kinds, "Exposure of a canary of one copy", orders, CHANCE)


BITS = 3.0
"""Section A.5: every model ends below."""
CHANCE = (
    "One unseen secret in eight lies above 3 bits by chance. Where all other numbers are masked, the digits of a canary "
    "that was missed are the only ones a model reads."
)


def orders(ends: Ends) -> list[Order]:
    return [Order(f"exposure ends below {BITS:g} bits", exposure, BITS, name) for name, (_, exposure) in ends.items()]
