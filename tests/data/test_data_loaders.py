"""Data sets by name: every layout in miniature, splits that are not there, and the counts of the real files."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.data.loaders import HUB, hub_name, load, names
from taciturn.data.loaders.dialogues import occurrences
from taciturn.errors import DataError, UsageError
from taciturn.text.chat import pair
from taciturn.text.document import Document


def lines(path: Path, rows: Iterable[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(orjson.dumps(row) + b"\n" for row in rows)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return path


def said(text: str, *spans: tuple[str, str, bool | None], speaker: str = "USR") -> dict[str, Any]:
    marks = [
        {"start": text.index(value), "end": text.index(value) + len(value), "slot": slot}
        | ({} if secret is None else {"secret": secret})
        for value, slot, secret in spans
    ]
    return {"speaker": speaker, "text": text, "spans": marks}


def golds(document: Document) -> list[tuple[str, str]]:
    return [(document.text[s.start : s.end], s.label) for s in document.gold]


def texts(document: Document) -> tuple[str, str]:
    found = pair(document.text)
    assert found is not None
    assert found[1] is not None
    return found[0].content, found[1].content


def test_wikitext_records_are_the_lines_that_say_something(tmp_path: Path) -> None:
    for split, name in (("train", "wiki.train.raw"), ("valid", "wiki.valid.raw.txt"), ("test", "wiki.test.tokens")):
        write(tmp_path / "wikitext-2-raw" / name, f" \n = {split} = \n \n One @-@ two . \n")
        loaded = load("wikitext2", tmp_path, split)
        assert [d.text for d in loaded.corpus.documents()] == [f" = {split} = ", " One @-@ two . "]
        assert ("<unk>" in loaded.note) == (split == "test")
        assert "CC BY-SA 3.0" in loaded.note


PAIRS = {
    "qnli": ("question", "sentence", "QNLI", "index\tquestion\tsentence\tlabel", "valid", "dev"),
    "qqp": ("question1", "question2", "QQP", "id\tqid1\tquestion1\tquestion2\tis_duplicate", "valid", "dev"),
    "mnli": (
        "premise",
        "hypothesis",
        "MNLI",
        "index\tgenre\tsentence1\tsentence2\tgold_label",
        "matched",
        "dev_matched",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_are_the_same_from_json_lines_and_from_the_official_table(tmp_path: Path, name: str) -> None:
    first, second, folder, header, split, stem = PAIRS[name]
    content = [('Is "it"?', "It is.", "1"), ("Why", 'A " b', "0")]
    lines(tmp_path / f"glue/{name}_{stem}.jsonl.gz", ({first: a, second: b, "label": c} for a, b, c in content))
    width = header.count("\t") - 2
    rows = "".join("\t".join([*["0"] * width, a, b, c]) + "\n" for a, b, c in content)
    write(tmp_path / f"official/{folder}/{stem}.tsv", f"{header}\n{rows}broken\n")
    here, there = load(name, tmp_path, split), load(name, tmp_path / "official", split)
    for loaded in (here, there):
        documents = loaded.corpus.documents()
        assert [(*texts(d), d.label) for d in documents] == content
        assert loaded.corpus.options.structured
    assert "1 rows with missing cells" in there.note
    assert "missing" not in here.note


def test_single_sentences_and_a_test_set_without_labels(tmp_path: Path) -> None:
    write(tmp_path / "glue_data/SST-2/train.tsv", 'sentence\tlabel\nfine , " really \t1\nbad\t0\n')
    write(tmp_path / "glue_data/SST-2/test.tsv", "index\tsentence\n0\tno label\n")
    documents = load("sst2", tmp_path).corpus.documents()
    assert [(d.text, d.label) for d in documents] == [('fine , " really ', "1"), ("bad", "0")]
    with pytest.raises(DataError, match="no labels"):
        load("sst2", tmp_path / "glue_data/SST-2/test.tsv")


def test_a_sample_says_so_and_the_whole_set_goes_first(tmp_path: Path) -> None:
    row = {"question": "a", "sentence": "b", "label": "entailment"}
    lines(tmp_path / "qnli_train_sample.jsonl", [row])
    assert "sample" in load("qnli", tmp_path).note
    lines(tmp_path / "qnli_train.jsonl", [row, row])
    whole = load("qnli", tmp_path)
    assert len(whole.corpus.documents()) == 2
    assert "sample" not in whole.note


def test_abcd_stands_valid_in_for_a_train_split_that_is_not_there(tmp_path: Path) -> None:
    turns = [said("Your name?", speaker="SYS"), said("Ann Lee", ("Ann Lee", "customer_name", None))]
    lines(tmp_path / "abcd/valid.jsonl", [{"dialogue_id": "valid-0", "turns": turns}])
    loaded = load("abcd", tmp_path)
    (document,) = loaded.corpus.documents()
    assert "valid stands in" in loaded.note
    assert document.text == "Your name?\nAnn Lee\n"
    assert document.user is None
    (voiced,) = load("abcd", tmp_path, "dev", speakers=True).corpus.documents()
    assert voiced.text == "SYS: Your name?\nUSR: Ann Lee\n"
    assert golds(voiced) == golds(document) == [("Ann Lee", "customer_name")]
    assert [voiced.text[t.start : t.end] for t in voiced.turns] == ["SYS: Your name?\n", "USR: Ann Lee\n"]


def test_abcd_as_published_marks_what_the_scenario_holds(tmp_path: Path) -> None:
    scenario = {"personal": {"customer_name": "ann lee", "member_level": "gold"}, "order": {"order_id": "77"}}
    talk = {"convo_id": 5, "scenario": scenario, "original": [["agent", "Hi"], ["customer", "Ann Lee, 77, not 770"]]}
    write(tmp_path / "abcd_v1.1.json", orjson.dumps({"train": [talk], "dev": [talk], "test": []}).decode())
    (document,) = load("abcd", tmp_path, "valid").corpus.documents()
    assert document.id == "5"
    assert golds(document) == [("Ann Lee", "customer_name"), ("77", "order_id")]
    with pytest.raises(DataError, match="empty"):
        load("abcd", tmp_path, "test")
    write(tmp_path / "abcd_v1.1.json", '{"dev": [{"other": 1}]}')
    with pytest.raises(DataError, match="official layout"):
        load("abcd", tmp_path, "valid")


def test_multiwoz_keeps_the_secrets_among_the_slots_in_all_its_layouts(tmp_path: Path) -> None:
    turn = said("Ref AB12 in the north", ("AB12", "Ref", True), ("north", "Area", False))
    lines(tmp_path / "a/mwz22_dev.jsonl", [{"dialogue_id": "X", "turns": [turn]}])
    frames = [{"slots": [{"slot": "hotel-area", "start": 16, "exclusive_end": 21}]}]
    official = {"turn_id": "1", "speaker": "SYSTEM", "utterance": turn["text"], "frames": frames}
    write(tmp_path / "b/dev/dialogues_001.json", orjson.dumps([{"dialogue_id": "X", "turns": [official]}]).decode())
    assert "dialog_acts.json is not there" in load("multiwoz22", tmp_path / "b", "valid").note
    acts = {"span_info": [["Booking-Book", "ref", "AB12", 4, 8], ["Hotel-Inform", "postcode", "ab12", 99, 103]]}
    write(tmp_path / "b/dialog_acts.json", orjson.dumps({"X": {"1": acts}}).decode())
    info = [["Booking-Book", "Ref", "ab12", 1, 1], ["Hotel-Inform", "Area", "north", 4, 4]]
    log = [{"text": turn["text"], "span_info": info}, {"text": "Bye"}]
    write(tmp_path / "c/data.json", orjson.dumps({"X.json": {"log": log}, "Y.json": {"log": log}}).decode())
    write(tmp_path / "c/valListFile.json", "X.json\n")
    write(tmp_path / "c/testListFile.json", "Z.json\n")
    for version, folder in (("multiwoz22", "a"), ("multiwoz22", "b"), ("multiwoz21", "c")):
        (document,) = load(version, tmp_path / folder, "valid").corpus.documents()
        assert {value for value, _ in golds(document)} == {"AB12"}
    assert len(load("multiwoz22", tmp_path / "b", "valid").corpus.documents()[0].gold) == 2  # one has wrong offsets
    assert [d.id for d in load("multiwoz21", tmp_path / "c").corpus.documents()] == ["Y.json"]
    (tmp_path / "c/testListFile.json").unlink()
    with pytest.raises(DataError, match="testListFile"):
        load("multiwoz21", tmp_path / "c")


def test_files_of_one_layout_may_be_named_together(tmp_path: Path) -> None:
    several = [
        lines(tmp_path / f"{stem}.jsonl", [{"dialogue_id": stem, "turns": [said("hi")]}])
        for stem in ("mwz22_train_part001", "mwz21_test")
    ]
    loaded = load("multiwoz22", several)
    assert [d.id for d in loaded.corpus.documents()] == ["mwz22_train_part001", "mwz21_test"]
    with pytest.raises(DataError, match="several layouts"):
        load("multiwoz22", [*several, write(tmp_path / "dialogues_001.json", "[]")])
    with pytest.raises(DataError, match="cannot tell the layout"):
        load("multiwoz22", write(tmp_path / "x.csv", "a"))


CONLL = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
German JJ B-NP B-MISC
Peter NNP B-NP B-PER
Blackburn NNP I-NP I-PER

Bonn NNP I-NP I-LOC
Paris NNP I-NP B-LOC

-DOCSTART- -X- O O

Fine RB O O
"""


