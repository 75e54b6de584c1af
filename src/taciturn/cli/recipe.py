"""taciturn recipe: the figures and tables of the three papers, run again."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.options import Json

if TYPE_CHECKING:
    from taciturn.recipes.recipe import Inputs, Recipe, Size, Table


def recipe(
    what: Literal["list", "show", "run"],
    *names: Annotated[str, Parameter(help="recipes, e.g. crt-figure3; of list and show, all without one")],
    every: Annotated[bool, Parameter(name="--all", help="run: every recipe", negative="")] = False,
    quick: Annotated[bool, Parameter(help="simulated data, tiny models, at most 5 minutes each", negative="")] = False,
    medium: Annotated[
        bool,
        Parameter(help="real data (--data), three runs a row, two hours on two cores or minutes on a GPU", negative=""),
    ] = False,
    data: Annotated[Path | None, Parameter(help="folder with the papers' data sets, instead of simulated ones")] = None,
    model: Annotated[str | None, Parameter(help="model folder or name on the hub, instead of a tiny one")] = None,
    writer: Annotated[str | None, Parameter(help="for tasks that generate, where --model is an encoder")] = None,
    seed: int = 0,
    runs: Annotated[int | None, Parameter(help="of each row, for verdicts three at least; else the size's own")] = None,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="folder for pages and plots")] = Path("papers"),
    json: Json = False,
) -> None:
    """List, show or run recipes: one for each figure and table of the papers, with the paper's numbers beside ours.

    Without --quick or --medium a recipe runs the paper's own setting, which takes a GPU, its data and a model. What was
    measured is kept in OUTPUT/.work, cell by cell, and not measured again: a run that was stopped goes on. That folder holds
    the text and models it was measured on. Cells are read from OUTPUT/rows too, if they stand there.

    Example: `taciturn recipe list`, or `taciturn recipe run crt-figure3 --quick -o papers/`
    """
    from taciturn.cli.show import as_json
    from taciturn.errors import UsageError
    from taciturn.recipes import registry
    from taciturn.recipes.recipe import Inputs

    if every and (names or what != "run"):
        raise UsageError("--all belongs to `taciturn recipe run` and takes no names")
    if what == "run" and not names and not every:
        raise UsageError("name a recipe to run (`taciturn recipe list` has them), or give --all")
    if quick and medium:
        raise UsageError("--quick and --medium are two sizes; give one")
    if runs is not None and runs < 1:
        raise UsageError(f"--runs must be at least 1, got {runs}")
    chosen = list(names) if names else registry.names()
    recipes = [registry.recipe(name) for name in chosen]
    if what == "run":
        size: Size = "quick" if quick else "medium" if medium else "full"
        _run(recipes, Inputs(size, data, model, seed, runs or 0, writer), output, json)
    elif json:
        as_json([_data(each) for each in recipes])
    elif what == "list":
        _list(recipes)
    else:
        for each in recipes:
            _show(each)


def _run(recipes: list[Recipe], inputs: Inputs, output: Path, json: bool) -> None:
    """Each in turn. One that cannot run stops the command, unless others were asked for too: they run first."""
    from taciturn.cli.show import as_json, out, talk
    from taciturn.errors import DataError, UsageError
    from taciturn.recipes.build import build

    done: list[dict[str, Any]] = []
    failed: list[UsageError | DataError] = []
    for each in recipes:
        try:
            built = build(each.name, inputs, output, partial(_say, each.name))
        except (UsageError, DataError) as error:
            failed.append(error)
            if len(recipes) > 1:
                talk.print(f"{each.name}: not run: {error}")
            continue
        page = built.files[0]
        done.append(
            {
                "name": each.name,
                "page": str(page),
                "cpu_seconds": round(built.seconds, 1),
                "size": built.inputs.size,
                "setting": built.results.setting,
                "tables": [_rows(table) for table in built.results.tables],
                "says": list(built.results.says),
            }
        )
        if not json:
            out.print(f"{each.name}: {page} ({built.seconds:,.0f} CPU seconds)")
            for line in built.results.says:
                out.print(f"  {line}")
    if json:
        as_json(done)
    if failed:
        raise failed[0]


def _say(name: str, line: str) -> None:
    from taciturn.cli.show import talk

    talk.print(f"{name}: {line}")


def _list(recipes: list[Recipe]) -> None:
    from taciturn.cli.show import out, table

    rows = [(each.name, f"{each.place}: {each.title}{' *' if each.needs else ''}") for each in recipes]
    out.print(table("recipes", ("name", "what it runs again"), rows, left=True))
    out.print("* without --quick it takes more than a CPU: taciturn recipe show NAME says what")
    out.print("run one: taciturn recipe run NAME --quick")


def _show(each: Recipe) -> None:
    from taciturn.cli.show import out, table
    from taciturn.recipes.page import cell_text
    from taciturn.recipes.recipe import PAPERS

    out.print(f"{each.name}: {each.title} ({each.item} of {PAPERS[each.paper]})", style="bold")
    out.print(each.asks)
    out.print(f"The paper: {each.paper_setting}")
    out.print(f"Ours: {each.our_setting}")
    for line in each.differs:
        out.print(f"Differs: {line}")
    if each.medium:
        out.print(f"The medium size takes a folder with {each.medium}")
    if each.needs:
        out.print(f"The full setting needs {each.needs}")
    for one in each.published:
        rows = [tuple(cell_text(cell) for cell in row) for row in one.rows]
        out.print(table(f"{one.title} ({one.source})", one.columns, rows))


def _data(each: Recipe) -> dict[str, Any]:
    return {
        "name": each.name,
        "paper": each.paper,
        "item": each.item,
        "title": each.title,
        "asks": each.asks,
        "paper_setting": each.paper_setting,
        "our_setting": each.our_setting,
        "differs": list(each.differs),
        "needs": each.needs,
        "medium": each.medium,
        "published": [_rows(table) for table in each.published],
    }


def _rows(table: Table) -> dict[str, Any]:
    return {
        "title": table.title,
        "source": table.source,
        "rows": [dict(zip(table.columns, row, strict=True)) for row in table.rows],
        "note": table.note,
    }
