"""Text of many kinds with something to find in it, for ``benchmarks.screening``: three rows in ten have a hit of ``pii``.

    python -m benchmarks.mixed DATA mixed.jsonl [--megabytes 3]
    python -m benchmarks.screening --mixed mixed.jsonl --only hits

DATA is a folder with public sets as JSON lines (gzip): chats (abcd, multidogo, multiwoz, customersim), tweets, court text,
notes and made-up sentences about people (pii_gold), contracts, and mail and logs as people have them (messy), encyclopaedia
text (wikitext2). A row is a turn, a tweet or a paragraph. Sources take turns; of each, rows come in their order, and are
left out where the share of hits would leave 3 in 10. The same folder and policy give the same file.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from taciturn.screening import policy

SHARE = 0.3
CHATS = ("abcd/valid", "multidogo/train", "multiwoz/mwz22_train_part001", "customersim/test")
FLAT = (
    "pii_gold/ner_wnut17_wnut17train.conll",
    "pii_gold/echr_es_manual_train",
    "pii_gold/lifebench_pii",
    "pii_gold/presidio_generated_large",
    "contracts_cuad/contracts",
)
MAIL = ("mail_*.eml", "mbox_*.mbox", "log_*.log", "chat_*.txt")
PLAIN = "wikitext2/wiki.valid.raw.txt.gz"


def turns(path: Path) -> Iterator[str]:
    for row in _json(path):
        for turn in row["turns"]:
            yield turn["text"]


def paragraphs(path: Path) -> Iterator[str]:
    for row in _json(path):
        yield from row["text"].split("\n\n") if "text" in row else [" ".join(row["tokens"])]


def messages(folder: Path) -> Iterator[str]:
    for path in sorted(chain.from_iterable(map(folder.glob, MAIL))):
        yield from path.read_text(encoding="utf-8", errors="replace").split("\n\n")


def articles(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from lines


def _json(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def rows(data: Path) -> Iterator[str]:
    """Of all sources by turns."""
    sources = [
        *(turns(data / f"{name}.jsonl.gz") for name in CHATS),
        *(paragraphs(data / f"{name}.jsonl.gz") for name in FLAT),
        messages(data / "messy"),
        articles(data / PLAIN),
    ]
    for each in zip_longest(*sources):
        yield from (text.strip() for text in each if text is not None and text.strip())


def mixed(data: Path, megabytes: float) -> Iterator[str]:
    """Rows of at most 20,000 characters, ``SHARE`` of them with a hit of ``pii``."""
    pii = policy("pii")
    size, hits, plain = 0, 0, 0
    for text in rows(data):
        if size >= megabytes * 1e6:
            return
        if len(text) > 20_000:
            continue
        hit = bool(pii.find([text])[0].spans)
        due = hits * (1 - SHARE) <= plain * SHARE
        if hit != due:
            continue
        hits, plain = hits + hit, plain + (not hit)
        size += len(text.encode("utf-8", "surrogatepass"))
        yield text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=float, default=3.0)
    options = parser.parse_args()
    count = 0
    with options.out.open("w", encoding="utf-8") as file:
        for text in mixed(options.data, options.megabytes):
            file.write(json.dumps({"text": text}) + "\n")
            count += 1
    print(f"{count:,} rows")


if __name__ == "__main__":
    main()
