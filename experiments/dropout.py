"""What it costs that steps with noise run without dropout: DP-SGD with masks as they once were beside DP-SGD as it is.

The arm "shared masks" puts back what docs/guarantees.md §9 describes: masks of one stream, dealt by a record's place in a
pass. Its certificate would be wrong, so it is thrown away. Both arms have the same plan, sampling rate, σ, seeds and data,
and noise from the operating system.

    python experiments/dropout.py run abcd --data DATA --model GPT2 --work WORK
    python experiments/dropout.py table --work WORK
"""

from __future__ import annotations

import argparse
import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import mean, stdev
from unittest.mock import patch

import torch
from common import Row, Work, every, records, table
from scipy.stats import ttest_1samp

import taciturn.training.engine  # noqa: F401  before anything is patched: what it imports keeps the true names
from taciturn.data.loaders import load

ARMS = ("without dropout", "shared masks")
EPSILON, DELTA = 8.0, 1e-5
CLIPS = (0.1, 1.0)


@contextmanager
def shared_masks() -> Iterator[None]:
    """Clipped passes in training mode, their draws unseen, the guard silent: steps as they were, without a guarantee."""
    with (
        patch("taciturn.persample.isolated.without_dropout", nullcontext),
        patch("taciturn.persample.isolated._streams", lambda _: []),
        patch("taciturn.training.check.require_isolation"),
        patch("taciturn.training.engine.require_isolation"),
    ):
        yield


def run(options: argparse.Namespace) -> None:
    """Every cell of a data set: a few hundred dialogues, the published model with its own dropout of .1."""
    work = Work(options.work, "dropout.jsonl")
    torch.set_num_threads(options.threads)
    test = records(every(load(options.set, options.data, "valid").corpus, options.stride_test), "turn")
    corpus = every(load(options.set, options.data, "test").corpus, options.stride)
    screened = work.screened(f"dropout-{options.set}", corpus, "pii", "turn")
    model = {"name": str(options.model), "max_length": 64}
    for seed in options.seeds:
        for clip in CLIPS:
            for arm in ARMS:
                with work.cell(set=options.set, clip=clip, arm=arm, seed=seed) as cell:
                    if cell is None:
                        continue
                    settings = {"batch": 128, "steps": 60, "clip": clip, "optimiser": {"name": "adamw", "lr": 1e-3}}
                    with shared_masks() if arm == ARMS[1] else nullcontext():
                        found = work.measure(
                            "dpsgd", screened, model, test, seed=seed, delta=DELTA, epsilon=EPSILON, options=settings
                        )
                    shutil.rmtree(work.folder / "certificates" / found["certificate"])
                    cell["perplexity"] = found["utilities"]["private"]


def show(work: Work) -> str:
    """Perplexities by arm, and the difference of the arms with its spread over seeds."""
    rows = work.rows()
    sets = sorted({(row["set"], row["clip"]) for row in rows})
    return "\n\n".join(
        [
            table(rows, ("set", "clip", "arm"), {"perplexity": "perplexity"}),
            *(f"{name}, C = {clip:g}: {verdict(rows, name, clip)}" for name, clip in sets),
        ]
    )


def verdict(rows: list[Row], name: str, clip: float) -> str:
    """Which arm predicts better: said only where a paired t-test of log perplexities has p below .05."""
    by = {
        (row["arm"], row["seed"]): math.log(row["perplexity"])
        for row in rows
        if (row["set"], row["clip"]) == (name, clip)
    }
    seeds = sorted({seed for _, seed in by})
    gains = [by[ARMS[1], seed] - by[ARMS[0], seed] for seed in seeds if all((arm, seed) in by for arm in ARMS)]
    if len(gains) < 3:
        return f"{len(gains)} pairs of runs decide nothing"
    error, p = stdev(gains) / math.sqrt(len(gains)), float(ttest_1samp(gains, 0.0).pvalue)
    spread = f"standard error {100 * error:.1f}, {len(gains)} pairs, p = {p:.2g}"
    shown = "a difference" if p < 0.05 else "no difference shown"
    return f"{100 * math.expm1(mean(gains)):+.1f} % perplexity with shared masks ({spread}): {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("set", nargs="?", default="abcd")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--stride", type=int, default=6)
    parser.add_argument("--stride-test", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(show(Work(options.work, "dropout.jsonl"))) if options.do == "table" else run(options)


if __name__ == "__main__":
    main()
