"""What correlated noise would be worth: the error of every sum of gradients so far, at the same ε.

    python experiments/banded_noise.py > experiments/rows/banded_noise.jsonl

A banded matrix mechanism (Choquette-Choo et al. 2023) adds C⁻¹z for z in DP-SGD, with b bands in C and columns of length 1.
The records are cut into b parts that take turns, so that a record is drawn at most every b steps, each time at rate b·q: its
guarantee is that of T/b steps of DP-SGD at b·q with the same σ. The error of the sums is σ·‖A C⁻¹‖, A summing from the
first step. C is the square root of A to b bands (Kalinin and Lampert 2024). b = 1 is DP-SGD. Nothing is trained.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular, toeplitz
from scipy.special import binom

from taciturn.privacy.accounting.calibrate import noise_multiplier

EPSILON, DELTA = 3.0, 8e-5
RECORDS = {"an eighth of MultiWOZ and SGD": 3_249, "all of it": 8 * 3_249}
PLANS = ((20, 64), (20, 256), (80, 256), (320, 256), (1280, 256))
"""Steps and expected records of one."""


def spread(bands: int, steps: int) -> float:
    """‖A C⁻¹‖, root mean square over the steps: by what the noise of the sums is larger than σ.

    >>> round(spread(1, 3) ** 2, 9)  # (1 + 2 + 3) / 3
    2.0
    """
    summing = np.tril(np.ones((steps, steps)))
    return float(
        np.linalg.norm(solve_triangular(banded(bands, steps), summing.T, trans="T", lower=True)) / math.sqrt(steps)
    )


def banded(bands: int, steps: int) -> NDArray[np.float64]:
    """C, [steps, steps]: lower triangular, columns of length 1.

    >>> banded(1, 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    k = np.arange(min(bands, steps))
    root = binom(2.0 * k, k) / 4.0**k  # coefficients of (1 − x)^(−1/2)
    c = np.tril(toeplitz(np.pad(root, (0, steps - len(root)))))
    return np.asarray(c / np.linalg.norm(c, axis=0))


def rows() -> Iterator[dict[str, object]]:
    """Every plan with every power of two as bands that leaves a rate of at most 1."""
    for corpus, records in RECORDS.items():
        for steps, batch in PLANS:
            first = 0.0
            for bands in (2**i for i in range(11)):
                rate = bands * batch / records
                if bands > steps or rate > 1:
                    break
                sigma = noise_multiplier(EPSILON, DELTA, rate, math.ceil(steps / bands), "substitution")
                error = sigma * spread(bands, steps) / batch
                first = first or error
                yield {
                    "corpus": corpus, "records": records, "steps": steps, "batch": batch, "bands": bands,
                    "passes": steps * batch / records, "sigma": sigma, "error": error, "beside": error / first,
                }  # fmt: skip


def show(lines: list[dict[str, object]]) -> str:
    """The table of docs/results.md: a plan a line, DP-SGD beside the best number of bands."""
    text = [
        "| records | steps of | times a record is read | σ of DP-SGD | best bands | σ | error beside DP-SGD |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    plans: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for line in lines:
        plans.setdefault((line["records"], line["steps"], line["batch"]), []).append(line)
    for (records, steps, batch), each in plans.items():
        best = min(each, key=lambda line: float(str(line["beside"])))
        text.append(
            f"| {records:,} | {steps:,} of {batch} | {each[0]['passes']:.1f} | {each[0]['sigma']:.2f} | {best['bands']} "
            f"| {best['sigma']:.2f} | {best['beside']:.2f} |"
        )
    return "\n".join(text)


if __name__ == "__main__":
    found = list(rows())
    sys.stdout.write("".join(json.dumps(row) + "\n" for row in found))
    print(show(found), file=sys.stderr)
