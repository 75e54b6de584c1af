"""Gaussian noise made where the gradient is: ChaCha20 and Box–Muller in tensor operations, so that nothing is copied.

The words are those of ChaCha20 (Bernstein 2008; RFC 8439, section 2.3) with a counter of 64 bits from zero and a nonce of
zero, under a key that serves one stream. On a GPU two kernels are compiled for them; elsewhere the operations run singly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor

from taciturn.errors import TaciturnError

CHUNK = 1 << 23
"""Normals made at a time, 4 bytes each and as much again of scratch."""
BLOCKS = 3 * CHUNK // 32
"""A pair takes three words, a block has sixteen."""
_LOW = 0xFFFFFFFF
CLOSE = 1e-5
"""Standard deviations by which a normal of another processor may differ; a cell of the grid is a hundred times as wide."""
Turn = Callable[[Tensor], Tensor]
Normal = Callable[[Tensor, float], Tensor]
_CONSTANTS = np.frombuffer(b"expand 32-byte k", np.int32).tolist()
_QUARTERS = (
    *((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15)),
    *((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)),
)


def add_noise(
    key: bytes, tensors: Sequence[Tensor], starts: Sequence[int], std: float, scale: float, grid: float, draws: int
) -> None:
    """Set x to scale·x + N(0, std²), rounded to the grid, in place. The first entry of tensors[i], contiguous float32, gets
    normal number starts[i] of the stream, whatever is asked for beside it."""
    unit = std / grid / math.sqrt(draws)
    words = torch.from_numpy(np.frombuffer(key, np.int32).copy()).to(tensors[0].device)
    for tensor, start in zip(tensors, starts, strict=True):
        flat = tensor.detach().view(-1)
        flat.mul_(scale / grid)
        for chunk in range(start // CHUNK, -(-(start + len(flat)) // CHUNK)):
            low, high = max(start, chunk * CHUNK), min(start + len(flat), (chunk + 1) * CHUNK)
            total = sum_of_normals(words, chunk, draws, unit)
            flat.narrow(0, low - start, high - low).add_(total.narrow(0, low - chunk * CHUNK, high - low))
        flat.round_().mul_(grid)  # after the noise: before, it would change the sensitivity


def sum_of_normals(key: Tensor, chunk: int, draws: int, std: float) -> Tensor:
    """Σ of ``draws`` draws of N(0, std²) for every place of a chunk, [CHUNK]. key: int32 [8]."""
    turned, normal = _kernels(str(key.device)) if key.is_cuda else (double_round, box_muller)
    total: Tensor | None = None
    for draw in range(draws):
        made = normal(chacha(key, (chunk * draws + draw) * BLOCKS, BLOCKS, turned).view(3, -1), std)
        total = made if total is None else total + made
    assert total is not None
    return total


def box_muller(words_3P: Tensor, std: float) -> Tensor:
    """2P draws of N(0, std²) from three words each pair, as gaussian.box_muller makes them."""
    a, b, c = words_3P
    wide = (b.long() << 32) | (a.long() & _LOW)
    u = (wide.double() * 2.0**-63 + 2.0**-64).abs()  # in double precision, so that it is never 1 by rounding
    radius = (u.log() * (-2.0 * std * std)).float().sqrt()
    angle = c.float() * (math.pi * 2.0**-31)
    return torch.cat([radius * angle.cos(), radius * angle.sin()])


def chacha(key: Tensor, first: int, blocks: int, turned: Turn) -> Tensor:
    """Words of ChaCha20, int32 [16, blocks]: column j is block ``first`` + j. key: int32 [8]."""
    number = torch.arange(first, first + blocks, device=key.device)
    fixed = [torch.full_like(number, each, dtype=torch.int32) for each in _CONSTANTS]
    counter = [_signed(number & _LOW), _signed(number >> 32)]
    nonce = [torch.zeros_like(number, dtype=torch.int32)] * 2
    begun = torch.stack([*fixed, *(each.expand(blocks) for each in key.unbind(0)), *counter, *nonce])
    x = begun
    for _ in range(10):
        x = turned(x)
    return x + begun


def double_round(x_16B: Tensor) -> Tensor:
    """Two rounds of ChaCha20, on the columns and on the diagonals of the state."""
    x = list(x_16B.unbind(0))
    for a, b, c, d in _QUARTERS:
        x[a] = x[a] + x[b]
        x[d] = _rotated(x[d] ^ x[a], 16)
        x[c] = x[c] + x[d]
        x[b] = _rotated(x[b] ^ x[c], 12)
        x[a] = x[a] + x[b]
        x[d] = _rotated(x[d] ^ x[a], 8)
        x[c] = x[c] + x[d]
        x[b] = _rotated(x[b] ^ x[c], 7)
    return torch.stack(x)


def _rotated(x: Tensor, bits: int) -> Tensor:
    """To the left; a shift to the right of a signed word drags its sign along."""
    return (x << bits) | ((x >> (32 - bits)) & ((1 << bits) - 1))


def _signed(word: Tensor) -> Tensor:
    return ((word ^ 0x80000000) - 0x80000000).int()


@cache
def _kernels(device: str) -> tuple[Turn, Normal]:
    """Both as one kernel each, once they are found to compute what the processor does; all ten double rounds as one would
    take minutes to compile."""
    made = torch.compile(double_round), torch.compile(box_muller)
    hold(*made, torch.device(device))
    return made


def hold(turned: Turn, normal: Normal, device: torch.device) -> None:
    """Raises TaciturnError where a device's kernels compute other words, or other normals, than the processor does: its
    noise would be none of those that are accounted for."""
    words = torch.from_numpy(np.random.PCG64(1).random_raw(8 * 4096).view(np.int32).reshape(16, -1).copy())
    there = turned(words.to(device)).cpu()
    found, want = normal(words[:3].to(device), 1.0).cpu(), box_muller(words[:3], 1.0)
    if not torch.equal(there, double_round(words)) or not bool(((found - want).abs() < CLOSE).all()):
        raise TaciturnError(
            f"noise made on {device} is not what the processor makes of the same bits, so nothing may be released with it: "
            "train on the CPU, or with another version of torch or of the driver"
        )
