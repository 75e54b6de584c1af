"""What a recipe is: one published figure or table, the paper's setting, ours, and what comes out.

A recipe is a module named after its item, in its paper's folder, `crt/figure3.py`, with two names:

    RECIPE = Recipe(name="crt-figure3", paper="crt", item="Figure 3", ...)       # frozen, and read without running anything

    def run(inputs: Inputs, work: Work) -> Results: ...                         # plain numbers: series and tables

The registry finds it by its file name. Nothing heavy is imported at its top (no torch, no transformers, no pyarrow), so
that all recipes can be listed in an instant. What is drawn and printed from the results is shared: draw.py and page.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

Size = Literal["smoke", "quick", "medium", "full"]
"""smoke: seconds, for tests; quick: at most five minutes on two cores; medium: real data, three runs of each row, about two
hours on two cores or ten minutes on a GPU; full: the paper's setting, which takes a GPU."""

T = TypeVar("T")

Cell = str | float | int | None
"""Of a table: None is "not measured", a float is shown with three digits, ∞ where it is infinite, text as it is."""

PAPERS = {
    "crt": "Zhao, Li and Wang 2022, Provably Confidential Language Modelling",
    "jft": "Shi, Shea, Chen, Zhang, Jia and Yu 2022, Just Fine-tune Twice: Selective Differential Privacy for Large "
    "Language Models",
    "uedp": "Lai, Phan, Sun, Jain, Dernoncourt, Gu and Barmpalios 2022, User-Entity Differential Privacy in Learning "
    "Natural Language Models",
}


SHORT = {"crt": "CRT", "jft": "JFT", "uedp": "UeDP"}


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; the first column names the row. source: where in the paper published numbers stand. bounds: the
    columns of upper bounds, such as an ε that holds, which are rounded up."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    source: str = ""
    note: str = ""
    bounds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if wrong := [row for row in self.rows if len(row) != len(self.columns)]:
            raise ValueError(f"{self.title}: {len(wrong)} rows are not as wide as the {len(self.columns)} columns")


@dataclass(frozen=True, slots=True)
class Series:
    """A curve. published: numbers of the paper, drawn as open marks, ours as filled ones. line: joined or marks alone.

    low, high: a band around y, equally long, or empty.
    """

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    published: bool = False
    line: bool = True
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y) or len(self.low) not in (0, len(self.x)) or len(self.low) != len(self.high):
            raise ValueError(f"{self.name}: x, y and a band are equally long")


@dataclass(frozen=True, slots=True)
class Plot:
    """One panel. names: of the places 0, 1, 2, … on x, where x is no number. level: (name, y) of a rule across, such as
    what chance gives. key: short, unique within the recipe; letters, digits and dashes; the file is NAME-KEY.svg."""

    key: str
    title: str
    x: str
    y: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    names: tuple[str, ...] = ()
    level: tuple[str, float] | None = None
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """What a run of a recipe found.

    setting: what was run in this size, in words, with its numbers. says: findings, one sentence or two each; those that say
    whether it is as in the paper come from :mod:`taciturn.recipes.verdicts`.
    """

    setting: str
    plots: tuple[Plot, ...] = ()
    tables: tuple[Table, ...] = ()
    says: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """One figure or table.

    name: `paper-itemN` in lower case. item: as the paper calls it. asks: the question it answers, one sentence.
    paper_setting, our_setting: data, models, sizes, epochs, ε, δ. differs: what is not as in the paper, and why.
    published: the paper's numbers, each table with its `source`; where a figure's numbers are not in the text, what the
    text says about it. needs: of the full setting, what it takes (data, model, GPU), or "" where quick is full. medium: of
    the medium size, the data sets a folder must hold, or "" where there is no such size.
    """

    name: str
    paper: Literal["crt", "jft", "uedp"]
    item: str
    title: str
    asks: str
    paper_setting: str
    our_setting: str
    differs: tuple[str, ...]
    published: tuple[Table, ...]
    needs: str = ""
    medium: str = ""

    @property
    def module(self) -> str:
        """Name of its file, without .py."""
        return self.name.replace("-", "_")

    @property
    def place(self) -> str:
        """Paper and item, such as "CRT, Figure 3"."""
        return f"{SHORT[self.paper]}, {self.item}"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the user gives. data: a folder with the papers' data sets; model: a model folder or a name on the hub; writer:
    another for tasks that generate, where ``model`` is an encoder. runs: of each row, with other first weights, order and
    noise; 0: as many as the size has."""

    size: Size = "quick"
    data: Path | None = None
    model: str | None = None
    seed: int = 0
    runs: int = 0
    writer: str | None = None

    @property
    def seeds(self) -> range:
        """One of each run of a row; the text stays that of ``seed``."""
        return range(self.seed, self.seed + (self.runs or self.pick(1, 1, 3)))

    @property
    def quick(self) -> bool:
        """Simulated data and tiny models unless the user gave others."""
        return self.size in ("smoke", "quick")

    @property
    def flags(self) -> str:
        """Of the command that runs it in this size, with a blank before each."""
        size = "" if self.size == "full" else f" --{self.size}"
        runs = f" --runs {self.runs}" if self.runs else ""
        return size + runs + (f" --seed {self.seed}" if self.seed else "")

    def pick(self, smoke: T, quick: T, full: T) -> T:
        """The value of this size. Medium's is full's: what it has of its own stands in a table by size."""
        return {"smoke": smoke, "quick": quick, "medium": full, "full": full}[self.size]


def statements(title: str, source: str, said: Sequence[str]) -> Table:
    """For figures whose numbers are not in the paper's text: what the text says of them."""
    return Table(title, ("the text says",), tuple((each,) for each in said), source)


@dataclass(frozen=True, slots=True)
class Built:
    """A recipe that ran: its results, and the CPU seconds all its cells took when they were measured."""

    recipe: Recipe
    results: Results
    inputs: Inputs
    seconds: float
    files: tuple[Path, ...] = field(default=())
