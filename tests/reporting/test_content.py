"""What the report says: every mechanism, every number also as data, bands, bounds, recall by kind."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from leaks import told
from taciturn.auditing.lower_bounds.two_sided import clopper_pearson
from taciturn.errors import DataError
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.guarantees.claims import epsilon_spent
from taciturn.privacy.guarantees.theorems import bayesian, recall_bound
from taciturn.reporting import RunView, data, render
from taciturn.reporting.content import as_data
from taciturn.reporting.formats import FORMATTERS
from taciturn.reporting.sections import recall

NUMBER = re.compile(r"(?:[\d,]*\d(?:\.\d+)?\xa0×\xa0)?10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|∞|\d[\d,]*(?:\.\d+)?%?")
SAID = {"95", "1"}
"""Levels that a table names in words, "95 %:"."""


class Cells(HTMLParser):
    """The text of every cell of every table and list of pairs."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.cells: list[str] = []
        self.depth = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        del attrs
        if tag in ("td", "th", "dd"):
            self.depth += 1
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in ("td", "th", "dd")

    def handle_data(self, text: str) -> None:
        if self.depth:
            self.cells[-1] += text + " "


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


@pytest.mark.parametrize("number", [4, 8])
def test_every_number_of_a_table_is_in_the_data(
    told: dict[int, dict[str, Any]], shown: dict[int, str], number: int
) -> None:
    known = list(leaves(json.loads(json.dumps(as_data(told[number])))))
    numbers = [math.inf if each == "inf" else each for each in known if isinstance(each, int | float) or each == "inf"]
    formatted = {form(float(n)) for n in numbers for form in FORMATTERS.values()} | SAID
    formatted |= {token for each in known if isinstance(each, str) for token in NUMBER.findall(each)}
    cells = Cells(shown[number]).cells
    ranks = {str(i) for i in range(1, 11)}  # of canaries, by their place in a list of the data
    found = [token for cell in cells for token in NUMBER.findall(cell)]
    assert len(found) > 300
    assert [token for token in found if token not in formatted and token not in ranks] == []


def test_every_mechanism_is_told(eight: list[RunView], told: dict[int, dict[str, Any]], shown: dict[int, str]) -> None:
    content, page = told[8], shown[8]
    assert [len(each["runs"]) for each in content["protected"]] == [1] * len(eight)
    for each in content["protected"]:
        assert each["sentences"][0].split(".")[0] in page
    assert "has no words for" not in page
    for run in eight:
        assert all(claim.unit.replace("'", "&#39;") in page for claim in run.guarantees)
    assert content["unbounded"] == ["unprotected", "redacted"]
    assert [run["run"] for run in content["training"]["accuracy"]] == ["classifier"]
    assert set(content["epsilon_delta"]) == {
        "substitution",
        "substitution of a detected secret",
        "add-remove of units of a user and an entity, 3 at once",
        "add-remove of a user",
        "add-remove",
    }


def test_curves_are_those_of_the_certificate(eight: list[RunView], told: dict[int, dict[str, Any]]) -> None:
    """jft: redacted text is the same in both worlds of a detected secret; it must not count as read without noise."""
    for run in eight[:6]:
        relation = run.plan["relation"]
        claim = next(g for g in run.guarantees if g.finite and g.relation == relation)
        curves = [c for each in told[8]["epsilon_delta"].values() for c in each if c["run"] == run.name]
        points = list(zip(curves[0]["delta"], curves[0]["epsilon"], strict=True))
        below = min(e for d, e in points if d < claim.delta * 10 and d > claim.delta / 10)
        above = max(e for d, e in points if d < claim.delta * 10 and d > claim.delta / 10)
        assert below <= claim.epsilon <= above


def test_the_curve_of_k_is_the_accountants(
    four: list[RunView], eight: list[RunView], told: dict[int, dict[str, Any]]
) -> None:
    single = told[1]["epsilon_k"]["records, substitution"]
    units = next(curves for what, curves in told[8]["epsilon_k"].items() if what.startswith("units"))
    assert single[0]["epsilon"] == [epsilon_spent(four[3].events, "substitution", 8e-5, int(k)) for k in single[0]["k"]]
    assert single[0]["epsilon"][0] == pytest.approx(four[3].guarantees[0].epsilon)
    at = dict(zip(units[0]["k"], units[0]["epsilon"], strict=True))
    for claim in eight[3].guarantees:
        if claim.detail["k"] in at:
            assert at[claim.detail["k"]] == pytest.approx(claim.epsilon)
    assert units[0]["k"] == sorted(units[0]["k"])


