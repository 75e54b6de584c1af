"""taciturn verify: compute a certificate again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json

if TYPE_CHECKING:
    from taciturn.privacy.certificates.verify import Compared, Mismatch


def verify(
    certificate: Annotated[Path, Parameter(help="certificate.json, or the folder of a run or a model")],
    *,
    key: Annotated[Path | None, Parameter(help="a public key: also check certificate.json.sig")] = None,
    certified: Annotated[
        Path | None, Parameter(validator=RUN_THERE, help="of `export --dtype`: the run, to cast its weights again")
    ] = None,
    without_weights: Annotated[
        bool, Parameter(help="the model's files need not be here: check the numbers alone", negative="")
    ] = False,
    patient: Annotated[
        bool, Parameter(help="compute as long as it takes; for files of somebody you trust", negative="")
    ] = False,
    json: Json = False,
) -> int:
    """Recompute every ε from the ledger and the digest of every file of the model; needs no torch.

    Says of each thing whether it was checked, is absent (nothing to compare it with) or differs. Exit code 4 when anything
    differs, or when the model is absent.

    Example: `taciturn verify runs/mail/certificate.json --key signer.pub`
    """
    from dataclasses import asdict

    from taciturn.cli.show import as_json, out, step
    from taciturn.errors import UsageError
    from taciturn.mechanisms.registry import examine
    from taciturn.privacy.certificates.verify import mismatches as counted

    if certificate.is_dir():  # of a run, or an exported model
        certificate /= "certificate.json"
    if not certificate.is_file():
        raise UsageError(f"{certificate}: no such certificate; taciturn certify RUN writes one")
    with step("computing the certificate again"):
        found = examine(certificate, certified=certified, patient=patient)
    signature, wrong = _signature(certificate, key)
    compared, mismatches = [*found.compared, signature], [*found.mismatches, *wrong]
    incomplete = found.model_absent and not without_weights
    failed = bool(mismatches) or incomplete
    claim = None if mismatches else found.claim
    if json:
        as_json(
            {
                "verified": not failed,
                "signature": signature.state,
                "claim": claim,
                "compared": [asdict(each) for each in compared],
                "mismatches": [asdict(each) for each in mismatches],
            }
        )
        return 4 if failed else 0
    for mismatch in mismatches:
        out.print(f"✗ {mismatch}")
    for each in compared:
        out.print(f"{_MARKS[each.state]} {each}")
    if claim is not None:
        out.print(f"first claim: {claim}")
    if mismatches:
        out.print(f"{counted(len(mismatches))}: do not rely on this certificate")
    elif incomplete:
        why = "nobody cast the certified weights again (--certified RUN)" if found.cast else "the model is not here"
        out.print(f"not verified: {why}; --without-weights checks the numbers alone")
    else:
        rest = (
            "no file of a model was compared"
            if found.model_absent
            else "every file of the model is the one certified"
            if certified is None
            else "every file of the model is the one certified, or its cast"
        )
        out.print(f"verified: every number follows from the ledger and the evidence; {rest}")
    return 4 if failed else 0


_MARKS = {"checked": "✓", "absent": "–", "differs": "✗"}


def _signature(certificate: Path, key: Path | None) -> tuple[Compared, list[Mismatch]]:
    """Whether it is signed, by which key, and whether that was checked."""
    from taciturn.errors import DataError
    from taciturn.privacy.certificates.signature import check, signed_by
    from taciturn.privacy.certificates.verify import Compared, Mismatch

    try:
        signer = signed_by(certificate)
    except DataError as error:
        return Compared("signature", "differs", "not a signature"), [Mismatch("signature", "a signature", str(error))]
    if key is not None:
        if wrong := check(certificate, key):
            return Compared("signature", "differs", f"not by the key in {key.name}"), wrong
        return Compared("signature", "checked", f"signed by the key {signer}… in {key.name}"), []
    if signer is None:
        return Compared("signature", "absent", "not signed"), []
    return Compared(
        "signature", "absent", f"not compared: there is one by the key {signer}…, give --key to check it"
    ), []
