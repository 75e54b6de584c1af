"""Where clipped sums are collected, by parameter name."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from taciturn.persample import products


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
        self._sums[key] = products.added(self._sums.get(key), left, right)

    def add_rows(self, key: str, rows: int, ids: Tensor, values: Tensor) -> None:
        """Add values [n, d] to the rows ``ids`` [n] of a table [rows, d]."""
        if key not in self._sums:
            self._sums[key] = torch.zeros(rows, values.shape[1], device=values.device)
        self._sums[key].index_add_(0, ids, values)
