"""matplotlib figures as inline SVG that takes its colours and its typeface from the page around it.

matplotlib knows no CSS variables, so plots are drawn in stand-in colours and the stand-ins are then replaced:
``color("grid")`` is drawn as some near-black hex value and ends up as ``var(--grid)``.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

SERIES = 8
"""How many runs have colours of their own; a ninth run shares the first one's colour, not its dashes."""

_NAMES = ("text", "muted", "grid", "rule", "paper", *(f"s{i}" for i in range(SERIES)))
_STAND_IN = {name: f"#0000{16 + i:02x}" for i, name in enumerate(_NAMES)}

_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be selected, searched and read aloud
    "text.parse_math": False,  # a dollar sign in the name of a run is a dollar sign
    "font.size": 8.8,
    "axes.linewidth": 0.6,
    "axes.labelsize": 8.5,
    "axes.labelcolor": _STAND_IN["muted"],
    "axes.edgecolor": _STAND_IN["rule"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _STAND_IN["grid"],
    "grid.linewidth": 0.6,
    "text.color": _STAND_IN["text"],
    "xtick.color": _STAND_IN["rule"],
    "ytick.color": _STAND_IN["rule"],
    "xtick.labelcolor": _STAND_IN["muted"],
    "ytick.labelcolor": _STAND_IN["muted"],
    "xtick.major.size": 3,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
}


def color(name: str) -> str:
    """The stand-in for a CSS colour variable of the page: text, muted, grid, rule, paper, s0 … s7."""
    return _STAND_IN[name]


@contextmanager
def style(key: str) -> Iterator[None]:
    """The look of every plot; ``key`` names the figure, so that equal input gives equal bytes."""
    with mpl.rc_context({**_STYLE, "svg.hashsalt": key}):
        yield


def inline(figure: Figure, key: str, label: str) -> str:
    """The figure as an ``<svg>`` element for an HTML page.

    key: prefix of its ids, unique on the page. label: what the plot shows, for people who do not see it.
    """
    buffer = io.StringIO()
    nothing = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(buffer, format="svg", metadata=nothing, transparent=True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", svg, count=1, flags=re.S)  # it would style the whole page
    svg = _prefix_ids(svg, key)
    for name, stand_in in _STAND_IN.items():
        svg = svg.replace(stand_in, f"var(--{name})")
    svg = re.sub(r"font-family: [^;\"]*", "font-family: inherit", svg)
    svg = re.sub(r"font: ([^;\"']*?px) '[^;\"]*", r"font-size: \1; font-family: inherit", svg)
    box = re.search(r'viewBox="([^"]*)"', svg)
    assert box is not None
    head = f'<svg role="img" aria-label="{html.escape(label, quote=True)}" viewBox="{box[1]}">'
    return re.sub(r"\n\s*", "\n", head + svg[svg.index(">") + 1 :].strip())


def _prefix_ids(svg: str, key: str) -> str:
    """Ids that something refers to get the prefix ``key``; all others go."""
    used = set(re.findall(r'xlink:href="#([^"]+)"', svg)) | set(re.findall(r"url\(#([^)]+)\)", svg))
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{key}-{m[1]}"' if m[1] in used else "", svg)
    svg = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{key}-\1"', svg)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{key}-\1)", svg)
