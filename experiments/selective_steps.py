"""Whether S-DP gives away what its policy misses: more steps and more runs than CRT's medium pages have.

    python experiments/selective_steps.py run --data DATA --papers PAPERS
    python experiments/selective_steps.py table

CustomerSim whole, as in `taciturn recipe run crt-figure3 --medium`, from the screened text and first weights that this
command has left below PAPERS; "S-DP as accounted" with its σ for that many steps by the paper's accounting. The orders are
those of section 5.3; CRT's runs are those of the recipe's page.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from common import beside_a_page, spread

from taciturn.recipes.cells import Work
from taciturn.recipes.crt.bench import Bench
from taciturn.recipes.crt.curves import leaks
from taciturn.recipes.crt.sizes import Setting, name_of
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.verdicts import sentences

ROOT = Path(__file__).parents[1]
MEDIUM = ROOT / "docs" / "papers" / "rows" / "crt-figure3-medium.jsonl"
ROWS = ROOT / "experiments" / "rows" / "selective_steps.jsonl"
STEPS, SEEDS = 800, 5
SELECTIVE = "S-DP as accounted"
GAMMAS = (0.0, 0.5)


@dataclass(frozen=True)
class Longer(Bench):
    """The medium bench with STEPS noised steps."""

    @property
    def setting(self) -> Setting:
        return replace(super().setting, steps=STEPS)


def run(data: Path, papers: Path) -> None:
    """Every cell; those that are kept are read."""
    work = Work(papers / ".work" / "crt", print)
    bench = Longer(Inputs("medium", data=data, runs=SEEDS), work)
    for seed in range(SEEDS):
        for gamma in GAMMAS:
            bench.cell("LSTM", SELECTIVE, gamma, seed)
    ROWS.write_text(work.lines())


def show(page: str, lines: str) -> str:
    """The table of both numbers of steps beside CRT, and what the runs tell apart at STEPS. page: cells of the page."""
    rows = [json.loads(line) for line in (page + lines).splitlines()]
    rows = [each for each in rows if each["key"]["bench"] == "customersim"]
    bars = {"LSTM": next(each["row"] for each in rows if each["key"]["row"] == "bar")}
    table = [
        "| noised steps | model | γ | runs | σ | highest exposure | perplexity |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    cells: dict[tuple[str, str, float, int], dict[str, Any]] = {}
    short = next(each["key"]["steps"] for each in rows if each["key"]["row"] == SELECTIVE)
    for steps, row, gammas in ((short, SELECTIVE, GAMMAS), (STEPS, SELECTIVE, GAMMAS), (short, "CRT", GAMMAS[-1:])):
        for gamma in gammas:
            here = {
                key["seed"]: each["row"]
                for each in rows
                if ((key := each["key"])["row"], key.get("gamma"), key["steps"]) == (row, gamma, steps)
            }
            told = spread([each["exposure"] for each in here.values()], 1)
            perplexity = spread([each["perplexity"] for each in here.values()], 1)
            sigma = next(iter(here.values()))["sigma"]
            table.append(
                f"| {steps} | {name_of('LSTM', row)} | {gamma:g} | {len(here)} | {sigma:.2f} | {told} | {perplexity} |"
            )
            if (row, steps) != (SELECTIVE, short):
                cells.update({("LSTM", row, gamma, seed): each for seed, each in here.items()})
    orders = leaks(f"{STEPS} steps", "highest exposure", cells, bars, "exposure")
    return "\n".join([*table, "", *(f"- {line}" for line in sentences(orders)[:-1])])


if __name__ == "__main__":
    beside_a_page(__doc__, run, lambda: show(MEDIUM.read_text(), ROWS.read_text()))
