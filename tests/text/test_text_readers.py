"""Readers: each format gives the same documents, and each kind of bad input its stated outcome.

Long because the formats share one table of bad input, read through each of them.
"""

from __future__ import annotations

import gzip
import json
import sys
import tracemalloc
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import DataError, MissingExtra, UsageError
from taciturn.text.document import Document, Turn
from taciturn.text.readers import Blank, Corpus, Quarantined, ReadOptions, read
from taciturn.text.readers.formats import doubled, parse
from taciturn.text.spans import Span

TEXTS = [
    'plain, "quoted"',
    "two\nlines",
    "crlf\r\ninside",
    "naïve ☃",
    "tab\tand\x85\u2028\x0b\x0c\x1c\x1d\x1erest",
    "<MASK>",
]
ROWS = [{"id": f"i{n}", "who": f"u{n % 2}", "body": {"text": text}} for n, text in enumerate(TEXTS)]


def write_csv(path: Path, delimiter: str = ",") -> None:
    import csv

    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "who", "body.text"])
        writer.writerows([row["id"], row["who"], row["body"]["text"]] for row in ROWS)


def write_all(folder: Path) -> list[Path]:
    lines = b"".join(orjson.dumps(row) + b"\n" for row in ROWS)
    (folder / "a.jsonl").write_bytes(lines)
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    (folder / "c.json").write_bytes(json.dumps(ROWS, indent=2).encode())
    (folder / "lines.json").write_bytes(lines)
    (folder / "bom.ndjson").write_bytes(b"\xef\xbb\xbf" + lines.replace(b"\n", b"\r\n"))
    write_csv(folder / "d.csv")
    (folder / "e.csv.gz").write_bytes(gzip.compress((folder / "d.csv").read_bytes()))
    write_csv(folder / "f.tsv", "\t")
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "g.parquet")
    (folder / "h.parquet.gz").write_bytes(gzip.compress((folder / "g.parquet").read_bytes()))
    return sorted(folder.iterdir())


def test_every_format_gives_the_same_documents(tmp_path: Path) -> None:
    for path in write_all(tmp_path):
        documents = read(path, text="body.text", user="who", id="id").documents()
        assert [d.text for d in documents] == TEXTS, path.name
        assert [(d.id, d.user) for d in documents] == [(row["id"], row["who"]) for row in ROWS], path.name


def test_saved_dataset_and_dict_of_splits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    saved = datasets.Dataset.from_list(ROWS)
    saved.save_to_disk(str(tmp_path / "one"))
    datasets.DatasetDict({"train": saved, "test": saved.select([0])}).save_to_disk(str(tmp_path / "many"))
    one = read(tmp_path / "one", text="body.text", user="who")
    assert [d.text for d in one.documents()] == TEXTS
    assert one.documents()[0].id == "one:1"
    assert [d.text for d in read(tmp_path / "many", text="body.text").documents()] == [*TEXTS, TEXTS[0]]
    assert one.digests() == read(tmp_path / "one").digests()
    assert any(name.endswith(".arrow") for name in one.digests())
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[datasets\]'"):
        one.documents()


