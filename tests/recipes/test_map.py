"""Which figures and tables there must be, and the map of docs/papers.md: every file, name and test in it exists."""

from __future__ import annotations

import ast
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from taciturn.errors import UsageError
from taciturn.recipes import registry
from taciturn.recipes.jft.paper import LEVELS
from taciturn.recipes.recipe import PAPERS, Recipe

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MAP = DOCS / "papers.md"
WANTED = [
    *(f"crt-figure{i}" for i in range(2, 7)),
    *(f"jft-figure{i}" for i in range(2, 5)),
    *(f"jft-table{i}" for i in range(1, 9)),
    *(f"uedp-figure{i}" for i in range(2, 8)),
    "uedp-table2",
]


def test_every_figure_and_table_of_the_papers_has_a_recipe() -> None:
    assert registry.names() == WANTED


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'crt-figure3'"):
        registry.recipe("crt-figur3")


@pytest.mark.parametrize("name", registry.names())
def test_a_recipe_says_what_it_asks_and_what_differs(name: str) -> None:
    recipe = registry.recipe(name)
    assert isinstance(recipe, Recipe)
    assert recipe.name == name
    assert recipe.paper == name.split("-")[0] in PAPERS
    kind, number = re.fullmatch(r"\w+-(figure|table)(\d+)", name).groups()  # type: ignore[union-attr]
    assert recipe.item.lower() in (f"{kind} {number}", f"{kind} {'i' * int(number)}")
    for field in ("title", "asks", "paper_setting", "our_setting"):
        assert len(getattr(recipe, field)) > 10, field
    assert recipe.asks[-1] in ".?"
    assert recipe.differs
    assert recipe.published
    for table in recipe.published:
        assert table.rows
        assert table.source, f"{table.title}: where in the paper?"


@cache
def names(path: Path) -> frozenset[str]:
    """Functions, classes and constants at the top of a module."""
    found: set[str] = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return frozenset(found)


def rows() -> list[list[str]]:
    lines = [line for line in MAP.read_text("utf-8").splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if row[0] != "in the paper" and not set(row[0]) <= {"-"}]


@pytest.mark.parametrize(("column", "base"), [(1, ROOT / "src/taciturn"), (2, ROOT / "tests")])
def test_every_file_and_name_of_the_map_exists(column: int, base: Path) -> None:
    missing = []
    for row in rows():
        assert len(row) == 4, row
        named = re.findall(r"`([\w/]+\.py)(?:::(\w+))?`", row[column])
        if not named:
            missing.append(f"{row[0]}: names no file")
        for file, name in named:
            path = base / file
            if not path.is_file() or (name and name not in names(path)):
                missing.append(f"{row[0]}: {file}{'::' + name if name else ''}")
    assert not missing


def test_the_map_has_every_recipe() -> None:
    text = MAP.read_text("utf-8")
    assert [name for name in WANTED if f"papers/{name}.md" not in text] == []


def test_links_of_the_map_and_of_the_pages_lead_somewhere() -> None:
    pages = sorted((DOCS / "papers").glob("*.md"))
    assert pages
    dead = []
    for page in [MAP, *pages]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            if not target.startswith("http") and not (page.parent / target).exists():
                dead.append(f"{page.name}: {target}")
    assert not dead


def test_every_recipe_has_a_page_with_small_pictures() -> None:
    folder = DOCS / "papers"
    assert [name for name in WANTED if not (folder / f"{name}.md").exists()] == []
    assert [path.name for path in folder.glob("*.svg") if path.stat().st_size > 100_000] == []


def test_what_the_map_says_of_crts_medium_pages_stands_there() -> None:
    """The pages themselves are held to their rows."""
    told = {
        number: [
            line.removeprefix("- ")
            for line in (DOCS / "papers" / f"crt-figure{number}-medium.md").read_text("utf-8").splitlines()
            if line.startswith(("- As in", "- Not as in", "- Told apart", "- The other way"))
        ]
        for number in (2, 3, 4, 5)
    }
    better = "has a lower perplexity than"
    for name, behind in product(("MultiWOZ", "CustomerSim"), ("CRT-LSTM", "DPSGD-LSTM")):
        wanted = f"Told apart: {name}, CRT-LSTM with values {better} {behind}: over all tokens ("
        (line,) = [line for line in told[2] if line.startswith(wanted)]
        assert "; outside secrets (" in line
    for word, name in (("Told apart", "MultiWOZ"), ("The other way round", "CustomerSim")):
        assert any(line.startswith(f"{word}: {name}, CRT-LSTM {better} DPSGD-LSTM:") for line in told[2])
    assert told[3] == told[4] == []
    (line,) = told[5]
    assert line.startswith(
        "As in the paper: CustomerSim, membership accuracy of CRT is below that of non-private models"
    )
    page = (DOCS / "papers" / "crt-figure5-medium.md").read_text("utf-8")
    assert page.count("\n- Not told apart here: ") == 15


def test_what_the_map_says_of_jfts_table_2_stands_on_its_page() -> None:
    lines = (DOCS / "papers" / "jft-table2-medium.md").read_text("utf-8").splitlines()
    (ahead,) = [line for line in lines if line.startswith("- As in the paper: sst2, jft is ahead of DP-SGD")]
    assert [level for level in LEVELS if f" {level} (" in ahead] == [x for x in LEVELS if x != "low-contextual"]
    (untold,) = [line for line in lines if line.startswith("- Not told apart here: sst2, jft is ahead of redaction")]
    assert all(f" {level} (" in untold for level in LEVELS)
    assert not any(": sst2, jft is ahead of redaction" in line and "ot told" not in line for line in lines)
    scores = _scores(lines, "sst2")
    jft = sorted(scores[f"jft, {level}"] for level in LEVELS)
    redacted = sorted(scores[f"redacted, {level}"] for level in LEVELS)
    said = f"DP-SGD has {scores['DP-SGD']} %, jft {jft[0]} to {jft[-1]}; what"
    assert said in (text := MAP.read_text("utf-8"))
    assert f"redaction alone has {redacted[0]} to {redacted[-1]} %, no-DP {scores['no-DP']}." in text


