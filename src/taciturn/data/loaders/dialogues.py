"""Dialogues as published that no reader knows: JSON with its splits inside, annotations in files of their own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from taciturn.data.loaders.layouts import Asked, Found, built
from taciturn.data.loaders.tables import plain_lines, stem_of
from taciturn.errors import DataError
from taciturn.text.readers import Corpus, Quarantined, ReadOptions
from taciturn.text.readers.formats import json_list, jsonl
from taciturn.text.readers.items import Row

LOCATED = ("customer_name", "email", "phone", "username", "account_id", "street_address", "full_address", "zip_code",
           "order_id")  # fmt: skip
"""The fields of an ABCD scenario that identify the customer or the order."""
LISTS = {"valid": "valListFile", "test": "testListFile"}


def abcd(paths: tuple[Path, ...], asked: Asked) -> Found:
    """abcd_v1.1.json: {"train", "dev", "test"}; turns are [speaker, text]; a scenario's values are gold where they stand."""

    def values() -> Iterator[Mapping[str, Any]]:
        for path in paths:
            splits = _object(path)
            chosen = splits.get({"valid": "dev"}.get(asked.split, asked.split))
            if not isinstance(chosen, list):
                raise DataError(f"{path.name} has no split '{asked.split}'; there are: {', '.join(sorted(splits))}")
            for talk in chosen:
                facts = {**talk["scenario"].get("personal", {}), **talk["scenario"].get("order", {})}
                secrets = [(name, str(facts[name])) for name in LOCATED if facts.get(name)]
                yield _dialogue(str(talk["convo_id"]), [(who, said, secrets) for who, said in talk["original"]])

    return _nested(values(), paths), "Gold spans are the values of each scenario where the text repeats them."


def multiwoz21(paths: tuple[Path, ...], asked: Asked) -> Found:
    """data.json of MultiWOZ 2.1, valListFile and testListFile beside it; annotated values are gold where they stand."""

    def values() -> Iterator[Mapping[str, Any]]:
        for path in paths:
            held_out = {split: _listed(path.parent, stem) for split, stem in LISTS.items()}
            for name, talk in _object(path).items():
                split = next((s for s, listed in held_out.items() if name.removesuffix(".json") in listed), "train")
                if split == asked.split:
                    said = enumerate(talk["log"])
                    yield _dialogue(name, [(("USER", "SYSTEM")[i % 2], t["text"], _values(t)) for i, t in said])

    return _nested(values(), paths), "Gold spans are the annotated values where the text repeats them."


def multiwoz22(paths: tuple[Path, ...], _: Asked) -> Found:
    """Files of dialogues of MultiWOZ 2.2. What the system says is annotated in dialog_acts.json, beside them or one folder
    up; without it only what the user says is."""
    beside = [f for up in (paths[0].parent, paths[0].parent.parent) for f in sorted(up.glob("dialog_acts.json*"))]
    acts = _object(beside[0]) if beside else {}

    def values() -> Iterator[Mapping[str, Any]]:
        for path in paths:
            for talk in _elements(path):
                annotated = acts.get(talk["dialogue_id"], {})
                turns = [
                    {
                        "speaker": turn["speaker"],
                        "text": turn["utterance"],
                        "frames": turn.get("frames"),
                        "spans": list(_acted(turn["utterance"], annotated.get(str(turn.get("turn_id")), {}))),
                    }
                    for turn in talk["turns"]
                ]
                yield {"dialogue_id": talk["dialogue_id"], "turns": turns}

    missing = "dialog_acts.json is not there: nothing that the system says (references, phones) has gold spans."
    return _nested(values(), paths), "" if beside else missing


