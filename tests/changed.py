"""Which tests to run for what was changed since the last commit on the main line: `make quick`.

A source file's own test file where there is one, else those of its wing or room that import it, else the whole wing or room;
a changed test file itself.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[1]


def mirrored(changed: list[str], root: Path = ROOT) -> list[str]:
    """Paths for pytest, sorted, each once; empty where nothing that has tests was changed."""
    found = set()
    for name in map(PurePosixPath, changed):
        if name.parts[0] == "tests" and name.name.startswith("test_"):
            found.add(name)
        elif name.parts[:2] == ("src", "taciturn") and name.suffix == ".py":
            found |= _mirror(PurePosixPath(*name.parts[2:]), root)
        elif name.suffix == ".md":
            found.add(PurePosixPath("tests/docs/test_docs_site.py"))
    return sorted(str(each) for each in found if (root / each).exists() and not found & set(each.parents))


def _mirror(source: PurePosixPath, root: Path) -> set[PurePosixPath]:
    folder = PurePosixPath("tests") / source.parent
    while not (root / folder).is_dir():
        folder = folder.parent
    tests = sorted((root / folder).rglob("test_*.py"))
    own = [each for each in tests if each.stem.endswith(f"_{source.stem}")]
    imports = re.compile(rf"^ *(from|import) .*\b{source.stem}\b", re.MULTILINE)
    some = own if len(own) == 1 else [each for each in tests if imports.search(each.read_text("utf-8"))]
    return {PurePosixPath(each.relative_to(root)) for each in some} or {folder}


def changed(root: Path = ROOT) -> list[str]:
    """Files changed since the last commit, or by it where there is nothing new; not yet added ones included."""

    def git(*args: str) -> list[str]:
        return subprocess.run(["git", *args], cwd=root, check=True, capture_output=True, text=True).stdout.split("\n")[
            :-1
        ]

    new = [*git("diff", "--name-only", "HEAD"), *git("ls-files", "--others", "--exclude-standard")]
    return new or git("diff", "--name-only", "HEAD~1")


if __name__ == "__main__":
    print("\n".join(mirrored(changed())))
