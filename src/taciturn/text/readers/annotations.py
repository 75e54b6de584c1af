"""Rows as annotation tools export them, into rows with a text and spans: Label Studio, Prodigy, doccano."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.items import BadRecord, LeftOut

_PRODIGY = ("_task_hash", "_input_hash", "_view_id", "_annotator_id", "spans")


def unified(value: Mapping[str, Any], options: ReadOptions) -> Mapping[str, Any]:
    """The row, with its annotations under ``options.spans``; the row itself where no tool wrote it.

    Raises LeftOut for a row that nobody accepted: it says nothing about what is secret in it, not even that nothing is.
    """
    if "answer" in value and any(mark in value for mark in _PRODIGY):
        if value["answer"] in ("reject", "ignore"):
            raise LeftOut(f"annotation ({value['answer']})")
    elif isinstance(value.get("annotations"), list) and isinstance(value.get("data"), Mapping):
        return {**value, **value["data"], options.spans: _label_studio(value["annotations"])}
    elif options.spans not in value and options.label is None:
        for field in ("label", "labels", "entities"):
            listed = value.get(field)
            if isinstance(listed, list) and listed and all(map(_is_span, listed)):
                return {**value, options.spans: [_doccano(each) for each in listed]}
    return value


def _is_span(value: object) -> bool:
    if isinstance(value, list):
        return len(value) == 3 and [type(each) for each in value] == [int, int, str]
    return isinstance(value, Mapping) and ("start_offset" in value or {"start", "end", "labels"} <= value.keys())


def _doccano(value: Any) -> Mapping[str, Any]:
    if isinstance(value, list):
        return {"start": value[0], "end": value[1], "label": value[2]}
    if "start_offset" in value:
        return {"start": value["start_offset"], "end": value.get("end_offset"), "label": value.get("label")}
    return _labelled(value)  # Label Studio's short form


def _label_studio(annotations: list[Any]) -> list[Mapping[str, Any]]:
    """What any annotator marked; a task that all of them skipped, or that none had, is left out."""
    done = [each for each in annotations if isinstance(each, Mapping) and not each.get("was_cancelled")]
    if not done:
        raise LeftOut("annotation (skipped)" if annotations else "annotation (none)")
    spans: list[Mapping[str, Any]] = []
    for each in done:
        for span in _results(each.get("result")):
            if span not in spans:
                spans.append(span)
    return spans


def _results(results: object) -> Iterator[Mapping[str, Any]]:
    for result in results if isinstance(results, list) else ():
        value = result.get("value") if isinstance(result, Mapping) else None
        if not isinstance(value, Mapping):
            raise BadRecord("an annotation of Label Studio has no value")
        if "start" in value:  # choices and relations mark no text
            yield _labelled(value)


def _labelled(value: Mapping[str, Any]) -> Mapping[str, Any]:
    labels = value.get("labels") or value.get("hypertextlabels")
    label = labels[0] if isinstance(labels, list) and labels else ""
    return {key: each for key, each in value.items() if key in ("start", "end", "text")} | {"label": label}
