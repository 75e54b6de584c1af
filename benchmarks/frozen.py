"""Steps of a model whose last layer is trained, with and without `train.frozen_cache`, by turns (docs/benchmarks.md).

    python -m benchmarks.frozen --rows experiments/rows/frozen.jsonl
    python -m benchmarks.frozen --page experiments/rows/frozen.jsonl   # the page's table, from rows

The shape is that of all-MiniLM-L6-v2: six layers of 384, of which the last, the pooler and a head are trained. Texts of 4 to
48 random tokens; a noised step takes 1,000 of them, a plain one 64; one thread, processor time. A round times each step as
it is, where the file has nothing of its texts ("writing") and where it has them ("reading").
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, BertConfig

from benchmarks.steps import arguments, beside, carry_out
from taciturn.models.hf import freeze
from taciturn.models.tokens import Tokens
from taciturn.training.frozen.cache import frozen_cache
from taciturn.training.passes import Work
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.samplers import Poisson
from taciturn.training.schedules import Optimiser
from taciturn.training.updates.clip_noise import private_gradient
from taciturn.training.updates.plain import plain_gradient

RECORDS = {"noised": 1000, "plain": 64}
LAYERS = 6
SHAPE = BertConfig(
    hidden_size=384, num_hidden_layers=LAYERS, num_attention_heads=12, intermediate_size=1536, num_labels=2,
    hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
)  # fmt: skip
MASK = -1
WAYS = ("as it is", "writing", "reading")


def texts(records: int, seed: int) -> Tokens:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(4, 49, records)
    flat = rng.integers(1000, 30000, lengths.sum()).astype(np.int32)
    return Tokens(flat, np.concatenate([[0], np.cumsum(lengths)]), labels=rng.integers(0, 2, records))


def step(kind: str, model: Any, tokens: Tokens, number: int) -> None:
    rows = np.arange(len(tokens))
    if kind == "plain":
        plain_gradient(model, tokens, rows, MASK, Work())
    else:
        rule = ClipNoise(0.1, 0.7)
        phase = Phase("private", ("private",), len(tokens), Poisson(0.5), rule, 1, Optimiser("adamw", 1e-3))
        private_gradient(model, tokens, rows, MASK, Work(), rule, Step(number, phase, 0, 0), SecretSource(1), rule.clip)
    model.zero_grad(set_to_none=True)


def measured(rounds: int) -> Iterator[dict[str, Any]]:
    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_config(SHAPE).train()
    freeze(model, ["*.embeddings.*", *(f"*.layer.{at}.*" for at in range(LAYERS - 1))])
    for kind in RECORDS:
        step(kind, model, texts(RECORDS[kind], -1 % 2**32), 0)
        for number in range(rounds):
            tokens, seconds = texts(RECORDS[kind], number), {}
            with tempfile.TemporaryDirectory() as folder:
                for way in WAYS:
                    path = None if way == WAYS[0] else Path(folder) / "frozen.sqlite"
                    with frozen_cache(model, path, [tokens], classify=True):
                        began = time.process_time()
                        step(kind, model, tokens, number)
                        seconds[way] = round(time.process_time() - began, 4)
            yield {"step": kind, "records": len(tokens), "round": number, "processor": seconds}


def table(rows: list[dict[str, Any]]) -> str:
    """Medians of the step as it is, and of the ratios of the other two to it in their rounds, with quartiles."""
    lines = [
        "| step, records, rounds | as it is, ms | writing, × as it is | reading, × as it is |",
        "|---|---|---|---|",
    ]
    for kind in RECORDS:
        times = [row["processor"] for row in rows if row["step"] == kind]
        lines.append(f"| {kind}, {RECORDS[kind]:,}, {len(times)} | {' | '.join(beside(times, *WAYS))} |")
    return "\n".join(lines)


def main() -> None:
    options = arguments(__doc__, 12).parse_args()
    carry_out(options, measured(options.rounds), table)


if __name__ == "__main__":
    main()