def test_a_conll_article_is_a_user_and_its_tags_are_spans(tmp_path: Path) -> None:
    loaded = load("conll2003", write(tmp_path / "eng.train", CONLL))
    documents = loaded.corpus.documents()
    assert [d.text for d in documents] == ["EU rejects German Peter Blackburn", "Bonn Paris", "Fine"]
    assert [d.user for d in documents] == ["eng.train/1", "eng.train/1", "eng.train/2"]
    assert golds(documents[0]) == [("EU", "ORG"), ("German", "MISC"), ("Peter Blackburn", "PER")]
    assert golds(documents[1]) == [("Bonn", "LOC"), ("Paris", "LOC")]
    assert "run" not in loaded.note
    write(tmp_path / "train.txt", CONLL.replace("-DOCSTART-", "").replace("-X- -X- O", "").replace("-X- O O", ""))
    bare = load("conll2003", tmp_path / "train.txt", run=2)
    assert [d.user for d in bare.corpus.documents()] == ["train/run-0", "train/run-0", "train/run-1"]
    assert "runs of 2 sentences" in bare.note
    with pytest.raises(DataError, match="one column"):
        load("conll2003", write(tmp_path / "eng.testa", "lonely\n"), "valid")


tags = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])


@given(st.lists(st.tuples(st.text("ab", min_size=1, max_size=3), tags), min_size=1, max_size=12))
def test_spans_cover_exactly_the_tagged_tokens(
    tmp_path_factory: pytest.TempPathFactory, tagged: list[tuple[str, str]]
) -> None:
    path = write(tmp_path_factory.mktemp("conll") / "eng.train", "".join(f"{w} {t}\n" for w, t in tagged))
    (document,) = load("conll2003", path).corpus.documents()
    expected: list[list[str]] = []  # by hand: words of each entity, its label first
    before = "O"
    for word, tag in tagged:
        if tag != "O" and (tag[0] == "B" or before == "O" or before[2:] != tag[2:]):
            expected.append([tag[2:]])
        if tag != "O":
            expected[-1].append(word)
        before = tag
    assert golds(document) == [(" ".join(words), label) for label, *words in expected]


