"""JFT, Table 7: DP-SGD with several batch sizes and numbers of epochs, at one ε."""

from __future__ import annotations

from collections.abc import Mapping

from taciturn.recipes.cells import Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft.bench import Bench
from taciturn.recipes.jft.paper import EPSILON, NEEDS, READING
from taciturn.recipes.recipe import Cell, Inputs, Plot, Recipe, Results, Series, Table
from taciturn.recipes.verdicts import Order, Runs, merged, sentences

PRINTED = ((256, 200, 27.04), (512, 200, 27.05), (1024, 200, 27.18), (1024, 600, 27.01), (1024, 10, 28.84))
"""Batch, epochs, perplexity."""
SMALLER = (8, 50)
"""What quick runs divide batch and epochs by."""

RECIPE = Recipe(
    name="jft-table7",
    paper="jft",
    item="Table 7",
    title="batch size and epochs of DP-SGD",
    asks="At one ε, how much do batch size and number of epochs matter to DP-SGD?",
    paper_setting="DP-SGD on WikiText-2, GPT-2, ε = 3; learning rate tuned for each.",
    our_setting="The same five settings at ε = 3 by substitution; quick runs divide batches by 8 and epochs by 50, "
    "which keeps the "
    "ratios.",
    differs=(
        READING + ".",
        "One learning rate for all; the paper tunes it for each.",
    ),
    published=(Table("Perplexity on WikiText-2", ("batch", "epochs", "perplexity"), PRINTED, "Table 7"),),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """Five runs of DP-SGD."""
    bench = jft_bench.bench("wikitext2", inputs, work)
    settings = inputs.pick(PRINTED[-1:], PRINTED, PRINTED)
    found = [_rows(each, settings) for each in bench.each_run()]
    compared = bench.compared(found, 5)
    columns = ("setting", "batch", "epochs", "rate", "steps", "σ", "perplexity", "paper", "ε as published")
    ours, theirs = [row.mean for row in compared.values()], [row[2] for row in settings]
    at = tuple(float(n) for n in range(len(settings)))
    return Results(
        setting=bench.setting() + (" Batches are an eighth, epochs a fiftieth of those shown." if inputs.quick else ""),
        plots=(
            Plot(
                "perplexity", "DP-SGD at ε = 3", "batch × epochs", "perplexity over that of the first setting",
                (
                    Series("DP-SGD", at, tuple(v / theirs[0] for v in theirs), published=True),
                    Series("DP-SGD", at, tuple(v / ours[0] for v in ours)),
                ),
                names=tuple(compared),
            ),
        ),
        tables=(Table("Perplexity", columns, merged(found)),),
        says=(
            f"The paper's settings lie within {max(theirs) / min(theirs):.2f} of one another, these within "
            f"{max(ours) / min(ours):.2f}.",
            *sentences(orders(compared)),
            "Each ε is that of one run. Choosing the best of five by private text would spend more.",
        ),
    )  # fmt: skip


def _rows(bench: Bench, settings: tuple[tuple[int, int, float], ...]) -> dict[str, tuple[Cell, ...]]:
    smaller, fewer = SMALLER if bench.inputs.quick else (1, 1)
    rows: dict[str, tuple[Cell, ...]] = {}
    for batch, epochs, printed in settings:
        rate = min(1.0, batch / smaller / (len(bench.documents) if bench.inputs.quick else bench.task.records))
        steps = max(1, round(epochs / fewer / rate))
        options = bench.noised(bench.sizes.private_lr, rate=rate, steps=steps)
        found = bench.cell(f"DP-SGD {batch} {epochs}", "dpsgd", "high-entity", options, EPSILON)
        published = found["as published"]["private"]
        cells = (batch, epochs, rate, steps, found["sigma"]["private"], found["score"], printed, published)
        rows[f"{batch} × {epochs}"] = cells
    return rows


def orders(rows: Mapping[str, Runs]) -> list[Order]:
    """Every setting before the one of the fewest epochs."""
    *others, fewest = rows.values()
    return [Order(f"{fewest.name} (batch × epochs) is the worst", row, fewest, row.name) for row in others]
