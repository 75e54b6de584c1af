"""Records as the data of a task: a language model's, a classifier's (by a head or a prompt), a masked language model's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import DataError, UsageError
from taciturn.models.chat import LossOn
from taciturn.models.masking import Masking
from taciturn.models.prompt import Answers, Prompt, PromptCoder, refuse_pairs
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import Tokens, encode_all, joined
from taciturn.text.document import MASK

NONE = -1
"""The label id of a record that is not scored."""


def label_ids(texts: Sequence[str], labels: Sequence[str | None], names: Sequence[str]) -> NDArray[np.int64]:
    """The place of each label in ``names``, [records]; NONE for a text that is only `<MASK>`: a removed copy has no loss.

    names come from the configuration, never from the records. Raises DataError, with counts only, for records without a
    label or with another one, UsageError for fewer than two names or a repeated one.
    """
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            f"labels: expected at least two different names, found {len(names)}, {len(set(names))} different"
        )
    places = {name: i for i, name in enumerate(names)}
    missing = sum(label is None and text != MASK for text, label in zip(texts, labels, strict=True))
    foreign = sum(label is not None and label not in places for label in labels)
    if missing or foreign:
        raise DataError(
            f"of {len(labels)} records {missing} have no label and {foreign} have one that is not among the {len(names)} "
            "of model.labels; name the field with --label when screening, and every label in model.labels"
        )
    ids = [NONE if label is None or text == MASK else places[label] for text, label in zip(texts, labels, strict=True)]
    return np.asarray(ids, np.int64)


def encode_task(
    tokenizer: Any,
    texts: Sequence[str],
    max_length: int | None = None,
    *,
    task: Literal["causal", "classify", "masked", "prompt"] = "causal",
    labels: Sequence[str | None] = (),
    names: Sequence[str] = (),
    loss_on: LossOn = "all",
    seed: int = 0,
    prompt: Prompt | None = None,
) -> Tokens:
    """Records coded for ``task``. labels: one a record, for "classify" and "prompt". names: the classes, for "classify"; a
    prompt has its own. loss_on: what counts in a conversation. seed: of what "masked" hides.

    Raises what :func:`taciturn.models.tokens.encode_all`, :func:`label_ids`, :meth:`Masking.of` and
    :class:`taciturn.models.prompt.PromptCoder` raise.
    """
    if task == "prompt":
        if prompt is None:
            raise UsageError("task prompt needs model.prompt and model.words")
        return _prompted(tokenizer, prompt, texts, max_length, label_ids(texts, labels, prompt.names))
    tokens = encode_all(tokenizer, texts, max_length, loss_on=loss_on)
    if task == "classify":
        return replace(tokens, labels=label_ids(texts, labels, names))
    if task == "masked":
        return replace(tokens, masking=Masking.of(tokenizer, (mask_id(tokenizer),), seed))
    return tokens


def _prompted(
    tokenizer: Any, prompt: Prompt, texts: Sequence[str], max_length: int | None, labels: NDArray[np.int64]
) -> Tokens:
    """Each text in its prompt."""
    refuse_pairs(prompt, texts)
    coder = PromptCoder.of(tokenizer, prompt)
    parts, at, truncated = [], [], 0
    for ids, place, cut in coder.encode(texts, max_length):
        parts.append(ids)
        at.append(place)
        truncated += cut
    return replace(joined(parts, truncated), labels=labels, answers=Answers(np.asarray(at, np.int64), coder.words))
