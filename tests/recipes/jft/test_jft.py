"""Recipes of Just Fine-tune Twice: detectors with a known recall, light noise, and what a table says of ε."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import UsageError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.recipes import registry, rigged_policies
from taciturn.recipes.cells import Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft import canaries as jft_canaries
from taciturn.recipes.jft import figure4, table1, table3, table5
from taciturn.recipes.jft.canaries import Kind, attack
from taciturn.recipes.jft.paper import LEVELS
from taciturn.recipes.recipe import Inputs, Results
from taciturn.screening.policies.view import View
from taciturn.text.document import Document
from taciturn.text.spans import Span

SMALL = Inputs("smoke")
pytest.importorskip("spacy")


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Work:
    return Work(tmp_path_factory.mktemp("jft"))


def test_the_published_epsilon_of_a_secret_is_too_small() -> None:
    row = table5.noise(512 / 2361, 200, 1e-6)
    event = PoissonGaussian(512 / 2361, row["sigma"])
    assert compose({event: 200}, "add-remove").epsilon(1e-6) <= 3.0
    assert row["cost"] > 4.5
    exact = compose({PoissonGaussian(512 / 2361, row["holds"]): 200}, "substitution")
    assert 2.98 < exact.epsilon(1e-6) <= 3.0


def test_light_noise_is_calibrated_to_the_estimate_and_a_miss_pays_more() -> None:
    row = table3.light_noise(0.1, 50, 0.01, 1e-5)
    first, second = PoissonGaussian(0.1, row["first"]), PoissonGaussian(0.1, row["second"])
    both = {PoissonGaussian(0.1 * 0.01, row["first"]): 50, second: 50}
    assert compose(both, "add-remove").epsilon(1e-5) == pytest.approx(row["claim"])
    assert 2.7 < row["claim"] <= 3.0
    less = {PoissonGaussian(0.1 * 0.01, row["first"] / 1.05): 50, second: 50}
    assert row["first"] < 0.21 or compose(less, "add-remove").epsilon(1e-5) > 3.0  # the smallest, to 1 %
    assert compose({first: 50, second: 50}, "substitution").epsilon(1e-5) > 3 * row["claim"]


def test_detectors_of_four_levels_mark_more_and_more() -> None:
    left = {level: table1._left(level, table1.SENTENCES) for level in LEVELS}
    shares = [left[level]["share"] for level in LEVELS]
    assert shares == sorted(shares)
    assert left["low-entity"]["left"][0] == "Did you hear <MASK> is getting divorced?"  # section 4
    assert left["low-entity"]["left"][1] == table1.SENTENCES[1]
    assert "custody" not in left["high-contextual"]["left"][1]


def test_annotated_marks_what_is_wanted_and_nothing_else() -> None:
    one = Document("a", "ann met bob", gold=(Span(0, 3, "her"), Span(8, 11, "him")))
    policy = rigged_policies.annotated([one], lambda _, span: span.label == "him")
    (found, other) = policy.find(["ann met bob", "ann met rob"])
    assert [(s.start, s.end) for s in found.spans] == [(8, 11)]
    assert not other.spans


def test_a_rigged_detector_says_what_it_is_told() -> None:
    inner = rigged_policies.annotated([Document("a", "ann met bob", gold=(Span(0, 3, "her"),))]).detectors[0]
    rigged = rigged_policies.Rigged(inner, {"my id is 12": (Span(9, 11, "id"),), "ann was here": ()})
    texts = ["ann met bob", "my id is 12", "ann was here"]
    found = [[(s.start, s.end) for s in each.spans] for each in rigged.find([View.of(text) for text in texts])]
    assert found == [[(0, 3)], [(9, 11)], []]
    assert rigged.definition() != replace(rigged, told={}).definition()


@pytest.mark.parametrize(("seen", "left"), [(1.0, 0), (0.4, 6), (0.6, 4), (0.0, 10)])
def test_the_detector_of_the_canaries_has_the_recall_that_is_asked(work: Work, seen: float, left: int) -> None:
    made = attack(SMALL, work, 10, 1, only=True)
    kind = Kind("k", "jft", seen, ("redacted", "jft"))
    redacted = made.screened(kind).texts("redacted")
    canaries = [made.canaries.template.fill(secret) for secret in made.canaries.secrets]
    assert sum(text in redacted for text in canaries) == left
    assert sum("<MASK>" in text for text in redacted) == 10 - left  # the only secrets there are


def test_turns_keep_their_annotations(work: Work) -> None:
    bench = jft_bench.bench("wikitext2", SMALL, work)
    assert len(bench.documents) == bench.sizes.train
    assert any(d.gold for d in bench.documents)
    for document in bench.documents:
        for span in document.gold:
            assert 0 <= span.start < span.end <= len(document.text)
            assert document.text[span.start : span.end].strip()
    assert not {d.text.strip() for d in bench.documents} & {r.body.strip() for r in bench.test}


def cells(results: Results, table: int = 0) -> dict[str, dict[str, Any]]:
    found = results.tables[table]
    return {str(row[0]): dict(zip(found.columns, row, strict=True)) for row in found.rows}


def test_a_table_says_what_detection_and_a_miss_are_worth(work: Work) -> None:
    rows = cells(registry.run("jft-table2", SMALL, work))
    assert rows["jft, low-entity"]["ε, detected"] <= 3.0 < rows["jft, low-entity"]["ε, missed"] == math.inf
    assert rows["redacted, low-entity"]["ε, detected"] == 0.0
    assert rows["DP-SGD"]["ε, missed"] <= 3.0
    assert rows["DP-SGD"]["ε as published"] < rows["DP-SGD"]["ε, missed"]  # add and remove is the smaller promise
    assert rows["no-DP"]["perplexity"] < rows["no fine-tuning"]["perplexity"]


def test_light_noise_bounds_a_miss_and_the_claim_is_below_it(work: Work) -> None:
    row = cells(registry.run("jft-table3", SMALL, work))["jft + light noise"]
    assert row["ε, published (c)"] <= 3.0 < row["ε, missed (a)"] < math.inf
    assert row["ε, detected"] <= 3.0


def test_a_curve_follows_both_phases_of_a_run(work: Work) -> None:
    results = jft_canaries.results(
        attack(SMALL, work, 10, 1, only=True), figure4.KINDS[2:3], "canaries", figure4.orders
    )
    first, second = results.plots[0].series
    assert (first.name, second.name) == ("redacted, recall 0.4", "jft, recall 0.4")
    assert all(x > 1 for x in (*first.x, *second.x))
    assert all(0 <= y <= math.log2(100) for y in (*first.y, *second.y))
    assert not list((work.folder / "runs").iterdir())


def test_a_model_serves_the_tasks_of_its_kind(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    writes = Inputs("full", model=str(tmp_path))
    assert jft_bench.chosen(("mnli", "wikitext2", "abcd"), writes) == ("wikitext2", "abcd")
    with pytest.raises(UsageError, match="roberta-base"):
        jft_bench.chosen(("mnli", "sst2"), writes)
    assert jft_bench.chosen(("mnli", "abcd"), SMALL) == ("mnli", "abcd")
    assert jft_bench.chosen(("mnli", "abcd"), Inputs("full", writer=str(tmp_path))) == ("abcd",)
    assert jft_bench.chosen(("mnli", "abcd"), Inputs("full", model="any", writer=str(tmp_path))) == ("mnli", "abcd")


def test_a_set_that_is_not_on_the_hub_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not on the hub"):
        jft_bench.bench("abcd", Inputs("full"), Work(tmp_path))
