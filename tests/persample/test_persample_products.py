"""Sums on tensor cores, by an accumulator that truncates as they do; there is none here."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from taciturn.persample import products
from taciturn.persample.capture import captured
from taciturn.persample.clip import _squared_norms, clipped_sum, flat
from taciturn.persample.isolated import HALF_SUMS, isolated
from taciturn.persample.linear import AffineUse
from taciturn.persample.sums import Sums
from taciturn.persample.tape import Tape

CPU = torch.device("cpu")
KNOWN = {"V100": (23, 4), "A100": (24, 8), "H100": (25, 16), "one at a time": (23, 1)}
"""Bits behind the leading one of the largest term that are kept, and how many products are added at once."""
SMALL = ((2, 6, 5, 512), (1, 4, 4, 509), (1, 3, 4, 4096), (3, 4, 2, 100))


def truncating(bits: int, width: int) -> products.Multiply:
    """Products of [U, n, K] and [U, K, m], or of matrices: ``width`` at a time and the sum so far are cut to a multiple of
    2^−bits of the largest's power of two and added; what comes out is cut to float32."""

    def cut(x: np.ndarray, top: np.ndarray, bits: int) -> np.ndarray:
        unit = np.exp2(np.floor(np.log2(np.where(top == 0, 1, top))) - bits)
        found: np.ndarray = np.trunc(x / unit) * unit
        return found

    def multiply(a: Tensor, b: Tensor) -> Tensor:
        x, y = (z.double().numpy().reshape(-1, *z.shape[-2:]) for z in (a, b))
        total = np.zeros((len(x), x.shape[1], y.shape[2]))
        for k in range(0, x.shape[2], width):
            terms = x[:, :, k : k + width, None] * y[:, None, k : k + width, :]
            terms = np.concatenate([total[:, :, None], terms], 2)
            total = cut(terms, np.abs(terms).max(2, keepdims=True), bits).sum(2)
            total = cut(total, np.abs(total), 23)
        return torch.from_numpy(total).float().reshape(*a.shape[:-1], b.shape[-1])

    return multiply


@pytest.fixture(autouse=True)
def _nothing_remembered() -> Iterator[None]:
    products.holds_on.cache_clear()
    yield
    products.holds_on.cache_clear()


@pytest.fixture
def tensor_cores(monkeypatch: pytest.MonkeyPatch) -> Callable[[products.Multiply, products.Multiply], None]:
    """bfloat16 factors on the CPU are multiplied by these, units and matrices."""

    def put(units: products.Multiply, matrices: products.Multiply) -> None:
        monkeypatch.setattr(products, "on_tensor_cores", lambda a, b: a.dtype == b.dtype == torch.bfloat16)
        monkeypatch.setattr(products, "_batched", units)
        monkeypatch.setattr(products, "_product", matrices)

    return put


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("dtype", products.HALF)
def test_sums_of_tensor_cores_that_are_known_keep_the_bound(name: str, dtype: torch.dtype) -> None:
    share = products.share_of_bound(truncating(*KNOWN[name]), CPU, dtype, SMALL)
    assert 0.01 < share <= 1


@given(
    st.lists(st.tuples(st.floats(-2, 2, width=16), st.integers(-12, 12)), min_size=2, max_size=80),
    st.sampled_from(sorted(KNOWN)),
    st.integers(1, 40),
)
def test_no_sum_is_further_off_than_the_bound(drawn: list[tuple[float, int]], name: str, times: int) -> None:
    a = torch.tensor([[[mantissa * 2.0**power for mantissa, power in drawn] * times]], dtype=torch.bfloat16)
    b = a.flip(2).abs()
    off = truncating(*KNOWN[name])(a, b.mT).double() - a.double() @ b.double().mT
    assert float(off.abs()) <= products.UNIT * (a.shape[2] + 2) * float(a.double().abs() @ b.double().mT)


