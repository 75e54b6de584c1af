"""docs/headline.md: what each protection costs on real dialogues, at ε = 1, 3 and 8. Written from committed rows alone.

    python experiments/headline.py                                                      # the page and its plots
    python experiments/headline.py floor multiwoz --data DATA --model GPT2 --work WORK  # a line for rows/floors.jsonl
    python experiments/values.py run multiwoz …                                         # cells for rows/headline.jsonl

rows/values.jsonl and rows/headline.jsonl have the cells that `values.py` measured; one that stands in neither is "not run".
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import values
from common import Row, Work, spread

from taciturn.recipes.draw import described, draw
from taciturn.recipes.page import table
from taciturn.recipes.recipe import Cell, Plot, Series, Table
from taciturn.recipes.verdicts import RULE, Floor, Order, Runs, apart
from taciturn.reporting.formats import bound

ROOT = Path(__file__).resolve().parents[1]
ROWS, DOCS = ROOT / "experiments" / "rows", ROOT / "docs"
CORPORA = {"multiwoz": ("MultiWOZ and SGD", "gpt2-public-xs"), "abcd": ("ABCD", "gpt2-public-s")}
STRIDE, EPSILONS = 8, (1.0, 3.0, 8.0)
PLAIN = {"non-private": "non-private", "redacted": "redacted only"}
NOISED = {
    "DP-SGD": "DP-SGD",
    "CRT as published": "CRT as published",
    "skeletons": "CRT with skeletons (ours)",
    "table, kept": "CRT with learned values (ours)",
}
NOT_RUN = "not run"
METRIC = "perplexity outside secrets"


@dataclass(frozen=True, slots=True)
class Cells:
    """Rows of one corpus. floor: perplexity before training and of the tokens' frequencies, {} where it was not measured."""

    rows: tuple[Row, ...]
    floor: Row

    def of(self, name: str, epsilon: float) -> list[Row]:
        """The runs of a row, by seed; one without noise has no ε."""
        found = [r for r in self.rows if r["row"] == name and (name in PLAIN or r["epsilon"] == epsilon)]
        return sorted({r["seed"]: r for r in found}.values(), key=lambda r: int(r["seed"]))

    def runs(self, name: str, epsilon: float) -> Runs | None:
        """What is compared, and what its models must beat; None where nothing was run."""
        found = self.of(name, epsilon)
        if not found:
            return None
        start = (self.floor["start"],) if self.floor else ()
        floor = Floor(tuple(r["all"] for r in found), start, self.floor.get("constant"))
        return Runs(name, tuple(r["outside"] for r in found), floor)


def read(corpus: str, rows: Path = ROWS) -> Cells:
    """Of both files of cells, and of the file of floors."""

    def lines(name: str) -> list[Row]:
        path = rows / name
        every = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        setting = (corpus, CORPORA[corpus][1], STRIDE)
        return [r for r in every if (r["set"], r["model"], r["stride"]) == setting]

    floors = lines("floors.jsonl")
    return Cells((*lines("values.jsonl"), *lines("headline.jsonl")), floors[0] if floors else {})


def lines(cells: Cells) -> list[tuple[Cell, ...]]:
    """Of the table: a row without noise once, one with noise at each ε."""
    every = [(name, label, None) for name, label in PLAIN.items()]
    noised = [(name, label, epsilon) for epsilon in EPSILONS for name, label in NOISED.items()]
    return [_line(label, epsilon, cells.of(name, epsilon or 0.0)) for name, label, epsilon in [*every, *noised]]


def _line(label: str, epsilon: float | None, found: Sequence[Row]) -> tuple[Cell, ...]:
    shown = "–" if epsilon is None else f"{epsilon:g}"
    if not found:
        return (label, shown, *[NOT_RUN] * 6)
    covers = "–" if epsilon is None else "any" if label == "DP-SGD" else "wholly marked"
    mu = [r["mu"] for r in found if r.get("mu") is not None]
    highest = max(found, key=lambda r: float(r["exposure"]))
    exposure = f"{highest['exposure']:.1f} ({highest['exposure_null']:.1f})"
    scores = [spread([r[name] for r in found], 1) for name in ("outside", "all")]
    return (label, shown, bound(max(mu)) if mu else "–", covers, *scores, exposure, len(found))


def plot(corpus: str, cells: Cells) -> Plot:
    """Perplexity against ε; rows without noise lie level."""
    series = []
    for name, label in {**PLAIN, **NOISED}.items():
        found = {e: [r["outside"] for r in runs] for e in EPSILONS if (runs := cells.of(name, e))}
        if found:
            x = tuple(found)
            y, low, high = (tuple(f(each) for each in found.values()) for f in (_mean, min, max))
            series.append(Series(label, x, y, low=low, high=high))
    title = f"{CORPORA[corpus][0]}: {METRIC}"
    return Plot(corpus, title, "ε by substitution", METRIC, tuple(series), log_x=True, log_y=True)


def _mean(each: Sequence[float]) -> float:
    return sum(each) / len(each)


