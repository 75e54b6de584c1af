"""Half a secret: gold spans that no finite ε covers, without skeletons and with each `--bridge`, and what skeletons show.

    python -m benchmarks.bridges FOLDER [--sets multiwoz,wikigold]

FOLDER and the sets are those of benchmarks/detectors.py. π is `pii`, π_c `conservative`. "Read" is the share of words that
steps without noise read: of public records, and of skeletons.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.detectors import SETS, Set, records
from taciturn.screening.bridges import BRIDGES
from taciturn.screening.policies import policy
from taciturn.screening.rows import Local, Row
from taciturn.text.document import MASK


def line(chosen: Set, rows: dict[str, Sequence[Row]]) -> str:
    """A set in Markdown: (missed by both, read) in per cent, without skeletons and for each bridge."""
    gold = sum(len(row.gold) for row in rows["none"])
    cells = [f"{share(each, gold)} ({read(each)})" for each in rows.values()]
    return f"| {chosen.name} | {gold:,} | " + " | ".join(cells) + " |"


def share(rows: Sequence[Row], gold: int) -> str:
    return f"{100 * sum(g.missed_by_both for row in rows for g in row.gold) / max(gold, 1):.1f}"


def read(rows: Sequence[Row]) -> str:
    words = sum(len(row.body.split()) for row in rows)
    left = (row.body if row.part == "public" else row.skeleton or "" for row in rows)
    return f"{100 * sum(len(text.replace(MASK, ' ').split()) for text in left) / max(words, 1):.0f}"


def lines(folder: Path, wanted: Sequence[str]) -> Iterator[str]:
    pi, wide = policy("pii"), policy("conservative")
    yield "| set | gold spans | no skeletons | " + " | ".join(BRIDGES) + " |"
    yield "|---|---:|" + "---:|" * (len(BRIDGES) + 1)
    for chosen in SETS:
        if chosen.name in wanted:
            sample = records(folder, chosen)
            rows: dict[str, Sequence[Row]] = {"none": Local.of(pi, wide, skeletons=False).rows(sample)}
            rows |= {bridge: Local.of(pi, wide, bridge=bridge).rows(sample) for bridge in BRIDGES}
            yield line(chosen, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", default=",".join(chosen.name for chosen in SETS))
    options = parser.parse_args()
    for each in lines(options.folder, options.sets.split(",")):
        print(each, flush=True)


if __name__ == "__main__":
    main()
