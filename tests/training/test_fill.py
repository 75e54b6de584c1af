"""Filled skeletons: what is made up follows the model, its length a coin, and nothing else of the record changes."""

from __future__ import annotations

import inspect
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from tiny import TOKENIZER, model
from transformers import GPT2Config, GPT2LMHeadModel

from taciturn.errors import UsageError
from taciturn.models.hf import load_model
from taciturn.models.masking import Masking
from taciturn.models.sequences import end_id, mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import Tokens, encode_all
from taciturn.text.chat import join
from taciturn.text.document import MASK
from taciturn.training import fill
from taciturn.training.fill import filled

MASK_ID, END = mask_id(TOKENIZER), end_id(TOKENIZER)
TEXTS = [
    f"I am {MASK} from {MASK}, call {MASK}",
    "nothing hidden",
    MASK,
    f"{MASK} said",
    f"{MASK}{MASK} at the end {MASK}",
]
DATA = encode_all(TOKENIZER, TEXTS)
EVERY, FIRST = np.arange(len(DATA)), np.array([0])
FALSE_ALARM = 1e-6


def sharp(seed: int = 0) -> Any:
    """A model whose predictions depend on what it has read: of an untrained one they hardly do."""
    m = model(seed)
    with torch.no_grad():
        for p in m.parameters():
            p.mul_(8)
    return m


def gpt2() -> Any:
    torch.manual_seed(0)
    size = {"vocab_size": len(TOKENIZER), "n_positions": 64, "n_embd": 16, "n_layer": 2, "n_head": 2}
    m = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=END, eos_token_id=END, initializer_range=0.5))
    return m.train()


MODELS = {
    "lstm": sharp,
    "awd-lstm": lambda: load_model("awd-lstm", TOKENIZER, 0, {"embedding_size": 8, "hidden_size": 8, "num_layers": 2}),
    "gpt2": gpt2,
}


def told(shares: dict[int, float]) -> Any:
    """A model that predicts ``shares`` whatever it has read."""
    m = model()
    with torch.no_grad():
        m.decoder.weight.zero_()
        m.decoder.bias.fill_(-1e9)
        for i, share in shares.items():
            m.decoder.bias[i] = float(np.log(share))
    return m


def lists(tokens: Tokens) -> list[list[int]]:
    return [tokens[i].tolist() for i in range(len(tokens))]


def flags(tokens: Tokens) -> list[list[bool]]:
    return [tokens.targets(i, MASK_ID).tolist() for i in range(len(tokens))]


def one_by_one(m: Any, ids: list[int], seed: tuple[int, ...], longest: int) -> list[int]:
    """The slow way, one record and slot at a time, each from a pass over all that precedes it."""
    random = np.random.Generator(np.random.PCG64(list(seed)))
    masks = [t for t, i in enumerate(ids) if t and i == MASK_ID]
    lengths = random.integers(1, longest + 1, len(masks)).tolist()
    uniforms = random.random((len(masks), longest))
    out, starts = [], []
    for t, i in enumerate(ids):
        if t in masks:
            starts.append(len(out))
            out += [MASK_ID] * lengths[len(starts) - 1]
        else:
            out.append(i)
    for j in range(longest):
        before = list(out)
        for k, start in enumerate(starts):
            if j < lengths[k]:
                with torch.no_grad():
                    logits = m(input_ids=torch.tensor([before[: start + j]])).logits[0, -1].double()
                logits[[MASK_ID, END]] = -torch.inf
                shares = logits.softmax(0).cumsum(0)
                out[start + j] = int((shares <= uniforms[k, j] * shares[-1]).sum())
    return out


@pytest.mark.parametrize("name", MODELS)
def test_all_masks_at_once_are_the_slow_way(name: str) -> None:
    m = MODELS[name]().eval()
    out = filled(m, DATA, EVERY, MASK_ID, (3, 1), longest=4)
    for row in (0, 3, 4):
        assert out[row].tolist() == one_by_one(m, DATA[row].tolist(), (3, 1, row), 4)


def test_a_model_whose_head_is_no_module_is_read_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    m = sharp()
    expected = lists(filled(m, DATA, EVERY, MASK_ID, (1,)))
    monkeypatch.setattr(m, "get_output_embeddings", lambda: None)
    assert lists(filled(m, DATA, EVERY, MASK_ID, (1,))) == expected


def test_what_is_made_up_follows_the_models_distribution() -> None:
    """5,000 draws from seven ids against chi-square; false alarm 1e-6. Masks and the end are left out, not redrawn."""
    shares = {65: 0.3, 66: 0.25, 67: 0.15, 68: 0.05, 69: 0.02, 70: 0.01, 71: 0.02, MASK_ID: 0.1, END: 0.1}
    tokens = encode_all(TOKENIZER, [f"x{MASK}" * 50] * 100)
    out = filled(told(shares), tokens, np.arange(100), MASK_ID, (11,), longest=1)
    x, counts = TOKENIZER.convert_tokens_to_ids("x"), np.bincount(out.flat, minlength=len(TOKENIZER))
    assert counts[x] == 5000
    assert counts[END] == 200  # the ends every record has
    wanted = [share for i, share in shares.items() if i < 72]
    found = counts[65:72]
    assert found.sum() == 5000
    assert chisquare(found, 5000 * np.array(wanted) / sum(wanted)).pvalue > FALSE_ALARM


