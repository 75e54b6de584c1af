"""The Python interface: what the commands do, on objects. Names here are re-exported by `taciturn`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, Unpack

from taciturn.auditing.finding import Finding, save
from taciturn.auditing.run import audit as attack_all
from taciturn.mechanisms import planning, registry
from taciturn.mechanisms import run as runs
from taciturn.mechanisms.certify import certify as write_certificate
from taciturn.mechanisms.config import existing, parse
from taciturn.mechanisms.cost import cost_lines
from taciturn.mechanisms.settings import RunConfig, save_config
from taciturn.mechanisms.targets import warn_of_targets
from taciturn.privacy.certificates.certificate import CERTIFICATE, Certificate
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.synthesis.claims import Allow
from taciturn.synthesis.corpus import Manifest
from taciturn.text.document import Record
from taciturn.text.notebook import table
from taciturn.text.readers import Corpus, corpus
from taciturn.training.plan import Plan
from taciturn.typed import (
    AuditInputs,
    DrawOptions,
    HubOptions,
    Labels,
    MechanismOptions,
    ModelOptions,
    SeedsOptions,
    SynthesisOptions,
    TrainOptions,
)

PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with the configuration and the corpus it was made for; printing it shows phases and cost."""

    config: RunConfig
    plan: Plan
    screened: ScreenedCorpus

    def __str__(self) -> str:
        lines = [f"{self.plan.mechanism} on {self.plan.model.name}"]
        for phase in self.plan.phases:
            lines.append(
                f"  {phase.name}: {self.plan.steps_of(phase)} steps over {phase.records} records of "
                f"{' and '.join(phase.reads)}; {_noise(phase.event)}"
            )
        lines += [f"  {line}" for line in (cost_lines(self.plan) if self.plan.target.delta is not None else [])]
        if hasattr(registry.mechanism(self.config.mechanism), "facts"):
            lines += [f"  {each.label()}" for each in self.promises]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    @property
    def promises(self) -> list[Guarantee]:
        """What the certificate will say if the plan is run as it is."""
        return planning.expected_guarantees(self.config, self.plan, self.screened)

    def save(self, path: PathLike) -> None:
        """Write run.toml, for `taciturn train`."""
        save_config(self.config, Path(path))


def _noise(event: Any) -> str:
    """The numbers of a step in a few words: sampling rate q, noise σ, and what else it has."""
    symbols, told = {"rate": "q", "noise_multiplier": "σ"}, event.to_json()
    numbers = [f"{symbols.get(k, k.replace('_', ' '))} = {v:.4g}" for k, v in told.items() if isinstance(v, float)]
    return ", ".join(numbers) or ("no noise" if told["event"] == "non-private" else str(told["event"]))


