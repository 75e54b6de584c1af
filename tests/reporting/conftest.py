"""Run folders as training, certifying and auditing leave them: four models of one corpus, in numbers."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.accounting.events import Event, KindsGaussian, NonPrivate, PoissonGaussian, SelectiveGaussian
from taciturn.privacy.certificates.certificate import issue
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.reporting.content import collect
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.html import page

DELTA = 8e-5
NOISY = PoissonGaussian(rate=0.02, noise_multiplier=1.0)
RUNS = ("unprotected", "redacted", "crt-published", "crt-skeletons")
COUNTS = {
    "documents": 1000, "read": 9000, "public": 4100, "private": 4896, "quarantined": 4, "blank": 120, "suspicious": 410,
    "duplicates": 182, "skeletons": 4890, "skeletons_refused": 6, "spans": 6120, "spans_undetected_after_check": 3,
    "gold_spans": 200, "gold_missed_by_pi": 20, "gold_missed_by_both": 0, "detector_failures": 0,
}  # fmt: skip
MECHANISM = {"unprotected": "sgd", "crt-published": "crt", "crt-skeletons": "crt", "classifier": "dpsgd"}
PERPLEXITY = {"unprotected": 1.47, "redacted": 1.48, "crt-published": 4.86, "crt-skeletons": 1.50}
KINDS = KindsGaussian((0.02, 0.04), 8.0)
PHASES: dict[str, list[tuple[str, int, Event]]] = {
    "unprotected": [("plain", 300, NonPrivate(("original",)))],
    "redacted": [("plain", 300, NonPrivate(("redacted",)))],
    "crt-published": [("public", 140, NonPrivate(("public",))), ("private", 200, NOISY)],
    "crt-skeletons": [("public", 300, NonPrivate(("public", "skeletons"))), ("private", 200, NOISY)],
    "crt_residual": [("public", 60, NonPrivate(("public", "skeletons"))), ("private", 40, NOISY)],
    "jft": [("redacted", 60, NonPrivate(("redacted",))), ("private", 40, NOISY)],
    "selective_dpsgd": [("private", 10, SelectiveGaussian(0.1, 6.0, 12.0, 2))],
    "uedp": [("private", 40, KINDS)],
    "user_dp": [("private", 40, PoissonGaussian(0.02, 1.5))],
    "classifier": [("private", 40, NOISY)],
}
MECHANISMS = ("crt_residual", "jft", "selective_dpsgd", "uedp", "user_dp", "classifier")
UNIT = {"crt_residual": "residual", "uedp": "user-entity", "user_dp": "user"}
RELATION = {"uedp": "add-remove", "user_dp": "add-remove", "classifier": "add-remove"}
ENTITIES = {
    "detected": 36.0,
    "extended": 114.0,
    "pairs": 984.0,
    "median": 3.0,
    "p95": 5.0,
    "largest": 8.0,
    "target_k": 3.0,
}


def plan(name: str) -> dict[str, Any]:
    phases = []
    for phase, steps, event in PHASES[name]:
        noisy = not isinstance(event, NonPrivate)
        phases.append(
            {
                "name": phase,
                "reads": [noised_part(name)] if not isinstance(event, NonPrivate) else list(event.reads),
                "records": 4896 if noisy else 8990,
                "steps": steps,
                "event": event.to_json(),
                "sampler": {"name": "Poisson", "rate": 0.02} if noisy else {"name": "Shuffle", "batch_size": 32},
                "rule": {"name": "ClipNoise", "clip": 1.0, "noise_multiplier": 1.0} if noisy else {"name": "Plain"},
                "optimiser": {"name": "adamw", "lr": 1e-3, "schedule": "constant"},
                "unit": UNIT.get(name, "record") if noisy else "record",
            }
        )
    return {
        "mechanism": MECHANISM.get(name, name),
        "relation": RELATION.get(name, "substitution"),
        "group": 3 if name == "uedp" else 1,
        "free": ["redacted"] if name == "jft" else [],
        "target": {"epsilon": 3.0, "delta": DELTA} if "crt" in name else None,
        "phases": phases,
        "repeat": 1,
        "model": {"name": "lstm", "tokenizer": "auto", "task": "classify" if name == "classifier" else "causal"},
        "seeds": {"model": 0, "data": 0, "noise": "os"},
        "corpus_key": "3f9c1a77d0b2",
    }


def noised_part(name: str) -> str:
    return "private" if "crt" in name else "original"


def evidence(name: str) -> Evidence:
    return Evidence(
        delta=DELTA, redacted="crt" in name or name == "redacted", skeletons=name in ("crt-skeletons", "crt_residual"),
        labelled=200, missed_by_pi=20, missed_by_both=0, counts=COUNTS, units=ENTITIES if name == "uedp" else {},
        protected=4896 if any(not isinstance(event, NonPrivate) for *_, event in PHASES[name]) else None,
    )  # fmt: skip


def metrics(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    total = sum(steps for _, steps, _ in PHASES[name])
    noised = sum(steps for _, steps, event in PHASES[name] if not isinstance(event, NonPrivate))
    step = noisy = 0
    for phase, steps, event in PHASES[name]:
        for _ in range(steps):
            step += 1
            private = not isinstance(event, NonPrivate)
            noisy += private
            loss = None if private else 1 + 5 / step
            epsilon = 2.2 * math.sqrt(noisy / max(noised, 1))
            row = {"kind": "step", "step": step, "phase": phase, "loss": loss, "epsilon": epsilon, "tokens": 900}
            rows.append(row)
            if step % (total // 5) == 0:
                perplexity = PERPLEXITY.get(name, 2.0) * (1 + 30 * math.exp(-6 * step / total) - 30 * math.exp(-6))
                measured = {"perplexity": perplexity, "perplexity_public_tokens": perplexity * 0.95}
                if name == "classifier":
                    measured["accuracy"] = 0.5 + 0.4 * step / total
                rows.append({"kind": "eval", "step": step, "epoch": 1, "phase": phase, "split": "valid", **measured})
    return rows


def compared(name: str) -> dict[str, Any]:
    """What the audit says of the lower bound beside the certificate."""
    about: dict[str, Any] = {"notion": "confidentiality", "relation": "substitution", "k": 1}
    if name != "crt-skeletons":
        return about | {"epsilon": None, "why": "no statement of the certificate is about it"}
    return about | {"epsilon": 2.2242, "delta": DELTA, "eps_lower": 0.123, "exceeded": False, "noise_at_most": 1.7}


def audit(name: str) -> dict[str, Any]:
    chance = random.Random(name)
    leaky = "crt" not in name
    verdict = "leak" if leaky else "no leak found"
    exposures = [math.log2(10**6) if leaky else -math.log2(1 - chance.random()) for _ in range(10)]
    fpr = [i / 200 for i in range(201)]
    exposure = {
        "attack": "exposure", "score": max(exposures), "unit_of_score": "bits", "interval": None,
        "null": {"p95": 7.61, "mean": 4.2255, "p": 1e-5 if leaky else 0.31},
        "controls": {"positive": 19.93, "negative": 3.4}, "verdict": verdict,
        "detail": {"exposures": exposures, "max_possible": math.log2(10**6), "eps_lower": 4.1 if leaky else 0.0,
                   "certificate": compared(name)},
        "notes": [],
    }  # fmt: skip
    membership = {
        "attack": "membership", "score": 0.74 if leaky else 0.508, "unit_of_score": "AUC",
        "interval": [0.72, 0.76] if leaky else [0.483, 0.533],
        "null": {"mean": 0.5, "p95": 0.521, "p": 1e-9 if leaky else 0.2, "accuracy_p95": 0.526},
        "controls": {"positive": 0.98, "negative": 0.497, "blind": 0.51}, "verdict": verdict,
        "detail": {"roc_fpr": fpr, "roc_tpr": [x ** (0.35 if leaky else 0.97) for x in fpr], "eps_lower": 0.0,
                   "accuracy": 0.68 if leaky else 0.502, "tpr_at_fpr_0.01": [0.2, 0.17, 0.23] if leaky else None,
                   "attacks": {"loss": {"auc": 0.508, "interval": [0.483, 0.533], "p": 0.2, "tpr_at_fpr_0.01": None}}},
        "notes": [],
    }  # fmt: skip
    return {"findings": [exposure, membership]}


def write_run(folder: Path, like: str, without: tuple[str, ...] = ()) -> Path:
    """A run folder ``folder`` with what a run like ``like`` leaves, less the files ``without``."""
    folder.mkdir(parents=True)
    (folder / "plan.json").write_text(json.dumps(plan(like)), "utf-8")
    (folder / "evidence.json").write_text(json.dumps(evidence(like).to_json()), "utf-8")
    (folder / "audit.json").write_text(json.dumps(audit(like)), "utf-8")
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in metrics(like)), "utf-8")
    step = 0
    with Ledger.create(folder / "ledger.jsonl") as ledger:
        for phase, steps, event in PHASES[like]:
            for _ in range(steps):
                ledger.append(step, phase, event)
                step += 1
    certificate = issue(folder, guarantees, {"torch": "2.13.0", "python": "3.11.9"})
    certificate.write(folder / "certificate.json")
    for name in without:
        (folder / name).unlink()
    return folder


@pytest.fixture(scope="session")
def four(tmp_path_factory: pytest.TempPathFactory) -> list[RunView]:
    base = tmp_path_factory.mktemp("four")
    return [RunView.load(write_run(base / name, name)) for name in RUNS]


@pytest.fixture(scope="session")
def eight(tmp_path_factory: pytest.TempPathFactory) -> list[RunView]:
    """One run of each further mechanism, and two without noise."""
    base = tmp_path_factory.mktemp("eight")
    return [RunView.load(write_run(base / name, name)) for name in (*MECHANISMS, "unprotected", "redacted")]


@pytest.fixture(scope="session")
def told(four: list[RunView], eight: list[RunView]) -> dict[int, dict[str, Any]]:
    """The content of reports of 1, 4 and 8 runs, collected once."""
    return {len(runs): collect(runs) for runs in ([four[3]], four, eight)}


@pytest.fixture(scope="session")
def shown(told: dict[int, dict[str, Any]]) -> dict[int, str]:
    """Their pages."""
    return {number: page(content) for number, content in told.items()}


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """``make_run(name, like="crt-skeletons", without=())``: a fresh run folder."""

    def make(name: str, like: str = "crt-skeletons", without: tuple[str, ...] = ()) -> Path:
        return write_run(tmp_path / name, like, without)

    return make
