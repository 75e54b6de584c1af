"""Values of a table or a list: found wherever they stand, as a slow search finds them, and never shown."""

from __future__ import annotations

import json
import pickle
import random
import re
import unicodedata
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.screening.policies import columns, policy
from taciturn.screening.policies import values as values_module
from taciturn.screening.policies.lexicon import COMPACT, Lexicon, Matching, key
from taciturn.screening.policies.values import Values, named, wordlist
from taciturn.screening.policies.view import View
from taciturn.text.document import MASK
from taciturn.text.fold import fold
from timing import in_proportion, seconds


@pytest.fixture
def listed(tmp_path: Path) -> Any:
    """A detector of the values given."""

    def make(*values: str, **options: object) -> Values:
        path = tmp_path / "list.txt"
        path.write_text("\n".join(values) + "\n", encoding="utf-8")
        values_module.load.cache_clear()
        (detector,) = wordlist(str(path), options)
        assert isinstance(detector, Values)
        return detector

    return make


def found(detector: Values, text: str) -> list[str]:
    return [text[s.start : s.end] for s in detector.find([View.of(text)])[0].spans]


CASES = [
    ("Dana Vale", "so dana  VALE, then", ["dana  VALE"]),
    ("Dana Vale", "Dana\n   Vale", ["Dana\n   Vale"]),
    ("Dana Vale", "Dana-Vale and Vale, Dana and Dana Vales", ["Dana-Vale"]),
    ("Dana Vale", "dana_vale_7", ["dana_vale"]),
    ("Dana Vale", "Dana ... Vale", []),
    ("Dana Vale", f"Dana {MASK} Vale", []),
    ("Dana Vale", "Danaë Vale, XDana Vale", []),
    ("O'Brien", "ask O\u2019BRIEN's", ["O\u2019BRIEN"]),
    ("Škoda", "a škoda and a s\u030ckoda but no skoda", ["škoda", "s\u030ckoda"]),
    ("Straße 5", "STRASSE 5", ["STRASSE 5"]),
    ("Vale", "Da\u200bna V\u200ba\u200ble!", ["V\u200ba\u200ble"]),
    ("Vale", "Ｖａｌｅ", ["Ｖａｌｅ"]),
    (
        "078-05-1126",
        "078 05 1126, 078\u201105\u20111126, 078051126",
        ["078 05 1126", "078\u201105\u20111126", "078051126"],
    ),
    ("078051126", "078-05-1126 but 1078-05-1126, 0780511260", ["078-05-1126"]),
    ("078051126", "\uff10\uff17\uff18 05 1126", ["\uff10\uff17\uff18 05 1126"]),
    ("+44 (20) 7946-0958", "call +44 20 7946 0958.", ["+44 20 7946 0958"]),
    ("12 345", "12 345, 12345, 123 45", ["12 345"]),  # fewer than six digits: as they are grouped
    ("Tr0ub4dor&3!", "it is Tr0ub4dor&3! now", ["Tr0ub4dor&3!"]),
    ("李娜", "我叫李娜。", ["李娜"]),
    ("东京 Tower", "去东京 tower吧", ["东京 tower"]),
    ("5550101234", "电话5550101234号", ["5550101234"]),
    ("किरण", "मेरा नाम किरण है", ["किरण"]),
    ("dana@example.org", "<DANA@example.org>", ["DANA@example.org"]),
]


@pytest.mark.parametrize(("value", "text", "expected"), CASES)
def test_folded(listed: Any, value: str, text: str, expected: list[str]) -> None:
    assert found(listed(value), text) == expected


def test_accents_are_optional(listed: Any) -> None:
    detector = listed("Jana Łukášová", accents=False)
    assert found(detector, "jana lukasova and Jana Łukášová") == ["jana lukasova", "Jana Łukášová"]
    assert not found(listed("Jana Łukášová"), "jana lukasova")


def test_exact(listed: Any) -> None:
    detector = listed("Dana Vale", "078-05-1126", match="exact")
    text = "Dana Vale dana vale Dana  Vale Dana Vales 078 05 1126 078-05-1126"
    assert found(detector, text) == ["Dana Vale", "078-05-1126"]
    assert not found(listed("Škoda", match="exact"), "S\u030ckoda")


def test_every_occurrence_is_marked_and_nested_ones_are_one(listed: Any) -> None:
    detector = listed("Dana Vale", "Vale Street", "Dana", "Vale Street 5", "Street", common="keep")
    text = "Dana Vale Street 6, Dana, Vale Street 5"
    assert found(detector, text) == ["Dana Vale", "Vale Street", "Dana, Vale", "Vale Street 5"]


