"""CRT, Figure 3: exposure of canaries against the policy's miss rate γ."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.curves import (
    DIFFERS,
    MEDIUM,
    NEEDS,
    OUR_SETTING,
    PAPER_SETTING,
    TITLES,
    Cells,
    attack,
    bars,
    leaks,
    longer,
    results,
    unique,
)
from taciturn.recipes.crt.sizes import CANARIES, OURS, SELECTIVE
from taciturn.recipes.recipe import Inputs, Recipe, Results, Table, statements
from taciturn.recipes.verdicts import sentences

CHANCE = 7.61
"""Highest exposure of ten canaries that a model never saw stays below this many bits in 95 of 100 cases."""

RECIPE = Recipe(
    name="crt-figure3",
    paper="crt",
    item="Figure 3",
    title="canary insertion attack",
    asks="Does a model give planted secrets away once the policy misses some of them?",
    paper_setting=PAPER_SETTING + " Shown is the highest exposure of the ten.",
    our_setting=OUR_SETTING,
    differs=(
        *DIFFERS,
        "Exposure is ranked exactly among all candidates by the loss of the secret; with four digits its most is "
        "13.3 bits.",
        "All cells of one kind of model share their first weights, and with them what chance makes of the canaries.",
    ),
    published=(
        statements(
            "Highest exposure, bits",
            "section 5.3, read from the text only: the curves' numbers are not printed",
            (
                "CRT-LSTM and CRT-GPT: close to 0 at every γ",
                "Non-private-LSTM and Non-private-GPT with mask: great protection at γ = 0; a rise in γ gives a "
                "sharp increase",
                "S-DP-LSTM: high exposure, similar to the non-private models, at any γ above 0",
            ),
        ),
        Table("The most", ("candidates", "exposure of rank 1, bits"), (("10⁶", 19.93),), "section 5.1, Definition 9"),
    ),
    needs=NEEDS,
    medium=MEDIUM,
)


def run(inputs: Inputs, work: Work) -> Results:
    """Seven models (and our two) at every γ."""
    y = "highest exposure, bits"
    plots, tables, found = attack(inputs, work, "exposure", y, ("95 % of chance, one model", CHANCE))
    claims = [
        order
        for name, cells in found.items()
        for order in leaks(TITLES[name], "exposure", cells, bars(inputs, work, name), "exposure")
    ]
    chance = [_chance(TITLES[name], cells) for name, cells in found.items()]
    return results(inputs, work, found, plots, tables, [*sentences(claims), *chance, *longer(inputs)])


def _chance(title: str, cells: Cells) -> str:
    """Where rows with noise lie beside what chance gives to the highest of so many models."""
    from taciturn.auditing.nulls import exposure_max_p95

    parts = []
    for name, rows in (
        ("with noise on private records", ("CRT", *OURS, "DPSGD")),
        *((f"of {row}", (row,)) for row in SELECTIVE),
    ):
        bits = [each["exposure"] for each in unique(cells, rows)]
        if not bits:
            continue
        limit = exposure_max_p95(CANARIES * len(bits))
        where = "above" if max(bits) > limit else "not above"
        parts.append(
            f"the highest of {len(bits)} models {name} is {max(bits):.1f} bits, {where} the {limit:.1f} that chance "
            "exceeds in one case of twenty"
        )
    return f"{title}: " + "; ".join(parts) + ". Not above chance is no evidence of no leak."
