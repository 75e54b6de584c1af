"""Prompts: the ids of a filled template, what is cut, what is refused, and what a saved model remembers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, PreTrainedModel

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.settings import ModelConfig
from taciturn.models.held_out import HeldOut
from taciturn.models.hf import export, load_exported, load_model, saved_task
from taciturn.models.loss import Batch, collate, record_losses
from taciturn.models.prompt import Prompt, PromptCoder, shares
from taciturn.models.sequences import mask_id
from taciturn.models.tasks import encode_task
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.text.chat import FIRST, SECOND, join
from taciturn.text.document import MASK, Record

WORDS = {"dry": "rains", "wet": "wet"}
PROMPT = Prompt("{text} It is {mask}.", WORDS)
TEXTS = ["it rains. it is wet.", "how can I help you today?", "my value in 50 dollars"]
LABELS = ["dry", "wet", "wet"]
SHAPES = {
    "wordpiece": '{"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}',
    "roberta": '{"model_type": "roberta", "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}',
    "bpe": '{"model_type": "gpt2", "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64}',
}


def model_of(kind: str, zoo: Any, folder: Path, prompt: Prompt = PROMPT) -> Any:
    path = folder / f"{kind}.json"
    path.write_text(SHAPES[kind])
    return load_model(str(path), zoo(kind), task="prompt", prompt=prompt).eval()


def bare(t: Any, text: str) -> list[int]:
    return list(t(text, add_special_tokens=False)["input_ids"])


@pytest.mark.parametrize("kind", ["wordpiece", "roberta"])
def test_a_filled_template_is_coded_as_the_tokenizer_does(zoo: Any, kind: str) -> None:
    t = zoo(kind)
    tokens = encode_task(t, TEXTS, task="prompt", prompt=PROMPT, labels=LABELS)
    assert tokens.answers is not None
    assert tokens.labels is not None
    for i, text in enumerate(TEXTS):
        assert tokens[i].tolist() == t(f"{text} It is {t.mask_token}.")["input_ids"]
        assert tokens[i][tokens.answers.at[i]] == t.mask_token_id
    assert tokens.labels.tolist() == [0, 1, 1]
    for word, i in zip(WORDS.values(), tokens.answers.words, strict=True):
        assert bare(t, f"It is {word}")[-1] == i


def test_a_causal_model_answers_behind_the_prompt(zoo: Any) -> None:
    t = zoo("bpe")
    tokens = encode_task(t, TEXTS, task="prompt", prompt=PROMPT, labels=LABELS)
    assert tokens.answers is not None
    for i, text in enumerate(TEXTS):
        assert tokens[i].tolist() == [t.eos_token_id, *bare(t, f"{text} It is")]
        assert tokens.answers.at[i] == len(tokens[i]) - 1
    assert tokens.answers.words.tolist() == [bare(t, f"It is {w}")[-1] for w in WORDS.values()]


@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "bpe"])
def test_the_loss_is_the_cross_entropy_over_the_words(zoo: Any, tmp_path: Path, kind: str) -> None:
    t, model = zoo(kind), model_of(kind, zoo, tmp_path)
    tokens = encode_task(t, [*TEXTS, MASK], task="prompt", prompt=PROMPT, labels=[*LABELS, None])
    losses = record_losses(model, collate(tokens, np.arange(4), mask_id(t)))
    words = [bare(t, f"It is {w}")[-1] for w in WORDS.values()]
    for i, text in enumerate(TEXTS):
        ids = t(f"{text} It is {t.mask_token}.")["input_ids"] if kind != "bpe" else tokens[i].tolist()
        at = ids.index(t.mask_token_id) if kind != "bpe" else -1
        p = model(input_ids=torch.tensor([ids])).logits[0, at, words].softmax(0)
        want = -p[list(WORDS).index(LABELS[i])].log()
        torch.testing.assert_close(losses[i], want, rtol=1e-4, atol=1e-5)
    assert losses[3] == 0, "a removed copy"
    losses[3].backward()
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_a_pass_of_nothing_has_no_loss(zoo: Any, tmp_path: Path, kind: str) -> None:
    """What a process of a sharded run passes through the model when it has no record left."""
    ids = torch.zeros(1, 2, dtype=torch.int64)
    batch = Batch(ids, torch.ones_like(ids), ids, torch.zeros(1, 2), torch.full((1,), -1))
    (loss,) = record_losses(model_of(kind, zoo, tmp_path), batch)
    assert loss == 0
    loss.backward()


@pytest.mark.parametrize("kind", ["wordpiece", "roberta"])
def test_pairs_fill_two_fields(zoo: Any, kind: str) -> None:
    t = zoo(kind)
    prompt = Prompt("{text}? {mask}, {second}", WORDS)
    texts = [join([(FIRST, "it rains"), (SECOND, "it is wet")]), join([(FIRST, "today"), (SECOND, "")])]
    tokens = encode_task(t, texts, task="prompt", prompt=prompt, labels=["dry", "wet"])
    assert tokens[0].tolist() == t(f"it rains? {t.mask_token}, it is wet")["input_ids"]
    with pytest.raises(DataError, match=r"1 of 2 records are pairs, and the prompt has no \{second\}"):
        encode_task(t, texts, task="prompt", prompt=PROMPT, labels=["dry", "wet"])


anything = st.text(alphabet=st.characters(exclude_characters="\x1e\x1f", exclude_categories=("Cs",)), max_size=40)


@pytest.mark.parametrize("kind", ["wordpiece", "roberta", "bpe", "llama"])
@settings(max_examples=40, deadline=None)
@given(a=anything, b=anything, room=st.integers(1, 20))
def test_texts_are_cut_and_the_prompt_never_is(zoo: Any, kind: str, a: str, b: str, room: int) -> None:
    t = zoo(kind)
    words = {"1": "a", "2": "b"} if kind == "llama" else {"1": "value", "2": "dollars"}
    prompt = Prompt("morning {second} and {text} my {mask}", words)
    text = join([(FIRST, a), (SECOND, b)])
    coder = PromptCoder.of(t, prompt)
    ((whole, _, uncut),) = coder.encode([text])
    ((ids, at, cut),) = coder.encode([text], coder.fixed + room)
    assert not uncut
    assert cut == (len(whole) > coder.fixed + room)
    assert len(ids) == min(len(whole), coder.fixed + room)
    assert at == (len(ids) - 1 if coder.mask is None else ids.tolist().index(coder.mask))
    rest = ids.tolist()
    for part in coder.parts:
        if isinstance(part, list):  # in order, whole
            place = next(i for i in range(len(rest)) if rest[i : i + len(part)] == part)
            rest = rest[place + len(part) :]
    assert [x.tolist() for x, _, _ in coder.encode(["x", text, MASK])][1] == whole.tolist(), "a record is coded alone"


def test_what_is_longer_is_cut_first() -> None:
    for a in range(7):
        for b in range(7):
            for room in range(1, 14):
                kept = shares([a, b], room)
                assert sum(kept) == min(a + b, room)
                assert kept[0] <= a
                assert kept[1] <= b
                if sum(kept) < a + b:
                    assert abs(kept[0] - kept[1]) <= 1 or (kept[0], kept[1])[a > b] == min(a, b)


@pytest.mark.parametrize(
    ("template", "words", "says"),
    [
        ("{text} It is {msk}", WORDS, r"unknown field \{msk\}: did you mean 'mask'"),
        ("It is {mask}", WORDS, r"expected \{text\} and \{mask\} once each.*found \{mask\}"),
        ("{text} {text} {mask}", WORDS, "once each"),
        ("plain", WORDS, "found none"),
        ("{text} {mask}", {"a": "wet"}, "at least two labels, found 1"),
    ],
)
def test_a_template_that_does_not_work_is_refused(template: str, words: dict[str, str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        Prompt(template, words)
    with pytest.raises(ValidationError, match=says):
        ModelConfig(name="x", task="prompt", prompt=template, words=words)


def test_words_and_room_are_checked(zoo: Any) -> None:
    def coded(kind: str, words: dict[str, str], template: str = "{text} It is {mask}.", **more: Any) -> None:
        encode_task(
            zoo(kind), ["it"], task="prompt", prompt=Prompt(template, words), labels=[next(iter(words))], **more
        )

    with pytest.raises(UsageError, match=r"'rainswet' for label 'no' is \d tokens behind ' It is '"):
        coded("wordpiece", {"yes": "wet", "no": "rainswet"})
    with pytest.raises(UsageError, match="for label 'yes' is 4 tokens behind ' '"):
        PromptCoder.of(byte_tokenizer(), Prompt("{text} {mask}", {"yes": "wet", "no": "a"}))
    with pytest.raises(UsageError, match="labels 'yes' and 'no' have the same token"):
        coded("wordpiece", {"yes": "wet", "no": "WET"})
    with pytest.raises(UsageError, match="is not in the vocabulary"):
        coded("wordpiece", {"yes": "wet", "no": "\u9999"})
    with pytest.raises(UsageError, match=r"no field may stand behind \{mask\}"):
        coded("bpe", WORDS, "It is {mask}: {text}")
    with pytest.raises(UsageError, match="prompt: 6 tokens without any text, and max_length is 6"):
        coded("wordpiece", WORDS, max_length=6)
    with pytest.raises(UsageError, match=r"task prompt needs model\.prompt"):
        encode_task(zoo("bpe"), ["it"], task="prompt")


def test_settings_of_a_prompt_go_together() -> None:
    for wrong in (
        {"task": "prompt"},
        {"task": "prompt", "prompt": "{text} {mask}"},
        {"task": "classify", "prompt": "{text} {mask}", "words": WORDS},
    ):
        with pytest.raises(ValidationError, match="prompt and words belong to task prompt"):
            ModelConfig(name="x", **wrong)  # type: ignore[arg-type]
    with pytest.raises(ValidationError, match="they are the keys of words"):
        ModelConfig(name="x", task="prompt", prompt="{text} {mask}", words=WORDS, labels=("wet", "dry"))
    assert ModelConfig(name="x", task="prompt", prompt="{text} {mask}", words=WORDS).build().words == WORDS


def test_the_model_must_fit_the_tokenizer(zoo: Any, tmp_path: Path) -> None:
    cases = ("wordpiece", "bpe", "no mask token, so a causal"), ("bpe", "roberta", "a mask token, so a masked")
    for kind, other, says in cases:
        (tmp_path / "shape.json").write_text(SHAPES[kind])
        with pytest.raises(UsageError, match=f"the tokenizer has {says} model is wanted"):
            load_model(str(tmp_path / "shape.json"), zoo(other), task="prompt", prompt=PROMPT)


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_an_exported_model_knows_its_prompt(zoo: Any, tmp_path: Path, kind: str) -> None:
    prompt = Prompt(PROMPT.template, {"wet": "wet", "dry": "rains"})  # not in the order a file would sort them
    model = model_of(kind, zoo, tmp_path, prompt)
    export(model, zoo(kind), tmp_path / "model")
    plain: PreTrainedModel = (AutoModelForCausalLM if kind == "bpe" else AutoModelForMaskedLM).from_pretrained(
        str(tmp_path / "model")
    )
    assert type(plain) is type(model)
    again, t = load_exported(tmp_path / "model")
    told = saved_task(again.config)
    assert told == {"task": "prompt", "prompt": prompt}
    assert list(told["prompt"].words) == ["wet", "dry"]
    records = [Record(f"r{i}", "r", 0, len(x), x, label=y) for i, (x, y) in enumerate(zip(TEXTS, LABELS, strict=True))]
    before = HeldOut.of(zoo(kind), records, 40, task="prompt", prompt=prompt).utility(model)
    after = HeldOut.of(t, records, 40, **told).utility(again)
    assert after.accuracy == before.accuracy
    assert after.perplexity == pytest.approx(before.perplexity, rel=1e-6)
    assert (after.tokens, after.accuracy is not None) == (3, True)


def test_classes_are_saved_in_their_order(zoo: Any, tmp_path: Path) -> None:
    names = [f"n{i}" for i in range(12)]  # a file sorts "10" before "2"
    (tmp_path / "bert.json").write_text(SHAPES["wordpiece"])
    model = load_model(str(tmp_path / "bert.json"), zoo("wordpiece"), task="classify", labels=names)
    export(model, zoo("wordpiece"), tmp_path / "model")
    assert saved_task(load_exported(tmp_path / "model")[0].config) == {"task": "classify", "names": tuple(names)}
    assert saved_task(model_of("bpe", zoo, tmp_path).config)["task"] == "prompt"
