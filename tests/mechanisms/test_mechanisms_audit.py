"""Noise that is half of what the ledger says is found out by the audit; the right noise is not.

Canaries with a word of their own each, in or out by fair coins, one full-batch step of DP-SGD: each is a Gaussian mechanism
of μ = 1/σ, and the gradient attack sees .97 of it. With a quarter guessed on, half the noise is refuted by a margin of four
standard deviations of the number of right guesses, and right noise misses the threshold by six
(``test_the_margins_of_both_verdicts``), so that either verdict here is wrong with a probability of about 1e-4. In general an
honest run is accused with a probability of at most .05, the confidence of the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

import taciturn as tt
from taciturn.auditing.lower_bounds.f_dp import gaussian, refuted
from taciturn.cli.main import run as command
from taciturn.screening.policies import Policy
from taciturn.screening.policies.regex import Regex
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.training.randomness.gaussian import SecretSource

CANARIES = 2200


def tokenizer(folder: Path) -> str:
    """Words w0, w1, …, one token each."""
    words = ["<unk>", "<end>", *(f"w{i}" for i in range(CANARIES))]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="<end>").save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def coins() -> NDArray[np.bool_]:
    return np.random.default_rng(20).random(CANARIES) < 0.5


PAIRS = {"user_rate": 1.0, "entity_rate": 1.0, "k": 1}
WORDS = Policy((Regex("words", r"w\d{1,4}(?: w\d{1,4}){0,2}", "word", ("w7 w7",)),), "words")


def trained(mechanism: str, folder: Path, coins: NDArray[np.bool_], sigma: float) -> Path:
    """dpsgd: a record each; uedp: a user each, who mentions an entity of their own."""
    texts = [" ".join([f"w{i}"] * 3) for i in range(CANARIES)]
    for name, side in (("in", coins), ("out", ~coins)):
        (folder / name).write_text("".join(f"{texts[i]}\n" for i in np.flatnonzero(side)))
    everything = tt.policy("all-private")
    inside = Corpus.from_documents([Document(f"d{i}", texts[i], f"user {i}") for i in np.flatnonzero(coins)])
    found = WORDS if mechanism == "uedp" else everything
    screened = tt.screen(inside, found, everything, unit="document", out=folder / "screened")
    model = {"name": "lstm", "options": {"hidden_size": 4, "embedding_size": 4}}
    sgd = {"name": "sgd", "lr": 1.0}
    drawn = PAIRS if mechanism == "uedp" else {"batch": CANARIES}
    plan = tt.plan(
        mechanism, screened, model, tokenizer=tokenizer(folder / "tokenizer"), delta=1e-5, noise_multiplier=sigma, steps=1,
        clip=0.1, optimiser=sgd, allow=["cannot-learn", "full-batch"], **drawn,
    )  # fmt: skip
    run = tt.train(plan, folder / "run")
    run.certify()
    return folder / "run"


@pytest.mark.parametrize(("mechanism", "split"), [("dpsgd", "records"), ("uedp", "pairs")])
@pytest.mark.parametrize(("scale", "code"), [(0.5, 4), (1.0, 0)])
def test_half_the_noise_is_found_out_and_the_right_noise_is_not(
    mechanism: str,
    split: str,
    scale: float,
    code: int,
    tmp_path: Path,
    coins: NDArray[np.bool_],
    monkeypatch: pytest.MonkeyPatch,
    capsys: Any,
) -> None:
    true = SecretSource.add_gaussian

    def weaker(self: SecretSource, step: int, tensors: Sequence[torch.Tensor], std: float, *more: Any) -> None:
        true(self, step, tensors, std * scale, *more)

    monkeypatch.setattr(SecretSource, "add_gaussian", weaker)
    run = trained(mechanism, tmp_path, coins, sigma=1.0)
    capsys.readouterr()
    call = [
        "audit",
        str(run),
        "--attack",
        "gradient",
        "--members",
        str(tmp_path / "in"),
        "--nonmembers",
        str(tmp_path / "out"),
        "--coins",
        split,
    ]
    assert command([*call, "--json"]) == code
    (found,) = json.loads(capsys.readouterr().out)["findings"]
    told = found["detail"]["certificate"]
    assert (told["relation"], told["k"], told["exceeded"]) == ("add-remove", 1, code == 4)
    assert (told["eps_lower"] > told["epsilon"]) == (code == 4)
    assert told["eps_lower"] > 1  # tight enough to say something of an honest run: certified 4.4
    # 2,200 coins: of an honest run's 550 guesses 465 ± 9 are right (2,000 simulated runs), and 420 or fewer, which put the
    # bound at 2.58, are five deviations away; the draws are fixed besides.
    assert scale <= told["noise_at_most"] < 2.58 * scale
    assert found["controls"]["positive"] > 0.95
    mu = np.sqrt(2) * torch.distributions.Normal(0, 1).icdf(torch.tensor(found["score"])).item()
    # Nearly all that there is to see; the area of 1,100 against 1,100 puts ±.05 on μ, so .3 is six deviations.
    assert mu == pytest.approx(0.97 / scale, abs=0.3)


def test_the_margins_of_both_verdicts() -> None:
    """Simulated audits, each canary an independent Gaussian of μ = 1/σ: the figures stated at the top."""
    rng = np.random.default_rng(0)
    n, half = 1070, 267
    counts = {}
    for sigma in (0.5, 1.0):
        right = []
        for _ in range(100):
            scores = np.concatenate([rng.normal(0.97, sigma, n), rng.normal(0, sigma, n)])
            order = np.argsort(scores)
            right.append(int((order[:half] >= n).sum() + (order[-half:] < n).sum()))
        counts[sigma] = np.array(right)
    threshold = next(v for v in range(half, 2 * half + 1) if refuted(2 * n, 2 * half, v, gaussian(1.0), 0.04))
    wrong, fair = counts[0.5], counts[1.0]
    assert (wrong.mean() - threshold) / wrong.std() > 4
    assert (threshold - fair.mean()) / fair.std() > 5
