"""The number type of matrix products in training. Weights, norms, clipped sums and noise stay float32."""

from __future__ import annotations

from typing import Literal

import torch

Precision = Literal["float32", "bf16", "fp16"]


def autocast_type(precision: Precision) -> torch.dtype | None:
    """What `torch.autocast` is to use, None where it is off."""
    return {"float32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
