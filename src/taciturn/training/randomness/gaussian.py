"""Secret randomness: Gaussian noise and the coins of Poisson sampling (docs/noise.md).

Both must be unknown to whoever sees the model: the noise for the Gaussian mechanism, the coins for amplification by
sampling. Noise follows Box and Muller (1958) with 63 bits for the radius and 32 for the angle, and what is released
is rounded to a grid: the low bits of a floating-point sum tell more than its value (Mironov 2012; Haney et al. 2022).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from taciturn.errors import UsageError
from taciturn.training.randomness.keystream import BLOCK_BYTES, Keystream, stream_key

GRID_BITS = 10  # released entries are multiples of a power of two in (std·2⁻¹¹, std·2⁻¹⁰]
CHUNK = 1 << 17  # normals of which the words lie together: calls long enough that threads seldom wait for each other
PAIRS = CHUNK // 2
PART = PAIRS // 2  # pairs made at a time: what they are made of and what they are added to stays in a core's cache
_WORD_BYTES = 12 * PAIRS  # a pair takes 96 bits
_COINS_AT_A_TIME = 1 << 18
_REST = 53 - 16
"""Bits of a coin that are drawn only where the first sixteen do not decide."""


@dataclass(frozen=True, slots=True)
class SecretSource:
    """Noise and sampling coins for numbered steps; ``seed=None`` means operating-system entropy, fresh at every call.

    With a seed, or a secret key of 32 bytes in its place, a stream is a pure function of (seed, kind, step,
    rank), and ranks are independent. Each normal is the sum of ``draws`` independent ones over √draws (Holohan and
    Braghin 2021).
    """

    seed: int | bytes | None = field(default=None, repr=False)
    rank: int = 0
    draws: int = 1

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise UsageError(f"draws must be at least 1, found {self.draws}")

    def coins(self, step: int, records: int | Sequence[int], rate: float | Sequence[float]) -> NDArray[np.int64]:
        """Numbers of the records that step ``step`` draws, ascending, each with probability ``rate``; possibly none.

        Several kinds, one after the other, may have rates of their own: ``records`` says how many there are of each. Exact
        for a rate of 0 or 1; else see ``coin_threshold``. Raises UsageError for a rate outside [0, 1].
        """
        counts = [records] if isinstance(records, int) else list(records)
        rates = [rate] if isinstance(rate, int | float) else list(rate)
        thresholds = np.array([coin_threshold(each) for each in rates], np.uint64)
        ends = np.cumsum(counts)
        drawn, even = [], []
        key, total = stream_key(self.seed, "coins", step, self.rank), int(ends[-1])
        stream = Keystream(key, 2 * _COINS_AT_A_TIME)
        for start in range(0, total, _COINS_AT_A_TIME):
            first = stream.read(start * 2 // BLOCK_BYTES).view(np.uint16)[: total - start]
            limits = (thresholds >> np.uint64(_REST)).astype(np.uint32)
            limit = limits[0] if len(counts) == 1 else limits[_kind(ends, start, len(first))]
            drawn.append(np.flatnonzero(first < limit) + start)
            even.append(np.flatnonzero(first == limit) + start)
        # Sixteen bits decide all coins but one in 65,536; those that are even with the limit are decided by the rest of it.
        at = np.concatenate(even) if even else np.empty(0, np.int64)
        if len(at):
            after = -(-2 * total // BLOCK_BYTES)
            rest = Keystream(key, -(-8 * len(at) // BLOCK_BYTES) * BLOCK_BYTES).read(after).view(np.uint64)[: len(at)]
            low = (thresholds & np.uint64(2**_REST - 1))[np.searchsorted(ends, at, side="right")]
            drawn.append(at[rest >> np.uint64(64 - _REST) < low])
        return np.sort(np.concatenate(drawn)) if drawn else np.empty(0, np.int64)

    def add_gaussian(
        self,
        step: int,
        tensors: Sequence[torch.Tensor],
        std: float,
        scale: float = 1.0,
        starts: Sequence[int] | None = None,
    ) -> None:
        """Set every entry x to scale·x + N(0, std²), rounded to the grid; in place, in one pass over the tensors.

        The noise of an entry depends on its place in the tensors laid end to end, not on how they are cut.
        ``starts`` gives instead the place of each tensor's first entry, ascending, for shards of one gradient whose
        holders share (seed, rank). Contiguous float32 tensors on a CUDA device get noise that is made there (on_device.py),
        of another stream; others than float32 or float64 on the CPU go through a copy there.

        Raises UsageError for a negative or infinite ``std``, a tensor of integers, or places that overlap.
        """
        if not (0 <= std < math.inf):
            raise UsageError(f"the standard deviation of noise must be finite and not negative, found {std}")
        if std == 0:
            for tensor in tensors:
                tensor.detach().mul_(scale)
            return
        places = _places([tensor.numel() for tensor in tensors], starts)
        key = stream_key(self.seed, "noise", step, self.rank)
        if tensors and all(t.device.type == "cuda" and t.dtype == torch.float32 and t.is_contiguous() for t in tensors):
            from taciturn.training.randomness import on_device

            on_device.add_noise(key, tensors, places, std, scale, grid_of(std), self.draws)
            return
        works = [_workable(tensor) for tensor in tensors]
        add_noise(key, [work.view(-1).numpy() for work in works], places, std, scale, grid_of(std), self.draws)
        for tensor, work in zip(tensors, works, strict=True):
            if work.data_ptr() != tensor.data_ptr():
                tensor.detach().copy_(work)

    def normals(self, step: int, shape: Sequence[int]) -> torch.Tensor:
        """Standard normals for the hidden states of step ``step`` (Selective DP-SGD), of a stream of their own, float32.

        They are not rounded to a grid: what is released are functions of the noised states, not the states.
        """
        out = np.zeros(math.prod(shape), np.float32)
        add_noise(stream_key(self.seed, "states", step, self.rank), [out], [0], 1.0, 1.0, None, self.draws)
        return torch.from_numpy(out).view(*shape)


def _kind(ends: NDArray[np.int64], start: int, count: int) -> NDArray[np.int64]:
    """Which kind each of ``count`` records from ``start`` on is of."""
    return np.searchsorted(ends, np.arange(start, start + count), side="right")


def coin_threshold(rate: float) -> int:
    """A record is drawn when 53 random bits are below this: with ``rate`` rounded down to a multiple of 2⁻⁵³, never more.

    >>> coin_threshold(0.25) == 2**51, coin_threshold(1.0) == 2**53, coin_threshold(1.5 * 2**-53)
    (True, True, 1)
    """
    if not 0 <= rate <= 1:
        raise UsageError(f"a sampling rate lies in [0, 1], found {rate}")
    return math.floor(rate * 2.0**53)


def grid_of(std: float) -> float:
    """The largest power of two that is at most std·2⁻¹⁰ (and at least 2⁻¹²⁶, the least normal float32).

    >>> grid_of(1.0) == 2**-10, grid_of(1.9) == 2**-10, grid_of(0.99) == 2**-11
    (True, True, True)
    """
    return math.ldexp(1.0, max(math.frexp(std)[1] - 1 - GRID_BITS, -126))


def add_noise(
    key: bytes,
    flats: Sequence[NDArray[Any]],
    starts: Sequence[int],
    std: float,
    scale: float,
    grid: float | None,
    draws: int = 1,
) -> None:
    """Set x to scale·x + N(0, std²) in the one-dimensional ``flats``, on as many threads as torch uses.

    The first entry of flats[i] gets normal number starts[i] of the stream. Without a ``grid`` nothing is rounded.
    """
    unit = 1.0 if grid is None else grid
    ends = [start + len(flat) for start, flat in zip(starts, flats, strict=True)]
    chunks = sorted({c for s, e in zip(starts, ends, strict=True) if e > s for c in range(s // CHUNK, -(-e // CHUNK))})

    def work(mine: Sequence[int]) -> None:
        normals = _Normals(key, std / unit, draws)
        for chunk in mine:
            for place, z in normals.chunk(chunk):
                for x, noise in _pieces(flats, starts, chunk * CHUNK + place, z):
                    np.multiply(x, scale / unit, out=x)
                    np.add(x, noise, out=x)
                    if grid is not None:  # after the noise: before, it would change the sensitivity
                        np.rint(x, out=x)
                        np.multiply(x, grid, out=x)

    workers = min(torch.get_num_threads(), len(chunks))
    if workers < 2:
        work(chunks)
        return
    with ThreadPoolExecutor(workers) as pool:  # numpy lets go of the interpreter lock; who does a chunk is no matter
        list(pool.map(work, [chunks[i::workers] for i in range(workers)]))


class _Normals:
    """Chunk i of a stream of N(0, std²) draws, for any i; owns the scratch of one thread."""

    def __init__(self, key: bytes, std: float, draws: int) -> None:
        self._std = std / math.sqrt(draws)
        self._streams = [Keystream(key, _WORD_BYTES) for _ in range(draws)]
        self._radius, self._angle = np.empty(PART, np.float64), np.empty(PART, np.float32)
        self._sum, self._one = np.empty((2, PART), np.float32), np.empty((2, PART), np.float32)

    def chunk(self, index: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """``CHUNK`` normals in pieces, each with the place of its first; a piece is overwritten by the next but one."""
        draws = len(self._streams)
        read = [
            stream.read((index * draws + draw) * _WORD_BYTES // BLOCK_BYTES)
            for draw, stream in enumerate(self._streams)
        ]
        for first in range(0, PAIRS, PART):
            for draw, words in enumerate(read):
                radii = words[8 * first : 8 * (first + PART)].view(np.int64)
                angles = words[8 * PAIRS + 4 * first : 8 * PAIRS + 4 * (first + PART)].view(np.int32)
                out = self._one if draw else self._sum
                box_muller(radii, angles, self._std, self._radius, self._angle, out)
                if draw:
                    np.add(self._sum, out, out=self._sum)
            yield first, self._sum[0]
            yield PAIRS + first, self._sum[1]


def box_muller(
    radii: NDArray[np.int64],
    angles: NDArray[np.int32],
    std: float,
    radius: NDArray[np.float64],
    angle: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Turn n random words of 64 bits and n of 32 into 2n draws of N(0, std²), ``out[0]`` and ``out[1]``; radius and angle
    (n) are scratch.

    u = |x + ½|·2⁻⁶³ for a signed 64-bit word x is uniform on the odd multiples of 2⁻⁶⁴ in (0, 1), so
    std·√(−2 ln u) reaches √(2·64·ln 2) = 9.42 deviations. Its logarithm is taken in double precision: in single,
    all u within 2⁻²⁵ of 1 would give noise of exactly zero.
    """
    np.copyto(radius, radii, casting="unsafe")  # a copy converts in one go, a product in pieces of numpy's buffer
    np.multiply(radius, 2.0**-63, out=radius)
    np.add(radius, 2.0**-64, out=radius)
    np.abs(radius, out=radius)
    np.log(radius, out=radius)
    np.multiply(radius, -2.0 * std * std, out=radius)
    np.copyto(angle, angles, casting="unsafe")
    np.multiply(angle, math.pi * 2.0**-31, out=angle)
    np.cos(angle, out=out[0])
    np.sin(angle, out=out[1])
    np.copyto(angle, radius, casting="same_kind")
    np.sqrt(angle, out=angle)
    np.multiply(out, angle, out=out)


