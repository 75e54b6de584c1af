"""JFT's medium size on sentences made here, laid out as the real sets are: from a folder to a page."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from random import Random
from typing import Any

import pytest
from transformers import GPT2LMHeadModel

from taciturn.errors import UsageError
from taciturn.recipes import registry, writer
from taciturn.recipes.build import HIDDEN, ROWS, build
from taciturn.recipes.cells import Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft import medium
from taciturn.recipes.jft.paper import LEVELS, TASKS
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.verdicts import AS, NOT_AS

pytest.importorskip("spacy")

WORDS = {"0": ("dull", "tired", "lifeless", "clumsy"), "1": ("charming", "lovely", "moving", "witty")}
THINGS = ("film", "plot", "cast", "score", "story", "scene")
NAMES = ("Paris", "Anna Smith", "London", "Mary Jones", "Berlin", "Rome")


def sentences(count: int, seed: int) -> list[dict[str, str]]:
    draw = Random(seed)
    made = []
    for at in range(count):
        label = str(at % 2)
        word, thing, name = draw.choice(WORDS[label]), draw.choice(THINGS), draw.choice(NAMES)
        made.append({"sentence": f"{name} saw a {word} {thing} {seed}{at} times", "label": label})
    return made


def pairs(count: int, seed: int) -> list[dict[str, str]]:
    rows = sentences(count, seed)
    labels = {"0": "not_entailment", "1": "entailment"}
    return [
        {"question": "what was it like?", "sentence": each["sentence"], "label": labels[each["label"]]} for each in rows
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sets") / "given"
    for name, rows in (("train", sentences(90, 1)), ("dev", sentences(12, 2))):
        (folder / "glue").mkdir(parents=True, exist_ok=True)
        with gzip.open(folder / "glue" / f"sst2_{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def model(little_encoder: Callable[[list[str]], str]) -> str:
    return little_encoder([each["sentence"] for each in sentences(200, 3)])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Medium's rows with the sizes of a smoke test."""
    for name, batch_size in (("SENTENCES", 16), ("PAIRS", 64), ("TURNS", 16)):
        kind = getattr(medium, name)
        sizes = replace(kind.sizes, batch_size=batch_size)
        monkeypatch.setattr(medium, name, replace(kind, sizes=sizes, steps=2, rates=(1e-3, 3e-3), batch=16))


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


def test_a_folder_becomes_the_page_of_four_levels(data: Path, model: str, out: Path) -> None:
    built = build("jft-table2", Inputs("medium", data, model, runs=1), out)
    (table,) = built.results.tables
    rows = {str(row[0]): row for row in table.rows}
    assert {f"{row}, {level}" for row in ("redacted", "jft") for level in LEVELS} <= set(rows)
    assert "jft with values (ours), low-contextual" in rows
    assert "60 records to train on, 12 to test" in built.results.setting
    assert not any(each.startswith((AS, NOT_AS)) for each in built.results.says)  # one run a row
    for name, row in rows.items():  # at the same ε in all
        if name.startswith(("jft", "DP-SGD")):
            assert 2.5 < float(row[3] or 0) <= 3.0, name
    kept = (out / ROWS / "jft-table2-medium.jsonl").read_text()
    assert str(data) not in kept
    assert model not in kept
    assert "the first 6 layers of" in built.results.setting
    assert "on 30 records held out" in built.results.setting
    assert '"data": "given"' in kept


@pytest.mark.parametrize("name", ["jft-table4", "jft-table6"])
def test_the_other_tables_share_its_cells_and_its_screened_text(name: str, data: Path, model: str, out: Path) -> None:
    told: list[str] = []
    before = {each.name for each in (out / HIDDEN / "jft" / "screened").iterdir()}
    built = build(name, Inputs("medium", data, model, runs=1), out, told.append)
    assert not any("DP-SGD" in each or "row jft high-entity" in each or "row no-DP" in each for each in told)
    new = {each.name for each in (out / HIDDEN / "jft" / "screened").iterdir()} - before
    assert all("parted" in each for each in new)
    assert all(table.rows for table in built.results.tables)


