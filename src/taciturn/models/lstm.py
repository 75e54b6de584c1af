"""A recurrent language model that behaves like any other `transformers` causal language model.

The shape CRT uses (Zhao, Li, Wang 2022, A.3): embedding 200, one LSTM layer of 200, a linear decoder.
An exported folder loads with `AutoModelForCausalLM` (taciturn/models/registered.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

State = tuple[Tensor, Tensor]
"""Hidden and cell state, each [layers, B, H], H the widest layer's."""


class LSTMConfig(PretrainedConfig):
    """Sizes of an :class:`LSTMForCausalLM`; ``tie_word_embeddings`` needs ``embedding_size == hidden_size``."""

    model_type = "taciturn_lstm"

    def __init__(
        self,
        vocab_size: int = 8192,
        embedding_size: int = 200,
        hidden_size: int = 200,
        num_layers: int = 1,
        dropout: float = 0.0,
        initializer_range: float = 0.1,
        tie_word_embeddings: bool = False,
        **kwargs: Any,
    ) -> None:
        if tie_word_embeddings and embedding_size != hidden_size:
            raise ValueError(f"a tied LSTM needs embedding_size == hidden_size, got {embedding_size} and {hidden_size}")
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.num_hidden_layers = num_layers
        self.dropout = dropout
        self.initializer_range = initializer_range
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)


@dataclass
class LSTMOutput(ModelOutput):
    """loss: scalar, when labels were given; logits: [B, T, V]; state: what the next call continues from."""

    loss: Tensor | None = None
    logits: Tensor | None = None
    state: State | None = None


class RecurrentLM(PreTrainedModel, GenerationMixin):
    """What recurrent language models share: the decoder's logits, the loss, and generation with a state in the place of
    a cache. A subclass has ``decoder`` and :meth:`hidden`.

    Padding belongs on the right: a recurrent state has read everything to its left.
    """

    decoder: nn.Linear

    def hidden(self, input_ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """Hidden states [B, T, H] before the decoder, and the state after the last token."""
        raise NotImplementedError

    def get_output_embeddings(self) -> nn.Linear:
        return self.decoder

    def set_output_embeddings(self, value: nn.Linear) -> None:
        self.decoder = value

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        state: State | None = None,
        **kwargs: Any,  # noqa: ARG002 — what other models take
    ) -> LSTMOutput:
        """input_ids: [B, T]; attention_mask: [B, T], zeros on the right only; labels: [B, T], −100 ignored."""
        refuse_left_padding(attention_mask)
        y, state = self.hidden(input_ids, state)
        logits = self.decoder(y.contiguous())  # as time-major rows the bias would be added in a second pass
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return LSTMOutput(loss=loss, logits=logits, state=state)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    def prepare_inputs_for_generation(
        self,
        input_ids: Tensor,
        state: State | None = None,
        attention_mask: Tensor | None = None,
        **kwargs: Any,  # noqa: ARG002 — transformers looks for the name
    ) -> dict[str, Any]:
        if state is None:
            return {"input_ids": input_ids, "attention_mask": attention_mask}
        return {"input_ids": input_ids[:, -1:], "state": state}

    def _update_model_kwargs_for_generation(
        self, outputs: LSTMOutput, model_kwargs: dict[str, Any], *args: Any, **kwargs: Any
    ) -> dict[str, Any]:
        model_kwargs = super()._update_model_kwargs_for_generation(outputs, model_kwargs, *args, **kwargs)
        model_kwargs["state"] = outputs.state
        return model_kwargs


class LSTMForCausalLM(RecurrentLM):
    """Embedding → dropout → one LSTM per layer, each with dropout after it → decoder.

    Layers are separate one-layer ``nn.LSTM`` modules, so that per-record gradients have one rule.
    """

    config_class = LSTMConfig
    base_model_prefix = "lstm"
    _input_embed_layer = "embedding"
    _tied_weights_keys = {"decoder.weight": "embedding.weight"}  # noqa: RUF012 — the name and type transformers reads

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size)
        sizes = [config.embedding_size] + [config.hidden_size] * config.num_layers
        self.layers = nn.ModuleList(nn.LSTM(a, b, batch_first=True) for a, b in pairwise(sizes))
        self.decoder = nn.Linear(config.hidden_size, config.vocab_size)
        self.dropout = nn.Dropout(config.dropout)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding | nn.Linear):
            nn.init.uniform_(module.weight, -self.config.initializer_range, self.config.initializer_range)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LSTM):
            bound = module.hidden_size**-0.5
            for name, parameter in module.named_parameters():
                nn.init.uniform_(parameter, -bound, bound)
                if name.startswith("bias_ih"):  # a forget gate that starts open (Jozefowicz et al. 2015)
                    with torch.no_grad():
                        parameter[module.hidden_size : 2 * module.hidden_size].fill_(1.0)

    def hidden(self, input_ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        return run_layers(self.layers, self.dropout(self.embedding(input_ids)), state, self.dropout)


def run_layers(
    layers: Iterable[Any], x: Tensor, state: State | None, after: Callable[[Tensor], Tensor]
) -> tuple[Tensor, State]:
    """x: [B, T, d] through one-layer LSTMs, ``after`` applied to what each puts out; the last output and the state.

    Layers of different widths keep their states in the first entries of [layers, B, widest].
    """
    layers = list(layers)
    widths = [int(layer.hidden_size) for layer in layers]
    h_out, c_out = [], []
    for i, layer in enumerate(layers):
        given = None if state is None else tuple(s[i : i + 1, :, : widths[i]].contiguous() for s in state)
        x, (h, c) = layer(x, given)
        x = after(x)
        room = (0, max(widths) - widths[i])
        h_out.append(nn.functional.pad(h, room))
        c_out.append(nn.functional.pad(c, room))
    return x, (torch.cat(h_out), torch.cat(c_out))


def refuse_left_padding(attention_mask: Tensor | None) -> None:
    """ValueError when a row of ``attention_mask``, [B, T], begins with padding."""
    if attention_mask is not None and not bool(attention_mask[:, 0].all()):
        raise ValueError("a recurrent model needs padding on the right: set tokenizer.padding_side = 'right'")
