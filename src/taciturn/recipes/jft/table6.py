"""JFT, Table 6: jft beside CRT with the same noise."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from taciturn.recipes.cells import Row, Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft import medium
from taciturn.recipes.jft.bench import Bench, chosen
from taciturn.recipes.jft.paper import LEVELS, NEEDS, PAPER, READING
from taciturn.recipes.jft.phases import epsilons
from taciturn.recipes.recipe import Cell, Inputs, Recipe, Results, Table
from taciturn.recipes.verdicts import Order, Runs, merged, sentences

FULL = ("mnli", "qqp", "qnli", "sst2", "wikitext2", "abcd")

RECIPE = Recipe(
    name="jft-table6",
    paper="jft",
    item="Table 6",
    title="comparison with CRT",
    asks="With the same noise, is jft or CRT more useful?",
    paper_setting=f"CRT and jft with the same amount of noise at each detector, best validation utility. {PAPER}.",
    our_setting="σ of jft's second phase, calibrated to ε = 3, is given to CRT as well: as published (no skeletons, "
        "alternating), and "
    "with skeletons, public first. Each at its own sampling rate, as CRT's private part is smaller. "
    "Medium: SST-2 and the end of a small encoder, two levels; in one epoch CRT alternates once.",
    differs=(
        READING + ".",
        "The two promise different things, as the paper says; here both are stated by substitution, which makes the "
        "numbers "
        "comparable where the condition of CRT (its conservative policy marks the secret) holds.",
        "CRT's conservative policy is the detector itself, so a secret that it misses is in the public part: ε = ∞.",
        "The body of the table is lost in our copy of the paper, and the text repeats none of its numbers.",
    ),
    published=(
        Table(
            "What the text says",
            ("claim",),
            (("with the same noise jft has better utility than CRT on all tasks and detectors",),),
            "section A.3",
        ),
    ),
    needs=NEEDS,
    medium=medium.NEEDS,
)  # fmt: skip


def run(inputs: Inputs, work: Work) -> Results:
    """jft and two CRT rows at each level."""
    names = medium.TASKS
    levels: tuple[str, ...] = LEVELS[1:3]
    if inputs.size != "medium":
        names = chosen(inputs.pick(("wikitext2",), ("sst2", "wikitext2"), FULL), inputs)
        levels = inputs.pick(LEVELS[:1], LEVELS[:3:2], LEVELS)
    benches = [jft_bench.bench(name, inputs, work) for name in names]
    found = {
        bench.task.name: [
            {k: v for level in levels for k, v in _rows(each, level).items()} for each in bench.each_run()
        ]
        for bench in benches
    }
    claims = [each for b in benches for each in orders(b.task.name, levels, b.compared(found[b.task.name]))]
    columns = ("row", "score", "σ", "rate", "ε, one secret")
    note = "ε by substitution: of jft for a detected secret, of CRT for one that the conservative policy marks."
    return Results(
        setting=" ".join(bench.setting() for bench in benches),
        tables=tuple(
            Table(f"{b.task.name}: {b.metric}", columns, merged(found[b.task.name]), note=note) for b in benches
        ),
        says=(
            *sentences(claims),
            "CRT with skeletons is ours, and no row of the paper's table: nothing is said of it here.",
        ),
    )


def _rows(bench: Bench, level: str) -> dict[str, tuple[Cell, ...]]:
    ours = bench.fine_tuned_twice(level, f"jft {level}")
    rows = {f"jft, {level}": _row(bench, ours)}
    lr = bench.second_lr if bench.held else bench.private_lr
    for name, options in (
        ("CRT as published", {"skeletons": False, "schedule": "alternate"}),
        ("CRT with skeletons", {"skeletons": True, "schedule": "public-first"}),
    ):
        private = bench.noised(lr, ours["sigma"]["private"], clip=1.0)
        steps = private["steps"] - private["steps"] % bench.sizes.epochs or bench.sizes.epochs
        private = {key: value for key, value in private.items() if key != "rate"} | {"steps": steps}
        private["batch"] = max(1, round(bench.private["rate"] * len(bench.documents)))
        public = bench.public()
        found = bench.cell(
            f"{name} {level}", "crt", level, {"public": public, "private": private, **options},
            screened=partial(_parted, bench, level),
        )  # fmt: skip
        rows[f"{name}, {level}"] = _row(bench, found)
    return rows


def _row(bench: Bench, row: Row) -> tuple[Cell, ...]:
    return (bench.shown(row["score"]), row["sigma"]["private"], row["rate"]["private"], epsilons(row)[0])


def _parted(bench: Bench, level: str) -> Any:
    """Public: what the detector marks nothing in."""
    import taciturn as tt
    from taciturn.screening import pipeline
    from taciturn.text.readers import Corpus

    detector, out = tt.policy(f"spacy:{level}"), bench.folder(f"parted-{level}")
    corpus = Corpus.from_documents(list(bench.documents))
    return medium.kept(out, lambda: pipeline.screen(corpus, detector, detector, unit="document", dedup="none", out=out))


def orders(task: str, levels: tuple[str, ...], rows: Mapping[str, Runs]) -> list[Order]:
    """Section A.3: jft before CRT as its paper has it, at every detector."""
    return [
        Order(f"{task}, jft is ahead of CRT", jft, rows[f"CRT as published, {level}"], level, jft.floor.higher)
        for level in levels
        if (jft := rows[f"jft, {level}"]).floor
    ]