def test_a_thousandth_of_each_task_is_trained_on_in_as_many_plain_steps_as_noised_ones(
    data: Path, model: str, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {"sst2": 20_000, "qnli": 40_000}
    monkeypatch.setattr(medium, "FEW", tuple(whole))
    monkeypatch.setattr(jft_bench, "TASKS", {k: replace(v, records=whole.get(k, 0)) for k, v in TASKS.items()})
    with gzip.open(data / "glue" / "qnli_train_sample.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in pairs(90, 1)))
    with gzip.open(data / "glue" / "qnli_dev.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in pairs(12, 2)))
    built = build("jft-table8", Inputs("medium", data, model, runs=1), out)
    assert [table.title for table in built.results.tables] == ["sst2: accuracy, %", "qnli: accuracy, %"]
    assert [[row[0] for row in table.rows] for table in built.results.tables] == [
        ["no fine-tuning", "DP-SGD", "redacted", "jft"]
    ] * 2
    assert "sst2: 20 records to train on, 12 to test" in built.results.setting
    assert "qnli: 40 records to train on, 12 to test" in built.results.setting
    assert "1 plain epochs at batch 16; 2 private steps at rate 0.800" in built.results.setting
    keys = [json.loads(line)["key"] for line in (out / ROWS / "jft-table8-medium.jsonl").read_text().splitlines()]
    assert [key["options"]["redacted"]["epochs"] for key in keys if key.get("row") == "jft high-entity"] == [1, 2]
    assert (out / HIDDEN / "jft" / "frozen.sqlite").exists()


def test_it_is_written_again_from_its_rows_alone(
    data: Path, model: str, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ROWS).mkdir()
    (tmp_path / ROWS / "jft-table2-medium.jsonl").write_text((out / ROWS / "jft-table2-medium.jsonl").read_text())
    monkeypatch.setattr(jft_bench, "trained", lambda *_, **__: pytest.fail("trained again"))
    for there in (data, tmp_path / "gone" / data.name):
        page = build("jft-table2", Inputs("medium", there, model, runs=1), tmp_path)
        assert page.files[0].read_text() == (out / "jft-table2-medium.md").read_text()


def test_after_few_screened_records_the_second_phase_has_the_learning_rate_of_dpsgd(
    data: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[Any] = []
    tried = {1e-3: 0.6, 3e-3: 0.7}

    def cell(_: Work, key: Any, __: Any) -> Any:
        keys.append(key)
        return {"score": tried.get(key["options"].get("optimiser", {}).get("lr"), 0.0)}

    monkeypatch.setattr(Work, "cell", cell)
    bench = jft_bench.bench("sst2", Inputs("medium", data, model), Work(tmp_path))
    trained_on, held = {each.text for each in bench.documents}, {record.body for record in bench.held}
    assert (len(trained_on), len(held), len(trained_on & held)) == (60, 30, 0)
    for level in LEVELS:
        bench.fine_tuned_twice(level)
    bench.fine_tuned_twice(LEVELS[1], screened={"ids": "ids.txt"})
    bench.dpsgd()
    trials, rows = ([key for key in keys if (key["row"] == "tried") == wanted] for wanted in (True, False))
    assert {key["test"] for key in trials} == {30}
    assert {key["test"] for key in rows} == {12}
    options = [key["options"].get("private", key["options"]) for key in rows]
    assert [each["optimiser"]["lr"] for each in options] == [1e-3] * 4 + [3e-3] * 2
    assert {(each["rate"], each["steps"]) for each in options} == {(16 / 60, 2)}


def test_with_a_model_that_writes_the_page_has_dialogues_as_well(
    data: Path, model: str, little_writer: Callable[[list[str]], str], out: Path
) -> None:
    """Rows of sentences come from the first test's cells; the language model is trained at its end alone."""
    (data / "abcd").mkdir()
    for name, count in (("valid", 12), ("test", 4)):
        dialogues = [
            {"dialogue_id": f"{name}-{at}", "turns": [
                {"speaker": who, "text": each["sentence"], "spans": []}
                for who, each in zip(("SYS", "USR") * 4, sentences(8, 100 * len(name) + at), strict=True)
            ]}
            for at in range(count)
        ]  # fmt: skip
        with gzip.open(data / "abcd" / f"{name}.jsonl.gz", "wt", encoding="utf-8") as file:
            file.write("".join(json.dumps(each) + "\n" for each in dialogues))
    writes, told = little_writer([each["sentence"] for each in sentences(200, 3)]), list[str]()
    built = build("jft-table2", Inputs("medium", data, model, runs=1, writer=writes), out, told.append)
    assert told
    assert all("abcd" in each for each in told)
    text = (out / "jft-table2-medium.md").read_text()
    assert "`taciturn recipe run jft-table2 --medium --runs 1 --data DATA --model MODEL --writer WRITER`" in text
    (table,) = [each for each in built.results.tables if each.title == "abcd"]
    assert [row[0] for row in table.rows if str(row[0]).startswith("jft")] == [
        "jft, low-contextual", "jft, high-contextual", "jft with values (ours), low-contextual",
    ]  # fmt: skip
    assert table.columns[1] == "perplexity"
    assert "abcd: 64 records to train on" in built.results.setting
    assert "on 32 records held out" in built.results.setting
    rows = [json.loads(line) for line in (out / ROWS / "jft-table2-medium.jsonl").read_text().splitlines()]
    tried = {r["key"]["options"]["optimiser"]["lr"]: r["row"]["score"] for r in rows
             if (r["key"].get("row"), r["key"].get("task")) == ("tried", "abcd")}  # fmt: skip
    assert len(tried) == 2
    assert (
        f"learning rate of DP-SGD {min(tried, key=tried.__getitem__):g}" in built.results.setting.partition("abcd:")[2]
    )
    settings = writer.writer(Inputs("medium", data, model, writer=writes))
    names = [name for name, _ in GPT2LMHeadModel.from_pretrained(writes).named_parameters()]
    free = [each for each in names if not any(fnmatch(each, pattern) for pattern in settings["frozen"])]
    assert {each.rsplit(".", 1)[0].removeprefix("transformer.").partition(".")[0] for each in free} == {"h", "ln_f"}
    assert all(each.startswith(("transformer.h.2.", "transformer.ln_f")) for each in free)


def test_another_type_of_writer_is_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}))
    with pytest.raises(UsageError, match="of type llama; the medium size takes a GPT-2 type model"):
        writer.writer(Inputs("medium", data, writer=str(tmp_path)))


def test_its_size_is_said_by_show() -> None:
    for name in ("jft-table2", "jft-table4", "jft-table6", "jft-table8"):
        assert "SST-2" in registry.recipe(name).medium
