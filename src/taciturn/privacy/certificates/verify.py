"""Compute a certificate again from the files beside it, and name every field that differs. Needs no torch.

The files may be a stranger's: they are read under the limits of files.py and limits.py, the accountant may do EFFORT and no
more (effort.py), and nothing is computed before the fields it comes from are known to be possible.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from taciturn.errors import TaciturnError
from taciturn.privacy import limits
from taciturn.privacy.accounting.effort import at_most
from taciturn.privacy.accounting.rounding import agrees, up, upwards
from taciturn.privacy.certificates import exported_model
from taciturn.privacy.certificates.cast import Cast, differences, made_again
from taciturn.privacy.certificates.certificate import Certificate, digest_of, off_plan, recompute, sentences
from taciturn.privacy.certificates.digests import canonical, load_json, read_bytes
from taciturn.privacy.certificates.exported_model import CAST, LEDGER, MODEL
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.claims import Claims

EFFORT = 1e9
"""Evaluations that the accountant may spend on one certificate: tens of seconds, ten times what large groups need."""

State = Literal["checked", "absent", "differs"]
"""checked: compared, and equal. absent: there was nothing to compare it with. differs: compared, and not equal."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One field, what the certificate says about it and what the files say."""

    field: str
    certified: str
    recomputed: str

    def __str__(self) -> str:
        return f"{self.field}: certified {self.certified}, recomputed {self.recomputed}"