def test_text_is_one_document_and_lines_are_many(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\r\n\n \ttwo\rstill\x0btwo\xe2\x80\xa8.\nlast")
    (whole,) = read(path).documents()
    assert whole == Document("a:1", "one\r\n\n \ttwo\rstill\x0btwo\u2028.\nlast")
    items = list(read(path, format="lines").items())
    assert items == [
        Document("a:1", "one"),
        Blank("a.txt", "line 2"),
        Document("a:3", " \ttwo\rstill\x0btwo\u2028."),
        Document("a:4", "last"),
    ]


def test_dialogues_and_their_gold_spans(tmp_path: Path) -> None:
    turns = [
        {"speaker": "USR", "text": "I am Ann.", "spans": [{"start": 5, "end": 8, "value": "Ann", "slot": "name"}]},
        {
            "speaker": "SYS",
            "text": "Two\nlines, Ann",
            "spans": [{"start": 11, "end": 14, "label": "name", "secret": True}],
        },
        {"speaker": "USR", "text": "cheap", "spans": [{"start": 0, "end": 5, "slot": "price", "secret": False}]},
    ]
    flat = {"text": "call 555", "spans": [{"start": 5, "end": 8, "label": "phone"}]}
    path = tmp_path / "d.jsonl"
    path.write_bytes(orjson.dumps({"dialogue_id": "x", "turns": turns}) + b"\n" + orjson.dumps(flat))
    dialogue, single = read(path).documents()
    assert dialogue == Document(
        "x",
        "I am Ann.\nTwo\nlines, Ann\ncheap\n",
        turns=(Turn(0, 10, "USR"), Turn(10, 25, "SYS"), Turn(25, 31, "USR")),
        gold=(Span(5, 8, "name", 1.0, "gold"), Span(21, 24, "name", 1.0, "gold")),
    )
    assert (single.id, single.gold) == ("d:2", (Span(5, 8, "phone", 1.0, "gold"),))


def test_multiwoz_22_as_published(tmp_path: Path) -> None:
    slots = [
        {"slot": "hotel-name", "value": "Avalon", "start": 8, "exclusive_end": 14},
        {"slot": "x", "copy_from": "y"},
    ]
    turn = {
        "speaker": "USER",
        "utterance": "Book at Avalon.",
        "frames": [{"service": "hotel", "slots": slots}, {"slots": []}],
    }
    path = tmp_path / "dialogues_001.json"
    path.write_text(json.dumps([{"dialogue_id": "P.json", "turns": [turn]}], indent=1))
    (document,) = read(path).documents()
    assert (document.id, document.text) == ("P.json", "Book at Avalon.\n")
    assert document.gold == (Span(8, 14, "hotel-name", 1.0, "gold"),)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "a', "not valid JSON"),
        (b"nonsense", "not valid JSON"),
        (b'{"text": NaN}', "not valid JSON"),
        (b"[" * 100_000, "not valid JSON"),
        (b'{"text": "a\x00b"}', "not valid JSON"),
        (b'["a"]', "holds a list"),
        (b'"secret"', "holds text where an object"),
        (b'{"body": "secret"}', "field 'text' is missing"),
        (b'{"text": null}', "holds null"),
        (b'{"text": 7}', "holds a number"),
        (b'{"text": "secret \\ud800"}', "lone surrogate"),
        (b'{"text": "ok", "other": "secret \\udfff"}', "lone surrogate"),
        (b'{"text": "caf\xe9 secret"}', "not valid UTF-8 at byte 29"),
        (b'{"text": "' + b"x" * 200_000 + b'"}', "max_record_bytes = 150000"),
        (b'{"turns": [{"speaker": "A"}]}', "turn 1 has no text"),
        (b'{"turns": ["secret"]}', "turn 1 holds text"),
        (b'{"text": "abc", "spans": [{"start": 1, "end": 4}]}', "span 1 of the text lies outside"),
        (b'{"text": "abc", "spans": [{"start": "1", "end": 2}]}', "span 1 of the text lies outside"),
        (b'{"text": "abc", "spans": {"start": 1}}', "not a list"),
    ],
)
def test_a_bad_line_is_quarantined_alone_and_unquoted(tmp_path: Path, line: bytes, reason: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"text":"one"}\n' + b"\n" + line + b'\n{"text":"three"}')
    corpus = read(path, max_record_bytes=150_000)
    first, blank, bad, last = corpus.items()
    assert (first, blank, last) == (Document("a:1", "one"), Blank("a.jsonl", "line 2"), Document("a:4", "three"))
    assert isinstance(bad, Quarantined)
    assert (bad.source, bad.location) == ("a.jsonl", "line 3")
    assert reason in bad.reason
    assert "secret" not in bad.reason
    with pytest.raises(DataError, match=r"1 of 3 records cannot be read; the first: a\.jsonl, line 3"):
        corpus.documents()


