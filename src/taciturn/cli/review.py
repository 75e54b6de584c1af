"""taciturn review: label a sample, or correct redactions, on a local page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.measured import Conservative, Pi
from taciturn.cli.options import SCREENED_THERE, SPARED, Json, Spared, joined

if TYPE_CHECKING:
    from taciturn.reviewing.agreement import Agreement
    from taciturn.reviewing.context import Around
    from taciturn.reviewing.desk import Desk
    from taciturn.reviewing.labels_file import Names

KINDS = "name,phone,email,address,number,date,password,secret,unsure"
"""As many as there are digits on the keyboard. "unsure": see screening/measuring/judge.py."""


def review(
    screened: Annotated[
        str, Parameter(validator=SCREENED_THERE, help="folder that `taciturn screen` wrote", name="DIR")
    ],
    *,
    n: Annotated[int | None, Parameter(name=["-n", "--n"], help="records to draw; 400 if not given")] = None,
    by: Annotated[
        Literal["simple", "cue"], Parameter(group="Draw", help="how to draw, as in `taciturn sample`")
    ] = "simple",
    seed: Annotated[
        int | None, Parameter(group="Draw", help="of the draw; from the operating system if not given")
    ] = None,
    reviewer: Annotated[
        str | None, Parameter(group="Several people", help="who you are, when several people label the same sample")
    ] = None,
    merge: Annotated[
        bool,
        Parameter(group="Several people", help="merge the reviewers' files and say how far they agree", negative=""),
    ] = False,
    corrections: Annotated[bool, Parameter(help="correct what π found, not label a sample", negative="")] = False,
    labels: Annotated[
        Path | None, Parameter(help="the file to write or go on with; DIR/labels.jsonl (DIR/corrected.jsonl)")
    ] = None,
    force: Annotated[
        bool, Parameter(group="Several people", help="let --merge replace a merged file", negative="")
    ] = False,
    kinds: Annotated[str, Parameter(group="Page", help="what a secret may be called, comma-separated")] = KINDS,
    guidelines: Annotated[
        Path | None, Parameter(group="Page", help="a text file that says what a secret is, shown beside the records")
    ] = None,
    bound: Annotated[bool, Parameter(group="Bound", help="show the bound reached while labelling")] = True,
    policy: Annotated[Pi, Parameter(group="Bound")] = (),
    conservative: Annotated[Conservative, Parameter(group="Bound")] = (),
    policy_file: Annotated[Path | None, Parameter(group="Bound", help="TOML with detectors of your own")] = None,
    spared: Spared = SPARED,
    confidence: Annotated[float, Parameter(group="Bound", help="of each one-sided bound")] = 0.95,
    port: Annotated[int, Parameter(group="Page", help="on 127.0.0.1; 0 takes a free one")] = 0,
    browser: Annotated[bool, Parameter(group="Page", help="open a browser at the page")] = True,
    json: Json = False,
) -> None:
    """Label a sample, or correct redactions, on a page that only this machine can open; Ctrl-C ends it.

    Every mark is in the labels file before the page shows it. Two people: each with --reviewer, then --merge.

    Example: `taciturn review screened/ -n 400`
    """
    from taciturn.cli.show import step
    from taciturn.errors import UsageError
    from taciturn.reviewing.labels_file import CORRECTED, LABELS, Design, Names, begin
    from taciturn.screening.corpus.screened import folder_of, load

    if not 0 < confidence < 1:
        raise UsageError(f"--confidence must lie in (0, 1), found {confidence:g}")
    names = Names(labels or folder_of(screened) / (CORRECTED if corrections else LABELS))
    if merge:
        _merge(screened, names, force, json)
        return
    _starlette()
    from taciturn.cli.measured import policies
    from taciturn.reviewing.bound import Reached
    from taciturn.reviewing.context import around
    from taciturn.reviewing.desk import Desk, alone
    from taciturn.screening.measuring.judge import lookup

    corpus, path = load(screened), names.of(reviewer)
    said = None if guidelines is None else _read(guidelines)
    pi = wide = None
    if corrections or bound:
        wider = "all-private" if corrections else joined(conservative)
        pi, wide = policies(corpus, joined(policy), wider, policy_file, spared)
    with step("drawing records"):
        begin(path, names, Design(n, by, seed), corpus, pi if corrections else None)
    with alone(path):
        desk = Desk.open(path, _kinds(kinds))
        reached = None
        if pi is None or wide is None or corrections:
            lookup(desk.lines, corpus)
        else:
            with step("running the policies on the sample"):
                reached = Reached.over(desk.lines, corpus, pi, wide, confidence)
        beside = around(desk.lines, corpus), said
        _serve(desk, "corrections" if corrections else "labels", reviewer, reached, beside, port, browser)
        _end(desk, screened, reached(desk.lines) if reached else None, corrections, reviewer, json)


def _read(guidelines: Path) -> str:
    from taciturn.errors import DataError

    try:
        return guidelines.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{guidelines.name}: cannot be read ({type(error).__name__}); expected text in UTF-8") from None


def _starlette() -> None:
    from importlib.util import find_spec

    from taciturn.errors import MissingExtra

    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtra(package, "review")


def _kinds(names: str) -> tuple[str, ...]:
    from taciturn.cli.options import comma
    from taciturn.errors import UsageError

    kinds = tuple(dict.fromkeys(comma(names)))
    if not kinds or max(map(len, kinds)) > 40:
        raise UsageError("--kinds takes names of 1 to 40 characters, comma-separated")
    return kinds


def _serve(
    desk: Desk,
    mode: Literal["labels", "corrections"],
    reviewer: str | None,
    reached: Any,
    beside: tuple[dict[str, Around], str | None],
    port: int,
    browser: bool,
) -> None:
    """beside: what stands around the records, and the guidelines."""
    from taciturn.cli.show import talk
    from taciturn.reviewing.app import application
    from taciturn.reviewing.server import serve

    def ready(url: str) -> None:
        talk.print(f"{desk.path}: {_progress(desk)}")
        talk.print(f"review at {url}")
        talk.print("this address is the key to the page: give it to nobody; Ctrl-C ends the review")

    bound = None if reached is None else lambda: reached(desk.lines)
    serve(application(desk, mode, reviewer or "", bound, *beside), port, browser, ready)


def _progress(desk: Desk) -> str:
    counts = desk.counts()
    return f"{counts['done']:,} of {len(desk.lines):,} done, {counts['skip']:,} unsure, {counts['todo']:,} to do"


def _end(
    desk: Desk, screened: str, bound: dict[str, Any] | None, corrections: bool, reviewer: str | None, json: bool
) -> None:
    from taciturn.cli.show import as_json, out, talk

    counts = desk.counts()
    if json:
        as_json(
            {
                "file": str(desk.path),
                "reviewer": reviewer,
                "lines": len(desk.lines),
                "done": counts["done"],
                "unsure": counts["skip"],
                "todo": counts["todo"],
                "bound": bound,
            }
        )
    else:
        out.print(_progress(desk))
        if bound is not None:
            out.print(_bound(bound))
    if reviewer:
        talk.print(f"saved in {desk.path}; when everybody is done: taciturn review {screened} --merge")
    elif corrections:
        talk.print(
            f"saved in {desk.path}; next: taciturn corrections import {screened} {desk.path} FILES -o corrected/"
        )
    else:
        talk.print(f"saved in {desk.path}; next: taciturn recall {screened} {desk.path}")


def _bound(bound: dict[str, Any]) -> str:
    if bound["delta2"] is None:
        return "no bound yet: no record with a secret is labelled"
    said = bound["said"]
    return (
        f"δ₂ ≤ {said['delta2']}, γ ≤ {said['gamma']} at {100 * bound['confidence']:g} % (both miss "
        f"{bound['missed_by_both']}, π {bound['missed_by_pi']} of {bound['records']} records with a secret), if how many to "
        "label was decided before"
    )


def _merge(screened: str, names: Names, force: bool, json: bool) -> None:
    from taciturn.cli.show import as_json, out, talk
    from taciturn.errors import UsageError
    from taciturn.reviewing.desk import alone
    from taciturn.reviewing.merging import merge
    from taciturn.screening.labels import read, write

    if names.base.exists() and not force:
        raise UsageError(
            f"{names.base} exists and may hold labels or decisions; move it away, or replace it with --force"
        )
    merged = merge({name: read(path) for name, path in names.people().items()})
    with alone(names.base):
        write(names.base, merged.lines)
    open_ = [d for d in merged.disagreements if d.why != "kind"]
    if json:
        as_json(
            {
                "file": str(names.base),
                "lines": len(merged.lines),
                "done": sum(line.label_status == "done" for line in merged.lines),
                "unsure": sum(line.label_status == "skip" for line in merged.lines),
                "todo": sum(line.label_status == "todo" for line in merged.lines),
                "by_one_person": merged.once,
                "agreement": [_agreement(a) for a in merged.agreements],
                "disagreements": [{"id": d.id, "why": d.why} for d in merged.disagreements],
            }
        )
    else:
        _print(merged.agreements)
        for d in merged.disagreements:
            out.print(f"{d.why}: {d.id}")
    talk.print(
        f"{names.base}: {len(merged.lines):,} records, {merged.once:,} seen by one person, {len(open_):,} to be decided; "
        + (
            f"decide them with: taciturn review {screened}"
            if open_
            else f"next: taciturn recall {screened} {names.base}"
        )
    )


def _agreement(a: Agreement) -> dict[str, Any]:
    from dataclasses import asdict

    return asdict(a) | {"share": a.share, "f1": a.f1, "kappa": a.kappa}


def _print(agreements: list[Agreement]) -> None:
    from taciturn.cli.show import number, out, table

    rows = [
        (" and ".join(a.people), str(a.records), str(a.agreed), str(a.unsure), number(a.kappa), number(a.f1))
        for a in agreements
    ]
    columns = ("people", "records", "agree", "unsure", "κ of tokens", "F1 of marks")
    out.print(table("agreement on records both looked at", columns, rows))
