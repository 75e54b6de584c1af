"""Products of half-precision factors whose sums are float32, and how far they may be off (docs/guarantees.md §5.2).

A product of two bfloat16 or float16 numbers is a float32 number, so casting both first gains nothing and takes time. On a
CUDA device they go to the tensor cores as they are, which may truncate sums where float32 rounds. Elsewhere factors are
cast, and bits are those of float32 products.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

logger = logging.getLogger("taciturn")
HALF = (torch.bfloat16, torch.float16)
UNIT = 2.0**-22
"""The share of the largest partial sum that adding one product may lose. Tensor cores keep 24 bits or more of a sum,
truncate, and add four products or more at a time (Fasi, Higham, Mikaitis and Pranesh 2021), which stays below."""
BLOCK = 512
"""Products that tensor cores add up at a time for a norm; blocks are added as float32 numbers."""
Multiply = Callable[[Tensor, Tensor], Tensor]
Shapes = Sequence[tuple[int, int, int, int]]
SHAPES: Shapes = ((4, 128, 128, 512), (2, 64, 96, 509), (1, 256, 192, 4096), (8, 16, 8, 100))
"""U, n, m, K of what is tried on a device."""
Bounded = tuple[Tensor, Tensor | None]
"""What was computed, and by how much each entry may be off; None for float32's own rounding."""


def batched(a_UnK: Tensor, b_UKm: Tensor) -> Tensor:
    """a·b by unit, [U, n, m], float32."""
    if on_tensor_cores(a_UnK, b_UKm):
        return _batched(a_UnK, b_UKm)
    return torch.bmm(a_UnK.float(), b_UKm.float())


def bounded(a_UnK: Tensor, b_UmK: Tensor) -> Bounded:
    """a·bᵀ by unit, [U, n, m] both."""
    if not on_tensor_cores(a_UnK, b_UmK):
        return torch.bmm(a_UnK.float(), b_UmK.float().transpose(1, 2)), None
    total: Tensor | None = None
    for a, b in zip(a_UnK.split(BLOCK, 2), b_UmK.split(BLOCK, 2), strict=True):
        part = _batched(a, b.transpose(1, 2))
        total = part if total is None else total.add_(part)
    assert total is not None
    a_Un, b_Um = (torch.linalg.vector_norm(z, dim=2, dtype=torch.float32) for z in (a_UnK, b_UmK))
    return total, gamma(a_UnK.shape[2]) * a_Un.unsqueeze(2) * b_Um.unsqueeze(1)  # Σ|a||b| ≤ ‖a‖‖b‖


def excess(a: Bounded, b: Bounded) -> Tensor | float:
    """By how much Σ x·y over all entries of what two products are may exceed that of what was computed, by unit, [U]."""
    (x, x_off), (y, y_off) = a, b
    found: Tensor | float = 0.0
    if x_off is not None:
        found = found + torch.linalg.vecdot(x_off.flatten(1), y.abs().flatten(1))
    if y_off is not None:
        found = found + torch.linalg.vecdot(
            (x.abs() if x_off is None else x.abs() + x_off).flatten(1), y_off.flatten(1)
        )
    return found


def added(total: Tensor | None, left_pn: Tensor, right_nd: Tensor) -> Tensor:
    """total + left·right, in place where there is a total. A float32 factor meets a bfloat16 one as the sum of two bfloat16
    numbers, which leaves 2⁻¹⁶ of it."""
    if left_pn.dtype == torch.float32 and splits(right_nd):
        pairs = [(part, right_nd) for part in two_parts(left_pn)]
    elif right_nd.dtype == torch.float32 and splits(left_pn):
        pairs = [(left_pn, part) for part in two_parts(right_nd)]
    else:
        left, right = left_pn.float(), right_nd.float()
        return left @ right if total is None else total.addmm_(left, right)
    for left, right in pairs:
        product = _product(left, right)
        total = product if total is None else total.add_(product)
    assert total is not None
    return total


def two_parts(x: Tensor) -> tuple[Tensor, Tensor]:
    """bfloat16 numbers whose sum is within 2⁻¹⁶·|x| of x (float32): each rounding leaves 2⁻⁸."""
    high = x.bfloat16()
    return high, (x - high.float()).bfloat16()


