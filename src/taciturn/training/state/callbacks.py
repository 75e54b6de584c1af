"""Objects with the methods of `transformers.TrainerCallback`, told of a run while it goes on.

They see what a display may show (metrics.Progress) and nothing else: of a noised step its number and ε. Weights in between,
gradients, batches and losses of private records are not theirs to have.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taciturn.errors import Interrupted, UsageError
from taciturn.training import optim
from taciturn.training.plan import Plan
from taciturn.training.state import checkpoint
from taciturn.training.state.metrics import Progress

NEVER = {
    "on_epoch_begin": "phases with and without noise share no epochs",
    "on_epoch_end": "phases with and without noise share no epochs",
    "on_step_begin": "a run is seen after each step; use on_step_end",
    "on_substep_end": "how many passes a step took tells how many records it drew",
    "on_pre_optimizer_step": "gradients are not shown, and what changed them would be outside the guarantee",
    "on_optimizer_step": "gradients are not shown, and what changed them would be outside the guarantee",
    "on_prediction_step": "nothing predicts while a run goes on",
    "on_predict": "nothing predicts while a run goes on",
    "on_push_begin": "nothing is pushed while a run goes on",
}
"""Methods of TrainerCallback that are never called, and why: a callback that has one is refused."""


class Callbacks:
    """Calls on_init_end, on_train_begin, on_step_end, on_log, on_evaluate, on_save and on_train_end of each callback, with
    ``args``, a `TrainerState`, a `TrainerControl` and, by name, ``processing_class``, ``model`` (None but in on_train_end),
    ``logs`` or ``metrics``. A callback may set ``should_training_stop``: the run stops after the step as after an
    interrupt, with a checkpoint. It can change nothing else.

    every: steps between calls of on_log, 0 for none. first: whether the first step is logged. epochs: what state.epoch
    counts up to. Raises UsageError for a callback with a method that is never called, or that asks for what a plan fixes.
    """

    def __init__(
        self, callbacks: Sequence[Any], plan: Plan, out: Path, args: Any, *, every: int = 10, first: bool = False,
        epochs: float = 1.0, coder: Any = None,
    ) -> None:  # fmt: skip
        from transformers.trainer_callback import TrainerControl, TrainerState

        self._callbacks: list[Any] = []
        self._out, self._args, self._coder = out, args, coder
        self._every, self._first, self._epochs = every, first, epochs
        self._rates = {phase.name: optim.schedule(phase.optimiser, plan.steps_of(phase)) for phase in plan.phases}
        self._losses: list[float] = []
        self._saved = self._newest()
        self.control = TrainerControl()
        leads = os.environ.get("RANK", "0") == "0"
        self.state = TrainerState(max_steps=plan.total_steps, logging_steps=every, is_world_process_zero=leads)
        for each in callbacks:
            self.add(each)

    def add(self, callback: Any) -> None:
        """One more, an object or its class; on_init_end is called."""
        from transformers.trainer_callback import TrainerCallback

        made = callback() if isinstance(callback, type) else callback
        for name, why in NEVER.items():
            if getattr(type(made), name, None) not in (None, getattr(TrainerCallback, name, None)):
                raise UsageError(f"callback {type(made).__name__} has {name}, which is never called: {why}")
        self._callbacks.append(made)
        self._call("on_init_end", to=[made])

    def begin(self) -> None:
        """A run begins or goes on."""
        self._call("on_train_begin")

    def step(self, p: Progress) -> None:
        """After each step; a second time where what a step shows had to wait for a checkpoint."""
        self.saved()
        done = p.step.number + 1
        again, self.state.global_step = done == self.state.global_step, done
        self.state.epoch = self._epochs * done / p.total
        if p.loss is not None:
            self._losses.append(p.loss)
        if not again:
            self._call("on_step_end")
            if self._every and (done % self._every == 0 or (done == 1 and self._first) or done == p.total):
                self._log(p)
        if p.utility is not None:
            found = {"perplexity": p.utility.perplexity, "perplexity_public_tokens": p.utility.perplexity_outside}
            found |= {} if p.utility.accuracy is None else {"accuracy": p.utility.accuracy}
            metrics = {f"eval_{name}": value for name, value in found.items()}
            self.state.log_history.append({**metrics, "step": done, "epoch": self.state.epoch})
            self._call("on_evaluate", metrics=metrics)

    def end(self, model: Any) -> None:
        """The run has ended, with this model."""
        self.saved()
        self._call("on_train_end", model=model)

    def _log(self, p: Progress) -> None:
        logs: dict[str, float] = {"learning_rate": self._rates[p.step.phase.name](p.step.in_phase)}
        if self._losses:
            logs["loss"] = sum(self._losses) / len(self._losses)
        if p.epsilon is not None:
            logs["epsilon"] = p.epsilon
        self._losses.clear()
        logs["epoch"] = self.state.epoch
        self.state.log_history.append({**logs, "step": self.state.global_step})
        self._call("on_log", logs=logs)

    def _newest(self) -> Path | None:
        return next(reversed(checkpoint.complete(self._out / "checkpoints")), None)

    def saved(self) -> None:
        """Look whether there is a newer checkpoint."""
        if (newest := self._newest()) != self._saved:
            self._saved = newest
            self._call("on_save")

    def _call(self, name: str, to: Sequence[Any] | None = None, **told: Any) -> None:
        for each in self._callbacks if to is None else to:
            method = getattr(each, name, None)
            if method is None:
                continue
            told = {"model": None, **told}
            said = method(self._args, self.state, self.control, processing_class=self._coder, **told)
            self.control = self.control if said is None else said
            for flag in ("should_save", "should_evaluate", "should_log", "should_epoch_stop"):
                if getattr(self.control, flag):
                    raise UsageError(
                        f"callback {type(each).__name__} set {flag}: what a run does is fixed by its plan and settings "
                        "(save_steps, logging_steps); a callback may ask for should_training_stop alone"
                    )
        if name == "on_step_end" and self.control.should_training_stop:
            _stop()


def _stop() -> None:
    """As if SIGINT had come (interrupt.py): the step ends with a checkpoint. Threads get no signals."""
    if threading.current_thread() is not threading.main_thread():
        raise Interrupted("a callback stopped the run; continue from the last checkpoint with --resume")
    signal.raise_signal(signal.SIGINT)