def test_lengths_are_uniform_and_have_nothing_to_do_with_what_stands_there() -> None:
    """4,000 masks behind two different words, against chi-square; false alarm 1e-6 each."""
    a, b = encode_all(TOKENIZER, ["a", "bb"])[0][1:-1], encode_all(TOKENIZER, ["bb"])[0][1:-1]
    assert len(a) == 1
    assert len(b) == 2
    for text in ("a", "bb"):
        tokens = encode_all(TOKENIZER, [f"{text}{MASK}" * 40] * 100)
        out = filled(told({90: 1.0}), tokens, np.arange(100), MASK_ID, (7,), longest=4)
        runs = "".join("z" if i == 90 else " " for i in out.flat).split()
        assert len(runs) == 4000
        counts = np.bincount([len(run) for run in runs], minlength=5)
        assert counts[0] == 0
        assert len(counts) == 5
        assert chisquare(counts[1:]).pvalue > FALSE_ALARM


@given(
    records=st.lists(st.lists(st.one_of(st.just(MASK_ID), st.integers(0, 199)), max_size=12), min_size=1, max_size=5),
    longest=st.integers(1, 4),
    loss=st.booleans(),
    seed=st.integers(0, 5),
)
def test_the_skeleton_is_all_still_there(records: list[list[int]], longest: int, loss: bool, seed: int) -> None:
    """What is not a mask stays, in its order and with its flag; a mask becomes 1 … longest ids."""
    sequences = [[END, *ids, *([END] if set(ids) - {MASK_ID} else [])] for ids in records]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in sequences])]).astype(np.int64)
    tokens = Tokens(np.array([i for s in sequences for i in s], np.int32), offsets)
    out = filled(told({200: 0.5, 201: 0.5}), tokens, np.arange(len(records)), MASK_ID, (seed,), longest, loss)
    assert out.flat.dtype == np.int32
    for sequence, found, scored in zip(sequences, lists(out), flags(out), strict=True):
        if set(sequence[1:]) <= {MASK_ID}:
            assert found == sequence
            assert not any(scored)
            continue
        pattern = "".join(f"[{chr(200)}{chr(201)}]{{1,{longest}}}" if i == MASK_ID else f"\\U{i:08x}" for i in sequence)
        assert re.fullmatch(pattern, "".join(map(chr, found)))
        assert scored == [t > 0 and (loss or i not in (200, 201)) for t, i in enumerate(found)]


def test_the_same_seed_makes_up_the_same_and_another_does_not() -> None:
    m = sharp()
    first = lists(filled(m, DATA, EVERY, MASK_ID, (1, 2)))
    assert lists(filled(m, DATA, EVERY, MASK_ID, (1, 2))) == first
    others = [lists(filled(m, DATA, EVERY, MASK_ID, (1, s))) for s in range(3, 6)]
    assert all(other != first for other in others)


