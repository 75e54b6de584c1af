"""UeDP, Figure 2: perplexity of GPT-2 against ε, by entity category."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs, Plot, Recipe, Results
from taciturn.recipes.uedp import bench as uedp_bench
from taciturn.recipes.uedp.against_epsilon import open_marks, reported, side_by_side
from taciturn.recipes.uedp.paper import DIFFERS, NEEDS, READINGS

SETS = ("CONLL-2003", "AG", "SEC")
CONLL = (
    ("Algorithm 1, person", 0.185, 35.09), ("Algorithm 1, org", 0.185, 35.34), ("Algorithm 1, misc", 0.185, 35.57),
    ("Algorithm 1, loc", 0.185, 36.79), ("user-level DP", 0.185, 52.01),
    ("Algorithm 1, person", 0.20, 29.24), ("Algorithm 1, misc", 0.20, 29.35), ("Algorithm 1, org", 0.20, 29.58),
    ("Algorithm 1, loc", 0.20, 29.75), ("user-level DP", 0.20, 30.15),
)  # fmt: skip
AG = (
    ("Algorithm 1, loc", 0.19, 25.33), ("Algorithm 1, PII", 0.19, 25.72), ("Algorithm 1, org", 0.19, 25.77),
    ("Algorithm 1, GPE", 0.19, 26.01), ("user-level DP", 0.19, 36.05),
)  # fmt: skip
SEC = (
    ("Algorithm 1, GPE", 0.19, 20.98), ("Algorithm 1, PII", 0.19, 21.12), ("Algorithm 1, loc", 0.19, 21.22),
    ("Algorithm 1, org", 0.19, 21.50), ("Algorithm 1, all", 0.19, 21.33), ("user-level DP", 0.19, 36.07),
    ("Algorithm 1, GPE", 0.18, 42.63), ("Algorithm 1, loc", 0.18, 43.21), ("Algorithm 1, PII", 0.18, 43.30),
    ("Algorithm 1, org", 0.18, 43.70), ("Algorithm 1, all", 0.18, 43.77), ("user-level DP", 0.18, 583.06),
)  # fmt: skip
WHERE = "section VI d, Privacy Budget and Model Utility; SEC at .18: Sensitive Entity Categories"

RECIPE = Recipe(
    name="uedp-figure2",
    paper="uedp",
    item="Figure 2",
    title="next word, GPT-2",
    asks="What does user-entity privacy cost GPT-2, beside user-level DP and de-identification?",
    paper_setting="GPT-2 (117M) fine-tuned on CONLL-2003, AG and SEC; q_u = .05, q_e = .5, q_s = 1, z = 2.5, β = "
    ".1, Adam at 1e-5; ε "
    "grows with the steps, .18 to .20.",
    our_setting="The same rates and z. Algorithm 1 with its printed noise; `uedp` at ε = 8 for its median pair; "
    "user-level DP with the "
    "same z. " + READINGS,
    differs=(
        *DIFFERS,
        "The paper's range .18 to .20 is the floor ln(1/δ)/64 of moments up to order 64, not a privacy level.",
        "Algorithm 1's updates go through Adam on the server in all rows, so that they compare.",
    ),
    published=(
        reported(CONLL, "Perplexity, CONLL-2003 (de-identified 38.30, noiseless 27.13)", WHERE),
        reported(AG, "Perplexity, AG (de-identified 35.90, noiseless 24.98)", WHERE),
        reported(SEC, "Perplexity, SEC (de-identified 34.07 at .19)", WHERE),
    ),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """Made-up news, the user's AG News, or the three sets."""
    names = SETS if inputs.size == "full" else ("AG",)
    return side_by_side([uedp_bench.bench("gpt2", inputs, work, name) for name in names], PAPER)


PAPER = Plot(
    "paper", "The paper's numbers, CONLL-2003", "ε at δ = 1e-5", "perplexity", open_marks(CONLL), log_y=True,
    caption="Perplexities of GPT-2 (117M) do not compare with those of a tiny model.",
)  # fmt: skip
