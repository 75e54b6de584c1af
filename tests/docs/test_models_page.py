"""docs/models.md: what each family of models is trained by, found by building the smallest of each and comparing it with one
record at a time. After a wanted change: pytest tests/docs/test_models_page.py --golden."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from transformers import AutoConfig

import tiny_families
from taciturn.errors import UsageError
from taciturn.models import families
from taciturn.models.source import AUTO, random_model
from taciturn.persample.capture import generic_modules
from taciturn.training.check import assure

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "models.md"
LABELS = ("a", "b", "c")

WHY = {
    "reads one text and writes another": "reads one text and writes another; there is no such task",
    "took no part in the loss": "has parts that the loss does not reach (freeze them by name)",
    "used outside the layer": "uses a weight outside of the layer that owns it",
    "cannot be run one record at a time": "has a step that cannot be run one record at a time",
    "reads what stands behind its end": "reads what stands behind a record's end",
    "a record's loss reads others": "mixes records",
    "differ from one record at a time": "lays out a batch in another order",
    "gives no gradient of one record": "cannot be differentiated in evaluation mode",
    "cannot be told apart": "takes an input that all records share",
}
"""What an error says, in the words of the table; its numbers are not those of every machine."""


def perturbed(model: Any) -> Any:
    """Norms start at 1 and biases at 0: this makes every term of the formulas count."""
    g = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn(p.shape, generator=g) * 0.05)
    return model


def found(make: Callable[[], Any], classify: bool = False) -> tuple[str, dict[str, nn.Module]]:
    """What a model is trained by, in a word or a sentence, and the modules that are run one record at a time."""
    try:
        torch.manual_seed(0)
        model = perturbed(make())
        assure(model, classify=classify)
    except UsageError as error:
        reasons = [said for part, said in WHY.items() if part in str(error)]
        if not reasons:
            raise
        return f"refused: {reasons[0]}", {}
    alone = generic_modules(model)
    return "exact" if not alone else "alone", alone


def share(kind: str, options: dict[str, Any], task: str) -> int:
    """The percentage of the numbers of a model of the family's own default size that are in modules which are run alone."""
    published = AutoConfig.for_model(kind)
    for name in ("use_qk_norm", "qk_layernorm", "relative_attention", "pos_att_type", "share_att_key", "norm_rel_ebd"):
        if name in options:
            setattr(published, name, options[name])
    with torch.device("meta"):
        model = AUTO[task].from_config(published)
    inside = {p for module in generic_modules(model).values() for p in module.parameters()}
    return round(100 * sum(p.numel() for p in inside) / sum(p.numel() for p in model.parameters()))


def row(label: str, kind: str, options: dict[str, Any], tasks: tuple[str, ...], folder: Path) -> tuple[str, set[str]]:
    """A line of the table, and for which tasks the model is trained."""
    shape = folder / f"{kind}.json"
    shape.write_text(json.dumps({"model_type": kind} | options))
    cells, how = {"causal": "", "masked": "", "classify": ""}, []
    for task in tasks:
        labels = LABELS if task == "classify" else ()
        said, alone = found(lambda t=task, of=labels: random_model(str(shape), None, t, of), task == "classify")
        if said.startswith("refused"):
            how.append(said if len(tasks) == 1 else f"{task} {said}")
            continue
        cells[task] = "✓"
        types = ", ".join(dict.fromkeys(type(m).__name__ for m in alone.values()))
        how.append("exact" if not alone else f"{types} alone, {share(kind, options, task)} % of the numbers")
    words = list(dict.fromkeys(how))
    if (
        len(words) > 1
        and all(" refused: " in word for word in words)
        and len({w.partition(" ")[2] for w in words}) == 1
    ):
        words = [words[0].partition(" ")[2]]
    trained = {task for task in tasks if cells[task]}
    return f"| {label} | `{kind}` | {' | '.join(cells[t] for t in cells)} | {'; '.join(words)} |", trained


