"""What the measuring commands share: the policies of a screened folder, made again from their names or from options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from taciturn.cli.options import SPARED, Spared
from taciturn.errors import TaciturnError, UsageError

if TYPE_CHECKING:
    from taciturn.screening.corpus.manifest import PolicyName, PublicValues
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies import Policy
    from taciturn.screening.policies.finder import Named
    from taciturn.screening.policies.public import Public

Pi = Annotated[
    tuple[str, ...],
    Parameter(name=["--policy", "-p"], help="π; the corpus's own if not given; may be repeated", negative=""),
]
Conservative = Annotated[
    tuple[str, ...],
    Parameter(name=["--conservative", "-c"], help="π_c; the corpus's own if not given; may be repeated", negative=""),
]


def policies(
    screened: ScreenedCorpus, pi: str | None, conservative: str | None, file: Path | None, spared: Spared = SPARED
) -> tuple[Policy, Named]:
    """(π, π_c): those named, else those of the corpus, which must then be exactly what it was screened with."""
    from taciturn.screening.sparing import Sparing

    return Sparing.pair(*parts(screened, pi, conservative, file, spared))


def parts(
    screened: ScreenedCorpus, pi: str | None, conservative: str | None, file: Path | None, spared: Spared = SPARED
) -> tuple[Policy, Policy, Public | None]:
    """(π, π_c, what π_c spares), as ``policies`` puts them together."""
    from taciturn.screening.sparing import sparing_identity

    names, public = screened.manifest.policies, spared.read()
    kept = screened.manifest.public if conservative is None else None
    if kept is not None:
        public = _again_public(kept, public)
    made = build(pi, file) if pi is not None else _made(names.pi, "-p", file, screened.path)
    if pi is None:
        _check(names.pi, made, made.identity, "-p")
    if conservative is not None:
        return made, build(conservative, file), public
    said = f" {public.said}" if kept is not None and public is not None else ""
    plain = names.conservative.model_copy(update={"name": names.conservative.name.removesuffix(said)})
    wide = _made(plain, "-c", file, screened.path)
    whole = (
        wide.identity if kept is None or public is None else sparing_identity(names.pi.identity, wide.identity, public)
    )
    _check(names.conservative, wide, whole, "-c")
    return made, wide, public


def _again_public(kept: PublicValues, given: Public | None) -> Public:
    """What the corpus was screened with. Raises UsageError unless the values are given again, and are the same."""
    from taciturn.screening.policies.public import Public

    public = given or Public()
    public = replace(public, kinds=public.kinds or kept.kinds)
    if (public.digest, public.kinds) != (kept.digest, kept.kinds):
        raise UsageError(
            f"the corpus was screened with {kept.values} public values (digest {kept.digest[:8] or 'none'}) and the kinds "
            f"{', '.join(kept.kinds) or 'none'}, expected the same here, found {len(public.values)} values (digest "
            f"{public.digest[:8] or 'none'}) and {', '.join(public.kinds) or 'no kinds'}; give the same files with "
            "--public-values, or name another π_c with -c"
        )
    return public


def build(names: str, file: Path | None = None) -> Policy:
    """A policy from what -p or -c says: a list as for ``screen``; lists that " + " joins are one policy (a family's
    argument takes the rest of its list)."""
    from taciturn.screening.policies import policy
    from taciturn.screening.policies.registry import split

    return policy(*split(names.split(" + ")), file=file)


def _made(wanted: PolicyName, option: str, file: Path | None, folder: Path | None) -> Policy:
    """The policy of this name. Raises UsageError when it cannot be made."""
    from taciturn.screening.measuring.corrections import FILE, corrected_policy

    plain, corrected, named = wanted.name.partition(",corrections:")
    kept = (folder or Path()) / FILE
    if file is not None:
        plain = plain.removesuffix(file.name).rstrip(",")
    try:
        made = build(plain, file)
        if corrected:
            made = corrected_policy(made, kept if kept.is_file() else Path(named), wanted.name)
    except TaciturnError as error:
        raise UsageError(
            f"the policy '{wanted.name}' of this corpus cannot be made from its name: {error}; {_advice(option)}"
        ) from None
    return made


def _check(wanted: PolicyName, made: Policy, identity: str, option: str) -> None:
    """Raises UsageError when the policy made is not the one it was."""
    if identity != wanted.identity:
        raise UsageError(
            f"the policy '{made.name}' finds other things now than when the corpus was screened (identity "
            f"{identity[:8]}, then {wanted.identity[:8]}): a word list, a model or this program has changed; "
            f"{_advice(option)}, or screen again"
        )


def _advice(option: str) -> str:
    return f"name it with {option} (and --policy-file, if it had one) as at screening"
