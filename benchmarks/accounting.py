"""Time and memory of the accountant (docs/guarantees.md): single ε, calibration, groups, private selection.

    python benchmarks/accounting.py

Each case runs in a process of its own, so that nothing is cached and the peak of memory is its own. Processor seconds,
not wall-clock ones, so that a busy machine counts the same. Limits: ε 1 s, calibration 5 s, k = 20 10 s, 500 MiB.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable

from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.events import PoissonGaussian, Relation
from taciturn.privacy.guarantees.private_selection import NegativeBinomial, Poisson, select
from taciturn.privacy.guarantees.published_uedp import published_bound


def single(q: float, sigma: float, steps: int, relation: Relation, k: int = 1, delta: float = 1e-5) -> float:
    return compose({PoissonGaussian(q, sigma): steps}, relation, k).epsilon(delta)


def selected(runs: NegativeBinomial | Poisson) -> float:
    return select(compose({PoissonGaussian(0.01, 1.0): 1000}, "substitution"), runs, 1e-5).epsilon


CASES: dict[str, tuple[float, Callable[[], float]]] = {
    "ε, q=.01 σ=1 T=1000, substitution": (1, lambda: single(0.01, 1.0, 1000, "substitution")),
    "ε, q=.01 σ=1 T=1000, add-remove": (1, lambda: single(0.01, 1.0, 1000, "add-remove")),
    "ε, q=.1 σ=2 T=100, substitution": (1, lambda: single(0.1, 2.0, 100, "substitution", delta=8e-5)),
    "ε, q=.001 σ=.8 T=100,000, substitution": (1, lambda: single(1e-3, 0.8, 100_000, "substitution")),
    "ε, q=.001 σ=.8 T=100,000, add-remove": (1, lambda: single(1e-3, 0.8, 100_000, "add-remove")),
    "ε, q=1 σ=.5 T=1000, substitution": (1, lambda: single(1.0, 0.5, 1000, "substitution")),
    "σ for ε=3, q=.01 T=1000, substitution": (5, lambda: noise_multiplier(3, 1e-5, 0.01, 1000, "substitution")),
    "σ for ε=8, q=.05 T=600, add-remove": (5, lambda: noise_multiplier(8, 1e-6, 0.05, 600, "add-remove")),
    "σ for ε=1, q=.001 T=20,000, substitution": (5, lambda: noise_multiplier(1, 8e-5, 1e-3, 20_000, "substitution")),
    "group k=20, q=.05 σ=8 T=200, substitution": (10, lambda: single(0.05, 8.0, 200, "substitution", 20, 8e-5)),
    "group k=20, q=.1 σ=3 T=100, substitution": (10, lambda: single(0.1, 3.0, 100, "substitution", 20, 8e-5)),
    "group k=20, q=.01 σ=2 T=10,000, add-remove": (10, lambda: single(0.01, 2.0, 10_000, "add-remove", 20)),
    "UeDP as printed, K=50, q_u=.05": (10, lambda: published_bound(50, 0.05, 20.0, 200, 1e-5).epsilon),
    "best of 10 runs, geometric": (5, lambda: selected(NegativeBinomial(10.0))),
    "best of 10 runs, Poisson": (5, lambda: selected(Poisson(10.0))),
}


def measure(name: str) -> None:
    before = time.process_time()
    value = CASES[name][1]()
    print(time.process_time() - before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, value)


def main() -> int:
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return 0
    over = 0
    print(f"{'case':46}{'seconds':>9}{'limit':>7}{'MiB':>6}{'value':>10}")
    for name, (limit, _) in CASES.items():
        out = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True).stdout
        seconds, memory, value = (float(each) for each in out.split())
        over += seconds > limit or memory > 500
        mark = " over" if seconds > limit or memory > 500 else ""
        print(f"{name:46}{seconds:9.2f}{limit:7.0f}{memory:6.0f}{value:10.4g}{mark}", flush=True)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
