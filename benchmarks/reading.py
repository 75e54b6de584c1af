"""How fast corpora are read: MB of text per CPU-second of one core, for each format, on text made up here.

    python benchmarks/reading.py                     about a minute; 20 MB a file
    python benchmarks/reading.py --megabytes 200 --only jsonl,mbox

Reading is all of it: opening, lines, UTF-8, JSON or cells, fields, checks, ids. MB are of the text
alone, so that formats compare.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from taciturn.text.document import Document
from taciturn.text.readers import read

WORDS = "the quick brown fox jumps over a lazy dog while seven wizards quietly examine forty old books naïve café"
SHORT, LONG, REPEATS = 100, 1000, 3


def texts(characters: int, total: int) -> Iterator[str]:
    rng = random.Random(0)
    for _ in range(total // characters):
        yield " ".join(rng.choices(WORDS.split(), k=characters // 5))[:characters]


def jsonl(path: Path, rows: list[str]) -> None:
    path.write_text("".join(json.dumps({"id": n, "text": row}) + "\n" for n, row in enumerate(rows)))


def table(path: Path, rows: list[str]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["id", "text"], *enumerate(rows)])


def mbox(path: Path, rows: list[str]) -> None:
    with path.open("w") as file:
        for n, row in enumerate(rows):
            file.write(f"From a@b Mon Jan  1 10:20:30 2024\nFrom: Ann <ann{n % 50}@x.example>\nTo: bob@x.example\n")
            file.write(
                f"Subject: message {n}\nMessage-ID: <{n}@x>\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\n\n"
            )
            file.writelines(row[at : at + 72] + "\n" for at in range(0, len(row), 72))
            file.write("\n")


def packed(
    write: Callable[[Path, list[str]], None], compress: Callable[[bytes], bytes]
) -> Callable[[Path, list[str]], None]:
    def both(path: Path, rows: list[str]) -> None:
        write(path, rows)
        path.write_bytes(compress(path.read_bytes()))

    return both


FORMATS: dict[str, Callable[[Path, list[str]], None]] = {
    "lines": lambda path, rows: path.write_text("\n".join(rows)),  # type: ignore[dict-item]
    "jsonl": jsonl,
    "jsonl.gz": packed(jsonl, gzip.compress),
    "jsonl.zst": packed(jsonl, zstandard.compress),
    "csv": table,
    "parquet": lambda path, rows: pq.write_table(pa.table({"text": rows}), path),
    "mbox": mbox,
}


def measure(name: str, characters: int, total: int, folder: Path) -> str:
    rows = list(texts(characters, total))
    path = folder / f"a.{name}"
    FORMATS[name](path, rows)
    size = sum(len(row.encode()) for row in rows)
    best = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        count = sum(isinstance(item, Document) for item in read(path, format=name.partition(".")[0]).items())
        best = min(best, time.process_time() - start)
        assert count == len(rows)
    return f"| {name} | {characters} | {size / best / 1e6:.0f} | {best / len(rows) * 1e6:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--only", default=",".join(FORMATS))
    options = parser.parse_args()
    print("| format | characters a record | MB/cpu-s | µs a record |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only.split(","):
            for characters in (SHORT, LONG) if name != "mbox" else (LONG, 2 * LONG):
                print(measure(name, characters, options.megabytes * 10**6, Path(folder)), flush=True)


if __name__ == "__main__":
    main()
