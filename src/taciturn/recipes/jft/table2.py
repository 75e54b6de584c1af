"""JFT, Table 2: utility of jft at four levels of detectors, for understanding and for generation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from taciturn.recipes.cells import Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft import medium
from taciturn.recipes.jft.bench import Bench, chosen
from taciturn.recipes.jft.paper import LEVELS, NEEDS, PAPER, READING
from taciturn.recipes.jft.phases import epsilons
from taciturn.recipes.recipe import Cell, Inputs, Plot, Recipe, Results, Series, Table
from taciturn.recipes.verdicts import Order, Runs, merged, sentences

Found = Mapping[str, tuple[Cell, ...]]
"""Rows of one run by name."""

OURS = "jft with values (ours)"
FULL = ("mnli", "qqp", "qnli", "sst2", "wikitext2", "abcd")

RECIPE = Recipe(
    name="jft-table2",
    paper="jft",
    item="Table 2",
    title="detectors of four levels",
    asks="How much utility does jft keep as more is redacted, beside DP-SGD and redaction alone?",
    paper_setting=f"MNLI, QQP, QNLI, SST-2 (accuracy, RoBERTa), WikiText-2, ABCD (perplexity, GPT-2). {PAPER}.",
    our_setting="The same rows on the same sets in full; a redacted row is the jft model where its first phase ends. "
    f"Medium: SST-2, {medium.SENTENCES.steps} noised steps of {medium.SENTENCES.batch:,} of the end of a small encoder; "
    f"where --writer names a language model, the turns of ABCD, {medium.TURNS.steps} of {medium.TURNS.batch} of its last "
    "layer; and a row of ours, jft with masks filled from a noised table of values.",
    differs=(
        READING + ".",
        "Records are trained on one by one, not packed into blocks; no special tokens but `<MASK>`, so there is one "
        "DP-SGD row.",
        "Learning rates are not tuned for each cell; the paper picks the best of its Table 5. In the medium size that of "
        "DP-SGD is chosen on records held out of the training text, which costs privacy that nobody counts, as there.",
        "The medium size trains the end of a small model, where the paper trains RoBERTa or GPT-2 whole: there is "
        "less to learn, and less that noise can undo (docs/papers.md, Sizes).",
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
    medium=medium.NEEDS_BOTH,
)


def run(inputs: Inputs, work: Work) -> Results:
    """One classifying and one generating task; all six in full."""
    names = medium.tasks(inputs)
    if inputs.size != "medium":
        names = chosen(inputs.pick(("wikitext2",), ("sst2", "wikitext2"), FULL), inputs)
    benches = {b.task.name: b for b in (jft_bench.bench(name, inputs, work) for name in names)}
    levels = {name: _levels(b) for name, b in benches.items()}
    found = {name: [rows(each, levels[name]) for each in b.each_run()] for name, b in benches.items()}
    compared = {name: b.compared(found[name]) for name, b in benches.items()}
    claims = [each for name in benches for each in orders(name, levels[name], compared[name])]
    if inputs.size == "medium":
        classes = [name for name, b in benches.items() if b.task.classifies]
        claims += [each for name in classes for each in near(name, levels[name], compared[name])]
    return Results(
        setting=" ".join(b.setting() for b in benches.values()),
        plots=tuple(_plot(b, levels[name], compared[name]) for name, b in benches.items()),
        tables=tuple(_table(b, found[name]) for name, b in benches.items()),
        says=tuple(sentences(claims, [o for name in benches for o in ours(name, levels[name], compared[name])])),
    )


def _levels(bench: Bench) -> tuple[str, ...]:
    """Detectors that a task is redacted by."""
    return (
        medium.of(bench.task).levels if bench.inputs.size == "medium" else bench.inputs.pick(LEVELS[:1], LEVELS, LEVELS)
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
    if bench.inputs.size == "medium":
        for level in medium.FILLED:
            filled = {**bench.public(), "fill": "learned"}  # at the same ε in all
            row = bench.fine_tuned_twice(level, f"jft with values {level}", redacted=filled)
            made[f"{OURS}, {level}"] = (bench.shown(row["score"]), 100 * row["share"], *epsilons(row), None)
    return made


def _table(bench: Bench, found: Sequence[Found]) -> Table:
    columns = ("row", bench.metric, "words redacted, %", "ε, detected", "ε, missed", "ε as published")
    note = (
        "ε at the task's δ: of a secret that the detector finds and of one it misses, by substitution; as "
        "published: of the "
        "same noise, by add and remove."
    )
    return Table(bench.task.name, columns, merged(found), note=note)


def _plot(bench: Bench, levels: tuple[str, ...], compared: Mapping[str, Runs]) -> Plot:
    at = tuple(float(n) for n in range(len(levels)))

    def scores(kind: str) -> tuple[float, ...]:
        return tuple(compared[kind.format(level)].mean for level in levels)

    series: tuple[Series, ...] = (
        Series("redacted", at, scores("redacted, {}")),
        Series("jft", at, scores("jft, {}")),
        Series("DP-SGD", at, scores("DP-SGD")),
        Series("no-DP", at, scores("no-DP")),
    )
    filled = [place for place, level in enumerate(levels) if f"{OURS}, {level}" in compared]
    if filled:
        means = tuple(compared[f"{OURS}, {levels[place]}"].mean for place in filled)
        series = (*series, Series(OURS, tuple(map(float, filled)), means))
    key = bench.task.name
    return Plot(key, f"{key}: {bench.metric} by detector", "detector", bench.metric, series,
                log_y=not bench.task.classifies, names=levels)  # fmt: skip


def orders(task: str, levels: tuple[str, ...], rows: Mapping[str, Runs]) -> list[Order]:
    """What section 6.1 says: jft before DP-SGD and before its own first phase at every level, which gains most where most is
    redacted."""
    higher = next(iter(rows.values())).floor.higher  # type: ignore[union-attr]
    found = []
    for against in ("DP-SGD", "redacted"):
        for level in levels:
            behind = rows["DP-SGD" if against == "DP-SGD" else f"redacted, {level}"]
            says = f"{task}, jft is ahead of {'DP-SGD' if against == 'DP-SGD' else 'redaction alone'}"
            found.append(Order(says, rows[f"jft, {level}"], behind, level, higher))
    if len(levels) > 1:
        most, least = (_gain(rows, level) for level in (levels[-1], levels[0]))
        found.append(
            Order(f"{task}, the second phase gains more where more is redacted", most, least, levels[-1], True)
        )
    return found


def ours(task: str, levels: tuple[str, ...], rows: Mapping[str, Runs]) -> list[Order]:
    """No order of the paper's: values in the masks before masks alone, at the same ε."""
    return [
        Order(f"{task}, {OURS} is ahead of jft", rows[name], rows[f"jft, {level}"], level, rows[name].floor.higher)  # type: ignore[union-attr]
        for level in levels
        if (name := f"{OURS}, {level}") in rows
    ]


NEAR = 0.969
"""What the paper's worst redacted model on SST-2 keeps of the accuracy without privacy: 91.86 of 94.8, "only" 2.94 less."""


def near(task: str, levels: tuple[str, ...], rows: Mapping[str, Runs]) -> list[Order]:
    """Section 6.1 of SST-2: near the model without privacy at every level."""
    says, bar = f"{task}, jft keeps {NEAR:g} of the accuracy without privacy", rows["no-DP"].scaled(NEAR)
    return [Order(says, rows[f"jft, {level}"], bar, level, higher=True) for level in levels]


def _gain(rows: Mapping[str, Runs], level: str) -> Runs:
    """Of the second phase, run by run."""
    first, second = rows[f"redacted, {level}"], rows[f"jft, {level}"]
    sign = 1 if second.floor and second.floor.higher else -1
    gains = (sign * (b - a) for a, b in zip(first.scores, second.scores, strict=True))
    return Runs(f"gain, {level}", tuple(gains), second.floor)