def test_sentence_runs_are_users_and_whole_users_are_split(tmp_path: Path) -> None:
    path = tmp_path / "ner_wikigold_wikigold.conll.jsonl.gz"
    lines(path, ({"text": f"Rome {i}", "spans": [{"start": 0, "end": 4, "label": "LOC"}]} for i in range(61)))
    parts = {s: load("wikigold", path.parent, s, run=3).corpus.documents() for s in ("train", "valid", "test", "all")}
    assert {s: len({d.user for d in each}) for s, each in parts.items()} == {
        "train": 17,
        "valid": 2,
        "test": 2,
        "all": 21,
    }
    assert sorted(d.id for s in ("train", "valid", "test") for d in parts[s]) == sorted(d.id for d in parts["all"])
    assert [len(list(g)) for _, g in groupby(d.user for d in parts["all"])] == [3] * 20 + [1]
    with pytest.raises(DataError, match="ask for split 'all'"):
        load("wikigold", path.parent, "test", run=100)
    with pytest.raises(UsageError, match="at least 1"):
        load("wikigold", path.parent, run=0)


def test_news_have_classes_and_users_where_the_file_names_a_source(tmp_path: Path) -> None:
    write(tmp_path / "ag_news_csv/test.csv", '"3","Oil, up","It ""rose""."\n"4","Chips","Small."\n')
    loaded = load("agnews", tmp_path, "test")
    assert [(d.text, d.label) for d in loaded.corpus.documents()] == [
        ('Oil, up It "rose".', "Business"),
        ("Chips Small.", "Sci/Tech"),
    ]
    assert "no source" in loaded.note
    rows = [{"text": t, "label": 2, "label_name": "Business", "source": "Reuters"} for t in "ab"]
    (first, _) = load("agnews", lines(tmp_path / "train.jsonl", rows)).corpus.documents()
    assert (first.user, first.label) == ("Reuters", "Business")
    with pytest.raises(DataError, match="row 1: expected a class"):
        load("agnews", write(tmp_path / "train.csv", "class,title,description\n"))


