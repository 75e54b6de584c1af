"""What a plan draws from: the texts, labels and units of a phase, as a screened corpus has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.settings import TrainConfig
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import MASK, Record
from taciturn.text.readers import read
from taciturn.text.segment import split
from taciturn.training.phase import Phase
from taciturn.training.plan import LEARNED, Plan
from taciturn.training.units.grouping import mentions
from taciturn.training.units.row_groups import Mentions, Units, of_lists

if TYPE_CHECKING:
    from taciturn.models.tokens import Tokens

Rows: TypeAlias = dict[str, list[Any]]


def texts_of(phase: Phase, screened: ScreenedCorpus) -> list[str]:
    """The texts a phase reads, in order; all in memory."""
    return [text for rows in records_of(phase, screened) for text in rows["text"]]


def labels_of(phase: Phase, screened: ScreenedCorpus) -> list[str | None]:
    """Their labels."""
    return [label for rows in records_of(phase, screened, "label") for label in rows["label"]]


def records_of(phase: Phase, screened: ScreenedCorpus, *beside: str) -> Iterator[Rows]:
    """The records a phase reads, in order and a few thousand at a time, as `ScreenedCorpus.stream` has them."""
    chosen = None if phase.rows is None else np.asarray(phase.rows, np.int64)
    if chosen is not None and (np.diff(chosen) <= 0).any():
        raise UsageError(f"phase {phase.name!r}: expected numbers of its rows in ascending order, each once")
    start = 0
    for rows in (rows for part in phase.reads for rows in screened.stream(part, *beside)):
        end = start + len(rows["text"])
        if chosen is not None:
            some = (chosen[slice(*np.searchsorted(chosen, (start, end)))] - start).tolist()
            rows = {name: [values[row] for row in some] for name, values in rows.items()}
        yield rows
        start = end


def check_counts(plan: Plan, screened: ScreenedCorpus, units: Mapping[str, Units]) -> None:
    """Raises DataError where a phase of ``plan`` says another number of records or ``units`` than there are: what a promise
    says at a δ depends on it, and a plan can come from anywhere."""
    for phase in plan.phases:
        read = screened.size(*phase.reads) if phase.rows is None else len(phase.rows)
        phase.check_drawn_from(len(units[phase.name]) if phase.name in units else read)


def share_of(records: int, share: float, seed: int = 0) -> tuple[int, ...] | None:
    """Numbers of a random share of ``records``, ascending and at least one; None for all. Which they are depends on nothing
    but how many records there are."""
    if share >= 1:
        return None
    kept = np.random.Generator(np.random.PCG64([seed, records])).permutation(records)[: max(1, round(share * records))]
    return tuple(sorted(kept.tolist()))


def rows_with_ids(screened: ScreenedCorpus, ids: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the records with these ids. DataError, with counts only, for ids the corpus does not have."""
    wanted, place, row = set(ids), dict[str, int](), 0
    for rows in screened.batches("id"):
        place |= {name: row + i for i, name in enumerate(rows["id"].to_pylist()) if name in wanted}
        row += len(rows)
    lost = sum(name not in place for name in ids)
    if lost or not ids:
        raise DataError(
            f"of {len(ids)} record ids {lost} are not in the screened corpus: expected at least one id, as `taciturn "
            "sample` writes them, one a line"
        )
    return tuple(sorted({place[name] for name in ids}))


def mentions_in(screened: ScreenedCorpus, *, entities: bool = True) -> Mentions:
    """Users and detected entities of every original record.

    Raises DataError when no record has a user, or, with ``entities``, when none is about anything.
    """
    columns = ("user", "entities") if entities else ("user",)
    users: list[str | None] = []
    named: list[list[str]] = []
    for rows in screened.batches(*columns):
        users += rows["user"].to_pylist()
        named += rows["entities"].to_pylist() if entities else [[]] * len(rows)
    found = mentions(users, named)
    if entities and not found.detected:
        raise DataError(
            "no entity was detected in any record, and user-entity privacy is about entities: screen again with a policy "
            "that finds some, such as -p spacy:low-entity; for users alone there is user_dp"
        )
    return found


