"""Whichever module is imported first, where nothing of ours has been imported, both recurrent models register."""

from __future__ import annotations

import pytest

from processes import fresh

ALL = """
from transformers import AutoConfig, AutoModelForCausalLM
for name in ("taciturn_lstm", "taciturn_awd_lstm"):
    AutoConfig.for_model(name)
"""


@pytest.mark.parametrize(
    "first", ["taciturn.api", "taciturn.models.lstm", "taciturn.models.awd_lstm", "taciturn.models.hf", "taciturn"]
)
def test_any_module_may_come_first(first: str) -> None:
    fresh(f"import {first}\n{ALL}")
