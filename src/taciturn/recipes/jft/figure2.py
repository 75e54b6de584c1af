"""JFT, Figure 2: one canary planted ten times; exposure against perplexity along each run."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.jft.canaries import BASELINES, DIFFERS, Kind, attack, results
from taciturn.recipes.jft.paper import NEEDS, PAPER
from taciturn.recipes.recipe import Inputs, Recipe, Results, comparison, statements

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
    kinds = inputs.pick(KINDS[:1] + KINDS[3:4], KINDS, KINDS)
    return results(attack(inputs, work, 1, 10), kinds, "Exposure of a canary of ten copies", findings)


def findings(ends: dict[str, tuple[float, float]], most: float) -> list[str]:
    """What of the paper's reading holds."""
    lines = []
    for name in ("no-DP", "redacted, missed", "jft, missed"):
        if name in ends:
            high = ends[name][1] > most / 2
            lines.append(f"{comparison(high)}: {name} ends at {ends[name][1]:.1f} of {most:.1f} bits.")
    for name in ("redacted, not missed", "jft, not missed", "DP-SGD", "CRT, missed", "jft + light noise, missed"):
        if name in ends:
            low = ends[name][1] < most / 2
            lines.append(f"{comparison(low)}: {name} ends at {ends[name][1]:.1f} bits.")
    light, private = ends.get("jft + light noise, missed"), ends.get("DP-SGD")
    if light and private:
        ahead = light[0] < private[0]
        lines.append(
            f"{comparison(ahead)}: jft + light noise reaches a perplexity of {light[0]:.3g}, DP-SGD {private[0]:.3g}."
        )
    lines.append(
        "Low exposure of one canary is no guarantee. The last column is about one record; ten copies of a secret "
        "that is missed cost more."
    )
    return lines
