"""A step of ours beside a plain one and Opacus' two ways, by turns in one process (docs/benchmarks.md).

    python -m benchmarks.steps --rows experiments/rows/steps.jsonl
    python -m benchmarks.steps --page experiments/rows/steps.jsonl   # the page's table, from rows

All begin with the same weights. A step is forward, loss, backward, clip, noise, SGD and zero_grad, on one thread. Times are
of the processor, which other jobs on the machine lengthen less than those of the clock. A round times each way once and
begins with another than the one before; Opacus (`pip install opacus`), several times as slow, takes part in every fourth.
A way that refuses a model says why.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median, quantiles
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, GPT2Config, RobertaConfig

from benchmarks import peers

Batch = dict[str, Tensor]
Step = Callable[[Batch], object]
SIZES = {"distilgpt2": (8, 64), "gpt": (32, 64), "gpt untied": (32, 64), "lstm": (64, 32), "roberta": (16, 64)}
"""Records and tokens of a batch."""
OFTEN = 4
GPT2: dict[str, Any] = {
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "use_cache": False,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
GPT: dict[str, Any] = {"vocab_size": 8192, "n_layer": 4, "n_embd": 256, "n_head": 8, "n_positions": 256, **GPT2}
MODELS: dict[str, Any] = {
    "distilgpt2": GPT2Config(vocab_size=50257, n_layer=6, n_embd=768, n_head=12, **GPT2),
    "gpt": GPT2Config(**GPT),
    "gpt untied": GPT2Config(tie_word_embeddings=False, **GPT),
    "roberta": RobertaConfig(
        vocab_size=50265, num_hidden_layers=4, num_labels=2, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0
    ),
}


class LSTM(nn.Module):
    """200 hidden units and 10,000 words. ``layer``: nn.LSTM, or Opacus' own, which it asks for."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.words, self.layer, self.head = (
            nn.Embedding(10_000, 200),
            layer(200, 200, batch_first=True),
            nn.Linear(200, 10_000),
        )

    def forward(self, input_ids: Tensor) -> Tensor:
        found: Tensor = self.head(self.layer(self.words(input_ids))[0])
        return found


def model_of(name: str, layer: Any = nn.LSTM) -> Any:
    torch.manual_seed(0)
    if name == "lstm":
        return LSTM(layer).train()
    kind = AutoModelForSequenceClassification if name == "roberta" else AutoModelForCausalLM
    return kind.from_config(MODELS[name], attn_implementation="sdpa").train()


def batch_of(name: str, rows: int, length: int) -> Batch:
    """Random ids. Positions are given, one row a record, since Opacus needs that."""
    g = torch.Generator().manual_seed(1)
    batch = {"input_ids": torch.randint(5, 8192, (rows, length), generator=g)}
    if name == "roberta":
        batch["y"] = torch.randint(0, 2, (rows,), generator=g)
        batch["token_type_ids"] = torch.zeros(rows, length, dtype=torch.int64)
    if name != "lstm":
        batch["position_ids"] = torch.arange(length).repeat(rows, 1) + (2 if name == "roberta" else 0)
    return batch


def losses_of(model: Any, batch: Batch) -> Tensor:
    """[B], with the ordinary cross entropy."""
    out = model(**{key: value for key, value in batch.items() if key != "y"})
    logits = getattr(out, "logits", out)
    if "y" in batch:
        return torch.nn.functional.cross_entropy(logits, batch["y"], reduction="none")
    wanted = batch["input_ids"][:, 1:]
    each = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), wanted.flatten(), reduction="none")
    return each.view(wanted.shape).mean(1)


def plain(name: str, _: int) -> Step:
    model = model_of(name)
    optimiser = torch.optim.SGD(model.parameters(), lr=peers.LR)

    def step(batch: Batch) -> None:
        losses_of(model, batch).mean().backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)

    return step


def ours(name: str, _: int) -> Step:
    return peers.make(model_of(name), losses_of, SimpleNamespace(optim="sgd", sigma=1.0, check=False))


def opacus_ghost(name: str, rows: int) -> Step:
    """Fast gradient clipping, with ghost norms (Opacus ≥ 1.5): two backward passes."""
    from opacus.grad_sample import GradSampleModuleFastGradientClipping
    from opacus.optimizers import DPOptimizerFastGradientClipping
    from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping

    model = _opacus_model(name)
    module = GradSampleModuleFastGradientClipping(
        model, max_grad_norm=peers.CLIP, use_ghost_clipping=True, strict=False
    )
    optimiser = DPOptimizerFastGradientClipping(
        torch.optim.SGD(model.parameters(), lr=peers.LR),
        noise_multiplier=1.0, max_grad_norm=peers.CLIP, expected_batch_size=rows,
    )  # fmt: skip

    def step(batch: Batch) -> None:
        DPTensorFastGradientClipping(module, optimiser, losses_of(module, batch)).backward()
        optimiser.step()
        optimiser.zero_grad()

    return step


def opacus_hooks(name: str, rows: int) -> Step:
    """Every record's gradient is held; faster than ghost norms in Opacus where it fits."""
    from opacus import GradSampleModule
    from opacus.optimizers import DPOptimizer

    model = _opacus_model(name)
    module = GradSampleModule(model, strict=False)
    optimiser = DPOptimizer(
        torch.optim.SGD(model.parameters(), lr=peers.LR),
        noise_multiplier=1.0, max_grad_norm=peers.CLIP, expected_batch_size=rows,
    )  # fmt: skip

    def step(batch: Batch) -> None:
        losses_of(module, batch).mean().backward()
        optimiser.step()
        optimiser.zero_grad()

    return step


