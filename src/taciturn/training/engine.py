"""The one training loop: draw, gradient, ledger, update, notify. Mechanisms differ only in the plan they hand it."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from taciturn.errors import DataError, Interrupted, TaciturnError
from taciturn.models.evaluate import HeldOut, Utility
from taciturn.models.tokens import Tokens, mask_id
from taciturn.privacy.ledger import Ledger
from taciturn.training import checkpoint, optim
from taciturn.training.checkpoint import Position
from taciturn.training.noise import SecretSource
from taciturn.training.plan import Plan, Step
from taciturn.training.rules import plain_gradient, private_gradient
from taciturn.training.sampling import draw


@dataclass(frozen=True, slots=True)
class Progress:
    """What a display may show after a step: numbers only. loss is None in private phases, and stays unknown there."""

    step: Step
    total: int
    loss: float | None
    tokens: int | None
    seconds: float
    utility: Utility | None = None
    epsilon: float | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """How to run, without touching what is computed: none of these changes an update or a guarantee."""

    token_budget: int = 8192
    checkpoint_steps: int = 500
    checkpoint_seconds: float = 300.0
    evaluations: int = 8
    valid: HeldOut | None = None


def fit(
    plan: Plan,
    model: Any,
    tokenizer: Any,
    data: Mapping[str, Tokens],
    out: Path,
    options: Options,
    *,
    resume: bool = False,
    spent: Callable[[int], float | None] = lambda _: None,
    notify: Callable[[Progress], None] = lambda _: None,
) -> None:
    """Run ``plan`` on ``model`` in place; ``data`` maps a phase's name to its records, ``spent`` a number of steps to ε.
    Writes under ``out``: ledger.jsonl, metrics.jsonl and checkpoints/.

    Raises Interrupted after SIGINT (a checkpoint was written), DataError when ``out`` holds another run.
    """
    for phase in plan.phases:
        if len(data[phase.name]) != phase.records:
            raise DataError(f"phase {phase.name!r} has {len(data[phase.name])} records, its plan says {phase.records}")
    out.mkdir(parents=True, exist_ok=True)
    mask = mask_id(tokenizer)
    secret = SecretSource(plan.seeds.noise)
    torch.manual_seed(plan.seeds.model)
    optimisers = {phase.name: optim.build(phase.optimiser, model) for phase in plan.phases}
    at = _begin(plan, model, optimisers, out, resume)
    ledger = _open_ledger(out / "ledger.jsonl", at, resume)
    metrics = _open_metrics(out / "metrics.jsonl", at.metrics)
    started, saved, checked = time.monotonic(), time.monotonic(), at.steps > 0
    marks = _evaluation_marks(plan, options.evaluations)
    model.train()
    with _interruptible() as interrupted, ledger, metrics:
        for step in _from(plan, at.steps):
            rows = draw(step, plan.seeds.data, secret)
            ledger.append(step.number, step.phase.name, step.phase.event)
            tokens = data[step.phase.name]
            loss = None
            if step.phase.private:
                private_gradient(model, tokens, rows, mask, options.token_budget, step, secret)
            else:
                loss = plain_gradient(model, tokens, rows, mask, options.token_budget)
            lr = _apply(plan, step, model, optimisers[step.phase.name], check=not checked)
            checked = checked or lr > 0
            done = step.number + 1
            utility = options.valid.utility(model) if options.valid and done in marks else None
            seen = None if step.phase.private else int(tokens.lengths[rows].sum())
            progress = Progress(step, plan.total_steps, loss, seen, time.monotonic() - started, utility, spent(done))
            _write_metrics(metrics, progress)
            notify(progress)
            due = done % options.checkpoint_steps == 0 or time.monotonic() - saved > options.checkpoint_seconds
            if due or interrupted() or done == plan.total_steps:
                ledger.sync()
                metrics.flush()
                position = Position(done, len(ledger), metrics.tell())
                checkpoint.save(out / "checkpoints", plan.key, position, model, optimisers)
                saved = time.monotonic()
            if interrupted():
                raise Interrupted(f"stopped after step {done} of {plan.total_steps}; continue with --resume")
    model.eval()


def _begin(plan: Plan, model: nn.Module, optimisers: dict[str, Any], out: Path, resume: bool) -> Position:
    folder = out / "checkpoints"
    if resume:
        return checkpoint.load(folder, plan.key, model, optimisers)
    if (out / "ledger.jsonl").exists():
        raise DataError(f"{out} already holds a run: continue it with --resume, or name another folder")
    return Position(0, 0, 0)


def _from(plan: Plan, first: int) -> Iterator[Step]:
    return (step for step in plan.unroll() if step.number >= first)


def _apply(plan: Plan, step: Step, model: nn.Module, optimiser: torch.optim.Optimizer, check: bool) -> float:
    """One optimiser step at the scheduled rate. With ``check``, every trainable tensor must have moved."""
    config = step.phase.optimiser
    lr = optim.learning_rate(config, step.in_phase, plan.steps_of(step.phase))
    for group in optimiser.param_groups:
        group["lr"] = lr
    if config.max_grad_norm is not None and not step.phase.private:
        nn.utils.clip_grad_norm_(model.parameters(), config.max_grad_norm)
    before = [(n, p, p.detach().clone()) for n, p in model.named_parameters() if p.requires_grad] if check else []
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    still = [name for name, p, old in before if torch.equal(p.detach(), old)]
    if still and lr > 0:
        raise TaciturnError(
            f"after the first update these trainable tensors had not moved: {', '.join(still[:8])}. They take no part in "
            "the loss; freeze them (requires_grad_(False)) or fix the model"
        )
    return lr


def _evaluation_marks(plan: Plan, evaluations: int) -> set[int]:
    """Steps after which validation perplexity is taken: evenly spread, and where a phase ends."""
    total = plan.total_steps
    marks = {round(total * i / evaluations) for i in range(1, evaluations + 1)} if evaluations else set()
    if evaluations and plan.repeat <= evaluations:
        end = 0
        for _ in range(plan.repeat):
            for phase in plan.phases:
                end += phase.steps
                marks.add(end)
    return marks


def _open_ledger(path: Path, at: Position, resume: bool) -> Ledger:
    if not resume:
        return Ledger.create(path)
    ledger = Ledger.resume(path)
    ledger.truncate_to(at.ledger)  # steps after the checkpoint were never released: they run again, or not at all
    return ledger


def _open_metrics(path: Path, keep: int) -> Any:
    file = path.open("a+b")
    file.truncate(keep)
    file.seek(0, os.SEEK_END)
    return file


def _write_metrics(file: Any, p: Progress) -> None:
    """A private step leaves its number and ε only: its loss, size and duration would tell something about its records."""
    private = p.step.phase.private
    rows: list[dict[str, Any]] = [
        {
            "kind": "step",
            "step": p.step.number + 1,
            "phase": p.step.phase.name,
            "loss": p.loss,
            "epsilon": p.epsilon,
            "tokens": p.tokens,
            "seconds": None if private else round(p.seconds, 3),
        }
    ]
    if p.utility is not None:
        rows.append(
            {
                "kind": "eval",
                "step": p.step.number + 1,
                "phase": p.step.phase.name,
                "epoch": p.step.round + 1,
                "split": "valid",
                "perplexity": p.utility.perplexity,
                "perplexity_public_tokens": p.utility.perplexity_outside,
                "epsilon": p.epsilon,
            }
        )
    file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))


@contextmanager
def _interruptible() -> Iterator[Callable[[], bool]]:
    """SIGINT asks the loop to finish its step; a second one stops at once. Outside the main thread: no handler."""
    asked: list[int] = []

    def handler(*_: Any) -> None:
        asked.append(1)
        if len(asked) > 1:
            raise KeyboardInterrupt

    try:
        previous = signal.signal(signal.SIGINT, handler)
    except ValueError:
        yield lambda: False
        return
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, previous)
