"""Tokens and losses: one mask id, nothing scored that should not be, the same value alone and in a batch."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.models.evaluate import utility
from taciturn.models.hf import export, load_exported, load_model
from taciturn.models.loss import PASS_COST, collate, microbatches, perplexity, record_losses, score
from taciturn.models.tokens import (
    bpe_tokenizer,
    byte_tokenizer,
    encode,
    encode_all,
    load_tokenizer,
    mask_id,
    start_id,
    targets,
)
from taciturn.text.document import MASK, Record
from taciturn.text.spans import Span

PUBLIC = [
    "Good morning, how can I help you today?",
    "I would like to track my parcel, please.",
    "naïve café ⭢ 你好",
] * 20


def small_gpt2(tokenizer: Any, tmp: Path) -> Any:
    config = tmp / "gpt2.json"
    config.write_text('{"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64}')
    return load_model(str(config), tokenizer, seed=3)


@pytest.fixture(scope="module")
def bpe() -> Any:
    return bpe_tokenizer(PUBLIC, 400)


@pytest.mark.parametrize("make", [byte_tokenizer, lambda: bpe_tokenizer(PUBLIC, 400)])
@settings(max_examples=60, deadline=None)
@given(left=st.text(max_size=20), right=st.text(max_size=20))
def test_text_around_a_mask_is_coded_as_without_it(make: Any, left: str, right: str) -> None:
    tokenizer = _cached(make)
    left, right = (part.encode("utf-8", "ignore").decode().replace(MASK, "") for part in (left, right))
    ids = encode(tokenizer, left + MASK + right).tolist()
    assert ids.count(mask_id(tokenizer)) == 1
    at = ids.index(mask_id(tokenizer))
    if not (left or right):
        assert ids == [start_id(tokenizer), mask_id(tokenizer)]
        return
    assert ids[1:at] == (encode(tokenizer, left).tolist()[1:-1] if left else [])
    assert ids[at + 1 : -1] == (encode(tokenizer, right).tolist()[1:-1] if right else [])
    assert ids[-1] == tokenizer.eos_token_id


_made: dict[Any, Any] = {}


def _cached(make: Any) -> Any:
    return _made.setdefault(make, make())


def test_special_words_in_text_stay_text(bpe: Any) -> None:
    ids = encode(bpe, "a<|endoftext|>b")
    assert (ids == bpe.eos_token_id).sum() == 2  # the start and the end, not the one that was spelled out


def test_a_mask_only_record_has_no_target(bpe: Any) -> None:
    ids = encode(bpe, MASK)
    assert ids.tolist() == [start_id(bpe), mask_id(bpe)]
    assert not targets(ids, mask_id(bpe)).any()


def test_digits_are_single_tokens(bpe: Any) -> None:
    assert len(encode(bpe, "341752")) == 6 + 2


def test_the_vocabulary_knows_nothing_that_is_not_public() -> None:
    a, b = bpe_tokenizer(PUBLIC, 400), bpe_tokenizer([*PUBLIC, MASK], 400)
    assert a.get_vocab() == b.get_vocab()


def test_a_tokenizer_must_be_chosen_for_a_model_without_one() -> None:
    with pytest.raises(UsageError, match="bpe:4096"):
        load_tokenizer("auto", "lstm")
    with pytest.raises(UsageError, match="bpe:N"):
        load_tokenizer("bpe:many", "lstm")


@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
def test_a_sentence_scores_the_same_alone_and_in_a_padded_batch(kind: str, bpe: Any, tmp_path: Path) -> None:
    model = load_model("lstm", bpe, seed=1) if kind == "lstm" else small_gpt2(bpe, tmp_path)
    texts = [
        "Good morning",
        "I would like to track my parcel, please, and all the others too.",
        MASK,
        "x",
        f"a {MASK} b",
    ]
    nll, count = score(model, bpe, texts)
    for i, text in enumerate(texts):
        alone, n = score(model, bpe, [text])
        assert n[0] == count[i]
        assert alone[0] == pytest.approx(nll[i], abs=2e-5)
    assert count[2] == 0
    assert nll[2] == 0.0


def test_the_loss_is_cross_entropy_and_so_is_its_gradient(bpe: Any, tmp_path: Path) -> None:
    model = small_gpt2(bpe, tmp_path).eval()
    tokens = encode_all(bpe, ["Good morning to you", f"track {MASK} now", "x"])
    batch = collate(tokens, np.arange(3), mask_id(bpe))
    ours = record_losses(model, batch)
    ours.sum().backward()
    grads = {n: p.grad.clone() for n, p in model.named_parameters()}
    model.zero_grad()
    logits = model(input_ids=batch.input_ids).logits[:, :-1]
    nll = torch.nn.functional.cross_entropy(logits.transpose(1, 2), batch.input_ids[:, 1:], reduction="none")
    want = (nll * batch.weights).sum(1)
    want.sum().backward()
    torch.testing.assert_close(ours, want.detach(), rtol=1e-5, atol=1e-5)
    for n, p in model.named_parameters():
        torch.testing.assert_close(grads[n], p.grad, rtol=1e-4, atol=1e-6)


@settings(max_examples=50, deadline=None)
@given(lengths=st.lists(st.integers(2, 40), min_size=1, max_size=30), budget=st.integers(1, 200))
def test_microbatches_hold_every_record_once_within_the_budget(lengths: list[int], budget: int) -> None:
    sizes = np.array(lengths)
    parts = microbatches(np.arange(len(sizes)), sizes, budget)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(sizes)))
    assert all(len(part) == 1 or len(part) * sizes[part].max() <= budget for part in parts)


@settings(max_examples=40, deadline=None)
@given(lengths=st.lists(st.integers(1, 300), min_size=1, max_size=9))
def test_microbatches_waste_least(lengths: list[int]) -> None:
    def waste(cuts: list[list[int]]) -> int:
        return sum(len(part) * max(part) + PASS_COST for part in cuts)

    sizes = np.array(lengths)
    ordered = sorted(lengths)
    every = (
        [ordered[a:b] for a, b in itertools.pairwise([0, *chosen, len(ordered)])]
        for k in range(len(ordered))
        for chosen in itertools.combinations(range(1, len(ordered)), k)
    )
    assert waste([sizes[p].tolist() for p in microbatches(np.arange(len(sizes)), sizes, 10**9)]) == min(
        map(waste, every)
    )


@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
def test_an_exported_model_loads_with_the_auto_classes_and_scores_the_same(kind: str, bpe: Any, tmp_path: Path) -> None:
    model = load_model("lstm", bpe, seed=1) if kind == "lstm" else small_gpt2(bpe, tmp_path)
    export(model, bpe, tmp_path / "model")
    again, tokenizer = load_exported(tmp_path / "model")
    texts = ["Good morning", f"track {MASK} 42"]
    assert perplexity(again, tokenizer, texts) == pytest.approx(perplexity(model, bpe, texts), rel=1e-5)
    ids = torch.tensor([encode(bpe, "Good")[:-1].tolist()])
    out = again.generate(ids, max_new_tokens=4, do_sample=False, pad_token_id=tokenizer.eos_token_id)
    assert out.shape[1] <= ids.shape[1] + 4


def test_a_mask_new_to_a_vocabulary_starts_as_the_mean_row(tmp_path: Path) -> None:
    plain = bpe_tokenizer(PUBLIC, 400)
    model = small_gpt2(plain, tmp_path)
    rows = model.get_input_embeddings().weight.shape[0]
    export(model, plain, tmp_path / "model")
    plain.add_tokens(["<extra>"])
    grown = load_model(str(tmp_path / "model"), plain)
    weight = grown.get_input_embeddings().weight
    assert weight.shape[0] == rows + 1
    torch.testing.assert_close(weight[-1], weight[:-1].mean(0))


@pytest.mark.parametrize("text", ["naïve 341752 ⭢ 你好 end", "my number is 341752."])
def test_utility_leaves_out_every_token_that_touches_a_secret(text: str, bpe: Any) -> None:
    model = load_model("lstm", bpe, seed=1)
    at = text.index("341752")
    plain = Record("r#0", "r", 0, len(text), text)
    marked = Record("r#0", "r", 0, len(text), text, gold=(Span(at + 2, at + 6),))
    a, b = utility(model, bpe, [plain]), utility(model, bpe, [marked])
    assert a.perplexity == b.perplexity
    assert a.tokens_outside == a.tokens
    assert b.tokens_outside == b.tokens - 4  # digits are single tokens
    everything = Record("r#0", "r", 0, len(text), text, gold=(Span(0, len(text)),))
    assert utility(model, bpe, [everything]).tokens_outside == 1  # the end of text
    nll, count = score(model, bpe, [text])
    assert a.perplexity == pytest.approx(math.exp(nll[0] / count[0]), rel=1e-5)
