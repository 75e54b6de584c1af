"""Draws docs/images/layers.svg from the import contracts in pyproject.toml: `python docs/layers.py`.

One box a room, those that may import others above them; in each box its wings, in the same order. A room and a wing that no
contract knows is not drawn, and lint-imports names it.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from textwrap import wrap
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
WIDTH, LINE, PAD, GAP = 760, 17, 10, 8
STYLE = (
    "svg{--paper:#fdfdfc;--text:#1b1d21;--muted:#5b616b;--rule:#c9ccd1;--box:#f3f4f6}"
    "@media (prefers-color-scheme:dark){svg{--paper:#15171b;--text:#e7e8ea;--muted:#a2a9b4;--rule:#474d57;--box:#20242a}}"
    "svg{background:var(--paper);font-family:system-ui,sans-serif}"
    "rect{fill:var(--box);stroke:var(--rule)}text{fill:var(--text);font-size:13px}.w{fill:var(--muted);font-size:12px}"
)


def contracts(root: Path = ROOT) -> tuple[list[list[str]], dict[str, list[list[str]]]]:
    """(rows of rooms, top first; room -> rows of its wings), as the contracts have them."""
    house: list[list[str]] = []
    wings: dict[str, list[list[str]]] = {}
    for contract in tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]:
        if contract["type"] != "layers":
            continue
        rows = [[name.strip().removeprefix("taciturn.") for name in row.split("|")] for row in contract["layers"]]
        if "containers" not in contract:
            house = rows
        else:
            wings[contract["containers"][0].removeprefix("taciturn.")] = rows
    return house, wings


def draw(root: Path = ROOT) -> str:
    """The picture as SVG."""
    house, wings = contracts(root)
    parts, y = [], GAP
    for row in house:
        width = (WIDTH - GAP * (len(row) + 1)) / len(row)
        lines = {
            room: [x for line in wings.get(room, []) for x in wrap(" · ".join(line), int(width / 7))] for room in row
        }
        height = PAD * 2 + LINE * (1 + max(map(len, lines.values())))
        for i, room in enumerate(row):
            x = GAP + i * (width + GAP)
            parts.append(f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{height}" rx="4"/>')
            parts.append(f'<text x="{x + PAD:.0f}" y="{y + PAD + 11}">{escape(room)}</text>')
            parts.extend(
                f'<text class="w" x="{x + PAD:.0f}" y="{y + PAD + 11 + LINE * n}">{escape(line)}</text>'
                for n, line in enumerate(lines[room], 1)
            )
        y += height + GAP
    title = "What may import what: a room those below it, a wing the wings below it in its room"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" aria-label="{title}">'
        f"<style>{STYLE}</style>{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    (ROOT / "docs" / "images" / "layers.svg").write_text(draw(), "utf-8")
