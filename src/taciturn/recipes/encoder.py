"""The encoder of the medium sizes: the user's or a small published one, frozen but for its end."""

from __future__ import annotations

from typing import Any

from taciturn.recipes.recipe import Inputs

ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
LAYERS = 6
OPTIONS = {"num_hidden_layers": LAYERS, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
"""Without dropout, which noised steps never have: then what frozen layers make of a text is computed once."""


def encoder(inputs: Inputs, trained: int) -> dict[str, Any]:
    """The table of settings of the model, cut after LAYERS layers. trained: how many of them are, with the pooler; of 0 the
    head alone."""
    frozen = ["*.embeddings.*", *(f"*.layer.{at}.*" for at in range(LAYERS - trained))]
    if not trained:
        frozen.append("*.pooler.*")
    return {"name": inputs.model or ENCODER, "options": OPTIONS, "frozen": tuple(frozen)}


def said(trained: int) -> str:
    """The same in words."""
    end = "the last, the pooler and the head are trained" if trained else "none is trained: the head alone is"
    return f"the first {LAYERS} layers of all-MiniLM-L6-v2 or of the --model given, of which {end}, without dropout"
