"""Text that a trained model writes."""

from __future__ import annotations

from typing import Any

import torch

from taciturn.models.tokens import encode


def generate(
    model: Any,
    tokenizer: Any,
    prompt: str = "",
    *,
    samples: int = 1,
    max_tokens: int = 40,
    temperature: float = 1.0,
    top_k: int = 50,
    seed: int = 0,
) -> list[str]:
    """``samples`` continuations of a prompt, the prompt in front, each up to the end of the text. temperature: 0 takes the
    likeliest token each time."""
    start = encode(tokenizer, prompt)
    ids = torch.from_numpy(start[: len(start) - bool(prompt)].astype("int64")).expand(samples, -1)
    if not prompt:
        ids = ids[:, :1]  # an empty prompt is the start token alone
    drawn = {"do_sample": True, "temperature": temperature, "top_k": top_k} if temperature > 0 else {"do_sample": False}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        done = model.generate(
            ids.to(model.device),
            attention_mask=torch.ones_like(ids).to(model.device),
            max_new_tokens=max_tokens,
            pad_token_id=tokenizer.eos_token_id,
            **drawn,
        )
    texts = (tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=False) for row in done)
    return [prompt + text.split("<|endoftext|>")[0] for text in texts]
