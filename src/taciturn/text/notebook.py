"""What a notebook shows of an object: a small table, escaped. Numbers and names of our own go in, never text of a corpus."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def table(title: str, rows: Iterable[tuple[str, object]]) -> str:
    """HTML of a title and of names with their values.

    >>> table("a<b", [("records", 1200)])
    '<table><caption>a&lt;b</caption><tr><th>records</th><td>1,200</td></tr></table>'
    """

    def shown(value: object) -> str:
        return f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else str(value)

    lines = "".join(f"<tr><th>{escape(name)}</th><td>{escape(shown(value))}</td></tr>" for name, value in rows)
    return f"<table><caption>{escape(title)}</caption>{lines}</table>"
