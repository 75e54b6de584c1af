"""JFT, Figure 4: ten canaries planted once each, found by the detector with a recall one chooses."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.jft.canaries import BASELINES, DIFFERS, Ends, Kind, attack, results
from taciturn.recipes.jft.paper import NEEDS, PAPER
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements
from taciturn.recipes.verdicts import Order

RECALLS = (0.4, 0.6)
KINDS = (
    *BASELINES,
    *(Kind(f"jft {r:g}", "jft", r, (f"redacted, recall {r:g}", f"jft, recall {r:g}")) for r in RECALLS),
    Kind("jft light", "jft", 0.4, ("redacted + light noise, recall 0.4", "jft + light noise, recall 0.4"), light=True),
)

RECIPE = Recipe(
    name="jft-figure4",
    paper="jft",
    item="Figure 4",
    title="canary insertion, ten canaries",
    asks="How does the recall of the detector show in the mean exposure of ten secrets?",
    paper_setting=f"Ten canaries once each, the only secrets there are; the detector finds four or six of them. "
    f"{PAPER}.",
    our_setting="The same, with detectors that mark four or six of the ten canaries and nothing else.",
    differs=(*DIFFERS[:2], DIFFERS[3]),
    published=(
        statements(
            "Mean exposure of ten canaries",
            "section A.5",
            (
                "low, as in Figure 3, as each canary stands there once",
                "lower at a recall of .6 than of .4",
                "jft + light noise: as low as DP-SGD, with much higher utility",
                "redacted and jft are close to no-DP in utility, as the canaries are the only secrets",
            ),
        ),
    ),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """Five runs."""
    kinds = inputs.pick(KINDS[2:4], KINDS, KINDS)
    return results(attack(inputs, work, 10, 1, only=True), kinds, "Mean exposure of ten canaries", orders, CHANCE)


CHANCE = "The mean of ten unseen secrets is 1.44 ± .46 bits."


def orders(ends: Ends) -> list[Order]:
    """Section A.5: less leaks at the higher recall, and light noise is of more use than DP-SGD."""
    found = []
    for row in ("redacted", "jft"):
        low, high = (ends.get(f"{row}, recall {recall:g}") for recall in RECALLS)
        if low and high:
            found.append(Order("less leaks at a recall of .6 than of .4", high[1], low[1], row))
    light, private = ends.get(f"jft + light noise, recall {RECALLS[0]:g}"), ends.get("DP-SGD")
    if light and private:
        found.append(Order("jft + light noise has a lower perplexity than DP-SGD", light[0], private[0]))
    return found
