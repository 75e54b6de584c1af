"""Detached signatures: who vouches for a certificate, and every way in which they may not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from taciturn.errors import DataError
from taciturn.privacy.certificates.signature import check, new_key, sign, signature_of


@pytest.fixture
def signed(tmp_path: Path) -> tuple[Path, Path]:
    certificate = tmp_path / "certificate.json"
    certificate.write_bytes(b'{\n  "release": true\n}\n')
    public = new_key(tmp_path / "signer")
    assert sign(certificate, tmp_path / "signer") == signature_of(certificate) == tmp_path / "certificate.json.sig"
    return certificate, public


def test_a_signature_holds_for_its_bytes_and_its_key_alone(signed: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, public = signed
    assert check(certificate, public) == []
    (other,) = check(certificate, new_key(tmp_path / "stranger"))
    assert other.field == "signature"
    assert "stranger.pub" in other.certified
    certificate.write_bytes(certificate.read_bytes().replace(b"true", b"false"))
    (edited,) = check(certificate, public)
    assert "another certificate" in edited.recomputed


def test_any_changed_character_of_a_signature_is_named(signed: tuple[Path, Path]) -> None:
    certificate, public = signed
    path = signature_of(certificate)
    whole = json.loads(path.read_text())
    for name, value in whole.items():
        for at in range(0, len(value), 9):
            changed = value[:at] + ("0" if value[at] != "0" else "1") + value[at + 1 :]
            path.write_text(json.dumps(whole | {name: changed}))
            assert [m.field for m in check(certificate, public)] == ["signature"], (name, at)
    for text in ("", "[]", "{}", json.dumps(whole | {"signature": 7}), json.dumps(whole | {"signature": "zz"})):
        path.write_text(text)
        assert [m.field for m in check(certificate, public)] == ["signature"]
    path.unlink()
    (missing,) = check(certificate, public)
    assert "certificate.json.sig" in missing.recomputed


def test_keys_are_closed_to_others_and_never_overwritten(tmp_path: Path) -> None:
    key = tmp_path / "signer"
    new_key(key)
    assert key.stat().st_mode & 0o777 == 0o600
    before = key.read_bytes()
    with pytest.raises(DataError, match="name a new file"):
        new_key(key)
    assert key.read_bytes() == before


def test_files_that_hold_no_key_are_refused(signed: tuple[Path, Path], tmp_path: Path) -> None:
    certificate, public = signed
    with pytest.raises(DataError, match="no private key"):
        sign(certificate, public)
    with pytest.raises(DataError, match="no public key"):
        check(certificate, tmp_path / "signer")
    with pytest.raises(DataError, match="cannot be read"):
        check(certificate, tmp_path / "nowhere.pub")
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

    curve = generate_private_key(SECP256R1())
    (tmp_path / "ec").write_bytes(curve.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    (tmp_path / "ec.pub").write_bytes(curve.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(DataError, match="Ed25519"):
        sign(certificate, tmp_path / "ec")
    with pytest.raises(DataError, match="Ed25519"):
        check(certificate, tmp_path / "ec.pub")


def test_verifying_without_a_key_needs_no_cryptography() -> None:
    """The modules that `verify` imports, with cryptography made impossible to import; asking for a key names the extra."""
    code = (
        "import sys; sys.modules['cryptography'] = None\n"
        "from pathlib import Path\n"
        "import taciturn.cli.verify, taciturn.mechanisms.registry, taciturn.privacy.certificates.signature as s\n"
        "from taciturn.errors import MissingExtra\n"
        "try: s.check(Path('c.json'), Path('k.pub'))\n"
        "except MissingExtra as e: print(e)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "taciturn[train]" in done.stdout
