"""Reports over finished runs: an HTML page, the same content as plain data, and the model card of an exported model.

``write(out, runs)``, ``data(runs)``, ``RunView.load(folder)`` and ``card.write(folder, run)``. The page needs the
``report`` extra (jinja2, matplotlib); the model card needs nothing beyond the core.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from taciturn.errors import MissingExtra

_WHERE = {
    "RunView": "taciturn.report.view",
    "data": "taciturn.report.content",
    "render": "taciturn.report.html",
    "write": "taciturn.report.html",
}
__all__ = ["RunView", "data", "render", "write"]

if TYPE_CHECKING:
    from taciturn.report.content import data
    from taciturn.report.html import render, write
    from taciturn.report.view import RunView


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'taciturn.report' has no attribute {name!r}")
    try:
        return getattr(import_module(_WHERE[name]), name)
    except ModuleNotFoundError as error:
        if error.name in ("jinja2", "markupsafe", "matplotlib"):
            raise MissingExtra(error.name, "report") from error
        raise
