"""Tables as published that no reader knows: cells without quotes, no header, a token a line."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from taciturn.data.loaders.layouts import NO_SOURCE, Asked, Found, Layout, built
from taciturn.errors import DataError
from taciturn.text.readers import ReadOptions
from taciturn.text.readers.files import decode, lines, opened, plain_name, too_long
from taciturn.text.readers.items import BadRecord

CLASSES = ("World", "Sports", "Business", "Sci/Tech")
"""AG News, classes 1 to 4 (readme.txt of the set)."""
MARKER = "-DOCSTART-"


def tsv(text: str, label: str, second: str | None = None) -> Layout:
    """GLUE: a header, then cells parted by tabs and never quoted (a quotation mark is a quotation mark)."""

    def layout(paths: tuple[Path, ...], _: Asked) -> Found:
        short = 0

        def values() -> Iterator[Mapping[str, str]]:
            nonlocal short
            for path in paths:
                rows = (line.split("\t") for line in plain_lines(path) if line)
                header = next(rows, [])
                for wanted in filter(None, (text, second, label)):
                    if wanted not in header:
                        hidden = "; GLUE's test sets have no labels" if wanted == label else ""
                        raise DataError(f"{path.name} has no column '{wanted}'{hidden}")
                for cells in rows:
                    if len(cells) == len(header):
                        yield dict(zip(header, cells, strict=True))
                    else:
                        short += 1

        options = {"text": text, "label": label} | ({"text_pair": second} if second else {})
        corpus = built(values(), stem_of(paths), **options)
        return corpus, f"{short} rows with missing cells are left out." if short else ""

    return layout


def news_csv(paths: tuple[Path, ...], _: Asked) -> Found:
    """AG News: quoted cells, no header: class from 1, title, description. The text is title, blank, description."""

    def values() -> Iterator[Mapping[str, str]]:
        for path in paths:
            rows = csv.reader(f"{line}\n" for line in plain_lines(path))
            for number, cells in enumerate(rows, 1):
                if len(cells) != 3 or cells[0] not in ("1", "2", "3", "4"):
                    raise DataError(
                        f"{path.name}, row {number}: expected a class from 1 to 4, a title and a description"
                    )
                yield {"text": f"{cells[1]} {cells[2]}", "label": CLASSES[int(cells[0]) - 1]}

    try:
        return built(values(), stem_of(paths), label="label"), NO_SOURCE
    except csv.Error:
        raise DataError(f"{stem_of(paths)} is not valid CSV: a cell is too long, or its quotes are broken") from None


def columns(paths: tuple[Path, ...], _: Asked) -> Found:
    """CoNLL: a token a line, its tag the last column; an empty line ends a sentence. A document is a sentence, tokens
    joined by blanks; its user is the article that a -DOCSTART- line began, in files that have such lines.

    Reads both B-/I- schemes: a span begins at B-, and at I- after another label or none. A sentence with bytes that are
    not UTF-8 is kept with U+FFFD in their place, and private.
    """

    def values() -> Iterator[Mapping[str, Any]]:
        for path in paths:
            article: str | None = None
            begun = 0
            sentence: list[tuple[str, str]] = []
            private: str | None = None
            for line, why in (*_decoded(path, ReadOptions(encoding_errors="replace")), ("", None)):
                cells = re.split("[ \t]+", line.strip(" \t"))  # other white space may be a token
                if cells[0] not in ("", MARKER):
                    if len(cells) < 2:
                        raise DataError(f"{path.name} has a line of one column; expected a token and its tag")
                    sentence.append((cells[0], cells[-1]))
                    private = private or why
                    continue
                if sentence:
                    whose = {"user": article} if article else {}
                    yield _sentence(sentence) | whose | ({"private_because": private} if private else {})
                    sentence, private = [], None
                if cells[0] == MARKER:
                    begun += 1
                    article = f"{path.name}/{begun}"

    found = list(values())
    whose = {"user": "user"} if found and all("user" in value for value in found) else {}
    return built(found, stem_of(paths), **whose), ""


def _sentence(tagged: list[tuple[str, str]]) -> dict[str, Any]:
    at, before = 0, ""
    spans: list[dict[str, Any]] = []
    for token, tag in tagged:
        label = "" if tag == "O" else tag.partition("-")[2] or tag
        if label and label == before and not tag.startswith("B-"):
            spans[-1]["end"] = at + len(token)
        elif label:
            spans.append({"start": at, "end": at + len(token), "label": label})
        at, before = at + len(token) + 1, label
    return {"text": " ".join(token for token, _ in tagged), "spans": spans}


def plain_lines(path: Path) -> Iterator[str]:
    """Lines without their ends. Raises DataError for one that is not UTF-8."""
    return (line for line, _ in _decoded(path, ReadOptions()))


def _decoded(path: Path, options: ReadOptions) -> Iterator[tuple[str, str | None]]:
    """Lines, and why a line must be private. Raises DataError for one that does not decode, or is too long."""
    limit = options.max_record_bytes
    with opened(path, path.name) as stream:
        for line in lines(stream, limit):
            try:
                if line.data is None:
                    raise too_long(limit)
                yield decode(line.data, line.offset, options)
            except BadRecord as bad:
                raise DataError(f"{path.name}, line {line.number}: {bad.reason}") from None


def stem_of(paths: tuple[Path, ...]) -> str:
    """What documents are called by: the first file's name without its endings."""
    return str(Path(plain_name(paths[0].name)).with_suffix(""))