def test_validation_news_that_lie_in_the_training_subset_leave_it(tmp_path: Path) -> None:
    rows = [{"text": t, "label": 0, "label_name": "World"} for t in "abc"]
    lines(tmp_path / "train_subset_train.jsonl", rows)
    lines(tmp_path / "train_subset_dev.jsonl", rows[:1])
    loaded = load("agnews", tmp_path)
    assert [d.text for d in loaded.corpus.documents()] == ["b", "c"]
    assert "1 rows that are also in valid" in loaded.note


def test_a_contract_is_a_user(tmp_path: Path) -> None:
    for i in range(11):
        write(tmp_path / f"full_contract_txt/c{i:02}.txt", f"Between {i}\nand me")
    everyone = load("contracts", tmp_path, "all").corpus.documents()
    assert len({d.user for d in everyone}) == 11
    assert [d.text[:9] for d in load("contracts", tmp_path, "test").corpus.documents()] == ["Between 9"]


def test_canaries_stay_out_unless_asked_for(tmp_path: Path) -> None:
    rows = [{"dialogue_id": name, "turns": [said("My ID is 1.")]} for name in ("canary-0", "dial-0")]
    lines(tmp_path / "customersim/train.jsonl", rows)
    assert [d.id for d in load("customersim", tmp_path).corpus.documents()] == ["dial-0"]
    assert len(load("customersim", tmp_path, canaries=True).corpus.documents()) == 2


