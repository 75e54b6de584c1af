"""``taciturn.PrivateSteps``: own modules, losses and loops. It owns what a proof needs: draw, clip, noise, ledger, guard.

out:  plan.json  evidence.json  ledger.jsonl  checkpoints/ (the key of the noise)  model/  certificate.json
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.utils.data import default_collate

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.mechanisms import config, own_loop
from taciturn.mechanisms.cost import running
from taciturn.mechanisms.lock import training
from taciturn.mechanisms.planning import within_target
from taciturn.mechanisms.refusals import DEFAULT_DELTA, refusals, refuse
from taciturn.mechanisms.registry import guarantees
from taciturn.mechanisms.run_folder import check_resumable
from taciturn.privacy.certificates.certificate import Certificate, issue
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.text.atomic import write_text
from taciturn.training.own_steps import OwnLoss, own_steps, state_of
from taciturn.training.phase import Phase
from taciturn.training.plan import Model, Plan, Seeds, Target
from taciturn.training.samplers import Poisson
from taciturn.training.state.checkpoint import Position
from taciturn.training.state.releases import finish

PHASE = "private"


@dataclass(frozen=True, slots=True)
class Taken:
    """A step that was taken: its number, from 1 on, of how many, and ε spent so far at the target's δ by substitution, None
    without a δ. Of the records it drew nothing may be known, not even how many they were."""

    number: int
    of: int
    epsilon: float | None


class PrivateSteps:
    """Iterate over it: in each round ``.grad`` of the trainable parameters is a noised sum of clipped per-record gradients,
    over a constant, and is yours to do with as you like::

        private = tt.PrivateSteps(model, loss, records, examples, "runs/own", epsilon=3, delta=1e-6, steps=500, batch=256)
        for step in private:
            optimizer.step()
            optimizer.zero_grad()
        certificate = private.finish(model.save_pretrained)

    model: any module whose trainable parameters have a per-record rule (``taciturn check``). loss(model, batch): one number
    for each record of a batch, [records], differentiable; evaluation mode is on while it runs, and drawing from torch's
    random streams is an error. records: a sequence (len, indices); the plan draws from it, Poisson at ``rate`` or
    ``batch``/len. collate: what makes a batch of a list of records. examples: made-up records of the same kind, three or
    more: before a private record is read, per-record gradients are compared on them with one record at a time. out: a new
    folder. at_once: records in one pass, which changes nothing but memory and rounding. epsilon, delta: by substitution;
    the noise is calibrated to them, or give ``noise_multiplier``. options: ``steps``, ``batch``, ``rate``, ``clip``,
    ``clipping`` and what else a private phase takes (mechanisms/config.py), without an optimiser. noise_seed: a number
    makes noise and draws repeatable, and the guarantee void. resume: what :meth:`state_dict` gave, in the same ``out``.

    Raises UsageError for a wrong option, a loader in place of records, a loss or model that mixes records, a plan that is
    refused (mechanisms/refusals.py), GuaranteeError over the target, DataError for a folder in use, MismatchError where
    ``resume`` is of another run.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Callable[[nn.Module, Any], Tensor],
        records: Sequence[Any],
        examples: Sequence[Any],
        out: str | os.PathLike[str],
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        collate: Callable[[list[Any]], Any] = default_collate,
        at_once: int = 32,
        allow: Sequence[str] = (),
        noise_seed: int | None = None,
        resume: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            raise UsageError(
                f"model: {type(model).__name__} exchanges plain gradients between processes, unclipped and without noise, "
                "and steps of one's own run in one process: give the module inside (accelerator.unwrap_model(model)); for "
                "several processes there is taciturn.PrivateTrainer, or taciturn train under torchrun"
            )
        if at_once < 1:
            raise UsageError(f"at_once: expected at least one record in a pass, found {at_once}")
        self._records, self._at_once, self._out = _indexed(records), at_once, Path(out)
        self._own = OwnLoss(model, loss, collate)
        steps = _options(options)
        self.plan = _plan(model, len(records), Target(epsilon, delta), noise_seed, steps)
        refuse(self.plan, steps, allow)
        within_target(self.plan)
        self._allowed = tuple(sorted(refusals(self.plan, steps)))
        self._position, self._resume = _position(resume), resume is not None
        if resume is not None:
            check_resumable(self.plan, None, self._out)
        self._state = state_of(self.plan, model, None if resume is None else resume["clip"])
        self._spent, self._done = running(self.plan), self._position.steps
        self._examples = list(examples)
        self.difference = self._own.check(self._examples)
        """The largest relative difference of per-record gradients from one record at a time, on the examples."""

    def __len__(self) -> int:
        """Steps that are left."""
        return self.plan.total_steps - self._done

    def __iter__(self) -> Iterator[Taken]:
        self._own.check(self._examples)  # layers may have been replaced or thawed since
        with training(self._out, self._resume):
            if not self._resume:
                self._begin()
            steps = own_steps(
                self.plan, self._own, self._records, self._out, self._position, self._resume, self._at_once, self._state
            )
            try:
                for step, releases in steps:
                    self._done = step.number + 1
                    lines, digest = releases.position()
                    self._position = Position(self._done, lines, 0, digest)
                    yield Taken(self._done, self.plan.total_steps, self._spent(self._done, releases.lost))
            finally:
                steps.close()
                self._resume = True

    def state_dict(self) -> dict[str, Any]:
        """Where the steps stand, to be kept with the weights and the optimiser's state that belong to it. What is done after
        it and lost with them is paid for."""
        at = self._position
        return {"plan": self.plan.key, "steps": at.steps, "ledger": at.ledger, "digest": at.digest,
                "clip": self._state.clips[PHASE]}  # fmt: skip

    def finish(self, save: Callable[[Path], Any]) -> Certificate:
        """``save`` the model into a folder, end the run, and write its certificate.

        Raises DataError while steps are left: what was planned is what is certified.
        """
        if len(self):
            raise DataError(
                f"{self._out}: {len(self)} of {self.plan.total_steps} steps are left; take them, then finish"
            )
        with training(self._out, True):
            folder = self._out / "model"
            partial = folder.with_name(".model.partial")
            partial.mkdir(exist_ok=True)
            save(partial)
            os.replace(partial, folder)
            finish(self._out)
            packages = {name: version(name) for name in ("torch", "numpy")}
            certificate = issue(self._out, guarantees, packages)
            certificate.write(self._out / "certificate.json")
        return certificate

    def _begin(self) -> None:
        if (self._out / "plan.json").exists():
            raise DataError(f"{self._out} already holds a run: give resume=, or name another folder")
        evidence = Evidence(
            delta=self.plan.target.delta or DEFAULT_DELTA,
            redacted=False,
            protected=len(self._records),
            allowed=self._allowed,
            seeded_noise=self.plan.seeds.noise is not None,
        )
        write_text(self._out / "plan.json", json.dumps(self.plan.to_json(), indent=1, sort_keys=True))
        write_text(self._out / "evidence.json", json.dumps(evidence.to_json(), indent=1, sort_keys=True))


