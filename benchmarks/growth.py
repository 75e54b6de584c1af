"""How the cost of a private step grows: with width, length, batch and the number of records.

    python -m benchmarks.growth --threads 2

Time: tokens a second of our step and of a plain step of the same model and ordinary loss, interleaved. Records: a run of
private steps over N records of a small LSTM, a process each; memory is its peak beyond the imports.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.peers import make

SIZES = {
    "width": [(w, 64, 16) for w in (64, 128, 256, 512, 1024)],
    "length": [(256, t, 4096 // t) for t in (32, 64, 128, 256, 512, 1024, 2048)],
    "batch": [(256, 64, b) for b in (1, 4, 16, 64, 256)],
}
RECORDS = (1_000, 10_000, 100_000, 1_000_000)


def gpt(width: int, length: int) -> Any:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=8192, n_layer=4, n_embd=width, n_head=max(1, width // 64), n_positions=max(length, 64),
        resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, use_cache=False, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config).train()


def plain_step(model: Any, batch: dict[str, torch.Tensor]) -> None:
    logits = model(**batch).logits[:, :-1]
    torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch["input_ids"][:, 1:].flatten()).backward()
    with torch.no_grad():
        torch._foreach_add_(list(model.parameters()), [p.grad for p in model.parameters()], alpha=-1e-4)
    model.zero_grad(set_to_none=True)


def pair(width: int, length: int, rows: int, seconds: float) -> tuple[float, float]:
    """Seconds of a plain and of our step, medians of interleaved ones."""
    batch = {"input_ids": torch.randint(5, 8192, (rows, length), generator=torch.Generator().manual_seed(1))}
    plain, ours = gpt(width, length), gpt(width, length)
    step = make(ours, plain_step, SimpleNamespace(optim="sgd", sigma=1.0, check=False))
    times: tuple[list[float], list[float]] = ([], [])
    began = time.perf_counter()
    while len(times[0]) < 5 or (time.perf_counter() - began < seconds and len(times[0]) < 30):
        for kept, run in zip(times, (lambda: plain_step(plain, batch), lambda: step(batch)), strict=True):
            t = time.perf_counter()
            run()
            kept.append(time.perf_counter() - t)
    return median(times[0][2:]), median(times[1][2:])


def records(n: int, steps: int = 20) -> None:
    """One run over ``n`` records, in this process; prints seconds a step and MiB."""
    from taciturn.models.hf import load_model
    from taciturn.models.tokenizers import byte_tokenizer
    from taciturn.models.tokens import Tokens
    from taciturn.training.engine import Options, fit
    from taciturn.training.phase import Phase
    from taciturn.training.phase_terms import ClipNoise
    from taciturn.training.plan import Model, Plan, Seeds, Target
    from taciturn.training.samplers import Poisson
    from taciturn.training.schedules import Optimiser

    tokenizer = byte_tokenizer()
    before = int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20
    rng = np.random.default_rng(0)
    lengths = rng.integers(10, 60, n)
    flat = rng.integers(0, 256, int(lengths.sum()), dtype=np.int32)
    tokens = Tokens(flat, np.concatenate([[0], np.cumsum(lengths)]))
    model = load_model("lstm", tokenizer, 0, {"embedding_size": 64, "hidden_size": 64})
    phase = Phase("private", ("private",), n, Poisson(256 / n), ClipNoise(1.0, 1.0), steps, Optimiser("sgd", 0.1))
    plan = Plan("dpsgd", (phase,), 1, Target(), "benchmark", Model("lstm", "bytes"), Seeds())
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        fit(plan, model, tokenizer, {"private": tokens}, Path(folder) / "run", Options(checkpoint_steps=10**6))
        seconds = (time.perf_counter() - began) / steps
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    corpus = (flat.nbytes + tokens.offsets.nbytes) / 2**20
    print(json.dumps({"ms": seconds * 1e3, "memory": memory, "corpus": corpus}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=8.0, help="of measuring per row")
    parser.add_argument("--records", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.records:
        records(options.records)
        return
    # First, since a child starts with its parent's peak.
    print("| records | ms a step (q·N = 256) | peak MiB | of which the corpus |\n|---|---|---|---|")
    for n in RECORDS:
        command = [sys.executable, "-m", "benchmarks.growth", "--threads", str(options.threads), "--records", str(n)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        print(f"| {n:,} | {found['ms']:.1f} | {found['memory']:.0f} | {found['corpus']:.0f} |", flush=True)

    for what, sizes in SIZES.items():
        print(f"\n| {what}: width × T × B | plain tokens/s | private tokens/s | ratio |\n|---|---|---|---|")
        for width, length, rows in sizes:
            plain, ours = pair(width, length, rows, options.seconds)
            tokens = length * rows
            print(
                f"| {width} × {length} × {rows} | {tokens / plain:,.0f} | {tokens / ours:,.0f} | {ours / plain:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
