"""docs/papers/reruns.md: pages whose runs tell an order apart, run again with other seeds and other made-up text.

    python experiments/reruns.py run --work WORK       # measures the quick pages; a kept cell is not measured again
    python experiments/reruns.py run jft-table8-medium --work WORK --data DATA --model MINILM   # pages by name
    python experiments/reruns.py                       # writes the page from rows; so do the others, in the end

CRT's medium pages take hours of processor time, JFT's Table 8 one.

Rows of the page lie in docs/papers/rows/, of the second time in docs/papers/rows/again/.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from taciturn.recipes import registry, tiny_models, verdicts
from taciturn.recipes.cells import Work
from taciturn.recipes.page import READ, table
from taciturn.recipes.recipe import Inputs, Table
from taciturn.recipes.verdicts import AS, NOT_AS, OURS, Verdict

PAPERS = Path(__file__).resolve().parents[1] / "docs" / "papers"
ROWS, AGAIN = PAPERS / "rows", PAPERS / "rows" / "again"
SEED = 100
"""Of the second time: first weights, order, made-up text. Noise is never seeded."""
MEDIUM = "-medium"
Key = tuple[str, str, str, str, bool]
"""What an order says, at what, its two rows, and whether it is ours, of no paper."""


@contextmanager
def heard() -> Iterator[dict[Key, Verdict]]:
    """Every verdict that is put into words meanwhile."""
    found: dict[Key, Verdict] = {}
    write = verdicts._lines

    def hear(made: Sequence[Verdict], words: Mapping[str, str]) -> list[str]:
        for each in made:
            order = each.order
            key = order.says, order.at, order.ahead.name, getattr(order.behind, "name", ""), words is OURS
            assert key not in found, f"two orders of the same words: {key}"
            found[key] = each
        return write(made, words)

    with patch.object(verdicts, "_lines", hear):
        yield found


def said(name: str, inputs: Inputs, work: Work) -> dict[Key, Verdict]:
    """What a recipe says of each order."""
    with heard() as found:
        registry.run(name, inputs, work)
    return found


def inputs(page: str, seed: int, data: Path, model: str = "model", writer: str = "writer") -> Inputs:
    """What a page was built with, or is built with again. data, model, writer: of a medium page, where its command names
    them."""
    if page.endswith(MEDIUM):
        command = (PAPERS / f"{page}.md").read_text("utf-8").partition("; do not edit")[0]
        named = [
            name if flag in command else None for name, flag in ((model, "--model MODEL"), (writer, "--writer WRITER"))
        ]
        return Inputs("medium", data, named[0], seed, writer=named[1])
    return Inputs("quick", runs=runs(page), seed=seed)


def settled(page: str, seed: int = 0) -> dict[Key, Verdict]:
    """The same from committed rows."""
    with TemporaryDirectory() as folder:
        work = Work(Path(folder), unmeasured)
        lines = ((AGAIN if seed else ROWS) / f"{page}.jsonl").read_text("utf-8")
        work.restore(lines)
        key = json.loads(lines.partition("\n")[0])["key"]
        data = Path(key.get("given") or key.get("data", ""))  # rows have the folder's name
        with patch.object(tiny_models, "_train", lambda *_: None):  # nothing is measured, so no model is needed
            return said(page.removesuffix(MEDIUM), inputs(page, seed, data, *models(lines)), work)


def models(lines: str) -> list[str]:
    """Names of the models of rows, in the order in which the command names them; settings of a model are none."""
    found = (json.loads(line)["key"].get("model") for line in lines.splitlines())
    return list(dict.fromkeys(name for name in found if name and not name.startswith("{")))


def unmeasured(cell: str) -> None:
    raise RuntimeError(f"no row of {cell}: the rows are of another version of the recipe")


def runs(name: str) -> int:
    """How many of each row the page has."""
    found = re.search(rf"`taciturn recipe run {name} --quick --runs (\d+)`", (PAPERS / f"{name}.md").read_text("utf-8"))
    return int(found[1]) if found else 0


def told(found: dict[Key, Verdict]) -> dict[Key, Verdict]:
    return {key: each for key, each in found.items() if each.kind in (AS, NOT_AS)}


def pages() -> list[str]:
    """Pages of several runs in which an order is told apart: quick ones, and those on real data."""
    names = registry.names()
    have = [name for name in names if (ROWS / f"{name}.jsonl").exists() and runs(name) > 1]
    have += [page for name in names if (ROWS / f"{(page := name + MEDIUM)}.jsonl").exists()]
    return [page for page in have if told(settled(page))]


def twice(page: str) -> bool:
    return (AGAIN / f"{page}.jsonl").exists()


def overturned(first: dict[Key, Verdict], again: dict[Key, Verdict]) -> list[Key]:
    """Orders that one time is as in the paper and the other not."""
    return [key for key, each in told(first).items() if again[key].kind in {AS, NOT_AS} - {each.kind}]


HEAD = """# Verdicts, run again

