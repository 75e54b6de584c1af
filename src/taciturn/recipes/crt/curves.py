"""An attack against γ, a line for each model: what CRT's Figures 3 to 5 have in common."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from taciturn.recipes.cells import Row, Work
from taciturn.recipes.crt.bench import Bench, where_from
from taciturn.recipes.crt.sizes import FULL, KINDS, QUICK, ROWS, SMOKE, name_of
from taciturn.recipes.recipe import Inputs, Plot, Results, Series, Table

Cells = Mapping[tuple[str, str, float, int], Row]
Found = tuple[list[Plot], list[Table], dict[str, Cells]]
TITLES = {"customersim": "CustomerSim", "multiwoz": "MultiWOZ 2.2"}

PAPER_SETTING = (
    "MultiWOZ 2.2 and CustomerSim (10 thousand dialogues). One-layer LSTM, embedding and hidden size 200 (lr 20, "
    "batch 256, 50 "
    "epochs without noise; lr .05, batch 10, 100 epochs for CRT), and distilgpt2 (lr 5e-4, batch 256, 10 epochs). "
    "Ten "
    "canaries “My ID is: ” with six digits, 20 copies each; γ from 0 to .5; five runs; δ = 8e-5."
)
OUR_SETTING = (
    "Full: the same data, canaries and number of runs; LSTM 200/200 and distilgpt2; DP-SGD of the substitution "
    "relation at "
    "ε = 3, δ = 8e-5. Quick: 120 simulated dialogues, an LSTM of 64 units from scratch and a two-layer GPT-2 shape "
    "of 64 "
    "units trained on made-up public text, canaries of four digits, one run."
)
DIFFERS = (
    "Models and text of the quick size are a thousandth of the paper's: what can be compared is the order of the "
    "rows and the "
    "shape of the curves, not their heights.",
    "ε is by substitution, the relation of Definition 2, and equal for all noised rows: the paper accounts by "
    "adding and "
    "removing records, and does not print its σ. S-DP's ε counts every noise and gives a record's coin away, so "
    "its σ is larger.",
    "All copies of a canary share one fate, and the coin is chosen so that π misses 10γ of the ten: chance would "
    "decide else.",
    "The LSTM reads the GPT's tokens, so that their perplexities compare; AdamW, where the paper's LSTM has SGD.",
    "A row of ours is added: CRT with skeletons, all public steps first (docs/guarantees.md, section 3).",
)
NEEDS = (
    "a GPU, distilgpt2 (or --model), and for MultiWOZ a folder that holds it (--data); hours for five runs of every row"
)


def attack(inputs: Inputs, work: Work, metric: str, y: str, level: tuple[str, float] | None = None) -> Found:
    """A plot and a table a data set, and all cells. metric: key of a cell's row."""
    plots: list[Plot] = []
    tables: list[Table] = []
    found: dict[str, Cells] = {}
    for name in where_from(inputs):
        bench = Bench(inputs, work, name)
        cells = found[name] = bench.cells()
        gammas = bench.setting.gammas
        for kind in KINDS:
            lines = [
                line
                for row, kinds in ROWS.items()
                if kind in kinds and (line := _line(cells, kind, row, gammas, metric))
            ]
            if lines:
                title, key = f"{TITLES[name]}, {kind}: {y}", f"{name}-{kind.lower()}"
                plots.append(Plot(key, title, "miss rate γ of π", y, tuple(lines), level=level))
        rows = [
            (name_of(kind, row), *(value(cells, kind, row, gamma, metric) for gamma in gammas))
            for kind in KINDS
            for row, kinds in ROWS.items()
            if kind in kinds
        ]
        tables.append(Table(f"{TITLES[name]}: {y}", ("model", *(f"γ = {g:g}" for g in gammas)), tuple(rows)))
    return plots, tables, found


def values(cells: Cells, kind: str, row: str, gamma: float, metric: str) -> list[float]:
    """Of all seeds."""
    return [
        each[metric]
        for (k, r, g, _), each in cells.items()
        if (k, r, g) == (kind, row, gamma) and each.get(metric) is not None
    ]


def value(cells: Cells, kind: str, row: str, gamma: float, metric: str) -> float | None:
    """The mean of all seeds, None where nothing was measured."""
    found = values(cells, kind, row, gamma, metric)
    return mean(found) if found else None


def unique(cells: Cells, rows: tuple[str, ...]) -> list[Row]:
    """Cells of these rows, one that stands for several γ once."""
    return list({id(cell): cell for (_, row, _, _), cell in cells.items() if row in rows}.values())


def _line(cells: Cells, kind: str, row: str, gammas: tuple[float, ...], metric: str) -> Series | None:
    every = {gamma: found for gamma in gammas if (found := values(cells, kind, row, gamma, metric))}
    if not every:
        return None
    x, name = tuple(every), name_of(kind, row)
    band = len(next(iter(every.values()))) > 1
    low, high = (tuple(f(found) for found in every.values()) if band else () for f in (min, max))
    return Series(name, x, tuple(mean(found) for found in every.values()), low=low, high=high)


def setting(inputs: Inputs, found: Mapping[str, Cells]) -> str:
    """What was run, with its numbers."""
    s = inputs.pick(SMOKE, QUICK, FULL)
    data = " and ".join(TITLES[name] for name in found)
    where = "simulated" if inputs.data is None else "from the folder given"
    cell = next(iter(next(iter(found.values())).values()))
    return (
        f"{data}, {where}: {s.dialogues:,} dialogues by turn, ten canaries of {s.digits} digits × 20 copies; "
        f"{s.epochs[0]} "
        f"epochs without noise (GPT {s.epochs[1]}), {s.steps:,} noised steps of {s.batch} expected "
        f"records; ε = 3 "
        f"by substitution at δ = 8e-5; {cell['members']:,} texts a side of the membership attack, groups of "
        f"{s.group}; "
        f"{s.seeds} run{'s' if s.seeds > 1 else ''} of each cell."
    )


def results(
    inputs: Inputs, found: Mapping[str, Cells], plots: list[Plot], tables: list[Table], says: list[str]
) -> Results:
    return Results(setting(inputs, found), tuple(plots), tuple(tables), tuple(says))


def order(holds: bool, yes: str, no: str) -> str:
    """A finding that says which way it went."""
    return f"As in the paper: {yes}" if holds else f"Not as in the paper: {no}"
