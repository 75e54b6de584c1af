"""What the scores of a membership attack cost beside a plain forward pass over the same batches, in one run.

    python -m benchmarks.attacks [records] [repetitions]

Both read the same texts in the same microbatches; plain is the model's logits and nothing else. The ratio is of the best
times of alternating repetitions. Random weights: speed does not depend on them.
"""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from taciturn.auditing.scores import BUDGET, read
from taciturn.models.loss import collate, microbatches, run_model
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokens import bpe_tokenizer, encode_all, mask_id

WORDS = 4000


def texts(n: int, seed: int = 0) -> list[str]:
    """Sentences of 5 to 60 made-up words."""
    rng = np.random.default_rng(seed)
    words = ["".join(chr(97 + i) for i in rng.integers(26, size=rng.integers(2, 9))) for _ in range(WORDS)]
    return [" ".join(words[i] for i in rng.integers(WORDS, size=rng.integers(5, 61))) for _ in range(n)]


def plain(model: Any, tokenizer: Any, some: list[str]) -> None:
    tokens = encode_all(tokenizer, some)
    with torch.inference_mode():
        for rows in microbatches(np.arange(len(tokens)), tokens.lengths, BUDGET):
            run_model(model, collate(tokens, rows, mask_id(tokenizer)))


def main(records: int = 400, repetitions: int = 5) -> None:
    some = texts(records)
    tokenizer = bpe_tokenizer(texts(2000, 1), 8192)
    size = len(tokenizer)
    models = {
        "GPT 4 x 256": GPT2LMHeadModel(
            GPT2Config(vocab_size=size, n_positions=512, n_embd=256, n_layer=4, n_head=4)
        ).eval(),
        "LSTM 200": LSTMForCausalLM(LSTMConfig(size)).eval(),
    }
    for name, model in models.items():
        times: dict[str, list[float]] = {"plain": [], "scores": []}
        for _ in range(repetitions + 1):
            for kind, work in (("plain", plain), ("scores", read)):
                start = perf_counter()
                work(model, tokenizer, some)
                times[kind].append(perf_counter() - start)
        bare, scored = (min(each[1:]) for each in times.values())
        tokens = int(encode_all(tokenizer, some).lengths.sum())
        print(
            f"{name}, V = {size}: plain {tokens / bare:,.0f} tokens/s, all scores {tokens / scored:,.0f} tokens/s: "
            f"{bare / scored:.0%} of plain"
        )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
