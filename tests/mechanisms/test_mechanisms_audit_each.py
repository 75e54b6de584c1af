"""Every mechanism that certifies a finite ε, attacked in one run: the lower bound stays below; without noise it does not.

Canaries have a word of their own each and are there by fair coins: as secrets that the policy misses (or detects, where only
those are promised anything), as users, as a user's sentence about an entity. One or two full-batch steps, all weights known.

An honest run is accused with probability .05 at most by the bound's own confidence, and here below 1e-5: of the 54 guesses
(ε = 4, so μ = .6) some 38 are right, and 52 would have to be. Without noise nothing is left to chance but the coins, which
have a seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from taciturn.auditing.finding import Finding
from taciturn.auditing.lower_bounds.against_certificate import Audited, against_run, statement
from taciturn.auditing.lower_bounds.one_run import OneRun, one_run
from taciturn.auditing.membership.gradient import initial_model
from taciturn.auditing.membership.gradient_scores import gradient_scores
from taciturn.mechanisms import MECHANISMS
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.run import Run, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.certificates.certificate import Certificate
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import Policy, policy
from taciturn.screening.policies.regex import Regex
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus
from taciturn.training.randomness.gaussian import SecretSource

CANARIES = 240
WORDS = Policy((Regex("words", r"w\d{1,3}(?: w\d{1,3}){0,2}", "word", ("w7 w7",)),), "words")
SGD = {"name": "sgd", "lr": 1.0}
NOISED = {"steps": 2, "batch": 10**6, "clip": 0.1, "optimiser": SGD}
SLOW = {**NOISED, "clip": 0.5, "optimiser": {"name": "sgd", "lr": 0.01}}  # some of the step is not clipped at all
PLAIN = {"epochs": 1, "batch_size": 10**6, "optimiser": {"name": "sgd", "lr": 1e-3}}
NOBODY = Finding("gradient", 0.5, "AUC", None, {}, {}, "inconclusive")


@dataclass(frozen=True)
class Case:
    """options: of the mechanism. audited: what a coin decides. epsilon: of the target. shares: of the guesses."""

    options: dict[str, Any]
    audited: Audited
    epsilon: float | None = 4.0
    shares: tuple[float, ...] = (0.25,)


MISSED = Audited("confidentiality", "substitution")
ALL = (0.5, 1.0)
CASES = {
    "dpsgd": Case(NOISED, MISSED),
    "crt": Case({"public": PLAIN, "private": NOISED}, MISSED),
    "crt_residual": Case({"public": PLAIN, "private": SLOW, "skeleton_batch": CANARIES}, MISSED),
    "jft": Case({"redacted": PLAIN, "private": NOISED, "start": "skeletons"}, MISSED),
    "selective_dpsgd": Case({**SLOW, "runs": 1}, Audited("confidentiality", "substitution", detected=True), 1.0),
    "user_dp": Case({**NOISED, "local": {"lr": 0.1, "batch_size": 1}}, Audited("user-dp", "add-remove")),
    "uedp": Case(
        {"steps": 2, "clip": 0.1, "user_rate": 1.0, "entity_rate": 1.0, "k": 1, "optimiser": SGD},
        Audited("uedp", "add-remove"),
    ),
    "uedp-published": Case(
        {"steps": 1, "user_rate": 1.0, "entity_rate": 1.0, "clip": 0.1, "noise_multiplier": 8.0, "local": {"batch_size": 1}},
        Audited("uedp", "add-remove"), None, ALL,
    ),
}  # fmt: skip


def tokenizer(folder: Path) -> str:
    words = ["<unk>", "<end>", ".", *(f"w{i}" for i in range(CANARIES))]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=made, unk_token="<unk>", eos_token="<end>").save_pretrained(folder)
    return str(folder)


def attacked(name: str, case: Case, folder: Path) -> tuple[Certificate, OneRun]:
    coins = np.random.default_rng(31).random(CANARIES) < 0.5
    texts = [" ".join([f"w{i}"] * 3) + " ." for i in range(CANARIES)]
    secret = case.audited.relation == "substitution"
    documents = [
        Document(f"d{i}", text if coin else MASK + " .", f"user {i}")
        for i, (text, coin) in enumerate(zip(texts, coins, strict=True))
        if coin or secret
    ]
    found = WORDS if case.audited.detected or not secret else policy("phone")
    screened = screen(Corpus.from_documents(documents), found, WORDS, unit="document")
    config = RunConfig(
        mechanism=name,
        corpus=Path("memory"),
        model={"name": "lstm", "tokenizer": tokenizer(folder / "tokenizer"),
               "options": {"hidden_size": 6, "embedding_size": 6}},
        epsilon=case.epsilon,
        delta=1e-5,
        options=case.options,
        allow=("full-batch",),
    )  # type: ignore[arg-type]  # fmt: skip
    train(config, folder / "run", screened=screened)
    others = [MASK + " ."] * CANARIES if secret else None
    before, after = initial_model(folder / "run"), Run(folder / "run").model()
    known = [MASK + " ."] if secret else []
    clip = (case.options.get("private") or case.options)["clip"]
    scores = gradient_scores(before, after, texts, others, known, clip=clip, noise=0.5)
    return certify(folder / "run"), one_run(scores[coins], scores[~coins], shares=case.shares)


def test_every_mechanism_with_noise_is_attacked() -> None:
    assert set(CASES) | {"sgd", "redacted"} == set(MECHANISMS)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("noise", [True, False])
def test_a_lower_bound_stays_below_the_certificate_unless_there_is_no_noise(
    name: str, noise: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[name]
    if not noise:
        true = SecretSource.add_gaussian

        def silent(self: SecretSource, step: int, tensors: Sequence[torch.Tensor], std: float, *more: Any) -> None:
            true(self, step, tensors, 0.0 * std, *more)

        monkeypatch.setattr(SecretSource, "add_gaussian", silent)
        monkeypatch.setattr(SecretSource, "normals", lambda *args: torch.zeros(args[2]))
    certificate, once = attacked(name, case, tmp_path)
    claim = statement(case.audited, certificate.statements())
    told = against_run(NOBODY, case.audited, certificate, once).detail["certificate"]
    assert claim is not None
    assert claim.status in ("proved", "conditional")
    assert told["epsilon"] == claim.epsilon
    assert told["exceeded"] is not noise
    assert (told["eps_lower"] <= claim.epsilon) is noise
