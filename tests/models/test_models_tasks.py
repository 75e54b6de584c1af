"""Classification, pairs and masked language modelling from records to batches, and each task through a whole run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.models.held_out import HeldOut
from taciturn.models.hf import load_exported, load_model
from taciturn.models.loss import collate, record_losses
from taciturn.models.masking import Masking, mask_tokens
from taciturn.models.sequences import mask_id, token_ranges
from taciturn.models.tasks import encode_task, label_ids
from taciturn.models.template import PLAIN, set_template
from taciturn.models.tokens import encode, encode_all
from taciturn.screening import policy, screen
from taciturn.text.chat import FIRST, SECOND, head, join
from taciturn.text.document import MASK, Document, Record
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span

BERT = {
    "model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32,
    "max_position_embeddings": 64, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
GPT2 = {"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 128}


def config_file(tmp: Path, shape: dict[str, Any]) -> str:
    path = tmp / f"{shape['model_type']}.json"
    path.write_text(json.dumps(shape))
    return str(path)


def test_a_text_for_bert_begins_and_ends_as_bert_has_it(zoo: Any) -> None:
    t = zoo("wordpiece")
    assert t.eos_token_id is None
    assert encode(t, "it rains").tolist() == t("it rains")["input_ids"]
    assert encode(t, MASK).tolist() == [t.cls_token_id, mask_id(t)]


anything = st.text(alphabet=st.characters(exclude_characters="\x1e\x1f", exclude_categories=("Cs",)), max_size=12)


@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "bpe"])
@settings(max_examples=50, deadline=None)
@given(a=anything, b=anything)
def test_a_pair_is_coded_as_the_tokenizer_does(zoo: Any, kind: str, a: str, b: str) -> None:
    t = zoo(kind)
    ids = encode(t, join([(FIRST, a.replace(MASK, "")), (SECOND, b.replace(MASK, ""))])).tolist()
    if kind != "bpe":
        assert ids == t([(a.replace(MASK, ""), b.replace(MASK, ""))], split_special_tokens=True)["input_ids"][0]
        return
    alone = [t(text, add_special_tokens=False, split_special_tokens=True)["input_ids"] for text in (a, b)]
    end = t.eos_token_id  # no form for pairs: an end of text between them
    assert ids == [end, *alone[0], end, *alone[1], end]


@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "bpe", "llama"])
@settings(max_examples=50, deadline=None)
@given(
    parts=st.lists(
        st.one_of(st.sampled_from([MASK, head(FIRST), head(SECOND), "\x1e"]), st.text(max_size=3)), max_size=8
    )
)
def test_every_string_with_a_pair_in_it_can_be_coded(zoo: Any, kind: str, parts: list[str]) -> None:
    t = zoo(kind)
    text = (head(FIRST) + "".join(parts)).encode("utf-8", "ignore").decode()
    ids, at = encode(t, text), token_ranges(t, text)
    assert at.shape == (len(ids), 2)
    assert (ids == mask_id(t)).sum() == text.count(MASK)
    assert all(text[a:b] == MASK for a, b in at[ids == mask_id(t)])


def test_tokens_of_a_pair_know_their_place(zoo: Any) -> None:
    t = zoo("wordpiece")
    text = join([(FIRST, "it rains"), (SECOND, "it is wet")])
    found = [text[a:b] for a, b in token_ranges(t, text)]
    assert "".join(found) == "itrainsitiswet"
    assert found[0] == found[-1] == ""


def test_labels_come_from_the_configuration_and_a_removed_copy_has_none(zoo: Any) -> None:
    texts, labels = ["a", MASK, "b", MASK], ["pos", None, "neg", "pos"]
    assert label_ids(texts, labels, ["neg", "pos"]).tolist() == [1, -1, 0, -1]
    with pytest.raises(
        DataError, match=r"of 4 records 0 have no label and 1 have one that is not among the 2"
    ) as caught:
        label_ids(texts, ["secret", None, "neg", "pos"], ["neg", "pos"])
    assert "secret" not in str(caught.value)
    with pytest.raises(DataError, match="of 4 records 1 have no label and 0"):
        label_ids(texts, [None, None, "neg", None], ["neg", "pos"])
    with pytest.raises(UsageError, match="at least two different names, found 2, 1 different"):
        label_ids(texts, labels, ["pos", "pos"])
    t = zoo("wordpiece")
    tokens = encode_task(t, texts, task="classify", labels=labels, names=["neg", "pos"])
    batch = collate(tokens, np.array([2, 1, 0]), mask_id(t))
    assert batch.labels is not None
    assert batch.labels.tolist() == [0, -1, 1]


def test_a_removed_copy_has_no_loss_and_no_gradient(zoo: Any, tmp_path: Path) -> None:
    t = zoo("wordpiece")
    model = load_model(config_file(tmp_path, BERT), t, task="classify", labels=["neg", "pos"])
    tokens = encode_task(t, [MASK, "it rains"], task="classify", labels=[None, "pos"], names=["neg", "pos"])
    losses = record_losses(model, collate(tokens, np.arange(2), mask_id(t)))
    assert losses[0] == 0
    assert losses[1] > 0
    losses[0].backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_what_is_hidden_follows_seed_step_and_row_and_nothing_else(zoo: Any) -> None:
    t = zoo("wordpiece")
    texts = [f"it rains. it is wet. {MASK} my value in 50 dollars, how can i help you today", "it is wet today"] * 8
    tokens = encode_task(t, texts, task="masked", seed=3)
    whole = collate(tokens.at(5), np.arange(16), mask_id(t))
    assert (whole.targets.numpy() == collate(encode_all(t, texts), np.arange(16), mask_id(t)).input_ids.numpy()).all()
    for row in range(16):
        alone = collate(tokens.at(5), np.array([row]), mask_id(t))
        n = alone.input_ids.shape[1]
        assert alone.input_ids[0].tolist() == whole.input_ids[row, :n].tolist()
        assert alone.weights[0].tolist() == whole.weights[row, :n].tolist()
        assert not whole.weights[row, n:].any()
    others = [
        collate(tokens.at(6), np.arange(16), mask_id(t)),
        collate(encode_task(t, texts, task="masked", seed=4).at(5), np.arange(16), mask_id(t)),
    ]
    assert all((other.weights != whole.weights).any() for other in others)
    special = torch.tensor([*t.all_special_ids, mask_id(t)])
    assert not whole.weights[torch.isin(whole.targets, special)].any()
    assert (whole.input_ids == whole.targets)[whole.weights == 0].all()
    assert (whole.input_ids == mask_id(t)).sum() == 8  # the secret's mask stays and is not the model's
    with pytest.raises(UsageError, match="has no mask token"):
        encode_task(zoo("bpe"), texts, task="masked")


def test_shares_of_what_is_hidden() -> None:
    """400,000 positions; each share within 5 standard deviations of a binomial, a false alarm about 2e-6 in all (and the
    seed is fixed)."""
    rng = np.random.default_rng(11)
    ids = rng.integers(10, 1000, (100, 4000))
    shown, weights = mask_tokens(ids, ids % 2 == 0, rng.random((*ids.shape, 3)), 0.15, 4, 1000, tuple(range(10)))
    chosen = weights > 0
    n, k = int((ids % 2 == 0).sum()), int(chosen.sum())
    assert not chosen[ids % 2 == 1].any()

    def near(count: int, total: int, share: float) -> bool:
        return abs(count - share * total) < 5 * (total * share * (1 - share)) ** 0.5

    assert near(k, n, 0.15)
    assert near(int((shown == 4)[chosen].sum()), k, 0.8)
    changed = (shown != ids) & (shown != 4) & chosen
    assert near(int(changed.sum()), k, 0.1 * 989 / 1000)  # not a special id, not the same one
    assert near(int((shown == ids)[chosen].sum()), k, 0.1 + 0.1 * 11 / 1000)
    assert not np.isin(shown[changed], range(10)).any()


def test_what_is_hidden_of_a_record_does_not_depend_on_where_it_stands() -> None:
    """D = (s, s) keeps the first s and blanks the second, D' = (s', s) keeps the second: its summand must be the same."""
    masking = Masking(token=4, special=(0, 1), vocab=50, share=0.5, seed=3, step=2)
    s, other = np.arange(10, 34), np.arange(5, 40)
    shown, weights = masking.hide(s[None], np.ones((1, 24), np.float32), np.array([24]))
    padded = np.zeros((3, 35), np.int64)
    padded[0], padded[1, :24], padded[2, :24] = other, s, s
    again, where = masking.hide(padded, np.ones((3, 35), np.float32), np.array([35, 24, 24]))
    for row in (1, 2):
        assert np.array_equal(again[row, :24], shown[0])
        assert np.array_equal(where[row, :24], weights[0])
    assert not np.array_equal(where[0, :24], weights[0])
    later, _ = replace(masking, step=3).hide(s[None], np.ones((1, 24), np.float32), np.array([24]))
    assert not np.array_equal(later, shown)


def test_masking_leaves_no_target_in_a_text_of_special_tokens() -> None:
    masking = Masking(token=4, special=(0, 1, 2), vocab=50, share=1.0)
    ids = np.array([[0, 1, 2, 7]])
    shown, weights = masking.hide(ids, np.array([[0, 1, 1, 1]], np.float32), np.array([4]))
    assert weights.tolist() == [[0, 0, 0, 1]]
    assert shown[0, :3].tolist() == [0, 1, 2]


def held(texts: Sequence[str], labels: Sequence[str | None] = (), gold: tuple[Span, ...] = ()) -> list[Record]:
    named = labels or [None] * len(texts)
    return [
        Record(f"r#{i}", "r", 0, len(t), t, gold=gold, label=y)
        for i, (t, y) in enumerate(zip(texts, named, strict=True))
    ]


def test_a_classifier_is_measured_by_its_accuracy(zoo: Any, tmp_path: Path) -> None:
    t = zoo("wordpiece")
    model = load_model(config_file(tmp_path, BERT), t, task="classify", labels=["a", "b"])
    texts, labels = ["it rains", "it is wet", "help", "today"], ["a", "b", "a", "b"]
    found = HeldOut.of(t, held(texts, labels), task="classify", names=["a", "b"]).utility(model.eval())
    hits, nll = 0, 0.0
    for text, label in zip(texts, labels, strict=True):
        logits = model(input_ids=torch.tensor([encode(t, text).tolist()])).logits[0].log_softmax(-1)
        hits += int(logits.argmax()) == "ab".index(label)
        nll -= float(logits["ab".index(label)].detach()) / 4
    assert (found.accuracy, found.tokens) == (hits / 4, 4)
    assert found.perplexity == pytest.approx(np.exp(nll), rel=1e-5)


def test_held_out_conversations_leave_out_what_touches_a_secret(make_tokenizer: Any, tmp_path: Path) -> None:
    t = set_template(make_tokenizer("bpe"), "plain")
    model = load_model(config_file(tmp_path, GPT2), t)
    text = join([("user", "Good morning, 341752"), ("assistant", "How can I help you 341752?")])
    at = text.rindex("341752")
    (record,) = held([text], gold=(Span(at, at + 6),))
    everything = HeldOut.of(t, [record]).utility(model)
    assistant = HeldOut.of(t, [record], loss_on="assistant").utility(model)
    assert everything.tokens - everything.tokens_outside == assistant.tokens - assistant.tokens_outside == 6
    assert assistant.tokens < everything.tokens
    assert everything.accuracy is None


def run(tmp_path: Path, documents: list[Document], model: dict[str, Any], name: str = "dpsgd") -> dict[str, Any]:
    """Screen, train, certify and verify; the metrics of the last step and the folder's configuration."""
    screened = screen(Corpus.from_documents(documents), policy("phone"), policy("conservative"), unit="document")
    steps = {"steps": 3, "batch": 4, "noise_multiplier": 1.0}
    options = {"crt": {"public": {"epochs": 1, "batch_size": 4}, "private": steps}, "dpsgd": steps}[name]
    config = RunConfig(
        mechanism=name,
        corpus=Path("memory"),
        model=model,  # type: ignore[arg-type]
        delta=1e-3,
        options=options,
        train={"evaluations": 1},  # type: ignore[arg-type]
    )
    valid = [Record(d.id, d.id, 0, len(d.text), d.text, label=d.label) for d in documents[:4]]
    train(config, tmp_path / "run", screened=screened, valid=valid)
    certify(tmp_path / "run")
    assert not verify(tmp_path / "run" / "certificate.json")
    return json.loads((tmp_path / "run" / "plan.json").read_text())  # type: ignore[no-any-return]


