"""Residuals: the mean gradient of skeletons as it is, and noised differences to the records (guarantees.md, "Residuals")."""

from __future__ import annotations

from taciturn.models.tokens import Tokens
from taciturn.training.distributed.processes import ALONE
from taciturn.training.phase_terms import Residual
from taciturn.training.plan import Step
from taciturn.training.randomness.sampling import shuffled
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.updates.clip_noise import release_clipped
from taciturn.training.updates.plain import add_mean_gradient
from taciturn.training.updates.release import Context


def release(step: Step, state: State, tokens: Tokens, drawn: Ints | Units, run: Context) -> None:
    """The noised sum of differences, and on top the mean gradient of a batch of skeletons."""
    rule = step.phase.rule
    assert isinstance(rule, Residual)
    release_clipped(rule.noised, step, state, tokens, drawn, run)
    rows = residual_batch(step, rule, len(tokens), run.seeds.data)
    ALONE.seed(run.seeds.model, step.number)  # every process takes all of these rows
    add_mean_gradient(state.model, tokens, rows, run.mask, run.plain)


def residual_batch(step: Step, rule: Residual, rows: int, data_seed: int) -> Ints:
    """Rows of the skeletons that the noiseless half of a residual step reads, apart from what it draws privately: of all
    ``rows`` of the data those that come after the private records. All skeletons are among them, copies included, as
    their multiset must be the same for both neighbours."""
    skeletons = rows - step.phase.records
    return step.phase.records + shuffled(skeletons, rule.batch_size, step.in_phase, data_seed)
