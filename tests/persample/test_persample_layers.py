"""Each rule by itself against autograd: short and long inputs, kept and Gram norms, shared weights, several units."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from transformers.integrations.moe import batched_mm_experts_forward
from transformers.pytorch_utils import Conv1D

from record_loop import Block, compare, on
from taciturn.errors import UsageError
from taciturn.models.awd_lstm import WeightDropLSTM
from taciturn.persample import linear
from taciturn.persample.capture import captured, generic_modules
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums


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
    found, _ = linear.gram_product(None, g.float(), ids)
    torch.testing.assert_close(found.double(), want, rtol=1e-4, atol=1e-3)
    found, _ = linear.gram_product(x.float(), g.float(), ids)
    want = (same * (x @ x.transpose(1, 2)) * (g @ g.transpose(1, 2))).sum((1, 2))
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


def test_an_lstm_that_runs_twice_or_shares_a_weight_is_refused() -> None:
    model, x = nn.LSTM(3, 3, batch_first=True), torch.randn(2, 4, 3)
    with captured(model, 2) as tape, pytest.raises(UsageError, match="weight_ih_l0 was used twice"):
        clipped_sum(model, tape, model(model(x)[0])[0].sum((1, 2)), 1.0, Sums())
    head = nn.Linear(3, 12, bias=False)
    head.weight = model.weight_hh_l0
    both = nn.ModuleList([model, head])
    with captured(both, 2) as tape, pytest.raises(UsageError, match="weight_hh_l0 was used twice"):
        clipped_sum(both, tape, head(model(x)[0]).sum((1, 2)), 1.0, Sums())


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_recurrent_modules_of_several_layers_and_directions(
    kind: Any, layers: int, both_ways: bool, bias: bool
) -> None:
    torch.manual_seed(0)
    layer = kind(4, 3, layers, batch_first=True, bidirectional=both_ways, bias=bias)
    compare(Block(layer, 6 if both_ways else 3), on(torch.randn(4, 6, 4)), 4, units=2)


class Chained(nn.Module):
    """Runs a recurrent module on what it left: states come in, and their gradients flow through the end of the run."""

    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.first = kind(4, 3, 2, batch_first=True, bidirectional=True)
        self.second = kind(4, 3, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, state = self.first(x)
        y, state = self.second(x.flip(1), state)
        ends = state if isinstance(state, tuple) else (state,)
        return y.tanh().sum((1, 2)) + sum(end.square().sum((0, 2)) for end in ends)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_states_that_are_passed_on_carry_gradients(kind: Any) -> None:
    torch.manual_seed(0)
    compare(Chained(kind), on(torch.randn(3, 5, 4)), 3)


def test_a_gru_computes_what_torch_does_and_may_run_twice_and_be_frozen_in_part() -> None:
    torch.manual_seed(0)
    gru, x = nn.GRU(3, 3, batch_first=True), torch.randn(3, 5, 3)
    want, want_end = gru(x)
    with captured(gru, 3):
        found, end = gru(x)
    torch.testing.assert_close(found, want)
    torch.testing.assert_close(end, want_end)
    compare(gru, lambda model, rows: model(model(x[rows])[0])[0].tanh().sum((1, 2)), 3)
    for name in ("weight_hh_l0", "bias_ih_l0"):
        getattr(gru, name).requires_grad_(False)
    compare(gru, lambda model, rows: model(x[rows])[0].tanh().sum((1, 2)), 3)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_what_a_recurrent_rule_cannot_tell_apart_is_refused(kind: Any) -> None:
    x = torch.randn(3, 5, 4)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([5, 4, 2]), batch_first=True)
    layer = kind(4, 3, 2, batch_first=True, dropout=0.1)
    with captured(layer, 3):
        with pytest.raises(UsageError, match="dropout between its layers"):
            layer(x)
        layer.eval()
        with pytest.raises(UsageError, match="one padded tensor"):
            layer(packed)
    late = kind(4, 3)  # records in the second dimension
    with (
        captured(late, 5) as tape,
        pytest.raises(UsageError, match=r"no per-record gradient rule|cannot be told apart"),
    ):
        clipped_sum(late, tape, late(x)[0].sum((0, 2)), 1.0, Sums())


class ShiftedRMSNorm(nn.Module):
    """As Gemma's: scales by 1 + w."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(width)), 1e-6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * (1 + self.weight)


class CentredNorm(nn.Module):
    """As Cohere's: a LayerNorm by hand, without bias."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(width)), 1e-5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x - x.mean(-1, keepdim=True)
        return self.weight * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.variance_epsilon)


class LayerNorm1P(nn.LayerNorm):
    """Nemotron's: scales by 1 + w."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.layer_norm(x, self.normalized_shape, self.weight + 1, self.bias, self.eps)


class SquaredRMSNorm(nn.Module):
    """Scales by w², which is w while w is one: no rule, so the generic one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.ones(width)), 1e-6

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight**2 * x * (x.square().mean(-1, keepdim=True) + self.variance_epsilon).rsqrt()


class BareLinear(nn.Linear):
    """As Falcon's: the product by hand, and what comes out is added to in place."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x @ self.weight.T
        return y if self.bias is None else y + self.bias


