"""JFT, Table 8: when redacted and private text are few, what each step still brings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from taciturn.recipes.cells import Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft import medium
from taciturn.recipes.jft.bench import Bench, chosen
from taciturn.recipes.jft.paper import NEEDS, PAPER, READING
from taciturn.recipes.jft.phases import epsilons
from taciturn.recipes.recipe import Cell, Inputs, Recipe, Results, Table
from taciturn.recipes.verdicts import Order, Runs, merged, sentences

LEVEL = "high-entity"
FULL = ("mnli", "qqp", "qnli", "sst2", "wikitext2", "abcd")
PRINTED = {"redacted": 66.5, "jft": 67.49, "DP-SGD": 50.54}

RECIPE = Recipe(
    name="jft-table8",
    paper="jft",
    item="Table 8",
    title="low resource",
    asks="With a thousandth of the records in both phases, do redaction and jft still beat DP-SGD?",
    paper_setting=f"0.1 % of the data for both phases (QNLI: 100 records). {PAPER}.",
    our_setting="A thousandth of the records in full; a tenth in quick runs, where a thousandth would be none. Medium: as "
    f"many records as a thousandth of each of the paper's four classifying tasks, {medium.SENTENCES.steps} noised "
    "steps over all of them and about as many plain ones, of the end of a small encoder.",
    differs=(
        READING + ".",
        "With so few records every private step reads all of them, so sampling hides nothing and the noise is that "
        "of a full "
        "batch.",
        "The body of the table is lost in our copy of the paper; its numbers here are those that the text repeats.",
    ),
    published=(
        Table("QNLI, accuracy, %", ("row", "accuracy"), tuple(PRINTED.items()), "section A.4",
              "For all tasks: the redacted model is better than DP-SGD."),
    ),
    needs=NEEDS,
    medium=medium.NEEDS_ALL,
)  # fmt: skip


def run(inputs: Inputs, work: Work) -> Results:
    """DP-SGD, redacted, jft on a share of the records."""
    small = inputs.size == "medium"
    names = medium.FEW if small else chosen(inputs.pick(("sst2",), ("sst2", "wikitext2"), FULL), inputs)
    share = inputs.pick(0.5, 0.1, 0.001)
    benches = []
    for name in names:
        whole = jft_bench.bench(name, inputs, work)
        few = medium.thousandth(whole.task, whole.documents) if small else whole.documents[:: round(1 / share)]
        task = replace(whole.task, records=len(few), batch=min(whole.task.batch, len(few)))
        benches.append(replace(whole, documents=few, task=task))
    found = {bench.task.name: [_rows(each) for each in bench.each_run()] for bench in benches}
    claims = [each for b in benches for each in orders(b.task.name, b.compared(found[b.task.name]))]
    columns = ("row", "score", "ε, detected", "ε, missed", "σ")
    return Results(
        setting=" ".join(bench.setting(_epochs(bench)) for bench in benches),
        tables=tuple(Table(f"{b.task.name}: {b.metric}", columns, merged(found[b.task.name])) for b in benches),
        says=tuple(sentences(claims)),
    )


def _rows(bench: Bench) -> dict[str, tuple[Cell, ...]]:
    private, twice = bench.dpsgd(), bench.fine_tuned_twice(LEVEL, f"jft {LEVEL}", epochs=_epochs(bench))
    first = bench.shown(twice["scores"][0][-1])
    return {
        "no fine-tuning": (bench.shown(bench.start()), None, None, None),
        "DP-SGD": (bench.shown(private["score"]), *epsilons(private), private["sigma"]["private"]),
        "redacted": (first, 0.0, float("inf"), None),
        "jft": (bench.shown(twice["score"]), *epsilons(twice), twice["sigma"]["private"]),
    }


def _epochs(bench: Bench) -> int:
    """Plain ones; in the medium size with as many steps as the noised phase has."""
    if bench.inputs.size == "medium":
        return medium.of(bench.task).epochs(len(bench.documents))
    return 3 * bench.sizes.epochs


def orders(task: str, rows: Mapping[str, Runs]) -> list[Order]:
    """Section A.4: redaction before DP-SGD, which learns nothing from so few records (50.54 % on QNLI, where half the
    answers are alike), and the second phase before the first."""
    higher = next(iter(rows.values())).floor.higher  # type: ignore[union-attr]
    return [
        Order(
            f"{task}, redaction alone is ahead of DP-SGD", rows["redacted"], rows["DP-SGD"], higher=higher, both=False
        ),
        Order(f"{task}, the second phase is ahead of the first", rows["jft"], rows["redacted"], higher=higher),
    ]