def test_undecodable_bytes_can_be_kept_but_only_in_private(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfna\xc3\xafve caf\xe9\n")
    assert next(read(path).items()) == Quarantined(
        "a.txt",
        "byte 13",
        "not valid UTF-8 at byte 13; name the file's encoding (encoding='cp1252'), or keep such records, private, with "
        "encoding_errors='replace'",
    )
    (kept,) = read(path, encoding_errors="replace").documents()
    assert kept.text == "naïve caf\ufffd\n"
    assert kept.private_because


def test_nul_is_kept_and_private(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a\\u0000b"}\n{"text": "ab"}')
    nul, plain = read(tmp_path / "a.jsonl").documents()
    assert nul.text == "a\0b"
    assert nul.private_because
    assert plain.private_because is None
    assert Corpus.from_texts(["a\0b"]).documents()[0].private_because


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_utf16_is_read_or_refused_with_the_fix(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("text\nhello there\n".encode(encoding))
    if encoding in ("utf-16", "utf-32"):  # the mark says it
        assert [each.text for each in read(path).documents()] == ["hello there"]
        return
    with pytest.raises(DataError, match=f"encoding='{encoding}'"):
        read(path).documents()
    assert [each.text for each in read(path, encoding=encoding).documents()] == ["hello there"]


def test_a_huge_line_costs_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"x" * 2**20)
        file.write(b'\n{"text": "after"}\n')
    tracemalloc.start()
    items = list(read(path, max_record_bytes=2**16).items())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [type(item) for item in items] == [Quarantined, Document]
    assert peak < 8 * 2**20


@pytest.mark.parametrize("size", [63, 64, 65])
@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n", b"\r"])
def test_the_limit_counts_the_line_without_its_end(tmp_path: Path, size: int, end: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"y" * size + end)
    (item,) = read(path, format="lines", max_record_bytes=64).items()
    longest = 64 - (end == b"\r")  # a lone CR is part of the line
    assert isinstance(item, Document if size <= longest else Quarantined)


def test_files_larger_than_the_limit(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("z" * 100)
    (tmp_path / "a.json").write_text(json.dumps([{"text": "ok"}, {"text": "z" * 100}]))
    pq.write_table(pa.table({"text": ["ok", "é" * 60]}), tmp_path / "a.parquet")
    (whole,) = read(tmp_path / "a.txt", max_record_bytes=99).items()
    assert isinstance(whole, Quarantined)
    assert "format='lines'" in whole.reason
    for name, where in (("a.json", "record 2"), ("a.parquet", "row 2")):
        good, bad = read(tmp_path / name, max_record_bytes=100).items()
        assert isinstance(good, Document)
        assert isinstance(bad, Quarantined)
        assert bad.location == where


def test_csv_corner_cases(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'id,text\r\n1,"a ""quoted"" word"\r\n\r\n2,"over\r\nlines\nhere"\r\n3,too,many\r\n4\r\n5,st"ray\r\n6,"closed"x\r\n'
        b'7,"caf\xe9 in\na quoted cell"\r\n8,nul\x00\r\n9,'
        + b"w" * 200_000
        + b'\r\n10,"never closed\r\n11,swallowed\r\n'
    )
    items = list(read(path, id="id").items())
    documents = {item.id: item for item in items if isinstance(item, Document)}
    bad = {item.location: item.reason for item in items if isinstance(item, Quarantined)}
    assert {k: d.text for k, d in documents.items() if k != "9"} == {
        "1": 'a "quoted" word', "2": "over\r\nlines\nhere", "5": 'st"ray', "8": "nul\0"
    }  # fmt: skip
    assert len(documents["9"].text) == 200_000
    assert documents["8"].private_because
    assert list(bad) == ["line 7", "line 8", "line 10", "lines 11-12", "lines 15-16"]
    assert "3 cells, the header 2" in bad["line 7"]
    assert "quote" in bad["lines 15-16"]
    assert [item.location for item in items if isinstance(item, Blank)] == ["line 3"]


def test_csv_row_over_the_limit_is_skipped_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b'text\n"' + b"row\n" * 100 + b'end"\nafter\n')
    bad, good = read(path, max_record_bytes=100).items()
    assert isinstance(bad, Quarantined)
    assert bad.location == "lines 2-102"
    assert isinstance(good, Document)
    assert good.text == "after"


def test_parquet_cell_that_is_not_utf8(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(
        pa.string(), 3, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0\4\0\0\0\6\0\0\0"), pa.py_buffer(b"ab\xff\xfecd")]
    )
    pq.write_table(pa.table({"text": bad}), tmp_path / "a.parquet")
    one, two, three = read(tmp_path / "a.parquet").items()
    assert isinstance(one, Document)
    assert isinstance(three, Document)
    assert (one.text, three.text, three.id) == ("ab", "cd", "a:3")
    assert two == Quarantined("a.parquet", "row 2", "holds text that is not valid UTF-8")


EMPTY = [
    (f"a.{end}", content) for end in ("jsonl", "json", "txt", "csv") for content in (b"", b"\n \n\r\n", b"\xef\xbb\xbf")
]


@pytest.mark.parametrize(
    ("name", "content"), [*EMPTY, ("a.json", b"[]"), ("a.csv", b"text\n"), ("a.jsonl", b'{"text": " "}')]
)
def test_an_empty_corpus_is_an_error(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="the corpus is empty") as caught:
        read(tmp_path / name).documents()
    assert caught.value.exit_code == 3


def test_truncated_or_false_gzip(tmp_path: Path) -> None:
    packed = gzip.compress(b'{"text": "hello"}\n' * 1000)
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[:-20])
    (tmp_path / "false.jsonl.gz").write_bytes(b'{"text": "hello"}\n')
    (tmp_path / "bad.jsonl.gz").write_bytes(packed[:30] + b"\0\0\0\0" + packed[34:])
    for name in ("cut", "false", "bad"):
        with pytest.raises(DataError, match="truncated or damaged gzip") as caught:
            read(tmp_path / f"{name}.jsonl.gz").documents()
        assert caught.value.exit_code == 3
    (tmp_path / "unnamed.jsonl").write_bytes(packed)
    assert len(read(tmp_path / "unnamed.jsonl").documents()) == 1000


def test_duplicate_ids(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(
        "".join(json.dumps({"id": i, "text": f"t{n}"}) + "\n" for n, i in enumerate(["x", "x~2", "x", "x", 5, "5"]))
    )
    with pytest.raises(DataError, match=r"a.jsonl, line 3: its id was used .* duplicate_ids='suffix'"):
        read(path, id="id").documents()
    ids = [d.id for d in read(path, id="id", duplicate_ids="suffix").documents()]
    assert ids == ["x", "x~2", "x~3", "x~4", "5", "5~2"]


def test_default_ids_of_files_with_the_same_name_differ(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    (tmp_path / "one" / "a.jsonl").write_text('{"text": "x"}')
    corpus = read(tmp_path / "*" / "a.txt", tmp_path / "one" / "a.*")
    assert [d.id for d in corpus.documents()] == ["one/a.txt:1", "two/a:1", "one/a.jsonl:1"]
    assert len(corpus.digests()) == 3


def test_a_misspelt_field_names_the_fields_there(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("subject,body,Jane Roe,078-05-1120\nhello,there,you,x\nsecret,thing,y,z\n")
    with pytest.raises(DataError) as caught:
        list(read(path, text="bdy").items())
    assert str(caught.value) == (
        "none of the 2 records has a field 'bdy'; fields there: body, subject and 2 more (did you mean 'body'?)"
    )
    pq.write_table(pa.table({"body": ["secret"]}), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="fields there: body"):
        read(tmp_path / "a.parquet").documents()


def test_a_missing_user_is_quarantined(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "a", "by": "u"}\n{"text": "b"}\n{"text": "c", "by": null}\n')
    good, missing, null = read(tmp_path / "a.jsonl", user="by").items()
    assert isinstance(good, Document)
    assert good.user == "u"
    assert isinstance(missing, Quarantined)
    assert isinstance(null, Quarantined)
    assert (missing.reason, "null" in null.reason) == ("field 'by' is missing", True)


def test_usage_errors_name_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'encoding_errors'"):
        read("a.txt", encoding_error="replace")
    with pytest.raises(UsageError, match="did you mean 'jsonl'"):
        ReadOptions(format="jsnl")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="name at least one file"):
        read()
    for missing in (tmp_path / "none.txt", tmp_path / "*.txt"):
        with pytest.raises(DataError) as caught:
            read(missing)
        assert caught.value.exit_code == 3
    with pytest.raises(DataError, match="is an empty folder"):
        read(tmp_path)
    (tmp_path / "a.xyz").write_text("BEGIN")
    with pytest.raises(DataError, match="format='text'"):
        read(tmp_path / "a.xyz").documents()


def test_a_corpus_streams_repeats_and_keeps_order(tmp_path: Path) -> None:
    for name in ("b", "a", "c"):
        (tmp_path / f"{name}.txt").write_text(name)
    corpus = read(tmp_path / "c.txt", tmp_path / "*.txt")
    assert [d.text for d in corpus.documents()] == ["c", "a", "b"]
    assert list(corpus.items()) == list(corpus.items())
    iterator = corpus.items()
    next(iterator)
    (tmp_path / "b.txt").unlink()
    next(iterator)
    with pytest.raises(DataError, match=r"cannot read b\.txt"):
        next(iterator)


def test_a_corpus_in_memory() -> None:
    corpus = Corpus.from_texts(["a", " ", "b\ud800"])
    assert list(corpus.items())[:2] == [Document("memory:1", "a"), Blank("memory", "record 2")]
    assert isinstance(list(corpus.items())[2], Quarantined)
    assert corpus.digests() == Corpus.from_texts(["a", " ", "b\ud800"]).digests()
    assert corpus.digests() != Corpus.from_texts(["a", " ", "c"]).digests()
    assert "b\\ud800" not in repr(corpus)
    with pytest.raises(DataError, match="the corpus is empty"):
        Corpus.from_texts([]).documents()
    with pytest.raises(DataError, match="record 2: its id"):
        Corpus.from_documents([Document("x", "a"), Document("x", "b")]).documents()


def test_digests_are_of_the_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    assert read(tmp_path / "a.txt").digests() == {
        "a.txt": "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    }


def test_shared_corpora_read_whole(shared: Path) -> None:
    for name, count in (("mwz21_test", 1000), ("mwz22_dev", 1000), ("mwz22_train_part001", 512)):
        documents = read(shared / "data" / "multiwoz" / f"{name}.jsonl.gz").documents()
        assert len(documents) == count
    dialogues = read(shared / "data" / "customersim" / "train.jsonl.gz").documents()
    assert len(dialogues) == 10_010
    assert sum(len(d.gold) for d in dialogues) == 30_562
    lines = gzip.decompress((shared / "data" / "customersim" / "train.jsonl.gz").read_bytes()).splitlines()
    for line, document in zip(lines, dialogues, strict=True):
        values = [span["value"] for turn in json.loads(line)["turns"] for span in turn["spans"]]
        assert [document.text[s.start : s.end] for s in document.gold] == values


def outcome(path: Path, form: str) -> list[Document | Quarantined | Blank] | DataError:
    try:
        return list(read(path, format=form).items())
    except DataError as error:
        return error


@pytest.mark.parametrize("form", ["auto", "text", "lines"])
def test_messy_files_end_in_documents_or_a_clear_error(shared: Path, form: str) -> None:
    for path in sorted((shared / "data" / "messy").iterdir()):
        found = outcome(path, form)
        if isinstance(found, DataError):
            assert form == "auto" or "UTF-16" in str(found), path.name
            assert len(str(found)) < 400
            continue
        assert found
        documents = [item for item in found if isinstance(item, Document)]
        if form == "text" and len(documents) == len(found):
            content = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
            assert "".join(d.text for d in documents).encode() == content, path.name


@pytest.mark.parametrize("inner", ['{"text": "a", "text": "b"}', '{"text": "c", "more": [{"k": 1, "k" : 2}]}'])
def test_a_doubled_key_loses_nothing(tmp_path: Path, inner: str) -> None:
    fine = '{"text": "say \\"key\\": once", "x": {"text" : "y"}}'
    (tmp_path / "a.jsonl").write_text(f"{fine}\n{inner}\n{fine}\n")
    (tmp_path / "a.json").write_text(f"[{fine}, {inner}, {fine}]")
    for name in ("a.jsonl", "a.json"):
        one, two, three = read(tmp_path / name).items()
        assert isinstance(one, Document)
        assert isinstance(three, Document)
        assert isinstance(two, Quarantined)
        assert "a key stands twice" in two.reason


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('":\\ a', max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('":\\ a', max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.sampled_from([(",", ":"), (", ", ": "), (",\n", " : ")]))
def test_json_without_doubled_keys_is_read_as_it_is(value: object, marks: tuple[str, str]) -> None:
    assert parse(json.dumps(value, separators=marks)) == value
    assert not doubled(parse(json.dumps(value, separators=marks), each=True))