class DoubledLinear(nn.Linear):
    """A product by hand that is not the layer's: no rule, and its weight is seen to be used behind its back."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * (x @ self.weight.T)


def patched(width: int) -> nn.Module:
    layer = nn.LayerNorm(width)
    layer.forward = lambda x: nn.functional.layer_norm(x, (width,), layer.weight + 1, layer.bias)  # type: ignore[method-assign]
    return layer


NORMS = {
    "torch's": (nn.RMSNorm, True),
    "torch's with eps": (lambda d: nn.RMSNorm(d, eps=0.1), True),
    "1 + w": (ShiftedRMSNorm, True),
    "by hand": (CentredNorm, True),
    "LayerNorm by 1 + w": (LayerNorm1P, True),
    "w²": (SquaredRMSNorm, False),
    "patched": (patched, False),
    "over two dimensions": (lambda d: nn.LayerNorm((5, d)), False),
    "linear by hand": (lambda d: BareLinear(d, d), True),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_rule_stands_for_a_forward_and_not_for_a_name(name: str) -> None:
    torch.manual_seed(0)
    make, exact = NORMS[name]
    model = Block(make(6), 6)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    assert (not generic_modules(model)) == exact
    compare(model, on(torch.randn(4, 5, 6)), 4)
    compare(model, on(torch.randn(4, 5, 6)), 4, units=2)


def test_a_linear_layer_that_computes_something_else_is_refused() -> None:
    model, x = DoubledLinear(3, 2), torch.randn(4, 3)
    with captured(model, 4) as tape, pytest.raises(UsageError, match="weight"):
        clipped_sum(model, tape, model(x).sum(1), 1.0, Sums())


class Attending(nn.Module):
    """Attends to itself, to another text and to two, with masks of every form."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.own = nn.MultiheadAttention(8, 2, batch_first=True, bias=bias)
        self.other = nn.MultiheadAttention(8, 4, batch_first=True, bias=bias)

    def forward(self, x: torch.Tensor, y: torch.Tensor, padded: torch.Tensor) -> torch.Tensor:
        causal = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        a, weights = self.own(x, x, x, attn_mask=causal)
        a = self.own(a, a, a, need_weights=False)[0]
        added = torch.randn(4, x.shape[1], y.shape[1], generator=torch.Generator().manual_seed(1)).repeat(len(x), 1, 1)
        b = self.other(a, y, y.flip(1), key_padding_mask=padded, need_weights=False)[0]
        some = padded.to(x.dtype) * -5
        c, each = self.other(b, y, y, key_padding_mask=some, attn_mask=added, average_attn_weights=False)
        return c.tanh().sum((1, 2)) + weights.square().sum((1, 2)) + each.square().sum((1, 2, 3))


@pytest.mark.parametrize("bias", [False, True])
def test_multihead_attention_with_masks_and_several_uses(bias: bool) -> None:
    torch.manual_seed(0)
    model, x, y = Attending(bias), torch.randn(4, 5, 8), torch.randn(4, 3, 8)
    padded = torch.arange(3)[None] >= torch.tensor([[3], [1], [2], [3]])
    want = model(x, y, padded)
    with captured(model, 4):
        torch.testing.assert_close(model(x, y, padded), want)
    compare(model, lambda m, rows: m(x[rows], y[rows], padded[rows]), 4)


def test_torchs_encoder_layer_is_trained() -> None:
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, batch_first=True), 2).eval()
    x, padded = torch.randn(4, 5, 8), torch.arange(5)[None] >= torch.tensor([[5], [2], [4], [3]])

    def losses(m: nn.Module, rows: slice) -> torch.Tensor:
        return m(x[rows], src_key_padding_mask=padded[rows]).masked_fill(padded[rows, :, None], 0).tanh().sum((1, 2))

    assert not generic_modules(model)
    compare(model, losses, 4)


class Experts(nn.Module):
    """Stacked weights as transformers describes them; the forward is its own."""

    def __init__(self, E: int, d: int, h: int, transposed: bool, biased: bool, gated: bool) -> None:
        super().__init__()
        self.num_experts, self.has_gate, self.has_bias, self.is_transposed = E, gated, biased, transposed
        self.has_post_expert_norm, self._is_expert_parallel, self.act_fn = False, False, torch.tanh
        for key, p, q in (("gate_up_proj" if gated else "up_proj", 2 * h if gated else h, d), ("down_proj", d, h)):
            setattr(self, key, nn.Parameter(torch.randn(E, *((q, p) if transposed else (p, q)))))
            if biased:
                setattr(self, f"{key}_bias", nn.Parameter(torch.randn(E, p)))

    def _apply_gate(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, -1)
        return gate.sigmoid() * up

    forward = batched_mm_experts_forward


class Mixture(nn.Module):
    def __init__(self, times: int, *form: bool) -> None:
        super().__init__()
        self.router, self.experts, self.times = nn.Linear(4, 5), Experts(5, 4, 3, *form), times

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(self.times):
            flat = x.flatten(0, 1)
            weights, ids = self.router(flat).softmax(-1).topk(2)
            x = x + self.experts(flat, ids, weights).view_as(x)
        return x.tanh().sum((1, 2))


@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize("form", list(product([False, True], repeat=3)))
def test_experts_of_a_mixture(form: tuple[bool, ...], times: int) -> None:
    torch.manual_seed(0)
    model, x = Mixture(times, *form), torch.randn(4, 6, 4)
    assert not generic_modules(model)
    compare(model, on(x), 4)
    compare(model, on(x), 4, units=2)
    model.experts.down_proj.requires_grad_(False)
    compare(model, on(x), 4)