LETTERS = "abAB éÉ\u0301ß-_.,'\u2010\u200b１12東 \n"
VALUES = st.lists(st.text(st.sampled_from(LETTERS), min_size=1, max_size=6), min_size=1, max_size=6)
TEXTS = st.text(st.sampled_from(LETTERS), max_size=40)
_DENSE = "東"


def words_of(text: str) -> list[str]:
    """Runs of letters, digits and combining marks behind them, one dense letter at a time; character by character."""
    runs: list[str] = []
    inside = False
    for char in text:
        letter = char.isalnum()
        mark = unicodedata.category(char).startswith("M")
        if char in _DENSE:
            runs.append(char)
        elif (letter or (mark and inside)) and inside and runs[-1][0] not in _DENSE:
            runs[-1] += char
        elif letter:
            runs.append(char)
        elif mark and inside:
            runs[-1] += char
        inside = letter or (mark and inside)
    return runs


GAP = r"(?:\s*[^\w\s]|\s*_){0,2}\s*"


def caseless(word: str) -> str:
    """Canonical caseless matching (Unicode 15, D145): "ß\u0301" is "SS\u0301", whose last two characters are one letter."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", word).casefold())


def slowly(values: list[str], text: str) -> set[tuple[int, int]]:
    """Folded: every stretch of the text against every value, the longest from each place; offsets of the folded text."""
    shadow = fold(text).text
    wanted = [[caseless(w) for w in words_of(fold(v).text)] for v in values]
    hits: dict[int, int] = {}
    for start in range(len(shadow)):
        for end in range(start + 1, len(shadow) + 1):
            inner = words_of(shadow[start:end])
            near = re.fullmatch(GAP.join(map(re.escape, inner)), shadow[start:end])
            if near and _whole(shadow, start, end) and any(_same([caseless(w) for w in inner], v) for v in wanted):
                hits[start] = end
    return {(a, b) for a, b in hits.items() if not any(c <= a and b <= d and (c, d) != (a, b) for c, d in hits.items())}


def _same(there: list[str], value: list[str]) -> bool:
    digits = all(w.isdigit() for w in [*there, *value]) and len("".join(value)) >= COMPACT
    return "".join(there) == "".join(value) if digits else there == value != []


def _whole(shadow: str, start: int, end: int) -> bool:
    """Whether cutting at both ends cuts no word."""
    cut = [*words_of(shadow[:start]), *words_of(shadow[start:end]), *words_of(shadow[end:])]
    edges = shadow[start].isalnum() and (shadow[end - 1].isalnum() or unicodedata.category(shadow[end - 1])[0] == "M")
    return edges and cut == words_of(shadow)


def texts_with(values: list[str]) -> st.SearchStrategy[tuple[list[str], str]]:
    """The values, and a text made of some of them, of pieces of them and of anything else."""
    case = st.sampled_from([str.upper, str.lower, str])
    value = st.builds(lambda v, f: f(v), st.sampled_from(values), case)
    piece = value.flatmap(lambda v: st.sampled_from([v[:2], v[-2:], v.replace(" ", "-"), v.replace("-", "")]))
    text = st.lists(st.one_of(value, value, piece, st.text(st.sampled_from(LETTERS), max_size=3)), max_size=7)
    return st.tuples(st.just(values), st.tuples(text, st.sampled_from(["", " ", ", "])).map(lambda t: t[1].join(t[0])))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=150)
@given(VALUES.flatmap(texts_with))
@example((["ab", "b 1"], "ab, 1 AB１"))
@example((["1 2", "111222", "1 1"], "1 2 12 1 1 1-222 11１2-2-2"))
@example((["ß\u03011"], "SS\u03011"))
def test_folded_matches_are_those_of_a_slow_search(case: tuple[list[str], str]) -> None:
    values, text = case
    bare = [re.sub(r"^[\W_]+|[\W_]+$", "", v) for v in values]  # punctuation around a value has its own test
    keys = [(0, k) for v in bare if v and (k := key(v, Matching()))]
    lexicon = Lexicon.of(keys, Matching())
    view = View.of(text)
    assert {(a, b) for a, b, _ in lexicon.find(view.shadow)} == slowly([v for v in bare if v], text)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=6), st.integers(0, 10**9))
def test_numbers_are_found_however_they_are_grouped(groups: list[int], number: int) -> None:
    value = f"{number:09}"
    lexicon = Lexicon.of([(0, k) for k in [key(value, Matching())] if k], Matching())
    cuts = sorted({g % 9 for g in groups} - {0})
    grouped = "-".join(value[a:b] for a, b in zip([0, *cuts], [*cuts, len(value)], strict=True))
    text = f"7 {grouped}, x"
    assert [text[a:b] for a, b, _ in lexicon.find(text)] == [grouped]


@given(VALUES, TEXTS)
def test_what_is_found_does_not_depend_on_order_or_copies(values: list[str], text: str) -> None:
    keys = [(i, k) for i, v in enumerate(values) if (k := key(v, Matching()))]
    one, other = (Lexicon.of(k, Matching()) for k in (keys, [*reversed(keys), *keys]))
    assert one.digest == other.digest
    assert one.find(fold(text).text) == other.find(fold(text).text)


@given(VALUES, TEXTS)
def test_local_is_true_only_where_masking_a_word_leaves_other_marks_alone(values: list[str], text: str) -> None:
    lexicon = Lexicon.of([(0, k) for v in values if (k := key(v, Matching()))], Matching())
    view = View.of(text)
    if not lexicon.single(view.shadow) or view.folded is not None:
        return
    before = lexicon.find(text)
    for start, end, _ in before:
        other = View.of(text[:start] + MASK + text[end:]).shadow
        shift = len(MASK) - (end - start)
        kept = [(a, b, n) if b <= start else (a + shift, b + shift, n) for a, b, n in before if a != start]
        assert lexicon.find(other) == kept


def test_values_left_out_are_counted_and_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "names.txt"
    secret = "Zebulon " * 40
    path.write_text(f"The\nAl\nthe\nX\nit\n???\n\nDana Vale\n{secret}\n{MASK}\nJohn\n", encoding="utf-8")
    with pytest.warns(
        UserWarning, match="3 common words, 1 longer than 256, 1 no letter or digit, 1 shorter than 2"
    ) as met:
        (detector,) = wordlist(str(path), {})
    assert "Zebulon" not in str(met[0].message)
    assert found(detector, "The other is Al, Dana Vale's John") == ["Al", "Dana Vale", "John"]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        (keen,) = wordlist(str(path), {"common": "keep", "min_length": 2})
    assert found(keen, "The other is Al") == ["The", "Al"]


@pytest.mark.parametrize(
    ("content", "message"),
    [("the\n", "no value is left"), ("\n", "no value is left"), (b"caf\xe9\n", "not UTF-8")],
)
def test_a_list_with_nothing_in_it(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "names.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message):
        wordlist(str(path), {})


ROWS = [
    {"id": 1, "name": "Dana Vale", "phone": "020 7946 0958", "age": "41", "vip": True},
    {"id": 2, "name": 'Al "Bo" Ott', "phone": "5550101234", "age": "7", "vip": False},
    {"id": 3, "name": None, "phone": "5550109999", "age": "", "vip": False},
]
TEXT = "dana vale, 020-7946-0958; AL BO OTT 555 010 1234; 41"


@pytest.fixture(params=["csv", "semicolon", "tsv", "jsonl", "parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    kind = request.param
    path = tmp_path / f"people.{'csv' if kind == 'semicolon' else kind}"
    if kind == "jsonl":
        path.write_text("\n".join(json.dumps(r) for r in ROWS), encoding="utf-8")
    elif kind == "parquet":
        table = pa.Table.from_pylist(ROWS)
        pq.write_table(table.set_column(1, "name", table["name"].dictionary_encode()), path)
    else:
        mark = {"csv": ",", "semicolon": ";", "tsv": "\t"}[kind]
        quoted = [['"' + str("" if v is None else v).replace('"', '""') + '"' for v in row.values()] for row in ROWS]
        lines = [list(ROWS[0]), *quoted]
        path.write_text("\ufeff" + "\r\n".join(mark.join(line) for line in lines), encoding="utf-8")
    return path


def test_tables(table: Path) -> None:
    (detector,) = named(f"{table}#name,phone", {})
    spans = detector.find([View.of(TEXT)])[0].spans
    assert [TEXT[s.start : s.end] for s in spans] == ["dana vale", "020-7946-0958", "AL BO OTT", "555 010 1234"]
    assert [s.label for s in spans] == ["name", "phone", "name", "phone"]
    assert detector.name == f"values:{table.name}#name,phone"


@pytest.mark.filterwarnings("ignore:detector 'values")
def test_without_columns_those_with_text_are_used(table: Path) -> None:
    (detector,) = named(str(table), {"label": {"phone": "PHONE"}})
    assert isinstance(detector, Values)
    chosen = set(detector.source.columns)
    assert {"name", "phone"} <= chosen
    assert "id" not in chosen
    assert "vip" not in chosen
    assert set(detector.labels) == {"PHONE" if c == "phone" else c for c in chosen}


def test_wrong_arguments(table: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'phone'"):
        named(f"{table}#name,phones", {})
    with pytest.raises(UsageError, match="did you mean 'match'"):
        named(f"{table}#name", {"macht": "exact"})
    with pytest.raises(UsageError, match="option 'match'"):
        named(f"{table}#name", {"match": "fuzzy"})
    with pytest.raises(UsageError, match="label for a column 'age'"):
        named(f"{table}#name", {"label": {"age": "x"}})
    with pytest.raises(DataError, match=r"gone\.csv cannot be read"):
        named(str(tmp_path / "gone.csv"), {})
    with pytest.raises(UsageError, match="wordlist:"):
        named(str(tmp_path / "names.txt"), {})
    with pytest.raises(UsageError, match="name a file"):
        named("", {})


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "name,phone\nZebulon\n", "line 2: 1 cells"),
        ("a.csv", 'name\n"Zebulon\n', "quote"),
        ("a.csv", "name,name\nZebulon,x\n", "more than one column 'name'"),
        ("a.jsonl", '{"name": "Zebulon"\n', "line 1: not valid JSON"),
        ("a.jsonl", '["Zebulon"]\n', "line 1: not a JSON object"),
        ("a.jsonl", '{"name": ["Zebulon"]}\n', "line 1: 'name' is a list"),
        ("a.parquet", "Zebulon", "cannot be read"),
    ],
)
def test_broken_tables(tmp_path: Path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=message) as met:
        named(f"{path}#name", {})
    assert "Zebulon" not in str(met.value)


def test_a_file_may_have_a_hash_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "a#b.csv"
    path.write_text("name\nDana Vale\n", encoding="utf-8")
    assert columns.names(path, ()) == ("name",)
    assert named(str(path), {})[0].name == "values:a#b.csv"
    assert named(f"{path}#name", {})[0].name == "values:a#b.csv#name"


def test_no_value_shows(listed: Any) -> None:
    detector = listed("Zebulon Quill", "zq@example.org")
    loaded = values_module.load(detector.source)
    shown = repr(detector) + repr(loaded) + str(detector.definition()) + repr(loaded.lexicon) + repr(policy(detector))
    assert not re.search("zebulon|quill|zq", shown, re.IGNORECASE)


def test_the_identity_is_that_of_the_set_of_values(listed: Any) -> None:
    one = listed("Dana Vale", "Al Ott").definition()
    assert one == listed("al  ott", "Dana Vale", "DANA VALE").definition()
    assert one != listed("Dana Vale").definition()
    assert one != listed("Dana Vale", "Al Ott", match="exact").definition()
    assert one != listed("Dana Vale", "Al Ott", label="person").definition()


def test_a_worker_reads_the_file_again_and_refuses_another(listed: Any) -> None:
    detector = listed("Dana Vale", "Al Ott")
    packed = pickle.dumps(detector)
    assert len(packed) < 1000
    assert b"dana" not in packed.lower()
    values_module.load.cache_clear()
    again = pickle.loads(packed)
    assert again == detector
    assert found(again, "dana vale") == ["dana vale"]
    values_module.load.cache_clear()
    detector.source.path.write_text("Dana Vale\n", encoding="utf-8")
    with pytest.raises(DataError, match="not the file"):
        again.find([View.of("dana vale")])
    assert policy(again).find(["nothing"])[0].status == "error"  # its record is private


def test_in_a_policy(listed: Any) -> None:
    detector = listed("Dana Vale")
    assert policy(f"wordlist:{detector.source.path}").identity == policy(detector).identity
    text = f"{MASK} dana vale"
    assert [(s.start, s.end) for s in policy(detector).find([text])[0].spans] == [(7, 16)]


def test_a_hundred_thousand_values(tmp_path: Path) -> None:
    draw = random.Random(0)
    names = ["".join(draw.choices("abcdefghij", k=7)) for _ in range(3000)]
    values = sorted({f"{draw.choice(names).title()} {draw.choice(names).title()}" for _ in range(100_000)})
    path = tmp_path / "people.csv"
    path.write_text("name\n" + "\n".join(values), encoding="utf-8")
    (detector,) = named(f"{path}#name", {})
    picked = draw.sample(values, 1000)
    views = [View.of(f"{draw.choice(names)} said that {value.upper()}, and so on") for value in picked]
    hits = detector.find(views)
    assert seconds(lambda: named(f"{path}#name", {})[0].find(views), times=1) < 30
    assert all(
        value.upper() in {v.text[s.start : s.end] for s in d.spans}
        for value, v, d in zip(picked, views, hits, strict=True)
    )


def test_a_long_text_takes_linear_time(listed: Any) -> None:
    detector = listed("aa aa aa aa ab", "1111111111111", "aa", min_length=2)
    spans = detector.find([View.of("aa " * 200_000), View.of("11 " * 200_000)])
    assert len(spans[0].spans) == 200_000
    short, long = ([View.of("aa " * n)] for n in (25_000, 100_000))
    assert in_proportion(lambda: detector.find(short), lambda: detector.find(long), 8, 0.5)
