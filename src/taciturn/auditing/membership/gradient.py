"""Membership told from the movement of the weights: the audit of one's own pipeline (gradient_scores.py).

Canaries are put in by fair coins, the run is trained as it always is, and the gradients of the canaries are looked for in
what the weights moved by. Where the steps are few and canaries have tokens of their own, no attack is much stronger: a
pipeline that adds half the noise it writes down is found out with two thousand of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from taciturn.auditing.finding import Finding
from taciturn.auditing.membership.blind import blind_scores
from taciturn.auditing.membership.gradient_scores import gradient_scores
from taciturn.auditing.membership.membership import distinct
from taciturn.auditing.membership.roc import delong
from taciturn.auditing.membership.scores import Model
from taciturn.auditing.membership.statistics import finding_from_scores
from taciturn.errors import UsageError
from taciturn.mechanisms.run import Run
from taciturn.models.hf import load_model
from taciturn.models.loss import collate, record_losses
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.privacy.certificates.certificate import load_json

SHARES = (0.25,)
"""The share of the canaries that is guessed on, named before: near the best for noise from a half to twice the clip norm."""


def gradient_membership(
    model: Any,
    tokenizer: Any,
    members: Sequence[str],
    nonmembers: Sequence[str],
    *,
    base: Model,
    clip: float = 0.0,
    noise: float = 1.0,
    seed: int = 0,
) -> Finding:
    """AUC of the gradient attack, and its guesses of the coins.

    members, nonmembers: the canaries whose coin said in, and out. base: the model as training began. clip, noise: see
    :func:`taciturn.auditing.membership.gradient_scores.gradient_scores`. Raises UsageError when either list is empty, and as
    that does.
    """
    inside, outside = distinct(members, nonmembers)
    scores = gradient_scores(base, (model, tokenizer), [*inside, *outside], clip=clip, noise=noise)
    pair = scores[: len(inside)], scores[len(inside) :]
    return finding_from_scores(
        "gradient",
        {"gradient": pair},
        blind_scores(inside, outside, seed),
        {"": positive(), "gradient": positive()},
        seed,
        "gradient",
        {"clip": clip, "noise": noise},
        SHARES,
    )


def initial_model(folder: str | Path) -> Model:
    """The model that the run in ``folder`` began with, made again from its seed. Only causal language models."""
    run = Run(Path(folder))
    config, (_, tokenizer) = run.config, run.model()
    if config.model.task != "causal" or config.model.lora is not None:
        raise UsageError("gradient attack: expected a causal language model trained whole; give base= for another")
    chosen = config.model.build()
    return load_model(chosen.name, tokenizer, config.seeds.model, chosen.options).eval(), tokenizer


def settings(folder: str | Path) -> dict[str, float]:
    """clip and noise of the attack from a run's plan: σ as it stands to a record that is drawn at rate q in T steps,
    √(σ²/(q²T) + (1 − q)/(qT))."""
    phases = load_json(Path(folder) / "plan.json")["phases"]
    noisy = [p for p in phases if p["event"]["event"] in ("poisson-gaussian", "kinds-gaussian")]
    if not noisy:
        return {}
    rule, event, steps = noisy[0]["rule"], noisy[0]["event"], noisy[0]["steps"]
    q, sigma = event["rate"] if "rate" in event else max(event["rates"]), event["noise_multiplier"]
    found = rule.get("clip", rule.get("noised", {}).get("clip", 0.0))
    return {"clip": float(found), "noise": math.sqrt((sigma / q) ** 2 / steps + (1 - q) / (q * steps))}


@lru_cache(maxsize=1)
def positive() -> float:
    """AUC on one step without noise, on thirty of sixty records."""
    tokenizer = byte_tokenizer()
    rng = np.random.default_rng(3)
    texts = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz0123456789"), 6)) for _ in range(60)]
    tokens = encode_all(tokenizer, texts[:30])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        config = LSTMConfig(vocab_size=len(tokenizer), embedding_size=16, hidden_size=16)
        before, after = LSTMForCausalLM(config).eval(), LSTMForCausalLM(config).eval()
    after.load_state_dict(before.state_dict())
    record_losses(after, collate(tokens, np.arange(30), mask_id(tokenizer))).sum().backward()
    with torch.no_grad():
        for parameter in after.parameters():
            parameter.sub_(1e-3 * parameter.grad if parameter.grad is not None else 0.0)
    scores = gradient_scores((before, tokenizer), (after, tokenizer), texts, noise=0.03, iterations=60)
    return float(delong(scores[None, :30], scores[None, 30:])[0][0])
