"""taciturn generate: text from a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json


def generate(
    model: Annotated[
        str, Parameter(help="a run's folder, or what check takes with weights: a folder, .gguf file or hub name")
    ],
    *,
    prompt: Annotated[str, Parameter(help="what to go on from")] = "",
    max_tokens: Annotated[int, Parameter(help="tokens of a continuation, at most")] = 40,
    samples: Annotated[int, Parameter(help="continuations")] = 1,
    temperature: Annotated[float, Parameter(help="0 takes the likeliest token")] = 1.0,
    top_k: Annotated[int, Parameter(help="drawn from so many likeliest tokens; 0 for all")] = 50,
    seed: Annotated[int, Parameter(help="of what is drawn")] = 0,
    json: Json = False,
) -> None:
    """Continue a prompt.

    Example: `taciturn generate runs/mail --prompt "Good morning" --samples 3`
    """
    from taciturn.cli.show import as_json, step

    with step("loading the model"):
        from taciturn.models import generation
        from taciturn.models.hf import load_exported, load_named

        run = Path(model)
        folder = run / "model" if (run / "model").is_dir() else run
        loaded, tokenizer = load_exported(folder) if (folder / "config.json").is_file() else load_named(model)
    texts = generation.generate(
        loaded,
        tokenizer,
        prompt,
        samples=samples,
        max_tokens=max_tokens,
        temperature=temperature,
        top_k=top_k,
        seed=seed,
    )
    if json:
        as_json(texts)
        return
    for text in texts:
        print(text)
