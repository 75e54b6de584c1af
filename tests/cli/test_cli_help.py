"""Help is part of the interface: every word of it is pinned. After a wanted change: pytest tests/cli --golden."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.cli.main import COMMANDS, STEPS, TOOLS, app, overview

GOLDEN = Path(__file__).parents[1] / "golden"
NAMES = ("taciturn", *COMMANDS)
CASES = [(name, flag) for name in NAMES for flag in ("--help", "--help-all")]
BELOW = ("corrections export", "corrections import")
"""Commands of a command: their first page fits, too."""


@pytest.fixture(scope="session")
def helps() -> dict[str, str]:
    """What each command says, by its words and the flag, on a terminal of 80 columns."""
    lines = [[*([] if name == "taciturn" else name.split()), flag] for name, flag in CASES]
    lines += [[*name.split(), "--help"] for name in BELOW]
    code = (
        "import contextlib, io, json\nfrom taciturn.cli.main import run\nall = {}\n"
        f"for line in {lines!r}:\n"
        "    said = io.StringIO()\n"
        "    with contextlib.redirect_stdout(said):\n"
        "        assert run(line) == 0\n"
        "    all[' '.join(line)] = said.getvalue()\n"
        "print(json.dumps(all))"
    )
    env = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    helps: dict[str, str] = json.loads(done.stdout)
    return helps


def said(helps: dict[str, str], name: str, flag: str) -> str:
    return helps[flag if name == "taciturn" else f"{name} {flag}"]


@pytest.mark.parametrize(("name", "flag"), CASES)
def test_help_is_as_pinned(name: str, flag: str, helps: dict[str, str], request: pytest.FixtureRequest) -> None:
    path = GOLDEN / ("all" if flag == "--help-all" else "") / f"{name}.txt"
    if request.config.getoption("--golden"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(said(helps, name, flag), "utf-8")
    assert said(helps, name, flag) == path.read_text("utf-8")


@pytest.mark.parametrize("name", [*NAMES, *BELOW])
def test_a_first_page_of_help_fits_80_columns_and_24_lines_with_the_prompt(name: str, helps: dict[str, str]) -> None:
    lines = said(helps, name, "--help").splitlines()
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if line != line.rstrip()]


@pytest.mark.parametrize("name", COMMANDS)
def test_what_the_first_page_leaves_out_is_in_the_whole(name: str, helps: dict[str, str]) -> None:
    """Every option the command takes is in --help-all, whose topics the first page names; and no word of the first page
    is lost there."""
    first, whole = (re.sub(r"\s+", " ", said(helps, name, flag)) for flag in ("--help", "--help-all"))
    if name != "corrections":
        for argument in app[name].assemble_argument_collection():
            bare = argument.name.lstrip("-")
            assert not argument.show or {f"-{bare}", f"--{bare}", f"--[no-]{bare}", bare.upper()} & set(
                whole.split()
            ), bare
    head, _, topics = first.partition("More with --help-all: ")
    assert all(f"{topic}: " in whole for topic in topics.rstrip(". ").split(", ") if topic)
    assert set(head.split()) <= set(whole.split())


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str, helps: dict[str, str]) -> None:
    shown = said(helps, name, "--help")
    assert f"taciturn {name}" in shown.split("Example:")[1]
    assert "--json" in shown or name == "demo"


def test_the_first_page_shows_the_order_of_use(helps: dict[str, str]) -> None:
    lines = list(overview())
    assert helps["--help"] == helps["--help-all"] == "\n".join(lines) + "\n"
    order = [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in STEPS]
    assert order == ["init", "run", "screen", "sample", "review", "recall", "plan", "train", "certify", "verify", "audit",
                     "report", "export"]  # fmt: skip
    shown = [name for name, words in TOOLS.items() if any(f"{name:<11} {words}" in line for line in lines)]
    assert shown == list(TOOLS)
    files = {path.stem for path in (Path(overview.__globals__["__file__"]).parent).glob("*.py")}
    assert set(COMMANDS) <= files


def test_the_first_page_imports_no_command() -> None:
    code = (
        "import sys\nfrom taciturn.cli.main import COMMANDS, run\nrun(['--help'])\n"
        "print([name for name in sys.modules if name in ('torch', 'numpy', 'pydantic', 'pyarrow', 'rich.table') "
        "or name.startswith('taciturn.') and not name.startswith(('taciturn.cli', 'taciturn.errors', 'taciturn._register'))"
        " or name in [f'taciturn.cli.{each}' for each in COMMANDS]])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_its_options(shell: str, tmp_path: Path) -> None:
    from taciturn.cli.main import run

    script = tmp_path / f"taciturn.{shell}"
    assert run(["--install-completion", "--shell", shell, "-o", str(script)]) == 0
    text = script.read_text("utf-8")
    assert not [name for name in COMMANDS if name not in text]
    assert "conservative" in text
    if shell == "bash" and shutil.which("bash"):
        subprocess.run(["bash", "-n", str(script)], check=True)
    assert app.name == ("taciturn",)


def test_completion_without_a_known_shell_is_a_usage_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from taciturn.cli.main import run

    monkeypatch.setenv("SHELL", "/bin/oil")
    for name in ("ZSH_VERSION", "BASH_VERSION", "FISH_VERSION", "PSModulePath", "ZSH_NAME"):
        monkeypatch.delenv(name, raising=False)
    code = run(["--install-completion", "-o", str(tmp_path / "x")])
    assert (code, (tmp_path / "x").exists()) in ((2, False), (0, True))  # a parent process may still be a known shell
    assert "Traceback" not in capsys.readouterr().err
