"""A workspace exported by Slack, as a folder or a zip: one dialogue per channel and day."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.files import UTF8_BOM, decode, too_long
from taciturn.text.readers.formats import DOUBLED, Item, doubled, parse
from taciturn.text.readers.held import File
from taciturn.text.readers.items import BadRecord, Blank, Quarantined, Row

_DAY = re.compile(r"(?:.*/)?([^/]+/\d{4}-\d\d-\d\d)\.json")
_ESCAPED = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))  # Slack escapes these three and nothing else
Load = Callable[[str, int], bytes]
"""The first bytes of a member, by name and number."""


def slack(path: File, name: str, options: ReadOptions) -> Iterator[Item]:
    """Messages in their order; the speaker is the user's name where users.json has it, else the user's id.

    Joins, leaves and other notices are turns without a speaker; shared files are left out and counted.
    Raises DataError for a folder or zip without a <channel>/<day>.json.
    """
    with ExitStack() as stack:
        with _opening(name):
            members, load = _folder(path) if isinstance(path, Path) and path.is_dir() else _zip(path, stack)
        days = sorted((found[1], member) for member in members if (found := _DAY.fullmatch(member)))
        if not days:
            raise DataError(f"{name} is no Slack export: it holds no <channel>/<year-month-day>.json")
        with _opening(name):
            people = _people(members, load, options)
        for number, (day, member) in enumerate(days, 1):
            with _opening(name):
                data = load(member, options.max_record_bytes + 1)
            yield from _day(data, number, day, name, people, options)


@contextmanager
def _opening(name: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise DataError(f"{name} is a damaged or encrypted zip ({type(error).__name__}); export it again") from None
    except OSError as error:
        raise DataError(f"cannot read {name}: {error.strerror or type(error).__name__}") from None


def _folder(path: Path) -> tuple[list[str], Load]:
    members = sorted(p.relative_to(path).as_posix() for p in path.rglob("*.json") if p.is_file())

    def load(member: str, size: int) -> bytes:
        with (path / member).open("rb") as file:
            return file.read(size)

    return members, load


def _zip(path: File, stack: ExitStack) -> tuple[list[str], Load]:
    archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(path.open("rb"))))

    def load(member: str, size: int) -> bytes:
        with archive.open(member) as file:
            return file.read(size)

    return archive.namelist(), load


def _people(members: list[str], load: Load, options: ReadOptions) -> Mapping[str, str]:
    listed = next((member for member in members if member.rpartition("/")[2] == "users.json"), None)
    if listed is None:
        return {}
    try:
        users = json.loads(load(listed, options.max_record_bytes))
    except (ValueError, RecursionError):
        raise DataError(f"{listed} of the Slack export is not valid JSON") from None
    found = (user for user in users if isinstance(user, Mapping)) if isinstance(users, list) else ()
    return {u["id"]: u["name"] for u in found if isinstance(u.get("id"), str) and isinstance(u.get("name"), str)}


def _day(
    data: bytes, number: int, day: str, name: str, people: Mapping[str, str], options: ReadOptions
) -> Iterator[Item]:
    where = f"{day}.json"
    try:
        if len(data) > options.max_record_bytes:
            raise too_long(options.max_record_bytes)
        content, private = decode(data.removeprefix(UTF8_BOM), 0, options)
        messages = parse(content, each=True)
        if doubled(messages):
            raise BadRecord(DOUBLED)
        if not isinstance(messages, list):
            raise BadRecord("holds no list of messages")
    except BadRecord as bad:
        yield Quarantined(name, where, bad.reason)
        return
    turns: list[dict[str, Any]] = []
    for place, message in enumerate(messages, 1):
        text = message.get("text", "") if isinstance(message, Mapping) else None
        if not isinstance(text, str):
            yield Quarantined(name, f"{where}, message {place}", "holds no object with a text")
            continue
        for _ in message.get("files") or ():
            yield Blank(name, f"{where}, message {place}", "shared file")
        if text:
            for escaped, plain in _ESCAPED:
                text = text.replace(escaped, plain)
            turns.append({"speaker": _speaker(message, people), "text": text})
    yield Row(number, where, {options.turns: turns, "dialogue_id": day}, private) if turns else Blank(name, where)


def _speaker(message: Mapping[str, Any], people: Mapping[str, str]) -> str | None:
    subtype, user = message.get("subtype"), message.get("user")
    if isinstance(subtype, str) and subtype not in ("bot_message", "me_message", "thread_broadcast", "file_share"):
        return None
    if isinstance(user, str):
        return people.get(user, user)
    return message.get("username") if isinstance(message.get("username"), str) else None
