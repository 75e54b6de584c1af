"""What `taciturn demo` prints at the end, on made runs: no model is trained here."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from taciturn.cli.demo import MODELS, _claims, _table
from taciturn.reporting.finished_run import RunView

WIDTH = 80


def printed(views: list[RunView]) -> list[str]:
    console = Console(file=StringIO(), width=WIDTH, highlight=False)
    console.print(_table(views))
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def large(view: RunView) -> RunView:
    """The same run with the widest numbers there may be."""
    rows = tuple({**row, **({"perplexity": 123456.7, "perplexity_public_tokens": 98765.4} if row["kind"] == "eval" else {})}
                 for row in view.metrics)  # fmt: skip
    findings: list[Any] = []
    for each in view.findings or ():
        detail, null = {**each.detail, "accuracy": 0.9876}, {**each.null, "p95": 12.345, "p": 1.234e-12}
        findings.append(replace(each, score=19.9316, detail=detail, null=null))
    return replace(view, metrics=rows, findings=tuple(findings))


@pytest.mark.parametrize("wide", [False, True])
def test_a_row_is_one_line_of_80_columns_and_the_heads_are_two(four: list[RunView], wide: bool) -> None:
    lines = printed([large(view) if wide else view for view in four])
    assert max(map(len, lines)) <= WIDTH
    titles = [model.title for model in MODELS]
    at = [next(i for i, line in enumerate(lines) if line.startswith(title)) for title in titles]
    assert at == list(range(len(lines) - len(titles), len(lines))), "one line a model, and nothing below them"
    assert len(lines) == 1 + 2 + len(titles), "a title, and heads of two lines"
    ends = [
        [len(title) + cell.end() for cell in re.finditer(r"\S+", lines[i].removeprefix(title))]
        for i, title in zip(at, titles, strict=True)
    ]
    assert all(each == ends[0] for each in ends), "numbers are right-aligned"
    assert len(ends[0]) == 7
    assert all("…" not in line for line in lines), "nothing is cut off"


def test_numbers_are_those_of_the_runs(four: list[RunView]) -> None:
    row = next(line for line in printed(four) if line.startswith("unprotected")).split()
    exposure, member = four[0].finding("exposure"), four[0].finding("membership")
    assert exposure is not None
    assert member is not None
    assert row[3:] == [f"{exposure.score:.2f}", "7.61", "1e-05", "0.680", "0.526"]


def test_claims_stand_below_the_table_whole(four: list[RunView]) -> None:
    """ε is never without notion, unit, relation, δ and status."""
    lines = _claims(four)
    assert [line.partition(":")[0] for line in lines if "in one record" in line] == [
        model.title for model in MODELS if model.mechanism in ("crt", "sgd")
    ]
    for model, view in zip(MODELS, four, strict=True):
        for claim in view.guarantees:
            assert (f"{model.title}: {claim.label()}" in lines) == (claim.notion == "confidentiality")
