"""An attack against γ, a line for each model: what CRT's Figures 3 to 5 have in common, and the orders read off it."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import mean

from taciturn.recipes.cells import Row, Work
from taciturn.recipes.crt.bench import Bench, benches
from taciturn.recipes.crt.sizes import KINDS, SELECTIVE, SIZES, name_of
from taciturn.recipes.recipe import Inputs, Plot, Results, Series, Table
from taciturn.recipes.verdicts import Floor, Order, Runs

Cells = Mapping[tuple[str, str, float, int], Row]
Found = tuple[list[Plot], list[Table], dict[str, Cells]]
Bars = Mapping[str, Row]
"""By kind of model: what :meth:`Bench.bar` has."""
TITLES = {"customersim": "CustomerSim", "multiwoz": "MultiWOZ"}

PAPER_SETTING = (
    "MultiWOZ 2.2 and CustomerSim (10 thousand dialogues). One-layer LSTM, embedding and hidden size 200 (lr 20, "
    "batch 256, 50 "
    "epochs without noise; lr .05, batch 10, 100 epochs for CRT), and distilgpt2 (lr 5e-4, batch 256, 10 epochs). "
    "Ten "
    "canaries “My ID is: ” with six digits, 20 copies each; γ from 0 to .5; five runs; δ = 8e-5."
)
OUR_SETTING = (
    "Full: the same data, canaries and number of runs; LSTM 200/200 and distilgpt2; DP-SGD of the substitution relation at "
    "ε = 3, δ = 8e-5. Quick: 120 simulated dialogues, an LSTM of 64 units from scratch and a two-layer GPT-2 shape of 64 "
    "units trained on made-up public text, canaries of four digits, one run of each row, or as many as are asked for. "
    "Medium: CustomerSim whole, and MultiWOZ (where 2.2's test dialogues are not in the folder, 2.1's are trained on and "
    "2.2's valid ones tested on); an LSTM of 100 units from scratch that reads 1,024 tokens learned from made-up public "
    "text, S-DP with the σ of the paper's accounting, three runs, no GPT; rates of the noised steps chosen on 500 "
    "validation turns of CustomerSim with another seed, γ = .1."
)
MEDIUM = "customersim, multiwoz or both"
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
    "Rows of ours are added: CRT with skeletons, all public steps first, and in larger sizes with masks filled from a "
    "noised table of values, or with common values left in place (docs/guarantees.md, section 3).",
)
LONGER = (
    "On CustomerSim, with six plain epochs instead of medium's two, exposure and membership of single texts rise with γ in "
    "the model without noise and stay below in CRT's, both told apart as in the paper (docs/results.md, section 4)."
)
NEEDS = (
    "a GPU, distilgpt2 (or --model), and for MultiWOZ a folder that holds it (--data); hours for five runs of every row"
)


def attack(inputs: Inputs, work: Work, metric: str, y: str, level: tuple[str, float] | None = None) -> Found:
    """A plot and a table a data set, and all cells; none where nobody measured it. metric: key of a cell's row."""
    prefix = "-secret" if metric.startswith("secret") else ""
    plots: list[Plot] = []
    tables: list[Table] = []
    found: dict[str, Cells] = {}
    for name, bench in benches(inputs, work).items():
        cells = found[name] = bench.cells()
        gammas, every = bench.setting.gammas, bench.setting.lines
        for kind in bench.setting.kinds:
            lines = [line for k, row in every if k == kind and (line := _line(cells, kind, row, gammas, metric))]
            if lines:
                title, key = f"{TITLES[name]}, {kind}: {y}", f"{name}-{kind.lower()}"
                plots.append(Plot(key + prefix, title, "miss rate γ of π", y, tuple(lines), level=level))
        rows = [
            (name_of(kind, row), *(value(cells, kind, row, gamma, metric) for gamma in gammas)) for kind, row in every
        ]
        if any(cell is not None for row in rows for cell in row[1:]):
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


def row_runs(cells: Cells, bars: Bars, kind: str, row: str, gamma: float, metric: str) -> Runs | None:
    """The runs of one row at one γ, and what its models must beat; None where nothing was measured."""
    found = values(cells, kind, row, gamma, metric)
    if not found:
        return None
    utility = tuple(values(cells, kind, row, gamma, "perplexity"))
    floor = Floor(utility, tuple(bars[kind]["start"]), bars[kind]["constant"])
    return Runs(f"{name_of(kind, row)} at γ = {gamma:g}", tuple(found), floor)


