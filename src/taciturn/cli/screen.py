"""taciturn screen: split, redact, partition and deduplicate a corpus."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Annotated, Literal

from cyclopts import Parameter

from taciturn.cli.missed import Misses
from taciturn.cli.options import SPARED, Json, Spared
from taciturn.cli.reading import READ, Reading


def screen(
    *paths: Annotated[
        str,
        Parameter(help="files, folders, globs, URLs, hf:NAME#SPLIT, saved datasets, - for standard input"),
    ],
    output: Annotated[str, Parameter(name=["--output", "-o"], help="the screened folder to write, or its URL")],
    policy: Annotated[
        tuple[str, ...],
        Parameter(name=["--policy", "-p"], help="π, what to redact: names from `taciturn policies`; may be repeated"),
    ],
    conservative: Annotated[
        tuple[str, ...], Parameter(name=["--conservative", "-c"], help="π_c, what may be secret; may be repeated")
    ] = ("conservative",),
    policy_file: Annotated[Path | None, Parameter(help="TOML with detectors of your own, added to π and π_c")] = None,
    spared: Spared = SPARED,
    unit: Annotated[
        Literal["sentence", "turn", "document"] | None,
        Parameter(help="what a record is; else sentence, or document for conversations and pairs"),
    ] = None,
    reading: Reading = READ,
    clean: Annotated[
        Literal["none", "bloom", "minhash"],
        Parameter(
            group="Cleaning",
            help="first remove copies (bloom) or near-duplicates (minhash) of documents: voids every guarantee",
        ),
    ] = "none",
    clean_most: Annotated[
        float,
        Parameter(
            group="Cleaning",
            help="largest share of an input file's documents that cleaning may remove; more is an error",
        ),
    ] = 0.5,
    dedup: Annotated[
        Literal["suspicious", "private", "all", "none"],
        Parameter(group="Records", help="what is kept once: suspicious or private records, all, none"),
    ] = "suspicious",
    order: Annotated[
        Literal["redact-first", "as-published"],
        Parameter(group="Records", help="redact, then deduplicate; or as the papers say it"),
    ] = "redact-first",
    skeletons: Annotated[
        bool,
        Parameter(
            group="Skeletons and originals", help="also keep private records with all that π or π_c marks masked"
        ),
    ] = True,
    bridge: Annotated[
        Literal["signs", "particles", "short"],
        Parameter(
            group="Skeletons and originals",
            help='what skeletons mask between marks: signs; also articles, "of", "de"; also words of 3 letters',
        ),
    ] = "particles",
    originals: Annotated[
        bool,
        Parameter(group="Skeletons and originals", help="keep untouched text (folder of mode 0700) for sgd and dpsgd"),
    ] = True,
    miss_rate: Annotated[float, Parameter(group="Experiments", help="make π miss this share of what it finds")] = 0.0,
    miss_seed: Annotated[int, Parameter(group="Experiments")] = 0,
    misses: Annotated[Misses, Parameter(group="Experiments")] = None,
    max_bad: Annotated[int, Parameter(group="Records", help="unreadable items to accept")] = 0,
    workers: Annotated[int, Parameter(group="Machines", help="processes; the bytes written do not depend on it")] = 1,
    engine: Annotated[Literal["local", "ray"], Parameter(group="Machines", help="who runs the workers")] = "local",
    json: Json = False,
) -> None:
    """Redact what the policy finds, and split the corpus into public and private records.

    An interrupted screening goes on when the same command is given again.

    Reads txt, source, jsonl, json, csv, tsv, parquet, html, eml, mbox, vcf, msg, docx, xlsx, pptx, pdf, rtf, ipynb, xml,
    srt (also in .gz, .zst, .zip, .tar.gz); with --format: lines, whatsapp, slack; s3://, gs:// and other URLs.

    Example: `taciturn screen mail/*.jsonl --text body --user sender -p ssn,email,phone -o screened/`
    """
    from taciturn.cli.missed import print_gold, writable, write_misses
    from taciturn.cli.show import as_json, out, screening, table, talk
    from taciturn.project.speaking import notes
    from taciturn.screening.measuring.misses import misses_of
    from taciturn.screening.pipeline import screen as run
    from taciturn.screening.policies import policy as build
    from taciturn.screening.policies.registry import split
    from taciturn.text.urls import is_url

    writable(misses)
    corpus = reading.corpus(paths)
    both = build(*split(policy), file=policy_file), build(*split(conservative), file=policy_file)
    for note in notes(corpus, *both):
        talk.print(f"note: {note}")
    with screening(PurePath(output).name) as notify:
        done = run(
            corpus,
            *both,
            unit=unit,
            clean=clean,
            clean_most=clean_most,
            dedup=dedup,
            order=order,
            skeletons=skeletons,
            bridge=bridge,
            miss_rate=miss_rate,
            miss_seed=miss_seed,
            public=spared.read(),
            max_bad=max_bad,
            keep_originals=originals,
            out=output,
            workers=workers,
            engine=engine,
            notify=notify,
        )
    counts, manifest = done.counts, done.manifest
    if done.path is not None and is_url(output):
        talk.print(f"the copy of {output} on this machine, which remembers the runs: {done.path}")
    if misses is not None:
        write_misses(misses, misses_of(done, corpus, *both, spared.read()))
    if json:
        as_json(manifest.model_dump(mode="json"))
        return
    total = max(counts.read, 1)
    rows = [
        (name.replace("_", " "), f"{value:,}", f"{100 * value / total:.1f} %" if name in _SHARES else "")
        for name, value in counts.model_dump().items()
        if value or name in _ALWAYS
    ]
    out.print(table(f"screened into {output}", ("what", "number", "of records read"), rows))
    kept = f"public {counts.public:,} + private {counts.private:,} + quarantined {counts.quarantined:,}"
    out.print(f"read {counts.read:,} = {kept}")
    for source in manifest.cleaned:
        if source.removed:
            gone = f"kept {source.kept:,} + removed {source.removed:,}"
            out.print(f"documents of {source.name}: {source.read:,} = {gone}")
    if manifest.gold:
        print_gold("annotated secrets that are missed", manifest.gold)
    for warning in (*manifest.warnings, *manifest.reasons):
        talk.print(f"note: {warning}")
    for condition in manifest.conditions:
        talk.print(f"assumed: {condition}")
    talk.print(f"key {done.key}; next: taciturn plan crt {output} --epsilon 3 --delta 1e-5 -o run.toml")


_ALWAYS = {"documents", "read", "public", "private", "spans", "spans_undetected_after_check"}
_SHARES = {"public", "private", "quarantined", "duplicates", "suspicious", "skeletons"}