def gamma(K: int) -> float:
    """|computed − exact| ≤ γ·Σ|a||b| for K products in blocks: UNIT for each, a quarter of it (2⁻²⁴) for each addition of
    blocks, and two for terms of second order."""
    return (min(K, BLOCK) + -(-K // BLOCK) / 4 + 2) * UNIT


def lost_in_sum(K: int) -> float:
    """What :func:`added` may miss of a record's part, with K positions, in shares of Σ_t ‖a_t‖‖b_t‖."""
    return 2.0**-16 + (1.01 * K + 2) * UNIT


def on_tensor_cores(a: Tensor, b: Tensor) -> bool:
    """Whether both factors are multiplied as they are."""
    return a.device.type == "cuda" and a.dtype in HALF and a.dtype == b.dtype and _trusted(a)


def splits(x: Tensor) -> bool:
    """Whether a float32 factor that meets ``x`` is split for it; float16 has not the range for the second part."""
    return x.dtype == torch.bfloat16 and on_tensor_cores(x, x)


def _trusted(like: Tensor) -> bool:
    """Not where runs are to repeat themselves, for two passes (twice.py) allow for no more than float32's rounding."""
    if torch.are_deterministic_algorithms_enabled():
        return False
    return isinstance(like, FakeTensor) or holds_on(like.device, like.dtype)


@cache
def holds_on(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether a device's sums were seen to keep the bound, once for each device and before anything is clipped by them; else
    products are float32, at their cost."""
    try:
        worst = max(share_of_bound(_batched, device, dtype), share_of_bound(_flat, device, dtype))
    except (
        RuntimeError,
        TypeError,
        NotImplementedError,
    ) as error:  # no such kernel: torch before 2.8, or another maker's
        logger.warning(
            "%s has no products of %s with float32 sums (%s): float32 ones are taken",
            device,
            dtype,
            type(error).__name__,
        )
        return False
    if not worst <= 1:
        logger.warning(
            "products of %s on %s are off by %.3g times the bound that clipping allows for: float32 ones, slower, are taken",
            dtype, device, worst,
        )  # fmt: skip
        return False
    return True


def share_of_bound(multiply: Multiply, device: torch.device, dtype: torch.dtype, shapes: Shapes = SHAPES) -> float:
    """The largest |computed − exact| / γ·Σ|a||b| for factors hard to add up; not a number where a result is none."""
    worst = 0.0
    for a, b in hard_factors(dtype, shapes):
        found = multiply(a.to(device), b.to(device).transpose(1, 2)).cpu().double()
        exact, size = a.double() @ b.double().mT, a.double().abs() @ b.double().abs().mT
        share = (found - exact).abs() / (size * UNIT * (a.shape[2] + 2)).clamp_min(1e-300)
        worst = max(worst, float(share.max())) if bool(share.isfinite().all()) else float("nan")
    return worst


def hard_factors(dtype: torch.dtype, shapes: Shapes) -> list[tuple[Tensor, Tensor]]:
    """Pairs [U, n, K], [U, m, K]: long sums of one sign, sums that cancel, small terms behind a large one, a wide spread of
    magnitudes; in several shapes, since these choose the kernel."""
    rng = np.random.default_rng(0)
    found = []
    for U, n, m, K in shapes:

        def made(numbers: object) -> Tensor:
            return torch.from_numpy(np.asarray(numbers, np.float32)).to(dtype)

        one_sign = [made(rng.uniform(1, 2, (U, rows, K))) for rows in (n, m)]
        a, b = made(rng.standard_normal((U, n, K // 2))), made(rng.standard_normal((U, m, K // 2)))
        tail = [made(rng.uniform(2.0**-6, 2.0**-5, (U, rows, K % 2 + 2))) for rows in (n, m)]
        cancelling = torch.cat([a, -a, tail[0]], 2), torch.cat([b, b, tail[1]], 2)
        swamped = [
            made(np.concatenate([np.ones((U, rows, 1)), np.full((U, rows, K - 1), 0.99 * 2.0**-10)], 2))
            for rows in (n, m)
        ]
        spread = [
            made(rng.standard_normal((U, rows, K)) * np.exp2(rng.integers(-10, 5, (U, rows, K)))) for rows in (n, m)
        ]
        found += [(one_sign[0], one_sign[1]), cancelling, (swamped[0], swamped[1]), (spread[0], spread[1])]
    return found


def _batched(a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = torch.bmm(a, b, out_dtype=torch.float32)
    return found


def _product(a: Tensor, b: Tensor) -> Tensor:
    found: Tensor = torch.mm(a, b, out_dtype=torch.float32)
    return found


def _flat(a: Tensor, b: Tensor) -> Tensor:
    return torch.stack([_product(x, y) for x, y in zip(a, b, strict=True)])
