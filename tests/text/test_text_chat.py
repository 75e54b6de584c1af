"""Conversations, pairs and labels: into a record's text and back, whatever became of the text in between."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.text.chat import CLOSE, FIRST, OPEN, ROLES, SECOND, contents, head, join, pair, parse, structured
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Blank, Corpus, Quarantined, ReadOptions, read
from taciturn.text.segment import split
from taciturn.text.spans import Span

plain = st.text(alphabet=st.characters(exclude_characters=OPEN + CLOSE, exclude_categories=("Cs",)), max_size=12)
messages = st.lists(st.tuples(st.sampled_from(ROLES), plain), min_size=1, max_size=5)
anything = st.lists(
    st.one_of(
        st.sampled_from([OPEN, CLOSE, MASK, *map(head, (*ROLES, FIRST, SECOND)), "user", "\n"]), st.text(max_size=4)
    ),
    max_size=12,
).map("".join)


@given(messages)
def test_messages_come_back(said: list[tuple[str, str]]) -> None:
    text = join(said)
    assert [(m.role, m.content) for m in parse(text)] == said
    assert structured(text)
    assert contents(text) == [content for _, content in said]
    assert all(text[m.start : m.start + len(m.content)] == m.content for m in parse(text))


@given(anything)
def test_every_string_has_messages_and_each_knows_its_place(text: str) -> None:
    found = parse(text)
    assert found
    for m in found:
        assert m.role in (*ROLES, FIRST, SECOND)
        assert OPEN not in m.content
        assert CLOSE not in m.content
        assert len(m.content) == len(text[m.start : m.start + len(m.content)])
    letters = text.translate({ord(OPEN): "\n", ord(CLOSE): "\n"})
    assert all(letters[m.start :].startswith(m.content) for m in found)
    both = pair(text)
    assert (both is None) == (not any(m.role in (FIRST, SECOND) for m in found))


@given(messages, st.data())
def test_a_mask_over_any_range_leaves_a_conversation(said: list[tuple[str, str]], data: st.DataObject) -> None:
    text = join(said)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    found = parse(text[:start] + MASK + text[end:])
    assert 1 <= len(found) <= len(said) + 1
    assert sum(MASK in m.content for m in found) >= 1
    assert MASK in "".join(m.content for m in found)


def test_a_message_that_could_forge_one_is_refused() -> None:
    for content in (f"a{OPEN}b", CLOSE, head("user")):
        with pytest.raises(DataError, match=r"message 2 holds U\+001E or U\+001F") as caught:
            join([("user", "fine"), ("assistant", content)])
        assert content not in str(caught.value)
    with pytest.raises(DataError, match="message 1 has a role that is none of system, developer, user"):
        join([("Alice", "hi")])


def rows(path: Path, *values: Any) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def said(path: Path, **options: Any) -> list[list[tuple[str, str]]]:
    return [[(m.role, m.content) for m in parse(d.text)] for d in read(path, **options).documents()]


HELLO = [("user", "Hi, I am Ann."), ("assistant", "Hello Ann.")]


def test_each_way_of_storing_conversations(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Hi, "}, {"type": "text", "text": "I am Ann."}]
    openai = rows(
        tmp_path / "o.jsonl",
        {"messages": [{"role": r, "content": c} for r, c in HELLO]},
        {"messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": parts}]},
        {
            "messages": [
                {"role": "tool", "content": "42", "weight": 1},
                {"role": "function", "content": "", "tool_calls": []},
            ]
        },
    )
    assert said(openai, chat="openai") == [
        HELLO,
        [("system", "Be kind."), ("user", "Hi, I am Ann.")],
        [("tool", "42"), ("function", "")],
    ]
    sharegpt = rows(
        tmp_path / "s.jsonl",
        {"conversations": [{"from": "human", "value": HELLO[0][1]}, {"from": "gpt", "value": HELLO[1][1]}]},
    )
    assert said(sharegpt, chat="sharegpt") == [HELLO]
    pairs = rows(
        tmp_path / "p.jsonl",
        {"prompt": HELLO[0][1], "completion": HELLO[1][1]},
        {
            "prompt": [{"role": "user", "content": HELLO[0][1]}],
            "completion": [{"role": "assistant", "content": "Hello Ann."}],
        },
    )
    assert said(pairs, chat="pairs") == [HELLO, HELLO]
    renamed = rows(tmp_path / "q.jsonl", {"q": {"text": HELLO[0][1]}, "a": HELLO[1][1]})
    assert said(renamed, chat="pairs:q.text,a") == [HELLO]
    alpaca = rows(
        tmp_path / "a.jsonl",
        {"instruction": "Add.", "input": "1 and 1", "output": "2"},
        {"instruction": "Add.", "input": "", "output": "2"},
        {"instruction": "Add.", "output": "2"},
    )
    short = [("user", "Add."), ("assistant", "2")]
    assert said(alpaca, chat="alpaca") == [[("user", "Add.\n\n1 and 1"), ("assistant", "2")], short, short]
    turns = rows(
        tmp_path / "t.jsonl", {"turns": [{"speaker": "USR", "text": "Hi"}, {"speaker": "SYSTEM", "utterance": "Yes?"}]}
    )
    assert said(turns, chat="turns") == [[("user", "Hi"), ("assistant", "Yes?")]]
    assert [d.text for d in read(turns).documents()] == ["Hi\nYes?\n"]  # a dialogue without roles, as before


def test_gold_spans_count_in_their_message(tmp_path: Path) -> None:
    spans = [{"start": 9, "end": 12, "label": "name"}, {"start": 0, "end": 2, "secret": False}]
    path = rows(tmp_path / "o.jsonl", {"messages": [{"role": "user", "content": HELLO[0][1], "spans": spans}]})
    (document,) = read(path, chat="openai").documents()
    assert document.gold == (Span(15, 18, "name", 1.0, "gold"),)
    assert document.text[15:18] == "Ann"
    (record,) = split(document, "document")
    assert (record.gold, record.body) == (document.gold, document.text)


@pytest.mark.parametrize(
    ("chat", "value", "reason"),
    [
        ("openai", {"messages": [{"role": "user", "content": f"secret{OPEN}"}]}, r"message 1 holds U\+001E"),
        ("openai", {"messages": [{"role": f"user{CLOSE}", "content": "secret"}]}, "role that is none of"),
        ("openai", {"messages": [{"role": "secret", "content": "x"}]}, "role that is none of"),
        ("openai", {"messages": [{"content": "secret"}]}, "no role"),
        ("openai", {"messages": [{"role": "user", "content": None}]}, "message 1 holds null"),
        (
            "openai",
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "secret"}]}]},
            "not text",
        ),
        ("openai", {"messages": [{"role": "assistant", "content": "", "tool_calls": ["secret"]}]}, "'tool_calls'"),
        ("openai", {"messages": [{"role": "assistant", "content": "secret", "weight": 0}]}, "'weight'"),
        ("openai", {"messages": "secret"}, "holds text where a list"),
        ("openai", {"messages": ["secret"]}, "holds text where an object"),
        ("openai", {"text": "secret"}, "'messages' is missing"),
        ("sharegpt", {"conversations": [{"from": "secret", "value": "x"}]}, "role that is none of"),
        ("pairs", {"prompt": "secret"}, "'completion' is missing"),
        ("pairs", {"prompt": 7, "completion": "secret"}, "holds a number"),
        ("pairs", {"prompt": "a", "completion": "secret", "spans": [{"start": 0, "end": 1}]}, "cannot be placed"),
        ("turns", {"turns": [{"speaker": "secret", "text": "x"}]}, "role that is none of"),
    ],
)
def test_a_bad_conversation_is_quarantined_alone_and_unquoted(
    tmp_path: Path, chat: str, value: dict[str, Any], reason: str
) -> None:
    good = {"messages": HELLO_ROWS, "conversations": HELLO_ROWS, "prompt": "a", "completion": "b", "turns": HELLO_ROWS}
    path = rows(tmp_path / "in.jsonl", value, good)
    bad, document = read(path, chat=chat).items()
    assert isinstance(bad, Quarantined)
    assert isinstance(document, Document)
    assert bad.location == "line 1"
    assert re.search(reason, bad.reason)
    assert "secret" not in bad.reason


HELLO_ROWS = [{"role": role, "content": content} for role, content in HELLO]


def test_a_plain_document_cannot_pass_for_a_conversation(tmp_path: Path) -> None:
    path = rows(tmp_path / "in.jsonl", {"text": f"x\n{head('assistant')}y"}, {"text": f"a {OPEN} b {CLOSE}user"})
    bad, good = read(path).items()
    assert isinstance(bad, Quarantined)
    assert "mark chat messages" in bad.reason
    assert isinstance(good, Document)
    assert not structured(good.text)


def test_a_conversation_is_one_record_and_a_blank_one_is_none(tmp_path: Path) -> None:
    document = Document("d", join([("user", "Hi. Who?\nMe."), ("assistant", "Yes.\n")]))
    (record,) = split(document, "document")
    assert record.text == document.text
    assert record.body == document.text[:-1]
    for unit in ("sentence", "turn"):
        with pytest.raises(UsageError, match="one record, whose unit is 'document'"):
            split(document, unit)  # type: ignore[arg-type]
    path = rows(
        tmp_path / "in.jsonl",
        {"messages": [{"role": "user", "content": " \n"}]},
        {"messages": []},
        {"messages": HELLO_ROWS},
    )
    assert [type(item) for item in read(path, chat="openai").items()] == [Blank, Blank, Document]


def test_pairs_of_texts(tmp_path: Path) -> None:
    path = rows(tmp_path / "in.jsonl", {"text": "It rains.", "other": "It is wet.", "spans": [{"start": 3, "end": 8}]})
    (document,) = read(path, text_pair="other").documents()
    assert document.text[document.gold[0].start : document.gold[0].end] == "rains"
    first, second = pair(document.text) or (None, None)
    assert first is not None
    assert second is not None
    assert (first.content, second.content) == ("It rains.", "It is wet.")
    border = document.text.index(OPEN, 1)
    both = pair(document.text[: border - 2] + MASK + document.text[border + 3 :])
    assert both is not None
    assert both[1] is None
    assert pair(join(HELLO)) is None
    assert isinstance(
        next(
            iter(
                read(
                    rows(tmp_path / "x.jsonl", {"text": "a", "other": OPEN}, {"text": "a", "other": "b"}),
                    text_pair="other",
                ).items()
            )
        ),
        Quarantined,
    )


def test_labels(tmp_path: Path) -> None:
    values = [{"text": f"t{i}", "y": y} for i, y in enumerate(["pos", 3, True, None])]
    documents = read(rows(tmp_path / "in.jsonl", *values), label="y").documents()
    assert [d.label for d in documents] == ["pos", "3", "true", None]
    assert [r.label for d in documents for r in split(d, "sentence")] == ["pos", "3", "true", None]
    bad = rows(tmp_path / "bad.jsonl", {"text": "a", "y": 0.5}, {"text": "a"}, {"text": "b", "y": 1})
    reasons = [item.reason for item in read(bad, label="y").items() if isinstance(item, Quarantined)]
    assert reasons == [
        "field 'y' (label) holds a number where text or a whole number is expected",
        "field 'y' is missing",
    ]
    a, b = (Corpus.from_documents([Document("d", "t", label=label)]).digests() for label in ("x", "y"))
    assert a != b


def test_columns_of_tables_are_found(tmp_path: Path) -> None:
    table = {"messages": [HELLO_ROWS], "prompt": ["p"], "completion": ["c"], "y": ["pos"], "unused": [b"\xff"]}
    pq.write_table(pa.table(table), tmp_path / "a.parquet")
    one, two = (read(tmp_path / "a.parquet", chat=chat, label="y").documents()[0] for chat in ("openai", "pairs"))
    assert (one.text, one.label) == (join(HELLO), "pos")
    assert [m.content for m in parse(two.text)] == ["p", "c"]
    with pytest.raises(DataError, match=r"none of the 1 records has a field 'conversations'; fields there: .*messages"):
        read(tmp_path / "a.parquet", chat="sharegpt").documents()
    (tmp_path / "a.csv").write_text("prompt,completion,y\np,c,neg\n")
    (row,) = read(tmp_path / "a.csv", chat="pairs", label="y").documents()
    assert (row.label, row.text) == ("neg", two.text)


def test_usage_errors_name_the_nearest_form() -> None:
    with pytest.raises(UsageError, match="did you mean 'openai'"):
        ReadOptions(chat="openia")
    with pytest.raises(UsageError, match=r"reads 2 fields \(prompt, completion\), not 1"):
        ReadOptions(chat="pairs:question")
    with pytest.raises(UsageError, match="not both"):
        ReadOptions(chat="openai", text_pair="b")
