"""UeDP, Figure 3: text classification with BERT: test error against ε (a) and against q_s (b)."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs, Recipe, Results, statements
from taciturn.recipes.uedp import bench as uedp_bench
from taciturn.recipes.uedp.accounting import ENCODER
from taciturn.recipes.uedp.against_epsilon import UNSAID, compared
from taciturn.recipes.uedp.extended import sweep
from taciturn.recipes.uedp.paper import DIFFERS, NEEDS, READINGS
from taciturn.recipes.verdicts import sentences

RECIPE = Recipe(
    name="uedp-figure3",
    paper="uedp",
    item="Figure 3",
    title="text classification, BERT",
    asks="What does user-entity privacy cost a classifier, and what do extended entities bring it?",
    paper_setting="BERT base on AG (4 classes); q_u = .05, q_e = .5, q_s = 1 (.6 for AWD-LSTM), z = 2.5, β = .1, "
    "Adam at 1e-5; ε from .18 "
    "to .19; q_s from 0 to 1.",
    our_setting="The same rates and z, in both readings, as in Figure 2. Medium: AG News, up to 5,000 texts by users of "
    f"ten, {ENCODER.steps} steps of the head of a small encoder. " + READINGS,
    differs=(
        *DIFFERS,
        "The medium size trains the head alone, where the paper trains BERT whole: noise grows with the root of "
        "how many numbers are trained, and twenty users a step are few.",
    ),
    published=(
        statements(
            "Test error",
            "section VI d, Text classification; caption of Figure 3",
            (
                "at q_s = 0 the test error is 75 % in all cases",
                "UeDP has lower errors than user-level DP in most cases between .18 and .19",
                "at larger ε both approach noiseless BERT",
                "q_s > 0 is better than q_s = 0; the best q_s differs by task and data",
            ),
        ),
    ),
    needs=NEEDS,
    medium="agnews",
)


def run(inputs: Inputs, work: Work) -> Results:
    """(a) by category, (b) over q_s."""
    bench = uedp_bench.bench("bert", inputs, work)
    plots, table, orders, says = compared(bench, "topics of news" if bench.published is None else "AG")
    plot_b, table_b, orders_b, free = sweep(bench, bench.categories[0])
    told = (*sentences([*orders, *orders_b]), *says, UNSAID, free)
    return Results(bench.setting(), (*plots, plot_b), (table, table_b), told)
