"""UeDP, Figure 6: perplexity of an AWD-LSTM against ε."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements
from taciturn.recipes.uedp import bench as uedp_bench
from taciturn.recipes.uedp.against_epsilon import side_by_side
from taciturn.recipes.uedp.paper import DIFFERS, NEEDS, READINGS

PLACES = (("awd-lstm", "AG"), ("awd-lstm", "CustomerSim"), ("awd-lstm", "Loans"))
"""Models and sets of the medium size."""
RECIPE = Recipe(
    name="uedp-figure6",
    paper="uedp",
    item="Figure 6",
    title="next word, AWD-LSTM",
    asks="The same as Figure 2 for a model without public weights.",
    paper_setting="AWD-LSTM, three layers of 1,150 units, embedding 100, from scratch; β = .1, z = 2, q_u = .05, q_e = .5, "
    "q_s = 1, SGD; ε from .5 to 3.",
    our_setting="The same shape in full, layers of 64 units in quick and medium runs, with z = 2. Medium, 150 steps of what "
    "the folder holds: AG News, up to 5,000 texts by users of ten; CustomerSim, 20,000 turns of the customers who are named "
    "in them; loan agreements, by users of ten sentences. " + READINGS,
    differs=(
        *DIFFERS,
        "CustomerSim and the loan agreements are not the paper's. A customer's name is who they are, and an entity as well.",
        "Adam on the server in every row; the paper says SGD.",
    ),
    published=(
        statements(
            "What the text says",
            "section VI d, last paragraph",
            ("comparable with GPT-2, at larger ε (.5 to 3 instead of .18 to .2), as nothing is known before training",),
        ),
    ),
    needs=NEEDS,
    medium="agnews, customersim and sec_contracts, or some of them",
)


def run(inputs: Inputs, work: Work) -> Results:
    """As Figure 2, on one set; in the medium size on all that there are."""
    places = PLACES if inputs.size == "medium" else PLACES[:1]
    return side_by_side(uedp_bench.benches(places, inputs, work))
