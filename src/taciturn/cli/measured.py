"""What the measuring commands share: the policies of a screened folder, made again from their names or from options."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from taciturn.errors import TaciturnError, UsageError

if TYPE_CHECKING:
    from taciturn.screening.corpus.manifest import PolicyName
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies import Policy

Pi = Annotated[
    tuple[str, ...],
    Parameter(name=["--policy", "-p"], help="π; the corpus's own if not given; may be repeated", negative=""),
]
Conservative = Annotated[
    tuple[str, ...],
    Parameter(name=["--conservative", "-c"], help="π_c; the corpus's own if not given; may be repeated", negative=""),
]


def policies(
    screened: ScreenedCorpus, pi: str | None, conservative: str | None, file: Path | None
) -> tuple[Policy, Policy]:
    """(π, π_c): those named, else those of the corpus, which must then be exactly what it was screened with."""
    names = screened.manifest.policies
    return (
        _again(names.pi, "-p", file, screened.path) if pi is None else build(pi, file),
        _again(names.conservative, "-c", file, screened.path) if conservative is None else build(conservative, file),
    )


def build(names: str, file: Path | None = None) -> Policy:
    """A policy from what -p or -c says: a list as for ``screen``; lists that " + " joins are one policy (a family's
    argument takes the rest of its list)."""
    from taciturn.screening.policies import policy
    from taciturn.screening.policies.registry import split

    return policy(*split(names.split(" + ")), file=file)


def _again(wanted: PolicyName, option: str, file: Path | None, folder: Path | None) -> Policy:
    """The policy of this name. Raises UsageError when it cannot be made, or is not the one it was."""
    from taciturn.screening.measuring.corrections import FILE, corrected_policy

    plain, corrected, named = wanted.name.partition(",corrections:")
    kept = (folder or Path()) / FILE
    if file is not None:
        plain = plain.removesuffix(file.name).rstrip(",")
    advice = f"name it with {option} (and --policy-file, if it had one) as at screening"
    try:
        made = build(plain, file)
        if corrected:
            made = corrected_policy(made, kept if kept.is_file() else Path(named), wanted.name)
    except TaciturnError as error:
        raise UsageError(
            f"the policy '{wanted.name}' of this corpus cannot be made from its name: {error}; {advice}"
        ) from None
    if made.identity != wanted.identity:
        raise UsageError(
            f"the policy '{wanted.name}' finds other things now than when the corpus was screened (identity "
            f"{made.version}, then {wanted.identity[:8]}): a word list, a model or this program has changed; "
            f"{advice}, or screen again"
        )
    return made
