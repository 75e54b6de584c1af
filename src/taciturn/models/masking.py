"""Masked language modelling: which tokens are hidden from the model, and what it sees instead.

Not to be confused with `<MASK>`, which stands for a secret: that one is never chosen, never predicted, and stays what it
is; what hides a token here is the model's own mask token.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import UsageError


@dataclass(frozen=True, slots=True)
class Masking:
    """token: the model's mask token. special: ids that are never chosen. vocab: how many ids there are. share: of the other
    tokens, how many are chosen. seed, step: draws are a function of these two and of what the record says, not of its place:
    that depends on other records (a copy that dedup blanks moves), and with it a record's loss would. The bound on a clipped
    sum holds for any such function, known or not, so nothing here needs to be secret; and a resumed run repeats them.
    """

    token: int
    special: tuple[int, ...]
    vocab: int
    share: float = 0.15
    seed: int = 0
    step: int = 0

    @classmethod
    def of(cls, tokenizer: Any, special: tuple[int, ...], seed: int) -> Masking:
        """For a tokenizer that has a mask token; UsageError for one that has none."""
        if tokenizer.mask_token_id is None:
            raise UsageError(
                f"{type(tokenizer).__name__} has no mask token: masked language modelling needs the tokenizer of a model "
                "like BERT or RoBERTa"
            )
        every = tuple(sorted({*tokenizer.all_special_ids, *special}))
        return cls(int(tokenizer.mask_token_id), every, len(tokenizer), seed=seed)

    def hide(
        self, ids: NDArray[np.int64], eligible: NDArray[np.float32], lengths: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """(what the model sees, 1 where a token is to be predicted) of records padded on the right to T, all [B, T].
        lengths: their tokens, [B]."""
        draws = np.stack([self._draws(line[:n], ids.shape[1]) for line, n in zip(ids, lengths, strict=True)])
        allowed = (eligible > 0) & ~np.isin(ids, self.special)
        return mask_tokens(ids, allowed, draws, self.share, self.token, self.vocab, self.special)

    def _draws(self, record: NDArray[np.int64], width: int) -> NDArray[np.float64]:
        """Three draws a position, [width, 3]; those of a position do not depend on ``width``."""
        digest = blake2b(record.tobytes(), key=f"{self.seed} {self.step}".encode(), digest_size=16).digest()
        return np.random.Generator(np.random.PCG64(int.from_bytes(digest, "little"))).random((width, 3))


def mask_tokens(
    ids: NDArray[np.int64],
    allowed: NDArray[np.bool_],
    draws: NDArray[np.float64],
    share: float,
    token: int,
    vocab: int,
    special: tuple[int, ...] = (),
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Devlin et al. 2019, section 3.1: of the chosen tokens 80 % become ``token``, 10 % any ordinary id, 10 % stay.

    ids, allowed: [B, T]; draws: [B, T, 3], uniform on [0, 1). Returns the ids that are shown and the weights of targets.
    """
    chosen = allowed & (draws[..., 0] < share)
    random = (draws[..., 2] * vocab).astype(np.int64)
    random = np.where(np.isin(random, special), ids, random)
    shown = np.where(draws[..., 1] < 0.8, token, np.where(draws[..., 1] < 0.9, random, ids))
    return np.where(chosen, shown, ids), chosen.astype(np.float32)
