"""A table of 1,000,000 made-up values against a made-up corpus: speed, build time, memory.

    python benchmarks/values.py [--values 1000000] [--megabytes 10] [--match folded]

A fifth each of names, telephone numbers, order numbers, e-mail addresses and addresses. The corpus is drawn from common
English words by their frequency; one sentence in fifty holds a value, written in another way. Times are CPU seconds of one
core; memory is what the process grows by (resident), and its peak.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import resource
import tempfile
import time
import warnings
from itertools import islice
from pathlib import Path

import wordfreq

from taciturn.screening.policies.rare_words import names
from taciturn.screening.policies.values import Values, load, named
from taciturn.screening.policies.view import View


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--match", choices=("folded", "exact"), default="folded")
    options = parser.parse_args()
    draw = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "people.csv"
        writer = multiprocessing.Process(target=write_table, args=(table, options.values))  # its memory is not ours
        writer.start()
        writer.join()
        planted = some_values(table, options.values)
        texts = corpus(planted, options.megabytes, draw)
        before, start = resident(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (detector,) = named(f"{table}#value", {"match": options.match})
        assert isinstance(detector, Values)
        built, grown = time.process_time() - start, resident() - before
        views = [View.of(text) for text in texts]
        start = time.process_time()
        found = [d for at in range(0, len(views), 4096) for d in detector.find(views[at : at + 4096])]
        seconds = time.process_time() - start
    size = sum(map(len, texts)) / 1e6
    expected = (len(texts) + 49) // 50
    print(
        f"values {len(load(detector.source).lexicon):,}, {options.match}; corpus {size:.1f} MB, {len(texts):,} records"
    )
    print(f"build {built:.1f} s, memory {grown:.0f} MB, peak of the process {peak():.0f} MB")
    print(f"{size / seconds:.1f} MB/cpu-s; {sum(len(d.spans) for d in found):,} spans, {expected:,} values planted")


def write_table(path: Path, count: int) -> None:
    """A CSV with one column."""
    draw = random.Random(1)
    people = sorted(names())
    kinds = (
        lambda: f"{draw.choice(people).title()} {draw.choice(people).title()}",
        lambda: f"+1 ({draw.randint(200, 999)}) {draw.randint(200, 999)}-{draw.randint(0, 9999):04}",
        lambda: f"{''.join(draw.choices('ABCDEFGH', k=3))}-{draw.randrange(10**6):06}",
        lambda: f"{draw.choice(people)}.{draw.choice(people)}{draw.randrange(1000)}@example.org",
        lambda: f"{draw.randint(1, 9999)} {draw.choice(people).title()} Street, {draw.choice(people).title()}",
    )
    values: set[str] = set()
    while len(values) < count:
        values.add(kinds[len(values) % len(kinds)]())
    path.write_text("value\n" + "\n".join(f'"{v}"' for v in sorted(values)) + "\n", encoding="utf-8")


def some_values(path: Path, count: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return [line.strip().strip('"') for line in islice(file, 1, None, max(1, count // 5000))]


def corpus(planted: list[str], megabytes: float, draw: random.Random) -> list[str]:
    frequencies = wordfreq.get_frequency_dict("en", wordlist="small")
    words, weights = list(frequencies), list(frequencies.values())
    texts: list[str] = []
    size = 0
    while size < megabytes * 1e6:
        text = " ".join(draw.choices(words, weights, k=draw.randint(4, 30))).capitalize() + "."
        if len(texts) % 50 == 0:
            text = f"{text[:-1]}, {draw.choice(planted).upper().replace('-', ' ')}."
        texts.append(text)
        size += len(text)
    return texts


def resident() -> float:
    """Megabytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
