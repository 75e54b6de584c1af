"""Exact ranks: the trie walk equals naive scoring, whatever the tokenizer does to the digits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from leaks import told
from taciturn.auditing import nulls
from taciturn.auditing.canaries.alphabets import NAMED
from taciturn.auditing.canaries.templates import Template, draw
from taciturn.auditing.controls import TEMPLATE, overfitted
from taciturn.auditing.exposure import likelihood
from taciturn.auditing.exposure.exposure import exposure, positive_control
from taciturn.auditing.exposure.likelihood import BudgetSpent, candidate_scores, plain_scores
from taciturn.auditing.exposure.ranking import midranks, ranks
from taciturn.auditing.exposure.trie import build, candidate_trie, encode_candidates
from taciturn.auditing.membership.membership import _positive_aucs
from taciturn.errors import TaciturnError, UsageError
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokenizers import bpe_tokenizer, byte_tokenizer, with_mask
from taciturn.models.tokens import encode

AGREE = 2e-5  # nats


def merging_tokenizer() -> Any:
    """A BPE that joins digits, and the space before them to the first one."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()), show_progress=False
    )
    tokenizer.train_from_iterator([f"no {i % 50} id: {i * 37 % 1000:03d} {i % 12}{i % 7}" for i in range(900)], trainer)
    return with_mask(PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|endoftext|>"))


TOKENIZERS = {"digits": byte_tokenizer, "merging": merging_tokenizer}


def lstm(vocabulary: int, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return LSTMForCausalLM(
        LSTMConfig(vocabulary, embedding_size=24, hidden_size=32, num_layers=2, dropout=0.3, initializer_range=0.8)
    ).train()


def gpt2(vocabulary: int, seed: int = 0) -> Any:
    from transformers import AutoModelForCausalLM, GPT2Config

    torch.manual_seed(seed)
    config = GPT2Config(vocab_size=vocabulary, n_positions=64, n_embd=32, n_layer=2, n_head=4, initializer_range=0.3)
    config.bos_token_id = config.eos_token_id = 0
    return AutoModelForCausalLM.from_config(config).train()


def llama(vocabulary: int, seed: int = 0) -> Any:
    from transformers import AutoModelForCausalLM, LlamaConfig

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
        initializer_range=0.3,
    )
    config.bos_token_id = config.eos_token_id = 0
    return AutoModelForCausalLM.from_config(config)


MODELS = {"lstm": lstm, "gpt2": gpt2, "llama": llama}


def naive(model: Any, tokenizer: Any, template: Template) -> np.ndarray:
    """−Σ log p over the whole text of every candidate, one ordinary batch per sequence length, in float64 sums."""
    sequences = [encode(tokenizer, template.prefix + template.secret(i))[:-1] for i in range(template.size)]
    out = np.empty(template.size)
    model = model.eval()
    with torch.no_grad():
        for length in {len(s) for s in sequences}:
            rows = [i for i, s in enumerate(sequences) if len(s) == length]
            ids = torch.tensor(np.array([sequences[i] for i in rows]), dtype=torch.long)
            logp = model(input_ids=ids).logits[:, :-1].double().log_softmax(-1)
            out[rows] = logp.gather(2, ids[:, 1:, None]).squeeze(2).sum(1).numpy()
    return out


@pytest.mark.parametrize("tokenizer_name", TOKENIZERS)
@pytest.mark.parametrize("model_name", MODELS)
def test_walk_equals_naive_scoring(model_name: str, tokenizer_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likelihood, "BUDGET", 1)  # the smallest chunks: many states live and die
    tokenizer, template = TOKENIZERS[tokenizer_name](), Template("my id: {}", length=3)
    model = MODELS[model_name](len(tokenizer))
    training = model.training
    trie = candidate_trie(tokenizer, template)
    walked = candidate_scores(model, trie)
    assert model.training == training
    if tokenizer_name == "digits":
        assert trie.evaluations == 111
    else:
        assert trie.candidates == 1000
        assert len({len(ids) for ids in encode_candidates(tokenizer, template, map(template.secret, range(1000)))}) > 1
    expected = naive(model, tokenizer, template)
    gap = walked - expected  # the tokens before the trie's root are the same for every candidate
    assert np.ptp(gap) < AGREE
    plain = plain_scores(model, encode_candidates(tokenizer, template, ["007", "950"]), len(trie.context))
    np.testing.assert_allclose(walked[[7, 950]], plain, atol=AGREE, rtol=0)
    assert np.ptp(expected) > 0.1


ALPHABETS = {
    "hex": Template("key {}", NAMED["hex"], 2),
    "letters": Template("code: {}", NAMED["letters"], 2),
    "words": Template("say {}", ("red", "redder", "blue", "id", "no", "7", "ten", "ted"), 3),
}


@pytest.mark.parametrize("tokenizer_name", TOKENIZERS)
@pytest.mark.parametrize("model_name", ["lstm", "gpt2"])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_every_alphabet_equals_naive_scoring(alphabet: str, model_name: str, tokenizer_name: str) -> None:
    """All candidates, a random subset of them, and branch and bound, for letters and for words (a passphrase)."""
    tokenizer, template = TOKENIZERS[tokenizer_name](), ALPHABETS[alphabet]
    model = MODELS[model_name](len(tokenizer))
    walked = candidate_scores(model, candidate_trie(tokenizer, template))
    expected = naive(model, tokenizer, template)
    assert np.ptp(walked - expected) < AGREE
    some = [template.index(secret) for secret in draw(template, 40, seed=1)]
    part = candidate_scores(model, candidate_trie(tokenizer, template, some))
    assert np.ptp(part - expected[some]) < AGREE
    secrets = draw(template, 3, seed=2)
    chosen = np.array([template.index(secret) for secret in secrets])
    likelier = (expected > expected[chosen][:, None] + 1e-4).sum(1)
    as_likely = (expected > expected[chosen][:, None] - 1e-4).sum(1)
    for most in (None, 10**6):
        rank = ranks(model, tokenizer, template, secrets, most)
        assert ((likelier < rank) & (rank <= as_likely)).all()


def test_hex_and_letters_need_no_look_at_the_candidates() -> None:
    """A vocabulary of single characters: the trie is written down, and is the one that tokenising gives."""
    from taciturn.auditing.exposure import trie as module

    tokenizer = byte_tokenizer()
    for name in ("hex", "letters"):
        template = ALPHABETS[name]
        expected = module._records(tokenizer, map(template.secret, range(template.size)), template.prefix)
        np.testing.assert_array_equal(module._letterwise(tokenizer, template), expected)


def test_six_digits_take_111111_evaluations() -> None:
    assert candidate_trie(byte_tokenizer(), Template()).evaluations == 111_111


def test_every_way_to_the_trie_is_the_same() -> None:
    """A learned BPE with single digits: letter by letter, through the Rust core, and through the training encoder."""
    from taciturn.auditing.exposure import trie as module

    tokenizer, template = bpe_tokenizer(["my id is here, my id is there"] * 20, 300), Template("my id is {}", length=3)
    expected = module._records(tokenizer, map(template.secret, range(template.size)), template.prefix)
    np.testing.assert_array_equal(module._letterwise(tokenizer, template), expected)
    np.testing.assert_array_equal(module._tokenised(tokenizer, template), expected)
    merging = merging_tokenizer()
    assert module._letterwise(merging, template) is None
    np.testing.assert_array_equal(
        module._tokenised(merging, template),
        module._records(merging, map(template.secret, range(template.size)), template.prefix),
    )


@settings(max_examples=60)
@given(st.sets(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=2, max_size=30), st.randoms())
def test_trie_spells_every_row(rows: set[tuple[int, ...]], random: Any) -> None:
    order = sorted(rows)
    random.shuffle(order)
    width = max(map(len, order))
    matrix = np.array([[*row, *[-1] * (width - len(row))] for row in order], np.int32)
    trie = build(matrix)
    spelt = {}

    def walk(node: int, path: tuple[int, ...]) -> None:
        if trie.leaf[node] >= 0:
            spelt[int(trie.leaf[node])] = path
        for child in range(trie.first_child[node], trie.first_child[node] + trie.n_children[node]):
            walk(child, (*path, int(trie.token[child])))

    walk(0, tuple(trie.context.tolist()))
    assert [spelt[i] for i in range(len(order))] == order
    assert len(trie.token) == 1 + len({row[:k] for row in order for k in range(len(trie.context) + 1, len(row) + 1)})


def test_candidates_the_tokenizer_cannot_tell_apart_are_refused() -> None:
    with pytest.raises(UsageError, match="same tokens to different candidates"):
        build(np.array([[1, 2], [1, 3], [1, 2]], np.int32))


def test_too_many_candidates_and_melting_suffixes_are_refused() -> None:
    with pytest.raises(UsageError, match=r"enumerates at most .* 100,000,000 .* length of at most 7, .*--candidates"):
        candidate_trie(byte_tokenizer(), Template("x {}", length=8))
    with pytest.raises(UsageError, match=r"\(6 of 7,776\): choose a length of at most 1"):
        candidate_trie(byte_tokenizer(), Template("x {}", tuple(f"w{i}" for i in range(7776)), 6))
    with pytest.raises(UsageError, match="joins the secret"):  # " 21" is one token
        candidate_trie(merging_tokenizer(), Template("id: {}1", length=1))
    assert candidate_trie(byte_tokenizer(), Template("id: {}7", length=2)).candidates == 100


def test_branch_and_bound_gives_the_same_ranks_for_fewer_nodes() -> None:
    toy = overfitted()
    template = TEMPLATE
    trie = candidate_trie(toy.tokenizer, template)
    full = candidate_scores(toy.model, trie)
    unseen = draw(template, 5, 3)
    for secrets, most in (([toy.secret], 100), (unseen, 500), (unseen, 10**6)):  # pruned; given up; pruned in vain
        expected = midranks(full, np.array([template.index(s) for s in secrets]))
        np.testing.assert_array_equal(ranks(toy.model, toy.tokenizer, template, secrets, most), expected)
    pruned = candidate_scores(toy.model, trie, floor=full[template.index(toy.secret)] - 1e-3, most=8)
    assert pruned.argmax() == template.index(toy.secret)
    with pytest.raises(BudgetSpent):
        candidate_scores(toy.model, trie, most=1000)


@given(st.lists(st.integers(-5, 0), min_size=1, max_size=30))
def test_midranks_against_sorting(values: list[int]) -> None:
    scores = np.array(values, float)
    expected = [(scores > s).sum() + ((scores == s).sum() + 1) / 2 for s in scores]
    np.testing.assert_allclose(midranks(scores, np.arange(len(scores))), expected)


def test_a_constant_model_ranks_everything_in_the_middle() -> None:
    tokenizer = byte_tokenizer()
    model = lstm(len(tokenizer))
    torch.nn.init.zeros_(model.decoder.weight)
    rank = ranks(model, tokenizer, Template("x {}", length=3), ["000", "999", "123"], most=None)
    np.testing.assert_allclose(rank, 500.5)


def test_positive_control_is_remembered_perfectly() -> None:
    assert positive_control() == (math.log2(10**6), math.log2(10**6))  # 19.93 bits
    assert _positive_aucs()["loss"] > 0.9


def test_training_the_positive_control_leaves_the_global_random_state_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    overfitted.__wrapped__(steps=1)
    assert torch.equal(torch.rand(3), expected)


def test_exposure_of_a_model_that_remembers() -> None:
    toy = overfitted()
    finding = exposure(toy.model, toy.tokenizer, TEMPLATE, [toy.secret])
    assert finding.score == math.log2(10**6)
    assert finding.verdict == "leak"
    assert finding.null["p"] == pytest.approx(1e-6)
    assert finding.controls["positive"] == math.log2(10**6)
    assert finding.detail["eps_lower"] > 3
    assert not told(toy.secret, str(finding.to_json()))


def test_exposure_of_a_model_that_never_saw_anything() -> None:
    """Exposure is uniform-rank noise: the verdict "leak" has probability .01, for these fixed seeds it is fixed."""
    tokenizer = byte_tokenizer()
    finding = exposure(lstm(len(tokenizer)), tokenizer, "my id: {}", draw(Template("x {}", length=4), 10, 0))
    assert finding.verdict == "no leak found"
    assert finding.score <= finding.null["p95"] == pytest.approx(7.59, abs=0.01)  # rank 52; 7.61 for large |R|
    assert finding.detail["eps_lower"] == 0.0
    assert len(finding.detail["exposures"]) == len(finding.detail["control_exposures"]) == 10


def test_a_cache_that_lies_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model whose step-by-step reading forgets its state gives other scores than its own forward pass."""
    tokenizer = byte_tokenizer()
    model = lstm(len(tokenizer))
    monkeypatch.setattr(likelihood, "_select", lambda state, rows: tuple(s[:, rows] * 0 for s in state))
    with pytest.raises(TaciturnError, match="its cache cannot be trusted"):
        exposure(model, tokenizer, "my id: {}", ["123"])


def test_the_highest_exposure_of_unseen_secrets_passes_its_95_percent_point_in_5_percent() -> None:
    """40 models never trained × 25 draws of ten secrets: the count beyond 7.61 bits is binomial, outside its bounds with
    probability 1e-4. For |R| = 1000 that is rank ≤ 5: P = 1 − C(995, 10)/C(1000, 10)."""
    tokenizer, template = byte_tokenizer(), Template("my id: {}", length=3)
    trie = candidate_trie(tokenizer, template)
    n, beyond, means = 10, 0, []
    for seed in range(40):
        scores = candidate_scores(lstm(len(tokenizer), seed), trie)
        for again in range(25):
            chosen = np.array([template.index(s) for s in draw(template, n, 1000 * seed + again)])
            bits = math.log2(1000) - np.log2(midranks(scores, chosen))
            beyond += bool(bits.max() >= nulls.exposure_max_p95(n))
            means.append(bits.mean())
    p = 1 - math.comb(995, n) / math.comb(1000, n)
    assert binom.ppf(5e-5, 1000, p) <= beyond <= binom.ppf(1 - 5e-5, 1000, p)
    assert abs(np.mean(means) - nulls.exposure_mean(1000)) < 4 * 1.44 / math.sqrt(10_000)


def test_ranks_of_unseen_secrets_are_uniform_on_any_model() -> None:
    """One enumeration, 200 unseen secrets: mean exposure 1.44, sd 1.44/√200 = .10; beyond 4 sd has probability 6e-5."""
    tokenizer, template = merging_tokenizer(), Template("my id: {}", length=3)
    secrets = draw(template, 200, seed=9)
    rank = ranks(gpt2(len(tokenizer)), tokenizer, template, secrets, most=None)
    assert abs((math.log2(1000) - np.log2(rank)).mean() - 1.44) < 0.41
