"""The report: one HTML page that needs no network and no script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jinja2

from taciturn.reporting import pdf
from taciturn.reporting.content import collect
from taciturn.reporting.figures import section_figures
from taciturn.reporting.figures.drawing import DASHES
from taciturn.reporting.figures.svg import SERIES
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.formats import FORMATTERS, costs, kept, named

SECTIONS = (
    ("summary", "Summary"),
    ("protected", "What was protected"),
    ("claims", "Claims"),
    ("sign", "To sign"),
    ("budget", "ε against δ, k and γ"),
    ("training", "Training"),
    ("attacks", "Attacks"),
    ("data", "Data"),
    ("recall", "Recall"),
    ("settings", "Settings"),
    ("environment", "Environment"),
    ("limits", "Limits"),
)
TONES = {
    "proved": "good",
    "conditional": "warn",
    "estimate": "warn",
    "published-claim": "warn",
    "refuted": "bad",
    "none": "bad",
    "leak": "bad",
    "no leak found": "good",
    "inconclusive": "warn",
    "may be released": "good",
    "not yet": "warn",
    "do not": "bad",
}


def write(out: str | Path, runs: Sequence[RunView], recalls: Sequence[Mapping[str, Any]] = ()) -> Path:
    """Write the page for one run, or several side by side. Equal run folders give equal bytes (of HTML).

    A name that ends in .pdf prints the page with a Chromium on the PATH; UsageError without one. recalls: as in ``data``.
    """
    out = Path(out)
    if out.suffix.lower() == ".pdf":
        pdf.browser()  # its absence is told before the work
    return save(out, collect(runs, recalls))


def save(out: Path, content: Mapping[str, Any]) -> Path:
    """Write what ``collect`` gave, as HTML or PDF by the ending of ``out``."""
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.suffix.lower() == ".pdf":
        pdf.write(out, page(content), pdf.browser())
    else:
        out.write_text(page(content), encoding="utf-8", newline="\n")
    return out


def render(runs: Sequence[RunView], recalls: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page as a string."""
    return page(collect(runs, recalls))


def page(content: Mapping[str, Any]) -> str:
    """The page of what ``collect`` gave."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {**FORMATTERS, "named": named, "costs": costs, "kept": kept}
    return environment.get_template("template.html").render(
        d=content,
        plots={
            "budget": list(section_figures.budget(content)),
            "training": list(section_figures.training(content)),
            "against": list(section_figures.against(content)),
            "attacks": list(section_figures.attacks(content)),
        },
        pictures=section_figures.pictures(content),
        sections=SECTIONS,
        tones=TONES,
        series=SERIES,
        dashes=DASHES,
        version=version("taciturn"),
    )
