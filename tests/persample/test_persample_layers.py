"""Each rule by itself against autograd: short and long inputs, kept and Gram norms, shared weights, several units."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers.pytorch_utils import Conv1D

from taciturn.errors import UsageError
from taciturn.models.awd_lstm import WeightDropLSTM
from taciturn.persample import linear
from taciturn.persample.capture import captured
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums

Forward = Callable[[nn.Module, slice], torch.Tensor]


def compare(model: nn.Module, forward: Forward, rows: int, C: float = 0.7, units: int | None = None) -> None:
    """``forward(model, rows)`` gives the losses of those rows; equality of norms and clipped sums with a loop."""
    size = rows // (units or rows)
    want: dict[str, torch.Tensor] = {}
    norms = []
    for u in range(units or rows):
        model.zero_grad(set_to_none=True)
        forward(model, slice(u * size, (u + 1) * size)).sum().backward()
        grads = {n: p.grad.double() for n, p in model.named_parameters()}
        norm = torch.sqrt(sum(g.square().sum() for g in grads.values()))
        norms.append(norm)
        for n, g in grads.items():
            want[n] = want.get(n, 0) + g * min(1.0, C / float(norm))
    model.zero_grad(set_to_none=True)
    sums = Sums()
    with captured(model, rows, units) as tape:
        losses = forward(model, slice(0, rows)).view(-1, size).sum(1)
        found = clipped_sum(model, tape, losses, C, sums)
    torch.testing.assert_close(found.double(), torch.stack(norms), rtol=2e-5, atol=1e-7)
    for n, g in want.items():
        torch.testing.assert_close(sums[n].double(), g, rtol=1e-4, atol=2e-6 * C * rows)


class Block(nn.Module):
    """One layer and a readout that needs no gradient."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer = layer
        self.register_buffer("readout", torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.layer(x)
        y = y[0] if isinstance(y, tuple) else y
        return torch.tanh(y @ self.readout).reshape(len(y), -1).sum(1)


def on(x: torch.Tensor) -> Forward:
    return lambda model, rows: model(x[rows])


@given(
    B=st.integers(1, 5), T=st.integers(1, 40), d=st.integers(1, 12), p=st.integers(1, 12), bias=st.booleans(),
    conv=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_affine_layers_of_any_shape(B: int, T: int, d: int, p: int, bias: bool, conv: bool, seed: int) -> None:
    torch.manual_seed(seed)
    layer = Conv1D(p, d) if conv else nn.Linear(d, p, bias=bias)
    compare(Block(layer, p), on(torch.randn(B, T, d)), B)


@pytest.mark.parametrize("T", [linear.TILE - 1, linear.TILE, linear.TILE + 1, 2 * linear.TILE + 7])
def test_tiles_of_a_long_input_add_up(T: int) -> None:
    torch.manual_seed(0)
    x, g = torch.randn(3, T, 5).double(), torch.randn(3, T, 4).double()
    want = ((x @ x.transpose(1, 2)) * (g @ g.transpose(1, 2))).sum((1, 2))
    torch.testing.assert_close(linear.gram_product(x.float(), g.float())[0].double(), want, rtol=1e-4, atol=1e-3)
    ids = torch.randint(0, 9, (3, T))
    same = (ids[:, :, None] == ids[:, None, :]).double()
    want = (same * (g @ g.transpose(1, 2))).sum((1, 2))
    found, _ = linear.gram_product(g.float(), g.float(), ids)
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("shape", [(4, 6), (4, 7, 6), (4, 3, 2, 6)])
def test_inputs_with_and_without_positions(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    for layer in (nn.Linear(6, 5), nn.LayerNorm(6)):
        compare(Block(layer, 5 if isinstance(layer, nn.Linear) else 6), on(torch.randn(shape)), 4)


@pytest.mark.parametrize("units", [1, 2, 3, 6])
def test_a_unit_may_be_several_rows(units: int) -> None:
    torch.manual_seed(0)
    compare(Block(nn.Linear(6, 5), 5), on(torch.randn(6, 7, 6)), 6, units=units)
    lstm = nn.LSTM(4, 3, batch_first=True)
    compare(Block(lstm, 3), on(torch.randn(6, 5, 4)), 6, units=units)


class Shared(nn.Module):
    """Uses one weight, bias and table several times, in every combination of kept and Gram norms."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.table = nn.Embedding(11, width)
        self.table2 = nn.Embedding(11, width)
        self.table2.weight = self.table.weight
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)
        self.b.weight, self.b.bias = self.a.weight, self.a.bias
        self.head = nn.Linear(width, 11, bias=False)
        self.head.weight = self.table.weight
        self.conv = Conv1D(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.table(ids) + self.table2(ids.flip(1))
        x = self.norm(self.b(torch.tanh(self.a(x))))
        x = self.norm(self.conv(x) + self.a(x.mean(1, keepdim=True)))
        return self.head(x).tanh().cumsum(-1).sum((1, 2))


@pytest.mark.parametrize("T", [1, 2, 9])
def test_shared_weights_have_every_cross_term(T: int) -> None:
    torch.manual_seed(1)
    compare(Shared(), on(torch.randint(0, 11, (3, T))), 3)


def test_a_padding_row_is_never_trained() -> None:
    torch.manual_seed(0)
    table = nn.Embedding(7, 4, padding_idx=1)
    compare(Block(table, 4), on(torch.tensor([[1, 2, 2], [3, 1, 1]])), 2)


@pytest.mark.parametrize(
    "frozen", [(), ("weight_hh_l0",), ("weight_ih_l0", "bias_ih_l0"), ("bias_ih_l0", "bias_hh_l0")]
)
def test_lstm_with_parts_frozen(frozen: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    lstm = nn.LSTM(4, 3, batch_first=True)
    for name in frozen:
        getattr(lstm, name).requires_grad_(False)
    model, x = Block(lstm, 3), torch.randn(3, 6, 4)
    losses, sums = [], Sums()
    for b in range(3):
        model.zero_grad(set_to_none=True)
        model(x[b : b + 1]).sum().backward()
        losses.append(sum(p.grad.square().sum() for p in model.parameters() if p.grad is not None).sqrt())
    model.zero_grad(set_to_none=True)
    with captured(model, 3) as tape:
        norms = clipped_sum(model, tape, model(x), 1.0, sums)
    torch.testing.assert_close(norms, torch.stack(losses), rtol=1e-5, atol=1e-7)
    assert set(sums) == {n for n, p in model.named_parameters() if p.requires_grad}


def test_dropconnect_in_a_clipped_pass_is_refused() -> None:
    """Its one mask would be shared by the records of a pass; in evaluation there is none, and the layer is an LSTM."""
    torch.manual_seed(0)
    layer = WeightDropLSTM(4, 5, 0.4)
    model, x = Block(layer, 5), torch.randn(3, 6, 4)
    compare(model.eval(), on(x), 3)
    with captured(model.train(), 3), pytest.raises(UsageError, match="DropConnect"):
        model(x)


def test_an_lstm_that_runs_twice_is_refused() -> None:
    model, x = nn.LSTM(3, 3, batch_first=True), torch.randn(2, 4, 3)
    with captured(model, 2) as tape, pytest.raises(UsageError, match="weight_ih_l0 was used twice"):
        clipped_sum(model, tape, model(model(x)[0])[0].sum((1, 2)), 1.0, Sums())
