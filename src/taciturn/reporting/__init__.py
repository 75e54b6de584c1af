"""Reports over finished runs: an HTML page, the same content as plain data, and the model card of an exported model.

``write(out, runs)``, ``data(runs)``, ``RunView.load(folder)`` and ``card.write(folder, run)``. The page needs the
``report`` extra (jinja2, matplotlib); the model card needs nothing beyond the core.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from taciturn.errors import MissingExtra

_WHERE = {
    "RunView": "taciturn.reporting.finished_run",
    "data": "taciturn.reporting.content",
    "render": "taciturn.reporting.html",
    "save": "taciturn.reporting.html",
    "write": "taciturn.reporting.html",
}
__all__ = ["RunView", "data", "render", "save", "write"]

if TYPE_CHECKING:
    from taciturn.reporting.content import data
    from taciturn.reporting.finished_run import RunView
    from taciturn.reporting.html import render, save, write


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'taciturn.reporting' has no attribute {name!r}")
    try:
        return getattr(import_module(_WHERE[name]), name)
    except ModuleNotFoundError as error:
        if error.name in ("jinja2", "markupsafe", "matplotlib"):
            raise MissingExtra(error.name, "report") from error
        raise
