"""The `taciturn` command. Commands are imported when they run, so that help is quick and needs no torch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from cyclopts import App

from taciturn import __version__
from taciturn.cli.help import FLAG, Page
from taciturn.cli.options import rank
from taciturn.cli.spoken import on_the_command_line, options, refusal
from taciturn.errors import Elsewhere, Interrupted, MissingExtra, TaciturnError, UsageError

STEPS = {
    "init": "look at your files, write a commented project.toml",
    "run": "do all that follows, from a project.toml; goes on where it stopped",
    "screen": "redact what policies find, split the corpus into public and private",
    "sample": "draw the records that a person should label",
    "review": "label them in a page on this machine",
    "recall": "how much the policies miss, with a bound",
    "plan": "phases, noise, steps and ε of a run, before anything is trained",
    "train": "run the plan, with a ledger and checkpoints",
    "certify": "state what the run guarantees, from its ledger",
    "verify": "compute a certificate again, without torch",
    "audit": "attack the model, hold the results against the certificate",
    "report": "one page on one run or several",
    "export": "the model as a folder for others, with its certificate",
}
"""In the order of use, each with a few words for the first page of help."""

TOOLS = {
    "budget": "what noise and steps cost",
    "policies": "what can be detected",
    "preview": "policies on your text",
    "evaluate": "policies on annotated text",
    "corrections": "people's marks as policy",
    "plant": "put canaries into a corpus",
    "split": "who is a member, by coins",
    "check": "is a model supported",
    "generate": "let a model write",
    "synthesize": "a corpus it makes up",
    "recipe": "figures of the papers",
    "cite": "BibTeX of what a run used",
    "doctor": "what this machine can do",
    "demo": "all of it on simulated text",
}
COMMANDS = {**STEPS, **TOOLS}

app = App(
    name="taciturn",
    version=__version__,
    help="Language models that keep secrets: screen a corpus, train, certify, attack, report.",
    help_format="markdown",
    usage="Usage: taciturn COMMAND [OPTIONS]",
)
for _name in COMMANDS:
    app.command(f"taciturn.cli.{_name}:{_name}", name=_name)
app.command("taciturn.cli.completion:completion", name="--install-completion", show=False)


def main(argv: list[str] | None = None) -> None:
    """Run a command line and exit: 0 fine, 1 bug, 2 usage, 3 data, 4 guarantee not met, 5 gate closed, 130 interrupted."""
    sys.exit(run(sys.argv[1:] if argv is None else argv))


def run(argv: list[str]) -> int:
    """The exit code of a command line. Errors taciturn raises on purpose are one line on standard error."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Idle OpenMP threads that spin for long slow a shared machine several times, ones that never spin an idle one by half.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    try:
        if not argv or argv[0] in ("-h", "--help", FLAG):
            print("\n".join(overview()))
            return 0
        argv = ["/dev/stdin" if word == "-" else word for word in argv]  # cyclopts takes "-" for an option
        page = app.help_formatter = Page(everything=FLAG in argv)
        argv = ["--help" if word == FLAG else word for word in argv]
        result: Any = app(argv, exit_on_error=False, print_error=False, result_action="return_value")
        page.end(app.console)
    except TaciturnError as error:
        if rank() == 0:
            print(f"taciturn: {on_the_command_line(str(error), options(app, argv))}", file=sys.stderr)
        elif not isinstance(error, UsageError | Interrupted | Elsewhere):  # those process 0 has said
            print(f"taciturn (process {rank()}): {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("taciturn: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ModuleNotFoundError as error:
        from taciturn.cli.doctor import extra_of

        package = (error.name or "").partition(".")[0]
        if (extra := extra_of(package)) is None:
            raise
        print(f"taciturn: {MissingExtra(package, extra)}", file=sys.stderr)
        return MissingExtra.exit_code
    except Exception as error:
        from cyclopts import CycloptsError

        if not isinstance(error, CycloptsError):
            raise
        print(f"taciturn: {refusal(error, app, argv)}", file=sys.stderr)
        return 2
    return int(result) if isinstance(result, int) else 0


def overview() -> Iterator[str]:
    """The first page of help, 23 lines of at most 80 columns. cyclopts would list the commands by the alphabet, and knows
    a command's words only once its module is imported."""
    yield "Usage: taciturn COMMAND [OPTIONS]      also: --version, --install-completion"
    yield "Language models that keep secrets. In this order (COMMAND --help: an example):"
    yield from (f"  {name:<8} {words}" for name, words in STEPS.items())
    yield "Tools:"
    yield from _pairs(TOOLS)


def _pairs(words: Mapping[str, str]) -> Iterator[str]:
    cells = [f"{name:<11} {said}" for name, said in words.items()]
    half = (len(cells) + 1) // 2
    for left, right in zip(cells[:half], [*cells[half:], ""], strict=False):
        yield f"  {left:<39}{right}".rstrip()
