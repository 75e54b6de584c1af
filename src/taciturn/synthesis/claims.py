"""What the model's certificate says of text that the model wrote.

Whatever is a function of the model and of coins and choices that do not depend on the private text is no more than whoever
has the model could make (post-processing: Dwork and Roth 2014, Prop. 2.1; for trade-off functions Dong, Roth, Su 2022,
Lemma 2.9). So every statement stands as it is, unless the user gives what could be made from private text:
docs/guarantees.md, §3.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from taciturn.errors import DataError, GuaranteeError
from taciturn.mechanisms.registry import examine
from taciturn.privacy.certificates.certificate import CERTIFICATE, Certificate
from taciturn.privacy.guarantees.guarantee import EMPTY, Assumption, Guarantee

Allow = Literal["uncertified", "not-for-release"]

CHOSEN = (
    "Seed, number, decoding and filter are taken as chosen without a look at the private text: whoever chooses them, or "
    "whether to share this corpus at all, by numbers computed on private text (a quality page, say) tells what no ε counts."
)


@dataclass(frozen=True, slots=True)
class Claims:
    """statements: the certificate's, each with its unit, relation, ε and δ, and a condition more where the user gave text.
    reasons: what stands against handing the corpus out. certified: whether there is a certificate at all."""

    statements: tuple[Guarantee, ...] = ()
    reasons: tuple[str, ...] = ()
    certified: bool = False

    def to_json(self) -> dict[str, Any]:
        return {
            "certified": self.certified,
            "statements": [each.to_json() for each in self.statements],
            "words": [each.words() for each in self.statements],
            "reasons": list(self.reasons),
        }


def claims_of(folder: Path, conditions: Sequence[str], allow: Sequence[Allow]) -> Claims:
    """What holds for text of the model in ``folder``, a run or an export. conditions: of what the user gives.

    Raises GuaranteeError where there is no certificate or one that is not for release, unless ``allow`` names it, and where
    the certificate is not this model's, whatever ``allow`` says.
    """
    path = folder / CERTIFICATE
    if not path.is_file():
        if "uncertified" not in allow:
            raise GuaranteeError(
                f"{folder} has no {CERTIFICATE}, so nothing would be claimed of text that its model writes: certify the run "
                "(taciturn certify), or say --allow uncertified"
            )
        return Claims(reasons=("the model has no certificate: nothing is promised",))
    found = examine(path, patient=True)
    if found.mismatches or found.model_absent:
        absent = (
            "its weights are a cast of the certified ones, which write the text"
            if found.cast
            else "its files are absent"
        )
        what = "; ".join(map(str, found.mismatches[:3])) or absent
        raise GuaranteeError(
            f"{path} is not this model's certificate, or is damaged: {what[:600]}; certify the run again"
        )
    certificate = Certificate.read(path)
    if not certificate.release and "not-for-release" not in allow:
        raise GuaranteeError(
            f"{folder} is not for release on its certificate, and neither is text that its model writes: "
            f"{'; '.join(certificate.reasons)[:800]}. To write it all the same, for yourself: --allow not-for-release"
        )
    return Claims(carried(certificate.statements(), conditions), tuple(certificate.reasons), True)


def carried(statements: Sequence[Guarantee], conditions: Sequence[str]) -> tuple[Guarantee, ...]:
    """The statements about a model, about text that it wrote from what the user gave."""
    if not conditions:
        return tuple(statements)
    open_ones = tuple(Assumption(each, enforced=False) for each in conditions)
    return tuple(
        each
        if each.status in EMPTY
        else replace(
            each,
            status="conditional" if each.status == "proved" else each.status,
            assumptions=each.assumptions + open_ones,
        )
        for each in statements
    )


def model_folder(folder: Path) -> Path:
    """Where the model of a run, or of an exported or any other folder, lies. Raises DataError for neither."""
    found = folder / "model" if (folder / "model").is_dir() else folder
    if not (found / "config.json").is_file():
        raise DataError(f"{folder}: no finished run and no model folder: expected model/ or config.json in it")
    return found
