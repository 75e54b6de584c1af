"""Annotations of other tools: the same gold whoever wrote it down, nothing rejected in it, no span on another text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.text.document import Document
from taciturn.text.readers import Blank, Quarantined, read
from taciturn.text.readers.fields import gold_spans
from taciturn.text.readers.items import BadRecord

TEXT = "😀 Ann lives in Oslo."  # the face is one code point and two UTF-16 units
GOLD = [(2, 5, "PERSON"), (15, 19, "CITY")]


def of(tmp_path: Path, name: str, *rows: Any) -> list[Document | Quarantined | Blank]:
    path = tmp_path / name
    path.write_text(json.dumps(list(rows)) if name.endswith(".json") else "\n".join(map(json.dumps, rows)))
    return list(read(path).items())


def gold(item: object) -> list[tuple[int, int, str]]:
    assert isinstance(item, Document), item
    return [(span.start, span.end, span.label) for span in item.gold]


def label_studio(*results: dict[str, Any], **more: Any) -> dict[str, Any]:
    marks = [{"value": value, "type": "labels", "from_name": "label", "to_name": "text"} for value in results]
    return {"id": 1, "data": {"text": TEXT}, "annotations": [{"result": marks, **more}]}


def test_label_studio(tmp_path: Path) -> None:
    ann = {"start": 3, "end": 6, "text": "Ann", "labels": ["PERSON"]}  # as a browser counts
    oslo = {"start": 16, "end": 20, "text": "Oslo", "labels": ["CITY"]}
    task = label_studio(ann, oslo, {"choices": ["letter"]})
    twice = {**task, "annotations": task["annotations"] * 2}
    skipped, nobody = label_studio(ann, was_cancelled=True), {**task, "annotations": []}
    one, two, three, four = of(tmp_path, "a.json", task, twice, skipped, nobody)
    assert gold(one) == gold(two) == GOLD
    assert [item.what for item in (three, four) if isinstance(item, Blank)] == [
        "annotation (skipped)",
        "annotation (none)",
    ]
    (short,) = of(tmp_path, "b.json", {"text": TEXT, "label": [ann, oslo]})
    assert gold(short) == GOLD


def test_prodigy(tmp_path: Path) -> None:
    spans = [{"start": start, "end": end, "label": label} for start, end, label in GOLD]
    rows = [{"text": TEXT, "spans": spans, "answer": answer} for answer in ("reject", "accept")]
    items = of(tmp_path, "a.jsonl", *rows, {"text": TEXT, "_task_hash": 1, "answer": "ignore"})
    assert [item.what for item in items if isinstance(item, Blank)] == ["annotation (reject)", "annotation (ignore)"]
    assert gold(items[1]) == GOLD
    (quiz,) = of(tmp_path, "b.jsonl", {"text": TEXT, "answer": "reject"})
    assert isinstance(quiz, Document), "a field of that name alone is no annotation"


def test_doccano(tmp_path: Path) -> None:
    rows = [
        {"text": TEXT, "label": [list(each) for each in GOLD]},
        {"text": TEXT, "labels": [list(each) for each in GOLD]},
        {
            "text": TEXT,
            "entities": [{"id": 1, "start_offset": s, "end_offset": e, "label": name} for s, e, name in GOLD],
        },
    ]
    assert [gold(item) for item in of(tmp_path, "a.jsonl", *rows)] == [GOLD] * 3
    (classes,) = of(tmp_path, "b.jsonl", {"text": TEXT, "label": ["letter"]})
    assert gold(classes) == []


def test_spacy(tmp_path: Path) -> None:
    tokens = pytest.importorskip("spacy.tokens")
    from spacy.vocab import Vocab

    doc = tokens.Doc(Vocab(), ["😀", "Ann", "lives", "in", "Oslo", "."], [True, True, True, True, False, False])
    doc.ents = [tokens.Span(doc, 1, 2, "PERSON")]
    doc.spans["sc"] = [tokens.Span(doc, 4, 5, "CITY")]
    tokens.DocBin(docs=[doc]).to_disk(tmp_path / "a.spacy")
    (item,) = read(tmp_path / "a.spacy").items()
    assert gold(item) == GOLD
    assert isinstance(item, Document)
    assert item.text == TEXT


def test_a_span_that_says_another_text_is_an_error(tmp_path: Path) -> None:
    (item,) = of(tmp_path, "a.jsonl", {"text": TEXT, "spans": [{"start": 2, "end": 5, "text": "Bob"}]})
    assert isinstance(item, Quarantined)
    assert "says another text than stands at its offsets" in item.reason
    assert "Bob" not in item.reason


@given(st.text(st.sampled_from("ab😀é𝒳\u0301"), min_size=1), st.data())
def test_utf16_offsets_become_code_points(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    units = [len(text[:at].encode("utf-16-le")) // 2 for at in (start, end)]
    said = {"start": units[0], "end": units[1], "text": text[start:end]}
    (found,) = gold_spans([said], text, 0, "the text", False)
    assert text[found.start : found.end] == said["text"]
    with pytest.raises(BadRecord):
        list(gold_spans([{**said, "text": text[start:end] + "x"}], text, 0, "the text", False))


def test_texts_of_several_fields(tmp_path: Path) -> None:
    rows = [
        {"subject": "s", "body": "b"},
        {"subject": None, "body": "b"},
        {"subject": "", "body": " "},
        {"subject": "s"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    both, one, blank, bad = read(tmp_path / "a.jsonl", text="subject,body").items()
    assert isinstance(both, Document)
    assert isinstance(one, Document)
    assert isinstance(blank, Blank)
    assert isinstance(bad, Quarantined)
    assert (both.text, one.text, bad.reason) == ("s\n\nb", "b", "field 'body' is missing")
    (tmp_path / "a.csv").write_text("subject,body,other\ns,b,o\n")
    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    pq.write_table(pc.read_csv(tmp_path / "a.csv"), tmp_path / "a.parquet")
    (tmp_path / "a.eml").write_text("Subject: s\nX-Other: o\n\nb")
    for name in ("a.csv", "a.parquet", "a.eml"):
        (found,) = read(tmp_path / name, text="subject,body").documents()
        assert found.text == "s\n\nb", name


def test_who_speaks_is_the_user(tmp_path: Path) -> None:
    chat = (
        "[31/12/2020, 21:41:07] Ann: Hi\nthere\n[31/12/2020, 21:42:07] Bob: Oh\n[31/12/2020, 21:43:07] Ann was added\n"
    )
    (tmp_path / "chat.txt").write_text(chat)
    found = read(tmp_path / "chat.txt", format="whatsapp", user="speaker").documents()
    assert [(each.id, each.text, each.user) for each in found] == [
        ("chat:1/1", "Hi\nthere\n", "Ann"), ("chat:1/2", "Oh\n", "Bob"), ("chat:1/3", "Ann was added\n", None),
    ]  # fmt: skip
    turns = [
        {"role": "user", "text": "my pin", "spans": [{"start": 3, "end": 6, "label": "pin"}]},
        {"role": "agent", "text": " "},
    ]
    (tmp_path / "a.jsonl").write_text(json.dumps({"dialogue_id": "d", "turns": turns}))
    one, blank = read(tmp_path / "a.jsonl", user="role").items()
    assert isinstance(one, Document)
    assert (one.id, one.user, gold(one)) == ("d/1", "user", [(3, 6, "pin")])
    assert isinstance(blank, Blank)
    (tmp_path / "b.jsonl").write_text(json.dumps({"speaker": "S", "text": "flat"}))
    (flat,) = read(tmp_path / "b.jsonl", user="speaker").documents()
    assert flat.user == "S"
    (tmp_path / "c.jsonl").write_text(json.dumps({"turns": [*turns, {"role": "x"}]}))
    (bad,) = read(tmp_path / "c.jsonl", user="role").items()
    assert isinstance(bad, Quarantined)
    assert "turn 3 has no text" in bad.reason