Written by `python experiments/reruns.py` from the rows beside the pages; do not edit. [All recipes](recipes.md) · {read}

A page says that an order is as or not as in its paper only [by a rule](../papers.md#when-a-page-says-as-in-the-paper). Each
quick page whose runs tell an order apart was run once more, with other first weights, order of records, made-up text and
noise: `taciturn recipe run NAME --quick --runs 3 --seed {seed}`{medium}.

Of {all} verdicts {same} came out again, {untold} were not told apart the second time, and {overturned} were overturned.
"""
REAL = "; and on real data {which}, with `--medium --data DATA --seed {seed}`"
TAIL = """What is computed and not measured, such as an ε, comes out again by itself and is not listed. {others} on real data
were measured once."""


def page() -> str:
    """The page, of the rows alone."""
    rows: list[tuple[str, ...]] = []
    counts = {"all": 0, "same": 0, "untold": 0, "overturned": 0}
    done = [page for page in pages() if twice(page)]
    for name in done:
        first, again = settled(name), settled(name, SEED)
        turned = overturned(first, again)
        for key in first:
            before, after = first[key].kind, again[key].kind
            if not {AS, NOT_AS} & {before, after}:
                continue
            words = ", ".join(each for each in key[:2] if each)
            rows.append((f"[{name}]({name}.md)", words, _shown(first[key], key[-1]), _shown(again[key], key[-1])))
            if before in (AS, NOT_AS):
                counts["all"] += 1
                counts["overturned" if key in turned else "same" if before == after else "untold"] += 1
    found = Table("Orders that were told apart one of the two times", ("page", "order", "first", "again"), tuple(rows))
    real = [f"[{page}]({page}.md)" for page in done if page.endswith(MEDIUM)]
    medium = REAL.format(which=", ".join(real), seed=SEED) if real else ""
    head = HEAD.format(seed=SEED, read=READ, medium=medium, **counts).rstrip()
    return "\n\n".join([head, table(found), TAIL.format(others="Other pages" if real else "Pages")]) + "\n"


def _shown(verdict: Verdict, ours: bool) -> str:
    kind = OURS.get(verdict.kind, verdict.kind) if ours else verdict.kind
    numbers = verdicts.numbers(replace(verdict, order=replace(verdict.order, at="")))
    return f"{kind}: {numbers}" + (f" ({verdict.reason})" if verdict.reason else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["run"])
    parser.add_argument("pages", nargs="*", help="which ones; none: the quick ones")
    parser.add_argument("--work", type=Path)
    parser.add_argument("--data", type=Path, help="the data sets' folder, for pages on real data")
    parser.add_argument("--model", default="model", help="for those whose command has one")
    parser.add_argument("--writer", default="writer", help="likewise")
    options = parser.parse_args()
    if options.what:
        if options.work is None:
            parser.error("run: name a folder outside the repository with --work")
        AGAIN.mkdir(exist_ok=True)
        for each in options.pages or [page for page in pages() if not page.endswith(MEDIUM)]:
            name = each.removesuffix(MEDIUM)
            if name != each and options.data is None:
                parser.error(f"{each}: give --data, the folder of the data sets")
            work = Work(options.work / registry.recipe(name).paper, print)  # figures of a paper share cells
            if twice(each):
                work.restore((AGAIN / f"{each}.jsonl").read_text("utf-8"))
            said(name, inputs(each, SEED, options.data, options.model, options.writer), work)
            (AGAIN / f"{each}.jsonl").write_text(work.lines(), "utf-8")
    (PAPERS / "reruns.md").write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
