"""What a plan draws from: the texts, labels and units of a phase, as a screened corpus has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from taciturn.errors import DataError
from taciturn.mechanisms.settings import TrainConfig
from taciturn.privacy.accounting.events import Part
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import MASK, Record
from taciturn.text.readers import read
from taciturn.text.segment import split
from taciturn.training.phase import Phase
from taciturn.training.plan import LEARNED, Plan
from taciturn.training.units.grouping import mentions
from taciturn.training.units.row_groups import Mentions, Units, of_lists

Item = TypeVar("Item")
PAIR: tuple[Part, Part] = ("original", "redacted")


def texts_of(phase: Phase, screened: ScreenedCorpus) -> list[str]:
    """The texts a phase reads, in order."""
    return _some(phase, [text for part in phase.reads for text in screened.texts(part)])


def labels_of(phase: Phase, screened: ScreenedCorpus) -> list[str | None]:
    """Their labels."""
    return _some(phase, [label for part in phase.reads for label in screened.labels(part)])


def check_counts(plan: Plan, screened: ScreenedCorpus, units: Mapping[str, Units]) -> None:
    """Raises DataError where a phase of ``plan`` says another number of records or ``units`` than there are: what a promise
    says at a δ depends on it, and a plan can come from anywhere."""
    sizes: dict[str, int] = {}
    for phase in plan.phases:
        for part in phase.reads:
            sizes[part] = sizes[part] if part in sizes else len(screened.texts(part))
        read = sum(sizes[part] for part in phase.reads) if phase.rows is None else len(phase.rows)
        phase.check_drawn_from(len(units[phase.name]) if phase.name in units else read)


def _some(phase: Phase, items: list[Item]) -> list[Item]:
    return items if phase.rows is None else [items[row] for row in phase.rows]


def share_of(records: int, share: float, seed: int = 0) -> tuple[int, ...] | None:
    """Numbers of a random share of ``records``, ascending and at least one; None for all. Which they are depends on nothing
    but how many records there are."""
    if share >= 1:
        return None
    kept = np.random.Generator(np.random.PCG64([seed, records])).permutation(records)[: max(1, round(share * records))]
    return tuple(sorted(kept.tolist()))


def rows_with_ids(screened: ScreenedCorpus, ids: Sequence[str]) -> tuple[int, ...]:
    """Numbers of the records with these ids. DataError, with counts only, for ids the corpus does not have."""
    place = {name: row for row, name in enumerate(screened.table["id"].to_pylist())}
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
    users = screened.table["user"].to_pylist()
    named: Any = screened.originals["entities"].to_pylist() if entities else [[] for _ in users]
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
    table, private = screened.table, screened.texts("private")
    skeletons = iter(range(len(private), len(private) + len(screened.texts("skeletons"))))
    pairs: list[list[tuple[int, float]]] = []
    columns = (table[name].to_pylist() for name in ("part", "skeleton", "duplicate", "suspicious"))
    for part, skeleton, duplicate, suspicious in zip(*columns, strict=True):
        at = None if skeleton is None else next(skeletons)
        if part != "private":
            continue
        row = len(pairs)
        if at is None and not duplicate:
            pairs.append([(row, 1.0)])
        else:
            pairs.append([] if at is None or duplicate or not suspicious else [(row, 1.0), (at, -1.0)])
    return of_lists(pairs)


def encoded(tokenizer: Any, plan: Plan, phase: Phase, screened: ScreenedCorpus, limit: int) -> Any:
    """The records of a phase as `taciturn.models.tokens.Tokens`."""
    from taciturn.models.sensitive import encode_sensitive
    from taciturn.models.tasks import encode_task

    if phase.rule.sensitive:
        known: Any = _some(phase, screened.originals["stable"].to_pylist())
        stable = [list(zip(flat[::2], flat[1::2], strict=True)) for flat in known]
        originals, redacted = (_some(phase, screened.texts(part)) for part in PAIR)
        found = encode_sensitive(tokenizer, originals, redacted, stable, limit)
        return replace(found.tokens, sensitive=found.flags)
    texts, labels = texts_of(phase, screened), labels_of(phase, screened)
    tokens = encode_task(tokenizer, texts, limit, labels=labels, **task_of(plan))
    return tokens if phase.targets == "all" else _marked(tokenizer, tokens, texts, suspects_of(phase, screened))


def suspects_of(phase: Phase, screened: ScreenedCorpus) -> list[list[tuple[int, int]]]:
    """What the conservative policy still marks in each text of a phase over private records: a function of the text that is
    trained on, so that copies have the same. Raises DataError when originals were not kept."""
    columns = screened.table["part"].to_pylist(), screened.originals["suspects"].to_pylist()
    found: list[Any] = [flat for part, flat in zip(*columns, strict=True) if part in phase.reads]
    return _some(phase, [list(zip(flat[::2], flat[1::2], strict=True)) for flat in found])


def _marked(tokenizer: Any, tokens: Any, texts: Sequence[str], spans: Sequence[Sequence[tuple[int, int]]]) -> Any:
    """The same tokens, of which only those that touch a span of their text are targets."""
    from taciturn.models.sequences import mask_id, touched

    mask = mask_id(tokenizer)
    scored = [
        tokens.targets(i, mask) & touched(tokenizer, text, [] if text == MASK else its, len(tokens[i]))
        for i, (text, its) in enumerate(zip(texts, spans, strict=True))
    ]
    return replace(tokens, scored=np.concatenate([np.zeros(0, np.bool_), *scored]))


def public_texts(plan: Plan, screened: ScreenedCorpus) -> list[str]:
    """What the plan's tokenizer is learned from."""
    return screened.texts("public") if plan.model.tokenizer.startswith(LEARNED) else []


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
    documents = read(*config.valid, text=config.valid_text, **how).documents()
    records = [record for document in documents for record in split(document, unit)]
    return records[: config.valid_limit]