def residual_units(screened: ScreenedCorpus) -> Units:
    """Each private record minus its skeleton, over the rows of ("private", "skeletons"). A removed copy has no row, nor has
    a record in which the conservative policy marks nothing after redaction: its skeleton says it all. One without a
    skeleton is alone."""
    private = screened.size("private")
    skeletons = iter(range(private, private + screened.size("skeletons")))
    pairs: list[list[tuple[int, float]]] = []
    columns = (
        zip(*(c.to_pylist() for c in rows), strict=True)
        for rows in screened.batches("part", "skeleton", "duplicate", "suspicious")
    )
    for part, skeleton, duplicate, suspicious in chain.from_iterable(columns):
        at = None if skeleton is None else next(skeletons)
        if part != "private":
            continue
        row = len(pairs)
        if at is None and not duplicate:
            pairs.append([(row, 1.0)])
        else:
            pairs.append([] if at is None or duplicate or not suspicious else [(row, 1.0), (at, -1.0)])
    return of_lists(pairs)


def encoded(
    tokenizer: Any, plan: Plan, phase: Phase, screened: ScreenedCorpus, limit: int, folder: Path | None = None
) -> Tokens:
    """The records of a phase as tokens. folder: a private one, on whose disk they are kept; None for memory."""
    from taciturn.models.sequences import mask_id
    from taciturn.models.token_files import laid_out

    code = _sensitive if phase.rule.sensitive else _marked if phase.targets == "marked" else _plain
    beside = {_sensitive: ("redacted", "stable"), _marked: ("label", "suspects"), _plain: ("label",)}[code]

    def chunks() -> Iterator[Tokens]:
        first = 0
        yield code(
            tokenizer, plan, {name: [] for name in ("text", *beside)}, limit, 0
        )  # where there is no record at all
        for rows in records_of(phase, screened, *beside):
            yield code(tokenizer, plan, rows, limit, first)
            first += len(rows["text"])

    return laid_out(chunks(), mask_id(tokenizer), folder)


def _plain(tokenizer: Any, plan: Plan, rows: Rows, limit: int, first: int) -> Tokens:  # noqa: ARG001
    from taciturn.models.tasks import encode_task

    return encode_task(tokenizer, rows["text"], limit, labels=rows["label"], **task_of(plan))


def _sensitive(tokenizer: Any, plan: Plan, rows: Rows, limit: int, first: int) -> Tokens:  # noqa: ARG001
    from taciturn.models.sensitive import encode_sensitive

    stable = [_pairs(flat) for flat in rows["stable"]]
    found = encode_sensitive(tokenizer, rows["text"], rows["redacted"], stable, limit, first)
    return replace(found.tokens, sensitive=found.flags)


def _marked(tokenizer: Any, plan: Plan, rows: Rows, limit: int, first: int) -> Tokens:
    """The same tokens, of which only those are targets that touch what the conservative policy still marks in the text: a
    function of what is trained on, so that copies have the same."""
    from taciturn.models.sequences import mask_id, touched

    tokens, mask = _plain(tokenizer, plan, rows, limit, first), mask_id(tokenizer)
    scored = [
        tokens.targets(i, mask) & touched(tokenizer, text, [] if text == MASK else _pairs(flat), len(tokens[i]))
        for i, (text, flat) in enumerate(zip(rows["text"], rows["suspects"], strict=True))
    ]
    return replace(tokens, scored=np.concatenate([np.zeros(0, np.bool_), *scored]))


def _pairs(flat: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(flat[::2], flat[1::2], strict=True))


def public_texts(plan: Plan, screened: ScreenedCorpus) -> Iterator[str]:
    """What the plan's tokenizer is learned from."""
    if plan.model.tokenizer.startswith(LEARNED):
        yield from (text for rows in screened.stream("public") for text in rows["text"])


def task_of(plan: Plan) -> dict[str, Any]:
    """What `encode_task` and `HeldOut.of` take of a plan."""
    from taciturn.models.prompt import Prompt

    model = plan.model
    prompt = Prompt(model.prompt, model.words) if model.prompt and model.words else None
    task = {"task": model.task, "names": model.labels, "loss_on": model.loss_on, "seed": plan.seeds.data}
    return {**task, "prompt": prompt}


def held_out(config: TrainConfig, unit: Any) -> list[Record]:
    """The validation records a configuration names, at most ``valid_limit`` of them."""
    if not config.valid:
        return []
    how = {"chat": config.valid_chat, "text_pair": config.valid_text_pair, "label": config.valid_label}
    try:
        documents = list(read(*config.valid, text=config.valid_text, **how).documents())
    except DataError as error:
        raise DataError(
            f"held-out files (train.valid): {error}; train.valid_text names their text field, '{config.valid_text}' now"
        ) from error
    records = [record for document in documents for record in split(document, unit)]
    return records[: config.valid_limit]
