"""Train a plan, score it where each phase ends, follow its canaries at checkpoints, certify, and keep numbers only."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.recipes.cells import Row, Work

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.text.document import Record

PLAINLY: Any = {"checkpoint_steps": 10**6, "checkpoint_minutes": 1e6}


@dataclass(frozen=True, slots=True)
class Canaries:
    """What was planted, and after how many updates one looks at it again (0: only at the end)."""

    template: Any
    secrets: tuple[str, ...]
    every: int = 0


def trained(
    work: Work,
    name: str,
    mechanism: str,
    screened: ScreenedCorpus,
    model: Any,
    test: Sequence[Record],
    *,
    options: Mapping[str, Any],
    epsilon: float | None = None,
    delta: float = 1e-5,
    seed: int = 0,
    labelled: tuple[int, int] | None = None,
    canaries: Canaries | None = None,
    evaluations: int = 1,
    frozen_cache: Path | None = None,
) -> Row:
    """Numbers of one run; its folder is removed.

    Returns scores ([phase, updates, perplexity or accuracy], where each phase ends and evenly spread), score (the last),
    sigma and rate (by phase), claims (every statement of the certificate as :func:`claim` has it), and with canaries points:
    [updates, perplexity, highest exposure, mean exposure]. labelled: secrets of a labelled sample, and how many were missed.
    Noise is the operating system's; seed decides first weights and the order of public batches. frozen_cache: a file of what
    frozen first layers make of records, which cells share.
    """
    import taciturn as tt

    scores: list[list[Any]] = []

    def notify(progress: Any) -> None:
        if progress.utility is not None:
            scores.append([progress.step.phase.name, progress.step.number + 1, _score(progress.utility)])

    follow: Any = {} if canaries is None or not canaries.every else {"checkpoint_steps": canaries.every, "keep": 10**6}
    how: Any = {
        "token_budget": token_budget(),
        "evaluations": evaluations,
        "valid_limit": max(len(test), 1),
        "frozen_cache": None if frozen_cache is None else str(frozen_cache),
        **PLAINLY,
        **follow,
    }
    planned = tt.plan(
        mechanism,
        screened,
        model,
        epsilon=epsilon,
        delta=delta,
        seeds={"model": seed, "data": seed},
        train=how,
        allow=sorted(ALLOWED),  # settings are the paper's, and small corpora stand for large ones
        **options,
    )
    with _folder(work, f"{name}-{seed}") as out:  # seeds may be measured by several processes at once
        run = tt.train(planned, out, valid=list(test), notify=notify)
        counts: dict[str, Any] = (
            {} if labelled is None else {"labelled": labelled[0], "missed": labelled[1], "missed_by_both": 0}
        )
        certificate = run.certify(**counts)
        plan = json.loads((out / "plan.json").read_text())
        points = [] if canaries is None else _followed(run, out, canaries, test)
    events = {phase["name"]: phase["event"] for phase in plan["phases"] if "noise_multiplier" in phase["event"]}
    return {
        "scores": scores,
        "score": scores[-1][-1],
        "sigma": {phase: event["noise_multiplier"] for phase, event in events.items()},
        "rate": {phase: event.get("rate") for phase, event in events.items()},
        "claims": [claim(each) for each in certificate.statements()],
        "points": points,
    }


def token_budget(least: int = 4096) -> int:
    """Tokens of one pass: more on a GPU, which has the memory for them."""
    import torch

    return 16 * least if torch.cuda.is_available() else least


def claim(each: Any) -> Row:
    """A statement as plain values."""
    names = ("notion", "unit", "relation", "status", "epsilon", "delta")
    return {name: getattr(each, name) for name in names} | {"detail": dict(each.detail)}


def untrained(model: Mapping[str, Any], test: Sequence[Record], seed: int = 0) -> float:
    """Perplexity or accuracy of a model as it is named; a classifier's head is drawn from ``seed``."""
    from taciturn.models.held_out import HeldOut
    from taciturn.models.hf import load_model
    from taciturn.models.tokenizers import load_tokenizer

    task, labels = model.get("task", "causal"), model.get("labels", ())
    tokenizer = load_tokenizer(model.get("tokenizer", "auto"), model["name"])
    net = load_model(model["name"], tokenizer, seed, model.get("options"), task=task, labels=labels)
    return _score(HeldOut.of(tokenizer, test, model.get("max_length"), task=task, names=labels).utility(net))


def constant(model: Mapping[str, Any], train: Sequence[Record], test: Sequence[Record]) -> float:
    """Perplexity or accuracy on ``test`` of the best prediction that looks at no text: the largest class of the test, or the
    frequencies of the tokens in the training text, with one added to each of the vocabulary (Laplace)."""
    import numpy as np

    from taciturn.models.sequences import mask_id
    from taciturn.models.tokenizers import load_tokenizer
    from taciturn.models.tokens import encode_all

    if model.get("task") == "classify":
        labels = [record.label for record in test]
        return max(map(labels.count, labels)) / len(labels)
    tokenizer = load_tokenizer(model.get("tokenizer", "auto"), model["name"])
    mask = mask_id(tokenizer)

    def scored(records: Sequence[Record]) -> Any:
        coded = encode_all(tokenizer, [record.body for record in records], model.get("max_length"))
        return np.concatenate([coded[i][coded.targets(i, mask)] for i in range(len(coded))])

    counts = np.bincount(scored(train), minlength=len(tokenizer)) + 1.0
    return float(np.exp(-np.log(counts / counts.sum())[scored(test)].mean()))


def _score(utility: Any) -> float:
    return float(utility.perplexity if utility.accuracy is None else utility.accuracy)


def _followed(run: Any, out: Path, canaries: Canaries, test: Sequence[Record]) -> list[list[float]]:
    """[updates, perplexity, highest exposure, mean exposure] of every checkpoint and of the end."""
    import math

    import numpy as np
    import torch

    from taciturn.auditing.exposure.ranking import ranks
    from taciturn.models.held_out import HeldOut

    model, tokenizer = run.model()
    held = HeldOut.of(tokenizer, test)
    size = canaries.template.size

    def point(updates: int) -> list[float]:
        bits = math.log2(size) - np.log2(ranks(model, tokenizer, canaries.template, canaries.secrets))
        return [updates, _score(held.utility(model)), float(bits.max()), float(bits.mean())]

    points = []
    for path in sorted((out / "checkpoints").glob("step-*.pt")):
        kept = torch.load(path, weights_only=True, map_location="cpu")
        model.load_state_dict(kept["model"])
        points.append(point(kept["position"][0]))
    return points or [point(0)]


@contextmanager
def _folder(work: Work, name: str) -> Iterator[Path]:
    """An empty run folder, gone afterwards; what a run that was killed left there goes first."""
    out = work.path("runs", name)
    shutil.rmtree(out, ignore_errors=True)
    try:
        yield out
    finally:
        shutil.rmtree(out, ignore_errors=True)
