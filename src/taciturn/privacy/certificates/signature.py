"""A detached signature of a certificate with a local key: Ed25519 (RFC 8032) over the bytes of certificate.json.

    certificate.json.sig    {"schema", "key": public key, "signature"}, both in hexadecimal
    KEY (mode 0600)         the private key, PEM (PKCS #8)           KEY.pub    the public key, PEM

The signature says who vouches for a certificate, not that the run happened as it says. The public key must reach a reader by
another way than the certificate does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.errors import DataError, MissingExtra, TaciturnError
from taciturn.privacy.certificates.digests import load_json, write_json
from taciturn.privacy.certificates.verify import Mismatch

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

SCHEMA = "taciturn-signature/1"


def new_key(path: Path) -> Path:
    """Make a private key at ``path`` (mode 0600) and its public key beside it; returns the latter's path.

    Raises DataError if either file exists: a key is never overwritten.
    """
    _need()
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    public = path.with_name(path.name + ".pub")
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    shown = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for file, data, mode in ((path, secret, 0o600), (public, shown, 0o644)):
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        except OSError as error:
            raise DataError(f"{file.name}: no key written ({error.strerror}); name a new file") from error
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(data)
    return public


def signature_of(certificate: Path) -> Path:
    """Where the signature of a certificate is."""
    return certificate.with_name(certificate.name + ".sig")


def sign(certificate: Path, key: Path) -> Path:
    """Write the signature of ``certificate`` by the private key in the file ``key``."""
    private = _private(key)
    signature = private.sign(certificate.read_bytes())
    fields = {"schema": SCHEMA, "key": _hex(private.public_key()), "signature": signature.hex()}
    return write_json(signature_of(certificate), fields)


def check(certificate: Path, key: Path) -> list[Mismatch]:
    """What is wrong with the signature of ``certificate`` under the public key in the file ``key``; empty if nothing.

    Raises DataError if ``key`` holds no Ed25519 public key.
    """
    public = _public(key)
    from cryptography.exceptions import InvalidSignature

    path = signature_of(certificate)
    try:
        fields = load_json(path)
        signer, signature = _parts(fields, path)
    except TaciturnError as error:
        return [Mismatch("signature", f"by the key in {key.name}", str(error))]
    if signer != _hex(public):
        return [Mismatch("signature", f"by the key in {key.name} ({_hex(public)[:16]}…)", f"by the key {signer[:16]}…")]
    try:
        public.verify(signature, certificate.read_bytes())
    except InvalidSignature:
        return [Mismatch("signature", f"of {certificate.name} as it is", "of another certificate, or damaged")]
    return []


def signed_by(certificate: Path) -> str | None:
    """The key that the signature beside ``certificate`` names, the first 16 digits; None if there is no signature.

    Nothing is checked, and ``cryptography`` is not needed. Raises DataError if the file is no signature.
    """
    path = signature_of(certificate)
    return _parts(load_json(path), path)[0][:16] if os.path.lexists(path) else None


def _parts(fields: dict[str, Any], path: Path) -> tuple[str, bytes]:
    try:
        if fields.keys() != {"schema", "key", "signature"} or fields["schema"] != SCHEMA:
            raise ValueError
        if len(bytes.fromhex(fields["key"])) != 32:
            raise ValueError
        return str(fields["key"]), bytes.fromhex(fields["signature"])
    except (TypeError, ValueError) as error:
        raise DataError(f"{path.name}: not a signature as taciturn writes it") from error


def _hex(key: Ed25519PublicKey) -> str:
    return key.public_bytes_raw().hex()


def _private(path: Path) -> Ed25519PrivateKey:
    _need()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_bytes(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise DataError(
            f"{path.name}: no private key in it (PEM without a password); taciturn certify --new-key makes one"
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise DataError(f"{path.name}: expected an Ed25519 key; taciturn certify --new-key makes one")
    return key


def _public(path: Path) -> Ed25519PublicKey:
    _need()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_bytes(path))
    except (ValueError, UnsupportedAlgorithm) as error:
        raise DataError(f"{path.name}: no public key in it (PEM); it is the file that ends in .pub") from error
    if not isinstance(key, Ed25519PublicKey):
        raise DataError(f"{path.name}: expected an Ed25519 public key; taciturn certify --new-key makes one")
    return key


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise DataError(f"{path.name}: cannot be read ({error.strerror})") from error


def _need() -> None:
    try:
        import cryptography  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtra("cryptography", "train") from error
