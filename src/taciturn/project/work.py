"""The whole story of a project: screen → plan → train → certify → audit → report → export, each step done once.

Whatever moment it is killed at, the next call goes on: screening and training have checkpoints of their own, a later step
is done again. A changed setting redoes what depends on it, in a new folder; what was paid for is never overwritten.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from taciturn.auditing.canaries import Planted
from taciturn.auditing.compare import exceeded
from taciturn.auditing.finding import Finding
from taciturn.auditing.finding import load as load_findings
from taciturn.auditing.finding import save as save_findings
from taciturn.errors import DataError, MissingExtra, UsageError
from taciturn.mechanisms import run as runs
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.cost import against_target, spent
from taciturn.mechanisms.planning import make_plan, within_target
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.certificate import CERTIFICATE, Certificate
from taciturn.privacy.history import RUNS
from taciturn.project.attack import attack, canary_groups
from taciturn.project.settings import Project
from taciturn.project.standing import fresh_evidence, paid_for, resumable, share_history
from taciturn.project.state import State, file_key, key_of
from taciturn.project.texts import Texts, records, texts
from taciturn.screening.manifest import Input
from taciturn.screening.pipeline import screen
from taciturn.screening.screened import MANIFEST, ScreenedCorpus
from taciturn.screening.screened import load as load_screened
from taciturn.training.plan import Plan

if TYPE_CHECKING:
    from taciturn.text.segment import Unit

STEPS = ("screen", "plan", "train", "certify", "audit", "report", "export")
Notify = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Show:
    """How progress is told. say: a line; screening, training: a display (of a target ε) that takes their progress."""

    say: Callable[[str], None]
    screening: Callable[[str], AbstractContextManager[Notify]]
    training: Callable[[str, float | None], AbstractContextManager[Notify]]


@dataclass(frozen=True, slots=True)
class Step:
    """What became of a step: done now, kept from before, or off in the settings; with a few words."""

    name: str
    state: str
    words: str


@dataclass
class Work:
    """One call of `taciturn run`. again: train anew although this project has paid for a run already."""

    project: Project
    state: State
    show: Show
    again: bool = False
    steps: list[Step] = field(default_factory=list)

    def carry_out(self, until: str = STEPS[-1]) -> None:
        """Every step up to ``until``. Raises UsageError where training again was not agreed to."""
        names = STEPS[: STEPS.index(until) + 1]
        for step, package, extra in (("train", "torch", "train"), ("report", "jinja2", "report")):
            if step in names and not _installed(package):  # named now, not after hours of training
                raise MissingExtra(package, extra)
        for number, name in enumerate(names, 1):
            self.show.say(f"[{number}/{len(names)}] {name}")
            words, state = getattr(self, f"_{name}")()
            self.steps.append(Step(name, state, words))

    # -- what the steps share; each is read when it is needed

    @cached_property
    def texts(self) -> Texts:
        return texts(self.project)

    @cached_property
    def screened(self) -> ScreenedCorpus:
        return load_screened(self.screened_folder)

    @cached_property
    def screened_folder(self) -> Path:
        return self.state.place("screened", self.screen_key)

    @cached_property
    def config(self) -> RunConfig:
        return self.project.settings.plan.config(self.screened_folder, self.project.base)

    @cached_property
    def plan(self) -> Plan:
        return make_plan(self.config, self.screened)

    @cached_property
    def run_folder(self) -> Path:
        return self.state.place("runs", self.train_key)

    @property
    def planted(self) -> Planted | None:
        return self.project.settings.canaries.planted()

    # -- the steps: each returns (a few words, "done" or "kept" or "off")

    def _screen(self) -> tuple[str, str]:
        folder, chosen = self.screened_folder, self.project.settings.screen
        state = "kept"
        if not (folder / MANIFEST).is_file():
            state = "done"
            if self.planted is not None:  # kept where the report and the run are not: it holds the secrets
                self.planted.write(self.project.folder / f"canaries-{folder.name}.json")
            pi, wide = chosen.policies(self.project.base)
            with self.show.screening(self.project.path.stem) as notify:
                self.screened = screen(
                    self.texts.corpus,
                    pi,
                    wide,
                    unit=chosen.unit,
                    clean=chosen.clean,
                    clean_most=chosen.clean_most,
                    dedup=chosen.dedup,
                    order=chosen.order,
                    skeletons=chosen.skeletons,
                    max_bad=chosen.max_bad,
                    keep_originals=chosen.originals,
                    out=folder,
                    workers=chosen.workers,
                    engine=chosen.engine,
                    notify=notify,
                )
        counts = self.screened.counts
        return f"{counts.read:,} records, {counts.public:,} public, {counts.private:,} private", state

    @cached_property
    def screen_key(self) -> str:
        """A hash of the files and of all that decides what a screened corpus is."""
        chosen = self.project.settings
        files = chosen.read.corpus(self.project.base)
        inputs = [Input(name=name, digest=digest).model_dump() for name, digest in files.digests().items()]
        settings = chosen.screen.model_dump(mode="json", exclude={"workers", "engine", "max_bad", "policy_file"})
        policies = [policy.identity for policy in chosen.screen.policies(self.project.base)]
        reading = chosen.read.model_dump(mode="json", exclude={"paths"})
        planted = chosen.canaries.model_dump(mode="json") if chosen.canaries.number else None
        held_out = chosen.split.model_dump(mode="json") if chosen.split.held_out else None
        return key_of("screen", inputs, reading, settings, policies, planted, held_out)

    def _plan(self) -> tuple[str, str]:
        within_target(self.plan)
        words = spent(self.plan) if self.plan.target.delta is not None else ["no δ, so nothing is promised"]
        return "; ".join(words), "done"

    @cached_property
    def train_key(self) -> str:
        """A hash of the plan: of everything that decides the model and what it costs, and nothing else."""
        return key_of("train", self.screen_key, json.loads(json.dumps(self.plan.to_json())))

    def _train(self) -> tuple[str, str]:
        key, folder = self.train_key, None
        before = self._paid_for(key)
        if key not in self.state.folders.get("runs", []) and before and not self.again:
            raise UsageError(_refusal(before, self.project.path))
        folder = self.run_folder
        if (folder / "model").is_dir():
            return f"{folder}", "kept"
        resume = resumable(folder)
        chosen = self.project.settings
        valid = None
        if self.texts.outside and not chosen.plan.train.valid:
            valid = records(self.texts.outside, cast("Unit", self.screened.manifest.unit))[
                : chosen.plan.train.valid_limit
            ]
        with self.show.training(f"run {folder.name}", self.config.epsilon) as notify:
            runs.train(self.config, folder, screened=self.screened, valid=valid, resume=resume, notify=notify)
        return f"{folder}" + (" (resumed)" if resume else ""), "done"

    def _paid_for(self, key: str) -> list[Path]:
        """Runs of this project by other plans that took a step, which is paid for whether it ended or not."""
        others = [i for i, each in enumerate(self.state.folders.get("runs", []), 1) if each != key]
        folders = [self.project.folder / "runs" / str(i) for i in others]
        return [folder for folder in folders if paid_for(folder)]

    def _other_screenings(self) -> list[Path]:
        numbers = range(1, len(self.state.folders.get("screened", [])) + 1)
        folders = [self.project.folder / "screened" / str(i) for i in numbers]
        return [folder for folder in folders if folder != self.screened_folder]

    def _certify(self) -> tuple[str, str]:
        chosen, folder = self.project.settings.certify, self.run_folder
        recall = None if chosen.recall is None else self.project.base / chosen.recall
        files = {name: self.project.base / file for name, file in sorted(chosen.groups.items())}
        for file in (*files.values(), *(() if recall is None else (recall,))):
            if not file.is_file():
                raise DataError(f"{file}: no such file, and {self.project.path.name} names it under [certify]")
        share_history(self.screened_folder, self._other_screenings())
        key = key_of(
            "certify",
            self.train_key,
            chosen.model_dump(mode="json"),
            file_key(recall) if recall else "",
            {name: file_key(file) for name, file in files.items()},
            file_key(self.screened_folder / RUNS),
        )
        step = f"certify {folder.name}"
        state = "kept"
        if not self.state.is_done(step, key) or not (folder / CERTIFICATE).is_file():
            state = "done"
            self.state.begin(step, key)
            fresh_evidence(folder)
            groups = {name: _lines(file) for name, file in files.items()}
            groups |= canary_groups(self.planted, self.screened, folder)
            certify(folder, groups=groups, recall=recall, confidence=chosen.confidence)
            self.state.finish(step, key)
        certificate = self.certificate
        target = certificate.target
        if target is None:
            return f"ε = {certificate.spent['epsilon']}", state
        sigmas = [e["noise_multiplier"] for p in certificate.plan["phases"] if "noise_multiplier" in (e := p["event"])]
        return against_target(target["epsilon"], certificate.epsilon_spent, sigmas), state

    @property
    def certificate(self) -> Certificate:
        return Certificate.read(self.run_folder / CERTIFICATE)

    def _audit(self) -> tuple[str, str]:
        chosen, folder = self.project.settings.audit, self.run_folder
        if not chosen.attacks:
            return "no attack is named", "off"
        path = folder / "audit.json"
        key = key_of("audit", chosen.model_dump(mode="json"), file_key(folder / CERTIFICATE))
        step = f"audit {folder.name}"
        state = "kept"
        if not self.state.is_done(step, key) or not path.is_file():
            state = "done"
            self.state.begin(step, key)
            save_findings(path, attack(self.project, self.texts, self.screened, self.plan, folder))
            self.state.finish(step, key)
        return "; ".join(f"{each.attack}: {each.verdict}" for each in self.findings), state

    @property
    def findings(self) -> list[Finding]:
        path = self.run_folder / "audit.json"
        return load_findings(path) if self.project.settings.audit.attacks and path.is_file() else []

    def _report(self) -> tuple[str, str]:
        chosen, folder = self.project.settings.report, self.run_folder
        if chosen.output is None:
            return "no output is named", "off"
        import taciturn.reporting as reports

        path = self.project.folder / chosen.output
        key = key_of(
            "report", str(path), *(file_key(folder / name) for name in (CERTIFICATE, "audit.json", "metrics.jsonl"))
        )
        if self.state.is_done("report", key) and path.is_file():
            return str(path), "kept"
        self.state.begin("report", key)
        reports.write(path, [reports.RunView.load(folder)])
        self.state.finish("report", key)
        return str(path), "done"

    def _export(self) -> tuple[str, str]:
        chosen, folder = self.project.settings.export, self.run_folder
        if chosen.output is None:
            return "no output is named", "off"
        from taciturn.reporting.export import export

        path = self.project.folder / chosen.output
        step = f"export {chosen.output}"
        key = key_of("export", self.train_key, *(file_key(folder / name) for name in (CERTIFICATE, "audit.json")))
        if self.state.is_done(step, key) and path.is_dir():
            return str(path), "kept"
        if path.exists() and step not in self.state.begun:
            raise DataError(f"{path} exists and is not of this project: name another folder in [export]")
        self.state.begin(step, key)
        fresh = path.with_name(f"{path.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        difference = export(folder, fresh)
        shutil.rmtree(path, ignore_errors=True)
        fresh.rename(path)
        self.state.finish(step, key)
        return f"{path}, whose loss differs by {difference:.1e} at most", "done"

    # -- what it comes to

    @property
    def missed(self) -> list[str]:
        """Why the run does not hold what was asked of it; empty when it does."""
        names = [step.name for step in self.steps]
        reasons = []
        target = self.certificate.target if "certify" in names else None
        if target is not None and self.certificate.epsilon_spent > target["epsilon"]:
            reasons.append(f"ε spent is above the target of {target['epsilon']:g}")
        if "audit" in names:
            reasons += [
                f"{attack}: the lower bound on ε is above the certificate's" for attack in exceeded(self.findings)
            ]
        return reasons


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").split("\n") if line.strip()]


def _refusal(before: list[Path], project: Path) -> str:
    return (
        f"the settings are not those of {before[-1]}, and training again reads the private text again: it spends its own ε "
        "on top of what was spent, and the certificate will say so. Put the settings back to keep that run, or agree with: "
        f"taciturn run {project} --again"
    )
