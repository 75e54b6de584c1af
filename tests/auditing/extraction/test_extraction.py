"""Extraction: exact probabilities under the stated decoding, and only what the model learned is counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom

from leaks import told
from taciturn.auditing.canaries.templates import Planted
from taciturn.auditing.controls import TEMPLATE, overfitted
from taciturn.auditing.extraction import extraction as module
from taciturn.auditing.extraction.decoding import Decoding, continuations, opening
from taciturn.auditing.extraction.extraction import _blind, discoverable, extraction, log_probability
from taciturn.auditing.extraction.secrets import Known, of_canaries, read_known
from taciturn.errors import DataError, UsageError
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokenizers import byte_tokenizer

TOKENIZER = byte_tokenizer()


def untrained(seed: int = 0, scale: float = 1.0) -> Any:
    torch.manual_seed(seed)
    return LSTMForCausalLM(LSTMConfig(len(TOKENIZER), embedding_size=16, hidden_size=16, initializer_range=scale))


def toy_known() -> Known:
    return Known(TEMPLATE.prefix, overfitted().secret)


@pytest.mark.parametrize(
    "decoding", [Decoding(), Decoding(0.7), Decoding(1.3, top_k=40), Decoding(top_k=100, top_p=0.9)]
)
def test_probability_is_that_of_the_decoding_token_by_token(decoding: Decoding) -> None:
    model = untrained()
    items = [Known("key ", "4"), Known("", "ab"), Known("a longer prefix: ", "xyz!")]
    logq, greedy = log_probability((model, TOKENIZER), items, decoding)
    for i, item in enumerate(items):
        ids, total, all_first = opening(TOKENIZER, item.prefix), 0.0, True
        for wanted in opening(TOKENIZER, item.prefix + item.secret)[len(ids) :]:
            with torch.no_grad():
                z = model(input_ids=torch.tensor([ids])).logits[0, -1].double()
            all_first &= int(z.argmax()) == wanted
            order = (z / decoding.temperature).sort(descending=True)
            kept, names = order.values, order.indices.tolist()
            if decoding.top_k:
                kept, names = kept[: decoding.top_k], names[: decoding.top_k]
            p = kept.softmax(0)
            if decoding.top_p < 1:
                enough = int((p.cumsum(0) < decoding.top_p).sum()) + 1
                p, names = p[:enough] / p[:enough].sum(), names[:enough]
            total += float(p[names.index(wanted)].log()) if wanted in names else -np.inf
            ids.append(wanted)
        assert logq[i] == pytest.approx(total, rel=1e-4, abs=1e-4)
        assert greedy[i] == all_first


def test_samples_show_a_secret_as_often_as_computed() -> None:
    """3000 samples of two bytes after a prefix; within 4 sd (false alarm 6e-5)."""
    model, decoding = untrained(3, scale=0.1), Decoding(0.5, top_k=8)
    q = np.zeros(8)
    n, seen = 3000, continuations(model, TOKENIZER, "key ", 3000, decoding, 1, seed=1)
    letters = sorted({text for text in seen if text and text.isascii() and text.isprintable()})
    logq, _ = log_probability((model, TOKENIZER), [Known("key ", letter) for letter in letters], decoding)
    q = np.exp(logq)
    counts = np.array([seen.count(letter) for letter in letters])
    assert len(letters) >= 2
    assert (np.abs(counts - n * q) < 4 * np.sqrt(n * q * (1 - q))).all()


def test_n_samples_with_probability_p() -> None:
    """1 − (1 − q)^n ≥ p (Hayes et al. 2024); q = 0 never, q = 1 always, a q far below 1e-16 without rounding."""
    for q in (0.003, 0.2):
        for n in (1, 30, 1000):
            for p in (0.1, 0.5, 0.99):
                assert discoverable(np.log([q]), n, p)[0] == (1 - (1 - q) ** n >= p)
    assert discoverable(np.array([-np.inf, 0.0, -60.0]), 10**6, 0.5).tolist() == [False, True, False]


def test_an_overfitted_model_gives_its_secret_up() -> None:
    toy = overfitted()
    finding = extraction(toy.model, toy.tokenizer, [toy_known()], base=(untrained(), TOKENIZER))
    assert (finding.score, finding.verdict) == (1.0, "leak")
    assert finding.null["p"] == pytest.approx(1 / 200)
    assert finding.controls == {"positive": 1.0, "negative": 0.0, "blind": 0.0, "base": 0.0}
    assert finding.detail["greedy"]["rate"] == 1.0
    table = {(row["n"], row["p"]): row["extracted"] for row in finding.detail["table"]}
    assert table[10, 0.5] == 1
    assert not told(toy.secret, str(finding.to_json()))
    assert toy.secret not in repr(toy_known())


def test_canaries_bring_decoys_drawn_as_they_were() -> None:
    toy = overfitted()
    (known,) = of_canaries(Planted(TEMPLATE, (toy.secret,), copies=20))
    assert len(known.decoys) == 199
    assert toy.secret not in known.decoys
    assert extraction(toy.model, toy.tokenizer, [known]).verdict == "leak"


def test_p37_what_the_base_model_says_as_well_is_no_leak() -> None:
    """Common strings are not memorised: the toy's secret is likely under the model and under its base alike."""
    toy = overfitted()
    finding = extraction(toy.model, toy.tokenizer, [toy_known()], base=(toy.model, toy.tokenizer))
    assert finding.score == 0.0
    assert finding.controls["base"] == 1.0
    assert (finding.detail["extracted"], finding.detail["extracted_by_base"]) == (1, 1)
    assert finding.null["p"] == 1.0
    assert finding.verdict == "no leak found"


