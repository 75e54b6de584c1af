"""taciturn policies: what can be detected by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from taciturn.cli.options import Json

if TYPE_CHECKING:
    from taciturn.screening.policies import Detector

_SHOWN = 40  # code points of an example


def policies(
    *names: Annotated[str, Parameter(help="what to look at; without one, everything there is")], json: Json = False
) -> None:
    """List the detectors, presets and families that `-p` and `-c` take, or show what some of them are made of.

    Commas join names: `-p ssn,email,gb`. A family takes all that follows its colon, commas too, so it comes last, and `-p`
    may be given again: `-p ssn,presidio:PERSON,LOCATION -p secrets`.

    Example: `taciturn policies secrets`
    """
    if names:
        _show(names, json)
    else:
        _list(json)


def _list(json: bool) -> None:
    from taciturn.cli.show import as_json, out
    from taciturn.screening.policies import patterns, registry

    made_of = {name: list(patterns.PRESETS.get(name, ())) for name in registry.PRESETS}
    packs = {f"country {pack}": made_of[pack] for pack in patterns.PACKS}
    groups = {name: list(table) for name, table in patterns.GROUPS.items() if name != "countries"} | packs
    families = {
        name: {"usage": f.usage, "finds": f.says, "extra": f.extra or None} for name, f in registry.FAMILIES.items()
    }
    if json:
        as_json({"detectors": groups, "presets": made_of, "families": families})
        return
    _table("detectors", ("group", "names"), [(name, ", ".join(members)) for name, members in groups.items()])
    out.print()
    presets = [(name, _SAYS.get(name) or f"country pack, {len(made_of[name])} detectors") for name in registry.PRESETS]
    _table("presets", ("name", "what it marks"), presets)
    out.print()
    listed = [(f.usage, f.says, f.extra and f"taciturn[{f.extra}]") for f in registry.FAMILIES.values()]
    _table("families: detectors with an argument", ("write", "what it marks", "needs"), listed)
    out.print()
    out.print("your own, in a TOML file with --policy-file:")
    out.print("[[detector]] name, pattern, label, must_find")
    out.print("[[detector]] use, labels, threshold to keep some of what a named one finds")


_SAYS = {
    "pii": "numbers, addresses, documents of people: every pattern precise enough for π",
    "secrets": "keys, tokens, passwords, private keys",
    "cues": "what follows 'my name is', 'password:', 'address is' and the like",
    "cues-wide": "the same and the rest of such a line (π_c)",
    "customersim": "the five slots of the simulated customer-service dialogues",
    "multiwoz": "references, phones, postcodes, addresses",
    "detect-secrets": "the detectors of that package; needs taciturn[secrets]",
    "conservative": "patterns, and words with a capital or a digit, and rare ones (π_c)",
    "all-private": "everything (π_c): no record is public",
}


def _show(names: Sequence[str], json: bool) -> None:
    from taciturn.cli.show import as_json, out
    from taciturn.screening.policies import policy, registry

    made = policy(*registry.split(names))
    if json:
        detectors = [dict(d.definition()) | {"name": d.name, "example": _example(d)} for d in made.detectors]
        as_json({"name": made.name, "identity": made.identity, "detectors": detectors})
        return
    rows = [(d.name, _labels(d), _shorter(_example(d))) for d in made.detectors]
    _table(made.name, ("detector", "label", "it has to find"), rows)
    out.print(f"identity {made.identity}")


def _example(detector: Detector) -> str:
    """One text that the detector has to find: made up, and part of the program."""
    return next(iter(getattr(detector, "must_find", ())), "")


def _labels(detector: Detector) -> str:
    from taciturn.screening.policies.narrowed import labels_of

    return ", ".join(labels_of(detector) or ("any",))


def _shorter(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    from taciturn.cli.show import out, table

    out.print(table(title, columns, rows, left=True))
