"""Help is part of the interface: every word of it is pinned. After a wanted change: pytest tests/cli --golden."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.cli.main import COMMANDS

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = ("taciturn", *COMMANDS)


@pytest.fixture(scope="session")
def helps() -> dict[str, str]:
    code = (
        "import contextlib, io, json\nfrom taciturn.cli.main import run\nall = {}\n"
        f"for name in {NAMES!r}:\n"
        "    said = io.StringIO()\n"
        "    with contextlib.redirect_stdout(said):\n"
        "        assert run(['--help'] if name == 'taciturn' else [name, '--help']) == 0\n"
        "    all[name] = said.getvalue()\n"
        "print(json.dumps(all))"
    )
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    import json

    helps: dict[str, str] = json.loads(done.stdout)
    return {name: "\n".join(line.rstrip() for line in text.splitlines()) + "\n" for name, text in helps.items()}


@pytest.mark.parametrize("name", NAMES)
def test_help_is_as_pinned(name: str, helps: dict[str, str], request: pytest.FixtureRequest) -> None:
    path = GOLDEN / f"{name}.txt"
    if request.config.getoption("--golden"):
        path.write_text(helps[name], "utf-8")
    assert helps[name] == path.read_text("utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str, helps: dict[str, str]) -> None:
    assert f"taciturn {name}" in helps[name].split("Example:")[1]
    if name != "demo":
        assert "--json" in helps[name]
