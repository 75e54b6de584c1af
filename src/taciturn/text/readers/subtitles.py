"""Subtitles (.srt, .vtt): what is said, without when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import decode, whole
from taciturn.text.readers.formats import Item
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Quarantined, Row

_TIME = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}\s*-->\s*(?:\d+:)?\d{1,2}:\d\d[.,]\d{1,3}")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?[ \t]+([^>]*)>")
_TAG = re.compile(r"</?(?:[ibucv]|lang|ruby|rt|font)(?:[ .][^>]*)?>|<(?:\d+:)?\d\d:\d\d\.\d{3}>|\{\\an?\d\}")


def subtitles(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """One document: the lines of all cues. A voice (<v Ann>) stands before what it says; identifiers of cues, times and
    styles are left out, notes stay."""
    try:
        data, offset = whole(path, name, options)
        source, private = decode(data, offset, options)
    except BadRecord as bad:
        yield Quarantined(name, bad.location or "line 1", bad.reason)
        return
    yield Row(1, "line 1", {options.text: "\n".join(_said(source))}, private)


def _said(source: str) -> Iterator[str]:
    for block in re.split(r"(?:\r?\n[ \t]*){2,}", source.strip()):
        lines = re.split(r"\r?\n", block)
        if lines[0] in ("STYLE", "REGION") or lines[0].startswith("WEBVTT"):
            lines = lines[1:] if lines[0].startswith("WEBVTT") else []
        at = next((number for number, line in enumerate(lines) if _TIME.match(line)), None)
        for line in lines[0 if at is None or at > 1 else at + 1 :]:
            if not _TIME.match(line):
                yield unescape(_TAG.sub("", _VOICE.sub(r"\1: ", line)))
