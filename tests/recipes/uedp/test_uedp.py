"""Recipes of user-entity privacy: made-up news, the two readings of an ε, and the paper's budgets."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from taciturn.errors import UsageError
from taciturn.recipes import registry, simulated_news
from taciturn.recipes.cells import Work
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.uedp import bench, data, figure4, table2
from taciturn.recipes.uedp.accounting import Plan, claimed_and_real, squared_noise
from taciturn.recipes.uedp.paper import PUBLISHED
from taciturn.text.document import Document
from taciturn.text.spans import Span

SMALL = Inputs("smoke")


def test_news_are_annotated_and_reporters_of_two_splits_differ() -> None:
    train, test = simulated_news.write(6, 20, 0), simulated_news.write(6, 20, 0, "test")
    assert train == simulated_news.write(6, 20, 0)
    assert not {d.user for d in train} & {d.user for d in test}
    held: dict[str, set[str | None]] = {}
    for document in train:
        for span in document.gold:
            assert span.label in simulated_news.CATEGORIES
            name = document.text[span.start : span.end]
            assert name[0].isupper()
            assert "{" not in document.text
            held.setdefault(name, set()).add(document.user)
    assert max(map(len, held.values())) > 1  # an entity of several users is what Theorem 1 forgets
    assert any(not d.gold for d in train)
    assert {d.label for d in train} == set(simulated_news.TOPICS)
    assert {d.text for d in train if d.gold} - {d.text for d in simulated_news.write(6, 20, 1)}


def test_the_printed_budgets_come_out_and_what_holds_is_another_number() -> None:
    row = figure4.curves(PUBLISHED["CONLL-2003"], (50,), (0,))
    (_, printed) = figure4.PRINTED["CONLL-2003"][0]
    for kind, value in zip(figure4.KINDS, printed, strict=True):
        assert row[kind][0] == pytest.approx(value, abs=0.011)
    assert row["noise"] == pytest.approx(2 * 51)  # Eq. 6 over the divisor
    assert row["holds"]["0"][0] < 0.1 * row["f_E+"][0]  # an entity of one user
    assert row["ours"]["1"][0] < row["ours"]["7"][0]


def test_a_detector_marks_its_category_only() -> None:
    documents = tuple(simulated_news.write(4, 10, 0))
    for category in simulated_news.CATEGORIES:
        found = data.detector(documents, category, None).find([d.text for d in documents])
        wanted = [[(s.start, s.end) for s in d.gold if s.label == category] for d in documents]
        assert [[(s.start, s.end) for s in each.spans] for each in found] == wanted


def test_counts_of_a_corpus_are_those_of_a_slow_count() -> None:
    documents = tuple(simulated_news.write(5, 12, 3))
    row = table2.counted(documents, None)
    assert (row["sentences"], row["users"]) == (60, 5)
    about = row["categories"]["org"]
    holding = [d for d in documents if any(s.label == "org" for s in d.gold)]
    users: dict[str, set[str | None]] = {}
    for d in holding:
        for s in d.gold:
            if s.label == "org":
                users.setdefault(d.text[s.start : s.end], set()).add(d.user)
    assert about["sensitive"] == len(holding)
    assert about["entities"] == len(users)
    assert about["holders"] == max(map(len, users.values()))
    assert about["median"] <= about["p95"] <= about["largest"]


def test_annotated_sets_are_marked_by_their_own_labels() -> None:
    spans = (Span(0, 4, "ORG"), Span(11, 15, "MISC"))
    documents = (Document("a", "Acme hired Goth Bob.", user="u", gold=spans), Document("b", "It rains.", user="v"))
    conll = PUBLISHED["CONLL-2003"]
    found = {c: data.screened(documents, c, conll).texts("redacted")[0] for c in ("Org", "Misc", "Loc", "all")}
    assert found["Org"] == "<MASK> hired Goth Bob."
    assert found["Misc"] == "Acme hired <MASK> Bob."
    assert found["Loc"] == "Acme hired Goth Bob."
    assert found["all"] == "<MASK> hired <MASK> Bob."


def test_the_codes_noise_is_the_square_of_the_papers() -> None:
    plan = Plan(10, 0.05, 0.5, 1.0, scale=2.5, clip=0.1)
    about = {"users": 100, "detected": 40, "extended": 300}
    expected = 0.05 * 100 * (0.5 * 40 + 1.0 * 300)  # the divisor of Eq. 4
    printed = 2.5 * (0.05 * 100 + 1) * 0.1 / expected  # Eq. 6
    assert squared_noise(plan, about) == pytest.approx(printed**2 * expected / 0.1, rel=1e-3)
    assert squared_noise(plan, about) < 2.5 * (0.05 * 100 + 1)  # what is printed, over β


def test_both_readings_of_one_run_are_told_apart() -> None:
    options = {"user_rate": 0.05, "entity_rate": 0.5, "extended_rate": 1.0, "scale": 2.0}
    about = {"sensitive_share": 2166 / 5188, "holders": 3}
    claim, holds = claimed_and_real("uedp-published", options, about, 3.0, 50)
    assert claim is not None
    assert holds is not None
    assert claim < 0.5 < holds
    nothing, ours = claimed_and_real("uedp", options | {"k": 7}, {}, 6.0, 200)
    assert nothing is None
    assert ours == pytest.approx(3.62, abs=0.01)  # guarantees.md 4.4
    assert claimed_and_real("sgd", {}, {}, None, 10) == (None, None)


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    return Work(tmp_path_factory.mktemp("uedp"))


def test_a_figure_has_both_readings_side_by_side(work: Work) -> None:
    results = registry.run("uedp-figure2", SMALL, work)
    (table,) = results.tables
    rows = {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    printed, squared = rows["Algorithm 1, person"], rows["Algorithm 1, person, code's noise"]
    assert float(printed["ε that holds"]) > float(printed["ε as published"])  # type: ignore[arg-type]
    assert squared["ε as published"] == printed["ε as published"]  # the claim does not look at the noise
    assert float(squared["ε that holds"]) > 10 * float(printed["ε that holds"])  # type: ignore[arg-type]
    assert rows["uedp, person"]["ε as published"] is None
    assert 7.9 < float(rows["uedp, person"]["ε that holds"]) <= 8.0  # type: ignore[arg-type]
    assert 7.9 < float(rows["user-level DP, ε = 8"]["ε that holds"]) <= 8.0  # type: ignore[arg-type]
    assert all(math.isfinite(float(row["score"])) for row in rows.values())  # type: ignore[arg-type]
    assert [plot.key for plot in results.plots] == ["paper", "claimed", "holds"]


def test_the_rate_of_extended_entities_costs_noise_above_that_of_the_detected(work: Work) -> None:
    (table,) = registry.run("uedp-figure5", SMALL, work).tables
    rows = {str(row[0]): dict(zip(table.columns, row, strict=True)) for row in table.rows}
    low, high = rows["uedp, q_s = 0"], rows["uedp, q_s = 1"]
    assert float(low["σ/β"]) < float(high["σ/β"])  # type: ignore[arg-type]
    claims = {row["ε as published"] for name, row in rows.items() if name.startswith("Algorithm 1")}
    assert len(claims) == 1


def test_the_papers_sets_need_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--data"):
        bench.bench("gpt2", Inputs("full"), Work(tmp_path))


def test_table_two_counts_what_the_folder_holds_and_its_rows_name_no_place(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    with pytest.raises(UsageError, match=r"given: expected one of .*sec_contracts in it, found none"):
        table2.run(Inputs("medium", data=folder), Work(tmp_path / "none"))
    (folder / "sec_contracts").mkdir()
    lines = [
        "Acme NNP B-NP I-ORG",
        "lends VBZ O O",
        "",
        "Bob NNP B-NP I-PER",
        "pays VBZ O O",
        "Acme NNP B-NP I-ORG",
        "",
    ]
    (folder / "sec_contracts" / "FIN5.txt").write_text("\n".join(lines))
    work = Work(tmp_path / "work")
    (table,) = table2.run(Inputs("medium", data=folder), work).tables
    assert table.rows[0][:4] == ("SEC (sec_contracts)", 4, 2, 1)
    counts = {row[4]: row[5:8] for row in table.rows}  # sensitive sentences, entities, holders
    assert counts == {"Org": (2, 1, 1), "Loc": (0, 0, 0), "Person": (1, 1, 1), "Misc": (0, 0, 0), "all": (2, 2, 1)}
    assert str(tmp_path) not in work.lines()
