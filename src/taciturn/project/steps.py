"""The whole story of a project: screen → plan → train → certify → audit → report → export, each step done once.

Whatever moment it is killed at, the next call goes on: screening and training have checkpoints of their own, a later step
is done again. A changed setting redoes what depends on it, in a new folder; what was paid for is never overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec

from taciturn.auditing.lower_bounds.against_certificate import exceeded
from taciturn.errors import MissingExtra
from taciturn.project import make_model, release_model
from taciturn.project.context import Shared

CARRY_OUT: Mapping[str, Callable[[Shared], tuple[str, str]]] = {
    "screen": make_model.screen,
    "plan": make_model.plan,
    "train": make_model.train,
    "certify": release_model.certify,
    "audit": release_model.audit,
    "report": release_model.report,
    "export": release_model.export,
}
"""Step → what carries it out and says (a few words, "done" or "kept" or "off")."""

STEPS = tuple(CARRY_OUT)


@dataclass(frozen=True, slots=True)
class Step:
    """What became of a step: done now, kept from before, or off in the settings; with a few words."""

    name: str
    state: str
    words: str


@dataclass
class Work(Shared):
    """One call of `taciturn run`."""

    steps: list[Step] = field(default_factory=list)

    def carry_out(self, until: str = STEPS[-1]) -> None:
        """Every step up to ``until``. Raises UsageError where training again was not agreed to."""
        names = STEPS[: STEPS.index(until) + 1]
        for step, package, extra in (("train", "torch", "train"), ("report", "jinja2", "report")):
            if step in names and not _installed(package):  # named now, not after hours of training
                raise MissingExtra(package, extra)
        for number, name in enumerate(names, 1):
            self.show.say(f"[{number}/{len(names)}] {name}")
            words, state = CARRY_OUT[name](self)
            self.steps.append(Step(name, state, words))

    @property
    def missed(self) -> list[str]:
        """Why the run does not hold what was asked of it; empty when it does."""
        names = [step.name for step in self.steps]
        reasons = []
        if "certify" in names and (target := self.certificate.target) and self.certificate.over_target:
            reasons.append(f"ε spent is above the target of {target['epsilon']:g}")
        if "certify" in names:
            reasons += self.certificate.refuted
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