@pytest.mark.parametrize(("bits", "width"), [(18, 4), (15, 8), (8, 1)])
def test_sums_that_keep_fewer_bits_are_found_out(bits: int, width: int) -> None:
    assert products.share_of_bound(truncating(bits, width), CPU, torch.bfloat16, SMALL) > 1


def test_a_device_beyond_the_bound_takes_float32_products(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(products, "SHAPES", SMALL)
    monkeypatch.setattr(products.share_of_bound, "__defaults__", (SMALL,))
    for multiply, held in (
        (truncating(23, 4), True),
        (truncating(15, 4), False),
        (lambda a, b: (a @ b).float(), False),
    ):
        products.holds_on.cache_clear()
        caplog.clear()
        monkeypatch.setattr(products, "_batched", multiply)
        monkeypatch.setattr(products, "_product", multiply)
        with caplog.at_level(logging.WARNING, "taciturn"):
            assert products.holds_on(CPU, torch.bfloat16) is held
        assert ("float32 ones" in caplog.text) is not held


def test_a_device_without_such_products_takes_float32_ones(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "taciturn"):
        assert not products.holds_on(CPU, torch.bfloat16)  # torch has them for CUDA only
    assert "float32 ones are taken" in caplog.text


@given(st.lists(st.floats(-(2.0**100), 2.0**100, width=32).filter(lambda x: x == 0 or abs(x) > 2.0**-100), min_size=1))
def test_two_parts_leave_little_of_a_number(numbers: list[float]) -> None:
    x = torch.tensor(numbers)
    high, low = products.two_parts(x)
    assert high.dtype == low.dtype == torch.bfloat16
    assert bool(((high.double() + low.double() - x.double()).abs() <= 2.0**-16 * x.double().abs()).all())


def record(kind: str, T: int, d: int, p: int) -> tuple[Tensor, Tensor]:
    """Two records, the second of which is to fill the batch; x_UTd and g_UTp."""
    g = torch.Generator().manual_seed(0)
    x, y = torch.rand(2, T, d, generator=g) + 1, torch.rand(2, T, p, generator=g) + 1
    if kind == "random":
        x, y = torch.randn(2, T, d, generator=g), torch.randn(2, T, p, generator=g)
    elif kind == "cancelling":
        half = T // 2
        x = torch.cat([x[:, :half], x[:, :half]], 1)
        y = torch.cat([y[:, :half], -y[:, :half] * (1 + 2.0**-6)], 1)
    return x.bfloat16(), y.bfloat16()


def longest_part(x: Tensor, g: Tensor) -> float:
    """The norm of what a record adds to a sum in the end, at C = 1."""
    tape = Tape(2, 2, ("layer",))
    tape.add(AffineUse("layer.weight", x, g, False))
    assert tape.uses[0].kept is None  # type: ignore[attr-defined]
    c = flat(_squared_norms(tape), 1.0)[0]
    sums = Sums()
    tape.uses[0].add_clipped(c * torch.tensor([1.0, 0.0]), sums)
    return float(sums["layer.weight"].double().norm())


def to_nearest(a: Tensor, b: Tensor) -> Tensor:
    return (a.double() @ b.double()).float()


@pytest.mark.parametrize("kind", ["of one sign", "random", "cancelling"])
@pytest.mark.parametrize("name", ["V100", "one at a time"])
def test_what_a_record_adds_is_no_longer_than_its_bound(
    kind: str, name: str, tensor_cores: Callable[[products.Multiply, products.Multiply], None]
) -> None:
    x, g = record(kind, 16, 512, 96)
    tensor_cores(truncating(*KNOWN[name]), to_nearest)
    assert 0.9 < longest_part(x, g) <= 1
    tensor_cores(to_nearest, truncating(*KNOWN[name]))
    assert 0.9 < longest_part(x, g) <= 1


def test_without_the_margin_it_would_be_longer(
    monkeypatch: pytest.MonkeyPatch, tensor_cores: Callable[[products.Multiply, products.Multiply], None]
) -> None:
    x, g = record("of one sign", 16, 512, 96)
    tensor_cores(truncating(19, 4), to_nearest)
    assert longest_part(x, g) <= 1
    monkeypatch.setattr(products, "gamma", lambda _: 0.0)
    monkeypatch.setattr(products, "lost_in_sum", lambda _: 0.0)
    assert longest_part(x, g) > 1 + 1e-5


class Twice(nn.Module):
    """A layer that is used twice, and another with a bias; rows keep apart."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.last = nn.Linear(32, 32), nn.Linear(32, 64, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        h: Tensor = self.last(self.first(self.first(x).tanh()).tanh())
        return h


def sums_of(model: nn.Module, x: Tensor) -> tuple[dict[str, Tensor], Tensor]:
    sums = Sums()
    with captured(model, len(x)) as tape:
        with torch.autocast("cpu", torch.bfloat16):
            losses = model(x).float().square().sum((1, 2))
        norms = clipped_sum(model, tape, losses, 1.0, sums)
    return {key: sums[key] for key in sums}, norms


def test_a_pass_on_tensor_cores_is_that_of_float32_products_but_for_the_margin(
    tensor_cores: Callable[[products.Multiply, products.Multiply], None],
) -> None:
    model, x = Twice(), torch.randn(3, 12, 32, generator=torch.Generator().manual_seed(1))
    want, norms = sums_of(model, x)
    tensor_cores(truncating(23, 4), truncating(23, 4))
    found, wider = sums_of(model, x)
    assert bool((wider >= norms * (1 - 1e-6)).all())
    assert bool((wider <= norms * 1.01).all())
    for key, total in want.items():
        assert float((found[key] - total).norm()) <= 0.01 * float(total.norm())


class Kernels(TorchDispatchMode):
    """The names of operations, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize(("T", "way"), [(16, "gram"), (512, "kept")])
def test_a_gpu_multiplies_half_precision_factors_as_they_are(T: int, way: str, dtype: torch.dtype) -> None:
    with FakeTensorMode():
        x, g = torch.empty(4, T, 96, dtype=dtype, device="cuda"), torch.empty(4, T, 64, dtype=dtype, device="cuda")
        use, sums, c = AffineUse("w", x, g, False), Sums(), torch.empty(4, device="cuda")
        with Kernels() as norms:
            use.squared_norms()
        with Kernels() as added:
            use.add_clipped(c, sums)
    half = dtype != torch.float32
    assert (use.kept is not None) is (way == "kept")
    assert norms.names.count("aten.bmm.dtype") == (0 if not half else 2 if way == "gram" else 1)
    assert ("aten.bmm.default" in norms.names) is not half
    assert "aten._to_copy.default" not in norms.names
    if way == "gram":
        assert added.names.count("aten.mm.dtype") == (2 if dtype == torch.bfloat16 else 0)
        assert ("aten.mm.default" in added.names) is (dtype != torch.bfloat16)


def test_a_pass_that_is_clipped_adds_in_float32() -> None:
    matmul = torch.backends.cuda.matmul
    before = [getattr(matmul, name) for name in HALF_SUMS]
    assert before == [True, True, False]  # as torch has it
    with isolated(nn.Linear(1, 1)):
        assert not any(getattr(matmul, name) for name in HALF_SUMS)
    assert [getattr(matmul, name) for name in HALF_SUMS] == before


def test_a_device_that_is_to_repeat_itself_multiplies_in_float32() -> None:
    with FakeTensorMode():
        x = torch.empty(1, 4, 4, dtype=torch.bfloat16, device="cuda")
        assert products.on_tensor_cores(x, x)
        torch.use_deterministic_algorithms(True)
        try:
            assert not products.on_tensor_cores(x, x)
        finally:
            torch.use_deterministic_algorithms(False)