def leaks(title: str, what: str, cells: Cells, bars: Bars, metric: str) -> list[Order]:
    """Section 5.3: more leaks from models trained on redacted text as γ leaves 0; less from CRT's than from those; and more
    from S-DP than from CRT."""
    gammas = sorted({gamma for _, _, gamma, _ in cells})
    first, last = gammas[0], gammas[-1]

    def at(kind: str, row: str, gamma: float) -> Runs | None:
        return row_runs(cells, bars, kind, row, gamma, metric)

    rises, below = f"{what} of non-private models rises with γ", f"{what} of CRT is below that of non-private models"
    pairs = [
        *((rises, at(kind, "redacted", last), at(kind, "redacted", first), kind) for kind in KINDS),
        *((f"{below} at γ = {last:g}", at(kind, "redacted", last), at(kind, "CRT", last), kind) for kind in KINDS),
        *(
            (f"{what} of {row} {says}", at("LSTM", row, last), at("LSTM", *other), "LSTM")
            for row in SELECTIVE
            for says, other in (
                ("rises with γ", (row, first)),
                (f"is above that of CRT at γ = {last:g}", ("CRT", last)),
            )
        ),
    ]
    return [Order(f"{title}, {says}", more, less, k, higher=True) for says, more, less, k in pairs if more and less]


def longer(inputs: Inputs) -> list[str]:
    """Why medium runs may tell no order apart: what was measured of the same rows with more epochs."""
    return [LONGER] if inputs.size == "medium" else []


def bars(inputs: Inputs, work: Work, name: str) -> Bars:
    bench = Bench(inputs, work, name)
    return {kind: bench.bar(kind) for kind in bench.setting.kinds}


def setting(inputs: Inputs, work: Work, found: Mapping[str, Cells]) -> str:
    """What was run, with its numbers."""
    s = SIZES[inputs.size]
    where = "simulated" if inputs.data is None else "from the folder given"
    runs = inputs.runs or s.seeds
    return (
        f"{' and '.join(TITLES[name] for name in found)}, {where}, by turn; ten canaries of {s.digits} digits × 20 copies; "
        f"{s.batch} expected records a noised step; ε = 3 by substitution at δ = 8e-5; groups of {s.group} in the "
        f"membership attack; {runs} run{'s' if runs > 1 else ''} of each cell. "
        + " ".join(_set_words(Bench(inputs, work, name), cells) for name, cells in found.items())
    )


def _set_words(bench: Bench, cells: Cells) -> str:
    """The same of one data set."""
    s, bar = bench.setting, bench.bar(bench.setting.kinds[0])
    gpt = f" (GPT {s.epochs[1]})" if "GPT" in s.kinds else ""
    members, told = f"{next(iter(cells.values()))['members']:,} texts a side", bench.missed()
    if bar.get("sides"):
        members += f", {bar['sides']},"
    return (
        f"{TITLES[bench.data]}: {bar.get('dialogues', s.dialogues):,} dialogues; {s.epochs[0]} epochs without noise{gpt}, "
        f"{s.steps:,} noised steps; {members} of the membership attack; {bar['turns']:,} test turns "
        f"({bar['test']}), {_bar_words(bars(bench.inputs, bench.work, bench.data))}; of {told['secrets']:,} annotated "
        f"secrets {told['missed']:,} are not wholly marked by either policy: no ε of CRT holds for them."
    )


def _bar_words(found: Bars) -> str:
    starts = ", ".join(f"{kind} {mean(row['start']):.3g}" for kind, row in found.items())
    constants = ", ".join(f"{row['constant']:.3g}" for row in list(found.values())[:1])
    return f"perplexity {starts} before training, {constants} of the tokens' frequencies"


def results(
    inputs: Inputs, work: Work, found: Mapping[str, Cells], plots: list[Plot], tables: list[Table], says: list[str]
) -> Results:
    return Results(setting(inputs, work, found), tuple(plots), tuple(tables), tuple(says))
