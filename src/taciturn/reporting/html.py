"""The report: one HTML page that needs no network and no script."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import jinja2

from taciturn.reporting import figures
from taciturn.reporting.content import collect
from taciturn.reporting.formats import FORMATTERS
from taciturn.reporting.plots import DASHES
from taciturn.reporting.svg import SERIES
from taciturn.reporting.view import RunView

SECTIONS = (
    ("summary", "Summary"),
    ("claims", "Claims"),
    ("budget", "ε against δ and γ"),
    ("training", "Training"),
    ("attacks", "Attacks"),
    ("data", "Data"),
    ("settings", "Settings"),
    ("environment", "Environment"),
    ("limits", "Limits"),
)
TONES = {
    "proved": "good",
    "conditional": "warn",
    "estimate": "warn",
    "published-claim": "warn",
    "none": "bad",
    "leak": "bad",
    "no leak found": "good",
    "inconclusive": "warn",
}


def write(out: str | Path, runs: Sequence[RunView]) -> Path:
    """Write the page for one run, or several side by side. Equal run folders give equal bytes."""
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(runs), encoding="utf-8", newline="\n")
    return out


def render(runs: Sequence[RunView]) -> str:
    """The page as a string."""
    content = collect(runs)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= FORMATTERS
    return environment.get_template("template.html").render(
        d=content,
        plots={
            "budget": list(figures.budget(content)),
            "training": list(figures.training(content)),
            "attacks": list(figures.attacks(content)),
        },
        sections=SECTIONS,
        tones=TONES,
        series=SERIES,
        dashes=DASHES,
        version=version("taciturn"),
    )
