"""CRT, Figure 3: exposure of canaries against the policy's miss rate γ."""

from __future__ import annotations

from collections.abc import Mapping

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.curves import (
    DIFFERS,
    NEEDS,
    OUR_SETTING,
    PAPER_SETTING,
    TITLES,
    Cells,
    attack,
    order,
    results,
    unique,
    value,
)
from taciturn.recipes.crt.sizes import CANARIES, KINDS
from taciturn.recipes.recipe import Inputs, Recipe, Results, Table, statements

CRT = ("CRT", "CRT with skeletons")
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
)


def run(inputs: Inputs, work: Work) -> Results:
    """Seven models (and our two) at every γ."""
    plots, tables, found = attack(
        inputs, work, "exposure", "highest exposure, bits", ("95 % of chance, one model", CHANCE)
    )
    return results(inputs, found, plots, tables, [line for name in found for line in _says(name, found)])


def _says(name: str, found: Mapping[str, Cells]) -> list[str]:
    from taciturn.auditing.nulls import exposure_max_p95

    cells = found[name]
    gammas = sorted({gamma for _, _, gamma, _ in cells})
    first, last = gammas[0], gammas[-1]

    def at(kind: str, row: str, gamma: float) -> float:
        return value(cells, kind, row, gamma, "exposure") or 0.0

    plain = {kind: (at(kind, "redacted", first), at(kind, "redacted", last)) for kind in KINDS}
    noised = [each["exposure"] for each in unique(cells, ("CRT", "CRT with skeletons", "DPSGD"))]
    sdp = [each["exposure"] for each in unique(cells, ("S-DP",))]
    limits = [exposure_max_p95(CANARIES * len(found)) for found in (noised, sdp)]
    words = "; ".join(f"{kind} {a:.1f} at γ = {first:g}, {b:.1f} at γ = {last:g}" for kind, (a, b) in plain.items())
    many = f"the highest of {len(noised)} models stays below {limits[0]:.1f} by chance in 95 of 100 cases"
    return [
        f"{TITLES[name]}. "
        + order(
            all(a < CHANCE < b for a, b in plain.values()),
            f"redaction alone protects only what π finds ({words}).",
            f"redaction alone does not show the sharp rise in this size ({words}).",
        ),
        order(
            max(noised) < limits[0],
            f"rows with noise on private records stay within chance (at most {max(noised):.1f} bits; {many}). "
            f"Within chance is "
            f"not “close to 0”: the highest of ten unseen secrets averages 4.2 bits, and at γ = {first:g}, where "
            f"the model "
            f"reads no digit of a canary, CRT reaches {max(at(k, r, first) for k in KINDS for r in CRT):.1f}.",
            f"a row with noise on private records reaches {max(noised):.1f} bits; {many}.",
        ),
        order(
            max(sdp) > limits[1],
            f"S-DP gives missed canaries away ({max(sdp):.1f} bits).",
            f"S-DP stays at {max(sdp):.1f} bits (chance: {limits[1]:.1f}). Its noise here is that of an account of "
            f"all it adds, "
            "several times DP-SGD's, and the model learns next to nothing, secrets included.",
        ),
    ]