def test_words_without_a_fair_control_get_no_verdict() -> None:
    toy = overfitted()
    finding = extraction(toy.model, toy.tokenizer, [Known("key ", "ann"), toy_known()])
    assert finding.verdict == "inconclusive"
    assert "random letters are no fair control" in finding.notes[0]


def test_few_decoys_are_too_few() -> None:
    toy = overfitted()
    finding = extraction(toy.model, toy.tokenizer, [Known(TEMPLATE.prefix, toy.secret, ("000000", "111111"))])
    assert (finding.verdict, finding.notes) == ("inconclusive", ("too few secrets and decoys for a verdict",))


def test_null_suite_on_models_that_never_saw_the_secrets() -> None:
    """Secrets of one digit, each against the nine others, n such that about half are discoverable: 150 untrained models, 6
    secrets. The test is exact, so p < .05 more than 17 times has probability 1e-3, p < .01 more than 6 times 2e-3."""
    rng = np.random.default_rng(8)
    p_values = []
    for seed in range(150):
        known = [
            Known(f"{'abcdef'[i]} is ", str(d), tuple(str(e) for e in range(10) if e != d))
            for i, d in enumerate(rng.integers(10, size=6))
        ]
        finding = extraction(untrained(seed, 0.3), TOKENIZER, known, n=180, p=0.5)
        p_values.append(finding.null["p"])
    assert binom.sf(17, 150, 0.05) < 1e-3
    assert sum(p < 0.05 for p in p_values) <= 17
    assert sum(p < 0.01 for p in p_values) <= 6
    assert np.mean(p_values) > 0.45
    assert min(p_values) < 0.5  # the suite does look at something


def test_a_broken_positive_control_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "positive", lambda: False)
    toy = overfitted()
    finding = extraction(toy.model, toy.tokenizer, [toy_known()])
    assert finding.verdict == "inconclusive"
    assert "positive control failed" in finding.notes[0]


def test_secrets_from_a_file_and_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secrets.jsonl"
    path.write_text(json.dumps({"prefix": "key ", "secret": "123", "decoys": ["456"]}) + "\n")
    assert read_known(path) == [Known("key ", "123", ("456",))]
    path.write_text('{"prefix": "key ", "secret": "123"}\n{"prefix": "secret-thing"}\n')
    with pytest.raises(DataError, match="line 2") as error:
        read_known(path)
    assert "secret-thing" not in str(error.value)
    for wrong in ({"n": 0}, {"p": 1.0}):
        with pytest.raises(UsageError, match="0 < p < 1"):
            extraction(untrained(), TOKENIZER, [toy_known()], **wrong)
    with pytest.raises(UsageError, match="found none"):
        extraction(untrained(), TOKENIZER, [])
    with pytest.raises(UsageError, match="none of its own decoys"):
        Known("key ", "12", ("12",))
    with pytest.raises(UsageError, match="neither digits nor letters"):
        extraction(untrained(), TOKENIZER, [Known("key ", "--")])
    with pytest.raises(UsageError, match="temperature > 0"):
        Decoding(0.0)


def test_decoys_of_another_kind_are_told_without_a_model() -> None:
    """Ten secrets of six equal digits against random ones: zlib alone tells them, so the attack has shown nothing."""
    toy = overfitted()
    decoys = tuple(f"{i * 104729 % 10**6:06d}" for i in range(1, 60))
    odd = [Known(TEMPLATE.prefix, str(i) * 6, decoys) for i in range(10)]
    assert _blind(odd)[0] > 0.5
    assert _blind(odd)[1] < 1e-6
    found = extraction(toy.model, toy.tokenizer, [toy_known()])
    assert found.verdict == "leak"
    assert found.controls["blind"] == 0.0
