"""taciturn screen: split, redact, partition and deduplicate a corpus."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.options import Json, comma


def screen(
    *paths: Annotated[
        str, Parameter(help="files or globs: txt, jsonl, json, csv, tsv, parquet (also .gz), saved datasets")
    ],
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="the screened folder to write")],
    policy: Annotated[
        str, Parameter(name=["--policy", "-p"], help="π, what to redact: names from `taciturn policies`")
    ],
    conservative: Annotated[
        str, Parameter(name=["--conservative", "-c"], help="π_c, what may be secret")
    ] = "conservative",
    policy_file: Annotated[Path | None, Parameter(help="TOML with detectors of your own, added to π and π_c")] = None,
    unit: Annotated[
        Literal["sentence", "turn", "document"] | None,
        Parameter(help="what a record is; else sentence, or document for conversations and pairs"),
    ] = None,
    format: str = "auto",
    text: Annotated[str, Parameter(help="field that holds the text")] = "text",
    user: Annotated[str | None, Parameter(help="field that names the user")] = None,
    id: Annotated[str | None, Parameter(help="field that holds the id")] = None,
    turns: Annotated[str, Parameter(help="field that holds a dialogue's turns")] = "turns",
    spans: Annotated[str, Parameter(help="field that holds annotated secrets, if any")] = "spans",
    chat: Annotated[
        str | None,
        Parameter(help="rows are conversations: openai, sharegpt, pairs, alpaca or turns; fields after a colon"),
    ] = None,
    text_pair: Annotated[str | None, Parameter(help="field that holds a second text")] = None,
    label: Annotated[str | None, Parameter(help="field that holds a label; labels are not redacted")] = None,
    gold: Annotated[
        Literal["annotated", "secret"],
        Parameter(help="which annotations are secrets: all, or those marked secret: true"),
    ] = "annotated",
    dedup: Literal["suspicious", "private", "all", "none"] = "suspicious",
    order: Literal["redact-first", "as-published"] = "redact-first",
    skeletons: Annotated[bool, Parameter(help="also keep private records with all that π or π_c marks masked")] = True,
    originals: Annotated[bool, Parameter(help="keep untouched text (folder of mode 0700) for sgd and dpsgd")] = True,
    miss_rate: Annotated[float, Parameter(help="experiments: make π miss this share of what it finds")] = 0.0,
    miss_seed: int = 0,
    max_bad: Annotated[int, Parameter(help="unreadable items to accept")] = 0,
    encoding_errors: Literal["strict", "replace"] = "strict",
    max_record_bytes: int = 16 * 2**20,
    duplicate_ids: Literal["error", "suffix"] = "error",
    json: Json = False,
) -> None:
    """Redact what the policy finds, and split the corpus into public and private records.

    Example: `taciturn screen mail/*.jsonl --text body --user sender -p ssn,email,phone -o screened/`
    """
    from taciturn.cli.show import as_json, out, table, talk
    from taciturn.screening.pipeline import screen as run
    from taciturn.screening.policies import policy as build
    from taciturn.text.readers import read

    corpus = read(
        *paths,
        format=format,
        text=text,
        user=user,
        id=id,
        turns=turns,
        spans=spans,
        chat=chat,
        text_pair=text_pair,
        label=label,
        gold=gold,
        encoding_errors=encoding_errors,
        max_record_bytes=max_record_bytes,
        duplicate_ids=duplicate_ids,
    )
    done = run(
        corpus,
        build(*comma(policy), file=policy_file),
        build(*comma(conservative), file=policy_file),
        unit=unit,
        dedup=dedup,
        order=order,
        skeletons=skeletons,
        miss_rate=miss_rate,
        miss_seed=miss_seed,
        max_bad=max_bad,
        keep_originals=originals,
        out=output,
    )
    counts, manifest = done.counts, done.manifest
    if json:
        as_json(manifest.model_dump(mode="json"))
        return
    total = max(counts.read, 1)
    rows = [
        (name.replace("_", " "), f"{value:,}", f"{100 * value / total:.1f} %" if name in _SHARES else "")
        for name, value in counts.model_dump().items()
    ]
    out.print(table(f"screened into {output}", ("what", "number", "of records read"), rows))
    kept = f"public {counts.public:,} + private {counts.private:,} + quarantined {counts.quarantined:,}"
    out.print(f"read {counts.read:,} = {kept}")
    for warning in (*manifest.warnings, *manifest.reasons):
        talk.print(f"note: {warning}")
    for condition in manifest.conditions:
        talk.print(f"assumed: {condition}")
    talk.print(f"key {done.key}; next: taciturn plan crt {output} --epsilon 3 --delta 1e-5 -o run.toml")


_SHARES = {"public", "private", "quarantined", "duplicates", "suspicious", "skeletons"}