@pytest.mark.parametrize("task", ["classify", "masked"])
@pytest.mark.parametrize("mechanism", ["crt", "dpsgd"])
def test_an_encoder_through_a_whole_run(zoo: Any, tmp_path: Path, task: str, mechanism: str) -> None:
    zoo("wordpiece").save_pretrained(str(tmp_path / "tokenizer"))
    documents = [
        Document(str(i), f"it rains {'call 980.322.8737' if i % 3 else ''} today {i}", label="ab"[i % 2])
        for i in range(12)
    ] + [Document(str(i), "ask Slevin", label="a") for i in range(12, 15)]
    model = {
        "name": config_file(tmp_path, BERT),
        "tokenizer": str(tmp_path / "tokenizer"),
        "task": task,
        "labels": ["a", "b"] if task == "classify" else [],
    }
    plan = run(tmp_path, documents, model, mechanism)
    assert plan["model"]["task"] == task
    assert (tmp_path / "run" / "model" / "model.safetensors").is_file()


CHATS = [
    Document(
        str(i),
        join(
            [
                ("user", f"call 980.322.{i:04d}" if i % 3 else "hello there"),
                ("assistant", "Slevin" if i % 2 else "fine"),
            ]
        ),
    )
    for i in range(12)
]


@pytest.mark.parametrize("loss_on", ["all", "assistant"])
@pytest.mark.parametrize("mechanism", ["crt", "dpsgd"])
def test_a_chat_through_a_whole_run(tmp_path: Path, loss_on: str, mechanism: str) -> None:
    model = {"name": config_file(tmp_path, GPT2), "tokenizer": "bytes", "chat_template": "plain", "loss_on": loss_on}
    plan = run(tmp_path, CHATS, model, mechanism)
    assert plan["model"]["loss_on"] == loss_on
    _, tokenizer = load_exported(tmp_path / "run" / "model")
    assert tokenizer.chat_template == PLAIN  # whoever loads the model chats with it as it was trained
    assert encode(tokenizer, CHATS[0].text).tolist() == encode(tokenizer, "hello there\nfine").tolist()


def test_lora_on_a_llama_with_its_own_chat_template(make_tokenizer: Any, tmp_path: Path) -> None:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = make_tokenizer("bpe")
    tokenizer.add_tokens(["<|im_start|>", "<|im_end|>"], special_tokens=True)
    tokenizer.chat_template = (
        "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endfor %}"
    )
    shape = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=1, **shape)).save_pretrained(
        tmp_path / "m"
    )
    tokenizer.save_pretrained(tmp_path / "m")
    plan = run(tmp_path, CHATS, {"name": str(tmp_path / "m"), "lora": {"r": 2}, "loss_on": "assistant"})
    assert plan["model"]["lora"]["r"] == 2
    assert any((tmp_path / "run" / "model").glob("*.safetensors"))
