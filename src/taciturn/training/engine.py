"""The one training loop: draw, gradient, ledger, update, notify. Mechanisms differ only in the plan they hand it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from taciturn.errors import DataError, Interrupted
from taciturn.models.held_out import HeldOut, Utility
from taciturn.models.precision import autocast_type
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import Tokens
from taciturn.privacy.accounting.events import Event
from taciturn.privacy.certificates.exported_model import VALUES
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.text.atomic import write_bytes
from taciturn.training import optim
from taciturn.training.check import require_isolation
from taciturn.training.distributed.fsdp import shard
from taciturn.training.distributed.processes import ALONE, World, answering
from taciturn.training.frozen.cache import frozen_cache
from taciturn.training.given import check_cut, check_given, facts, looks_back, weights
from taciturn.training.passes import Work
from taciturn.training.plan import Plan, Step
from taciturn.training.randomness.sampling import chosen, draw
from taciturn.training.state import checkpoint
from taciturn.training.state.average import keep_near
from taciturn.training.state.checkpoint import Position, State, room_on_disk
from taciturn.training.state.interrupt import interruptible
from taciturn.training.state.metrics import Clock, Metrics, Progress
from taciturn.training.state.noise_key import environment
from taciturn.training.state.releases import Releases
from taciturn.training.state.stuck_tensors import to_watch, watched
from taciturn.training.step import take
from taciturn.training.units.row_groups import Units
from taciturn.training.updates.plain import never_filled
from taciturn.training.updates.release import Context
from taciturn.training.values.fill import Filler
from taciturn.training.values.slots import Slots

logger = logging.getLogger("taciturn")


@dataclass(frozen=True, slots=True)
class Options:
    """How to run, without touching what is computed: none of these changes an update or a guarantee.

    checkpoint_steps, checkpoint_minutes: whichever comes first. keep: how many checkpoints stay. shard: cut the model over
    the processes of the run, instead of a copy in each. frozen_cache: a file that keeps what the frozen layers before the
    first trained one make of records (:func:`~taciturn.training.frozen.cache.frozen_cache`).
    """

    token_budget: int = 8192
    checkpoint_steps: int = 500
    checkpoint_minutes: float = 5.0
    keep: int = 2
    evaluations: int = 8
    valid: HeldOut | None = None
    report_to: tuple[str, ...] = ()
    shard: bool = False
    frozen_cache: Path | None = None


def fit(
    plan: Plan,
    model: Any,
    tokenizer: Any,
    data: Mapping[str, Tokens | Slots],
    out: Path,
    options: Options,
    *,
    units: Mapping[str, Units] | None = None,
    fillers: Mapping[str, Filler] | None = None,
    resume: bool = False,
    spent: Callable[[int, Mapping[Event, int]], float | None] = lambda *_: None,
    notify: Callable[[Progress], None] = lambda _: None,
    begun: Callable[[Position, Ledger], None] = lambda *_: None,
    world: World = ALONE,
) -> None:
    """Run ``plan`` on ``model`` in place; ``data`` maps a phase's name to its records, ``units`` that of a phase whose units
    are not records to them, ``fillers`` that of a phase whose masks a table fills to what does, ``spent`` a number of steps,
    and what was lost before them, to ε. begun: see :class:`Releases`.
    Writes under ``out``: ledger.jsonl, metrics.jsonl and checkpoints/. At the end the weights are the average, if the
    plan names one; the run may be resumed until :func:`taciturn.training.state.releases.finish` ends it. Every process of
    ``world`` calls this; only process 0 writes and notifies.

    Raises Interrupted after SIGINT or SIGTERM (a checkpoint was written), DataError when ``out`` holds another run, one that
    has ended or whose ledger is not whole, or the disk is full, TaciturnError when a trainable tensor does not move,
    LostProcess when another process is gone.
    """
    units = units or {}
    check_given(plan, data, units)
    if options.shard:
        check_cut(plan, world, cached=options.frozen_cache is not None)
    known = facts(plan, data, units)
    if options.shard and world.size > 1:  # the weights are those of process 0, which looks at them for all
        world.same(lambda: known)
        world.once(lambda: require_isolation(plan, model, data))
        world = shard(model, world)
    else:
        world.same(lambda: known | weights(model))
        require_isolation(plan, model, data)
    mask, device = mask_id(tokenizer), next(model.parameters()).device
    seeded = plan.seeds.noise is not None
    repeats = not seeded and options.frozen_cache is None  # what is in the file decides how sums are rounded
    here = environment(lambda: known | weights(model), options.token_budget, device, world) if repeats else None
    plain, clipped = (
        Work(options.token_budget, autocast_type(plan.model.dtype), again=world.mesh is None) for _ in range(2)
    )
    initial = _copied(model).eval() if any(map(looks_back, plan.phases)) else model
    state = State.begin(plan, model, plain, clipped)
    at = _position(plan, state, out, resume, world)
    rates = {phase.name: optim.schedule(phase.optimiser, plan.steps_of(phase)) for phase in plan.phases}
    still = {phase.name: to_watch(model) for phase in plan.phases}
    marks = _evaluation_marks(plan, options.evaluations) if options.valid else set()
    due = checkpoint.is_due(options.checkpoint_steps, options.checkpoint_minutes, plan.total_steps)
    model.train()
    done = at.steps
    records = [each for each in (*data.values(), options.valid and options.valid.tokens) if isinstance(each, Tokens)]
    with (
        frozen_cache(model, options.frozen_cache, records, classify=plan.model.task == "classify"),
        answering(lambda: f"after step {done} of {plan.total_steps}"),
        room_on_disk(out),
        interruptible() as interrupted,
        Releases(out, plan, at, resume, here, world, begun) as releases,
        Metrics(out, at, plan, options.report_to) if world.leads else nullcontext() as metrics,
    ):
        clock, never = Clock(plan, at.steps), never_filled(tokenizer, model)
        for step in releases.steps(plan.unroll(at.steps), state):
            phase, tokens = step.phase, data[step.phase.name].at(step.number)
            world.seed(plan.seeds.model, step.number)
            run = Context(mask, initial, never, plain, clipped, releases.secret, plan.seeds, world, fillers or {})
            drawn = chosen(phase, world.agree(draw(step, plan.seeds.data, run.secret)), units.get(phase.name))
            shown = take(step, state, tokens, drawn, run)
            if not releases.note(step, state):
                continue
            _keep_tables(state, step, out, releases, world)
            _update(state, step, rates[phase.name](step.in_phase), still[phase.name], world)
            if _ends(step):
                keep_near(state.model, state.average, initial, phase.kept)
            if step.in_phase + 1 == plan.steps_of(phase):
                state.optimisers[phase.name].state.clear()  # the next phase has its own
            done = step.number + 1
            utility = _utility(state, options.valid, world) if done in marks else None
            if metrics is not None:
                clock.tick(step, shown and shown.tokens)
                progress = Progress(
                    step,
                    plan.total_steps,
                    shown and shown.loss,
                    shown and shown.tokens,
                    clock.seconds,
                    utility,
                    spent(done, releases.lost),
                    clock.left,
                    clock.speed(step),
                )
                if progress.shows_weights and not releases.held:
                    releases.settle()
                metrics.write(progress, releases.held)
                notify(progress.bare if releases.held else progress)
            wanted = due(done) or (releases.held and utility is not None)
            stop, save = world.most([interrupted(), world.leads and wanted])
            if save or stop:
                position, held = Position(done, 0, 0), releases.held
                if metrics is not None:
                    lines, digest = releases.position()
                    position = Position(done, lines, metrics.sync(), digest, metrics.held)
                checkpoint.save(out / "checkpoints", plan.key, position, state, options.keep, world)
                releases.covered()
                if metrics is not None and held:
                    metrics.show()
                    notify(progress)
            if stop:
                raise Interrupted(f"stopped after step {done} of {plan.total_steps}; continue with --resume")
    if state.average is not None:
        state.average.apply(model)
    model.eval()


def _keep_tables(state: State, step: Step, out: Path, releases: Releases, world: World) -> None:
    """Write a table that the step released, now that its line is in the ledger, and on the disk before the table is."""
    table = state.tables.get(step.phase.name)
    if table is not None and world.leads:
        releases.settle()
        write_bytes(out / VALUES, table.to_bytes())


def _position(plan: Plan, state: State, out: Path, resume: bool, world: World) -> Position:
    folder = out / "checkpoints"
    if state.frozen:
        logger.info("%d frozen tensors are not in the checkpoints: they hold what is trained", len(state.frozen))
    if resume:
        return checkpoint.load(folder, plan.key, state, world)

    def begin() -> Position:
        if (out / "ledger.jsonl").exists():
            raise DataError(f"{out} already holds a run: continue it with --resume, or name another folder")
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # what tells a run without a checkpoint from no run
        return Position(0, 0, 0)

    return world.once(begin)


def _update(state: State, step: Step, lr: float, still: dict[str, int], world: World) -> None:
    """One optimiser step at rate ``lr``, and the average's. A batch without targets has no gradient and moves nothing."""
    config, optimiser = step.phase.optimiser, state.optimisers[step.phase.name]
    for group in optimiser.param_groups:
        group["lr"] = lr
    if any(p.grad is not None for p in state.model.parameters()):
        if config.max_grad_norm is not None and not step.phase.private:
            nn.utils.clip_grad_norm_(state.model.parameters(), config.max_grad_norm)
        with watched(state.model, still, lr, world):
            optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    if state.average is not None:
        state.average.update(state.model, step.number + 1)


def _copied(model: nn.Module) -> nn.Module:
    """What is not trained is not copied."""
    return deepcopy(model, {id(p): p for p in model.parameters() if not p.requires_grad})


def _ends(step: Step) -> bool:
    """Whether it is the last of its phase, this time that the phase comes up."""
    return (step.in_phase + 1) % step.phase.steps == 0


def _utility(state: State, valid: HeldOut | None, world: World) -> Utility | None:
    """Perplexity of the weights that would be exported now; each process scores a share."""
    if valid is None:
        return None
    with state.average.applied(state.model) if state.average is not None else nullcontext():
        return valid.utility(state.model, share=(world.rank, world.size), total=world.total)


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
