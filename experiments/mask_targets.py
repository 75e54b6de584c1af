"""What it is worth that a mask is no target (Shi et al. 2022, section A.2), on redacted text.

    python experiments/mask_targets.py run abcd --data DATA --model GPT2 --work WORK
    python experiments/mask_targets.py table --work WORK

Three rows from the same first weights and text, low contextual level: a token for each kind of secret, as targets (what the
paper began with); one `<MASK>`, a target; one `<MASK>` that is none (what the paper ended with, and taciturn does). Plain
steps; the test text is whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import Row, Work, records, spread
from jft import taken
from numpy.typing import NDArray
from transformers import get_linear_schedule_with_warmup

import taciturn as tt
from taciturn.data.loaders import load
from taciturn.models.held_out import utility
from taciturn.models.hf import load_model
from taciturn.models.loss import collate, record_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import load_tokenizer
from taciturn.models.tokens import Tokens, encode_all
from taciturn.recipes.verdicts import Floor, Order, Runs, apart
from taciturn.screening.redact import ADJACENT, maximal, substitute
from taciturn.text.segment import Unit

ROWS = ("a mask a kind, targets", "one mask, a target", "one mask, no target")
LEVEL, LENGTH, WARMUP = "low-contextual", 64, 0.1


@dataclass(frozen=True, slots=True)
class Set:
    """strides: one document of so many is taken, in train and test."""

    unit: Unit
    split: str
    strides: tuple[int, int]
    batch: int
    rate: float


SETS = {"abcd": Set("turn", "valid", (8, 10), 32, 2e-3), "wikitext2": Set("sentence", "train", (30, 15), 16, 1e-3)}
"""As in `jft.py`."""
RESULTS = "mask_targets.jsonl"


@dataclass(frozen=True, slots=True)
class Redacted:
    """Texts with `<MASK>`, and the kind of secret behind each mask of each."""

    texts: tuple[str, ...]
    kinds: tuple[tuple[str, ...], ...]


def redacted(texts: Sequence[str]) -> Redacted:
    """What the level's policy marks, in one pass, as the paper does; neighbouring marks are one mask of the first's kind."""
    masked, kinds = [], []
    for text, detection in zip(texts, tt.policy(f"spacy:{LEVEL}").find(texts), strict=True):
        intervals = maximal(text, detection.spans, ADJACENT)
        first = {start: next(span.label for span in detection.spans if span.start == start) for start, _ in intervals}
        masked.append(substitute(text, intervals))
        kinds.append(tuple(first.values()))
    return Redacted(tuple(masked), tuple(kinds))


def tokens_of(row: str, found: Redacted, tokenizer: Any) -> Tokens:
    """The training text of a row: masks as they are or by kind, scored or not."""
    mask = mask_id(tokenizer)
    tokens = encode_all(tokenizer, found.texts, LENGTH)
    if row == "one mask, no target":
        return tokens
    flat = tokens.flat.copy()
    if row == "a mask a kind, targets":
        names = sorted({kind for each in found.kinds for kind in each})
        tokenizer.add_tokens([f"<{name}>" for name in names], special_tokens=True)
        for at, kinds in enumerate(found.kinds):
            piece = flat[tokens.offsets[at] : tokens.offsets[at + 1]]  # a view; what was cut off has no token
            places = np.flatnonzero(piece == mask)
            piece[places] = [tokenizer.convert_tokens_to_ids(f"<{kind}>") for kind in kinds[: len(places)]]
    scored = np.ones(len(flat), bool)
    scored[tokens.offsets[:-1]] = False
    return replace(tokens, flat=flat, scored=scored)


def train(model: Any, tokens: Tokens, mask: int, seed: int, batch_size: int, rate: float) -> None:
    """One epoch of plain steps, in place: AdamW, the mean loss of a batch's targets."""
    order: NDArray[np.int64] = np.random.default_rng(seed).permutation(len(tokens))
    batches = [order[first : first + batch_size] for first in range(0, len(order), batch_size)]
    optimiser = torch.optim.AdamW(model.parameters(), rate)
    schedule = get_linear_schedule_with_warmup(optimiser, round(WARMUP * len(batches)), len(batches))
    torch.manual_seed(seed)
    model.train()
    for rows in batches:
        batch = collate(tokens, rows, mask)
        loss = record_losses(model, batch).sum() / batch.weights.sum().clamp_min(1.0)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()


def run(options: argparse.Namespace) -> None:
    """Every cell."""
    work = Work(options.work, RESULTS)
    torch.set_num_threads(options.threads)
    chosen = SETS[options.set]
    split, test = (
        records(taken(load(options.set, options.data, part).corpus, options.set, stride, first), chosen.unit)
        for part, stride, first in zip((chosen.split, "test"), chosen.strides, (0, chosen.strides[1] // 2), strict=True)
    )
    found = redacted([record.body for record in split])
    for seed in options.seeds:
        for row in ROWS:
            with work.cell(set=options.set, level=LEVEL, row=row, seed=seed) as cell:
                if cell is not None:
                    cell |= measured(row, found, test, options, seed)


def measured(row: str, found: Redacted, test: Any, options: argparse.Namespace, seed: int) -> Row:
    tokenizer = load_tokenizer("auto", str(options.model))
    tokens = tokens_of(row, found, tokenizer)
    model = load_model(str(options.model), tokenizer, seed)
    start = utility(model, tokenizer, test, LENGTH).perplexity
    train(model, tokens, mask_id(tokenizer), seed, SETS[options.set].batch, SETS[options.set].rate)
    ids = tokens.flat if tokens.scored is None else tokens.flat[tokens.scored]
    return {
        "model": options.model.name,
        "records": len(tokens),
        "masks": round(sum(map(len, found.kinds)) / len(ids), 3),
        "start": round(start, 3),
        "perplexity": round(utility(model, tokenizer, test, LENGTH).perplexity, 3),
    }


def show(rows: Sequence[Row]) -> str:
    """The table, and what the runs tell apart."""
    lines, orders = ["| set | training text | perplexity | runs |", "|---|---|---:|---:|"], []
    for name in dict.fromkeys(row["set"] for row in rows):
        here = [row for row in rows if row["set"] == name]
        lines.append(f"| {name} | none | {spread([row['start'] for row in here if row['row'] == ROWS[2]])} | |")
        runs = {}
        for each in ROWS:
            found = tuple(row["perplexity"] for row in here if row["row"] == each)
            lines.append(f"| {name} | {each} | {spread(found)} | {len(found)} |")
            runs[each] = Runs(each, found, Floor(found, tuple(row["start"] for row in here if row["row"] == each)))
        says = f"{name}: a mask that is no target ends at the lower perplexity than"
        orders += [Order(says, runs[ROWS[2]], runs[other], other) for other in ROWS[:2]]
    return "\n".join([*lines, "", *apart(orders)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("set", nargs="?", choices=SETS, default="abcd")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print(show(Work(options.work, RESULTS).rows())) if options.do == "table" else run(options)


if __name__ == "__main__":
    main()