@pytest.mark.parametrize("budget", [1, 30, 100])
def test_neither_the_cut_into_passes_nor_the_other_rows_matter(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    m = sharp()
    whole = filled(m, DATA, EVERY, MASK_ID, (5,))
    assert lists(filled(m, DATA, EVERY, MASK_ID, (5,), token_budget=budget)) == lists(whole)
    backwards = filled(m, DATA, EVERY[::-1], MASK_ID, (5,))
    assert lists(backwards)[::-1] == lists(whole)
    assert lists(filled(m, DATA, np.array([4]), MASK_ID, (5,))) == [whole[4].tolist()]
    monkeypatch.setattr(fill, "AT_A_TIME", budget)  # nor how many distributions are held at once
    assert lists(filled(m, DATA, EVERY, MASK_ID, (5,))) == lists(whole)


def test_only_the_skeleton_the_model_and_coins_go_in() -> None:
    """No text, no span, no type: there is no parameter through which a secret could come."""
    names = list(inspect.signature(filled).parameters)
    assert names == ["model", "tokens", "rows", "mask", "seed", "longest", "loss", "token_budget", "limit", "never"]


def test_special_ids_are_never_made_up() -> None:
    m = told({MASK_ID: 0.5, END: 0.4, 65: 0.04, 66: 0.06})
    out = filled(m, DATA, EVERY, MASK_ID, (1,), never=[66])
    for row in (0, 3, 4):
        before, after = DATA[row].tolist(), out[row].tolist()
        assert MASK_ID not in after
        assert after.count(END) == 2
        assert after.count(66) == before.count(66)


def test_made_up_tokens_are_targets_only_when_asked() -> None:
    m = told({90: 1.0})
    without, with_loss = (filled(m, DATA, EVERY, MASK_ID, (2,), loss=loss) for loss in (False, True))
    assert lists(without) == lists(with_loss)
    for ids, a, b in zip(lists(without), flags(without), flags(with_loss), strict=True):
        made_up = [i == 90 for i in ids]
        assert a[1:] == [i not in (90, MASK_ID) for i in ids[1:]]
        assert [x or y for x, y in zip(a, made_up, strict=True)] == b
        assert a[0] is b[0] is False


def test_of_a_conversation_only_what_the_assistant_says_is_learned() -> None:
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\\n' }}{% endfor %}"
    turns = [("user", f"I am {MASK}"), ("assistant", f"hi {MASK}"), ("user", f"{MASK}"), ("assistant", MASK)]
    tokens = encode_all(tokenizer, [join(turns)], loss_on="assistant")
    without, with_loss = (filled(told({200: 1.0}), tokens, FIRST, MASK_ID, (2,), loss=loss) for loss in (False, True))
    assert sum(flags(without)[0]) == sum(flags(tokens)[0])
    learned = [t for t, (a, b) in enumerate(zip(*flags(without), *flags(with_loss), strict=True)) if a != b]
    turn = np.cumsum(without.flat == tokenizer.convert_tokens_to_ids("\u010a"))
    made_up = np.flatnonzero(without.flat == 200)
    assert set(turn[made_up]) == {0, 1, 2, 3}
    assert learned == [t for t in made_up if turn[t] in (1, 3)]


def test_a_mask_with_nothing_before_it_stays() -> None:
    tokens = Tokens(np.array([MASK_ID, 65, MASK_ID, 66], np.int32), np.array([0, 4]))
    out = filled(told({200: 1.0}), tokens, FIRST, MASK_ID, (1,), longest=1, loss=True)
    assert lists(out) == [[MASK_ID, 65, 200, 66]]
    assert flags(out) == [[False, True, True, True]]


def test_records_without_masks_need_no_pass() -> None:
    m, calls = model(), []
    m.register_forward_hook(lambda *_: calls.append(1))
    out = filled(m, DATA, np.array([2, 1]), MASK_ID, (1,))
    assert lists(out) == [DATA[2].tolist(), DATA[1].tolist()]
    assert flags(out) == [[False, False], flags(DATA)[1]]
    assert not calls
    assert len(filled(m, DATA, np.array([], np.int64), MASK_ID, (1,))) == 0
    filled(m, DATA, EVERY, MASK_ID, (1,), longest=3)
    assert len(calls) <= 3


def test_labels_follow_their_rows_and_growth_is_cut() -> None:
    tokens = replace(DATA, labels=np.array([4, 3, 2, 1, 0]))
    out = filled(sharp(), tokens, np.array([4, 0, 1]), MASK_ID, (1,), longest=3, limit=int(DATA.lengths[0]))
    assert out.labels is not None
    assert out.labels.tolist() == [0, 4, 3]
    free = filled(sharp(), tokens, np.array([4, 0, 1]), MASK_ID, (1,), longest=3)
    assert lists(out) == [ids[: DATA.lengths[0]] for ids in lists(free)]
    assert flags(out) == [some[: DATA.lengths[0]] for some in flags(free)]
    assert out.truncated == sum(len(ids) > DATA.lengths[0] for ids in lists(free)) > 0


def test_a_model_gets_no_more_tokens_than_it_has_positions() -> None:
    tokens = encode_all(TOKENIZER, [f"{MASK}a" * 31])
    out = filled(gpt2(), tokens, np.array([0]), MASK_ID, (1,))
    assert out.lengths.tolist() == [64]
    assert MASK_ID not in out.flat


def test_neither_random_state_nor_mode_nor_gradients_change() -> None:
    m = model().train()
    m.layers[0].eval()  # one part of it is frozen, say
    modes = [module.training for module in m.modules()]
    state = torch.get_rng_state()
    legacy = np.random.get_state()[1].copy()
    filled(m, DATA, EVERY, MASK_ID, (1,))
    assert torch.equal(torch.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], legacy)
    assert [module.training for module in m.modules()] == modes
    assert all(p.grad is None and p.requires_grad for p in m.parameters())
    assert not m.decoder._forward_pre_hooks
    with pytest.raises(IndexError):
        filled(m, replace(DATA, flat=DATA.flat + 10_000), EVERY, MASK_ID + 10_000, (1,))
    assert [module.training for module in m.modules()] == modes
    assert not m.decoder._forward_pre_hooks


def test_dropout_has_no_part_in_it() -> None:
    m = sharp()
    assert m.dropout.p > 0
    assert lists(filled(m.train(), DATA, EVERY, MASK_ID, (1,))) == lists(filled(m.eval(), DATA, EVERY, MASK_ID, (1,)))


def test_what_cannot_be_filled_is_refused() -> None:
    hidden = replace(DATA, masking=Masking(1, (0,), 100))
    with pytest.raises(UsageError, match=r"expected a causal language model.*task = 'causal'"):
        filled(model(), hidden, EVERY, MASK_ID, (1,))
    with pytest.raises(UsageError, match="at least 1 token, found 0"):
        filled(model(), DATA, EVERY, MASK_ID, (1,), longest=0)
