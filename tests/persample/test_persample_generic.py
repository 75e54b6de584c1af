"""The generic rule: modules of every form against the loop over records; what mixes records, draws or cannot be run alone
is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.utils.checkpoint import checkpoint

from record_loop import Block, compare, on
from taciturn.errors import UsageError
from taciturn.persample.capture import captured, generic_modules
from taciturn.persample.clip import clipped_sum
from taciturn.persample.isolated import isolated
from taciturn.persample.premise import verify
from taciturn.persample.sums import Sums


class Across(nn.Module):
    """A layer for [B, T, d] that works along T, as convolutions do."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.transpose(1, 2)).transpose(1, 2)


class Gain(nn.Module):
    """A vector, a number and a table that is looked up by hand."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain, self.shift = nn.Parameter(torch.randn(width)), nn.Parameter(torch.tensor(0.3))
        self.table = nn.ParameterList([nn.Parameter(torch.randn(7, width))])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        ids = x.detach()[..., 0].abs().mul(3).long() % 7
        return x * self.gain + self.shift + self.table[0][ids]


class Tree(nn.Module):
    """Children with rules of their own, of which one is used twice and one shares its weight; options that are not tensors;
    a mask of one row; several outputs, some of them no tensors."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Parameter(torch.randn(width))
        self.a, self.b, self.norm = nn.Linear(width, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.b.weight = self.a.weight

    def forward(self, x: torch.Tensor, mask: torch.Tensor, *, options: dict[str, Any]) -> dict[str, Any]:
        y = self.b(torch.tanh(self.a(x * self.gate))) * mask
        y = self.norm(self.a(y)) * options["scale"]
        return {"hidden": (y, y.argmax(-1)), "name": "tree", "none": None, "pooled": y.mean(1)}


class WithTree(nn.Module):
    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.first, self.tree, self.last = nn.Linear(width, width), Tree(width), nn.Linear(width, width)
        self.last.weight = self.tree.a.weight  # shared with what stands outside

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mask = torch.linspace(0.5, 1, x.shape[1])[None, :, None]
        out = self.tree(self.first(x), mask, options={"scale": 2.0})
        out = self.tree(out["hidden"][0], mask=mask, options={"scale": 0.5})
        return (self.last(out["hidden"][0]).sum(1) + out["pooled"]).tanh().sum(1)


LAYERS = {
    "convolution": lambda: Across(nn.Conv1d(6, 6, 3, padding=1)),
    "depthwise convolution": lambda: Across(nn.Conv1d(6, 6, 3, padding=2, dilation=2, groups=6)),
    "group norm": lambda: Across(nn.GroupNorm(3, 6)),
    "parametric relu": lambda: Across(nn.PReLU(6)),
    "layer norm over two": lambda: nn.LayerNorm((5, 6)),
    "by hand": lambda: Gain(6),
    "in a row": lambda: nn.Sequential(nn.Linear(6, 6), Across(nn.Conv1d(6, 6, 3, padding=1)), Gain(6), nn.Linear(6, 6)),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("units", [1, 2, 4])
def test_layers_without_a_rule(name: str, units: int) -> None:
    torch.manual_seed(0)
    model = Block(LAYERS[name](), 6)
    assert generic_modules(model)
    compare(model, on(torch.randn(4, 5, 6)), 4, units=units)


@given(
    B=st.integers(1, 4),
    T=st.integers(1, 6),
    k=st.integers(1, 3),
    groups=st.sampled_from([1, 2]),
    seed=st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_convolutions_of_any_shape(B: int, T: int, k: int, groups: int, seed: int) -> None:
    """B, T and the width may be the same number."""
    torch.manual_seed(seed)
    layer = Across(nn.Conv1d(4, 2 * groups, k, padding=k // 2, groups=groups))
    compare(Block(layer, 2 * groups), on(torch.randn(B, T + 1, 4)), B)


@pytest.mark.parametrize("units", [1, 3])
def test_a_module_with_children_options_masks_and_shared_weights(units: int) -> None:
    torch.manual_seed(0)
    model = WithTree()
    assert set(generic_modules(model)) == {"tree"}
    compare(model, on(torch.randn(3, 5, 6)), 3, units=units)
    model.tree.norm.requires_grad_(False)
    model.tree.gate.requires_grad_(False)
    model.first.requires_grad_(False)  # the input of the rest needs no gradient now
    compare(model, on(torch.randn(3, 5, 6)), 3, units=units)


def test_the_generic_rule_is_for_the_innermost_module_that_is_called() -> None:
    model = nn.ModuleDict({"a": nn.Sequential(nn.Linear(6, 6), Gain(6)), "b": WithTree()})
    assert set(generic_modules(model)) == {"a.1", "b.tree"}
    model.a[1].requires_grad_(False)
    assert set(generic_modules(model)) == {"b.tree"}


class Whole(nn.Module):
    """A model that owns a parameter itself."""

    def __init__(self) -> None:
        super().__init__()
        self.start, self.out = nn.Parameter(torch.randn(1, 6)), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(torch.tanh(x + self.start)).square().sum((1, 2))


def test_a_model_that_owns_parameters_itself() -> None:
    torch.manual_seed(0)
    compare(Whole(), on(torch.randn(4, 5, 6)), 4)


def test_recomputed_activations_and_half_precision_keep_the_bound() -> None:
    torch.manual_seed(0)
    model, x, C = WithTree(), torch.randn(3, 5, 6), 0.05
    compare(model, lambda m, rows: checkpoint(m, x[rows], use_reentrant=False), 3)
    exact = Sums()
    with captured(model, 3) as tape:
        want = clipped_sum(model, tape, model(x), C, exact)
    with torch.autocast("cpu", torch.bfloat16):
        for b in range(3):
            sums = Sums()
            with captured(model, 1) as tape:
                norm = clipped_sum(model, tape, model(x[b : b + 1]), C, sums)
            assert all(sums[name].dtype == torch.float32 for name in sums)
            assert torch.sqrt(sum(sums[name].double().square().sum() for name in sums)) <= C
            torch.testing.assert_close(norm[0], want[b], rtol=0.05, atol=1e-3)


def test_the_module_is_left_as_it_was() -> None:
    model = WithTree()
    compare(model, on(torch.randn(3, 5, 6)), 3)
    assert all("forward" not in vars(m) for m in model.modules())
    assert all(p.grad is None for p in model.parameters())


class Mean(Gain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x - x.mean(0, keepdim=True))


class Neighbour(Gain):
    """Adds a little of the record before."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + 0.1 * x.roll(1, 0))


class Batch(Gain):
    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.norm = nn.BatchNorm1d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(self.norm(x.transpose(1, 2)).transpose(1, 2))


class Sum(nn.Module):
    """Mixes behind the parameter, where one record's output gradient becomes all records'."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x * self.gain
        return y + y.sum(0, keepdim=True)


class Dropping(Gain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.dropout(super().forward(x), 0.2, training=True)


class Noisy(Gain):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x + torch.randn_like(x))


REFUSED = {
    "a mean over records": (Mean, "mixes records"),
    "a neighbour": (Neighbour, "mixes records"),
    "a sum over records": (Sum, "mixes records"),
    "batch statistics": (Batch, "has statistics of a batch"),
    "dropout that heeds no mode": (Dropping, r"Dropping\) draws random numbers"),
    "noise": (Noisy, r"Noisy\) draws random numbers"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_mixes_records_or_draws_is_refused_before_the_first_step(name: str) -> None:
    torch.manual_seed(0)
    make, said = REFUSED[name]
    model, x = Block(make(6), 6), torch.randn(4, 5, 6)
    with pytest.raises(UsageError, match=said):
        verify(model, lambda rows: model(x[list(rows)]), 4)


@pytest.mark.parametrize("make", [Dropping, Noisy])
def test_random_numbers_in_a_clipped_pass_are_refused_there_as_well(make: Any) -> None:
    """Nobody looked before: torch.func refuses to draw for records that share a stream, and so does the pass."""
    model, x = Block(make(6), 6), torch.randn(4, 5, 6)
    with captured(model, 4) as tape, pytest.raises(UsageError, match="random"):
        clipped_sum(model, tape, model(x), 1.0, Sums())
    with pytest.raises(UsageError, match="drew random numbers"), isolated(model):
        model(x)


def test_dropout_that_heeds_the_mode_is_off() -> None:
    """Beside it the sums of a record are the same whoever else is in the pass."""
    torch.manual_seed(0)
    model, x = Block(nn.Sequential(Gain(6), nn.Dropout(0.5)), 6).train(), torch.randn(4, 5, 6)
    assert verify(model, lambda rows: model(x[list(rows)]), 4) < 1e-5
    found = []
    for rows in ([0, 1, 2, 3], [0]):
        sums = Sums()
        with isolated(model), captured(model, len(rows)) as tape:
            counts = torch.tensor([1.0, 0.0, 0.0, 0.0])[: len(rows)]
            clipped_sum(model, tape, model(x[rows]) * counts, 1.0, sums)
        found.append(sums)
    for name in found[0]:
        torch.testing.assert_close(found[0][name], found[1][name], rtol=1e-5, atol=1e-7)


class Reading(Gain):
    """Decides by a number that it reads out of a tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) if x.sum().item() > 0 else x


class Table(nn.Module):
    """Takes a constant of two dimensions, [T, d], in which no record can be seen."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.randn(width))

    def forward(self, x: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
        return x * self.gain + table


def test_a_module_that_cannot_be_run_alone_is_refused_by_name_and_told_what_can() -> None:
    model = Block(Reading(6), 6)
    with (
        captured(model, 3) as tape,
        pytest.raises(UsageError, match=r"layer\.gain \(Reading\).*Rules exist for Linear"),
    ):
        clipped_sum(model, tape, model(torch.randn(3, 5, 6)), 1.0, Sums())


def test_an_input_without_records_is_refused_whatever_its_length() -> None:
    """[T, d] could be taken for the batch wherever T is a multiple of its rows; the look before the first step has a pass
    in which it is none."""
    layer, x = Table(6), torch.randn(3, 11, 6)
    with pytest.raises(UsageError, match=r"gain \(Table\) saw a tensor of shape \(11, 6\)"):
        verify(layer, lambda rows: layer(x[list(rows)], torch.ones(11, 6)).square().sum((1, 2)), 3)
