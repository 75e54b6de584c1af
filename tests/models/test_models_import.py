"""Whichever module is imported first, in an interpreter that has imported nothing of ours, both recurrent models register.

It has loaded torch and what else takes long, but not transformers' auto classes, for which our registration waits.
"""

from __future__ import annotations

import os
import subprocess

import pytest

from forks import THIRD_PARTY, fork
from processes import ended

NOTHING = """
import sys
assert not [name for name in sys.modules if name.partition(".")[0] == "taciturn"]
assert "transformers.models.auto.modeling_auto" not in sys.modules
"""
ALL = """
from transformers import AutoConfig, AutoModelForCausalLM
for name in ("taciturn_lstm", "taciturn_awd_lstm"):
    AutoConfig.for_model(name)
"""


@pytest.mark.parametrize(
    "first", ["taciturn.api", "taciturn.models.lstm", "taciturn.models.awd_lstm", "taciturn.models.hf", "taciturn"]
)
def test_any_module_may_come_first(first: str) -> None:
    code, env = f"{NOTHING}\nimport {first}\n{ALL}", {**os.environ, "OMP_NUM_THREADS": "1"}
    process = fork(code, env, subprocess.PIPE, subprocess.STDOUT, modules=THIRD_PARTY)
    [(said, _)] = ended(process)
    assert process.returncode == 0, said[-500:]
