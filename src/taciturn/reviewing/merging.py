"""Labels of several people made one file. Where they do not agree it claims nothing it cannot bear.

Labels: a record they disagree on, or that one of them could not judge, is "skip" with the marks of all; `recall` then counts
it as a secret that is missed wherever a word of it is uncovered, until somebody decides. Corrections: the marks of all hold,
as a mark can only mask more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from taciturn.errors import MismatchError, UsageError
from taciturn.reviewing.agreement import Agreement, core, pairs
from taciturn.screening.labels import LabelSpan, Line

Why = Literal["unsure", "secret or not", "extent", "kind"]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """unsure: somebody could not judge. "secret or not": somebody marked nothing. extent: other letters or digits are
    marked. kind: the same, under other names; it does not keep a record from being done."""

    id: str
    why: Why


@dataclass(frozen=True, slots=True)
class Merged:
    """once: records only one person looked at; they are taken as they are."""

    lines: list[Line] = field(repr=False)
    agreements: list[Agreement]
    disagreements: list[Disagreement]
    once: int


def merge(files: Mapping[str, Sequence[Line]]) -> Merged:
    """One line a record. Raises UsageError for fewer than two people, MismatchError if they labelled other samples."""
    if len(files) < 2:
        raise UsageError(
            f"merging takes the files of two people or more, found {len(files)}; each labels with: "
            "taciturn review DIR --reviewer NAME"
        )
    same = _same_sample(files)
    lines, disagreements, once = [], [], 0
    for of_record in zip(*same.values(), strict=True):
        looked = [line for line in of_record if line.label_status != "todo"]
        why = _why(looked) if len(looked) > 1 else None
        if why is not None:
            disagreements.append(Disagreement(of_record[0].id, why))
        once += len(looked) == 1
        lines.append(_line(of_record[0], looked, why))
    return Merged(lines, pairs(same), disagreements, once)


def _same_sample(files: Mapping[str, Sequence[Line]]) -> dict[str, list[Line]]:
    """Every file in the order of the first."""
    first, *rest = sorted(files)
    wanted = {line.id: _blank(line) for line in files[first]}
    for name in rest:
        if {line.id: _blank(line) for line in files[name]} != wanted:
            raise MismatchError(
                f"'{first}' and '{name}' labelled different samples; start each file with taciturn review DIR --reviewer "
                "NAME in the same folder: it copies the sample"
            )
    order = {id: place for place, id in enumerate(wanted)}
    return {name: sorted(files[name], key=lambda line: order[line.id]) for name in (first, *rest)}


def _blank(line: Line) -> Line:
    return line.model_copy(update={"spans": (), "label_status": "todo"})


def _why(looked: Sequence[Line]) -> Why | None:
    if any(line.label_status == "skip" for line in looked):
        return "unsure"
    if len({core(line) for line in looked}) > 1:
        return "extent" if all(line.spans for line in looked) else "secret or not"
    kinds = {frozenset((at, s.label) for s in line.spans for at in range(s.start, s.end)) for line in looked}
    if len(kinds) == 1:
        return None
    named = [dict(of_line) for of_line in kinds]
    shared = set.intersection(*(set(n) for n in named))
    return "kind" if any(len({n[at] for n in named}) > 1 for at in shared) else None


def _line(blank: Line, looked: Sequence[Line], why: Why | None) -> Line:
    correcting = blank.salt is not None
    if not looked:
        return blank if correcting else _blank(blank)
    done = [line for line in looked if line.label_status == "done"]
    unsure = not done or (not correcting and why not in (None, "kind"))
    spans = joined([s for line in (done if correcting and done else looked) for s in line.spans])
    return blank.model_copy(update={"spans": spans, "label_status": "skip" if unsure else "done"})


def joined(spans: Sequence[LabelSpan]) -> tuple[LabelSpan, ...]:
    """Marks that overlap made one; its kind is "secret" where theirs differ. Marks that only touch stay two.

    >>> [(s.start, s.end, s.label) for s in joined([LabelSpan(start=0, end=4, label="name"), LabelSpan(start=2, end=6)])]
    [(0, 6, 'secret')]
    """
    made: list[LabelSpan] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if made and span.start < made[-1].end:
            last = made[-1]
            label = last.label if last.label == span.label else "secret"
            made[-1] = LabelSpan(start=last.start, end=max(last.end, span.end), label=label)
        else:
            made.append(span)
    return tuple(made)
