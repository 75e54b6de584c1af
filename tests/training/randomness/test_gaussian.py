"""Statistical tests state the chance that they fail although the code is right; fixed seeds make them repeatable."""

from __future__ import annotations

import hashlib
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from taciturn.errors import UsageError
from taciturn.training.randomness import gaussian
from taciturn.training.randomness.gaussian import CHUNK, SecretSource, add_noise, box_muller, coin_threshold, grid_of
from taciturn.training.randomness.keystream import BLOCK_BYTES, Keystream, stream_key

Z = 5.5  # two-sided tail of a normal: 3.8e-8


def noise(source: SecretSource, n: int, step: int = 0, std: float = 1.0) -> torch.Tensor:
    tensor = torch.zeros(n)
    source.add_gaussian(step, [tensor], std)
    return tensor


def normals(n: int, seed: int = 7, draws: int = 1) -> NDArray[np.float32]:
    """Unrounded draws."""
    flat = np.zeros(n, np.float32)
    add_noise(stream_key(seed, "noise", 0, 0), [flat], [0], 1.0, 1.0, None, draws)
    return flat


def transformed(words: bytes, std: float = 1.0) -> NDArray[np.float32]:
    n = len(words) // 12
    out = np.empty((2, n), np.float32)
    radii, angles = np.frombuffer(words[: 8 * n], np.int64), np.frombuffer(words[8 * n :], np.int32)
    box_muller(radii, angles, std, np.empty(n), np.empty(n, np.float32), out)
    return out


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


# The stream.


def test_the_stream_is_aes_256_in_counter_mode() -> None:
    """NIST SP 800-38A, F.5.5: plaintext xor ciphertext of the first two blocks."""
    key = bytes.fromhex("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4")
    plain = int("6bc1bee22e409f96e93d7e117393172aae2d8a571e03ac9c9eb76fac45af8e51", 16)
    cipher = int("601ec313775789a5b7a7f504bbf3d228f443e3ca4d62b59aca84e990cacaf5c5", 16)
    counter = int("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff", 16)
    assert Keystream(key, 32).read(counter).tobytes() == (plain ^ cipher).to_bytes(32, "big")


def test_a_seeded_stream_never_changes_between_versions() -> None:
    key = stream_key(3, "noise", 5, 2)
    master = hashlib.blake2b(b"3", digest_size=32, person=b"taciturn-seed").digest()
    place = (5).to_bytes(8, "little") + (2).to_bytes(8, "little")
    assert key == hashlib.blake2b(place, digest_size=32, key=master, person=b"taciturn-noise").digest()
    assert key.hex() == "9950f63bd600768eb3f6f4108830eed9b8be5700c3d10465bee176cc2656adb2"
    encrypt = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    blocks = b"".join(encrypt.update(i.to_bytes(16, "big")) for i in range(4))
    assert Keystream(key, 64).read(0).tobytes() == blocks
    assert Keystream(key, 16).read(3).tobytes() == blocks[48:]
    assert Keystream(key, 16).read(0).view("<u4").tolist() == [3753408986, 1779882235, 938622886, 3714656712]
    drawn = noise(SecretSource(3, rank=2), 4, step=5)
    assert drawn.tolist() == pytest.approx([-594 / 1024, -1167 / 1024, 513 / 1024, -451 / 1024], abs=1 / 1024)


def test_every_seed_kind_step_and_rank_has_its_own_key() -> None:
    keys = {
        stream_key(seed, kind, step, rank)
        for seed in (0, 1, -1, 2**200)
        for kind in ("noise", "coins")
        for step in (0, 1, 2**32, 2**64 - 1)
        for rank in (0, 1, 7)
    }
    assert len(keys) == 4 * 2 * 4 * 3
    assert stream_key(None, "noise", 0, 0) != stream_key(None, "noise", 0, 0)
    with pytest.raises(UsageError, match="must lie in"):
        stream_key(1, "noise", -1, 0)


def test_streams_are_uncorrelated() -> None:
    """45 correlations of 2e5 pairs each, and of their squares: false alarm below 90 × 3.8e-8 = 4e-6."""
    n = 200_000
    draws = [noise(SecretSource(1, rank), n, step) for step in (0, 1, 2) for rank in (0, 1)]
    draws += [noise(SecretSource(2), n), noise(SecretSource(), n), noise(SecretSource(), n)]
    uniform = Keystream(stream_key(1, "coins", 0, 0), 8 * n).read(0).view(np.uint64) * 2.0**-64
    draws.append(torch.from_numpy(stats.norm.ppf(uniform)).float())
    for power in (1, 2):
        matrix = torch.corrcoef(torch.stack(draws).double() ** power)
        assert float((matrix - torch.eye(len(draws))).abs().max()) < Z / math.sqrt(n)