def _scores(lines: list[str], task: str) -> dict[str, str]:
    """First number of each row of the table of a task."""
    table = lines[lines.index(f"**{task}**") :]
    end = next(at for at, line in enumerate(table) if line.startswith("ε at the task"))
    return {cells[1].strip(): cells[2].split()[0] for line in table[:end] if len(cells := line.split("|")) == 8}


def test_what_the_map_says_of_the_turns_of_jfts_table_2_stands_on_its_page() -> None:
    lines = (DOCS / "papers" / "jft-table2-medium.md").read_text("utf-8").splitlines()
    said = [line for line in lines if line.startswith("- ") and ": abcd, " in line]
    assert [line.partition(":")[0] for line in said] == ["- As in the paper"] * 3 + ["- Told apart"]
    assert [line.count(" against ") for line in said] == [2, 2, 1, 1]
    assert "jft with values (ours) is ahead of jft" in said[3]
    scores, text = _scores(lines, "abcd"), " ".join(MAP.read_text("utf-8").split())
    low, high = (f"{{}}, {level}" for level in LEVELS[2:])
    assert f"from {scores[low.format('redacted')]} and {scores[high.format('redacted')]}, where" in text
    assert f"the perplexity to {scores[low.format('jft')]} and {scores[high.format('jft')]}; " in text
    values = scores[low.format("jft with values (ours)")]
    assert f"DP-SGD ends at {scores['DP-SGD']}, no-DP at {scores['no-DP']}, values in the masks at {values}." in text


def test_what_the_map_says_of_jfts_table_6_stands_on_its_page() -> None:
    page = (DOCS / "papers" / "jft-table6-medium.md").read_text("utf-8")
    assert "- As in the paper: sst2, jft is ahead of CRT: low-contextual (" in page
    assert "- Not told apart here: sst2, jft is ahead of CRT: high-entity (" in page
    table = {c[1].strip(): [x.strip() for x in c] for line in page.splitlines() if len(c := line.split("|")) == 7}
    assert {row[3] for name, row in table.items() if ", high" in name or ", low" in name} == {"0.707"}
    few, many = (table[f"CRT as published, {level}"][5] for level in ("low-contextual", "high-entity"))
    said = f"the same σ is ε = 3 of jft and {few} and {many} of CRT"
    assert said in MAP.read_text("utf-8")
    assert {table[f"jft, {level}"][5] for level in ("low-contextual", "high-entity")} == {"3.00"}


def test_what_the_map_says_of_jfts_table_4_stands_on_its_page() -> None:
    lines = (DOCS / "papers" / "jft-table4-medium.md").read_text("utf-8").splitlines()
    score = {cells[1].strip(): cells[3].split()[0] for line in lines if len(cells := line.split("|")) == 8}
    (untold,) = [line for line in lines if line.startswith("- Not told apart here: sst2, jft after a screened share")]
    assert untold.count(" against ") == 2
    few, some, every = (score[f"jft, {share}"] for share in ("0.155 % screened", "5 % screened", "all redacted"))
    said = f"{few} % after a first phase on 101 records, {some} after one on 5 %, neither told apart from DP-SGD"
    assert f"{said} ({score['DP-SGD']}); {every} after one on all" in MAP.read_text("utf-8")


def test_what_the_map_says_of_the_medium_page_that_was_run_again_stands_there() -> None:
    lines = (DOCS / "papers" / "reruns.md").read_text("utf-8").splitlines()
    rows = [each.split(" | ") for each in lines if each.startswith("| [uedp-figure3-medium]")]
    first, again = (
        [[*map(float, re.findall(r": ([\d.]+) against ([\d.]+)", row[at])[0])] for row in rows] for at in (2, 3)
    )
    same = sum(row[2].partition(":")[0] == row[3].partition(":")[0] for row in rows)
    untold = sum(row[3].startswith("Not told apart") for row in rows)
    said = (
        f"of its {len(rows)} verdicts {same} came out again, {untold} were not told apart, all with the same row ahead"
    )
    assert said in " ".join(MAP.read_text("utf-8").split())
    assert all((a > b) == (c > d) for (a, b), (c, d) in zip(first, again, strict=True))
    assert sum("user-level" in row[1] and row[3].startswith("Not as") for row in rows) == 1


def test_what_the_map_says_of_uedps_figure_3_stands_on_its_page() -> None:
    page = (DOCS / "papers" / "uedp-figure3-medium.md").read_text("utf-8").replace("\xa0", " ")
    table = {cells[1].strip(): cells for line in page.splitlines() if len(cells := line.split("|")) == 8}
    squared = table["Algorithm 1, Org, code's noise"]
    assert squared[2].split()[0] == "18.1"
    assert squared[4].strip() == "0.504"
    assert squared[5].strip() == "7.28 × 10⁸"
    assert table["no-DP"][2].split()[0] == "17.5"
    assert "Algorithm 1 with its printed noise is ahead of its start: Org" in page
    (line,) = [
        line for line in page.splitlines() if line.startswith("- Not as in the paper: uedp is ahead of user-level")
    ]
    assert line.count(" against ") == 3
