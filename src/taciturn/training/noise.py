"""Secret randomness: Gaussian noise and the coins of Poisson sampling.

Both must be unknown to whoever sees the model: the noise for the Gaussian mechanism, the coins for amplification by
sampling. They come from the operating system's entropy through Philox (a counter-based generator with a 256-bit state
keyed afresh in every process); with a seed each step has its own stream, so a resumed run repeats them exactly.
"""

from __future__ import annotations

import os

import numpy as np
import torch
from numpy.typing import NDArray

_NOISE, _COINS = 0, 1


class SecretSource:
    """Noise and sampling coins for numbered steps; ``seed=None`` means operating-system entropy."""

    def __init__(self, seed: int | None = None) -> None:
        self._seed = seed
        self._fresh = [_from_entropy(), _from_entropy()]

    def _stream(self, kind: int, step: int) -> np.random.Generator:
        if self._seed is None:
            return self._fresh[kind]
        return np.random.Generator(np.random.Philox(np.random.SeedSequence([self._seed, kind, step])))

    def coins(self, step: int, records: int, rate: float) -> NDArray[np.int64]:
        """Indices of the records that step ``step`` draws, each with probability ``rate``; possibly none."""
        return np.flatnonzero(self._stream(_COINS, step).random(records) < rate)

    def add_gaussian(self, step: int, tensors: list[torch.Tensor], std: float) -> None:
        """Add independent N(0, std²) to every entry of ``tensors``, in their order, in place."""
        stream = self._stream(_NOISE, step)
        for tensor in tensors:
            draw = stream.standard_normal(tensor.numel(), dtype=np.float32)
            tensor.add_(torch.from_numpy(draw).view(tensor.shape).to(tensor.device), alpha=std)


def _from_entropy() -> np.random.Generator:
    words = np.frombuffer(os.urandom(32), dtype=np.uint32)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([int(w) for w in words])))
