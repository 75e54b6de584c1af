"""What every proof takes for given, seen from outside, for each mechanism with dropout as its model has it: two corpora that
differ in one private record move a noised step by twice the clip norm at most, and a step without noise by nothing."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from every_mechanism import DOCUMENTS, PRIVATE, config, corpus
from taciturn.errors import GuaranteeError
from taciturn.mechanisms import MECHANISMS, planning
from taciturn.mechanisms import run as runs
from taciturn.mechanisms.certify import certify
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.training.plan import Plan
from taciturn.training.randomness.gaussian import GRID_BITS
from taciturn.training.schedules import Optimiser

SECRET = "is 7741"  # missed by π, marked by π_c
LONGER = "is 7741 8852 9963 1174 2285 3396 4407 5518 6629"
NOISED = [name for name in MECHANISMS if name not in ("sgd", "redacted", "selective_dpsgd")]  # the last refuses dropout
MODELS: dict[str, dict[str, Any]] = {
    "lstm": {"hidden_size": 8, "embedding_size": 8, "dropout": 0.5},
    "awd-lstm": {"hidden_size": 12, "embedding_size": 8, "num_layers": 1},  # its own three dropouts
}
NOISE = {"noise_multiplier": 1.0, "clip": 0.02}  # given, so that none is looked for; every gradient is clipped
ONE_STEP: dict[str, dict[str, Any]] = {
    "crt": {"private": {"steps": 1, "batch": 12, **NOISE}},
    "crt_residual": {"private": {"steps": 1, "batch": 12, **NOISE}, "skeleton_batch": 25},
    "dpsgd": {"steps": 1, "batch": 18, **NOISE},
    "jft": {"private": {"steps": 1, "batch": 18, **NOISE}},
    "uedp": {"steps": 1, "user_rate": 0.9, **NOISE},
    "uedp-published": {"steps": 1, "user_rate": 0.9},
    "user_dp": {"steps": 1, "batch": 4, **NOISE},
}


@cache
def neighbours(name: str) -> list[ScreenedCorpus]:
    """One record of a user of its own, the shortest of all in one corpus and the longest in the other: by what is masked, so
    that both have one skeleton, or by the rest, so that both are about the same entities."""
    texts = (SECRET, LONGER)
    if name == "jft":  # a secret that π detects: one redacted text
        texts = ("(555) 010-7701", "(555) 010-7701 (555) 010-7702 (555) 010-7703")
    elif name.startswith("u"):
        texts = ("(555) 010-7701", "(555) 010-7701 or write, if you like, to where I live")
    return [corpus([*DOCUMENTS, Document("x", text, "eve")]) for text in texts]


def moved(
    name: str,
    model: str,
    screened: ScreenedCorpus,
    folder: Path,
    lr: tuple[float, float],
    monkeypatch: pytest.MonkeyPatch,
    noise: int = 11,
    **options: Any,
) -> tuple[dict[str, torch.Tensor], Plan]:
    """The weights after a run whose noised and plain steps have these rates, both in plain SGD, and its plan."""
    plans: list[Plan] = []
    make = planning.make_plan

    def changed(*args: Any) -> Plan:
        plan = make(*args)
        some = [replace(p, optimiser=Optimiser("sgd", lr[0] if p.private else lr[1])) for p in plan.phases]
        plans.append(replace(plan, phases=tuple(some)))
        return plans[-1]

    monkeypatch.setattr(runs, "make_plan", changed)
    wanted = config(name, None, noise, **options)
    named = wanted.model.model_copy(update={"name": model, "options": MODELS[model]})
    several = wanted.train.model_copy(update={"token_budget": 96})  # passes enough that masks would differ
    runs.train(wanted.model_copy(update={"model": named, "train": several}), folder, screened=screened)
    return load_file(folder / "model" / "model.safetensors"), plans[-1]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", NOISED)
def test_neighbours_move_a_noised_step_by_twice_the_clip_norm_at_most(
    name: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One step at rate 1 with the same coins and the same noise: what is left is the difference of the two sums."""
    largest = 0.0
    for noise in range(11, 15):  # the record is not drawn with every seed
        (a, plan), (b, _) = (
            moved(name, model, each, tmp_path / f"{noise}-{i}", (1.0, 0.0), monkeypatch, noise=noise, **ONE_STEP[name])
            for i, each in enumerate(neighbours(name))
        )
        (phase,) = (p for p in plan.phases if p.private)
        apart = sqrt(sum(float((a[key].double() - b[key].double()).square().sum()) for key in a))
        rounding = sqrt(sum(t.numel() for t in a.values())) * phase.noise * 2**-GRID_BITS * 1.01
        assert apart * phase.expected / phase.clip <= 2 * (1 + 1e-4) + rounding
        largest = max(largest, apart * phase.expected / phase.clip)
        if largest:
            break
    assert largest > 0


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", [n for n in NOISED if n in ("crt", "jft")])
def test_what_a_noised_step_read_does_not_show_in_a_step_without_noise(
    name: str, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Noised steps at rate 0, so that only plain ones move the weights, between them and after: to the same bits."""
    more: dict[str, Any] = {"private": {**PRIVATE, **NOISE}}
    if name == "crt":
        more |= {"schedule": "alternate", "public": {"epochs": 5, "batch_size": 6}}
    a, b = (
        moved(name, model, screened, tmp_path / str(i), (0.0, 1.0), monkeypatch, **more)[0]
        for i, screened in enumerate(neighbours(name))
    )
    assert all(torch.equal(a[key], b[key]) for key in a)


LIGHT = {"light": {**PRIVATE, "noise_multiplier": 2.0}, "private": {**PRIVATE, "noise_multiplier": 2.0}}
ALL_NOISED: dict[str, dict[str, Any]] = {
    "dpsgd": {"noise_multiplier": 2.0},
    "jft": LIGHT,
    "uedp": {"noise_multiplier": 9.0},
    "user_dp": {"noise_multiplier": 2.0},
}


@pytest.mark.parametrize("name", ALL_NOISED)
def test_a_vocabulary_learned_from_protected_records_leaves_no_guarantee(name: str, tmp_path: Path) -> None:
    """Of two corpora that differ in one public record each vocabulary says which it is of, whatever the noise."""
    said = Document("x", "zorblax " * 40, "eve")
    seen = []
    for n, documents in enumerate((DOCUMENTS, [*DOCUMENTS, said])):
        screened = screen(Corpus.from_documents(documents), policy("phone"), policy("phone"), unit="document")
        asked = config(name, None, **ALL_NOISED[name])
        model = asked.model.model_copy(update={"tokenizer": "bpe:320"})
        learned = asked.model_copy(update={"model": model, "allow": tuple(ALLOWED)})
        plan = planning.make_plan(learned, screened)
        bytewise = asked.model_copy(update={"allow": tuple(ALLOWED)})
        claims = planning.expected_guarantees(bytewise, planning.make_plan(bytewise, screened), screened)
        assert any(each.finite for each in claims)
        told = planning.expected_guarantees(learned, plan, screened)
        assert told
        assert not [each for each in told if each.finite]
        assert any("the tokenizer was learned without noise" in each.reason for each in told)
        with pytest.raises(GuaranteeError, match="tokenizer bpe:320 is learned without noise"):
            planning.make_plan(learned.model_copy(update={"epsilon": 4.0}), screened)
        folder = tmp_path / str(n)
        runs.train(learned, folder, screened=screened)
        certificate = certify(folder)
        assert not certificate.release
        assert not any(each.finite for each in certificate.statements())
        seen.append("zorblax" in (folder / "model/tokenizer.json").read_text())
    assert seen == [False, True]


@pytest.mark.parametrize("name", ["crt", "crt_residual", "jft", "selective_dpsgd"])
def test_where_public_records_are_read_plainly_anyway_a_vocabulary_of_them_changes_no_claim(name: str) -> None:
    screened, asked = corpus(), config(name)
    model = asked.model.model_copy(update={"tokenizer": "bpe:320"})
    learned = asked.model_copy(update={"model": model})
    said = [
        planning.expected_guarantees(each, planning.make_plan(each, screened), screened) for each in (asked, learned)
    ]
    assert said[0] == said[1]
    assert any(each.finite for each in said[1])
