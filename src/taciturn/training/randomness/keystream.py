"""Keyed cryptographic streams of random bits, one for each (kind, step, rank).

AES-256 in counter mode from zero (NIST SP 800-38A, section 6.5) under a key made for one stream only, by keyed BLAKE2b
(RFC 7693) from a master secret. The master secret is 32 bytes of operating-system entropy, drawn anew for every
stream, the secret key of a run (noise_key.py), or the hash of a seed.

The stream is read out of Galois/counter mode (NIST SP 800-38D), which is counter mode with a checksum on top, here dropped:
OpenSSL has the wide AES instructions of newer processors for it and not for counter mode by itself, and makes the same bits
in half the time.
"""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import Literal

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from taciturn.errors import TaciturnError, UsageError

Kind = Literal["noise", "coins", "states"]
BLOCK_BYTES = 16
_TURN = 1 << 32
_AT_A_TIME = 1 << 16


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
        self._cipher, self._block = algorithms.AES256(key), Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
        self._vector = _Vectors(int.from_bytes(self._block.update(bytes(BLOCK_BYTES)), "big"))
        self._zeros = bytes(min(size, _AT_A_TIME))
        self._bytes = np.empty(size, np.uint8)

    def read(self, block: int) -> NDArray[np.uint8]:
        """``size`` bytes from counter value ``block`` on; the array is overwritten by the next call."""
        done, size = 0, len(self._bytes)
        while done < size:  # the counter of this mode has 32 bits: at most to where they are used up
            first = block + done // BLOCK_BYTES
            some = self._bytes[done : done + BLOCK_BYTES * (_TURN - first % _TURN)]
            encryptor = Cipher(self._cipher, modes.GCM(self._vector(first))).encryptor()
            for at in range(0, len(some), len(self._zeros)):
                part = some[at : at + len(self._zeros)]
                encryptor.update_into(memoryview(self._zeros)[: len(part)], part.data)
            want = self._block.update(first.to_bytes(BLOCK_BYTES, "big"))
            if some[:BLOCK_BYTES].tobytes() != want[: len(some)]:
                raise TaciturnError(
                    "AES in Galois/counter mode did not begin where it was told to, so its bits would not be those of the "
                    "stream and nothing may be released with them: install another version of cryptography"
                )
            done += len(some)
        return self._bytes


class _Vectors:
    """The initialisation vector after which GCM encrypts from a given counter on. hash_key: H = AES(0).

    For a vector V of 128 bits GCM begins at J + 1, J = (V·H ⊕ L)·H in GF(2¹²⁸), L = 128 (SP 800-38D, section 7.1), so
    V = J·H⁻² ⊕ L·H⁻¹. The field's numbers have the coefficient of x⁰ in their highest bit (section 6.3).
    """

    def __init__(self, hash_key: int) -> None:
        inverse = _inverse(hash_key)
        self._always = _times(128, _multiples(inverse))
        self._of_bit = _multiples(_times(inverse, _multiples(inverse)))

    def __call__(self, block: int) -> bytes:
        before = block - block % _TURN + (block - 1) % _TURN
        return (self._always ^ _times(before, self._of_bit)).to_bytes(BLOCK_BYTES, "big")


def _multiples(a: int) -> list[int]:
    """a·b for the b of which bit i alone is set, i < 128."""
    found = []
    for _ in range(128):  # b = x⁰, x¹, …: the highest bit first
        found.append(a)
        a = a >> 1 ^ (0xE1 << 120 if a & 1 else 0)
    return found[::-1]


def _times(b: int, multiples: list[int]) -> int:
    total = 0
    for i in range(b.bit_length()):
        if b >> i & 1:
            total ^= multiples[i]
    return total


def _inverse(a: int) -> int:
    """1/a in the field, by Euclid's algorithm for polynomials."""
    u, v, s, t = _reversed(a), 1 << 128 | 0x87, 1, 0
    while u != 1:
        shift = u.bit_length() - v.bit_length()
        if shift < 0:
            u, v, s, t, shift = v, u, t, s, -shift
        u, s = u ^ v << shift, s ^ t << shift
    return _reversed(s)


def _reversed(a: int) -> int:
    return int(f"{a:0128b}"[::-1], 2)


def _hash_seed(seed: int) -> bytes:
    return blake2b(str(seed).encode(), digest_size=32, person=b"taciturn-seed").digest()
