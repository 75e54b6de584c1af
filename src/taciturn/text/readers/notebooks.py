"""Jupyter notebooks (.ipynb): the text of their cells and of what these printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import decode, whole
from taciturn.text.readers.formats import Item, parse
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row
from taciturn.text.readers.markup import text_of_html

_TEXTS = ("text/plain", "text/markdown", "text/latex", "application/json")


def ipynb(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """One document: sources and outputs in their order, blank lines between. Of an output in several forms the plain one,
    else the first with text; images and attachments are counted."""
    left_out: list[str] = []
    try:
        data, offset = whole(path, name, options)
        source, private = decode(data, offset, options)
        texts = [text.rstrip("\n") for text in _notebook(parse(source), left_out) if text.strip()]
    except BadRecord as bad:
        yield Quarantined(name, bad.location or "line 1", bad.reason)
        return
    for what in left_out:
        yield Blank(name, "line 1", what)
    yield Row(1, "line 1", {options.text: "\n\n".join(texts)}, private)


def _notebook(value: Any, left_out: list[str]) -> Iterator[str]:
    if not isinstance(value, Mapping):
        raise BadRecord("no notebook: it holds no object")
    sheets = [value] if "cells" in value else value.get("worksheets")  # version 3 has sheets
    if not isinstance(sheets, list) or not all(
        isinstance(s, Mapping) and isinstance(s.get("cells"), list) for s in sheets
    ):
        raise BadRecord("no notebook: it has no list of cells")
    for cell in (cell for sheet in sheets for cell in sheet["cells"]):
        if not isinstance(cell, Mapping):
            raise BadRecord("a cell is no object")
        yield _text(cell.get("source", cell.get("input", "")))
        left_out += ["attachment"] * len(cell.get("attachments") or ())
        for output in cell.get("outputs") or ():
            if not isinstance(output, Mapping):
                raise BadRecord("an output is no object")
            yield from _output(output, left_out)


def _output(output: Mapping[str, Any], left_out: list[str]) -> Iterator[str]:
    data = output.get("data")
    if isinstance(data, Mapping):
        kind = next((kind for kind in (*_TEXTS, "text/html") if kind in data), None)
        if kind is not None:
            text = _text(data[kind])
            yield text_of_html(text) if kind == "text/html" else text
        left_out += ["image"] * sum(str(other).startswith("image/") for other in data)
    elif "traceback" in output:
        yield "\n".join(map(_text, output["traceback"] if isinstance(output["traceback"], list) else ()))
    else:
        yield _text(output.get("text", ""))
        left_out += ["image"] * sum(kind in output for kind in ("png", "jpeg", "svg"))


def _text(value: Any) -> str:
    """A text, or a list of its lines."""
    if isinstance(value, list) and all(isinstance(line, str) for line in value):
        return "".join(value)
    if not isinstance(value, str):
        if isinstance(value, Mapping | list):
            return repr(value)
        raise BadRecord("a cell or an output holds something else than text")
    return value
