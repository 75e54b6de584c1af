"""All the attacks on one model, from the inputs an auditor has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taciturn.auditing.canaries import Planted
from taciturn.auditing.exposure import exposure
from taciturn.auditing.finding import Finding
from taciturn.auditing.membership import group_membership, membership
from taciturn.errors import UsageError, nearest
from taciturn.models.hf import load_exported

ATTACKS = ("exposure", "membership", "group-membership")


def audit(
    run: str | Path | tuple[Any, Any],
    attacks: Sequence[str] = ("exposure",),
    *,
    canaries: Planted | str | Path | None = None,
    members: Sequence[str] | None = None,
    nonmembers: Sequence[str] | None = None,
    reference: str | Path | tuple[Any, Any] | None = None,
    group_size: int = 20,
    seed: int = 0,
) -> list[Finding]:
    """Attack a model; one finding per name in ``attacks``.

    run: a run folder, a model folder, or (model, tokenizer); reference likewise. canaries: what was planted, or the
    path of the ``canaries.json`` that says so. members, nonmembers: texts for the membership attacks, see
    :func:`taciturn.auditing.membership.membership`. Raises UsageError for an unknown attack or a missing input.
    """
    for attack in attacks:
        if attack not in ATTACKS:
            raise UsageError(f"attack {attack!r}: {nearest(attack, ATTACKS)}")
    if "exposure" in attacks and canaries is None:
        raise UsageError("attack 'exposure' needs the planted canaries: canaries=Planted(...) or a canaries.json")
    if {"membership", "group-membership"} & set(attacks) and (members is None or nonmembers is None):
        raise UsageError("a membership attack needs members (texts trained on) and nonmembers (same kind, never seen)")
    model, tokenizer = _load(run)
    other = None if reference is None else _load(reference)
    inside, outside = members or (), nonmembers or ()

    def attacked(attack: str) -> Finding:
        match attack:
            case "exposure":
                planted = canaries if isinstance(canaries, Planted) else Planted.read(Path(str(canaries)))
                return exposure(model, tokenizer, planted.template, planted.secrets, seed=seed)
            case "membership":
                return membership(model, tokenizer, inside, outside, reference=other, seed=seed)
            case _:
                return group_membership(
                    model, tokenizer, inside, outside, group_size=group_size, reference=other, seed=seed
                )

    return [attacked(attack) for attack in attacks]


def _load(source: str | Path | tuple[Any, Any]) -> tuple[Any, Any]:
    """The model of a run folder (``model/`` in it) or of a model folder, unless it is at hand already."""
    if isinstance(source, tuple):
        return source
    folder = Path(source)
    return load_exported(folder / "model" if (folder / "model" / "config.json").is_file() else folder)
