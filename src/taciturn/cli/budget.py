"""taciturn budget: what noise, rate and steps cost; what labels allow; what a corpus has spent."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.budget_labels import labels, print_labels
from taciturn.cli.options import SCREENED_THERE, Json


def budget(
    *,
    rate: Annotated[str | None, Parameter(name=["--rate", "-q"], help="Poisson sampling rate")] = None,
    steps: Annotated[str | None, Parameter(name=["--steps", "-T"], help="noised steps")] = None,
    delta: str = "1e-5",
    sigma: Annotated[str | None, Parameter(help="noise multiplier; or give --epsilon")] = None,
    epsilon: Annotated[str | None, Parameter(help="target: the smallest σ that meets it is found")] = None,
    relation: Annotated[
        Literal["substitution", "add-remove"],
        Parameter(group="Neighbours", help="neighbours: a record replaced, or added or removed"),
    ] = "substitution",
    group: Annotated[
        str, Parameter(group="Of several", name=["--group", "-k"], help="records that change together")
    ] = "1",
    gamma: Annotated[str | None, Parameter(group="Of several", help="miss rate of π: also the Bayesian ε")] = None,
    delta2: Annotated[
        float | None, Parameter(group="Labels", help="miss rate of π and π_c together; 0, or what labels allow")
    ] = None,
    labelled: Annotated[
        int | None, Parameter(group="Labels", help="labelled secrets: which δ₂ they allow, and how many δ takes")
    ] = None,
    missed: Annotated[int, Parameter(group="Labels", help="of those, missed by π and π_c")] = 0,
    selection: Annotated[
        str | None,
        Parameter(
            group="Of several",
            help="LAW:MEAN: also what the best of so many runs costs; e.g. geometric:10, poisson:3,10",
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        Parameter(help="a screened corpus: what all runs on it spend, what its labels allow"),
    ] = None,
    plot: Annotated[Path | None, Parameter(help="write curves to FILE.html or FILE.svg")] = None,
    json: Json = False,
) -> None:
    """ε of DP-SGD for given noise, rate and steps, or the noise a target ε needs.

    One or two options may have several values, `0.5,1,2`, or a range, `FROM:TO:COUNT` (`100:1000:5`; with `:log` by equal
    factors): the result is a table. `--labelled` and `--corpus` may stand alone.

    Example: `taciturn budget --sigma 1 --rate 0.01 --steps 1000 --delta 1e-5 --relation substitution`, or
    `taciturn budget --sigma 0.5,1,2 --rate 0.01 --steps 100:1000:5 --plot epsilon.html`
    """
    from taciturn.cli.ranges import values
    from taciturn.cli.show import as_json, talk
    from taciturn.errors import UsageError

    given: dict[str, Any] = {"delta": values("--delta", delta, float)}
    for name, text in (("sigma", sigma), ("epsilon", epsilon), ("rate", rate), ("gamma", gamma)):
        if text is not None:
            given[name] = values(f"--{name}", text, float)
    if steps is not None:
        given["steps"] = values("--steps", steps, int)
    given["group"] = values("--group", group, int)
    for name in ("steps", "group"):
        if any(each < 1 for each in given.get(name, ())):
            raise UsageError(f"--{name}: expected a whole number from 1, found {min(given[name])}")
    law = None
    if selection is not None:
        law, given["runs"] = _law(selection)
    plan = [name for name in ("sigma", "epsilon", "rate", "steps", "gamma") if name in given]
    alone = labelled is not None or corpus is not None
    if plan or not alone:
        if (sigma is None) == (epsilon is None):
            raise UsageError("give either --sigma (for its ε) or --epsilon (for the σ it needs)")
        if missing := [f"--{name}" for name in ("rate", "steps") if name not in given]:
            raise UsageError(f"give {' and '.join(missing)} too: ε is of a whole run")
    if alone and len(given["delta"]) > 1:
        raise UsageError("--labelled and --corpus take one --delta")
    if corpus is not None and (plan or labelled is not None):
        raise UsageError("--corpus takes only --delta beside it: it says what was spent, not what would be")
    if law is not None and (gamma is not None or not plan):
        raise UsageError(
            "--selection is of a plan, without --gamma: give --sigma or --epsilon, --rate and --steps with it"
        )
    if law is not None and epsilon is not None and given["group"] != [1]:
        raise UsageError("--selection with a target ε is about one record: leave --group out, or give --sigma")
    if missed and labelled is None:
        raise UsageError("--missed needs --labelled: so many of how many labelled secrets?")
    if plot is not None and not any(len(each) > 1 for each in given.values()):
        raise UsageError("--plot needs an option with several values, e.g. --sigma 0.5:4:8")
    if corpus is not None:
        _of_corpus(corpus, given["delta"][0], json)
        return
    allowed = None if labelled is None else labels(labelled, missed, given["delta"][0])
    if delta2 is None:
        delta2 = 0.0 if allowed is None else allowed["delta2"]
    result = _cost(given, relation, delta2, law, plot, quiet=json) if plan else {}
    if allowed is not None:
        result["labels"] = allowed
    if plot is not None:
        talk.print(f"wrote {plot}")
    if json:
        as_json(result)
    elif allowed is not None:
        print_labels(allowed)


def _law(text: str) -> tuple[Any, list[float]]:
    """The law of the number of runs by its mean, and the means: several as for any option."""
    from functools import partial

    from taciturn.cli.ranges import values
    from taciturn.errors import UsageError
    from taciturn.privacy.guarantees import selection_law

    head, _, means = text.partition(":")
    name, shape = selection_law.law(head)
    if not means:
        raise UsageError(f"--selection {text}: expected {selection_law.FORM}")
    return partial(selection_law.selection_law, name, shape), values("--selection", means, float)


def _cost(
    given: dict[str, Any], relation: Any, delta2: float, law: Any, plot: Path | None, quiet: bool
) -> dict[str, Any]:
    """The cost of one plan or of a table of them; printed unless ``quiet``."""
    from taciturn.cli import what_if
    from taciturn.cli.show import out, table

    if all(len(each) == 1 for each in given.values()):
        result = what_if.cell({name: each[0] for name, each in given.items()}, relation, delta2, law)
        result["trade_off"] = what_if.attacks(result).to_json()
        if not quiet:
            _print_one(result)
        return result
    made = what_if.table(given, relation, delta2, law)
    if plot is not None:
        what_if.plot(made, plot)
    if not quiet:
        out.print(what_if.title(made), style="italic")
        out.print(table("", *what_if.grid(made)))
        for line in what_if.caption(made):
            out.print(line)
    return {"rows": list(made.cells), "varied": [name for name in (made.rows, made.columns) if name]}


def _print_one(result: dict[str, Any]) -> None:
    from taciturn.cli.show import out
    from taciturn.privacy.accounting.tradeoff import TradeOff
    from taciturn.privacy.guarantees.guarantee import round_up

    out.print(
        f"ε = {round_up(result['epsilon'], 4)} at δ = {result['delta']:g} ({result['notion']}, {result['relation']}, unit: "
        f"{result['unit']}, {result['status']}) for σ = {result['sigma']:.6g}, q = {result['rate']:g}, "
        f"T = {result['steps']:,}; {result['accountant']}",
        soft_wrap=True,
    )
    told = TradeOff.from_json(result["trade_off"])
    out.print(f"{told.label()}; at {told.alarms()} false alarms an attack finds at most {told.share()}")
    if "bayesian" in result:
        found = result["bayesian"]
        out.print(
            f"Bayesian: ε = {round_up(found['epsilon'], 4)} at δ = {found['delta']:g} ({found['notion']}, "
            f"{found['relation']}, unit: {found['unit']}, conditional) if π misses it with probability at most "
            f"{found['gamma']:g}, both policies at most {found['delta2']:g}; for one that was missed it is still "
            f"{round_up(found['if_missed'], 4)} at δ = {result['delta']:g}",
            soft_wrap=True,
        )
    if "selection" in result:
        found = result["selection"]
        out.print(
            f"best of a random number of runs, {found['law']} of mean {found['mean']:g}: "
            f"ε = {round_up(found['epsilon'], 4)} at δ = {found['delta']:g} ({found['notion']}, {found['relation']}, "
            f"unit: {found['unit']}, {found['status']}); "
            f"{found['theorem']}; one run by the same means: {round_up(found['single'], 4)}",
            soft_wrap=True,
        )


def _of_corpus(corpus: str, delta: float, json: bool) -> None:
    from taciturn.cli.budget_corpus import corpus_budget, show_corpus
    from taciturn.cli.show import as_json
    from taciturn.screening.corpus.screened import folder_of

    SCREENED_THERE(None, corpus)
    found = corpus_budget(folder_of(corpus), delta)
    if json:
        as_json(found)
    else:
        show_corpus(found)
