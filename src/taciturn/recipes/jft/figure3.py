"""JFT, Figure 3: one canary planted once."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.jft.canaries import DIFFERS, attack, results
from taciturn.recipes.jft.figure2 import KINDS
from taciturn.recipes.jft.paper import NEEDS, PAPER
from taciturn.recipes.recipe import Inputs, Recipe, Results, Table

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
    return results(attack(inputs, work, 1, 1), kinds, "Exposure of a canary of one copy", findings)


def findings(ends: dict[str, tuple[float, float]], most: float) -> list[str]:
    """Below three bits or not; by chance one unseen secret in eight lies above."""
    above = {name: bits for name, (_, bits) in ends.items() if bits >= 3}
    first = (
        "As in the paper: every model ends below 3 bits."
        if not above
        else "Not as in the paper: above 3 bits end "
        + ", ".join(f"{name} ({bits:.1f})" for name, bits in above.items())
        + "; one unseen secret in eight lies there by chance. Where all other numbers are masked, the digits "
        "of a canary that was missed are the only ones a model reads."
    )
    return [
        first,
        f"At most {most:.1f} bits are possible here. One canary in one run is one draw: an order is not to be read "
        f"off.",
    ]
