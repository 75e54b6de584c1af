"""docs/papers/reruns.md: pages whose runs tell an order apart, run again with other seeds and other made-up text.

    python experiments/reruns.py run --work WORK    # measures; a kept cell is not measured again; then writes the page
    python experiments/reruns.py                    # writes the page from rows alone

Rows of the page lie in docs/papers/rows/, of the second time in docs/papers/rows/again/.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from taciturn.recipes import registry, tiny_models, verdicts
from taciturn.recipes.cells import Work
from taciturn.recipes.page import READ, table
from taciturn.recipes.recipe import Inputs, Table
from taciturn.recipes.verdicts import AS, NOT_AS, Verdict

PAPERS = Path(__file__).resolve().parents[1] / "docs" / "papers"
ROWS, AGAIN = PAPERS / "rows", PAPERS / "rows" / "again"
SEED = 100
"""Of the second time: first weights, order, made-up text. Noise is never seeded."""
Key = tuple[str, str, str, str]


@contextmanager
def heard() -> Iterator[list[Verdict]]:
    """Every verdict that is computed meanwhile."""
    found: list[Verdict] = []
    compute = verdicts.verdicts

    def hear(orders: list[verdicts.Order]) -> list[Verdict]:
        computed = compute(orders)
        found.extend(computed)
        return computed

    with patch.object(verdicts, "verdicts", hear):
        yield found


def said(name: str, inputs: Inputs, work: Work) -> dict[Key, Verdict]:
    """What a recipe says of each order, by the words of the order and the two rows it compares."""
    with heard() as found:
        registry.run(name, inputs, work)
    named = {
        (each.order.says, each.order.at, each.order.ahead.name, getattr(each.order.behind, "name", "")): each
        for each in found
    }
    assert len(named) == len(found), f"{name}: two orders of the same words"
    return named


def settled(name: str, seed: int = 0) -> dict[Key, Verdict]:
    """The same from committed rows."""
    with TemporaryDirectory() as folder:
        work = Work(Path(folder), unmeasured)
        work.restore(((AGAIN if seed else ROWS) / f"{name}.jsonl").read_text("utf-8"))
        with patch.object(tiny_models, "_train", lambda *_: None):  # nothing is measured, so no model is needed
            return said(name, Inputs("quick", runs=runs(name), seed=seed), work)


def unmeasured(cell: str) -> None:
    raise RuntimeError(f"no row of {cell}: the rows are of another version of the recipe")


def runs(name: str) -> int:
    """How many of each row the page has."""
    found = re.search(rf"`taciturn recipe run {name} --quick --runs (\d+)`", (PAPERS / f"{name}.md").read_text("utf-8"))
    return int(found[1]) if found else 0


def told(found: dict[Key, Verdict]) -> dict[Key, Verdict]:
    return {key: each for key, each in found.items() if each.kind in (AS, NOT_AS)}


def pages() -> list[str]:
    """Quick pages of several runs in which an order is told apart."""
    have = [name for name in registry.names() if (ROWS / f"{name}.jsonl").exists() and runs(name) > 1]
    return [name for name in have if told(settled(name))]


def overturned(first: dict[Key, Verdict], again: dict[Key, Verdict]) -> list[Key]:
    """Orders that one time is as in the paper and the other not."""
    return [key for key, each in told(first).items() if again[key].kind in {AS, NOT_AS} - {each.kind}]


HEAD = """# Verdicts, run again

Written by `python experiments/reruns.py` from the rows beside the pages; do not edit. [All recipes](recipes.md) · {read}

A page says that an order is as or not as in its paper only [by a rule](../papers.md#when-a-page-says-as-in-the-paper). Each
quick page whose runs tell an order apart was run once more, with other first weights, order of records, made-up text and
noise: `taciturn recipe run NAME --quick --runs 3 --seed {seed}`.

Of {all} verdicts {same} came out again, {untold} were not told apart the second time, and {overturned} were overturned.
"""
TAIL = """What is computed and not measured, such as an ε, comes out again by itself and is not listed. Pages on real data
were measured once."""


def page() -> str:
    """The page, of the rows alone."""
    rows: list[tuple[str, ...]] = []
    counts = {"all": 0, "same": 0, "untold": 0, "overturned": 0}
    for name in pages():
        first, again = settled(name), settled(name, SEED)
        turned = overturned(first, again)
        for key in first:
            once, twice = first[key].kind, again[key].kind
            if not {AS, NOT_AS} & {once, twice}:
                continue
            words = ", ".join(each for each in key[:2] if each)
            rows.append((f"[{name}]({name}.md)", words, _shown(first[key]), _shown(again[key])))
            if once in (AS, NOT_AS):
                counts["all"] += 1
                counts["overturned" if key in turned else "same" if once == twice else "untold"] += 1
    found = Table("Orders that were told apart one of the two times", ("page", "order", "first", "again"), tuple(rows))
    return "\n\n".join([HEAD.format(seed=SEED, read=READ, **counts).rstrip(), table(found), TAIL]) + "\n"


def _shown(verdict: Verdict) -> str:
    numbers = verdicts.numbers(replace(verdict, order=replace(verdict.order, at="")))
    return f"{verdict.kind}: {numbers}" + (f" ({verdict.reason})" if verdict.reason else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run"])
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    if options.what:
        if options.work is None:
            parser.error("run: name a folder outside the repository with --work")
        AGAIN.mkdir(exist_ok=True)
        for name in pages():
            work = Work(options.work / registry.recipe(name).paper, print)  # figures of a paper share cells
            if (AGAIN / f"{name}.jsonl").exists():
                work.restore((AGAIN / f"{name}.jsonl").read_text("utf-8"))
            said(name, Inputs("quick", runs=runs(name), seed=SEED), work)
            (AGAIN / f"{name}.jsonl").write_text(work.lines(), "utf-8")
    (PAPERS / "reruns.md").write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
