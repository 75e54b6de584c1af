"""Records that have nothing to predict: counted before a step is paid for and, as it takes no weights, when planned.

The count is one of private text. It is said to whoever holds the text, and goes into no file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.corpus import encoded, public_texts, records_of, share_of, task_of
from taciturn.privacy.guarantees.theorems import recall_bound
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.chat import structured
from taciturn.text.document import MASK
from taciturn.training.phase import Phase
from taciturn.training.plan import Plan

DEFAULT_MAX_LENGTH = 512
MANY = 0.05
LOOKED = 10_000
"""Records of a phase that are coded when a plan is made; beyond, so many drawn at random. They take about a second."""
SURE = 1 - 1e-6
"""How sure "more than 5 %" is where records were drawn."""
AIMLESS = "Such records are all masked, or cut before the assistant speaks while the loss is on what it says"
_WORD = re.compile(rf"(?:{MASK})?[^<]*?\w")
logger = logging.getLogger("taciturn")


def without_targets(
    phase: Phase, without: NDArray[np.bool_], lone: Callable[[], NDArray[np.bool_]], of: int = 0
) -> str:
    """How many records of a phase have nothing to predict, in words; "" where all have. Copies that deduplication turned
    into a lone mask have nothing by design and do not count.

    without, lone: of each record looked at, whether it has nothing, and whether it is a lone mask. of: how many records
    there are where those were drawn at random. Raises DataError where no record has anything: the steps would be noise
    alone, or nothing at all.
    """
    if len(without) and without.all() and not of:
        raise DataError(
            f"phase {phase.name}: none of its {len(without)} records has a token to predict, so it would train on nothing. "
            f"{AIMLESS}; raise model.max_length, or set model.loss_on = all"
        )
    lost = int((without & ~lone()).sum()) if without.any() else 0
    if not lost:
        return ""
    drawn = f" (drawn at random from {of:,}; training counts them all)" if of else ""
    said = f"{lost} of {len(without)} records of phase {phase.name}{drawn} have no token to predict and train nothing"
    least = 1 - recall_bound(len(without) - lost, len(without), SURE) if of else lost / len(without)
    return f"{said}, which is more than {100 * MANY:.0f} %. {AIMLESS}" if least > MANY else said


def warn_of_targets(plan: Plan, screened: ScreenedCorpus) -> None:
    """Say of a plan what its run would say of records without a target. It takes no weights, and no tokenizer for nearly all
    plain text (:func:`certain`).

    Raises DataError as :func:`without_targets` does. Where the tokenizer cannot be had here, or does not fit, that is said.
    """
    coder = cache(lambda: _coder(plan, screened))
    for phase in plan.phases:
        if phase.moves:
            try:
                said = _planned(plan, phase, screened, coder)
            except UsageError as error:
                said = f"whether records of phase {phase.name} have a token to predict is not known before training: {error}"
            if said:
                logger.warning(said)


def _planned(plan: Plan, phase: Phase, screened: ScreenedCorpus, coder: Callable[[], tuple[Any, int]]) -> str:
    if plan.model.task in ("classify", "prompt"):
        return without_targets(phase, _unlabelled(plan, phase, screened), lambda: lone_masks(phase, screened))
    lone = lone_masks(phase, screened)
    sure = [certain(plan, phase, text) for rows in records_of(phase, screened) for text in rows["text"]]
    open_ = np.flatnonzero(~np.array(sure, np.bool_))
    rows = None if len(open_) <= LOOKED else share_of(len(sure), LOOKED / len(sure))
    if rows is not None:
        found = _coded(plan, phase, screened, rows, coder)
        if not found.all():
            return without_targets(phase, found, lambda: lone[list(rows)], len(sure))
    without = np.zeros(len(sure), np.bool_)  # no tokenizer is asked about lone masks
    without[open_] = True if lone[open_].all() else _coded(plan, phase, screened, open_.tolist(), coder)
    return without_targets(phase, without, lambda: lone)


def lone_masks(phase: Phase, screened: ScreenedCorpus) -> NDArray[np.bool_]:
    """Which records of a phase are a `<MASK>` and nothing else, [records]."""
    return np.array([text == MASK for rows in records_of(phase, screened) for text in rows["text"]], np.bool_)


def certain(plan: Plan, phase: Phase, text: str) -> bool:
    """Whether a record has a target whatever the tokenizer: of its first three tokens, which no cut takes, the first is the
    start and one of the others is no mask. So it is where a word comes after one mask at most; and, as text that is not all
    masks ends with a token of its own, in all text with one mask at most."""
    if plan.model.task != "causal" or phase.targets != "all" or structured(text):
        return False
    ends = not phase.rule.sensitive and text not in ("", MASK) and text.count(MASK) <= 1
    return ends or _WORD.match(text) is not None


def _coded(
    plan: Plan, phase: Phase, screened: ScreenedCorpus, rows: Sequence[int], coder: Callable[[], tuple[Any, int]]
) -> NDArray[np.bool_]:
    """Whether each of these rows of a phase has no target."""
    from taciturn.models.sequences import mask_id

    tokenizer, limit = coder()
    some = replace(phase, rows=tuple(rows if phase.rows is None else (phase.rows[row] for row in rows)))
    return encoded(tokenizer, plan, some, screened, limit).aimless(mask_id(tokenizer))


def _unlabelled(plan: Plan, phase: Phase, screened: ScreenedCorpus) -> NDArray[np.bool_]:
    from taciturn.models.tasks import label_ids

    prompt = task_of(plan)["prompt"]
    names = plan.model.labels if prompt is None else prompt.names
    found = [label_ids(rows["text"], rows["label"], names) < 0 for rows in records_of(phase, screened, "label")]
    return np.concatenate([np.zeros(0, np.bool_), *found])


def _coder(plan: Plan, screened: ScreenedCorpus) -> tuple[Any, int]:
    """Tokenizer, and how many tokens a record has at most."""
    from taciturn.models.template import set_template
    from taciturn.models.tokenizers import load_tokenizer, stated_length

    model = plan.model
    tokenizer = load_tokenizer(model.tokenizer, model.name, public_texts(plan, screened))
    known = model.max_length or stated_length(model.name, model.options) or DEFAULT_MAX_LENGTH
    return set_template(tokenizer, model.chat_template), model.max_length or min(known, DEFAULT_MAX_LENGTH)