def _pieces(
    flats: Sequence[NDArray[Any]], starts: Sequence[int], first: int, z: NDArray[np.float32]
) -> Iterator[tuple[NDArray[Any], NDArray[np.float32]]]:
    """Where the tensors meet places first, first + 1, …: slices of them beside the slices of ``z`` they get."""
    i = max(bisect_right(starts, first) - 1, 0)
    while i < len(flats) and starts[i] < first + len(z):
        low, high = max(starts[i], first), min(starts[i] + len(flats[i]), first + len(z))
        if low < high:
            yield flats[i][low - starts[i] : high - starts[i]], z[low - first : high - first]
        i += 1


def _places(sizes: Sequence[int], starts: Sequence[int] | None) -> list[int]:
    if starts is None:
        return list(accumulate(sizes, initial=0))[:-1]
    ends = [0, *(start + size for start, size in zip(starts, sizes, strict=True))]
    for i, start in enumerate(starts):
        if start < ends[i]:
            raise UsageError(f"tensor {i} starts at {start}, inside the one before (ends at {ends[i]}): shared noise")
    return list(starts)


def _workable(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself, detached, when noise can be added in place; else a contiguous copy on the CPU."""
    if not tensor.is_floating_point():
        raise UsageError(f"noise is added to floating-point tensors, found {tensor.dtype}")
    dtype = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    return tensor.detach().to("cpu", dtype).contiguous()
