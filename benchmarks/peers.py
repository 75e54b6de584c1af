"""Our step in the form that the peer benchmark pairs with a plain step of the same model.

    python bench_peers.py --model distilgpt2 --impl ours:benchmarks.peers:make
    python -m benchmarks.peers bench_peers.py          # the clipped gradient of one example, which must be at most C

A step is forward, loss, backward, clip, noise, optimiser and zero_grad, with taciturn's own rules and noise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from taciturn.models.loss import CrossEntropy
from taciturn.persample.capture import captured, trainable_names
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums
from taciturn.training.randomness.gaussian import SecretSource

CLIP, LR = 1.0, 1e-4


def record_losses(model: Any, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Mean loss per target of each record, as training takes it: causal, or classification when the batch has labels."""
    out = model(**{key: value for key, value in batch.items() if key != "y"})
    logits = getattr(out, "logits", out)
    if "y" in batch:
        return torch.nn.functional.cross_entropy(logits, batch["y"], reduction="none")
    ids = batch["input_ids"]
    weights = torch.full(ids.shape, 1 / (ids.shape[1] - 1), device=ids.device)
    weights[:, -1] = 0
    found: torch.Tensor = CrossEntropy.apply(logits, torch.roll(ids, -1, 1), weights)
    return found


class Step:
    """step(batch) -> loss; ``step.grads()`` gives the released gradients of the last step."""

    def __init__(self, model: Any, args: Any) -> None:
        self._model, self._args, self._names = model, args, trainable_names(model)
        self._optimiser = (torch.optim.SGD if args.optim == "sgd" else torch.optim.AdamW)(list(self._names), lr=LR)
        self._secret, self._at = SecretSource(), 0
        self._grads: list[torch.Tensor] = []

    def __call__(self, batch: dict[str, torch.Tensor]) -> float:
        rows = len(batch["input_ids"])
        sums = Sums()
        with captured(self._model, rows) as tape:
            losses = record_losses(self._model, batch)
            clipped_sum(self._model, tape, losses, CLIP, sums)
        released = [sums[name] for name in sums]
        self._secret.add_gaussian(self._at, released, self._args.sigma * CLIP / rows, 1 / rows)
        self._at += 1
        for p, name in self._names.items():
            p.grad = sums[name]
        self._optimiser.step()
        if self._args.check:
            self._grads = [g.clone() for g in released]
        self._optimiser.zero_grad(set_to_none=True)
        return float(losses.detach().mean())

    def grads(self) -> list[torch.Tensor]:
        return self._grads


def make(model: Any, _: Callable[..., Any], args: Any) -> Step:
    return Step(model, args)


def main(benchmark: str) -> None:
    """Print the norm of one example's clipped gradient, without noise, for each model of the peer benchmark."""
    sys.path.insert(0, str(Path(benchmark).resolve().parent))
    peers = import_module(Path(benchmark).stem)
    for name, (_, length) in peers.MODELS.items():
        model, vocabulary = peers.build(name, "ours")
        torch.manual_seed(3)
        for parameter in model.parameters() if name == "lora" else ():
            if parameter.requires_grad:  # at their start half of the adapter has no gradient
                torch.nn.init.normal_(parameter, std=0.05)
        step = make(model.train(), record_losses, SimpleNamespace(optim="sgd", sigma=0.0, check=True))
        step(peers.make_batch(name, vocabulary, 1, length, "cpu"))
        norm = float(sum(g.double().square().sum() for g in step.grads())) ** 0.5
        print(f"{name:20s} {norm:.9f} {'' if norm <= CLIP else 'above C'}")


if __name__ == "__main__":
    main(sys.argv[1])