def test_neighbours_in_a_stream_are_uncorrelated() -> None:
    """Both outputs of a pair, consecutive entries and entries a chunk apart, and squares: false alarm 6 × 3.8e-8."""
    z = normals(8 * CHUNK).astype(float)
    for power in (1, 2):
        w = z**power
        for lag in (1, CHUNK // 2, CHUNK):
            a, b = w[:-lag], w[lag:]
            assert abs(np.corrcoef(a, b)[0, 1]) < Z / math.sqrt(len(a))


# The transform.


def test_the_transform_agrees_with_the_formula() -> None:
    words = np.random.default_rng(1).bytes(12 * 5000)
    radial, angular = np.frombuffer(words[:40_000], np.int64), np.frombuffer(words[40_000:], np.int32)
    out = transformed(words, 1.7)
    for i in range(5000):
        r = 1.7 * math.sqrt(-2 * math.log(abs(2 * int(radial[i]) + 1) / 2**64))
        angle = int(angular[i]) * math.pi / 2**31
        assert out[0, i] == pytest.approx(r * math.cos(angle), abs=2e-6)
        assert out[1, i] == pytest.approx(r * math.sin(angle), abs=2e-6)


@pytest.mark.parametrize("x", [0, -1, 1, 2**63 - 1, -(2**63), 2**62, 2**53 + 1])
@pytest.mark.parametrize("a", [0, -1, 1, 2**31 - 1, -(2**31)])
def test_extreme_words_give_finite_draws(x: int, a: int) -> None:
    out = transformed(np.int64(x).tobytes() + np.int32(a).tobytes())
    assert np.isfinite(out).all()
    furthest = math.sqrt(2 * 64 * math.log(2))
    norm = float(np.hypot(*out)[0])
    assert norm <= furthest * (1 + 1e-6)
    if x in (0, -1):
        assert norm == pytest.approx(furthest, rel=1e-6)


def test_the_centre_is_resolved() -> None:
    """Near u = 1 single precision would give zero; the smallest radius is below a thousandth of the grid."""
    almost_one = 2**63 - 2**30
    assert 0 < float(np.hypot(*transformed(np.int64(almost_one).tobytes() + np.int32(1).tobytes()))[0]) < 2.0**-15
    assert np.count_nonzero(normals(4_000_000) == 0) == 0


def test_first_four_moments() -> None:
    """4e6 draws, four moments at 5.5 standard errors: false alarm 1.5e-7."""
    z = normals(4_000_000).astype(float)
    n = len(z)
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean() - mean) < Z * math.sqrt(variance / n)


@pytest.mark.parametrize("draws", [1, 2, 4])
@pytest.mark.parametrize("seed", [None, 5])
def test_draws_are_normal(seed: int | None, draws: int) -> None:
    """Kolmogorov–Smirnov on 1e6 draws: false alarm 1e-6 for each case. Rounding to 2⁻¹⁰ moves the statistic by 2e-4."""
    z = noise(SecretSource(seed, draws=draws), 1_000_000, std=0.3).numpy() / 0.3
    assert stats.kstest(z, "norm").pvalue > 1e-6
    assert z.std() == pytest.approx(1, rel=0.01)  # 14 standard errors


def test_tails_beyond_four_and_five_deviations() -> None:
    """16e6 draws: counts within the central 1 - 1e-7 of their binomial laws, so four bounds fail once in 4e6 runs."""
    z = normals(16_000_000)
    for bound in (4.0, 5.0):
        law = stats.binom(len(z), stats.norm.sf(bound))
        low, high = law.ppf(5e-8), law.isf(5e-8)
        assert low <= int((z > bound).sum()) <= high
        assert low <= int((z < -bound).sum()) <= high


# What is added where.


@pytest.mark.usefixtures("threads")
def test_neither_threads_nor_the_cut_into_tensors_change_the_noise() -> None:
    whole = torch.linspace(-1, 1, 3 * CHUNK + 1001)
    sizes = [0, 5, CHUNK - 7, 0, 1, 2 * CHUNK, 17]
    parts = list(torch.split(whole.clone(), [*sizes, len(whole) - sum(sizes)]))
    torch.set_num_threads(1)
    source = SecretSource(2)
    source.add_gaussian(3, [whole], 0.1)
    for count in (1, 2, 5):
        torch.set_num_threads(count)
        again = [part.clone() for part in parts]
        source.add_gaussian(3, again, 0.1)
        assert torch.equal(torch.cat(again), whole)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(0, CHUNK + 3), min_size=1, max_size=4), st.integers(0, 2 * CHUNK), st.data())
