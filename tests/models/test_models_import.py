"""Whichever module is imported first, in an interpreter that has imported nothing, both recurrent models register."""

from __future__ import annotations

import subprocess
import sys

import pytest

ALL = """
from transformers import AutoConfig, AutoModelForCausalLM
for name in ("taciturn_lstm", "taciturn_awd_lstm"):
    AutoConfig.for_model(name)
"""


@pytest.mark.parametrize(
    "first", ["taciturn.api", "taciturn.models.lstm", "taciturn.models.awd_lstm", "taciturn.models.hf", "taciturn"]
)
def test_any_module_may_come_first(first: str) -> None:
    done = subprocess.run([sys.executable, "-c", f"import {first}\n{ALL}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]
