"""Tiny models for quick runs: a GPT-2 and a BERT shape of 64 units, trained on made-up public text."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.recipes import simulated_news
from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.simulated_news import TOPICS
from taciturn.recipes.trained import PLAINLY

if TYPE_CHECKING:
    from taciturn.text.document import Document

OTHERS = 1000
"""What is added to the seed for public text, so that nobody in it is in private text."""
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 2, "n_positions": 128,
        "resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}  # fmt: skip
BERT = {"model_type": "bert", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
        "intermediate_size": 128, "max_position_embeddings": 128}  # fmt: skip


def public_text(inputs: Inputs) -> list[Document]:
    """What anybody may read: half of the kinds of press sentences about other people and firms, and an agent's own lines."""
    from taciturn.data.customersim import SYSTEM, simulate
    from taciturn.text.document import Document

    lines = [
        Document(f"{d.id}-{turn.start}", d.text[turn.start : turn.end - 1])
        for d in simulate(inputs.pick(10, 100, 100), inputs.seed + OTHERS, "valid")
        for turn in d.turns
        if turn.speaker == SYSTEM
    ]
    return [*lines, *simulated_news.write(inputs.pick(3, 20, 20), 25, inputs.seed + OTHERS, "public", kinds=3)]


def public_model(inputs: Inputs, work: Work) -> dict[str, Any]:
    """The table of settings of the model to begin with: the user's, or a tiny GPT-2 shape trained on public text."""
    if inputs.model is not None:
        return {"name": inputs.model}
    folder = work.path("start", f"gpt2-{inputs.size}-{inputs.seed}")
    if not (folder / "config.json").exists():
        steps = inputs.pick(4, 60, 60)
        _train(folder, public_text(inputs), steps, inputs.seed, {"tokenizer": "bpe:1024"}, GPT2)
    return {"name": str(folder)}


def encoder(inputs: Inputs, work: Work) -> dict[str, Any]:
    """The same for classifying: the user's, or a tiny BERT shape with the GPT-2 shape's tokenizer, trained to tell the
    topics of public news. Its head is left out, as it is of published encoders: each run draws its own."""
    if inputs.model is not None:
        return {"name": inputs.model}
    tokenizer = public_model(inputs, work)["name"]
    folder = work.path("start", f"bert-{inputs.size}-{inputs.seed}")
    if not (folder / "config.json").exists():
        news = simulated_news.write(inputs.pick(3, 40, 40), 25, inputs.seed + OTHERS, "public", kinds=3)
        steps = inputs.pick(4, 150, 150)
        _train(folder, news, steps, inputs.seed, {"tokenizer": tokenizer, "task": "classify", "labels": TOPICS}, BERT)
    return {"name": str(folder), "tokenizer": tokenizer}


def _train(
    folder: Path, public: Sequence[Document], steps: int, seed: int, model: Mapping[str, Any], config: Mapping[str, Any]
) -> None:
    """Train into a folder of this process's own, and put the model in its place when it is complete."""
    import taciturn as tt
    from taciturn.mechanisms.run import Run
    from taciturn.screening import pipeline
    from taciturn.text.readers import Corpus

    shape, out = (folder.with_name(f"{folder.name}.{os.getpid()}.{end}") for end in ("json", "run"))
    shape.write_text(json.dumps(config))
    shutil.rmtree(out, ignore_errors=True)
    nothing = tt.policy("ssn")
    screened = pipeline.screen(Corpus.from_documents(list(public)), nothing, nothing, unit="document", dedup="none")
    batch = 32
    epochs = max(1, round(steps * batch / len(screened.texts("public"))))
    optimiser = {"lr": 3e-3, "schedule": "linear", "warmup": 0.1, "max_grad_norm": 1.0}
    options: dict[str, Any] = {"epochs": epochs, "batch_size": batch, "optimiser": optimiser}
    named: Any = {"name": str(shape), "max_length": 64, **model}
    planned = tt.plan("sgd", screened, named, delta=1e-5, seeds={"model": seed}, train=PLAINLY, **options)
    tt.train(planned, out)
    if not folder.exists():
        made = Run(out).model_folder
        if model.get("task") == "classify":
            _without_head(made)
        made.rename(folder)
    shutil.rmtree(out)
    shape.unlink()


def _without_head(folder: Path) -> None:
    """Keep the encoder alone."""
    from transformers import AutoModel

    AutoModel.from_pretrained(folder).save_pretrained(folder)
