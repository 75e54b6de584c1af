"""The gallery has each kind of plot there is, drawn from numbers made up in its script."""

from __future__ import annotations

import importlib.util
import inspect
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from blocks import ROOT

from taciturn.reporting.figures import plots

DOCS = ROOT / "docs"


def kinds() -> set[str]:
    """The functions of plots.py that end in a picture."""
    return {
        name
        for name, each in inspect.getmembers(plots, inspect.isfunction)
        if each.__module__ == plots.__name__
        and not name.startswith("_")
        and each.__annotations__.get("return") == "str"
    }


def test_the_gallery_shows_and_names_every_kind_of_plot(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("gallery", DOCS / "gallery.py")
    assert spec is not None
    assert spec.loader is not None
    gallery = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(gallery)
    gallery.write(tmp_path)
    page = (DOCS / "gallery.md").read_text("utf-8")
    assert kinds()
    for name in kinds():
        assert f"(`{name}`)" in page, f"docs/gallery.md lacks the plot {name}"
        assert f"](images/gallery/{name}.svg)" in page
        drawn, kept = (ElementTree.parse(folder / f"{name}.svg") for folder in (tmp_path, DOCS / "images" / "gallery"))
        count = [len(list(each.iter())) for each in (drawn, kept)]
        assert abs(count[0] - count[1]) < 0.2 * count[0], f"python docs/gallery.py: {name} is drawn anew"
    assert {path.stem for path in (DOCS / "images" / "gallery").iterdir()} == kinds()
