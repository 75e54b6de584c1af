"""`taciturn budget --corpus`: the runs a screened corpus remembers, and what they spend together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taciturn.errors import DataError


def corpus_budget(corpus: Path, delta: float) -> dict[str, Any]:
    """Runs and totals as plain JSON. Raises DataError if ``corpus`` is no screened corpus or its history is damaged."""
    from taciturn.privacy.history import added, read, together

    if not (corpus / "manifest.json").is_file():
        raise DataError(f"'{corpus.name}' is not a screened corpus: it has no manifest.json")
    runs = read(corpus)
    listed = [
        {
            "date": run.last.date,
            "mechanism": run.last.mechanism,
            "state": run.last.state,
            "path": run.last.path,
            "steps_with_noise": run.noised,
            "alone": together(run.paid, delta)[0].to_json(),
        }
        for run in runs
    ]
    total = together(added(each for run in runs for each in run.paid), delta) if runs else []
    return {"runs": listed, "together": [g.to_json() for g in total], "delta": delta}


def show_corpus(found: dict[str, Any]) -> None:
    """Print what :func:`corpus_budget` found."""
    from taciturn.cli.show import out, table
    from taciturn.privacy.guarantee import Guarantee, round_up

    if not found["runs"]:
        out.print("no run on this corpus is recorded: nothing is spent")
        return
    rows = [
        (
            Path(run["path"]).name,
            run["date"][:16].replace("T", " "),
            run["mechanism"],
            _STATES[run["state"]],
            f"{run['steps_with_noise']:,}",
            round_up(Guarantee.from_json(run["alone"]).epsilon),
        )
        for run in found["runs"]
    ]
    columns = ("run", "date (UTC)", "mechanism", "state", "steps with noise", "ε alone")
    out.print(table("runs on this corpus", columns, rows))
    alone = Guarantee.from_json(found["runs"][0]["alone"])
    out.print(
        f"ε alone: {alone.notion} of {alone.unit}, neighbours by {alone.relation}, δ = {found['delta']:g}, conditional on "
        "what each certificate assumes",
        soft_wrap=True,
    )
    for each in map(Guarantee.from_json, found["together"]):
        out.print(f"together: {each.label()}{f'; because {each.reason}' if each.reason else ''}", soft_wrap=True)
    if any(run["state"] == "begun" for run in found["runs"]):
        out.print("a run that began and never ended (it was killed, or goes on) counts with all its planned steps")


_STATES = {"begun": "not ended", "stopped": "stopped", "finished": "finished"}
