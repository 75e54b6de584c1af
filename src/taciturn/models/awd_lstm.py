"""The AWD-LSTM (Merity, Keskar, Socher 2018): an LSTM language model regularised by three kinds of dropout.

Sizes, dropouts and initial weights are those of the UeDP experiments (Lai et al. 2022, section VI c): three layers, 1,150
units, embedding 100; 0.1 on embedding rows, 0.3 on recurrent weights, 0.5 on the last output. Not here: the averaged
optimiser and the activation penalties of Merity et al.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import SequenceClassifierOutput

from taciturn.models.lstm import RecurrentLM, State, refuse_left_padding, run_layers


class AWDLSTMConfig(PretrainedConfig):
    """Sizes and dropouts. With ``tie_word_embeddings`` the last layer has ``embedding_size`` units, the others
    ``hidden_size``."""

    model_type = "taciturn_awd_lstm"

    def __init__(
        self,
        vocab_size: int = 8192,
        embedding_size: int = 100,
        hidden_size: int = 1150,
        num_layers: int = 3,
        embedding_dropout: float = 0.1,
        recurrent_dropout: float = 0.3,
        output_dropout: float = 0.5,
        initializer_range: float = 0.1,
        tie_word_embeddings: bool = False,
        **kwargs: Any,
    ) -> None:
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.num_hidden_layers = num_layers
        self.embedding_dropout = embedding_dropout
        self.recurrent_dropout = recurrent_dropout
        self.output_dropout = output_dropout
        self.initializer_range = initializer_range
        super().__init__(tie_word_embeddings=tie_word_embeddings, **kwargs)

    @property
    def sizes(self) -> list[int]:
        """Widths from the embedding to the last layer's output, [num_layers + 1]."""
        last = self.embedding_size if self.tie_word_embeddings else self.hidden_size
        return [self.embedding_size] + [self.hidden_size] * (self.num_layers - 1) + [last]


class WeightDropLSTM(nn.Module):
    """A one-layer, batch-first LSTM with DropConnect on its recurrent weight (Merity et al. 2018, section 3).

    Parameters have the names, shapes and gate order of a one-layer ``nn.LSTM``, and in evaluation the two compute the
    same. In training one mask is drawn for a whole pass: every record and every step sees the same recurrent weight.
    """

    def __init__(self, input_size: int, hidden_size: int, dropout: float) -> None:
        super().__init__()
        self.input_size, self.hidden_size, self.dropout = input_size, hidden_size, dropout
        self.weight_ih_l0 = nn.Parameter(torch.empty(4 * hidden_size, input_size))
        self.weight_hh_l0 = nn.Parameter(torch.empty(4 * hidden_size, hidden_size))
        self.bias_ih_l0 = nn.Parameter(torch.empty(4 * hidden_size))
        self.bias_hh_l0 = nn.Parameter(torch.empty(4 * hidden_size))
        bound = hidden_size**-0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound)

    def recurrent_mask(self) -> Tensor | None:
        """A fresh mask for ``weight_hh_l0`` (its shape; entries 0 or 1/(1−p)), None where nothing is dropped."""
        if not self.training or self.dropout == 0:
            return None
        return nn.functional.dropout(torch.ones_like(self.weight_hh_l0), self.dropout)

    def forward(self, x: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """x: [B, T, input]; state: two of [1, B, hidden]. Returns [B, T, hidden] and the state after the last step."""
        if state is None:
            zeros = x.new_zeros(1, x.shape[0], self.hidden_size)
            state = (zeros, zeros)
        mask = self.recurrent_mask()
        recurrent = self.weight_hh_l0 if mask is None else self.weight_hh_l0 * mask
        weights = [self.weight_ih_l0, recurrent, self.bias_ih_l0, self.bias_hh_l0]
        y, h, c = torch.lstm(x, state, weights, True, 1, 0.0, self.training, False, True)
        return y, (h, c)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, dropout={self.dropout}"


class Encoder(nn.Module):
    """Embedding with whole rows dropped → LSTM layers with DropConnect → dropout that is fixed over time."""

    def __init__(self, config: AWDLSTMConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocab_size, config.embedding_size)
        self.layers = nn.ModuleList(WeightDropLSTM(a, b, config.recurrent_dropout) for a, b in pairwise(config.sizes))
        self.embedding_dropout, self.output_dropout = config.embedding_dropout, config.output_dropout

    def forward(self, input_ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        """input_ids: [B, T]; the last layer's output [B, T, sizes[-1]] and the state after the last token."""
        x = self.embedding(input_ids)
        if self.training and self.embedding_dropout:  # a word is dropped wherever it stands (section 4.3)
            kept_V = nn.functional.dropout(x.new_ones(self.embedding.num_embeddings), self.embedding_dropout)
            x = x * kept_V[input_ids][..., None]
        y, state = run_layers(self.layers, x, state, lambda out: out)
        if self.training and self.output_dropout:  # variational: the same units at every step of a record (section 4.2)
            y = y * nn.functional.dropout(y.new_ones(y.shape[0], 1, y.shape[2]), self.output_dropout)
        return y, state


def initialise(module: nn.Module, embedding_range: float, hidden_size: int) -> None:
    """Embeddings in ±``embedding_range``, other weights in ±1/√H with H of all hidden layers (Lai et al. 2022, VI c)."""
    if isinstance(module, nn.Embedding):
        nn.init.uniform_(module.weight, -embedding_range, embedding_range)
    elif isinstance(module, nn.Linear | WeightDropLSTM):
        for name, parameter in module.named_parameters(recurse=False):
            if name == "bias":
                nn.init.zeros_(parameter)
            else:
                nn.init.uniform_(parameter, -(hidden_size**-0.5), hidden_size**-0.5)


class _Encoded(PreTrainedModel):
    """What both models share: an :class:`Encoder`, its embedding and initial weights."""

    config_class = AWDLSTMConfig
    base_model_prefix = "encoder"
    encoder: Encoder

    def _init_weights(self, module: nn.Module) -> None:
        initialise(module, self.config.initializer_range, self.config.hidden_size)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.encoder.embedding

    def set_input_embeddings(self, value: nn.Embedding) -> None:
        self.encoder.embedding = value


class AWDLSTMForCausalLM(_Encoded, RecurrentLM):
    """:class:`Encoder` → decoder over the vocabulary, tied to the embedding where the configuration says so."""

    _tied_weights_keys = {"decoder.weight": "encoder.embedding.weight"}  # noqa: RUF012 — what transformers reads

    def __init__(self, config: AWDLSTMConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.decoder = nn.Linear(config.sizes[-1], config.vocab_size)
        self.post_init()

    def hidden(self, input_ids: Tensor, state: State | None = None) -> tuple[Tensor, State]:
        y, state = self.encoder(input_ids, state)
        return y, state


class AWDLSTMForSequenceClassification(_Encoded):
    """:class:`Encoder` → a linear layer on the output at a record's last token."""

    def __init__(self, config: AWDLSTMConfig) -> None:
        super().__init__(config)
        self.encoder = Encoder(config)
        self.classifier = nn.Linear(config.sizes[-1], config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        **kwargs: Any,  # noqa: ARG002 — what other models take
    ) -> SequenceClassifierOutput:
        """input_ids: [B, T]; attention_mask: [B, T], zeros on the right only; labels: [B]. Logits are [B, num_labels]."""
        refuse_left_padding(attention_mask)
        y, _ = self.encoder(input_ids)
        rows = torch.arange(len(y), device=y.device)
        last = y.shape[1] - 1 if attention_mask is None else attention_mask.sum(1) - 1
        logits = self.classifier(y[rows, last])
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)
