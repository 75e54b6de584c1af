"""Excel workbooks (.xlsx), through openpyxl."""

from __future__ import annotations

import datetime
import io
import warnings
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from taciturn.errors import MissingExtra
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import content
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row
from taciturn.text.readers.office import text_of_part, unpacked


def xlsx(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """A sheet whose first row names the text field is a table: a row is a document, as in CSV. Any other sheet is one
    document, a line for each row and tabs between cells; comments come last, as one more. Hidden sheets are read too.

    A formula is its value as Excel last stored it, or the formula itself where it stored none.
    """
    try:
        import openpyxl
    except ImportError:
        raise MissingExtra("openpyxl", "documents") from None
    try:
        data = content(path, name)
        parts = unpacked(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of extensions that hold no text
            books = [openpyxl.load_workbook(io.BytesIO(data), read_only=True, data_only=only) for only in (True, False)]
            number = 0
            for place, (sheet, formulas) in enumerate(zip(*(book.worksheets for book in books), strict=True), 1):
                for item in _sheet(_rows(sheet, formulas), number, name, f"sheet {place}", options):
                    yield item
                    number += 1
    except BadRecord as bad:
        yield Quarantined(name, "line 1", bad.reason)
        return
    except MemoryError:
        raise
    except Exception as error:  # the library meets damage with whatever its parts raise
        yield Quarantined(name, "line 1", f"damaged, or no workbook ({type(error).__name__}); open and save it again")
        return
    try:
        said = [text_of_part(parts[p]) for p in sorted(parts) if "omments" in p and p.endswith(".xml")]
    except BadRecord as bad:
        yield Quarantined(name, "comments", bad.reason)
        return
    for part in parts:
        if "/media/" in part or "/embeddings/" in part:
            yield Blank(name, "line 1", "image or embedded file")
    if said:
        yield Row(number + 1, "comments", {options.text: "".join(said).rstrip("\n")})


def _sheet(rows: Iterator[list[str]], before: int, name: str, where: str, options: ReadOptions) -> Iterator[Item]:
    first = next((row for row in rows if any(row)), None)
    if first is None:
        yield Blank(name, where)
    elif any(field in first for field in (options.text, *options.texts)):
        for number, row in enumerate(rows, before + 1):
            place = f"{where}, row {number - before} below the header"
            if not any(row):
                yield Blank(name, place)
            elif any(row[len(first) :]):
                yield Quarantined(name, place, "the row has more cells than the header")
            else:
                yield Row(number, place, dict(zip_longest(first, row[: len(first)], fillvalue="")))
    else:
        lines = ["\t".join(row) for row in (first, *rows)]
        yield Row(before + 1, where, {options.text: "\n".join(lines)})


def _rows(sheet: Any, formulas: Any) -> Iterator[list[str]]:
    for values, written in zip(sheet.iter_rows(values_only=True), formulas.iter_rows(values_only=True), strict=True):
        cells = [_cell(w if v is None else v) for v, w in zip(values, written, strict=True)]
        while cells and not cells[-1]:
            cells.pop()
        yield cells


def _cell(value: Any) -> str:
    """As a person reads it.

    >>> _cell(5.0), _cell(None), _cell(datetime.datetime(2024, 5, 1))
    ('5', '', '2024-05-01')
    """
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    return str(getattr(value, "text", value))  # a formula over several cells is an object