def test_shards_with_places_get_the_noise_of_the_whole(sizes: list[int], gap: int, data: st.DataObject) -> None:
    whole = noise(SecretSource(9), sum(sizes) + gap * len(sizes))
    starts = [sum(sizes[:i]) + gap * i for i in range(len(sizes))]
    shards = [torch.zeros(size) for size in sizes]
    mine = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    for holder in (True, False):
        held = [i for i, m in enumerate(mine) if m is holder]
        SecretSource(9).add_gaussian(0, [shards[i] for i in held], 1.0, starts=[starts[i] for i in held])
    for start, shard in zip(starts, shards, strict=True):
        assert torch.equal(shard, whole[start : start + len(shard)])


@pytest.mark.parametrize("scale", [1.0, 0.37, 1 / 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
def test_one_pass_scales_adds_and_rounds(scale: float, dtype: torch.dtype) -> None:
    """Against scaling, adding the unrounded draws in double precision and rounding: at most one grid step apart."""
    x = (torch.randn(50_001, generator=torch.Generator().manual_seed(0)) * 8).to(dtype)
    std = 0.3
    grid = grid_of(std)
    got = x.clone()
    SecretSource(7).add_gaussian(0, [got], std, scale)
    wanted = torch.round((x.double() * scale + std * torch.from_numpy(normals(len(x))).double()) / grid) * grid
    off = (got.double() - wanted).abs()
    if dtype in (torch.float32, torch.float64):
        assert float(off.max()) <= grid
        assert float((off > 0).float().mean()) < 0.02
    else:
        torch.testing.assert_close(got.double(), wanted.to(dtype).double(), rtol=2 * torch.finfo(dtype).eps, atol=grid)
    assert torch.equal(torch.round(got.double() / grid) * grid, got.double())


def test_layouts_and_leaves_are_noised_in_place() -> None:
    flat = noise(SecretSource(4), 600)
    transposed = torch.zeros(20, 30).t()
    strided = torch.zeros(1200)[::2]
    leaf = torch.nn.Parameter(torch.zeros(30, 20))
    for tensor in (transposed, strided, leaf):
        SecretSource(4).add_gaussian(0, [tensor], 1.0)
        assert torch.equal(tensor.detach().reshape(-1), flat)
    scalar, empty = torch.zeros(()), torch.zeros(0, 3)
    SecretSource(4).add_gaussian(0, [empty, scalar, empty], 1.0)
    assert float(scalar) == float(flat[0])
    SecretSource(4).add_gaussian(0, [], 1.0)
    SecretSource(4).add_gaussian(0, [empty], 1.0)


@pytest.mark.parametrize("std", [1e-12, 0.5, 1.0, 1.999, 3e5])
def test_everything_released_lies_on_the_grid(std: float) -> None:
    grid = grid_of(std)
    assert std * 2**-11 < grid <= std * 2**-10
    assert math.frexp(grid)[0] == 0.5
    for size in (0.0, 1.0, 1e4, 1e9):
        x = torch.linspace(-1, 1, 10_001) * size * std
        SecretSource(1).add_gaussian(0, [x], std)
        cells = x.double() / grid
        assert torch.equal(cells.round(), cells)


def test_without_deviation_only_the_scale_is_applied() -> None:
    x = torch.randn(100)
    y = x.clone()
    SecretSource(1).add_gaussian(0, [y], 0.0, 0.25)
    assert torch.equal(y, x * 0.25)


def test_wrong_arguments_are_named() -> None:
    source, x = SecretSource(1), torch.zeros(3)
    for std in (-1.0, math.inf, math.nan):
        with pytest.raises(UsageError, match="standard deviation"):
            source.add_gaussian(0, [x], std)
    with pytest.raises(UsageError, match=r"floating-point tensors, found torch\.int64"):
        source.add_gaussian(0, [torch.zeros(3, dtype=torch.int64)], 1.0)
    for starts in ([0, 2], [4, 0], [-1, 5]):
        with pytest.raises(UsageError, match="shared noise"):
            source.add_gaussian(0, [x, x.clone()], 1.0, starts=starts)
    with pytest.raises(UsageError, match="draws"):
        SecretSource(1, draws=0)
    with pytest.raises(UsageError, match="sampling rate"):
        source.coins(0, 10, 1.5)
    assert torch.equal(x, torch.zeros(3))
    assert "12345" not in repr(SecretSource(12345))


# Repeatability and freshness.

PROGRAM = """
import os, torch
from taciturn.training.randomness.gaussian import SecretSource
def draw(source):
    x = torch.zeros(1000)
    source.add_gaussian(4, [x], 1.0)
    return x.numpy().tobytes().hex() + " " + " ".join(map(str, source.coins(4, 500, 0.3)))
print(draw(SecretSource(6)))
fresh = SecretSource()
draw(fresh)
read, write = os.pipe()
if os.fork() == 0:
    with os.fdopen(write, "w") as pipe:
        print(draw(fresh), file=pipe)
    os._exit(0)
os.close(write)
print(draw(fresh))
print(os.fdopen(read).read())
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_seed_repeats_across_processes_and_a_fork_does_not_repeat_fresh_noise() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    seeded, parent, child = (line.split(" ", 1) for line in done.stdout.splitlines() if line)
    source = SecretSource(6)
    assert bytes.fromhex(seeded[0]) == noise(source, 1000, step=4).numpy().tobytes()
    assert seeded[1] == " ".join(map(str, source.coins(4, 500, 0.3)))
    assert len({seeded[0], parent[0], child[0]}) == len({seeded[1], parent[1], child[1]}) == 3


def test_a_seeded_step_does_not_depend_on_what_was_drawn_before() -> None:
    a, b = SecretSource(8), SecretSource(8)
    for step in range(5):
        noise(a, 300_000, step)
        a.coins(step, 1000, 0.5)
    assert torch.equal(noise(a, 1000, 5), noise(b, 1000, 5))
    np.testing.assert_array_equal(a.coins(5, 1000, 0.5), b.coins(5, 1000, 0.5))


# The coins.


def test_coins_are_exact_at_zero_and_one() -> None:
    source = SecretSource()
    assert source.coins(0, 100_000, 0.0).size == 0
    np.testing.assert_array_equal(source.coins(0, 100_000, 1.0), np.arange(100_000))
    assert source.coins(0, 0, 0.5).size == 0
    assert source.coins(0, 10, 1.0).dtype == np.int64


@given(st.floats(0, 1))
def test_the_accounted_rate_is_never_exceeded(rate: float) -> None:
    assert Fraction(rate) - Fraction(1, 2**53) < Fraction(coin_threshold(rate), 2**53) <= Fraction(rate)


@pytest.mark.parametrize("rate", [1e-5, 1e-4, 0.013, 0.5, 0.999])
def test_each_record_is_drawn_at_the_rate(rate: float) -> None:
    """3e6 coins and per-record counts over 30 steps: false alarm below 1e-6 for the total and for the chi-square test."""
    records, steps = 100_000, 30
    counts = np.zeros(records)
    for step in range(steps):
        drawn = SecretSource(12).coins(step, records, rate)
        assert (np.diff(drawn) > 0).all()
        counts[drawn] += 1
    law = stats.binom(records * steps, rate)
    assert law.ppf(5e-7) <= counts.sum() <= law.isf(5e-7)
    spread = ((counts - steps * rate) ** 2 / (steps * rate * (1 - rate))).sum()
    kurtosis = 1 / (steps * rate * (1 - rate)) + 2  # variance of one term, over 1, about that of chi-square plus 1/np
    assert abs(spread - records) < Z * math.sqrt(records * kurtosis)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.one_of(st.floats(0, 1), st.floats(0, 1e-4))), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
def test_coins_are_numbers_of_53_bits_below_the_threshold(kinds: list[tuple[int, float]], seed: int) -> None:
    """By the book, from the bits of the stream: the first sixteen of each coin, and the rest where they are even with the
    limit, which is where a stream of few different bits puts many."""

    class Few(Keystream):
        def read(self, block: int) -> Any:
            return np.frombuffer(super().read(block).tobytes(), np.uint8) & few

    few, counts, rates = np.uint8(0x80 if seed % 2 else 0x03), [n for n, _ in kinds], [rate for _, rate in kinds]
    total = sum(counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gaussian, "Keystream", Few)
        found = SecretSource(seed).coins(3, counts, rates).tolist()
    key = stream_key(seed, "coins", 3, 0)
    first = Few(key, 2 * (total + 8)).read(0).view(np.uint16)[:total].tolist()
    rest = Few(key, 8 * (total + 8)).read(-(-2 * total // BLOCK_BYTES)).view(np.uint64).tolist()
    thresholds = [coin_threshold(rate) for n, rate in kinds for _ in range(n)]
    want = []
    for record, (bits, threshold) in enumerate(zip(first, thresholds, strict=True)):
        tail = rest.pop(0) >> 27 if bits == threshold >> 37 else 0
        if (bits << 37 | tail) < threshold:
            want.append(record)
    assert found == want


def test_coins_of_neighbouring_records_steps_and_ranks_are_independent() -> None:
    """Three correlations of 1e6 coins: false alarm 1.2e-7."""
    n, rate = 1_000_000, 0.2
    drawn = []
    for source, step in ((SecretSource(3), 0), (SecretSource(3), 1), (SecretSource(3, rank=1), 0)):
        x = np.zeros(n)
        x[source.coins(step, n, rate)] = 1
        drawn.append(x)
    first, later, other = drawn
    for a, b in ((first[:-1], first[1:]), (first, later), (first, other)):
        assert abs(np.corrcoef(a, b)[0, 1]) < Z / math.sqrt(n)
