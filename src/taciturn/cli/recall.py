"""taciturn recall: how much the policies miss, measured on labels."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from taciturn.cli.measured import Conservative, Pi
from taciturn.cli.options import SCREENED_THERE, SPARED, Json, Spared, joined

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.labels import Line
    from taciturn.screening.policies import Policy
    from taciturn.screening.policies.public import Public

ALL = "all-private"
LEVELS = ("conservative", "conservative:strict", "conservative:paranoid", ALL)
"""π_c from the narrowest to the widest, for --target."""


def recall(
    screened: Annotated[str, Parameter(validator=SCREENED_THERE, help="the folder the sample came from")],
    labels: Annotated[Path, Parameter(help="the labels file")],
    *,
    policy: Annotated[Pi, Parameter(group="Policies")] = (),
    conservative: Annotated[Conservative, Parameter(group="Policies")] = (),
    policy_file: Annotated[Path | None, Parameter(group="Policies", help="TOML with detectors of your own")] = None,
    spared: Spared = SPARED,
    confidence: Annotated[float, Parameter(help="of each one-sided bound")] = 0.95,
    want: Annotated[float | None, Parameter(help="a bound on δ₂: how many labels would it take?")] = None,
    target: Annotated[
        float | None, Parameter(help="a recall, e.g. 0.99: try π_c level by level and name the first that reaches it")
    ] = None,
    output: Annotated[
        Path | None, Parameter(name=["--output", "-o"], help="write recall.json, for `taciturn certify --recall`")
    ] = None,
    json: Json = False,
) -> None:
    """Miss rates of π (γ) and of π and π_c together (δ₂) on labelled records, with upper bounds and what they allow.

    Example: `taciturn recall screened/ labels.jsonl -o recall.json`
    """
    import json as jsons

    from taciturn.cli.measured import policies
    from taciturn.cli.show import as_json, step, talk
    from taciturn.errors import DataError, UsageError
    from taciturn.screening.corpus.screened import load
    from taciturn.screening.labels import read
    from taciturn.screening.measuring.judge import UNSURE, judge_records
    from taciturn.screening.measuring.label_claims import findings
    from taciturn.text.atomic import write_text

    for name, value in (("confidence", confidence), ("want", want), ("target", target)):
        if value is not None and not 0 < value < 1:
            raise UsageError(f"--{name} must lie in (0, 1), found {value:g}")
    corpus, lines = load(screened), read(labels)
    pi, wide = policies(corpus, joined(policy), joined(conservative), policy_file, spared)
    with step("running the policies on what was labelled"):
        judged = judge_records(lines, corpus, pi, wide)
    if not judged:
        raise DataError(f'{labels.name}: no line has "label_status": "done"; set it on each line that was looked at')
    if not any(secret.label != UNSURE for record in judged for secret in record.secrets):
        raise DataError(
            f"{labels.name}: {len(judged)} records are labelled and none holds a secret; label more of them"
        )
    names = {"pi": (pi.name, pi.identity), "conservative": (wide.name, wide.identity)}
    found = findings(corpus, lines, judged, names, confidence, want)
    if target is not None:
        found["levels"] = _levels(lines, corpus, pi, getattr(wide, "public", None), policy_file, confidence, target)
    if output is not None:
        write_text(output, jsons.dumps(found, indent=1, sort_keys=True) + "\n", mode=0o600)
    if json:
        as_json(found)
    else:
        _print(found)
    if output is not None:
        talk.print(f"wrote {output}; next: taciturn certify RUN --recall {output}")


def _levels(
    lines: list[Line],
    corpus: ScreenedCorpus,
    pi: Policy,
    public: Public | None,
    file: Path | None,
    confidence: float,
    target: float,
) -> dict[str, Any]:
    """Every level of π_c, but for what is ``public``, on the same labels, and the narrowest that keeps the ``target``.

    Levels are looked at from the widest down to the first whose bound fails: "recall is at least the target" then holds at
    ``confidence`` in spite of the choice (fixed-sequence test, Maurer, Hothorn, Lehmacher 1995).
    """
    from taciturn.cli.measured import build
    from taciturn.screening.bounds import needed
    from taciturn.screening.measuring.judge import judge_records
    from taciturn.screening.measuring.recall import private_share, rates
    from taciturn.screening.sparing import Sparing

    tried: list[dict[str, Any]] = []
    for name in LEVELS:
        judged = judge_records(lines, corpus, *Sparing.pair(pi, build(name, file), public if name != ALL else None))
        both = rates(lines, judged, confidence).both
        tried.append(
            {
                "conservative": name,
                "records": both.records,
                "missed": both.records_missed,
                "recall": 1 - both.records_missed / both.records,
                "recall_at_least": 1.0 if name == ALL else 1 - both.bound,
                "private": private_share(lines, judged),
            }
        )
    kept = list(takewhile(lambda level: level["recall_at_least"] >= target, reversed(tried)))
    return {
        "target": target,
        "tried": tried,
        "use": kept[-1]["conservative"],
        "measured": next(level["conservative"] for level in tried if level["recall"] >= target),
        "records_with_a_secret_needed": needed(1 - target, 0, confidence),
    }


def _print(found: dict[str, Any]) -> None:
    from taciturn.cli.show import out, table, talk

    sample = found["sample"]
    rows = [_row("all", found["overall"])]
    for title in ("kinds", "casing"):
        rows += [_row(name, each, "  ") for name, each in found[title].items()]
    columns = ("secrets", "number", "in records", "missed by π", "γ ≤", "missed by both", "δ₂ ≤")
    out.print(table(f"{sample['labelled']} of {sample['lines']} sampled records labelled, by {sample['design']} sample",
                    columns, rows))  # fmt: skip
    level = f"{100 * found['confidence']:g} %"
    out.print(f"bounds: {found['method']}; each at {level}, not all rows at once")
    for claim in found["claims"]:
        out.print(f"• {claim}")
    if (wanted := found["wanted"]) is not None:
        out.print(_needs(wanted))
    if (levels := found.get("levels")) is not None:
        _print_levels(levels)
    for condition in found["conditions"]:
        talk.print(f"assumed: {condition}")


def _row(name: str, both: dict[str, Any], indent: str = "") -> tuple[str, ...]:
    from taciturn.screening.measuring.label_claims import up

    pi, wide = both["pi"], both["both"]
    cells = (f"{pi['records_missed']}", up(pi["bound"]), f"{wide['records_missed']}", up(wide["bound"]))
    return (indent + name, f"{pi['secrets']:,}", f"{pi['records']:,}", *cells)


def _needs(wanted: dict[str, Any]) -> str:
    secret, label = wanted["records_with_a_secret"], wanted["records_to_label"]

    def say(key: str) -> str:
        return "no number" if secret[key] is None else f"{secret[key]:,} (about {label[key]:,} records to label)"

    return (
        f"δ₂ ≤ {wanted['bound']:g} takes records with a secret: {say('without_a_miss')} without a miss; "
        f"{say('with_the_misses_so_far')} with the misses so far; {say('at_this_miss_rate')} if misses go on at this rate"
    )


def _print_levels(levels: dict[str, Any]) -> None:
    from taciturn.cli.show import out, table

    rows = [
        (
            t["conservative"],
            f"{t['missed']} of {t['records']}",
            f"{t['recall']:.4f}",
            f"{t['recall_at_least']:.4f}",
            f"{100 * t['private']:.0f} %",
        )
        for t in levels["tried"]
    ]
    out.print(table(f"π_c at recall ≥ {levels['target']:g}", ("π_c", "missed", "recall", "at least", "private"), rows))
    out.print(f"use: -c {levels['use']}")
    if levels["measured"] != levels["use"]:
        out.print(
            f"on these labels {levels['measured']} has that recall, but they do not prove it: that takes "
            f"{levels['records_with_a_secret_needed']:,} labelled records with a secret and no miss",
            soft_wrap=True,
        )
