"""How text is drawn from a model, stated once: what probabilities are computed under and what is sampled with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from taciturn.errors import UsageError
from taciturn.models.sequences import bodies, end_id, start_id


@dataclass(frozen=True, slots=True)
class Decoding:
    """temperature; top_k: only the k likeliest tokens, 0 for all; top_p: only the likeliest that hold this probability.

    Applied in this order, as `transformers` does. Raises UsageError for other values.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and self.top_k >= 0 and 0 < self.top_p <= 1):
            raise UsageError(
                "decoding: expected temperature > 0 (greedy is reported anyway), top_k ≥ 0 and 0 < top_p ≤ 1, found "
                f"{self.temperature}, {self.top_k}, {self.top_p}"
            )

    def to_json(self) -> dict[str, float]:
        return asdict(self)

    def warper(self) -> Callable[[Tensor], Tensor]:
        """Logits [N, V] to the logits that are drawn from."""
        from transformers.generation import TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

        steps: list[Any] = [TemperatureLogitsWarper(float(self.temperature))]
        steps += [TopKLogitsWarper(self.top_k)] if self.top_k else []
        steps += [TopPLogitsWarper(self.top_p)] if self.top_p < 1 else []

        def warp(z: Tensor) -> Tensor:
            ids = torch.zeros(len(z), 1, dtype=torch.long, device=z.device)  # no warper here looks at them
            for step in steps:
                z = step(ids, z)
            return z

        return warp


def opening(tokenizer: Any, text: str) -> list[int]:
    """The ids of the beginning of a record: start token and text, no end."""
    return [start_id(tokenizer), *bodies(tokenizer, [text])[0]]


def continuations(
    model: Any, tokenizer: Any, prefix: str, n: int, decoding: Decoding, max_tokens: int, seed: int, batch: int = 64
) -> list[str]:
    """n samples of what comes after ``prefix``, each cut at the end of the text or after ``max_tokens`` tokens."""
    ids = torch.tensor([opening(tokenizer, prefix)], device=model.device)
    end = end_id(tokenizer)
    out: list[str] = []
    training = model.training
    model.eval()
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), torch.inference_mode():
        torch.manual_seed(seed)
        while len(out) < n:
            rows = model.generate(
                ids.expand(min(batch, n - len(out)), -1),
                attention_mask=torch.ones_like(ids).expand(min(batch, n - len(out)), -1),
                do_sample=True,
                temperature=float(decoding.temperature),
                top_k=decoding.top_k,
                top_p=decoding.top_p,
                max_new_tokens=max_tokens,
                eos_token_id=end,
                pad_token_id=end,
            )[:, ids.shape[1] :].tolist()
            out += [tokenizer.decode(row[: row.index(end)] if end in row else row) for row in rows]
    model.train(training)
    return out
