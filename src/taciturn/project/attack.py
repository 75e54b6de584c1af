"""The attacks of a project on its run, with inputs from its own split and its own canaries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from taciturn.auditing.canaries.templates import Planted
from taciturn.auditing.finding import Finding
from taciturn.mechanisms.certify import noised_parts
from taciturn.project.settings import Project
from taciturn.project.split import Texts, members_and_nonmembers, redacted
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.training.plan import Plan

if TYPE_CHECKING:
    from taciturn.text.segment import Unit


def attack(project: Project, texts: Texts, screened: ScreenedCorpus, plan: Plan, folder: Path) -> list[Finding]:
    """Findings of the attacks that [audit] names, on the run in ``folder``."""
    from taciturn.auditing.run import audit  # torch, which planning does without

    chosen, planted = project.settings.audit, texts.planted
    members: Sequence[str] | None = None
    nonmembers: Sequence[str] | None = None
    if any("membership" in name for name in chosen.attacks):
        inside, outside = members_and_nonmembers(texts, cast("Unit", screened.manifest.unit), chosen.texts, chosen.seed)
        if any("original" in phase.reads for phase in plan.phases):
            members, nonmembers = [each.text for each in inside], [each.text for each in outside]
        else:  # as training read them
            members, nonmembers = redacted(inside, project), redacted(outside, project)
    return audit(
        folder,
        chosen.attacks,
        canaries=planted,
        copies=None if planted is None else copies_left(planted, screened, folder),
        members=members,
        nonmembers=nonmembers,
        group_size=chosen.group_size,
        samples=chosen.samples,
        probability=chosen.probability,
        seed=chosen.seed,
    )


def canary_groups(planted: Planted | None, screened: ScreenedCorpus, folder: Path) -> dict[str, list[str]]:
    """Canaries as groups of secrets for the certificate: what an attack on several copies is compared with."""
    if planted is None or not noised_parts(folder) or not screened.manifest.originals:
        return {}
    return {"one canary": list(planted.secrets[:1]), "all canaries": list(planted.secrets)}


def copies_left(planted: Planted, screened: ScreenedCorpus, folder: Path) -> int:
    """Records that still hold one canary where noise reads them, at least 1: after redaction and deduplication often that.
    Where nobody can tell, as many as were planted."""
    parts = noised_parts(folder)
    if not parts or not screened.manifest.originals:
        return planted.copies
    return max(1, *(screened.group_size([secret], part) for secret in planted.secrets for part in parts))