@dataclass(frozen=True, slots=True)
class TrainedRun:
    """A run's folder and what can be done with it."""

    folder: Path

    def _repr_html_(self) -> str:
        plan = runs.Run(self.folder).plan
        phases = [(each["name"], f"{each['steps']} steps over {each['records']} records") for each in plan["phases"]]
        path = self.folder / CERTIFICATE
        spent = Certificate.read(path).spent["epsilon"] if path.is_file() else "not certified"
        return table(f"{self.folder.name}: {plan['mechanism']}", [*phases, ("ε", spent)])

    def certify(self, groups: Mapping[str, Sequence[str]] | None = None, **labels: Unpack[Labels]) -> Certificate:
        """State the guarantees; see :func:`taciturn.mechanisms.certify.certify`."""
        return write_certificate(self.folder, groups=groups, **labels)

    def export(
        self,
        folder: PathLike,
        *,
        dtype: Literal["float32", "bfloat16", "float16"] | None = None,
        **hub: Unpack[HubOptions],
    ) -> float:
        """Write a folder for `from_pretrained` and for a hub, with card and certificate; the loss difference it was checked
        to. dtype: cast the certified weights, and say so in cast.json. hub: base_model, language, license, tags of the card,
        as in :class:`taciturn.reporting.hub.Hub`."""
        from taciturn.reporting.export import export
        from taciturn.reporting.hub import Hub

        return export(self.folder, Path(folder), Hub(**hub), dtype)

    def model(self) -> tuple[Any, Any]:
        """(model, tokenizer)."""
        return runs.Run(self.folder).model()

    def audit(
        self, attacks: Sequence[str] = ("exposure",), *, progress: bool = True, **inputs: Unpack[AuditInputs]
    ) -> list[Finding]:
        """Attack the run; see :func:`audit`."""
        return audit(self, attacks, progress=progress, **inputs)

    def generate(self, prompt: str = "", **how: Unpack[DrawOptions]) -> list[str]:
        """Continuations of a prompt; see :func:`taciturn.models.generation.generate`."""
        from taciturn.models.generation import generate

        return generate(*self.model(), prompt, **how)

    def synthesize(self, n: int, out: PathLike, **options: Unpack[SynthesisOptions]) -> SyntheticCorpus:
        """Write a corpus that the model makes up; see :func:`synthesize`."""
        return synthesize(self, n, out, **options)

    def metrics(self) -> list[dict[str, Any]]:
        """What metrics.jsonl has of each step that may be shown, oldest first: rows for a frame."""
        path = existing(self.folder / "metrics.jsonl", "metrics; is this the folder of a run?")
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@dataclass(frozen=True, slots=True)
class SyntheticCorpus:
    """A folder that :func:`synthesize` wrote. manifest: what it says of itself, statements included."""

    folder: Path
    manifest: Manifest

    def read(self) -> Corpus:
        """The texts, to be screened, trained on or gone through; with their labels, where they have any."""
        return corpus.read(self.folder / "data", label="label" if self.manifest.settings["labels"] else None)

    def quality(
        self,
        held_out: Corpus,
        training: Corpus | None = None,
        *,
        judge: PathLike | None = None,
        seed: int = 0,
        out: PathLike | None = None,
    ) -> dict[str, Any]:
        """Measure the texts beside private text, for its owner alone; out: a folder for the page, mode 0700. See
        :func:`taciturn.synthesis.quality.measure.measure`."""
        from taciturn.reporting.quality import write
        from taciturn.synthesis.quality.measure import measure

        seen = () if training is None else training.documents()
        found = measure(self.folder, held_out.documents(), seen, None if judge is None else Path(judge), seed)
        if out is not None:
            write(Path(out), self.folder, found)
        return found


@dataclass(frozen=True, slots=True)
class Report:
    """A report that can be saved as HTML or read as data."""

    views: tuple[Any, ...]

    def save(self, path: PathLike) -> Path:
        import taciturn.reporting as reports

        return Path(reports.write(Path(path), list(self.views)))

    @property
    def data(self) -> dict[str, Any]:
        import taciturn.reporting as reports

        return dict(reports.data(list(self.views)))


def plan(
    mechanism: str,
    screened: ScreenedCorpus,
    /,
    model: str | ModelOptions = "lstm",
    *,
    tokenizer: str = "auto",
    epsilon: float | None = None,
    delta: float | None = None,
    seeds: SeedsOptions | None = None,
    train: TrainOptions | None = None,
    allow: Sequence[str] = (),
    **options: Unpack[MechanismOptions],
) -> Planned:
    """What a run would be. ``options`` are the mechanism's own, e.g. ``public={"epochs": 10}`` for crt. model: a name, or
    the whole table of settings, e.g. ``{"name": "gpt2", "lora": {"r": 8}, "dtype": "bf16"}``. allow: see
    :mod:`taciturn.mechanisms.refusals`.

    Raises UsageError for an unknown mechanism or option (naming the nearest), and for a plan that needs an ``allow``;
    DataError where no record of a phase has anything to predict. Some that have not are told of by a log message.
    """
    raw = {
        "mechanism": mechanism,
        "corpus": str(screened.path or "in memory"),
        "epsilon": epsilon,
        "delta": delta,
        "model": {"tokenizer": tokenizer, **({"name": model} if isinstance(model, str) else model)},
        "options": options,
        "seeds": dict(seeds or {}),
        "train": dict(train or {}),
        "allow": list(allow),
    }
    config = parse(RunConfig, raw, "plan")
    made = planning.make_plan(config, screened)
    warn_of_targets(made, screened)
    return Planned(config, made, screened)


