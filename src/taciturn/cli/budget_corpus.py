"""`taciturn budget --corpus`: the runs a screened corpus remembers, what they spend, and what its labels allow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taciturn.cli.budget_labels import labels, print_labels
from taciturn.errors import DataError


def corpus_budget(corpus: Path, delta: float) -> dict[str, Any]:
    """Runs and totals as plain JSON. Raises DataError if ``corpus`` is no screened corpus or its history is damaged."""
    from taciturn.privacy.certificates.certificate import load_json
    from taciturn.privacy.certificates.composed_runs import compose_runs
    from taciturn.privacy.certificates.history import added, drawn, read_history
    from taciturn.privacy.guarantees import selection_law

    if not (corpus / "manifest.json").is_file():
        raise DataError(f"'{corpus.name}' is not a screened corpus: it has no manifest.json")
    runs = read_history(corpus)
    listed = [
        {
            "date": run.last.date,
            "mechanism": run.last.mechanism,
            "state": run.last.state,
            "path": run.last.path,
            "steps_with_noise": run.noised,
            "alone": compose_runs(run.paid, delta)[0].to_json(),
        }
        for run in runs
    ]
    total = compose_runs(added(each for run in runs for each in run.paid), delta) if runs else []
    found = {"runs": listed, "together": [g.to_json() for g in total], "delta": delta}
    draw = drawn(corpus)
    if draw is not None:
        kept = len({run.alike for run in runs}) == 1
        best = compose_runs(runs[0].paid, delta, selection_law.from_json(draw.drawn)) if kept else []
        found["selection"] = {**draw.drawn, "runs": draw.runs, "together": [g.to_json() for g in best]}
    counts = load_json(corpus / "manifest.json").get("counts", {})
    if counts.get("gold_spans"):
        found["labels"] = labels(counts["gold_spans"], counts["gold_missed_by_both"], delta)
    return found


def show_corpus(found: dict[str, Any]) -> None:
    """Print what :func:`corpus_budget` found."""
    from taciturn.cli.show import out, table
    from taciturn.privacy.guarantees.guarantee import Guarantee, round_up

    if "selection" in found:
        _show_draw(found["selection"], len(found["runs"]))
    if "labels" in found:
        print_labels(found["labels"])
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
        out.print(f"together: {each.label()}{f'; because {each.reason}' if each.reason else ''}")
    if any(run["state"] == "begun" for run in found["runs"]):
        out.print("a run that began and never ended (it was killed, or goes on) counts with all its planned steps")


def _show_draw(found: dict[str, Any], made: int) -> None:
    """The number of runs that was drawn, and what the best of them costs."""
    from taciturn.cli.show import out
    from taciturn.privacy.guarantees import selection_law
    from taciturn.privacy.guarantees.guarantee import Guarantee

    law = selection_law.describe(
        selection_law.from_json({k: v for k, v in found.items() if k in ("law", "mean", "shape")})
    )
    out.print(f"{found['runs']} runs were drawn from {law}, {made} were made; neither number may become known")
    if made and not found["together"]:
        out.print("they differ in mechanism, noise, rate or steps, so only what all spend together holds")
    for each in map(Guarantee.from_json, found["together"]):
        open_ones = "; ".join(a.text for a in each.assumptions if not a.enforced)
        because = f"; because {each.reason}" if each.reason else f" on: {open_ones}"
        out.print(f"the best of them: {each.label()}{because}")


_STATES = {"begun": "not ended", "stopped": "stopped", "finished": "finished"}
