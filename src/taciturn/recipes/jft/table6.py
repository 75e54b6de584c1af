"""JFT, Table 6: jft beside CRT with the same noise."""

from __future__ import annotations

from functools import partial
from typing import Any

from taciturn.recipes.cells import Row, Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft.bench import Bench, chosen, epsilons
from taciturn.recipes.jft.paper import LEVELS, NEEDS, PAPER, READING
from taciturn.recipes.recipe import Cell, Inputs, Recipe, Results, Table

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
    "with skeletons, public first. Each at its own sampling rate, as CRT's private part is smaller.",
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
)  # fmt: skip


def run(inputs: Inputs, work: Work) -> Results:
    """jft and two CRT rows at each level."""
    names = chosen(inputs.pick(("wikitext2",), ("sst2", "wikitext2"), FULL), inputs)
    levels = inputs.pick(LEVELS[:1], LEVELS[:3:2], LEVELS)
    benches = [jft_bench.bench(name, inputs, work) for name in names]
    found = {bench.task.name: [row for level in levels for row in _rows(bench, level)] for bench in benches}
    columns = ("row", "score", "σ", "rate", "ε, one secret")
    note = "ε by substitution: of jft for a detected secret, of CRT for one that the conservative policy marks."
    return Results(
        setting=" ".join(bench.setting() for bench in benches),
        tables=tuple(
            Table(f"{b.task.name}: {b.metric}", columns, tuple(found[b.task.name]), note=note) for b in benches
        ),
        says=tuple(_says(bench, levels, found[bench.task.name]) for bench in benches),
    )


def _rows(bench: Bench, level: str) -> list[tuple[Cell, ...]]:
    ours = bench.fine_tuned_twice(level, f"jft {level}")
    rows = [_row(bench, f"jft, {level}", ours)]
    lr = bench.sizes.private_lr
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
        rows.append(_row(bench, f"{name}, {level}", found))
    return rows


def _row(bench: Bench, name: str, row: Row) -> tuple[Cell, ...]:
    return (name, bench.shown(row["score"]), row["sigma"]["private"], row["rate"]["private"], epsilons(row)[0])


def _parted(bench: Bench, level: str) -> Any:
    """Public: what the detector marks nothing in."""
    import taciturn as tt
    from taciturn.text.readers import Corpus

    detector = tt.policy(f"spacy:{level}")
    corpus = Corpus.from_documents(list(bench.documents))
    return tt.screen(corpus, detector, detector, unit="document", dedup="none")


def _says(bench: Bench, levels: tuple[str, ...], rows: list[tuple[Cell, ...]]) -> str:
    score = {str(row[0]): float(row[1] or 0) for row in rows}
    sign = 1 if bench.task.classifies else -1
    behind = [
        name
        for name, value in score.items()
        for level in levels
        if name.startswith("CRT") and name.endswith(level) and sign * value > sign * score[f"jft, {level}"]
    ]
    if not behind:
        return f"As in the paper, {bench.task.name}: jft is ahead of CRT at every level with the same σ."
    return f"Not as in the paper, {bench.task.name}: ahead of jft with the same σ: {', '.join(behind)}."