def test_the_band_is_of_clopper_and_pearson(four: list[RunView], told: dict[int, dict[str, Any]]) -> None:
    found = told[1]["epsilon_gamma"][0]
    gamma, epsilon = found["band"]["gamma"], found["band"]["epsilon"]
    assert gamma["estimate"] == 20 / 200
    assert gamma["high"] == recall_bound(20, 200)
    assert gamma["low"] == clopper_pearson(20, 200, 0.1)[0]
    assert epsilon["low"] < epsilon["estimate"] < epsilon["high"] == found["measured"][1]
    profile = compose(four[3].events, "substitution")
    assert epsilon["low"] == pytest.approx(bayesian(profile, gamma["low"], found["delta2"], found["delta"]).epsilon)


def test_bounds_of_a_stratified_sample_are_taken_as_they_are(make_run: Callable[..., Path]) -> None:
    folder = make_run("stratified")
    path = folder / "evidence.json"
    evidence = json.loads(path.read_text("utf-8")) | {"label_unit": "record", "miss_bounds": [0.2, 0.03]}
    path.write_text(json.dumps(evidence), "utf-8")
    content = data([RunView.load(folder)])
    found = content["epsilon_gamma"][0]
    assert found["measured"][0] == 0.2
    assert found["delta2"] == 0.03
    assert found["band"]["gamma"] == {"low": 0.0, "estimate": 0.2, "high": 0.2}
    assert [row["at_least"] for row in content["recall"][0]["rows"]] == pytest.approx([0.8, 0.97])
    assert content["recall"][0]["rows"][0]["recall"] is None


def test_upper_against_lower(told: dict[int, dict[str, Any]], shown: dict[int, str]) -> None:
    content = told[4]
    rows = {(row["run"], row["attack"]): row for row in content["against"]}
    compared = rows["crt-skeletons", "exposure"]
    assert (compared["lower"], compared["upper"], compared["exceeded"]) == (0.123, 2.2242, False)
    assert compared["about"] == "a secret in one record, by substitution"
    assert rows["redacted", "exposure"]["upper"] is None
    assert rows["redacted", "exposure"]["why"]
    assert "without a certificate" in rows["redacted", "membership"]["why"]
    page = shown[4]
    assert "Lower against upper bound: a secret in one record, by substitution" in page
    assert "claim refuted" not in page


def test_a_refuted_claim_is_said(make_run: Callable[..., Path]) -> None:
    folder = make_run("refuted")
    audit = json.loads((folder / "audit.json").read_text("utf-8"))
    audit["findings"][0]["detail"]["certificate"] |= {"eps_lower": 3.4567, "exceeded": True}
    audit["findings"][0]["verdict"] = "leak"
    (folder / "audit.json").write_text(json.dumps(audit), "utf-8")
    page = render([RunView.load(folder)])
    assert "claim refuted" in page
    assert "3.45" in Cells(page).cells[next(i for i, c in enumerate(Cells(page).cells) if "3.45" in c)]
    assert "the exposure attack found a leak" in page


def test_open_assumptions_are_listed_once_with_the_runs_that_rest_on_them(told: dict[int, dict[str, Any]]) -> None:
    sign = told[4]["sign"]
    texts = [each["text"] for each in sign["open"]]
    assert len(texts) == len(set(texts)) >= 3
    covered = next(each for each in sign["open"] if "conservative policy marks every" in each["text"])
    assert covered["runs"] == ["crt-published", "crt-skeletons"]
    assert all(each["how"] for each in sign["open"])
    assert {each["run"] for each in sign["against"]} >= {"unprotected", "redacted"}


def test_the_way_of_the_records_is_told_in_words(shown: dict[int, str]) -> None:
    page = shown[4]
    label = re.findall(r'aria-label="(9,000 records read[^"]*)"', page)[0]
    for piece in (
        "4,100 public",
        "4,896 private",
        "4 quarantined",
        "182 copies",
        "6,120 secrets redacted",
        "4,890 of them",
    ):
        assert piece in label
        assert f">{piece.split()[0]} " in page  # and in the picture


