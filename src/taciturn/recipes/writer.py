"""The language model of the medium sizes: the user's GPT-2 type model, frozen but for its last layer."""

from __future__ import annotations

from typing import Any

from taciturn.errors import UsageError
from taciturn.recipes.recipe import Inputs

OPTIONS = {"embd_pdrop": 0.0, "resid_pdrop": 0.0, "attn_pdrop": 0.0}
"""Without dropout, as the encoder and for its reason."""
SAID = "the GPT-2 type model given with --writer, of which the last layer is trained, without dropout"


def writer(inputs: Inputs) -> dict[str, Any]:
    """The table of settings of the model. Raises UsageError for one of another type, whose layers have other names."""
    from transformers import AutoConfig

    name = str(inputs.writer)
    config = AutoConfig.from_pretrained(name)
    if config.model_type != "gpt2":
        raise UsageError(f"--writer: {name} is of type {config.model_type}; the medium size takes a GPT-2 type model")
    frozen = ["*.wte.*", "*.wpe.*", *(f"*.h.{at}.*" for at in range(config.num_hidden_layers - 1))]
    return {"name": name, "options": OPTIONS, "frozen": tuple(frozen)}
