"""The positive control: a toy model over-fitted on purpose, on which every attack has to succeed.

An attack that fails here is broken, and its "no leak found" on another model means nothing. Trained once per process,
in about two seconds, on text made up on the spot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from taciturn.auditing.canaries.templates import Template, draw
from taciturn.models.loss import collate, record_losses
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all

TEMPLATE = Template("key {}", length=6)
MEMBERS = Template("code {}", length=6)


@dataclass(frozen=True, slots=True)
class Toy:
    """An over-fitted model, the canary it saw 20 times, 50 records it saw and 50 of the same kind it did not."""

    model: Any
    tokenizer: Any
    secret: str
    members: tuple[str, ...]
    nonmembers: tuple[str, ...]


@lru_cache(maxsize=1)
def overfitted(steps: int = 320, seed: int = 7) -> Toy:
    """Train the toy: noiseless, many passes over 20 canary copies and 50 members, global random state untouched."""
    tokenizer = byte_tokenizer()
    secret = draw(TEMPLATE, 1, seed)[0]
    records = [MEMBERS.fill(secret) for secret in draw(MEMBERS, 100, seed)]
    members, nonmembers = records[:50], records[50:]
    tokens = encode_all(tokenizer, [TEMPLATE.fill(secret)] * 20 + members)
    rng = np.random.default_rng(seed)
    mask = mask_id(tokenizer)
    with torch.random.fork_rng(devices=[]), _one_thread():
        torch.manual_seed(seed)
        model = LSTMForCausalLM(LSTMConfig(vocab_size=len(tokenizer), embedding_size=32, hidden_size=128))
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(steps):
            batch = collate(tokens, rng.permutation(len(tokens))[:48], mask)
            optimiser.zero_grad()
            (record_losses(model, batch).sum() / len(batch)).backward()
            optimiser.step()
    return Toy(model.eval(), tokenizer, secret, tuple(members), tuple(nonmembers))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Matrices this small only wait for each other on several threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
