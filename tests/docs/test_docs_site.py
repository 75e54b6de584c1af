"""The site: every page in its menu, no dead link, commands and public names described. After new help: pytest --golden."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from blocks import ROOT

import taciturn
from browsing import launched, patient
from taciturn.cli.main import COMMANDS

DOCS = ROOT / "docs"
COMMAND_PAGE = DOCS / "reference" / "commands.md"


class Page(HTMLParser):
    """ids: what a link may point at. links: what this page points at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids |= {value for value in (found.get("id"), found.get("name")) if value}
        if tag in ("a", "img") and (target := found.get("href") or found.get("src")):
            self.links.append(target)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(DOCS, folder / "docs")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    done = subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return folder / "site"


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}
    dead = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = target.is_file() and (
                not parts.fragment or target not in pages or parts.fragment in pages[target].ids
            )
            if not known and parts.fragment not in ("__top", "__skip"):
                dead.append(f"{path.relative_to(site)} → {link}")
    assert not dead, "\n".join(dead)


def test_every_page_is_in_the_menu_and_every_entry_is_a_page() -> None:
    listed = set(re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE))
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert listed <= there
    assert {page for page in there - listed if not page.startswith("papers/")} == set()


def test_the_page_of_libraries_names_each_of_them_and_files_that_exist() -> None:
    page = (DOCS / "dependencies.md").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = {name: of for name, of in project["optional-dependencies"].items() if name not in ("all", "dev")}
    _, _, table = page.partition("## Libraries, and what for")
    cells = set(re.findall(r"[\w-]+", " ".join(re.findall(r"^\|(.*)\|[^|]*\|$", table, re.MULTILINE))))
    needed = [line for of in (project["dependencies"], *extras.values()) for line in of]
    assert {re.match(r"[\w-]+", line)[0] for line in needed} | set(extras) <= cells  # type: ignore[index]
    files = re.findall(r"`(\w+/[\w/]+\.py)`", page)
    assert files
    assert [file for file in files if not (ROOT / "src" / "taciturn" / file).is_file()] == []


def test_links_of_the_readme_exist() -> None:
    for target in re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text("utf-8")):
        assert "://" in target or (ROOT / target).exists(), target


def test_formulas_are_in_the_page_and_need_no_script(site: Path) -> None:
    page = (site / "guarantees.html").read_text("utf-8")
    assert page.count("<math ") >= 2
    assert "$$" not in page
    for path in site.rglob("*.html"):
        assert not re.search(
            r"<(?:script|link)[^>]*(?:src|href)=\"https?://[^\"]*(?:katex|mathjax|cdn)", path.read_text("utf-8")
        )
    assert "&#36;0.05" in (site / "how-to" / "ray.html").read_text("utf-8").replace("$", "&#36;")
    assert "<math " not in (site / "how-to" / "ray.html").read_text("utf-8")


def _luminance(colour: str) -> float:
    """Relative luminance of WCAG 2.2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


@pytest.mark.parametrize(("scheme", "ground"), [("default", "#ffffff"), ("slate", "#16181d")])
def test_the_menu_can_be_read_on_its_tint(scheme: str, ground: str) -> None:
    """4.5 : 1, of the accent on a tenth of itself over the page's ground."""
    css = (DOCS / "stylesheets" / "contrast.css").read_text("utf-8")
    _, _, block = css.partition(f'[data-md-color-scheme="{scheme}"] {{')
    found = re.search(r"--md-accent-fg-color: (#\w{6});\s*--md-accent-fg-color--transparent: (#\w{6})1a;", block)
    assert found
    accent, tint = found.groups()
    assert accent == tint
    mixed = [round(0.1 * int(tint[i : i + 2], 16) + 0.9 * int(ground[i : i + 2], 16)) for i in (1, 3, 5)]
    light, dark = sorted((_luminance(accent), _luminance("#" + "".join(f"{c:02x}" for c in mixed))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_weak_contrast(scheme: str, site: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("chromium is not installed: the pages are not looked at in a browser")
    with api.sync_playwright() as playwright:
        page = patient(launched(playwright, program).new_context(color_scheme=scheme).new_page())
        for name in ("index", "tutorial", "guarantees", "gallery"):
            page.goto((site / f"{name}.html").as_uri())
            found = axe.Axe().run(page, options={"runOnly": ["color-contrast"]}).response["violations"]
            nodes = [node["html"] for each in found for node in each["nodes"]]
            assert not nodes, f"{name}: {nodes[:3]}"


def test_pages_of_recipes_lead_to_what_is_guaranteed_and_to_the_mechanisms() -> None:
    for path in (DOCS / "papers").glob("*.md"):
        text = path.read_text("utf-8")
        if path.name != "recipes.md":
            assert "](../guarantees.md)" in text, path.name
            assert "](../mechanisms.md)" in text, path.name
        assert not re.search(r"(?<![\[/`\w])docs/\w+\.md", text), path.name


def test_every_public_name_is_described(site: Path) -> None:
    page = Page(site / "reference" / "python.html")
    last = {name.rpartition(".")[2] for name in page.ids} | {"load_screened"}
    assert set(taciturn.__all__) - {"__version__"} <= last


def test_the_command_page_is_what_help_says(request: pytest.FixtureRequest) -> None:
    """The golden files are what help says: tests/cli/test_cli_help.py."""
    golden = ROOT / "tests" / "golden" / "all"
    parts = [
        "# Commands\n\nWhat `taciturn COMMAND --help-all` prints, in the order of use; `--help` is its first page.\n"
    ]
    for name in ("taciturn", *COMMANDS):
        said = (golden / f"{name}.txt").read_text("utf-8").rstrip()
        parts.append(f"## {name if name == 'taciturn' else f'taciturn {name}'}\n\n```text\n{said}\n```\n")
    page = "\n".join(parts)
    if request.config.getoption("--golden"):
        COMMAND_PAGE.write_text(page, "utf-8")
    assert COMMAND_PAGE.read_text("utf-8") == page
