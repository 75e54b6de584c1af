"""The medium size on data made here, laid out as the real sets are: from a folder to a page, cell by cell."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run
from taciturn.data.customersim import simulate
from taciturn.errors import DataError
from taciturn.recipes import page, registry
from taciturn.recipes.build import HIDDEN, ROWS, build
from taciturn.recipes.cells import Work
from taciturn.recipes.crt import sizes
from taciturn.recipes.crt.bench import Bench, benches
from taciturn.recipes.crt.data import SECRETS
from taciturn.recipes.crt.measures import secret_losses, secret_turns
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.uedp import bench as uedp_bench
from taciturn.recipes.uedp import data as uedp_data
from taciturn.recipes.uedp import extended
from taciturn.recipes.uedp.accounting import PLANS
from taciturn.recipes.uedp.data import SENTENCES, TURNS
from taciturn.recipes.uedp.paper import OTHERS
from taciturn.recipes.verdicts import AS, NOT_AS
from taciturn.text import segment
from taciturn.text.document import Document
from taciturn.text.spans import Span

SMALL = replace(
    sizes.MEDIUM, dialogues=16, test=8, digits=2, gammas=(0.0, 0.5), group=2, epochs=(2, 1), batch_size=16, steps=2,
    batch=16, lstm=16, points=2,
)  # fmt: skip


def line(document: Document) -> dict[str, Any]:
    """A dialogue as a line of CustomerSim's files."""
    turns = [
        {
            "speaker": turn.speaker,
            "text": document.text[turn.start : turn.end].removesuffix("\n"),
            "spans": [
                {"start": s.start - turn.start, "end": s.end - turn.start, "value": document.text[s.start : s.end],
                 "slot": s.label, "source": "database"}
                for s in document.gold if turn.start <= s.start < turn.end
            ],
        }
        for turn in document.turns
    ]  # fmt: skip
    return {"dialogue_id": document.id, "file": f"{document.id}.txt", "canary": False, "turns": turns}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets") / "given"
    (folder / "customersim").mkdir(parents=True)
    for split in ("train", "valid", "test"):
        rows = [json.dumps(line(each)) for each in simulate(8, 3, split)]  # type: ignore[arg-type]
        with gzip.open(folder / "customersim" / f"{split}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Medium's rows, kinds and data set with the sizes of a smoke test."""
    monkeypatch.setitem(sizes.SIZES, "medium", SMALL)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


def test_a_folder_becomes_a_page_beside_the_quick_one(data: Path, out: Path) -> None:
    inputs = Inputs("medium", data=data, runs=1)
    built = build("crt-figure4", inputs, out)
    (out / "crt-figure4.md").write_text("the quick page")
    text = (out / "crt-figure4-medium.md").read_text()
    assert "`taciturn recipe run crt-figure4 --medium --runs 1 --data DATA`" in text
    assert "from the folder given, by turn" in text
    assert "CustomerSim: 8 dialogues; 2 epochs without noise, 2 noised steps" in text
    assert not any(each.startswith((AS, NOT_AS)) for each in built.results.says)  # one run a row
    rows = {row[0] for table in built.results.tables for row in table.rows}
    assert {"S-DP-LSTM as accounted", "CRT-LSTM with values", "DPSGD-LSTM"} <= rows
    assert not any("GPT" in str(name) for name in rows)
    assert any("the secret's own tokens" in table.title for table in built.results.tables)
    cells = (out / ROWS / "crt-figure4-medium.jsonl").read_text()
    assert str(data) not in cells  # a row names the folder, not where it lies
    assert '"given": "given"' in cells
    index = page.index([registry.recipe("crt-figure4")], out).read_text()
    assert "[Figure 4](crt-figure4.md), [on real data](crt-figure4-medium.md)" in index


def test_it_goes_on_cell_by_cell_and_from_rows_alone(
    data: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the test above: what stopped in the middle measures what is missing, and rows are as good as cells."""
    inputs = Inputs("medium", data=data, runs=1)
    cells = sorted((out / HIDDEN / "crt" / "cells").glob("*.json"))
    lost = json.loads(cells[0].read_text())
    cells[0].unlink()
    (out / ROWS / "crt-figure4-medium.jsonl").unlink()
    told: list[str] = []
    first = build("crt-figure4", inputs, out, told.append)
    assert len([each for each in told if each.startswith("bench")]) == 1
    assert cells[0].exists()
    assert json.loads(cells[0].read_text())["key"] == lost["key"]
    other = tmp_path / "elsewhere"
    (other / ROWS).mkdir(parents=True)
    (other / ROWS / "crt-figure4-medium.jsonl").write_text((out / ROWS / "crt-figure4-medium.jsonl").read_text())
    monkeypatch.setattr(Bench, "_measure", lambda *_: pytest.fail("trained again"))
    again = build("crt-figure4", replace(inputs, data=tmp_path / "given"), other)
    assert again.results == first.results


def test_others_of_a_split_that_is_used_up_are_those_of_the_other_splits(data: Path, tmp_path: Path) -> None:
    bench = Bench(Inputs("medium", data=data), Work(tmp_path))
    inside, outside = ({d.text for d in bench.texts.documents(part)} for part in ("train", "others"))
    assert len(inside) == 8
    assert outside
    assert not inside & outside


def test_a_secrets_own_loss_is_that_of_its_tokens_alone(data: Path, tmp_path: Path) -> None:
    """Against a loop over tokens, one text at a time."""
    import torch

    from taciturn.models.hf import load_model
    from taciturn.models.tokenizers import load_tokenizer
    from taciturn.models.tokens import encode_all

    bench = Bench(Inputs("medium", data=data), Work(tmp_path))
    settings = bench.model("LSTM")
    tokenizer = load_tokenizer(settings["tokenizer"], "lstm")
    model = load_model("lstm", tokenizer, 0, settings["options"])
    kinds = SECRETS["customersim"]
    records = secret_turns(bench.texts.documents("train"), kinds)
    assert len(records) > 3
    assert all(any(s.label in ("address", "phone_number", "order_number") for s in r.gold) for r in records)
    model.eval()
    for record, found in zip(records, secret_losses(model, tokenizer, records, kinds), strict=True):
        ids = torch.from_numpy(encode_all(tokenizer, [record.body], 256)[0].astype("int64"))
        with torch.no_grad():
            logs = model(input_ids=ids[None]).logits[0].log_softmax(-1)
        where = tokenizer(record.body, return_offsets_mapping=True, add_special_tokens=False)["offset_mapping"]
        spans = [(s.start, s.end) for s in record.gold if s.label not in ("name", "tracking_number")]
        first = len(ids) - len(where) - 1  # an end of text at both ends, or at the last alone
        losses = [
            -float(logs[at + first - 1, ids[at + first]])
            for at, (a, b) in enumerate(where)
            if at + first > 0 and any(a < end and start < b for start, end in spans)
        ]
        assert found == pytest.approx(sum(losses) / len(losses), rel=1e-4)


@pytest.fixture(scope="module")
def both(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same folder with MultiWOZ as far as it is often at hand: a part of 2.2's train, its valid, and 2.1's test."""
    folder = tmp_path_factory.mktemp("sets") / "both"
    shutil.copytree(data, folder)
    (folder / "multiwoz").mkdir()
    for name, split, first in (
        ("mwz22_train_part001", "train", 5),
        ("mwz22_dev", "valid", 6),
        ("mwz21_test", "test", 7),
    ):
        dialogues = [line(each) for each in simulate(8, first, split)]  # type: ignore[arg-type]
        for dialogue in dialogues:
            dialogue["dialogue_id"] = f"{name}-{dialogue['dialogue_id']}"
            for span in (span for turn in dialogue["turns"] for span in turn["spans"]):
                span["slot"] = {"order_number": "Ref", "phone_number": "Phone"}.get(span["slot"], "Addr")
        with gzip.open(folder / "multiwoz" / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(map(json.dumps, dialogues)) + "\n")
    return folder


def test_the_sets_of_a_page_are_those_measured_or_at_hand(data: Path, both: Path, tmp_path: Path) -> None:
    work = Work(tmp_path)
    assert list(benches(Inputs("medium", data=data), work)) == ["customersim"]
    assert list(benches(Inputs("medium", data=both), work)) == ["multiwoz", "customersim"]
    with pytest.raises(DataError, match="nowhere: expected MultiWOZ"):
        benches(Inputs("medium", data=tmp_path / "nowhere"), work)
    Bench(Inputs("medium", data=both), work, "multiwoz").bar("LSTM")
    assert list(benches(Inputs("medium", data=tmp_path / "both"), work)) == ["multiwoz"]


def test_multiwoz_is_trained_on_what_is_not_tested_on(both: Path, tmp_path: Path) -> None:
    bench = Bench(Inputs("medium", data=both), Work(tmp_path), "multiwoz")
    parts = {
        part: {each.id.partition("-")[0] for each in bench.texts.documents(part)}
        for part in ("train", "others", "test")
    }
    assert parts == {
        "train": {"mwz22_train_part001", "mwz21_test"}, "others": {"mwz22_dev"}, "test": {"mwz22_dev"},
    }  # fmt: skip
    whole = tmp_path / "whole"
    shutil.copytree(both, whole)
    shutil.copy(whole / "multiwoz" / "mwz22_dev.jsonl.gz", whole / "multiwoz" / "mwz22_test.jsonl.gz")
    found = replace(bench, inputs=replace(bench.inputs, data=whole)).texts.documents("train")
    assert {each.id.partition("-")[0] for each in found} == {"mwz22_train_part001"}


@pytest.mark.parametrize(
    ("changed", "members", "others", "note"),
    [
        ({}, {"mwz22_train_part001"}, {"mwz22_dev"}, "those of version 2.2"),
        ({"mwz21_dev": "mwz22_dev"}, {"mwz21_test"}, {"mwz21_dev"}, "those of version 2.1"),
        ({"mwz21_dev": "mwz22_dev", "mwz22_train_part001": ""}, {"mwz21_test"}, {"mwz21_dev"}, "those of version 2.1"),
        ({"mwz22_test": "mwz22_dev"}, {"mwz22_train_part001"}, {"mwz22_dev", "mwz22_test"}, ""),
    ],
)
def test_both_sides_of_the_membership_attack_are_written_alike(
    both: Path, tmp_path: Path, changed: dict[str, str], members: set[str], others: set[str], note: str
) -> None:
    """2.1's text is cut into tokens: beside 2.2's, a model tells the sides apart by their blanks."""
    folder = tmp_path / "sets"
    shutil.copytree(both, folder)
    for name, of in changed.items():
        file = folder / "multiwoz" / f"{name}.jsonl.gz"
        if of:
            text = gzip.decompress((folder / "multiwoz" / f"{of}.jsonl.gz").read_bytes()).decode()
            file.write_bytes(gzip.compress(text.replace(of, name).encode()))
        else:
            file.unlink()
    bench = Bench(Inputs("medium", data=folder), Work(tmp_path), "multiwoz")
    inside, outside, told = bench.texts.sides()
    assert told == note
    assert [{each.id.partition("-")[0] for each in side} for side in (inside, outside)] == [members, others]
    assert {each.id for each in inside} <= {each.id for each in bench.texts.documents("train")}


def test_a_folder_with_others_only_in_another_form_says_what_is_missing(both: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sets"
    shutil.copytree(both, folder)
    (folder / "multiwoz" / "mwz22_train_part001.jsonl.gz").unlink()
    with pytest.raises(DataError, match="multiwoz21"):
        Bench(Inputs("medium", data=folder), Work(tmp_path), "multiwoz").texts.sides()


def test_membership_in_multiwoz_is_about_reference_numbers(both: Path, tmp_path: Path) -> None:
    documents = Bench(Inputs("medium", data=both), Work(tmp_path), "multiwoz").texts.documents("train")
    turns = [record for document in documents for record in segment.split(document, "turn")]
    told = {record.body for record in turns if "Ref" in {each.label for each in record.gold}}
    assert {record.body for record in secret_turns(documents, SECRETS["multiwoz"])} == told
    assert told < {record.body for record in turns if record.gold}


def test_a_page_of_two_sets_says_what_differs_between_them(
    both: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    apart = {("medium", "multiwoz"): {"epochs": (3, 1), "steps": 3, "rows": ("redacted", "DPSGD", "CRT")}}
    monkeypatch.setattr(sizes, "APART", apart)
    built = build("crt-figure3", Inputs("medium", data=both, runs=1), tmp_path)
    assert "MultiWOZ: 16 dialogues; 3 epochs without noise, 3 noised steps" in built.results.setting
    assert "CustomerSim: 8 dialogues; 2 epochs without noise, 2 noised steps" in built.results.setting
    one, other = ([row[0] for row in table.rows] for table in built.results.tables)
    assert one == ["Non-private-LSTM", "DPSGD-LSTM", "CRT-LSTM"]
    assert len(other) == len(SMALL.rows)
    keys = [json.loads(row)["key"] for row in (tmp_path / ROWS / "crt-figure3-medium.jsonl").read_text().splitlines()]
    assert {(key["bench"], key["steps"]) for key in keys} == {("multiwoz", 3), ("customersim", 2)}


@pytest.fixture(scope="module")
def news(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with AG News as its subset is laid out."""
    folder = tmp_path_factory.mktemp("sets") / "given"
    (folder / "agnews").mkdir(parents=True)
    towns = ("Paris", "Rome", "Berlin")
    for name, first in (("train_subset_train", 0), ("test", 100)):
        rows = []
        for at in range(first, first + 30):
            where = f"in {towns[at % 3]} that trade across the Pacific Ocean and Europe fell by {at}"
            text = f"Bill Gates of Microsoft Corp. said {where}."
            rows.append({"text": text, "title": text, "description": "", "label": at % 4, "label_name": f"x{at % 4}"})
        with gzip.open(folder / "agnews" / f"{name}.jsonl.gz", "wt") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.mark.parametrize("figure", ["uedp-figure6", "uedp-figure3"])
def test_uedp_reads_a_folder_of_news(
    figure: str,
    news: Path,
    little_encoder: Callable[[list[str]], str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the sizes of a smoke test: rows name the folder alone."""
    pytest.importorskip("spacy")
    monkeypatch.setitem(PLANS, "medium", PLANS["smoke"])  # type: ignore[arg-type]
    monkeypatch.setattr(uedp_bench, "TUNED", {})
    monkeypatch.setitem(SENTENCES, "medium", (30, 6))  # type: ignore[arg-type]
    monkeypatch.setattr(extended, "RATES", (0.0, 1.0))
    model = little_encoder(["Bill Gates of Microsoft Corp. said in Paris"]) if figure == "uedp-figure3" else None
    built = build(figure, Inputs("medium", data=news, model=model, runs=1), tmp_path / "out")
    table = built.results.tables[0]
    assert {"de-identified", "no-DP", "user-level DP, ε = 8", "uedp, GPE"} <= {row[0] for row in table.rows}
    assert "30 sentences of 3 users" in built.results.setting
    assert not any(each.startswith((AS, NOT_AS)) for each in built.results.says)
    rows = (tmp_path / "out" / ROWS / f"{figure}-medium.jsonl").read_text()
    assert str(news.parent) not in rows
    if model is not None:
        assert model not in rows
        assert "the head alone is, without dropout" in built.results.setting
        keys = [json.loads(line)["key"] for line in rows.splitlines()]
        assert {key["kind"] for key in keys if "texts" not in key} == {"little"}


@pytest.fixture(scope="module")
def all_sets(data: Path, news: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Customers, news and loan agreements in one folder."""
    folder = tmp_path_factory.mktemp("sets") / "all"
    shutil.copytree(data, folder)
    shutil.copytree(news / "agnews", folder / "agnews")
    (folder / "sec_contracts").mkdir()
    for name, verbs in (("FIN5", ("lends", "owes", "pays")), ("FIN3", ("sues", "grants", "owns"))):
        words = (("Acme", "I-ORG"), ("", "O"), ("Bob", "I-PER"), ("in", "O"), ("Rome", "I-LOC"), (".", "O"))
        text = "".join("".join(f"{word or verb} NNP O {tag}\n" for word, tag in words) + "\n" for verb in verbs * 4)
        (folder / "sec_contracts" / f"{name}.txt").write_text(text)
    return folder


def test_customers_and_contracts_stand_beside_news(
    all_sets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figure 6: what the folder holds of three sets, and the page again from rows where the folder is gone."""
    pytest.importorskip("spacy")
    monkeypatch.setitem(PLANS, "medium", PLANS["smoke"])  # type: ignore[arg-type]
    monkeypatch.setattr(uedp_bench, "TUNED", {})
    monkeypatch.setitem(SENTENCES, "medium", (30, 6))  # type: ignore[arg-type]
    monkeypatch.setitem(TURNS, "medium", (200, 8))  # type: ignore[arg-type]
    folder = tmp_path / "all"
    shutil.copytree(all_sets, folder)
    built = build("uedp-figure6", Inputs("medium", data=folder, runs=1), tmp_path / "out")
    titles = [table.title for table in built.results.tables]
    assert [title.partition(":")[0] for title in titles] == [
        "AG-awd-lstm", "CustomerSim-awd-lstm", "Loans-awd-lstm",
    ]  # fmt: skip
    assert {"uedp, Name", "uedp, Parcel"} <= {row[0] for row in built.results.tables[1].rows}
    assert len({plot.key for plot in built.results.plots}) == 6
    assert any("CustomerSim-awd-lstm, Address" in line for line in built.results.says)
    shutil.rmtree(folder)
    monkeypatch.setattr(uedp_bench, "trained", lambda *_, **__: pytest.fail("trained again"))
    again = build("uedp-figure6", Inputs("medium", data=folder, runs=1), tmp_path / "out")
    assert again.results == built.results


def test_users_of_dialogues_are_the_customers_they_name(all_sets: Path) -> None:
    found, test, note = uedp_data.loaded(OTHERS["CustomerSim"], Inputs("medium", data=all_sets))
    dialogues = {each.id: each for split in ("train", "test") for each in simulate(8, 3, split)}  # type: ignore[arg-type]
    for part in (found, test):
        for turn in part:
            dialogue = dialogues[turn.id.rpartition("#")[0] or turn.id]
            (name, *_) = (dialogue.text[s.start : s.end] for s in dialogue.gold if s.label == "name")
            assert turn.user == name
            assert turn.text in dialogue.text
    assert {turn.text for turn in found if not turn.gold} & {turn.text for turn in test}  # what a clerk always says
    assert "0 of 8 test dialogues stand in the training text" in note


def test_a_dialogue_that_names_nobody_has_no_user() -> None:
    named = Document("a", "Bob here.\nAsk Ann.", gold=(Span(0, 3, "Name"), Span(14, 17, "name")))
    found = uedp_data.turns([named, Document("b", "Who?\nMe.", gold=(Span(5, 7, "phone_number"),))], "NAME")
    assert {turn.user for turn in found} == {"Bob"}
    assert "Who" not in "".join(turn.text for turn in found)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["crt-figure3", "--medium"], "--data DIR, a folder with customersim"),
        (["jft-table5", "--medium"], "has no medium size"),
        (["crt-figure3", "--medium", "--quick"], "two sizes"),
    ],
)
def test_what_it_takes_is_said_before_anything_is_done(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["recipe", "run", *arguments, "-o", str(tmp_path)]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
