"""UeDP, Figure 7: next word with an AWD-LSTM over q_s."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs, Recipe, Results
from taciturn.recipes.uedp.figure5 import SAYS, over_rates
from taciturn.recipes.uedp.paper import DIFFERS, NEEDS

RECIPE = Recipe(
    name="uedp-figure7",
    paper="uedp",
    item="Figure 7",
    title="extended entities, AWD-LSTM",
    asks="Figure 5 for a model without public weights.",
    paper_setting="AWD-LSTM on CONLL-2003, AG and SEC; q_s from 0 to 1, the rest as in Figure 6.",
    our_setting="q_s = 0, .25, .5, 1 in both readings with z = 2, layers of 64 units in quick runs.",
    differs=(*DIFFERS, "Adam on the server in every row; the paper says SGD."),
    published=(SAYS,),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """One category of one set."""
    return over_rates("awd-lstm", inputs, work)