@pytest.mark.filterwarnings("ignore")
def test_the_table_of_families_is_what_is_found(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    lines, trained = [], {}
    for listed, tasks in ((tiny_families.CAUSAL, ("causal",)), (tiny_families.ENCODERS, ("masked", "classify"))):
        for label, (kind, options) in listed.items():
            line, for_tasks = row(label, kind, options, tasks, tmp_path)
            lines.append(line)
            trained.setdefault(kind, for_tasks)
    assert {kind for kind, tasks in trained.items() if "causal" in tasks} == set(families.CAUSAL)
    assert {kind for kind, tasks in trained.items() if tasks == {"masked", "classify"}} == set(families.ENCODERS)
    head = ["| family | `model_type` | causal | masked | classification | by |", "|---|---|---|---|---|---|"]
    same(request, "families", [*head, *lines])


def same(request: pytest.FixtureRequest, name: str, lines: list[str]) -> None:
    """The part of the page between two comments is these lines."""
    page = PAGE.read_text("utf-8")
    start, end = f"<!-- {name}: found by tests/docs/test_models_page.py -->\n", f"<!-- end of {name} -->"
    table = "\n" + "\n".join(lines) + "\n\n"
    wanted = re.sub(f"(?<={re.escape(start)}).*?(?={re.escape(end)})", lambda _: table, page, flags=re.DOTALL)
    if request.config.getoption("--golden"):
        PAGE.write_text(wanted, "utf-8")
        return
    assert start in page
    assert page == wanted, (
        f"{PAGE.name} differs from what was found: pytest {Path(__file__).name} --golden, and read the diff"
    )


def adapted(method: str) -> Any:
    peft = pytest.importorskip("peft", reason="adapters come with the extra taciturn[lora]")
    some, virtual = {"r": 3, "task_type": "CAUSAL_LM"}, {"num_virtual_tokens": 3, "task_type": "CAUSAL_LM"}
    every = some | {"target_modules": "all-linear"}
    configs: dict[str, Callable[[], Any]] = {
        "LoRA": lambda: peft.LoraConfig(**every),
        "LoRA, rank-stabilised": lambda: peft.LoraConfig(**every, use_rslora=True),
        "LoRA on embeddings": lambda: peft.LoraConfig(**some, target_modules=["embed_tokens", "q_proj"]),
        "LoRA on routers and experts": lambda: peft.LoraConfig(
            **some, target_modules=["q_proj"], target_parameters=["experts.gate_up_proj", "gate.weight"]
        ),
        "DoRA": lambda: peft.LoraConfig(**every, use_dora=True),
        "IA3": lambda: peft.IA3Config(
            task_type="CAUSAL_LM", target_modules=["k_proj", "v_proj", "down_proj"], feedforward_modules=["down_proj"]
        ),
        "VeRA": lambda: peft.VeraConfig(**some, target_modules=["q_proj", "v_proj"]),
        "OFT": lambda: peft.OFTConfig(oft_block_size=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM"),
        "LoHa": lambda: peft.LoHaConfig(**some, target_modules=["q_proj", "v_proj"]),
        "prompt tuning": lambda: peft.PromptTuningConfig(**virtual),
        "prefix tuning": lambda: peft.PrefixTuningConfig(**virtual),
        "P-tuning": lambda: peft.PromptEncoderConfig(**virtual, encoder_hidden_size=8),
    }
    kind, options = tiny_families.CAUSAL["Mixtral" if "experts" in method else "Llama, SmolLM2"]
    base = AUTO["causal"].from_config(AutoConfig.for_model(kind, **options)).float()
    return peft.get_peft_model(perturbed(base), configs[method]())


METHODS = (
    "LoRA", "LoRA, rank-stabilised", "LoRA on embeddings", "LoRA on routers and experts", "DoRA", "IA3", "VeRA", "OFT",
    "LoHa", "prompt tuning", "prefix tuning", "P-tuning",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_the_table_of_adapters_is_what_is_found(request: pytest.FixtureRequest) -> None:
    lines = ["| adapter | by |", "|---|---|"]
    for method in METHODS:
        said, alone = found(lambda of=method: adapted(of))
        kinds = [type(getattr(m, "base_layer", m)).__name__ for m in alone.values()]
        types = ", ".join(dict.fromkeys(f"adapted {kind}" if "OFT" not in kind else kind for kind in kinds))
        lines.append(f"| {method} | {f'{types} alone' if alone else said} |")
    same(request, "adapters", lines)