def _opacus_model(name: str) -> Any:
    """The model, with rules for GPT-2's Conv1D registered as those who train it with Opacus do (dp-transformers)."""
    from opacus.grad_sample import register_grad_sampler, register_norm_sampler
    from opacus.layers import DPLSTM
    from transformers.pytorch_utils import Conv1D

    def gradients(layer: Any, inputs: list[Tensor], g: Tensor) -> dict[Any, Tensor]:
        x = inputs[0].to(g.dtype)
        return {layer.weight: torch.einsum("n...i,n...j->nij", x, g), layer.bias: torch.einsum("n...k->nk", g)}

    def norms(layer: Any, inputs: list[Tensor], g: Tensor) -> dict[Any, Tensor]:
        x = inputs[0].to(g.dtype)
        squared = (torch.bmm(x, x.transpose(1, 2)) * torch.bmm(g, g.transpose(1, 2))).sum((1, 2))
        return {layer.weight: squared.clamp(min=0).sqrt(), layer.bias: g.sum(1).norm(2, dim=1)}

    register_grad_sampler(Conv1D)(gradients)
    register_norm_sampler(Conv1D)(norms)
    return model_of(name, DPLSTM)


WAYS = {"plain": plain, "ours": ours, "opacus ghost": opacus_ghost, "opacus hooks": opacus_hooks}


def measured(name: str, rounds: int, warm: int) -> Iterator[dict[str, Any]]:
    """A row a round: seconds of each way. First one of those that could not be run."""
    rows, length = SIZES[name]
    batch = batch_of(name, rows, length)
    steps: dict[str, Step] = {}
    for way, make in WAYS.items():
        try:
            step = make(name, rows)
            for _ in range(warm):
                step(batch)
            steps[way] = step
        except Exception as error:
            yield {
                "model": name,
                "refused": way,
                "because": f"{type(error).__name__}: {str(error).splitlines()[0][:160]}",
            }
    for number in range(rounds):
        order = [way for way in steps if not way.startswith("opacus") or number % OFTEN == 0]
        seconds, processor = {}, {}
        for way in order[number % len(order) :] + order[: number % len(order)]:
            clock, began = time.perf_counter(), time.process_time()
            steps[way](batch)
            processor[way], seconds[way] = time.process_time() - began, time.perf_counter() - clock
        yield {
            "model": name, "rows": rows, "tokens": length, "round": number,
            "processor": {way: round(processor[way], 4) for way in order},
            "clock": {way: round(seconds[way], 4) for way in order},
        }  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    """Medians over rounds of the plain step, and of each way's ratio to the plain step of its round median and quartiles."""
    seen = {way for row in rows for way in row.get("processor", [])} | {
        row["refused"] for row in rows if "refused" in row
    }
    ways = [*(way for way in list(WAYS)[1:] if way in seen), *sorted(seen - set(WAYS))]
    lines = [
        f"| model, rounds | plain, ms | {' | '.join(f'{way}, × plain' for way in ways)} |",
        "|---" * (2 + len(ways)) + "|",
    ]
    refused = {(row["model"], row["refused"]) for row in rows if "refused" in row}
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "processor" in row:
            cases.setdefault(row["model"], []).append(row)
    for model, rounds in cases.items():
        times = [row["processor"] for row in rounds]
        first = f"{model}, B={rounds[0]['rows']} T={rounds[0]['tokens']}, {len(rounds)}"
        cells = [first, f"{median(each['plain'] for each in times) * 1e3:,.0f}"]
        for way in ways:
            ratios = [each[way] / each["plain"] for each in times if way in each]
            cells.append("refused" if (model, way) in refused else spread(ratios))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def spread(ratios: list[float]) -> str:
    low, middle, high = quantiles(ratios, n=4, method="inclusive")
    return f"{middle:.2f} ({low:.2f}–{high:.2f})"


def arguments(about: str | None, rounds: int) -> argparse.ArgumentParser:
    """What a benchmark by turns takes."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--rows", type=Path, help="append to this file")
    parser.add_argument("--page", type=Path, help="only print the table of these rows")
    return parser


def beside(times: list[dict[str, float]], first: str, *others: str) -> list[str]:
    """Cells of a table: the median of ``first`` in ms, and the ratios of the others to it in their rounds."""
    ratios = [spread([each[way] / each[first] for each in times]) for way in others]
    return [f"{median(each[first] for each in times) * 1e3:,.0f}", *ratios]


def carry_out(options: Any, rows: Iterable[dict[str, Any]], table: Callable[[list[dict[str, Any]]], str]) -> None:
    """Print the table of the rows in ``options.page``, or of ``rows``, measured on one thread and appended to
    ``options.rows`` one by one."""
    if options.page is not None:
        print(table([json.loads(line) for line in options.page.read_text().splitlines()]))
        return
    torch.set_num_threads(1)
    found = []
    for row in rows:
        found.append(row)
        print(json.dumps(row, ensure_ascii=False), flush=True)
        if options.rows is not None:
            with options.rows.open("a") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    print(table(found))


def main() -> None:
    parser = arguments(__doc__, 24)
    parser.add_argument("--models", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--warm", type=int, default=2)
    options = parser.parse_args()
    rows = (row for name in options.models for row in measured(name, options.rounds, options.warm))
    carry_out(options, rows, table)


if __name__ == "__main__":
    main()
