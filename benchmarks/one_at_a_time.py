"""What modules without a rule of their own cost: a clipped pass beside a plain one (docs/models.md).

    OMP_NUM_THREADS=1 python benchmarks/one_at_a_time.py --pairs 9 mamba deberta-v2 bert

A plain and a clipped pass take turns; the median of the quotients is printed, the least and the largest, and the MiB of
gradients that are kept for the records of a pass. Models have four layers of width 256, 2,000 words, 8 records of 64 tokens.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from taciturn.models.loss import Batch, record_losses
from taciturn.persample.capture import captured, generic_modules
from taciturn.persample.clip import clipped_sum
from taciturn.persample.isolated import isolated
from taciturn.persample.sums import Sums

V, B, T = 2000, 8, 64
SHAPE = {"vocab_size": V, "hidden_size": 256, "num_hidden_layers": 4, "pad_token_id": 0}
HEADS = SHAPE | {"num_attention_heads": 4, "intermediate_size": 1024, "max_position_embeddings": 512}
RELATIVE = {
    "relative_attention": True,
    "pos_att_type": ["p2c", "c2p"],
    "norm_rel_ebd": "layer_norm",
    "position_buckets": 64,
}
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "mamba": (AutoModelForCausalLM, SHAPE),
    "deberta-v2": (AutoModelForMaskedLM, HEADS | RELATIVE | {"share_att_key": True}),
    "bert": (AutoModelForMaskedLM, HEADS),
    "llama": (AutoModelForCausalLM, HEADS),
    "gemma": (AutoModelForCausalLM, HEADS | {"num_key_value_heads": 4, "head_dim": 64}),
    "mixtral": (AutoModelForCausalLM, HEADS | {"num_key_value_heads": 4, "intermediate_size": 512}),
}
LAYERS: dict[str, tuple[nn.Module, bool]] = {
    "Conv1d": (nn.Conv1d(256, 256, 3, padding=1), True),
    "GroupNorm": (nn.GroupNorm(8, 256), True),
    "GRU": (nn.GRU(256, 256, batch_first=True), False),
    "LSTM of 2 layers": (nn.LSTM(256, 256, 2, batch_first=True), False),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*MODELS, "lora", "dora", "ia3", *LAYERS]
    parser.add_argument("names", nargs="*", default=names, choices=names)
    parser.add_argument("--pairs", type=int, default=9)
    args = parser.parse_args()
    for name in args.names:
        torch.manual_seed(0)
        model, losses = layer(*LAYERS[name]) if name in LAYERS else language_model(name)
        rows = len(losses())
        some = quotients(model, losses, rows, args.pairs)
        alone = {p for m in generic_modules(model).values() for p in m.parameters() if p.requires_grad}
        kept = 4 * rows * sum(p.numel() for p in alone) / 2**20
        print(
            f"{name:18} {statistics.median(some):.2f} ({min(some):.2f}–{max(some):.2f}), {kept:.0f} MiB kept",
            flush=True,
        )


def quotients(model: nn.Module, losses: Callable[[], Tensor], rows: int, pairs: int) -> list[float]:
    """Clipped over plain, pair by pair; a first one warms both up."""

    def pair() -> float:
        usual = once(lambda: plain(model, losses))
        return once(lambda: clipped(model, losses, rows)) / usual

    return [pair() for _ in range(pairs + 1)][1:]


def language_model(name: str) -> tuple[nn.Module, Callable[[], Tensor]]:
    auto, options = MODELS[name if name in MODELS else "llama"]
    model = auto.from_config(AutoConfig.for_model(name if name in MODELS else "llama", **options)).float().eval()
    if name not in MODELS:
        import peft

        every: dict[str, Any] = {"task_type": "CAUSAL_LM", "target_modules": "all-linear"}
        some: dict[str, Any] = {
            "target_modules": ["k_proj", "v_proj", "down_proj"],
            "feedforward_modules": ["down_proj"],
        }
        config = (
            peft.IA3Config(task_type="CAUSAL_LM", **some)
            if name == "ia3"
            else peft.LoraConfig(**every, use_dora=name == "dora")
        )
        model = peft.get_peft_model(model, config)
    ids = torch.randint(2, V, (B, T))
    batch = Batch(ids, torch.ones_like(ids), ids.roll(-1, 1), torch.ones(B, T))
    return model, lambda: record_losses(model, batch)


def layer(module: nn.Module, across: bool) -> tuple[nn.Module, Callable[[], Tensor]]:
    x = torch.randn(16, 256, T) if across else torch.randn(16, T, 256)

    def losses() -> Tensor:
        y = module(x)
        found: Tensor = (y if across else y[0]).square().flatten(1).sum(1)
        return found

    return module, losses


def plain(model: nn.Module, losses: Callable[[], Tensor]) -> None:
    losses().sum().backward()
    model.zero_grad(set_to_none=True)


def clipped(model: nn.Module, losses: Callable[[], Tensor], rows: int) -> None:
    with isolated(model), captured(model, rows) as tape:
        clipped_sum(model, tape, losses(), 1.0, Sums())


def once(run: Callable[[], None]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
