"""The page in a real browser: no sideways scrolling, nothing that axe objects to, and the same page printed."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import launched, patient
from taciturn.errors import TaciturnError, UsageError
from taciturn.reporting import pdf

WIDTHS = (1280, 700, 360)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    api = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: no look at the page in a browser"
    )
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: the page is not looked at in a browser")
    with api.sync_playwright() as playwright:
        made = launched(playwright, chromium)
        yield made
        made.close()


@pytest.fixture(scope="module")
def pages(shown: dict[int, str], tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Reports of 1, 4 and 8 runs, by their number."""
    folder = tmp_path_factory.mktemp("pages")
    for number, page in shown.items():
        (folder / f"{number}.html").write_text(page, "utf-8")
    return {number: folder / f"{number}.html" for number in shown}


@pytest.mark.parametrize("number", [1, 4, 8])
def test_nothing_scrolls_sideways_at_any_width(browser: Any, pages: dict[int, Path], number: int) -> None:
    page = patient(browser.new_page())
    page.goto(pages[number].as_uri())
    page.locator("summary").evaluate_all("all => all.forEach(s => s.parentElement.open = true)")
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        root = "document.documentElement"
        assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0, width
    page.close()


@pytest.mark.parametrize(("number", "scheme", "width"), [(8, "light", 360), (4, "dark", 1280), (1, "dark", 360)])
def test_axe_finds_nothing_serious(browser: Any, pages: dict[int, Path], number: int, scheme: str, width: int) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    # The policy of the page forbids any script, axe's too.
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True)
    page = patient(context.new_page())
    page.goto(pages[number].as_uri())
    page.locator("summary").evaluate_all("all => all.forEach(s => s.parentElement.open = true)")
    found = axe.Axe().run(page).response["violations"]
    context.close()
    assert [(each["id"], each["nodes"][0]["html"]) for each in found if each["impact"] in ("serious", "critical")] == []


def test_the_page_asks_for_nothing(browser: Any, pages: dict[int, Path]) -> None:
    page, asked = patient(browser.new_page()), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(pages[4].as_uri())
    page.close()
    assert [url for url in asked if not url.startswith("data:")] == [pages[4].as_uri()]


def test_the_keyboard_reaches_links_details_and_tables(browser: Any, pages: dict[int, Path]) -> None:
    page = patient(browser.new_page())
    page.goto(pages[1].as_uri())
    met = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        met.add(page.evaluate("document.activeElement.tagName"))
    page.close()
    assert {"A", "SUMMARY", "DIV"} <= met


def test_a_pdf_is_the_page_printed(tmp_path: Path, pages: dict[int, Path]) -> None:
    try:
        program = pdf.browser()
    except UsageError as error:
        pytest.skip(str(error))
    pdf.write(tmp_path / "report.pdf", pages[1].read_text("utf-8"), program)
    printed = (tmp_path / "report.pdf").read_bytes()
    assert printed.startswith(b"%PDF-")
    assert b"/Type /Page\n" in printed
    assert printed.count(b"/Type /Page\n") <= 14
    if shutil.which("pdftotext"):
        told = subprocess.run(
            ["pdftotext", tmp_path / "report.pdf", "-"], capture_output=True, text=True, check=True
        ).stdout
        assert "Before you sign" in told
        assert "independent Poisson draws" in told  # closed on the screen, open on paper
    assert list(tmp_path.iterdir()) == [tmp_path / "report.pdf"]


def test_without_a_browser_it_is_said_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="apt install chromium"):
        pdf.browser()


def test_a_browser_that_fails_leaves_nothing(tmp_path: Path) -> None:
    program = shutil.which("false")
    assert program is not None
    with pytest.raises(TaciturnError, match="did not print the page"):
        pdf.write(tmp_path / "report.pdf", "<p>", program)
    assert list(tmp_path.iterdir()) == []
