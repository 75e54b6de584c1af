"""Steps with matrix products in bfloat16 on a CPU beside float32, by turns (docs/benchmarks.md).

    python -m benchmarks.precision --rows experiments/rows/precision.jsonl
    python -m benchmarks.precision --page experiments/rows/precision.jsonl   # the page's table, from rows

"as torch has it" is bfloat16 with attention in bfloat16 too; "ours" leaves short attention in float32. Records are random,
as long as the table says; a noised step, one thread, processor time. Whether a processor has products in bfloat16 of its
own is what decides: the rows name it (`amx_bf16`, `avx512_bf16`, or none).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GPT2Config

from benchmarks.steps import GPT2, arguments, beside, carry_out
from taciturn.models import precision
from taciturn.models.tokens import Tokens
from taciturn.training.passes import Work
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.samplers import Poisson
from taciturn.training.schedules import Optimiser
from taciturn.training.updates.clip_noise import private_gradient

SHAPES = {(64, 32): 12, (32, 128): 12, (8, 512): 12}
"""(records, tokens of each): attention heads."""
LAYERS, WIDTH, WORDS = 4, 384, 4096
HALF = torch.bfloat16
WAYS: dict[str, tuple[torch.dtype | None, int]] = {
    "float32": (None, 0), "as torch has it": (HALF, 0), "ours": (HALF, precision.SHORT),
}  # fmt: skip
"""The type of products, and up to how many positions attention stays float32."""


def step(model: Any, tokens: Tokens, number: int, kind: torch.dtype | None) -> None:
    rule = ClipNoise(0.1, 0.7)
    phase = Phase("private", ("private",), len(tokens), Poisson(0.5), rule, 1, Optimiser("adamw", 1e-3))
    work = Work(autocast=kind)
    rows = np.arange(len(tokens))
    private_gradient(model, tokens, rows, -1, work, rule, Step(number, phase, 0, 0), SecretSource(1), rule.clip)
    model.zero_grad(set_to_none=True)


def measured(rounds: int) -> Iterator[dict[str, Any]]:
    flags = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    own = next((each for each in ("amx_bf16", "avx512_bf16") if f" {each}" in flags), "none")
    for (records, length), heads in SHAPES.items():
        torch.manual_seed(0)
        shape = GPT2Config(vocab_size=WORDS, n_layer=LAYERS, n_embd=WIDTH, n_head=heads, n_positions=512, **GPT2)
        model = AutoModelForCausalLM.from_config(shape, attn_implementation="sdpa").train()
        flat = np.random.default_rng(length).integers(5, WORDS, records * length).astype(np.int32)
        tokens = Tokens(flat, np.arange(0, len(flat) + 1, length))
        for number in range(-1, rounds):
            seconds = {}
            for name, (kind, precision.SHORT) in WAYS.items():
                began = time.process_time()
                step(model, tokens, max(number, 0), kind)
                seconds[name] = round(time.process_time() - began, 4)
            if number >= 0:  # the first is to warm up
                yield {"records": records, "tokens": length, "round": number, "own": own, "processor": seconds}


def table(rows: list[dict[str, Any]]) -> str:
    """Medians of the float32 step, and of the ratios of the other two to it in their rounds, with quartiles."""
    first, *others = WAYS
    lines = [
        f"| records × tokens, rounds | {first}, ms | {', × float32 | '.join(others)}, × float32 |",
        "|---|---|---|---|",
    ]
    for records, length in SHAPES:
        times = [row["processor"] for row in rows if (row["records"], row["tokens"]) == (records, length)]
        lines.append(f"| {records} × {length}, {len(times)} | {' | '.join(beside(times, *WAYS))} |")
    return "\n".join(lines)


def main() -> None:
    options = arguments(__doc__, 12).parse_args()
    carry_out(options, measured(options.rounds), table)


if __name__ == "__main__":
    main()
