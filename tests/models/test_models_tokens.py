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
from taciturn.models.held_out import utility
from taciturn.models.hf import export, load_exported, load_model
from taciturn.models.loss import PASS_COST, collate, microbatches, perplexity, record_losses, score
from taciturn.models.sequences import end_id, mask_id, start_id, targets, token_ranges
from taciturn.models.tokenizers import bpe_tokenizer, byte_tokenizer, load_tokenizer
from taciturn.models.tokens import Tokens, encode, encode_all
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


KINDS = ("bytes", "bpe", "wordpiece", "roberta", "llama", "gpt2")
BYTE_LEVEL = ("bytes", "bpe", "roberta", "gpt2")
anything = st.text(alphabet=st.characters(exclude_categories=("Cs",)), max_size=20)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(left=anything, right=anything)
def test_p30_words_beside_a_mask_are_coded_as_beside_anything_else(zoo: Any, kind: str, left: str, right: str) -> None:
    """Field case P30: the ids on either side of a mask are those on either side of "☃", which no vocabulary here joins to
    anything, so that neither the mask nor that it is an added token changes them."""
    t = zoo(kind)
    left, right = (part.replace(MASK, "").replace("\x1e", "") for part in (left, right))
    masked = encode(t, left + MASK + right).tolist()
    assert masked.count(mask_id(t)) == 1
    if not (left or right):
        assert masked == [start_id(t), mask_id(t)]
        return
    at = masked.index(mask_id(t))
    assert masked[-1] == end_id(t)
    snowman = encode(t, left + "☃" + right).tolist()
    if kind != "wordpiece":  # there "☃" may be a part of an unknown word
        assert snowman[:at] == masked[:at]
        assert snowman[len(snowman) - len(masked) + at + 1 :] == masked[at + 1 :]
    if kind != "llama":  # there a text's first word has a blank before it
        assert masked[1:at] == (encode(t, left).tolist()[1:-1] if left else [])
        assert masked[at + 1 : -1] == (encode(t, right).tolist()[1:-1] if right else [])


@pytest.mark.parametrize("kind", KINDS)
def test_p30_the_field_case_itself(zoo: Any, kind: str) -> None:
    t = zoo(kind)
    ids = encode(t, f"my value in {MASK} dollars").tolist()
    at = ids.index(mask_id(t))
    plain = encode(t, "my value in 50 dollars").tolist()
    assert t.decode(plain[-len(ids[at + 1 :]) :], skip_special_tokens=True).strip() == "dollars"
    assert ids[at + 1 :] == plain[-len(ids[at + 1 :]) :]
    alone = encode(t, "my value in").tolist()[:-1]
    assert ids[: len(alone)] == alone == plain[: len(alone)]
    assert len(ids[len(alone) : at]) <= 1  # the blank before the mask


def inside(t: Any, text: str, start: int, end: int) -> list[bool]:
    at = token_ranges(t, text)
    return ((at[:, 0] < end) & (start < at[:, 1])).tolist()


@pytest.mark.parametrize("kind", BYTE_LEVEL)
@settings(max_examples=80, deadline=None)
@given(text=anything.filter(bool), data=st.data())
def test_p31_a_token_with_one_byte_of_a_span_is_inside(zoo: Any, kind: str, text: str, data: st.DataObject) -> None:
    """Field case P31, on random Unicode and spans. The oracle counts bytes: each letter of a byte-level token is one."""
    t = zoo(kind)
    text = text.replace(MASK, "")
    start = data.draw(st.integers(0, max(len(text) - 1, 0)))
    end = data.draw(st.integers(start + 1, len(text) + 1))
    first, last = len(text[:start].encode()), len(text[:end].encode())
    wanted, at = [], 0
    for token in t.convert_ids_to_tokens(encode(t, text).tolist()[1:-1] if text else []):
        wanted.append(at < last and first < at + len(token) and first < last)
        at += len(token)
    assert at == len(text.encode())
    assert inside(t, text, start, end) == ([False, *wanted, False] if text else [False])


@pytest.mark.parametrize("kind", ["wordpiece", "llama"])
@settings(max_examples=80, deadline=None)
@given(text=st.text("abz 09.,", min_size=1, max_size=20), data=st.data())
def test_p31_where_tokens_are_not_bytes(zoo: Any, kind: str, text: str, data: st.DataObject) -> None:
    """The oracle lays the tokens side by side over the text: "##" is no letter, "▁" is a blank, or nothing at the start."""
    t = zoo(kind)
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    found = inside(t, text, start, end)
    at = 0
    for token, is_in in zip(t.convert_ids_to_tokens(encode(t, text).tolist()[1:-1]), found[1:-1], strict=True):
        letters = token.removeprefix("##") if kind == "wordpiece" else token.replace("▁", " ")
        if kind == "wordpiece":
            at += len(text[at:]) - len(text[at:].lstrip(" "))
        elif at == 0:
            letters = letters if text.startswith(" ") else letters.removeprefix(" ")
        assert text[at : at + len(letters)] == letters
        if letters:
            assert is_in == (at < end and start < at + len(letters))
        at += len(letters)


