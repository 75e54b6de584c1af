"""What the noise costs, in nanoseconds for each entry of a gradient, beside torch.randn (docs/noise.md).

    python benchmarks/noise.py --entries 40_000_000 --threads 1 2
    python benchmarks/noise.py --device cuda                       # made on the GPU, held against the processor's first

Each line adds N(0, 1) in place to a float32 vector, as a private step does. Variants take turns, so that a busy machine
slows all of them; the median and the least of the rounds are printed.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import torch

from taciturn.training.randomness import on_device
from taciturn.training.randomness.gaussian import add_noise, grid_of
from taciturn.training.randomness.keystream import stream_key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=40_000_000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, torch.get_num_threads()])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    args = parser.parse_args()
    if args.device == "cuda":
        print(on_a_gpu(args.entries, args.rounds))
        return
    gradient = torch.zeros(args.entries)
    variants: dict[str, Callable[[], object]] = {
        f"draws={draws}, {'rounded' if grid else 'not rounded'}": ours(gradient, draws, grid)
        for draws in (1, 2, 4)
        for grid in (grid_of(1.0), None)
    }
    variants["torch: add_(randn)"] = lambda: gradient.add_(torch.randn(args.entries))
    times: dict[tuple[str, int], list[float]] = {}
    for _ in range(args.rounds):
        for threads in dict.fromkeys(args.threads):
            torch.set_num_threads(threads)
            for name, run in variants.items():
                started = time.perf_counter()
                run()
                times.setdefault((name, threads), []).append((time.perf_counter() - started) / args.entries * 1e9)
    print(f"{'ns per entry':24} {'threads':>7} {'median':>7} {'least':>7}")
    for (name, threads), taken in times.items():
        print(f"{name:24} {threads:7} {statistics.median(taken):7.2f} {min(taken):7.2f}")


def on_a_gpu(entries: int, rounds: int) -> str:
    """ns an entry beside torch.randn, and how far the GPU's draws are from the same operations on the processor."""
    key, grid = stream_key(7, "noise", 0, 0), grid_of(1.0)
    here = torch.zeros(on_device.CHUNK)
    on_device.add_noise(key, [here], [0], 1.0, 1.0, grid, 1)
    gradient = torch.zeros(entries, device="cuda")
    variants: dict[str, Callable[[], object]] = {
        "ours": lambda: on_device.add_noise(key, [gradient], [0], 1.0, 1.0, grid, 1),
        "torch: add_(randn)": lambda: gradient.add_(torch.randn(entries, device="cuda")),
    }
    times: dict[str, list[float]] = {name: [] for name in variants}
    for name, run in variants.items():
        for _ in range(rounds + 2):  # the first ones compile
            torch.cuda.synchronize()
            started = time.perf_counter()
            run()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - started) / entries * 1e9)
    there = torch.zeros(len(here), device="cuda")
    on_device.add_noise(key, [there], [0], 1.0, 1.0, grid, 1)
    off = float(((there.cpu() - here).abs() > 0).float().mean())
    words = torch.arange(8, dtype=torch.int32)
    turned, _ = on_device._kernels("cuda:0")
    ours, theirs = (
        on_device.chacha(w, 5, 1000, t) for w, t in ((words.cuda(), turned), (words, on_device.double_round))
    )
    lines = [f"{name:24} {statistics.median(taken[2:]):7.3f} {min(taken[2:]):7.3f} ns" for name, taken in times.items()]
    same = torch.equal(ours.cpu(), theirs)
    return "\n".join([*lines, f"words equal: {same}; entries a cell of the grid aside: {off:.2g}"])


def ours(gradient: torch.Tensor, draws: int, grid: float | None) -> Callable[[], None]:
    def run() -> None:
        add_noise(stream_key(None, "noise", 0, 0), [gradient.numpy()], [0], 1.0, 1.0, grid, draws)

    return run


if __name__ == "__main__":
    main()
