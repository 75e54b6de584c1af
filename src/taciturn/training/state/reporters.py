"""The rows of metrics.jsonl for TensorBoard, Weights & Biases and MLflow: numbers only, and no time that a noised step took.

A service notes when a row arrives. From the first noised step on, rows therefore wait until the run ends or stops, and how
long all of it took is what a service may know. TensorBoard's events are a file, whose clock stands still instead.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from taciturn.errors import MissingExtra

NAME = "taciturn"
"""Of the project or experiment, where the environment (WANDB_PROJECT, MLFLOW_EXPERIMENT_NAME) names no other."""
SHOWN = ("loss", "tokens", "epsilon", "perplexity", "perplexity_public_tokens", "accuracy")
MODULES = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb", "mlflow": "mlflow"}


class Reporter(Protocol):
    """Made of a run's folder, its plan's key and the steps that were done before."""

    def add(self, row: Mapping[str, Any], private: bool, seconds: float) -> None:
        """A row of metrics.jsonl; seconds: that steps without noise have taken."""

    def flush(self) -> None: ...

    def close(self) -> None: ...


def library(name: str) -> Any:
    """The module that a reporter needs. Raises MissingExtra."""
    try:
        return import_module(MODULES[name])
    except ImportError as error:
        raise MissingExtra(name, name) from error


def numbers(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """(tag, value) of what a row shows.

    >>> list(numbers({"kind": "step", "phase": "public", "loss": 2.5, "tokens": None, "epsilon": 1.0}))
    [('public/loss', 2.5), ('privacy/epsilon', 1.0)]
    """
    for name in SHOWN:
        if row.get(name) is not None:
            kind = "valid" if row["kind"] == "eval" and name != "epsilon" else row["phase"]
            yield "privacy/epsilon" if name == "epsilon" else f"{kind}/{name}", row[name]


class TensorBoard:
    """Events under ``tensorboard/``."""

    def __init__(self, out: Path, key: str, first: int) -> None:
        del key
        self._writer = library("tensorboard").SummaryWriter(
            str(out / "tensorboard"), purge_step=first + 1 if first else None
        )
        self._began = time.time()

    def add(self, row: Mapping[str, Any], private: bool, seconds: float) -> None:
        """Each event carries a time; it stands still in private phases, like ``seconds``."""
        del private
        for tag, value in numbers(row):
            self._writer.add_scalar(tag, value, row["step"], walltime=self._began + seconds)

    def flush(self) -> None:
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _Service:
    """Holds rows back from the first noised step on; ``send`` is a service's own."""

    def __init__(self) -> None:
        self._began = self._now = time.time()
        self._waiting: list[tuple[int, dict[str, float], float]] = []

    def send(self, step: int, found: dict[str, float], at: float) -> None:
        """at: seconds of the epoch that the row is given."""
        raise NotImplementedError

    def add(self, row: Mapping[str, Any], private: bool, seconds: float) -> None:
        self._now = self._began + seconds
        made = row["step"], dict(numbers(row)), self._now
        if private or self._waiting:
            self._waiting.append(made)
        else:
            self.send(*made)

    def flush(self) -> None: ...

    def close(self) -> None:
        for made in self._waiting:
            self.send(*made)
        self._waiting.clear()


class Wandb(_Service):
    """A run of Weights & Biases, configured by its own environment variables (WANDB_MODE=offline needs no account). Of the
    program, its machine, its output and its code nothing is sent."""

    def __init__(self, out: Path, key: str, first: int) -> None:
        del first
        super().__init__()
        wandb = library("wandb")
        quiet = wandb.Settings(
            disable_git=True, save_code=False, disable_code=True, disable_job_creation=True, console="off",
            x_disable_stats=True, x_disable_meta=True, x_disable_machine_info=True, x_save_requirements=False,
        )  # fmt: skip
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", NAME),
            name=out.name,
            id=key,
            dir=str(out),
            resume="allow",
            settings=quiet,
        )
        self._run.define_metric("*", step_metric="step")

    def send(self, step: int, found: dict[str, float], at: float) -> None:
        self._run.log({**found, "step": step, "_timestamp": at})

    def close(self) -> None:
        super().close()
        self._run.finish()


class MLflow(_Service):
    """A run of MLflow where its own environment variables say (MLFLOW_TRACKING_URI); a resumed run goes on in it."""

    TAG = "taciturn.plan"

    def __init__(self, out: Path, key: str, first: int) -> None:
        del first
        super().__init__()
        library("mlflow")
        from mlflow import MlflowClient

        self._client = MlflowClient()
        name = os.environ.get("MLFLOW_EXPERIMENT_NAME", NAME)
        known = self._client.get_experiment_by_name(name)
        experiment = self._client.create_experiment(name) if known is None else known.experiment_id
        before = self._client.search_runs([experiment], f"tags.`{self.TAG}` = '{key}'", max_results=1)
        made = before[0] if before else self._client.create_run(experiment, tags={self.TAG: key}, run_name=out.name)
        self._id = made.info.run_id

    def send(self, step: int, found: dict[str, float], at: float) -> None:
        for name, value in found.items():
            self._client.log_metric(self._id, name, value, timestamp=round(1000 * at), step=step)

    def close(self) -> None:
        super().close()
        self._client.set_terminated(self._id, end_time=round(1000 * self._now))


REPORTERS: dict[str, Callable[[Path, str, int], Reporter]] = {
    "tensorboard": TensorBoard,
    "wandb": Wandb,
    "mlflow": MLflow,
}
