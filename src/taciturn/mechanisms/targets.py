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
from taciturn.mechanisms.corpus import encoded, labels_of, public_texts, share_of, task_of, texts_of
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


def without_targets(phase: Phase, texts: Sequence[str], without: NDArray[np.bool_], of: int = 0) -> str:
    """How many records of a phase have nothing to predict, in words; "" where all have. Copies that deduplication turned
    into a lone mask have nothing by design and do not count.

    texts, without: of each record looked at, its text and whether it has nothing. of: how many records there are where those
    were drawn at random. Raises DataError where no record has anything: the steps would be noise alone, or nothing at all.
    """
    if len(without) and without.all() and not of:
        raise DataError(
            f"phase {phase.name}: none of its {len(without)} records has a token to predict, so it would train on nothing. "
            f"{AIMLESS}; raise model.max_length, or set model.loss_on = all"
        )
    lost = sum(bool(none) and text != MASK for none, text in zip(without, texts, strict=True))
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
    texts = texts_of(phase, screened)
    if plan.model.task in ("classify", "prompt"):
        return without_targets(phase, texts, _unlabelled(plan, texts, labels_of(phase, screened)))
    open_ = [row for row, text in enumerate(texts) if not certain(plan, phase, text)]
    rows = None if len(open_) <= LOOKED else share_of(len(texts), LOOKED / len(texts))
    if rows is not None:
        found = _coded(plan, phase, screened, rows, coder)
        if not found.all():
            return without_targets(phase, [texts[row] for row in rows], found, len(texts))
    without = np.zeros(len(texts), np.bool_)
    without[open_] = _coded(plan, phase, screened, open_, coder, texts)
    return without_targets(phase, texts, without)


def certain(plan: Plan, phase: Phase, text: str) -> bool:
    """Whether a record has a target whatever the tokenizer: of its first three tokens, which no cut takes, the first is the
    start and one of the others is no mask. So it is where a word comes after one mask at most; and, as text that is not all
    masks ends with a token of its own, in all text with one mask at most."""
    if plan.model.task != "causal" or phase.targets != "all" or structured(text):
        return False
    ends = not phase.rule.sensitive and text not in ("", MASK) and text.count(MASK) <= 1
    return ends or _WORD.match(text) is not None


def _coded(
    plan: Plan,
    phase: Phase,
    screened: ScreenedCorpus,
    rows: Sequence[int],
    coder: Callable[[], tuple[Any, int]],
    texts: Sequence[str] = (),
) -> NDArray[np.bool_]:
    """Whether each of these rows of a phase has no target; no tokenizer is asked about lone masks."""
    if texts and all(texts[row] == MASK for row in rows):
        return np.ones(len(rows), np.bool_)
    from taciturn.models.tokens import mask_id

    tokenizer, limit = coder()
    some = replace(phase, rows=tuple(rows if phase.rows is None else (phase.rows[row] for row in rows)))
    found: NDArray[np.bool_] = encoded(tokenizer, plan, some, screened, limit).aimless(mask_id(tokenizer))
    return found


def _unlabelled(plan: Plan, texts: Sequence[str], labels: Sequence[str | None]) -> NDArray[np.bool_]:
    from taciturn.models.tasks import label_ids

    prompt = task_of(plan)["prompt"]
    names = plan.model.labels if prompt is None else prompt.names
    return label_ids(texts, labels, names) < 0


def _coder(plan: Plan, screened: ScreenedCorpus) -> tuple[Any, int]:
    """Tokenizer, and how many tokens a record has at most."""
    from taciturn.models.template import set_template
    from taciturn.models.tokens import load_tokenizer, stated_length

    model = plan.model
    tokenizer = load_tokenizer(model.tokenizer, model.name, public_texts(plan, screened))
    known = model.max_length or stated_length(model.name, model.options) or DEFAULT_MAX_LENGTH
    return set_template(tokenizer, model.chat_template), model.max_length or min(known, DEFAULT_MAX_LENGTH)