def test_multidogo_marks_secrets_only(tmp_path: Path) -> None:
    turn = said("ann to rome", ("ann", "name", None), ("rome", "arrival_city", None))
    lines(tmp_path / "dev.jsonl", [{"dialogue_id": "1", "turns": [turn]}])
    (document,) = load("multidogo", tmp_path, "valid").corpus.documents()
    assert golds(document) == [("ann", "name")]


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="did you mean 'qnli'"):
        load("qnlI", tmp_path)
    lines(tmp_path / "multidogo/train.jsonl", [{"dialogue_id": "1", "turns": [said("hi")]}])
    with pytest.raises(DataError, match=r"multidogo has no split 'test' .*there: train \(looked for test.jsonl\)"):
        load("multidogo", tmp_path, "test")
    with pytest.raises(DataError, match="splits of multidogo: train, valid, test"):
        load("multidogo", tmp_path, "tain")
    with pytest.raises(DataError, match="no file of it is there"):
        load("conll2003", tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        load("conll2003", tmp_path / "nowhere")


def test_names_on_the_hub() -> None:
    assert hub_name("wikitext2", "dev") == "hf:Salesforce/wikitext:wikitext-2-raw-v1#validation"
    assert hub_name("mnli", "mismatched") == "hf:nyu-mll/glue:mnli#validation_mismatched"
    assert hub_name("agnews", "test") == "hf:fancyzhx/ag_news#test"
    with pytest.raises(DataError, match="no split 'test'; there are: train, valid"):
        hub_name("sst2", "test")
    with pytest.raises(UsageError, match="not read from the hub"):
        load("abcd", HUB)


def test_a_folder_that_the_hub_library_knows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    lines(tmp_path / "own/train.jsonl", [{"question": "a?", "sentence": "b.", "label": 1, "idx": 0}])
    loaded = load("qnli", f"hf:{tmp_path / 'own'}")
    (document,) = loaded.corpus.documents()
    assert (*texts(document), document.label) == ("a?", "b.", "1")
    assert "class numbers" in loaded.note


def test_columns_keep_odd_white_space_and_mark_broken_bytes_private(tmp_path: Path) -> None:
    path = tmp_path / "CONLL-format/data/train/FIN5.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes("-DOCSTART- -X- O O\n\nfine NN - O\n\u00a0 : - O\n\n".encode() + b"\x93 : - O\nRome NNP - I-LOC\n")
    loaded = load("sec_contracts", tmp_path)
    first, second = loaded.corpus.documents()
    assert (first.text, first.private_because) == ("fine \u00a0", None)
    assert (second.text, golds(second)) == ("\ufffd Rome", [("Rome", "LOC")])
    assert second.private_because is not None
    assert first.user == second.user == "FIN5.txt/1"


@given(st.text("ab ,."), st.text("ab", min_size=1, max_size=3))
def test_occurrences_are_whole_words(text: str, value: str) -> None:
    found = list(occurrences(text, value))
    assert all(text[a:b] == value for a, b in found)
    words = text.replace(",", " ").replace(".", " ").split()
    assert len(found) == words.count(value)


@pytest.mark.parametrize(
    ("text", "marked", "value", "found"),
    [
        ("The reference number is EQ0YAQ1G .", "number", "EQ0YAQ1G", "EQ0YAQ1G"),
        ("It is  JWM813SD .", "", "JWM813SD", "JWM813SD"),
        ("A moderately priced inn, moderate food.", "moderately", "moderate", "moderately"),
        ("In the center of town.", "center", "centre", "center"),
        ("0133 rang; the line is 0133", "line", "0133", "0133"),
        ("Ann and Annabel went", "and", "Anna", "and"),
        ("Ask for ANN today", "for", "ann", "ANN"),
    ],
)
def test_a_span_of_multiwoz_21_stands_where_its_value_does(
    tmp_path: Path, text: str, marked: str, value: str, found: str
) -> None:
    """A value in another form moves nothing, and the other readers move nothing at all: the text marked is the secret."""
    start = text.index("  ") + 1 if not marked else text.index(marked)
    span = {"start": start, "end": start + len(marked), "value": value, "slot": "Ref", "secret": True}
    other = {"start": 0, "end": 1, "value": text.split()[-1].strip(".,"), "slot": "Area", "secret": False}
    row = {"dialogue_id": "X", "turns": [{"speaker": "SYSTEM", "text": text, "spans": [other, span]}, {"text": "Bye"}]}
    for name in ("mwz21_test", "mwz22_test"):
        lines(tmp_path / f"{name}.jsonl", [row])
    whole = load("multiwoz21", tmp_path, "test")
    (document,) = whole.corpus.documents()
    (gold,) = document.gold
    assert document.text[gold.start : gold.end] == found
    assert gold.start == (text.rindex(found) if value == "0133" else text.index(found))
    assert ("1 annotations of secrets beside" in whole.note) == (found != marked)
    (document,) = load("multiwoz22", tmp_path, "test").corpus.documents()
    assert [document.text[s.start : s.end] for s in document.gold] == [marked] * bool(marked)


def test_the_telephone_numbers_of_multiwoz_21_are_numbers(shared: Path) -> None:
    """88 of 614 are marked beside the number."""
    documents = load("multiwoz21", shared / "data", "test").corpus.documents()
    phones = [d.text[s.start : s.end] for d in documents for s in d.gold if s.label == "Phone"]
    assert len(phones) == 614
    assert all(any(map(str.isdigit, each)) for each in phones)


COUNTS = [
    ("wikitext2", {"train": 23_767, "valid": 2_461, "test": 2_891}),  # lines with text, of 36,718, 3,760 and 4,358
    ("abcd", {"train": 1_004, "valid": 1_004, "test": 1_004}),
    ("sst2", {"train": 67_349, "valid": 872}),
    ("qnli", {"train": 8_999, "heldout": 1_000, "valid": 5_463}),
    ("qqp", {"train": 8_999, "heldout": 1_000, "valid": 40_430}),
    ("mnli", {"train": 8_999, "heldout": 1_000, "matched": 9_815, "mismatched": 9_832}),
    ("multiwoz22", {"train": 512, "valid": 1_000}),
    ("multiwoz21", {"valid": 999, "test": 1_000}),
    ("agnews", {"train": 4_000, "valid": 1_000, "test": 7_600}),  # the subset's 5,000 hold the 1,000
    ("contracts", {"train": 48, "valid": 6, "test": 5, "all": 59}),
    ("sec_contracts", {"train": 1_164, "test": 303}),
    ("wikigold", {"train": 1_360, "valid": 170, "test": 166, "all": 1_696}),
    ("wnut17", {"train": 3_394, "valid": 1_009}),
    ("customersim", {"train": 10_000, "valid": 1_000, "test": 1_000}),
    ("multidogo", {"train": 9_948, "valid": 1_419}),
]


@pytest.mark.parametrize(("name", "counts"), COUNTS, ids=[name for name, _ in COUNTS])
def test_the_real_files_hold_what_their_provenance_says(shared: Path, name: str, counts: dict[str, int]) -> None:
    for split, count in counts.items():
        assert len(load(name, shared / "data", split).corpus.documents()) == count


def test_every_set_is_counted_but_the_one_nobody_may_ship() -> None:
    assert set(names()) == {name for name, _ in COUNTS} | {"conll2003"}
