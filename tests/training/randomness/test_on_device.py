"""Noise that is made on a GPU, run here on the CPU: the same operations, one by one."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from taciturn.errors import TaciturnError
from taciturn.training.randomness import gaussian, on_device
from taciturn.training.randomness.gaussian import SecretSource, grid_of

KEY = bytes(range(32))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 1,024 normals, so that a few thousand of them have many borders."""
    monkeypatch.setattr(on_device, "CHUNK", 1024)
    monkeypatch.setattr(on_device, "BLOCKS", 3 * 1024 // 32)


def words(key: bytes) -> torch.Tensor:
    return torch.from_numpy(np.frombuffer(key, np.int32).copy())


def stream(key: bytes, first: int, blocks: int) -> bytes:
    made = on_device.chacha(words(key), first, blocks, on_device.double_round)
    return made.t().contiguous().numpy().tobytes()


@given(st.binary(min_size=32, max_size=32), st.integers(0, 2**32 - 9))
@settings(deadline=None, max_examples=30)
def test_the_words_are_those_of_the_library(key: bytes, first: int) -> None:
    nonce = first.to_bytes(8, "little") + bytes(8)
    assert stream(key, first, 8) == Cipher(algorithms.ChaCha20(key, nonce), None).encryptor().update(bytes(64 * 8))


def slow_block(key: bytes, number: int) -> list[int]:
    """A block by the book, in Python's integers."""
    begun = [
        int.from_bytes(part[i : i + 4], "little") for part in (b"expand 32-byte k", key) for i in range(0, len(part), 4)
    ]
    begun += [number & 0xFFFFFFFF, number >> 32, 0, 0]
    x = list(begun)

    def turn(word: int, bits: int) -> int:
        return (word << bits | word >> (32 - bits)) & 0xFFFFFFFF

    for _ in range(10):
        for a, b, c, d in ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
                           (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)):  # fmt: skip
            for p, q, r, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                x[p] = (x[p] + x[q]) & 0xFFFFFFFF
                x[r] = turn(x[r] ^ x[p], bits)
    return [(a + b) & 0xFFFFFFFF for a, b in zip(x, begun, strict=True)]


@pytest.mark.parametrize("number", [0, 2**31, 2**32 - 1, 2**32, 2**40 + 3, 2**62])
def test_the_counter_goes_on_beyond_32_bits(number: int) -> None:
    found = np.frombuffer(stream(KEY, number, 1), np.uint32).tolist()
    assert found == slow_block(KEY, number)


def test_normals_are_those_of_the_processor_for_the_same_bits() -> None:
    three = torch.from_numpy(np.random.default_rng(1).integers(-(2**31), 2**31, (3, 4096), np.int64).astype(np.int32))
    found = on_device.box_muller(three, 0.7)
    a, b, c = three.numpy()
    wide = (b.astype(np.int64) << 32) | (a.astype(np.int64) & 0xFFFFFFFF)
    want = np.empty((2, 4096), np.float32)
    gaussian.box_muller(wide, c, 0.7, np.empty(4096), np.empty(4096, np.float32), want)
    np.testing.assert_allclose(found.numpy(), want.reshape(-1), atol=2e-6)


@given(st.lists(st.integers(0, 5000), min_size=2, max_size=6, unique=True), st.sampled_from([1, 3]))
@settings(deadline=None, max_examples=25)
def test_noise_depends_on_the_place_and_not_on_the_cut(cuts: list[int], draws: int) -> None:
    ends = sorted({0, 5000, *cuts})
    whole = torch.zeros(5000)
    on_device.add_noise(KEY, [whole], [0], 2.0, 1.0, grid_of(2.0), draws)
    parts = [torch.zeros(b - a) for a, b in pairwise(ends)]
    on_device.add_noise(KEY, parts, ends[:-1], 2.0, 1.0, grid_of(2.0), draws)
    assert torch.equal(torch.cat(parts), whole)
    assert len(torch.unique(whole)) > 2000


@pytest.mark.parametrize("draws", [1, 4])
def test_what_is_released_is_the_scaled_sum_and_normals_on_the_grid(draws: int) -> None:
    """False alarms: 1e-6 for the Kolmogorov–Smirnov test, less for the others."""
    x = torch.randn(40, 1000, generator=torch.Generator().manual_seed(1))
    noised, std = x.clone(), 0.3
    on_device.add_noise(KEY, [noised], [0], std, 0.25, grid_of(std), draws)
    assert torch.equal(noised, (noised / grid_of(std)).round() * grid_of(std))
    z = ((noised - 0.25 * x) / std).view(-1).double().numpy()
    assert stats.kstest(z, "norm").pvalue > 1e-6
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 5 / np.sqrt(len(z))
    assert abs(np.corrcoef(z[:512], z[512:1024])[0, 1]) < 5 / np.sqrt(512)  # both halves of a pair


class Copies(TorchDispatchMode):
    """How many operations there were, and which took something off the device."""

    def __init__(self) -> None:
        super().__init__()
        self.count, self.back = 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.count += 1
        tensors = [a for a in args if isinstance(a, torch.Tensor)]
        here = any(t.device.type == "cuda" for t in tensors)
        self.back += here and isinstance(out, torch.Tensor) and out.device.type == "cpu"
        return out


def test_a_gpu_s_gradient_never_leaves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On tensors that are said to be on a GPU and have shapes only; what waits for a number of theirs would raise."""
    monkeypatch.setattr(on_device, "_kernels", lambda _: (on_device.double_round, on_device.box_muller))
    with FakeTensorMode(allow_non_fake_inputs=True), Copies() as copies:
        gradient = [torch.empty(700, device="cuda"), torch.empty(30, 50, device="cuda")]
        SecretSource(3).add_gaussian(0, gradient, 1.0, 0.5)
    assert copies.back == 0
    assert copies.count > 1000


def test_the_compiler_takes_both_kernels() -> None:
    three = torch.arange(3 * 64, dtype=torch.int32).view(3, 64) * 7919
    state = torch.arange(16 * 8, dtype=torch.int32).view(16, 8) * 104729
    turned = torch.compile(on_device.double_round, backend="aot_eager", fullgraph=True)
    normal = torch.compile(on_device.box_muller, backend="aot_eager", fullgraph=True)
    assert torch.equal(turned(state), on_device.double_round(state))
    assert torch.equal(normal(three, 0.5), on_device.box_muller(three, 0.5))


def test_kernels_that_compute_something_else_release_nothing() -> None:
    cpu = torch.device("cpu")
    on_device.hold(on_device.double_round, on_device.box_muller, cpu)
    with pytest.raises(TaciturnError, match="nothing may be released"):
        on_device.hold(lambda x: on_device.double_round(x) ^ 1, on_device.box_muller, cpu)
    with pytest.raises(TaciturnError, match="nothing may be released"):
        on_device.hold(on_device.double_round, lambda x, std: on_device.box_muller(x, 0.999 * std), cpu)
    with pytest.raises(TaciturnError, match="nothing may be released"):
        on_device.hold(on_device.double_round, lambda x, std: on_device.box_muller(x, std) * float("nan"), cpu)
