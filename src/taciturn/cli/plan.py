"""taciturn plan: what a run would be, before anything is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from taciturn.cli.options import SCREENED_THERE, Allowed, Json, assign
from taciturn.mechanisms import MECHANISMS

if TYPE_CHECKING:
    from taciturn.mechanisms.search import Candidate


def plan(
    mechanism: Annotated[str, Parameter(help=f"one of {', '.join(MECHANISMS)}")],
    corpus: Annotated[str, Parameter(validator=SCREENED_THERE, help="a screened folder, or its URL")],
    *,
    model: Annotated[str, Parameter(help="lstm, awd-lstm, a folder or a hub name")] = "lstm",
    tokenizer: Annotated[str, Parameter(help="auto, bytes, bpe:SIZE, a folder or a hub name")] = "auto",
    epsilon: Annotated[float | None, Parameter(help="the target that σ is worked out for")] = None,
    delta: Annotated[float | None, Parameter(help="of the target")] = None,
    valid: Annotated[
        tuple[str, ...], Parameter(help="held-out files for perplexity; no training secrets in them")
    ] = (),
    set_: Annotated[
        tuple[str, ...], Parameter(name=["--set", "-s"], help="KEY=VALUE of run.toml, e.g. options.private.steps=300")
    ] = (),
    output: Annotated[Path | None, Parameter(name=["--output", "-o"], help="where to write run.toml")] = None,
    selection: Annotated[
        str | None,
        Parameter(
            group="Several runs",
            help="LAW:MEAN: runs to choose the best from, their number drawn with -o; e.g. geometric:10",
        ),
    ] = None,
    search: Annotated[
        int | None, Parameter(help="units that noised steps read in all: choose batch, steps and σ for them")
    ] = None,
    allow: Allowed = (),
    json: Json = False,
) -> None:
    """Work out phases, σ, sampling rate, steps and ε for a mechanism on a screened corpus; trains nothing.

    Example: `taciturn plan crt screened/ --model gpt2 --epsilon 3 --delta 8e-5 -o run.toml`
    """
    from taciturn.cli.show import as_json, out, step, talk
    from taciturn.mechanisms.config import parse
    from taciturn.mechanisms.corpus_history import number_of_runs
    from taciturn.mechanisms.planning import expected_guarantees, if_chosen, make_plan
    from taciturn.mechanisms.registry import mechanism as mechanism_named
    from taciturn.mechanisms.search import search as plans_of
    from taciturn.mechanisms.settings import RunConfig, save_config
    from taciturn.mechanisms.targets import warn_of_targets
    from taciturn.privacy.guarantees import selection_law
    from taciturn.screening.corpus.screened import load
    from taciturn.text.urls import is_url

    raw: dict[str, Any] = {
        "mechanism": mechanism,
        "corpus": corpus if is_url(corpus) else str(Path(corpus).resolve()),
        "model": {"name": model, "tokenizer": tokenizer},
        "epsilon": epsilon,
        "delta": delta,
        "train": {"valid": [str(Path(v).resolve()) for v in valid]},
        "allow": list(allow),
    }
    config = parse(RunConfig, assign(raw, set_), "plan")
    runs = None if selection is None else selection_law.parse(selection)
    screened = load(corpus)
    folder = screened.path or Path(corpus)
    with step("working out noise and steps"):
        tried = [] if search is None else plans_of(config, screened, search)
        config = tried[0].config if tried else config
        made = make_plan(config, screened)
    warn_of_targets(made, screened)
    promises = expected_guarantees(config, made, screened) if hasattr(mechanism_named(mechanism), "facts") else []
    chosen = None if runs is None else if_chosen(config, made, screened, runs)
    drawn = None if runs is None or output is None else number_of_runs(folder, runs)
    if output is not None:
        save_config(config, output)
        talk.print(f"wrote {output}; next: taciturn train {output} -o runs/NAME")
    if drawn is not None:
        talk.print(_to_do(drawn))
    if json:
        found: dict[str, Any] = made.to_json()
        if promises:
            found["guarantees"] = [each.to_json() for each in promises]
        if chosen is not None and runs is not None:
            law = selection_law.to_json(runs)
            found["selection"] = {**law, "drawn": drawn, "guarantees": [each.to_json() for each in chosen]}
        if tried:
            found["search"] = [each.to_json() for each in tried]
        as_json(found)
        return
    if tried:
        out.print(_searched(tried))
    show_plan(made)
    for each in promises:
        out.print(each.label())
    for each in chosen or ():
        out.print(f"best of a random number of such runs ({selection}): {each.label()}")


def _searched(tried: Sequence[Candidate]) -> Any:
    """The plans of one budget; the first is the one that was taken."""
    from taciturn.cli.show import number, table

    rows = [
        (
            f"{each.batch:,}",
            f"{each.steps:,}",
            number(each.noise_multiplier, 4),
            number(each.ratio),
            "taken" if each is tried[0] else "",
        )
        for each in sorted(tried, key=lambda each: each.steps)
    ]
    return table("plans that read as much", ("batch", "steps", "noise σ", "noise of the run/signal", ""), rows)


def _to_do(drawn: int) -> str:
    """What is left to the person who tunes, once the number of runs is drawn."""
    if not drawn:
        return "drawn: 0 runs are to be made; release something that does not depend on this text"
    return (
        f"drawn: {drawn} runs are to be made, with settings drawn at random from one list, scored on public text; certify "
        "the best with taciturn certify --selected. Neither this number nor the other scores may become known"
    )


def rate_of(event: Any) -> str:
    """The sampling rate of an event; several with a slash between them."""
    from taciturn.cli.show import number

    names = ("rate", "rates", "user_rate", "entity_rate")
    found = [value for name in names if (value := getattr(event, name, None)) is not None]
    rates = [rate for value in found for rate in (value if isinstance(value, tuple) else (value,))]
    return " / ".join(map(number, rates)) or "–"


def show_plan(made: Any) -> None:
    """Print a plan as a table, with what it costs."""
    from taciturn.cli.show import number, out, table
    from taciturn.mechanisms.cost import cost_lines

    rows = []
    for phase in made.phases:
        event = phase.event
        private = phase.private
        rows.append(
            (
                phase.name,
                "+".join(phase.reads),
                f"{phase.records:,}",
                f"{made.steps_of(phase):,}",
                rate_of(event),
                number(getattr(event, "noise_multiplier", None), 4),
                number(phase.rule.clip) if private and phase.moves else "–",
                f"{phase.optimiser.name} {phase.optimiser.lr:g}" if phase.moves else "–",
            )
        )
    columns = ("phase", "reads", "records", "steps", "rate q", "noise σ", "clip C", "optimiser")
    out.print(table(f"{made.mechanism} on {made.model.name}", columns, rows))
    if any(phase.private and not phase.rule.dropout for phase in made.phases):
        out.print("steps with noise run without dropout of any form, whatever the model's own settings are")
    for line in cost_lines(made):
        out.print(line)
