"""Which records a step reads. Public batches follow the data seed; private ones the secret source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from taciturn.training.noise import SecretSource
from taciturn.training.plan import Poisson, Step


def draw(step: Step, data_seed: int, secret: SecretSource) -> NDArray[np.int64]:
    """Row numbers, within the phase's records, of one logical batch. Empty only for Poisson (or an empty part)."""
    phase = step.phase
    if isinstance(phase.sampler, Poisson):
        return secret.coins(step.number, phase.records, phase.sampler.rate)
    size = phase.sampler.batch_size
    per_epoch = -(-phase.records // size)
    epoch, i = divmod(step.in_phase, per_epoch)
    order = np.random.Generator(np.random.PCG64([data_seed, epoch])).permutation(phase.records)
    return order[i * size : (i + 1) * size]
