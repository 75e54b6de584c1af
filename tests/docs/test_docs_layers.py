"""The picture of the layers is what the import contracts say, and CONTRIBUTING.md's map names what is there."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "taciturn"
PAGE = ROOT / "CONTRIBUTING.md"


def test_the_picture_is_drawn_from_the_contracts() -> None:
    spec = importlib.util.spec_from_file_location("layers", ROOT / "docs" / "layers.py")
    assert spec is not None
    assert spec.loader is not None
    layers = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(layers)
    picture = (ROOT / "docs" / "images" / "layers.svg").read_text("utf-8")
    assert picture == layers.draw(), "run python docs/layers.py"
    rooms = {each.name for each in SOURCE.iterdir() if (each / "__init__.py").exists()}
    assert rooms == {room for row in layers.contracts()[0] for room in row} - {"errors"}


def test_the_map_names_every_room_and_every_wing_and_nothing_else() -> None:
    map = re.search(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert map is not None
    named, above = set(), list[str]()
    for line in map[1].splitlines():
        found = re.match(r"((?:  )*)(\w+)/", line)
        assert found is not None, line
        above[len(found[1]) // 2 :] = [found[2]]
        named.add("/".join(above))
    packages = {str(each.parent.relative_to(SOURCE)) for each in SOURCE.rglob("__init__.py")} - {"."}
    assert named == packages


def test_every_path_of_the_page_exists() -> None:
    for path in re.findall(r"`((?:src|tests|docs|experiments|benchmarks)/[\w/.-]+)`", PAGE.read_text("utf-8")):
        assert (ROOT / path).exists(), path


def test_every_file_that_the_source_speaks_of_is_there() -> None:
    """Docstrings and comments name files without their folders; a move must not leave one behind."""
    there = {each.name for each in ROOT.rglob("*.py") if ".venv" not in each.parts}
    for source in SOURCE.rglob("*.py"):
        for name in re.findall(r"\b(\w+\.py)\b", source.read_text("utf-8")):
            assert name in there, f"{source.relative_to(SOURCE)} speaks of {name}"
