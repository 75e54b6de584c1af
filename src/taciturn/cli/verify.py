"""taciturn verify: compute a certificate again."""

from __future__ import annotations

from pathlib import Path

from taciturn.cli.options import Json


def verify(certificate: Path, *, json: Json = False) -> int:
    """Recompute every ε from the ledger and every digest from the files beside the certificate; needs no torch.

    Exit code 4 when anything differs. Example: `taciturn verify runs/mail/certificate.json`
    """
    from dataclasses import asdict

    from taciturn.cli.show import as_json, out
    from taciturn.errors import UsageError
    from taciturn.mechanisms.registry import verify as check

    if not certificate.is_file():
        raise UsageError(f"{certificate}: no such certificate; taciturn certify RUN writes one")
    found = check(certificate)
    if json:
        as_json({"verified": not found, "mismatches": [asdict(m) for m in found]})
    else:
        for mismatch in found:
            out.print(f"✗ {mismatch}", soft_wrap=True)
        out.print(
            "verified: every number follows from the ledger and the evidence"
            if not found
            else f"{len(found)} mismatches: do not rely on this certificate"
        )
    return 4 if found else 0
