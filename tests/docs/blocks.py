"""Code blocks of Markdown pages, and what running one means.

| language | meaning |
|---|---|
| `sh` | each `taciturn` line runs, in this process, and must end with 0; a `python FILE` line's file and flags must exist |
| `console` | the same for lines after `$ `; what stands below them must be in what they say, `…` for anything |
| `python` | runs, all of a page in one namespace |
| `text` titled "output" | what the python block above it prints, `…` for anything; so is HTML outside of blocks (`shown`) |
| `toml` | valid settings of a run, or detectors |
| `text`, `json`, none | not run |

A block whose title begins with "needs" (a GPU, several machines) is not run; its options must still be known.

What is planned is small: where a page leaves sizes of a mechanism to their defaults (200 noised steps of 256 records), the
commands get those of ``SMALL`` by ``--set``, and ``taciturn.plan`` as options. What a page sets itself stays, save that two
passes over the data are enough and that one process screens: what several write, the same, is
tests/screening/engines/test_scale.py's.
"""

from __future__ import annotations

import contextlib
import glob
import io
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from world import SMALL, label, small

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)```(\w*)(?: +title=\"([^\"]*)\")?\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
ELSEWHERE = {
    "pip": "installs packages",
    "pipx": "installs packages",
    "make": "runs this very suite, or the demo",
    "torchrun": "starts processes: tests/training/distributed/test_command.py",
    "git": "fetches",
    "source": "of the shell",
}


@dataclass(frozen=True, slots=True)
class Block:
    """line: where it starts in the page. title: what the reader sees above it."""

    line: int
    language: str
    title: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [
        Block(text.count("\n", 0, m.start()) + 1, m[2], m[3] or "", re.sub(rf"^{m[1]}", "", m[4], flags=re.MULTILINE))
        for m in FENCE.finditer(text)
    ]


def commands(text: str) -> Iterator[list[str]]:
    """Words of each command; globs stand for the files here, as in a shell."""
    for line in text.replace("\\\n", " ").splitlines():
        if words := shlex.split(line, comments=True):
            yield [found for word in words for found in (sorted(glob.glob(word)) if "*" in word else [word]) or [word]]


def run_shell(block: Block, given: frozenset[str]) -> None:
    for words in commands(block.text):
        program, *rest = words
        if re.match(r"\w+=", program):
            continue
        if program == "taciturn":
            waits = rest[0] == "review" and "--merge" not in rest  # a page for a person: tests/reviewing
            known(rest) if waits or block.title.startswith("needs") else said(rest, given)
        elif program == "python":
            script = ROOT / (rest[0] if rest[0] != "-m" else rest[1].replace(".", "/") + ".py")
            if block.title.startswith("needs") and not script.exists():
                continue
            source = "".join(p.read_text("utf-8") for p in (script, script.with_name("common.py")) if p.exists())
            missing = [word for word in rest if word.startswith("--") and word not in source]
            assert not missing, f"{rest[0]} has no {missing}"
        else:
            assert program in ELSEWHERE, f"{program}: a command this test knows nothing of"


def run_python(block: Block, names: dict[str, Any]) -> str:
    """What it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block.text, "block", "exec"), names)
    return said.getvalue()


def agrees(expected: str, found: str) -> bool:
    """Whether a text is the one that a page shows, where … stands for anything; line ends as they are."""
    pattern = ".*".join(map(re.escape, expected.strip().split("…")))
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in found.strip().splitlines()), re.DOTALL) is not None


def shown(page: Path) -> list[str]:
    """What the page shows as a notebook would: tables and preformatted text in HTML outside of its blocks."""
    return [m[0] for m in re.finditer(r"^<(table|pre)>.*?</\1>$", FENCE.sub("", page.read_text("utf-8")), re.M | re.S)]


def run_console(block: Block, given: frozenset[str]) -> None:
    for piece in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        head, *expected = piece.replace("\\\n", " ").splitlines()
        (words,) = commands(head)
        assert words[0] == "taciturn"
        found = " ".join(said(words[1:], given).split())
        for line in expected:
            pattern = ".*".join(map(re.escape, " ".join(line.split()).split("…")))
            assert re.search(pattern, found), f"not said by `{head}`: {line}\n{found}"


def said(arguments: list[str], given: frozenset[str]) -> str:
    """What a command says. What it writes and the reader was given instead is removed first."""
    from taciturn.cli.main import run

    for flag, value in pairwise(arguments):
        if flag in ("-o", "--output") and value.rstrip("/") in given:
            path = Path(value)
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    said, arguments = io.StringIO(), small(arguments)
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        code = run(arguments)
    if arguments[0] == "sample" or arguments[:2] == ["corrections", "export"]:
        written = Path(arguments[arguments.index("-o") + 1])
        label(written)
        shutil.copy(written, "done.jsonl")
    refutable = arguments[0] == "certify" and "--recall" in arguments  # labels of this corpus may refute a claim
    assert code == 0 or (refutable and code == 4), (
        f"taciturn {' '.join(arguments)} ended with {code}:\n{said.getvalue()[-1500:]}"
    )
    return said.getvalue()


def planned_small(plan: Callable[..., Any]) -> Callable[..., Any]:
    """``taciturn.plan`` with what SMALL adds."""
    return lambda mechanism, *args, **options: plan(mechanism, *args, **SMALL.get(mechanism, {}) | options)


def known(arguments: list[str]) -> None:
    """The command line can be read; nothing runs."""
    from taciturn.cli.main import app
    from taciturn.errors import DataError

    with contextlib.suppress(
        DataError
    ):  # what it reads is not there: the folder of a run, which options look for first
        app.parse_args(arguments, exit_on_error=False, print_error=False)


def run_toml(block: Block) -> None:
    from taciturn.mechanisms.config import parse
    from taciturn.mechanisms.settings import RunConfig
    from taciturn.screening.policies import custom

    raw: dict[str, Any] = tomllib.loads(block.text)
    if "detector" in raw:
        Path("policy.toml").write_text(block.text, "utf-8")
        custom.detectors(Path("policy.toml"))
        return
    config = parse(RunConfig, {"mechanism": "crt", "corpus": "screened", "model": {"name": "gpt2"}} | raw, "the block")
    if "mechanism" in raw:
        from taciturn.mechanisms.registry import mechanism

        parse(mechanism(config.mechanism).Config, config.options, "options")