def orders(corpus: str, cells: Cells) -> list[Order]:
    """Learned values before all others at each ε, and CRT as published before DP-SGD, as the paper has it."""
    pairs = [("table, kept", other) for other in ("skeletons", "CRT as published", "DP-SGD")]
    found = []
    for ahead, behind in [*pairs, ("skeletons", "CRT as published"), ("CRT as published", "DP-SGD")]:
        says = f"{CORPORA[corpus][0]}, {NOISED[ahead]} has a lower {METRIC} than {NOISED[behind]}"
        for epsilon in EPSILONS:
            first, second = cells.runs(ahead, epsilon), cells.runs(behind, epsilon)
            if first and second:
                found.append(Order(says, first, second, f"ε = {epsilon:g}"))
    return found


def page(rows: Path = ROWS) -> dict[str, str]:
    """Text of the page and of its plots, by file name below docs/."""
    columns = ("", "ε", "μ", "secrets covered", METRIC, "over all tokens", "exposure", "runs")
    parts, files = [HEAD], {}
    every: list[Order] = []
    for corpus, (title, model) in CORPORA.items():
        cells = read(corpus, rows)
        made, name = plot(corpus, cells), f"images/headline-{corpus}.svg"
        files[name] = draw(made, f"headline-{corpus}")
        parts += [f"## {title}", SETTING[corpus].format(model=model), f"![{described(made)}]({name})"]
        parts += [table(Table(title, columns, tuple(lines(cells)))), _left(cells)]
        every += orders(corpus, cells)
    parts += ["## What is told apart", "\n".join(f"- {line}" for line in apart(every)), RULE_HERE, TAIL]
    return {"headline.md": "\n\n".join(filter(None, parts)) + "\n", **files}


def _left(cells: Cells) -> str:
    """What no policy marks, and what a model must beat."""
    if not cells.floor:
        return ""
    f = cells.floor
    return (
        f"Of {f['labelled']:,} annotated secrets {f['left']:,} are not wholly marked by either policy: no ε of the CRT rows "
        f"holds for them. Before training the model's perplexity over all tokens is {f['start']:.0f}, that of the tokens' "
        f"frequencies {f['constant']:.0f}."
    )


HEAD = f"""# What protection costs

Written by `python experiments/headline.py` from `experiments/rows/`; do not edit. A small public model learns real
dialogues: unprotected, redacted, or with noise at the same ε. Lower perplexity is better.

- **ε** is by substitution, of one secret in one record, at δ = 8·10⁻⁵, with everything in it that the run releases. **μ**
  is that of Gaussian differential privacy for the same curve, at every δ from 1.1·10⁻⁸ up, rounded up.
- **Secrets covered**: DP-SGD's ε is of any secret. CRT's is of those that π_c marks wholly. Rows without noise promise
  nothing about a secret that π misses.
- **Exposure** is the highest of ten canaries and of all runs, in bits, of which a tenth were missed by π; in brackets what
  chance stays below in 95 of 100 models. Not above chance is no evidence of no leak.
- Mean ± standard deviation over the runs of other first weights, order and noise. “{NOT_RUN}”: no row is committed."""
SETTING = {
    "multiwoz": "MultiWOZ 2.1 test and Schema-Guided Dialogue dev, every eighth dialogue, by turn; 600 held-out turns of "
    "MultiWOZ 2.2 dev. π is `multiwoz` with a miss rate of .1, π_c `conservative`. Model: {model}; one epoch without noise, "
    "20 noised steps of 64 expected records.",
    "abcd": "ABCD valid, every eighth dialogue, by turn; 600 held-out turns of its test. π is `spacy:low-entity` with a "
    "miss rate of .1, π_c `conservative`. Model: {model}; one epoch without noise, 20 noised steps of 64 expected records.",
}
RULE_HERE = RULE.replace("called as or not as in the paper", "said to be told apart")
TAIL = """```sh title="needs the data sets"
python experiments/values.py run multiwoz --stride 8 --steps 20 --batch 64 --epsilon 3 --data DATA --model GPT2 --work WORK
python experiments/headline.py floor multiwoz --stride 8 --data DATA --model GPT2 --work WORK
```

Those lines of `WORK/values.jsonl` and `WORK/floors.jsonl` belong into `experiments/rows/headline.jsonl` and `floors.jsonl`.
More rows and other settings: [measurements](results.md#6-learned-values)."""


def floor(options: argparse.Namespace) -> None:
    """What a model must beat, and how many secrets no policy marks."""
    from taciturn.recipes.trained import constant, untrained
    from taciturn.text.segment import split

    model = {"name": str(options.model), "max_length": 128}
    with Work(options.work, "floors.jsonl").cell(
        set=options.set, model=options.model.name, stride=options.stride
    ) as cell:
        if cell is not None:
            counts = values.screened(options).counts
            test, _ = values.tested(options)
            train = [
                record
                for name, part in values.SETS[options.set][0]
                for document in list(values.source(name, part, options.data))[:: options.stride]
                for record in split(document, "turn")
            ]
            cell |= {
                "start": untrained(model, test),
                "constant": constant(model, train, test),
                "labelled": counts.gold_spans,
                "left": counts.gold_missed_by_both,
            }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("page", "floor"), nargs="?", default="page")
    parser.add_argument("set", nargs="?", choices=CORPORA, default="multiwoz")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--stride", type=int, default=STRIDE)
    parser.set_defaults(public_values=None, public_kinds=[])
    options = parser.parse_args()
    if options.do == "floor":
        floor(options)
        return
    for name, text in page().items():
        (DOCS / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