@pytest.mark.parametrize("text", ["A, naïve secret sentence.", "i ⭢ secret", "\U0001f600 secret", "n\u0303 secret"])
@pytest.mark.parametrize("kind", KINDS)
def test_p31_no_offset_drifts_behind_a_letter_of_many_bytes(zoo: Any, kind: str, text: str) -> None:
    t = zoo(kind)
    at = text.index("secret")
    ids = encode(t, text)
    found = np.array(inside(t, text, at, at + 6))
    assert "secret" in t.decode(ids[found]).replace(" ", "")
    assert "secre" not in t.decode(ids[~found]).replace(" ", "")
    assert len(found) == len(ids)


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.one_of(st.just(MASK), st.just("\x1e"), st.text(max_size=4)), max_size=8))
def test_every_token_has_a_place(zoo: Any, kind: str, parts: list[str]) -> None:
    t = zoo(kind)
    text = "".join(parts).encode("utf-8", "ignore").decode()
    ids, at = encode(t, text), token_ranges(t, text)
    assert at.shape == (len(ids), 2)
    assert all(text[a:b] == MASK for a, b in at[ids == mask_id(t)])


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
    want = (nll * batch.weights[:, :-1]).sum(1)
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


def test_p32_padding_with_the_end_token_is_never_scored_and_the_real_end_is(bpe: Any, tmp_path: Path) -> None:
    """Field case P32. The oracle scores each sentence by itself, without padding, with the model's own loss."""
    model = small_gpt2(bpe, tmp_path).eval()
    bpe.pad_token = bpe.eos_token
    texts = ["Good morning", "I would like to track my parcel, please, and all the others too.", "x"]
    batch = collate(encode_all(bpe, texts), np.arange(3), mask_id(bpe))
    assert batch.weights.sum(1).tolist() == [len(encode(bpe, text)) - 1 for text in texts]
    total, count = 0.0, 0
    for text in texts:
        ids = torch.from_numpy(encode(bpe, text).astype(np.int64))[None]
        assert ids[0, -1] == bpe.pad_token_id
        with torch.no_grad():
            loss = model(input_ids=ids, labels=ids).loss
        total, count = total + float(loss) * (ids.shape[1] - 1), count + ids.shape[1] - 1
        alone, n = score(model, bpe, [text])
        assert (alone[0], n[0]) == (pytest.approx(float(loss) * (ids.shape[1] - 1), rel=1e-4), ids.shape[1] - 1)
    assert perplexity(model, bpe, texts) == pytest.approx(math.exp(total / count), rel=1e-4)


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


@given(
    st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=7), min_size=1, max_size=6),
    st.booleans(),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_records_are_put_together_as_one_by_one(sequences: Any, scored: bool, pairs: bool, random: Any) -> None:
    """Padding on the right with nothing scored; targets are the next tokens; rows may come in any order, and twice."""
    mask, lengths = 3, np.array([len(each) for each in sequences])
    flat = np.array([token for each in sequences for token in each], np.int32)
    marks = np.array([random.random() < 0.5 for _ in flat])
    tokens = Tokens(
        flat,
        np.concatenate([[0], np.cumsum(lengths)]),
        scored=marks if scored else None,
        segments=marks.astype(np.int8) if pairs else None,
    )
    rows = np.array([random.randrange(len(sequences)) for _ in range(4)])
    batch = collate(tokens, rows, mask)
    width = max(2, int(lengths[rows].max()))
    assert batch.input_ids.shape == (4, width)
    for b, row in enumerate(rows):
        n, its = lengths[row], tokens.targets(int(row), mask)
        pad = [0] * (width - n)
        assert batch.input_ids[b].tolist() == [*sequences[row], *pad]
        assert batch.attention[b].tolist() == [1] * n + pad
        assert batch.targets[b].tolist() == [*sequences[row][1:], 0, *pad]
        assert batch.weights[b].tolist() == [*its[1:].astype(float), 0.0, *pad]
        if batch.segments is not None:
            assert batch.segments[b].tolist() == [*tokens.segments[tokens.offsets[row] :][:n], *pad]  # type: ignore[index]
