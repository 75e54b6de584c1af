"""Every score of one pass against its definition, and a verdict that is of one score alone."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
import torch

from taciturn.auditing.canaries.templates import draw
from taciturn.auditing.controls import MEMBERS, overfitted
from taciturn.auditing.membership.blind import blind_scores, blind_sd
from taciturn.auditing.membership.membership import group_membership, membership
from taciturn.auditing.membership.roc import delong
from taciturn.auditing.membership.scores import membership_scores, rmia, score_texts
from taciturn.errors import UsageError
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode

TOKENIZER = byte_tokenizer()


def untrained(seed: int = 0, scale: float = 1.0) -> Any:
    torch.manual_seed(seed)
    return LSTMForCausalLM(LSTMConfig(len(TOKENIZER), embedding_size=16, hidden_size=16, initializer_range=scale))


def records(n: int, seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    words = ["please", "send", "the", "parcel", "to", "my", "home", "again", "today"]
    return [" ".join([*rng.choice(words, rng.integers(1, 6)), str(rng.integers(10**9))]) for _ in range(n)]


def by_definition(model: Any, text: str, share: float) -> tuple[float, float, float]:
    """Loss, Min-K% and Min-K%++ of one text from the full log-softmax in double precision."""
    ids = torch.from_numpy(encode(TOKENIZER, text).astype(np.int64))[None]
    with torch.no_grad():
        logp_TV = model(input_ids=ids).logits[0, :-1].double().log_softmax(-1)
    logp = logp_TV.gather(1, ids[0, 1:, None]).squeeze(1)
    mean = (logp_TV.exp() * logp_TV).sum(1)
    sd = ((logp_TV.exp() * logp_TV.square()).sum(1) - mean.square()).sqrt()
    lowest = max(int(share * len(logp)), 1)
    standard = (logp - mean) / sd
    return (
        float(-logp.mean()),
        float(logp.sort().values[:lowest].mean()),
        float(standard.sort().values[:lowest].mean()),
    )


@pytest.mark.parametrize(("scale", "share"), [(0.1, 0.2), (1.0, 0.2), (1.0, 0.6), (5.0, 0.1)])
def test_one_pass_gives_every_score_of_every_text(scale: float, share: float) -> None:
    """P32: a text alone and among longer ones has the same value; padding is never seen, the end of text is."""
    model, texts = untrained(scale=scale), [*records(20, 0), "a", "é — 漢字"]
    found = score_texts(model, TOKENIZER, texts, share)
    expected = np.array([by_definition(model, text, share) for text in texts]).T
    np.testing.assert_allclose([found.loss, found.min_k, found.min_k_plus], expected, rtol=2e-4, atol=2e-5)
    alone = score_texts(model, TOKENIZER, texts[:1], share)
    assert alone.min_k_plus[0] == pytest.approx(found.min_k_plus[0], rel=1e-4)


def test_a_text_without_targets_scores_nothing() -> None:
    found = score_texts(untrained(), TOKENIZER, ["<MASK>", "a"])
    assert found.loss[0] == found.min_k[0] == found.min_k_plus[0] == 0
    assert found.loss[1] > 0


def test_forbidden_tokens_do_not_spoil_the_moments() -> None:
    model = untrained()
    with torch.no_grad():
        model.decoder.bias[255] = -torch.inf
    found = score_texts(model, TOKENIZER, ["plain text"])
    assert np.isfinite([found.loss[0], found.min_k[0], found.min_k_plus[0]]).all()


def test_scores_are_made_of_losses() -> None:
    model, other, texts = untrained(), (untrained(1), TOKENIZER), records(9, 0)
    loss, reference = score_texts(model, TOKENIZER, texts).loss, score_texts(*other, texts).loss
    found = membership_scores((model, TOKENIZER), texts, [other, other], records(7, 5))
    assert set(found) == {"loss", "zlib", "min_k", "min_k_plus", "reference", "rmia"}
    np.testing.assert_allclose(found["reference"], reference - loss)
    np.testing.assert_allclose(
        found["zlib"], [-a / len(zlib.compress(t.encode())) for a, t in zip(loss, texts, strict=True)]
    )
    assert set(membership_scores((model, TOKENIZER), texts, (), records(7, 5))) == {
        "loss",
        "zlib",
        "min_k",
        "min_k_plus",
    }


def test_rmia_against_all_pairs() -> None:
    """Zarifzadeh et al. 2024, equation 2, record by record; one model orders texts as the ratio does."""
    rng = np.random.default_rng(0)
    loss, others, z, z_others = (
        rng.normal(2, 1, 30),
        rng.normal(2, 1, (3, 30)),
        rng.normal(2, 1, 50),
        rng.normal(2, 1, (3, 50)),
    )
    for gamma in (1.0, 1.3):
        score = rmia(loss, others, z, z_others, gamma)
        for i in range(30):
            own = np.exp(-loss[i]) / np.exp(-others[:, i]).mean()
            beaten = [own / (np.exp(-z[j]) / np.exp(-z_others[:, j]).mean()) >= gamma for j in range(50)]
            assert score[i] == pytest.approx(np.mean(beaten))
        ratio = np.exp(-loss) / np.exp(-others).mean(0)
        assert (np.diff(score[np.argsort(ratio)]) >= 0).all()


def test_every_score_finds_an_overfitted_model_and_shows_its_control() -> None:
    """P38: each attack has its positive control beside it; the negative one is shuffled labels."""
    toy = overfitted()
    reference = (untrained(), TOKENIZER)
    population = [f"code {i:06d}" for i in range(0, 10**6, 20011)]
    finding = membership(
        toy.model, toy.tokenizer, toy.members, toy.nonmembers, reference=reference, population=population
    )
    table = finding.detail["attacks"]
    assert set(table) == {"loss", "zlib", "min_k", "min_k_plus", "reference", "rmia"}
    for name, each in table.items():
        assert each["auc"] > 0.9, name
        assert each["interval"][0] > 0.5
        assert 0.5 < each["accuracy"] <= 1
        assert each["tpr_at_fpr_0.01"] is None
    assert all(table[name]["positive"] > 0.9 for name in ("loss", "zlib", "min_k", "min_k_plus"))
    assert abs(finding.controls["negative"] - 0.5) < 0.24
    assert finding.detail["multiplicity"] == 6
    assert not any(text in str(finding.to_json()) for text in (*toy.members, *toy.nonmembers))


def test_the_verdict_is_of_the_score_named_before() -> None:
    """A model that hates its members: the loss says nothing, the difference to a worse hater everything."""
    toy = overfitted()
    a, b = [MEMBERS.fill(secret) for secret in draw(MEMBERS, 50, 99)], list(toy.members)
    turned = membership(untrained(), TOKENIZER, a, b, reference=(toy.model, toy.tokenizer))
    named = membership(untrained(), TOKENIZER, a, b, reference=(toy.model, toy.tokenizer), score="reference")
    assert turned.detail["verdict_of"] == "loss"
    assert turned.null["p"] > 0.05
    assert turned.null["p_any"] < 0.01
    assert turned.verdict == "no leak found"
    assert (named.verdict, named.score) == ("leak", named.detail["attacks"]["reference"]["auc"])
    assert named.null["p"] < 1e-6
    with pytest.raises(UsageError, match="needs a reference model"):
        membership(untrained(), TOKENIZER, a, b, score="reference")
    with pytest.raises(UsageError, match="expected loss or reference"):
        membership(untrained(), TOKENIZER, a, b, score="min_k")  # type: ignore[arg-type]


def test_words_give_two_sources_away_and_say_nothing_of_one() -> None:
    """300 pairs of sets from one source: 4.5 sd of the baseline's own spread are never left (false alarm 2e-3)."""
    a, b = blind_scores([f"ship {t}" for t in records(60, 0)], [f"sail {t}" for t in records(60, 1)])["words"]
    assert delong(a[None], b[None])[0][0] == 1.0
    aucs = []
    for seed in range(300):
        a, b = blind_scores(records(30, 2 * seed), records(30, 2 * seed + 1), seed)["words"]
        aucs.append(delong(a[None], b[None])[0][0])
    assert np.abs(np.array(aucs) - 0.5).max() < 4.5 * blind_sd("words", 30, 30)
    assert abs(np.mean(aucs) - 0.5) < 0.03
    assert np.std(aucs) < 1.15 * blind_sd("words", 30, 30)


def test_another_vocabulary_is_not_called_a_leak() -> None:
    """Members and non-members of the same lengths that differ in a word: the words tell them apart as well as the model."""
    model = untrained()
    a = [text.replace("parcel", "letter") for text in records(80, 0)]
    finding = membership(model, TOKENIZER, [f"{t} qqq" for t in a], [f"{t} zzz" for t in records(80, 1)])
    assert finding.controls["blind"] > 0.99
    assert finding.verdict != "leak"


def test_groups_as_the_paper_draws_them_stand_beside_the_disjoint_ones() -> None:
    """CRT A.5: 2000 groups of 20 out of few records, perplexities summed, accuracy at the best threshold."""
    toy = overfitted()
    finding = group_membership(toy.model, toy.tokenizer, toy.members, toy.nonmembers, group_size=20)
    assert (finding.detail["members"], finding.detail["nonmembers"]) == (2, 2)
    paper = finding.detail["overlapping"]
    assert paper["groups"] == 2000
    assert paper["auc"] > 0.95
    assert paper["accuracy_same_set"] > 0.95
