"""JFT, Table 2: utility of jft at four levels of detectors, for understanding and for generation."""

from __future__ import annotations

from taciturn.recipes.cells import Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft.bench import Bench, chosen, epsilons
from taciturn.recipes.jft.paper import LEVELS, NEEDS, PAPER, READING
from taciturn.recipes.recipe import Cell, Inputs, Plot, Recipe, Results, Series, Table

FULL = ("mnli", "qqp", "qnli", "sst2", "wikitext2", "abcd")

RECIPE = Recipe(
    name="jft-table2",
    paper="jft",
    item="Table 2",
    title="detectors of four levels",
    asks="How much utility does jft keep as more is redacted, beside DP-SGD and redaction alone?",
    paper_setting=f"MNLI, QQP, QNLI, SST-2 (accuracy, RoBERTa), WikiText-2, ABCD (perplexity, GPT-2). {PAPER}.",
    our_setting="The same rows on the same sets in full; a redacted row is the jft model where its first phase ends.",
    differs=(
        READING + ".",
        "Records are trained on one by one, not packed into blocks; no special tokens but `<MASK>`, so there is one "
        "DP-SGD row.",
        "Learning rates are not tuned for each cell; the paper picks the best of its Table 5.",
        "The body of the table is lost in our copy of the paper; its numbers here are those that the text repeats.",
    ),
    published=(
        Table(
            "Accuracy, %",
            ("row", "MNLI", "QNLI", "SST-2"),
            (
                ("no-DP", None, None, 94.8),
                ("DP-SGD", 82.10, None, 86.12),
                ("redacted, low contextual", None, 85.30, None),
                ("jft, low contextual", None, 87.99, None),
                ("redacted, high contextual", 83.23, 82.81, 91.17),
                ("jft, high contextual", None, 87.06, None),
                ("redacted, high contextual: tokens, %", 44.27, None, 38.13),
            ),
            "section 6.1",
            "The text also calls 91.86 the worst accuracy of all redacted models on SST-2, below which its own "
            "91.17 lies.",
        ),
        Table(
            "Perplexity",
            ("row", "WikiText-2", "ABCD"),
            (
                ("no fine-tuning", 30.08, 13.60),
                ("no-DP", 20.48, None),
                ("DP-SGD", 27.05, 8.31),
                ("DP-SGD with special tokens", 30.32, None),
                ("redacted, low contextual", 37.90, None),
                ("jft, low contextual", 25.62, None),
                ("redacted, high contextual", 54.29, None),
                ("jft, high contextual", 27.19, None),
            ),
            "sections 6.1, 6.3 and A.2",
        ),
    ),
    needs=NEEDS,
)


def run(inputs: Inputs, work: Work) -> Results:
    """One classifying and one generating task; all six in full."""
    names = chosen(inputs.pick(("wikitext2",), ("sst2", "wikitext2"), FULL), inputs)
    levels = inputs.pick(LEVELS[:1], LEVELS, LEVELS)
    benches = [jft_bench.bench(name, inputs, work) for name in names]
    found = {bench.task.name: rows(bench, levels) for bench in benches}
    return Results(
        setting=" ".join(bench.setting() for bench in benches),
        plots=tuple(_plot(bench, levels, found[bench.task.name]) for bench in benches),
        tables=tuple(_table(bench, found[bench.task.name]) for bench in benches),
        says=tuple(said for bench in benches for said in _says(bench, levels, found[bench.task.name])),
    )


def rows(bench: Bench, levels: tuple[str, ...]) -> dict[str, tuple[Cell, ...]]:
    """Row name -> (score, redacted %, ε detected, ε missed, ε as published)."""
    no_dp, private = bench.no_dp(), bench.dpsgd()
    inf = float("inf")
    made: dict[str, tuple[Cell, ...]] = {
        "no fine-tuning": (bench.shown(bench.start()), None, None, None, None),
        "no-DP": (bench.shown(no_dp["score"]), None, inf, inf, inf),
        "DP-SGD": (bench.shown(private["score"]), None, *epsilons(private), private["as published"]["private"]),
    }
    for level in levels:
        row = bench.fine_tuned_twice(level, f"jft {level}")
        share = 100 * row["share"]
        made[f"redacted, {level}"] = (bench.shown(row["scores"][0][-1]), share, 0.0, inf, 0.0)
        made[f"jft, {level}"] = (bench.shown(row["score"]), share, *epsilons(row), row["as published"]["private"])
    return made


def _table(bench: Bench, found: dict[str, tuple[Cell, ...]]) -> Table:
    columns = ("row", bench.metric, "words redacted, %", "ε, detected", "ε, missed", "ε as published")
    note = (
        "ε at the task's δ: of a secret that the detector finds and of one it misses, by substitution; as "
        "published: of the "
        "same noise, by add and remove."
    )
    return Table(bench.task.name, columns, tuple((name, *cells) for name, cells in found.items()), note=note)


def _plot(bench: Bench, levels: tuple[str, ...], found: dict[str, tuple[Cell, ...]]) -> Plot:
    at = tuple(float(n) for n in range(len(levels)))

    def scores(kind: str) -> tuple[float, ...]:
        return tuple(float(found[kind.format(level)][0] or 0) for level in levels)

    series = (
        Series("redacted", at, scores("redacted, {}")),
        Series("jft", at, scores("jft, {}")),
        Series("DP-SGD", at, scores("DP-SGD")),
        Series("no-DP", at, scores("no-DP")),
    )
    key = bench.task.name
    return Plot(key, f"{key}: {bench.metric} by detector", "detector", bench.metric, series,
                log_y=not bench.task.classifies, names=levels)  # fmt: skip


def _says(bench: Bench, levels: tuple[str, ...], found: dict[str, tuple[Cell, ...]]) -> list[str]:
    def better(a: float, b: float) -> bool:
        return a > b if bench.task.classifies else a < b

    score = {name: float(cells[0] or 0) for name, cells in found.items()}
    ahead = [level for level in levels if better(score[f"jft, {level}"], score["DP-SGD"])]
    gains = [level for level in levels if better(score[f"jft, {level}"], score[f"redacted, {level}"])]
    name = bench.task.name
    behind = [level for level in levels if level not in ahead]
    first = (
        f"As in the paper, {name}: jft is ahead of DP-SGD at every level at ε = 3."
        if not behind
        else f"Not as in the paper, {name}: jft is not ahead of DP-SGD at {', '.join(behind)}: the first phase ends "
        f"too far off "
        "for so few private steps."
    )
    second = f"{name}: the second phase improves on redaction alone at {', '.join(gains) or 'no level'}."
    gaps = [abs(score[f"jft, {level}"] - score[f"redacted, {level}"]) for level in levels]
    third = (
        f"As in the paper, {name}: the second phase brings most where most is redacted."
        if max(gaps) in gaps[len(gaps) // 2 :]
        else f"Not as in the paper, {name}: the second phase does not bring most where most is redacted."
    )
    return [first, second, third]
