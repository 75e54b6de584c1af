"""taciturn verify: compute a certificate again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from taciturn.cli.options import Json


def verify(
    certificate: Path,
    *,
    key: Annotated[Path | None, Parameter(help="a public key: also check certificate.json.sig")] = None,
    json: Json = False,
) -> int:
    """Recompute every ε from the ledger and every digest from the files beside the certificate; needs no torch.

    Exit code 4 when anything differs. Example: `taciturn verify runs/mail/certificate.json --key signer.pub`
    """
    from dataclasses import asdict

    from taciturn.cli.show import as_json, out
    from taciturn.errors import UsageError
    from taciturn.mechanisms.registry import verify as check

    if not certificate.is_file():
        raise UsageError(f"{certificate}: no such certificate; taciturn certify RUN writes one")
    found = check(certificate)
    if key is not None:
        from taciturn.privacy.signature import check as check_signature

        found += check_signature(certificate, key)
    if json:
        as_json({"verified": not found, "signature": key is not None, "mismatches": [asdict(m) for m in found]})
    else:
        for mismatch in found:
            out.print(f"✗ {mismatch}", soft_wrap=True)
        if found:
            out.print(f"{len(found)} mismatches: do not rely on this certificate")
        else:
            signed = ", and the signature is of this key" if key is not None else ""
            out.print(f"verified: every number follows from the ledger and the evidence{signed}", soft_wrap=True)
    return 4 if found else 0
