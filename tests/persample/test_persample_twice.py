"""Two passes give what one gives, and hold less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.models.hf import checkpoint_activations
from taciturn.models.loss import Batch, record_losses
from taciturn.persample import twice
from taciturn.persample.capture import captured
from taciturn.persample.clip import RULES, clipped_sum
from taciturn.persample.isolated import isolated
from taciturn.persample.sums import Sums
from taciturn.training.check import counted, random_batch
from tiny_families import CAUSAL

B, T, V = 4, 9, 83
FAMILIES = ("GPT-2", "Llama, SmolLM2", "Gemma 2", "OPT", "Falcon", "Mixtral")


def causal(name: str) -> Any:
    kind, options = CAUSAL[name]
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **options))
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.05)
    return model


BOUND = 0.5 * (1 - twice.MARGIN)


def once(
    model: Any, losses: Callable[[], Tensor], rows: int, rule: str, units: int | None = None, C: float = BOUND
) -> tuple[Sums, Tensor]:
    sums = Sums()
    with isolated(model), captured(model, rows, units) as tape:
        return sums, clipped_sum(model, tape, losses(), C, sums, rule)


def again(
    model: Any, losses: Callable[[], Tensor], rows: int, rule: str, units: int | None = None
) -> tuple[Sums, Tensor]:
    sums = Sums()
    with isolated(model):
        return sums, twice._twice(model, rows, units or rows, losses, 0.5, sums, rule, 1.0)


def assert_same(found: tuple[Sums, Tensor], want: tuple[Sums, Tensor]) -> None:
    torch.testing.assert_close(found[1], want[1], rtol=1e-5, atol=1e-7)
    assert list(found[0]) == list(want[0])
    scale = max(float(want[0][key].abs().max()) for key in want[0])
    for key in want[0]:
        torch.testing.assert_close(found[0][key], want[0][key], rtol=1e-5, atol=2e-6 * scale, msg=key)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("rule", RULES)
def test_two_passes_are_one(name: str, rule: str) -> None:
    """Tied embeddings among them: their uses are kept for the term that both have in common."""
    model = causal(name)
    data = random_batch(model, (T, 3, 7, 5), False)

    def losses() -> Tensor:
        return record_losses(model, data)

    assert_same(again(model, losses, B, rule), once(model, losses, B, rule))


def test_units_of_several_rows() -> None:
    model = causal("GPT-2")
    data = random_batch(model, (T, 3, 7, 5), False)

    def losses() -> Tensor:
        return record_losses(model, data).view(2, 2).sum(1)

    assert_same(again(model, losses, B, "flat", 2), once(model, losses, B, "flat", 2))


@pytest.mark.parametrize("half", [False, True], ids=["float32", "bf16"])
def test_a_clipped_gradient_is_no_longer_than_its_bound(half: bool) -> None:
    """On two threads, whose order of adding may differ between the passes."""
    model, threads = causal("GPT-2"), torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for seed in range(20):
            torch.manual_seed(seed)
            data = random_batch(model, (T,), False)
            ids = torch.randint(2, V, data.input_ids.shape)
            data = Batch(ids, data.attention, torch.roll(ids, -1, 1), data.weights)

            def losses(data: Batch = data) -> Tensor:
                with torch.autocast("cpu", torch.bfloat16, enabled=half):
                    return record_losses(model, data)

            sums, norms = again(model, losses, 1, "flat")
            assert float(norms) > 0.5
            whole = torch.stack([sums[key].double().square().sum() for key in sums]).sum().sqrt()
            assert 0.499 < float(whole) <= 0.5
    finally:
        torch.set_num_threads(threads)


def test_a_device_that_may_not_repeat_itself_takes_one_pass() -> None:
    with torch.device("meta"):
        model = nn.Linear(2, 2)
    assert not twice._repeats(model)
    assert twice._repeats(nn.Linear(2, 2))
    torch.use_deterministic_algorithms(True)
    try:
        assert twice._repeats(model)
    finally:
        torch.use_deterministic_algorithms(False)


class Repeated(nn.Module):
    """One layer, run three times."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.out = nn.Linear(6, 6), nn.Linear(6, 1)
        self.gradient_checkpointing = True

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(3):
            x = self.layer(x).tanh()
        return self.out(x).squeeze(-1)


def test_a_layer_that_is_run_several_times_is_taken_in_one_pass() -> None:
    torch.manual_seed(0)
    model, x = Repeated(), torch.randn(5, 6)

    def losses() -> Tensor:
        return model(x) ** 2

    sums = Sums()
    norms = twice.clipped_sum_of(model, 5, 5, losses, 0.5, sums)
    assert_same((sums, norms), once(model, losses, 5, "flat", C=0.5))
    assert all(p.grad is None for p in model.parameters())


class Cancelling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(40, 40, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def test_norms_that_cancel_are_computed_again_before_their_factors_go() -> None:
    """Two positions whose gradients are nearly opposite: their squared norm is lost in that of the terms."""
    torch.manual_seed(0)
    model, x = Cancelling(), torch.randn(3, 1, 40).repeat(1, 2, 1)
    x[:, 1] += 1e-5 * torch.randn(3, 40)
    sign, weights = torch.tensor([1.0, -1.0]), torch.randn(40)

    def losses() -> Tensor:
        return ((model(x) @ weights) * sign).sum(1) * 1e4

    exact = []
    for b in range(3):
        grad = torch.zeros(40, 40, dtype=torch.float64)
        for t in range(2):
            grad += 1e4 * float(sign[t]) * torch.outer(weights.double(), x[b, t].double())
        exact.append(grad.norm())
    found, norms = again(model, losses, 3, "flat")
    torch.testing.assert_close(norms.double(), torch.stack(exact), rtol=1e-5, atol=0)
    assert_same((found, norms), once(model, losses, 3, "flat"))


def test_a_record_without_a_finite_gradient_adds_nothing() -> None:
    torch.manual_seed(0)
    model, x = nn.Linear(4, 1), torch.randn(3, 4)
    x[1] = 3e38

    def losses() -> Tensor:
        return (model(x) ** 2).squeeze(1)

    found, norms = again(model, losses, 3, "flat")
    assert norms.isfinite().tolist() == [True, False, True]
    assert_same(
        (found, norms.nan_to_num(0, 0, 0)), (lambda s, n: (s, n.nan_to_num(0, 0, 0)))(*once(model, losses, 3, "flat"))
    )
    assert all(found[key].isfinite().all() for key in found)


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_recomputed_activations_are_never_held_together(kind: str) -> None:
    """Bytes that are held at once, of a model of eight layers: with one pass all that the layers saw is kept to the end."""
    sizes: dict[str, dict[str, Any]] = {
        "gpt2": {"n_embd": 64, "n_layer": 8, "n_head": 2, "n_positions": 64},
        "llama": {"hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 2, "intermediate_size": 128},
    }
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, vocab_size=64, **sizes[kind]))
    checkpoint_activations(model)
    model.train()
    data: Batch = random_batch(model, (64,) * 8, False)

    def losses() -> Tensor:
        return record_losses(model, data)

    with counted() as one:
        want = once(model, losses, 8, "flat")
    with counted() as two:
        sums = Sums()
        with isolated(model):
            norms = twice.clipped_sum_of(model, 8, 8, losses, 0.5, sums)
    assert_same((sums, norms), want)
    assert two.peak < 0.6 * one.peak
