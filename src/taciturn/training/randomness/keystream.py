"""Keyed cryptographic streams of random bits, one for each (kind, step, rank).

AES-256 in counter mode from zero (NIST SP 800-38A, section 6.5) under a key made for one stream only, by keyed BLAKE2b
(RFC 7693) from a master secret. The master secret is 32 bytes of operating-system entropy, drawn anew for every
stream, the secret key of a run (noise_key.py), or the hash of a seed.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from taciturn.errors import UsageError

Kind = Literal["noise", "coins", "states"]
BLOCK_BYTES = 16


def stream_key(seed: int | bytes | None, kind: Kind, step: int, rank: int) -> bytes:
    """The 32-byte key of one stream: a function of the arguments, or fresh at every call when ``seed`` is None. Bytes are
    the master secret itself.

    Raises UsageError when ``step`` or ``rank`` is not in [0, 2⁶⁴).
    """
    if not (0 <= step < 2**64 and 0 <= rank < 2**64):
        raise UsageError(f"step and rank of a random stream must lie in [0, 2**64), found {step} and {rank}")
    master = os.urandom(32) if seed is None else seed if isinstance(seed, bytes) else _hash_seed(seed)
    place = step.to_bytes(8, "little") + rank.to_bytes(8, "little")
    return blake2b(place, digest_size=32, key=master, person=f"taciturn-{kind}".encode()).digest()


class Keystream:
    """The bytes of one stream from any block on, ``size`` at a time; holds scratch, so one thread uses it."""

    def __init__(self, key: bytes, size: int) -> None:
        self._encryptor = Cipher(algorithms.AES256(key), modes.CTR(bytes(BLOCK_BYTES))).encryptor()
        self._zeros = bytes(size)
        self._bytes = np.empty(size, np.uint8)

    def read(self, block: int) -> NDArray[np.uint8]:
        """``size`` bytes from counter value ``block`` on; the array is overwritten by the next call."""
        self._encryptor.reset_nonce(block.to_bytes(BLOCK_BYTES, "big"))
        self._encryptor.update_into(self._zeros, self._bytes.data)
        return self._bytes


def _hash_seed(seed: int) -> bytes:
    return blake2b(str(seed).encode(), digest_size=32, person=b"taciturn-seed").digest()
