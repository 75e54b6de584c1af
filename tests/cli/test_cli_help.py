"""Help is part of the interface: every word of it is pinned. After a wanted change: pytest tests/cli --golden."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.cli.main import COMMANDS, STEPS, TOOLS, app, overview

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


def test_the_first_page_fits_a_terminal_and_shows_the_order_of_use(helps: dict[str, str]) -> None:
    """80 × 24 with a line left for the prompt below it."""
    lines = list(overview())
    assert helps["taciturn"] == "\n".join(lines) + "\n"
    assert len(lines) <= 23
    assert max(map(len, lines)) <= 80
    order = [line.split()[0] for line in lines if line.startswith("  ") and line.split()[0] in STEPS]
    assert order == ["init", "run", "screen", "sample", "review", "recall", "plan", "train", "certify", "verify", "audit",
                     "report", "export"]  # fmt: skip
    shown = [name for name, words in TOOLS.items() if any(f"{name:<11} {words}" in line for line in lines)]
    assert shown == list(TOOLS)
    files = {path.stem for path in (Path(overview.__globals__["__file__"]).parent).glob("*.py")}
    assert set(COMMANDS) <= files


def test_the_first_page_imports_no_command() -> None:
    code = (
        "import sys\nfrom taciturn.cli.main import run\nrun(['--help'])\n"
        "print([name for name in sys.modules if name in ('torch', 'numpy', 'pydantic', 'pyarrow', 'rich.table') "
        "or name.startswith('taciturn.') and name not in "
        "('taciturn.cli', 'taciturn.cli.main', 'taciturn.cli.options', 'taciturn.errors', 'taciturn._register')])"
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
