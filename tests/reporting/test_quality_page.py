"""The page on synthetic text: what it says follows from the numbers, and how it stands in a browser."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from browsing import launched, patient
from taciturn.reporting.quality import render, sentences


def measured(**changes: Any) -> dict[str, Any]:
    distance = {"value": 0.3, "mean": 0.2, "chance": 0.25, "higher": True}
    return {
        "number": 10_000,
        "unit": "sentence",
        "compared": {"synthetic": 5_000, "held_out": 800, "training": 5_000},
        "features": "weighted words and pairs of words",
        "distances": [
            {"name": "words", "p": 0.005, "differs": True, **distance},
            {"name": "lengths in words", "p": 0.4, "differs": False, **distance},
            {"name": "mauve-like", "p": 0.3, "differs": False, **distance, "higher": False},
        ],
        "copied": [
            {"words": 8, "synthetic": 0.31, "held_out": 0.1, "texts": [900, 700], "interval": [0.1, 0.3], "more": True},
            {"words": 16, "synthetic": 0.0, "held_out": 0.1, "texts": [90, 70], "interval": [-0.2, 0.0], "more": False},
            {"words": 32, "synthetic": 0.0, "held_out": 0.0, "texts": [0, 0], "interval": None, "more": None},
        ],
        "usefulness": {
            "synthetic": [0.8, 0.82, 0.78], "original": [0.9, 0.91, 0.92], "majority": 0.5, "trained_on": 400,
            "tested_on": 800, "interval": [-0.13, -0.07],
        },
        "perplexity": {"synthetic": 31.2, "held_out": 40.0},
        **changes,
    }  # fmt: skip


def test_it_says_what_the_numbers_say() -> None:
    told = " ".join(sentences(measured()))
    assert "told apart by words." in told
    assert "By lengths in words and mauve-like they cannot." in told
    assert "Runs of 8 words stand in training text more often" in told
    assert "80.0 % of held-out labels right, fewer than one of original text (91.0 %)" in told
    clean = [{**each, "more": False, "interval": [-0.1, 0.1]} for each in measured()["copied"]]
    alike = {**measured()["usefulness"], "interval": [-0.02, 0.03]}
    told = " ".join(sentences(measured(copied=clean, usefulness=alike)))
    assert "No more of it was found to be copied" in told
    assert "not told apart from one of original text" in told
    few = [{**each, "more": None, "interval": None} for each in measured()["copied"]]
    assert "too few texts" in " ".join(sentences(measured(copied=few)))
    assert "was not looked at" in " ".join(sentences(measured(copied=[], usefulness=None)))


@pytest.mark.parametrize("changes", [{}, {"copied": [], "usefulness": None, "perplexity": None}])
def test_it_says_that_it_is_for_its_owner(changes: dict[str, Any]) -> None:
    page = render(measured(**changes), "<b>synthetic")
    assert "Not to be shared." in page
    assert "&lt;b&gt;synthetic" in page
    assert "<script" not in page


def test_it_fits_any_width_and_axe_finds_nothing_serious(tmp_path: Path) -> None:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no look in a browser")
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: the page is not looked at in a browser")
    (tmp_path / "quality.html").write_text(render(measured(), "synthetic"), "utf-8")
    with api.sync_playwright() as playwright:
        browser = launched(playwright, chromium)
        for scheme, width in (("light", 1280), ("dark", 700), ("light", 360)):
            context = browser.new_context(
                color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
            )
            page = patient(context.new_page())
            page.goto((tmp_path / "quality.html").as_uri())
            root = "document.documentElement"
            assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") == 0, width
            found = axe.Axe().run(page).response["violations"]
            assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
            context.close()
        browser.close()