def test_counts_of_the_corpus_are_read_where_it_lies(make_run: Callable[..., Path], tmp_path: Path) -> None:
    folder, corpus = make_run("mail"), tmp_path / "screened"
    corpus.mkdir()
    path = folder / "evidence.json"
    evidence = json.loads(path.read_text("utf-8"))
    evidence["counts"] = {name: evidence["counts"][name] for name in ("read", "public", "private", "quarantined")}
    path.write_text(json.dumps(evidence), "utf-8")
    (folder / "run.toml").write_text(f"corpus = {json.dumps(str(corpus))}\n", "utf-8")
    for duplicates, read, known in ((77, 9000, True), (77, 8999, False)):
        counts = evidence["counts"] | {"duplicates": duplicates, "read": read}
        (corpus / "manifest.json").write_text(json.dumps({"counts": counts}), "utf-8")
        rows = data([RunView.load(folder)])["corpora"][0]["rows"]
        assert ("Duplicates" in [row["what"] for row in rows]) == known
        assert next(row["n"] for row in rows if row["what"] == "Records read") == 9000


def rates(records: int, missed: int, bound: float) -> dict[str, Any]:
    return {
        "secrets": records,
        "missed": missed,
        "records": records,
        "records_missed": missed,
        "share": 0.1,
        "bound": bound,
    }


def test_recall_by_kind(make_run: Callable[..., Path], tmp_path: Path) -> None:
    kinds = {
        "PHONE_NUMBER": {"pi": rates(120, 6, 0.1), "both": rates(120, 0, 0.025)},
        "Zaphod 341752": {"pi": rates(80, 14, 0.25), "both": rates(80, 0, 0.037)},
    }
    file = tmp_path / "recall.json"
    file.write_text(json.dumps({"labels": 200, "missed_by_pi": 20, "missed_by_both": 0, "kinds": kinds}), "utf-8")
    run = RunView.load(make_run("mail"))
    table = data([run], [recall.read_recall(file)])["recall"][0]
    assert [(row["kind"], row["missed"]) for row in table["rows"]] == [
        ("all", 20), ("all", 0), ("phone number", 6), ("phone number", 0), ("kind 2", 14), ("kind 2", 0),
    ]  # fmt: skip
    assert table["rows"][0]["at_least"] == pytest.approx(1 - recall_bound(20, 200))
    page = render([run], [recall.read_recall(file)])
    assert "phone number" in page
    assert "Zaphod" not in page
    other = {"labels": 10, "missed_by_pi": 0, "missed_by_both": 0, "kinds": kinds}
    assert len(data([run], [other])["recall"][0]["rows"]) == 2  # of another sample
    file.write_text('{"labels": ["Zaphod', "utf-8")
    with pytest.raises(DataError, match=r"recall\.json: expected") as caught:
        recall.read_recall(file)
    assert "Zaphod" not in str(caught.value)


def test_a_seed_of_the_noise_is_not_told(make_run: Callable[..., Path]) -> None:
    folder = make_run("seeded", like="redacted")
    plan = json.loads((folder / "plan.json").read_text("utf-8"))
    plan["seeds"]["noise"] = 7654321
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    content = data([RunView.load(folder)])
    assert content["settings"][0]["seeds"] == {"model": 0, "data": 0, "noise": "stored"}
    assert not told("7654321", json.dumps(content))


def test_a_report_of_eight_runs_says_the_same_once(told: dict[int, dict[str, Any]]) -> None:
    assert len(told[8]["runs"]) == 8
    assert len(" ".join(told[8]["told"])) < 900
    assert len(told[4]["corpora"]) == len(told[4]["recall"]) == 1


def test_runs_that_protect_the_same_share_a_paragraph(make_run: Callable[..., Path]) -> None:
    run = RunView.load(make_run("plain", like="redacted"))
    paragraphs = data([run, run])["protected"]
    assert [[each["run"] for each in paragraph["runs"]] for paragraph in paragraphs] == [["plain (1)", "plain (2)"]]
