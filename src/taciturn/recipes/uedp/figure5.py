"""UeDP, Figure 5: next word with GPT-2 over q_s, the rate of extended entities."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements
from taciturn.recipes.uedp import bench as uedp_bench
from taciturn.recipes.uedp.extended import sweep
from taciturn.recipes.uedp.paper import DIFFERS, NEEDS
from taciturn.recipes.verdicts import sentences

SAYS = statements(
    "Extended entities",
    "section VI d, Extended Sensitive Entities",
    (
        "q_s > 0 significantly improves on q_s = 0",
        "the best q_s differs between tasks and data sets; how to choose it is left open",
    ),
)

RECIPE = Recipe(
    name="uedp-figure5",
    paper="uedp",
    item="Figure 5",
    title="extended entities, GPT-2",
    asks="Does training on sentences without a detected entity help, and what does it cost?",
    paper_setting="GPT-2 on CONLL-2003, AG and SEC; q_s from 0 to 1, the rest as in Figure 2.",
    our_setting="q_s = 0, .25, .5, 1 in both readings: Algorithm 1 (its ε as claimed does not depend on q_s), and "
    "`uedp` at equal ε, for "
    "which the noise follows the larger rate.",
    differs=DIFFERS,
    published=(SAYS,),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """One category of one set."""
    return over_rates("gpt2", inputs, work)


def over_rates(model: str, inputs: Inputs, work: Work) -> Results:
    """For the organisations of the data, the largest category of the papers' sets."""
    bench = uedp_bench.bench(model, inputs, work)
    category = next((each for each in bench.categories if each.lower() == "org"), bench.categories[0])
    plot, table, orders, free = sweep(bench, category)
    return Results(bench.setting(), (plot,), (table,), (*sentences(orders), free))
