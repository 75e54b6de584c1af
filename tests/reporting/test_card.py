"""The model card: every claim with its qualifiers, and nothing that a name could break."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from taciturn.reporting import RunView, card
from taciturn.reporting.html import render as html
from taciturn.reporting.sections import summary


def test_card_of_a_certified_and_audited_run(four: list[RunView], tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "taciturn_lstm"}), "utf-8")
    text = card.write(tmp_path, four[3]).read_text("utf-8")
    assert text.startswith("---\nlicense: other\n")
    assert "library_name: taciturn\npipeline_tag: text-generation\n" in text
    assert "base_model" not in text
    for claim in four[3].guarantees:
        assert card._plain(claim.words()) in text
    assert "left for you to judge: the conservative policy marks" in text
    assert "import taciturn" in text
    assert "taciturn verify certificate.json" in text
    assert "| exposure | 4." in text


KINDS = {
    "classifier": (
        {"architectures": ["BertForSequenceClassification"]},
        "text-classification",
        "SequenceClassification",
    ),
    "masked": ({"architectures": ["BertForMaskedLM"]}, "fill-mask", "MaskedLM"),
    "causal": ({"architectures": ["GPT2LMHeadModel"], "model_type": "gpt2"}, "text-generation", "CausalLM"),
    "unsaved": ({}, "text-classification", "SequenceClassification"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_card_says_what_the_model_does(eight: list[RunView], kind: str) -> None:
    config, pipeline, loader = KINDS[kind]
    text = card.render(eight[5], config)  # a plan of task classify: the saved class counts, where there is one
    assert f"library_name: transformers\npipeline_tag: {pipeline}\n" in text
    assert f"model = AutoModelFor{loader}.from_pretrained" in text
    assert "import taciturn" not in text


@pytest.mark.parametrize("kind", ["LSTM", "AWDLSTM"])
def test_the_code_of_the_card_loads_a_model_of_ours(eight: list[RunView], tmp_path: Path, kind: str) -> None:
    pytest.importorskip("transformers")
    from taciturn.models.awd_lstm import AWDLSTMConfig, AWDLSTMForSequenceClassification
    from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM

    sizes = {"vocab_size": 11, "embedding_size": 4, "hidden_size": 4}
    if kind == "LSTM":
        saved = LSTMForCausalLM(LSTMConfig(**sizes))
    else:
        saved = AWDLSTMForSequenceClassification(AWDLSTMConfig(**sizes))
    saved.save_pretrained(tmp_path)
    text = card.write(tmp_path, eight[5]).read_text("utf-8")
    code = re.findall("```python\n(.*?)```", text, flags=re.S)[0].replace("path/to/this/folder", str(tmp_path))
    assert f"import taciturn.models.{'lstm' if kind == 'LSTM' else 'awd_lstm'}  #" in code
    space: dict[str, object] = {}
    exec("\n".join(line for line in code.splitlines() if not line.startswith("tokenizer")), space)
    assert type(space["model"]) is type(saved)


def test_the_head_of_the_card_is_what_the_hub_reads(eight: list[RunView]) -> None:
    hub = pytest.importorskip("huggingface_hub")
    read = hub.ModelCard(card.render(eight[5], {"architectures": ["BertForSequenceClassification"]}))
    assert read.data.pipeline_tag == "text-classification"
    assert read.data.library_name == "transformers"
    assert read.data.tags == ["taciturn", "differential-privacy", "confidentiality"]
    assert read.text.strip().startswith("# classifier")


def test_card_of_a_bare_run(make_run: Callable[..., Path]) -> None:
    run = RunView.load(make_run("bare", without=("certificate.json", "audit.json", "evidence.json", "metrics.jsonl")))
    text = card.render(run)
    assert "this run was not certified" in text
    assert "this run was not audited" in text
    assert "import taciturn" not in text


def test_unfit_for_release_is_said_first(four: list[RunView]) -> None:
    text = card.render(four[0])
    promised = text.index("## What is promised")
    assert text.index("**Not for release.**") < promised < text.index("**none**")
    assert "Nothing that anybody should lean on." in text


def test_a_hub_model_is_named_as_the_base_and_a_path_is_not(make_run: Callable[..., Path]) -> None:
    folder = make_run("r")
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    for name, shown in (
        ("owner/gpt", True),
        ("gpt2", True),
        ("../models/gpt", False),
        (str(folder), False),
        ("c.json", False),
    ):
        plan["model"]["name"] = name
        (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
        text = card.render(RunView.load(folder))
        assert (f'base_model: "{name}"' in text) == shown
        assert shown or name not in text


def test_a_name_cannot_add_markup(make_run: Callable[..., Path]) -> None:
    text = card.render(RunView.load(make_run("<img src=x> [a](b) | c")))
    assert "<img" not in text
    assert "[a](b)" not in text


def test_a_classifier_is_told_by_its_accuracy(make_run: Callable[..., Path]) -> None:
    folder = make_run("c")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]
    told = [{**row, "accuracy": 0.75 + i / 1e4} if row["kind"] == "eval" else row for i, row in enumerate(rows)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told), "utf-8")
    run, last = RunView.load(folder), f"{told[-1]['accuracy']:.3f}"
    assert f"Held-out accuracy: {last}.\n" in card.render(run)
    assert "erplexity" not in card.render(run)
    assert f"Held-out accuracy: {last}." in summary.told([run], ["c"])
    page = html([run])
    assert f'<span class="big">{last}</span><span class="sub">accuracy</span>' in page
    assert '<th scope="col" role="columnheader">Accuracy</th>' in page
    other = RunView.load(make_run("lm"))
    said = summary.told([run, other], ["c", "lm"])
    assert f"Held-out accuracy: {last} for c." in said
    assert any(line.startswith("Held-out perplexity outside known secrets: ") and " for c" not in line for line in said)
    assert "Perplexity or accuracy</th>" in html([run, other])
