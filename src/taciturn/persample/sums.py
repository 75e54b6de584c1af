"""Where clipped sums are collected, by parameter name."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from math import prod

import torch
from torch import Tensor

LARGE = 2**22
"""Tensors from this many numbers on are worth pages of their own."""


class Sums:
    """Sums by parameter name, float32; empty at first."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._sums

    def __getitem__(self, key: str) -> Tensor:
        return self._sums[key]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._sums))

    def add(self, key: str, total: Tensor) -> None:
        """Add ``total``; takes it over when there is nothing yet."""
        if key in self._sums:
            self._sums[key].add_(total)
        else:
            self._sums[key] = total

    def add_product(self, key: str, left: Tensor, right: Tensor) -> None:
        """Add left @ right."""
        if key in self._sums:
            self._sums[key].addmm_(left, right)
        else:
            self._sums[key] = torch.mm(left, right, out=empty((left.shape[0], right.shape[1]), left.device))

    def add_rows(self, key: str, rows: int, ids: Tensor, values: Tensor) -> None:
        """Add values [n, d] to the rows ``ids`` [n] of a table [rows, d]."""
        if key not in self._sums:
            self._sums[key] = zeros((rows, values.shape[1]), values.device)
        self._sums[key].index_add_(0, ids, values)


def zeros(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """A float32 tensor of zeros, a large one on huge pages."""
    pages = _huge(prod(shape), device)
    return torch.zeros(shape, device=device) if pages is None else pages.view(shape)


def empty(shape: tuple[int, ...], device: torch.device) -> Tensor:
    """A float32 tensor to be written to, a large one on huge pages."""
    pages = _huge(prod(shape), device)
    return torch.empty(shape, device=device) if pages is None else pages.view(shape)


def _huge(numbers: int, device: torch.device) -> Tensor | None:
    """Zeros on huge pages of their own; None for few numbers, other devices and systems without such pages.

    Logits and gradients are allocated anew each step, and a page fault every 4 KiB would cost a twentieth of it on CPU.
    """
    if device.type != "cpu" or numbers < LARGE or not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    pages = mmap.mmap(-1, 4 * numbers)
    try:
        pages.madvise(mmap.MADV_HUGEPAGE)
    except OSError:  # a kernel without them
        return None
    return torch.frombuffer(pages, dtype=torch.float32)
