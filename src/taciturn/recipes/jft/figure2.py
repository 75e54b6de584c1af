"""JFT, Figure 2: one canary planted ten times; exposure against perplexity along each run."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.jft.canaries import BASELINES, DIFFERS, Ends, Kind, attack, results
from taciturn.recipes.jft.paper import NEEDS, PAPER
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements
from taciturn.recipes.verdicts import Order

KINDS = (
    *BASELINES,
    Kind("CRT missed", "crt", 0.0, ("CRT, missed",)),
    Kind("jft not missed", "jft", 1.0, ("redacted, not missed", "jft, not missed")),
    Kind("jft missed", "jft", 0.0, ("redacted, missed", "jft, missed")),
    Kind("jft light", "jft", 0.0, ("redacted + light noise, missed", "jft + light noise, missed"), light=True),
)

RECIPE = Recipe(
    name="jft-figure2",
    paper="jft",
    item="Figure 2",
    title="canary insertion, ten copies",
    asks="How far does a secret that the detector misses leak through each model, and at what utility?",
    paper_setting=f'Canary "My ID is 341752" ten times in the training data; a point is a checkpoint. {PAPER}.',
    our_setting="The same six runs, scored at checkpoints; redacted and jft are the two phases of one run.",
    differs=(
        *DIFFERS,
        "CRT misses the canary with its detector and marks it with its conservative policy, without which it has no "
        "guarantee.",
    ),
    published=(
        statements(
            "Exposure",
            "section 6.4",
            (
                "an exposure close to 19.9 bits means that the canary can be extracted",
                "no-DP: low at first, then rises dramatically with more epochs",
                "DP-SGD, redacted, jft with the canary found: hardly any rise; jft has the better utility",
                "redacted and jft with the canary missed: rises",
                "with light noise: stays low though missed ten times; jft + light noise has better utility than "
                "DP-SGD and CRT",
            ),
        ),
    ),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """Six runs."""
    kinds = inputs.pick(KINDS[1:2] + KINDS[3:4], KINDS, KINDS)
    return results(attack(inputs, work, 1, 10), kinds, "Exposure of a canary of ten copies", orders, LOW)


LOW = (
    "Low exposure of one canary is no guarantee. The last column is about one record; ten copies of a secret that is missed "
    "cost more."
)
LIGHT = "jft + light noise, missed"
LEAKS = (
    ("no-DP", "DP-SGD"), ("redacted, missed", "redacted, not missed"), ("jft, missed", "jft, not missed"),
    ("redacted, missed", LIGHT), ("jft, missed", LIGHT),
)  # fmt: skip
"""Section 6.4: which model gives the canary away more than which."""
BETTER = ((LIGHT, "DP-SGD"), (LIGHT, "CRT, missed"), ("jft, not missed", "DP-SGD"))
"""And which is of more use than which."""


def orders(ends: Ends) -> list[Order]:
    leaks = [
        Order(
            "more of the canary leaks from one than from the other", ends[a][1], ends[b][1], f"{a} and {b}", higher=True
        )
        for a, b in LEAKS
        if a in ends and b in ends
    ]
    return leaks + [
        Order("one has the lower perplexity", ends[a][0], ends[b][0], f"{a} and {b}")
        for a, b in BETTER
        if a in ends and b in ends
    ]
