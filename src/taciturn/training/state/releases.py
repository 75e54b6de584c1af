"""What a run has released: its ledger, the key of its noise, and whether a step that is done again is the same release.

Under one key a step has one release. What a resumed process draws for a step that the ledger has already is compared with
it by a digest of the noised value before anybody can see it. If both are equal the step is the one that was paid for; if
not, or where sums are known not to repeat, the steps after the checkpoint are marked as lost, and the run goes on under
another key (docs/guarantees.md §5).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType

from taciturn.errors import DataError
from taciturn.privacy.accounting.events import Event
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.training.distributed.processes import World
from taciturn.training.plan import Plan, Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state import noise_key
from taciturn.training.state.checkpoint import Position, State
from taciturn.training.state.noise_key import Environment

logger = logging.getLogger("taciturn")
LEDGER, CHECKPOINTS = "ledger.jsonl", "checkpoints"


class Releases:
    """Open the releases of the run in ``out``, which stands at ``at``; every process of ``world`` does, process 0 writes.

    secret: what noise and coins of the next step come from. here: what sums depend on, None where they do not repeat.
    begun: told, in process 0, where the run goes on from and what is in the ledger, before the first step, and again when
    steps are lost later.
    """

    def __init__(
        self,
        out: Path,
        plan: Plan,
        at: Position,
        resume: bool,
        here: Environment | None,
        world: World,
        begun: Callable[[Position, Ledger], None] = lambda *_: None,
    ) -> None:
        self._plan, self._at, self._here, self._world, self._begun = plan, at, here, world, begun
        self._ledger: Ledger | None = None
        self._key = b""
        self._uncovered = False  # a noised step is in no checkpoint yet
        self._again = False
        self._clip: float | None = None
        self._seeded = plan.seeds.noise is not None
        try:
            drawn = world.once(lambda: self._open(out, resume))
        except BaseException:
            self._close()
            raise
        self.secret = SecretSource(plan.seeds.noise if self._seeded else drawn)

    def _open(self, out: Path, resume: bool) -> bytes:
        folder = out / CHECKPOINTS
        ledger = self._ledger = _ledger(out, self._at, resume)
        why = None
        if not self._seeded:
            key = noise_key.read_key(folder) if resume else None
            why = noise_key.repeatable(self._here, noise_key.kept_environment(folder))
            if key is None:
                why, key = "the key of its noise is gone", noise_key.new_key(folder)
            self._key = key
        if ledger.ahead and why is not None:
            self._lose(ledger, why)
        if not self._seeded:
            noise_key.keep_environment(folder, self._here)
        self._begun(self._at, ledger)
        return noise_key.derived(self._key, self._plan.key, ledger.branch) if self._key else b""

    def steps(self, steps: Iterator[Step], state: State) -> Iterator[Step]:
        """``steps`` in turn, one of them again where :meth:`note` did not take it."""
        for step in steps:
            self._clip = state.clips.get(step.phase.name)
            yield step
            while self._again:
                self._again = False
                if self._clip is not None:
                    state.clips[step.phase.name] = self._clip
                yield step

    def note(self, step: Step, state: State) -> bool:
        """Write down what ``step`` releases, which stands in ``.grad``, before anything of it can be seen. False: it is not
        what the step released before, so it must not be shown, and is to be done again with the secret there is now."""
        phase, ledger = step.phase, self._ledger
        self._uncovered |= phase.private
        if ledger is None:
            return True
        release = None
        if phase.private and self._here is not None and not self._seeded:
            table = state.tables.get(phase.name)
            shown = b"" if table is None else table.to_bytes()
            release = noise_key.release_digest(state.model, state.clips.get(phase.name), shown)
        if ledger.ahead:
            if ledger.repeat(step.number, phase.name, phase.event, release):
                return True
            self._lose(ledger, f"step {step.number + 1} did not repeat bit for bit")
            self._begun(self._at, ledger)
            if not self._seeded:
                self.secret = SecretSource(noise_key.derived(self._key, self._plan.key, ledger.branch))
                self._again = True
                return False
        ledger.append(step.number, phase.name, phase.event, release)
        return True

    @property
    def held(self) -> bool:
        """Whether what is known of the weights waits for a checkpoint, since a step done again would be another one."""
        return self._uncovered and self._here is None and not self._seeded

    @property
    def lost(self) -> Mapping[Event, int]:
        """What was done and lost, and is paid; in process 0."""
        return {} if self._ledger is None else self._ledger.lost()

    def settle(self) -> None:
        """Have every noised step on the disk before a number that depends on it is shown."""
        if self._ledger is not None:
            self._ledger.settle()

    def position(self) -> tuple[int, str]:
        """(lines of the ledger, digest after them) that belong to the state now; they are on the disk."""
        if self._ledger is None:
            return 0, ""
        self._ledger.sync()
        return self._ledger.position

    def covered(self) -> None:
        """A checkpoint holds every step so far."""
        self._uncovered = False

    def __enter__(self) -> Releases:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()

    def _lose(self, ledger: Ledger, why: str) -> None:
        before = sum(ledger.lost().values())
        ledger.go_on()
        logger.warning(
            "%d steps after the checkpoint are lost and paid for: they were done, and doing them again is another release "
            "(%s)",
            sum(ledger.lost().values()) - before,
            why,
        )


def finish(out: Path) -> None:
    """End the run in ``out``, whose model is written: its ledger gets a last line, its key is destroyed, and it never goes
    on."""
    ledger = Ledger.resume(out / LEDGER)
    ledger.end()
    ledger.close()
    noise_key.destroy_key(out / CHECKPOINTS)


def _ledger(out: Path, at: Position, resume: bool) -> Ledger:
    path = out / LEDGER
    if not resume or not (path.exists() or at.steps or (out / CHECKPOINTS / noise_key.KEY).exists()):
        ledger = Ledger.create(path)
        noise_key.sync_folder(out)
        return ledger
    if not path.exists():
        raise DataError(
            f"{path} is missing: steps of this run were done, and nobody can say what was spent; put it back, or train into "
            "a new folder"
        )
    return Ledger.resume(path, (at.ledger, at.digest))
