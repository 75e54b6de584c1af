"""The page on a synthetic corpus, for the owner of the private text: local, no script, no network, mode 0600."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from taciturn.errors import UsageError
from taciturn.reporting.formats import FORMATTERS
from taciturn.text.atomic import write_bytes

PAGE, NUMBERS = "quality.html", "quality.json"
Json = Mapping[str, Any]


def write(folder: Path, synthetic: Path, measured: Json) -> Path:
    """Write page and numbers into ``folder`` (mode 0700), which must not lie in the corpus; the path of the page."""
    page = render(measured, synthetic.resolve().name).encode()
    checked(folder, synthetic)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_bytes(folder / NUMBERS, json.dumps(measured, indent=1, sort_keys=True).encode() + b"\n", 0o600)
    write_bytes(folder / PAGE, page, 0o600)
    return folder / PAGE


def checked(folder: Path, synthetic: Path) -> None:
    """Raise UsageError where the page would be shared with the corpus."""
    if synthetic.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise UsageError(
            f"{folder} lies in the corpus, which is there to be shared, and the page is computed on private text: name a "
            "folder elsewhere"
        )


def render(measured: Json, name: str) -> str:
    """The page as a string."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= FORMATTERS
    return environment.get_template("quality.html").render(m=measured, name=name, told=list(sentences(measured)))


def sentences(measured: Json) -> Iterator[str]:
    """What the numbers say, by the rules on the page."""
    apart = [each["name"] for each in measured["distances"] if each["differs"]]
    alike = [each["name"] for each in measured["distances"] if not each["differs"]]
    if apart:
        yield f"Synthetic and held-out text can be told apart by {_and(apart)}."
    if alike:
        yield f"By {_and(alike)} they cannot."
    yield copying(measured)
    if useful := measured["usefulness"]:
        yield _useful(useful)


def copying(measured: Json) -> str:
    """Whether more training text stands in the synthetic texts than in held-out ones."""
    if not measured["copied"]:
        return "What was copied from training text was not looked at: it was not given."
    more = [each["words"] for each in measured["copied"] if each["more"]]
    if more:
        return (
            f"Runs of {_and(list(map(str, more)))} words stand in training text more often than those of held-out text do: "
            "the model repeats what it was trained on."
        )
    if all(each["more"] is None for each in measured["copied"]):
        return "There are too few texts to say whether more is copied than held-out text shares anyway."
    return "No more of it was found to be copied from training text than held-out text shares with it anyway."


def _useful(useful: Json) -> str:
    ours = sum(useful["synthetic"]) / len(useful["synthetic"])
    said = f"A classifier trained on it gets {ours:.1%} of held-out labels right"
    if useful["interval"] is None:
        return f"{said.replace('%', ' %')}."
    theirs = sum(useful["original"]) / len(useful["original"])
    low, high = useful["interval"]
    judged = "fewer than" if high < 0 else "more than" if low > 0 else "not told apart from"
    return f"{said}, {judged} one of original text ({theirs:.1%}).".replace("%", " %")


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