def multiwoz21_lines(paths: tuple[Path, ...], _: Asked) -> Found:
    """MultiWOZ 2.1 as JSON lines with spans. A sixth of its references, phones and postcodes are marked some tokens beside
    their value ("number" in "The reference number is EQ0YAQ1G"): these stand on the value instead.

    Only here: elsewhere a value may be a canonical form, and the text that was marked is the secret.
    """
    moved = 0

    def values() -> Iterator[Mapping[str, Any]]:
        nonlocal moved
        for path in paths:
            for talk in _rows(jsonl(path, path.name, ReadOptions()), path):
                turns = [
                    {**turn, "spans": [_placed(each, turn["text"]) for each in turn.get("spans", ())]}
                    for turn in talk["turns"]
                ]
                pairs = zip(talk["turns"], turns, strict=True)
                moved += sum(
                    was != now and was.get("secret", True)
                    for old, new in pairs
                    for was, now in zip(old.get("spans", ()), new["spans"], strict=True)
                )
                yield {**talk, "turns": turns}

    corpus = _nested(values(), paths)
    return corpus, f"{moved} annotations of secrets beside their value are moved to it." if moved else ""


def _placed(span: Mapping[str, Any], text: str) -> Mapping[str, Any]:
    """The span at the place of its value that is nearest; as it is where it holds the value or the text does not."""
    start, end, value = span["start"], span["end"], str(span.get("value", ""))
    if value.casefold() in text[start:end].casefold():
        return span
    start, end = min(occurrences(text, value), key=lambda place: abs(place[0] - start), default=(start, end))
    return {**span, "start": start, "end": end}


def _acted(text: str, annotated: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for _, slot, value, start, end in annotated.get("span_info", ()):
        right = isinstance(start, int) and isinstance(end, int) and text[start:end].lower() == str(value).lower()
        for begin, stop in [(start, end)] if right else occurrences(text, str(value)):
            yield {"start": begin, "end": stop, "slot": slot}


def _values(turn: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [(slot, str(value)) for _, slot, value, *_ in turn.get("span_info", ())]


def _listed(folder: Path, stem: str) -> frozenset[str]:
    files = sorted(folder.glob(f"{stem}.*"))
    if not files:
        raise DataError(f"{stem}.json is not beside data.json; it says which dialogues are held out")
    return frozenset(line.strip().removesuffix(".json") for line in plain_lines(files[0]) if line.strip())


def _dialogue(name: str, turns: list[tuple[str, str, list[tuple[str, str]]]]) -> Mapping[str, Any]:
    return {
        "dialogue_id": name,
        "turns": [
            {
                "speaker": speaker,
                "text": text,
                "spans": [
                    {"start": start, "end": end, "slot": slot}
                    for slot, value in dict.fromkeys(secrets)
                    for start, end in occurrences(text, value)
                ],
            }
            for speaker, text, secrets in turns
        ],
    }


def occurrences(text: str, value: str) -> Iterator[tuple[int, int]]:
    """Where ``value`` stands in ``text`` as whole words, whatever its case.

    >>> list(occurrences("Ann met Anna, ANN.", "ann"))
    [(0, 3), (14, 17)]
    """
    if value.strip():
        for match in re.finditer(rf"(?<!\w){re.escape(value.strip())}(?!\w)", text, re.IGNORECASE):
            yield match.span()


def _nested(values: Iterator[Mapping[str, Any]], paths: tuple[Path, ...]) -> Corpus:
    try:
        return built(values, stem_of(paths))
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{stem_of(paths)} is not in the official layout of this set") from None


def _object(path: Path) -> Mapping[str, Any]:
    found = next(_elements(path), None)
    if not isinstance(found, dict):
        raise DataError(f"{path.name} does not hold one JSON object")
    return found


def _elements(path: Path) -> Iterator[Any]:
    """What a JSON file holds, one by one. The whole set may be one object, so no record is too long."""
    return _rows(json_list(path, path.name, ReadOptions(max_record_bytes=1 << 30)), path)


def _rows(items: Iterable[object], path: Path) -> Iterator[Any]:
    for item in items:
        if isinstance(item, Quarantined):
            raise DataError(f"{path.name}, {item.location}: {item.reason}")
        if isinstance(item, Row):
            yield item.value