@dataclass(frozen=True, slots=True)
class Compared:
    """One thing that a certificate is about, whether it was compared, and that in words."""

    what: str
    state: State
    words: str

    def __str__(self) -> str:
        return f"{self.what}: {self.state}, {self.words}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared and what differs; ``claim``: the certificate's first statement in words, if nothing does. ``cast``:
    whether the files are said to be the certified ones in another number type."""

    compared: tuple[Compared, ...]
    mismatches: tuple[Mismatch, ...]
    claim: str | None = None
    cast: bool = False

    @property
    def model_absent(self) -> bool:
        """Whether there was no model to compare with what was certified, or nothing certified to compare its cast with."""
        return any(each.what == "model" and each.state == "absent" for each in self.compared)


def verify(
    path: str | os.PathLike[str],
    claims: Claims,
    *,
    certified: str | os.PathLike[str] | None = None,
    without_weights: bool = False,
    patient: bool = False,
) -> list[Mismatch]:
    """Everything in which ``certificate.json`` and the files beside it disagree; an empty list is a pass.

    claims: what a mechanism may state. certified: as in :func:`examine`. without_weights: the model need not be there;
    otherwise its absence is in the list.
    patient: let the accountant compute as long as it takes (the files are of somebody you trust).

    Plan, evidence and ledger must lie beside it, and every file of the model (model/ or the same folder). Raises nothing but
    what the interpreter does when it is stopped.
    """
    found = examine(path, claims, certified=certified, patient=patient)
    if found.model_absent and not without_weights:
        here = "those of a cast that nobody made again" if found.cast else "none here: nothing was compared"
        return [*found.mismatches, Mismatch("model_files", "the files of a model", here)]
    return list(found.mismatches)


def examine(
    path: str | os.PathLike[str],
    claims: Claims,
    *,
    certified: str | os.PathLike[str] | None = None,
    patient: bool = False,
) -> Verification:
    """As :func:`verify`, in full: the state of each thing beside every difference.

    certified: a run, or an export of it as certified, to make the files of a cast export again (cast.py). Without it those
    count as absent."""
    path = Path(path)
    try:
        fields = load_json(path)
        certificate = Certificate.read(path)
        own = list(_own_digest(path, fields))
    except (TaciturnError, *_DEFECTS) as error:
        wrong = Mismatch(path.name, "a certificate", _said(error))
        return Verification((Compared("certificate", "differs", "it is none"),), (wrong,))
    numbers = _numbers(path.parent, fields, claims, math.inf if patient else EFFORT)
    model, files = _model(path.parent, certificate, None if certified is None else Path(certified))
    compared = (
        _compared("certificate", own, "its form, its fields and its digest of itself"),
        _compared("numbers", numbers, "every ε, μ and sentence; none says more than plan, evidence and ledger give"),
        model,
        Compared("created", "absent", f"{certificate.created} is the issuer's word, nothing here confirms it"),
        Compared(
            "versions", "absent", f"{len(certificate.versions)} packages by the issuer's word, nothing confirms them"
        ),
    )
    found = (*own, *numbers, *files)
    claim = certificate.words[0] if certificate.words and not found else None
    return Verification(compared, found, claim, _is_cast(path.parent))


def _model(folder: Path, certificate: Certificate, certified: Path | None) -> tuple[Compared, list[Mismatch]]:
    """The files of the model, as certified or as their cast."""
    known, number = certificate.model_files, len(certificate.model_files)
    try:
        cast = Cast.read(folder) if _is_cast(folder) else None
    except (TaciturnError, *_DEFECTS) as error:
        wrong = [Mismatch(CAST, "which files are of another type", _said(error))]
        return _compared("model", wrong, ""), wrong
    if cast is None:
        found = exported_model.differences(folder, known)
        if found is None:
            return Compared("model", "absent", f"not compared: none of its {number} files is here"), []
        files = [Mismatch(f"model_files.{name}", was, now) for name, was, now in found]
        return _compared("model", files, f"each of its {number} files, and that there are no others"), files
    files = [Mismatch(*each) for each in differences(folder, cast, certificate.digest, known)]
    if certified is None and not files:
        said = (
            f"its {number} files are those of {CAST}, and {len(cast.model_files)} of them hold {cast.dtype} by the word of "
            "whoever wrote it: not compared with what was certified; --certified RUN makes them again"
        )
        return Compared("model", "absent", said), []
    if certified is not None and not files:
        files = [Mismatch(*each) for each in made_again(certified, cast, known)]
    return _compared("model", files, f"each of its {number} files, as certified or as its cast to {cast.dtype}"), files


def _is_cast(folder: Path) -> bool:
    return os.path.lexists(folder / CAST) and not os.path.lexists(folder / MODEL)


def _compared(what: str, found: Sequence[Mismatch], words: str) -> Compared:
    return Compared(what, "differs", mismatches(len(found))) if found else Compared(what, "checked", words)


def mismatches(number: int) -> str:
    """So many, in words."""
    return f"{number} mismatch{'es' * (number != 1)}"


_DEFECTS = (ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError, TypeError, ValueError)
"""What a value nobody thought of may still raise, beside our own errors; never a pass."""


def _numbers(folder: Path, fields: Mapping[str, Any], claims: Claims, effort: float) -> list[Mismatch]:
    """Every difference between the certificate and what plan, evidence and ledger give."""
    try:
        with at_most(effort):
            ledger = Ledger.read(folder / LEDGER)
            again = recompute(folder, ledger, claims)
        found = [Mismatch(*gap) for gap in off_plan(again["plan"], ledger)]
        found += _differences("guarantees", fields["guarantees"], guarantees := again.pop("guarantees"))
        # Numbers may differ in their last digits, and the sentences say those of the certificate.
        again["words"] = sentences(upwards(guarantees) if found else fields["guarantees"])
        for name, value in again.items():
            found += _differences(name, fields[name], value)
        return [*found, *_overspent(fields)]
    except (TaciturnError, *_DEFECTS) as error:
        return [Mismatch("files beside the certificate", "readable and intact", _said(error))]


def _own_digest(path: Path, fields: Mapping[str, Any]) -> Iterator[Mismatch]:
    digest = digest_of(fields)
    if fields["digest"] != digest:
        yield Mismatch("digest", limits.short(fields["digest"]), digest)
    if canonical(fields) != read_bytes(path):
        yield Mismatch(path.name, "written as taciturn writes it", "other spacing, order or number format")


def _overspent(fields: Mapping[str, Any]) -> Iterator[Mismatch]:
    target, spent = fields["target"], fields["spent"]["epsilon"]
    if target is not None and (spent == "inf" or spent > up(target["epsilon"])):
        yield Mismatch("spent.epsilon", f"within the target {target['epsilon']}", str(spent))


_ROUNDED = ("guarantees", "spent", "other_runs")
"""Fields of the certificate that are computed; all others are quoted or counted, and compared to the last bit."""


def _differences(name: str, certified: Any, recomputed: Any) -> Iterator[Mismatch]:
    if isinstance(certified, dict) and isinstance(recomputed, dict):
        for key in sorted(certified.keys() | recomputed.keys(), key=str):
            yield from _differences(
                f"{name}.{str(key)[:64]}", certified.get(key, _ABSENT), recomputed.get(key, _ABSENT)
            )
    elif isinstance(certified, list) and isinstance(recomputed, list) and len(certified) == len(recomputed):
        for index, (ours, theirs) in enumerate(zip(certified, recomputed, strict=True)):
            yield from _differences(f"{name}[{index}]", ours, theirs)
    elif not _same(name, certified, recomputed):
        yield Mismatch(name, _show(certified), _show(recomputed))


class _Absent:
    def __repr__(self) -> str:
        return "absent"


_ABSENT = _Absent()


def _same(name: str, ours: Any, theirs: Any) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float) and name.startswith(_ROUNDED):
        return agrees(name.rpartition(".")[2], ours, theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _said(error: BaseException) -> str:
    if isinstance(error, TaciturnError):
        return str(error)[:400]
    return f"a value that nothing can be computed from ({type(error).__name__})"
