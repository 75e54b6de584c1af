"""The gradient attack: the linear map against plain autograd, what it sees of one step, and its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import taciturn as tt
from taciturn.auditing.membership.gradient import gradient_membership, initial_model, positive, settings
from taciturn.auditing.membership.gradient_scores import Directions, gradient_scores, weight_differences
from taciturn.auditing.run import audit
from taciturn.cli.main import run as command
from taciturn.errors import UsageError
from taciturn.models.hf import export
from taciturn.models.loss import collate, record_losses
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.text.readers import Corpus

TOKENIZER = byte_tokenizer()
TEXTS = [f"{i * 7919 % 10**6:06d} {chr(97 + i % 26)}" for i in range(60)]


def model(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return LSTMForCausalLM(LSTMConfig(len(TOKENIZER), embedding_size=12, hidden_size=12)).eval()


def stepped(before: Any, texts: list[str], lr: float = 1e-3) -> Any:
    """One plain step down the sum of the mean losses of ``texts``."""
    after = LSTMForCausalLM(before.config).eval()
    after.load_state_dict(before.state_dict())
    batch = collate(encode_all(TOKENIZER, texts), np.arange(len(texts)), mask_id(TOKENIZER))
    (record_losses(after, batch) / batch.weights.sum(1)).sum().backward()
    with torch.no_grad():
        for p in after.parameters():
            p.sub_(lr * p.grad)
    return after


def gradients(net: Any, texts: list[str], clip: float) -> torch.Tensor:
    """Record by record: [N, all parameters], clipped to ``clip`` and divided by it; to norm 1 for clip 0."""
    rows = []
    for text in texts:
        net.zero_grad(set_to_none=True)
        batch = collate(encode_all(TOKENIZER, [text]), np.arange(1), mask_id(TOKENIZER))
        (record_losses(net, batch) / batch.weights.sum(1)).sum().backward()
        g = torch.cat([p.grad.flatten() for p in net.parameters()])
        rows.append(g / max(float(g.norm()), clip))
    return torch.stack(rows)


@pytest.mark.parametrize("clip", [0.0, 10.0])
def test_the_map_is_that_of_clipped_gradients_record_by_record(clip: float) -> None:
    net, texts = model(), TEXTS[:8]
    found = Directions.of((net, TOKENIZER), (stepped(net, TEXTS[20:25]), TOKENIZER), texts[:4], texts[4:], clip)
    G = gradients(net, texts[:4], clip) - gradients(net, texts[4:], clip)
    moved = torch.cat([each.flatten() for each in found.moved]).float()
    np.testing.assert_allclose(found.along(found.moved), (G @ moved).numpy(), rtol=1e-3, atol=1e-5)
    weights = np.array([1.0, -2.0, 0.5, 3.0])
    gathered = torch.cat([each.flatten() for each in found.gathered(weights)]).float()
    np.testing.assert_allclose(gathered.numpy(), (G.T @ torch.tensor(weights).float()).numpy(), rtol=1e-3, atol=1e-5)


def test_scores_are_the_linear_estimate_with_the_least_error() -> None:
    net, inside = model(), TEXTS[:15]
    after = stepped(net, inside)
    scores = gradient_scores((net, TOKENIZER), (after, TOKENIZER), TEXTS[:30], noise=0.5, iterations=200)
    G = gradients(net, TEXTS[:30], 0.0).double().numpy()
    seen = -G @ torch.cat([each.flatten() for each in weight_differences(net, after).values()]).double().numpy()
    K = G @ G.T
    size = seen @ K.sum(1) / (K.sum(1) @ K.sum(1))
    oracle = np.linalg.solve(K + np.eye(30), (seen - size * K.sum(1)) / size)
    np.testing.assert_allclose(scores, oracle, atol=0.03 * np.abs(oracle).max())


def test_a_step_without_noise_is_seen_through_and_another_models_is_not() -> None:
    """The null: weights that moved by a step on other texts, 40 + 20 canaries; AUC within 4 sd of .5 (6e-5)."""
    net = model()
    told = gradient_membership(
        stepped(net, TEXTS[:30]), TOKENIZER, TEXTS[:30], TEXTS[30:], base=(net, TOKENIZER), noise=0.1
    )
    assert told.score > 0.9
    assert told.verdict == "leak"
    assert told.detail["one_run"]["guesses"] == [14]
    assert positive() > 0.95
    other = [f"{i * 104729 % 10**6:06d} z" for i in range(60)]
    null = gradient_membership(stepped(net, other), TOKENIZER, TEXTS[:30], TEXTS[30:], base=(net, TOKENIZER), noise=0.1)
    assert abs(null.score - 0.5) < 4 * 0.0753
    assert null.detail["eps_lower_one_run"] == 0
    assert not any(text in str(told.to_json()) for text in TEXTS)


def test_a_run_makes_the_model_it_began_with_again(tmp_path: Path, capsys: Any) -> None:
    everything = tt.policy("all-private")
    screened = tt.screen(Corpus.from_texts(TEXTS[:30]), everything, everything, out=tmp_path / "s")
    tiny = {"name": "lstm", "options": {"hidden_size": 8, "embedding_size": 8}}
    options = {"noise_multiplier": 2.0, "clip": 0.2, "steps": 2, "batch": 15}
    run = tt.train(tt.plan("dpsgd", screened, tiny, tokenizer="bytes", delta=1e-3, **options), tmp_path / "run")
    q, T, sigma = 0.5, 2, 2.0
    assert settings(run.folder) == {"clip": 0.2, "noise": pytest.approx(((sigma / q) ** 2 / T + 0.5 / (q * T)) ** 0.5)}
    base, _ = initial_model(run.folder)
    assert weight_differences(base, run.model()[0])
    for side, texts in (("in", TEXTS[:30]), ("out", TEXTS[30:])):
        (tmp_path / side).write_text("\n".join(texts) + "\n")
    sides = ["--members", str(tmp_path / "in"), "--nonmembers", str(tmp_path / "out")]
    assert command(["audit", str(run.folder), "--attack", "gradient", *sides]) == 0
    assert "gradient" in capsys.readouterr().out
    export(base, TOKENIZER, tmp_path / "base")
    kept = {"members": TEXTS[:30], "nonmembers": TEXTS[30:]}
    (own,), (given,) = (
        audit(run.folder, ["gradient"], **kept),
        audit(run.folder, ["gradient"], **kept, base=tmp_path / "base"),
    )
    assert own.score == pytest.approx(given.score, abs=0.01)


def test_what_cannot_be_attacked_is_said(tmp_path: Path) -> None:
    net = model()
    export(net, TOKENIZER, tmp_path / "model")
    with pytest.raises(UsageError, match="the model that training began with"):
        audit(tmp_path / "model", ["gradient"], members=TEXTS[:30], nonmembers=TEXTS[30:])
    with pytest.raises(UsageError, match="did not move"):
        gradient_scores((net, TOKENIZER), (net, TOKENIZER), TEXTS)
    wide = LSTMForCausalLM(LSTMConfig(len(TOKENIZER), embedding_size=4, hidden_size=12)).eval()
    with pytest.raises(UsageError, match="other tensors"):
        gradient_scores((net, TOKENIZER), (wide, TOKENIZER), TEXTS)
    with pytest.raises(UsageError, match="one other text for each"):
        gradient_scores((net, TOKENIZER), (model(1), TOKENIZER), TEXTS, TEXTS[:3])
