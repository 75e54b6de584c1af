"""taciturn policies: what can be detected by name."""

from __future__ import annotations

from taciturn.cli.options import Json


def policies(*, json: Json = False) -> None:
    """List the detectors and presets that `-p` and `-c` take, and how to add your own.

    Example: `taciturn policies`
    """
    from taciturn.cli.show import as_json, out, table
    from taciturn.screening.policies import names, policy

    found = {name: policy(name) for name in names()}
    if json:
        as_json(
            {name: {"identity": p.identity, "detectors": [d.name for d in p.detectors]} for name, p in found.items()}
        )
        return
    rows = [
        (name, ", ".join(d.name for d in p.detectors) if len(p.detectors) > 1 else "detector")
        for name, p in found.items()
    ]
    shown = table("policies", ("name", "made of"), rows)
    shown.columns[1].justify = "left"
    out.print(shown)
    out.print("your own: [[detector]] name, pattern, label, must_find in a TOML file, with --policy-file")