def _options(options: Mapping[str, Any]) -> config.PrivateSteps:
    if "optimiser" in options:
        raise UsageError("optimiser: the loop has its own; leave it out")
    return config.parse(config.PrivateSteps, dict(options), "options of PrivateSteps")


def _plan(model: nn.Module, records: int, target: Target, seed: int | None, steps: config.PrivateSteps) -> Plan:
    phase = Phase(
        PHASE,
        ("original",),
        records,
        Poisson(steps.sampling_rate(records)),
        steps.rule(records, target),
        steps.steps,
        steps.optimiser.build(),
    )
    named = Model(f"own {type(model).__name__}"[:64])
    return Plan(own_loop.NAME, (phase,), 1, target, "own records", named, Seeds(noise=seed))


def _indexed(records: Any) -> Any:
    if hasattr(records, "__getitem__") and hasattr(records, "__len__"):
        return records
    raise UsageError(
        f"records: expected a sequence with a length and indices, found a {type(records).__name__}. The plan draws the "
        "batches; a loader or iterator of its own would draw them at a rate the accountant does not know, and the stated ε "
        "would not hold: give the dataset behind it"
    )


def _position(resume: Mapping[str, Any] | None) -> Position:
    if resume is None:
        return Position(0, 0, 0)
    try:
        return Position(int(resume["steps"]), int(resume["ledger"]), 0, str(resume["digest"]))
    except (KeyError, TypeError, ValueError):
        raise MismatchError("resume: expected what state_dict() gave, found something else") from None
