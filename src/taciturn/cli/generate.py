"""taciturn generate: text from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json


def generate(
    run: Annotated[Path, Parameter(help="a run's folder, or any model folder")],
    *,
    prompt: str = "",
    max_tokens: int = 40,
    samples: int = 1,
    temperature: Annotated[float, Parameter(help="0 takes the likeliest token")] = 1.0,
    top_k: int = 50,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Continue a prompt.

    Example: `taciturn generate runs/mail --prompt "Good morning" --samples 3`
    """
    import torch

    from taciturn.cli.show import as_json
    from taciturn.models.hf import load_exported
    from taciturn.models.tokens import encode

    folder = run / "model" if (run / "model").is_dir() else run
    model, tokenizer = load_exported(folder)
    torch.manual_seed(seed)
    start = encode(tokenizer, prompt)
    ids = torch.from_numpy(start[: len(start) - bool(prompt)].astype("int64")).expand(samples, -1)
    if not prompt:
        ids = ids[:, :1]  # an empty prompt is the start token alone
    sampling = (
        {"do_sample": True, "temperature": temperature, "top_k": top_k} if temperature > 0 else {"do_sample": False}
    )
    done = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=max_tokens,
        pad_token_id=tokenizer.eos_token_id,
        **sampling,
    )
    texts = [
        prompt + tokenizer.decode(row[ids.shape[1] :], skip_special_tokens=False).split("<|endoftext|>")[0]
        for row in done
    ]
    if json:
        as_json(texts)
        return
    for text in texts:
        print(text)