def train(
    planned: Planned,
    out: PathLike,
    *,
    valid: Sequence[Record] | None = None,
    resume: bool = False,
    progress: bool = True,
    notify: Callable[[Any], None] = lambda _: None,
    callbacks: Sequence[Any] = (),
) -> TrainedRun:
    """Train into ``out``; see :func:`taciturn.mechanisms.run.train`.

    progress: a bar on a terminal and in a notebook. notify: called with each step's
    :class:`taciturn.training.state.metrics.Progress`. callbacks: objects with the methods of `transformers.TrainerCallback`;
    see :class:`taciturn.training.state.callbacks.Callbacks`, whose ``args`` are then the run's configuration.
    """
    from taciturn.display import training
    from taciturn.training.state.callbacks import Callbacks

    folder = Path(out)
    told = Callbacks(callbacks, planned.plan, folder, planned.config) if callbacks else None
    with training(folder.name, planned.config.epsilon, progress) as display:

        def each(step: Any) -> None:
            display(step)
            notify(step)
            if told is not None:
                told.step(step)

        if told is not None:
            told.begin()
        runs.train(planned.config, folder, screened=planned.screened, valid=valid, resume=resume, notify=each)
    run = TrainedRun(folder)
    if told is not None:
        told.end(run.model()[0])
    return run


def audit(
    run: TrainedRun | PathLike,
    attacks: Sequence[str] = ("exposure",),
    *,
    progress: bool = True,
    **inputs: Unpack[AuditInputs],
) -> list[Finding]:
    """Attack a run (or any model folder); findings are kept in the run's audit.json. progress: a line on a terminal and in
    a notebook that says which attack is made. Inputs as in :func:`taciturn.auditing.run.audit`."""
    from taciturn.display import telling

    folder = run.folder if isinstance(run, TrainedRun) else Path(run)
    with telling(f"attacking {folder.name}", progress) as tell:
        inputs.setdefault("notify", tell)
        findings = attack_all(folder, attacks, **inputs)
    if (folder / "plan.json").is_file():
        save(folder / "audit.json", findings)
    return findings


def synthesize(
    run: TrainedRun | PathLike,
    n: int,
    out: PathLike,
    *,
    allow: Sequence[Allow] = (),
    notify: Callable[[int, int], None] = lambda *_: None,
    **options: Unpack[SynthesisOptions],
) -> SyntheticCorpus:
    """Write ``n`` texts that a certified model makes up to the new folder ``out``; its certificate holds for them and
    travels with them. Called again it goes on where it stopped. options: see
    :class:`taciturn.synthesis.settings.Settings`, e.g. ``labels=["good", "bad"]``. Errors and notify: see
    :func:`taciturn.synthesis.synthesize.synthesize`."""
    from taciturn.synthesis.settings import Settings
    from taciturn.synthesis.synthesize import synthesize as write

    folder = run.folder if isinstance(run, TrainedRun) else Path(run)
    done = write(folder, n, Path(out), Settings.of(options), allow=allow, notify=notify)
    return SyntheticCorpus(done.folder, done.manifest)


def report(*folders: TrainedRun | PathLike) -> Report:
    """A report over run folders."""
    import taciturn.reporting as reports

    paths = [f.folder if isinstance(f, TrainedRun) else Path(f) for f in folders]
    return Report(tuple(reports.RunView.load(path) for path in paths))
