"""taciturn evaluate: score policies against annotated spans."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.missed import Misses
from taciturn.cli.options import SPARED, Json, Spared
from taciturn.cli.reading import READ, Reading

if TYPE_CHECKING:
    from taciturn.screening.corpus.gold import Gold
    from taciturn.screening.measuring.evaluate import Score
    from taciturn.screening.rows import Row


def evaluate(
    *paths: Annotated[str, Parameter(help="files, folders or globs with annotated spans, as for screen")],
    policy: Annotated[
        tuple[str, ...], Parameter(name=["--policy", "-p"], help="a policy to score; repeat for several", negative="")
    ],
    conservative: Annotated[
        str | None, Parameter(name=["--conservative", "-c"], help="π_c: what it marks is private as well")
    ] = None,
    policy_file: Annotated[Path | None, Parameter(help="TOML with detectors of your own, added to each policy")] = None,
    spared: Spared = SPARED,
    unit: Annotated[
        Literal["sentence", "turn", "document"] | None,
        Parameter(group="Records", help="what a record is, as for screen"),
    ] = None,
    by_label: Annotated[bool, Parameter(help="also recall of each label", negative="")] = False,
    fail_under: Annotated[
        float | None, Parameter(help="exit code 5 if the token recall of a policy is below it, e.g. 0.99")
    ] = None,
    misses: Annotated[Misses, Parameter(group="Results")] = None,
    max_bad: Annotated[int, Parameter(group="Records", help="unreadable items to accept")] = 0,
    reading: Reading = READ,
    json: Json = False,
) -> None:
    """Token and record recall, precision, share redacted and share public of each policy, against annotations in the data;
    with -c also the annotated secrets that π and π_c both miss, with skeletons and without.

    Example: `taciturn evaluate gold.jsonl -p pii -p spacy:high-entity -c conservative`
    """
    from taciturn.cli.measured import build
    from taciturn.cli.missed import writable, write_misses
    from taciturn.cli.show import as_json, step, talk
    from taciturn.errors import DataError, GateClosed, UsageError
    from taciturn.project.speaking import notes
    from taciturn.screening.corpus.gold import missed
    from taciturn.screening.measuring.evaluate import evaluate as run
    from taciturn.screening.measuring.preview import of_corpus

    if fail_under is not None and not 0 < fail_under <= 1:
        raise UsageError(f"--fail-under: expected a recall in (0, 1], found {fail_under:g}")
    if not policy:
        raise UsageError("which policy? name at least one with -p; see: taciturn policies")
    wide = build(conservative) if conservative else None
    public = spared.read()
    if public is not None and wide is None:
        raise UsageError("public values are what π_c leaves unmarked; name it with -c")
    if misses is not None and wide is None:
        raise UsageError("--misses are what π and π_c both miss; name π_c with -c")
    writable(misses)
    made, lines = [build(names, policy_file) for names in policy], list[dict[str, Any]]()
    corpus = reading.corpus(paths)
    for said in notes(corpus, *made, *([wide] if wide else [])):
        talk.print(f"note: {said}")

    def note(name: str, row: Row) -> None:
        if misses is not None:
            lines.extend({"policy": name, **each} for each in missed(row))

    with step("running the policies"):
        scores = run(of_corpus(corpus, unit, max_bad), made, wide, public, note)
    if not scores[0].gold:
        raise DataError(
            f"no annotated span in {scores[0].records} records: nothing to score against; name the field with --spans"
        )
    if misses is not None:
        write_misses(misses, lines)
    if json:
        as_json({"policies": [_dict(score) for score in scores], "conservative": conservative})
    else:
        _show(scores, conservative, by_label)
    if below := [
        f"{s.name} {s.token_recall:.4f}" for s in scores if fail_under is not None and s.token_recall < fail_under
    ]:
        raise GateClosed(f"--fail-under {fail_under:g}: token recall of {', '.join(below)}")


def _show(scores: Sequence[Score], conservative: str | None, by_label: bool) -> None:
    from taciturn.cli.missed import print_gold
    from taciturn.cli.show import out, table, talk

    columns = ("policy", "token recall", "record recall", "precision", "redacted", "public", "exposed")
    title = f"{scores[0].records:,} records, {scores[0].records_gold:,} with annotations"
    out.print(table(title, columns, [_row(score) for score in scores]))
    if by_label:
        names = list(scores[0].labels)
        rows = [
            (name, f"{scores[0].labels[name].tokens:,}", *(f"{s.labels[name].recall:.3f}" for s in scores))
            for name in names
        ]
        out.print(table("token recall by label", ("label", "tokens", *(s.name for s in scores)), rows))
    for score in scores:
        if score.gold_by_label:
            print_gold(f"missed by {score.name} and {conservative}", score.gold_by_label)
        if score.failures:
            talk.print(f"note: {score.name}: a detector did not finish on {score.failures:,} records; they are private")


def _row(score: Score) -> tuple[str, ...]:
    return (
        score.name,
        f"{score.token_recall:.3f}",
        f"{score.record_recall:.3f}",
        f"{score.precision:.3f}",
        f"{100 * score.redacted:.1f} %",
        f"{100 * score.public_share:.1f} %",
        f"{score.records_exposed:,} of {score.records_gold:,}",
    )


def _dict(score: Score) -> dict[str, Any]:
    from dataclasses import asdict

    rates = ("token_recall", "record_recall", "precision", "redacted", "public_share")
    return asdict(score) | {name: getattr(score, name) for name in rates} | _missed(score.gold_by_label)


def _missed(gold: Sequence[Gold]) -> dict[str, Any]:
    """By label, and of all; null without π_c."""
    from taciturn.screening.corpus.gold import together

    return {
        "gold_by_label": [each.model_dump() for each in gold],
        "gold_of_all": together(gold).model_dump() if gold else None,
    }
