"""``torchrun script.py`` with a PrivateTrainer in it: two processes, one run, equal to that of one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import taciturn as tt
from taciturn.mechanisms.run import Run

SCRIPT = """
import os, sys, torch
from pathlib import Path
from transformers import GPT2Config, GPT2LMHeadModel, TrainingArguments
import taciturn as tt
from taciturn.models.tokenizers import bpe_tokenizer

out, batch = sys.argv[1], int(sys.argv[2])
texts = ["thank you for the parcel"] * 20 + [f"call me at (555) 010-7{i:03}" for i in range(40)]
torch.manual_seed(0)
coder = bpe_tokenizer(texts[:20], 300)
shape = dict(n_positions=64, n_embd=16, n_layer=1, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
model = GPT2LMHeadModel(GPT2Config(vocab_size=len(coder), **shape))
screened = tt.screen(tt.read(texts), tt.policy("pii"), tt.policy("conservative"))
how = dict(num_train_epochs=1, per_device_train_batch_size=batch, learning_rate=1e-3, use_cpu=True)
args = TrainingArguments(out + "/run", **how)
trainer = tt.PrivateTrainer(
    model, args, screened, coder, delta=1e-3, allow=["cannot-learn"], private={"noise_multiplier": 1.0},
)
trainer.train()
# one file a process: what two of them print can meet on one line
Path(out, "spent-" + os.environ.get("RANK", "0")).write_text(str(trainer.certificate.epsilon_spent))
trainer.save_model(out + "/model")
"""


def test_two_processes_are_one_run(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    found = {}
    for name, words in (
        ("two", ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]),
        ("one", []),
    ):
        (tmp_path / name).mkdir()
        batch = "5" if name == "two" else "10"  # of each process
        command = [sys.executable, *words, str(tmp_path / "script.py"), str(tmp_path / name), batch]
        made = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        assert made.returncode == 0, made.stderr[-3000:]
        spent = [path.read_text() for path in (tmp_path / name).glob("spent-*")]
        assert len(spent) == (2 if name == "two" else 1)
        found[name] = set(spent)
        assert not tt.verify(tmp_path / name / "model" / "certificate.json")
    assert found["two"] == found["one"]
    one, two = (Run(tmp_path / name / "run").model()[0].state_dict() for name in ("one", "two"))
    assert one.keys() == two.keys()
    assert all(one[name].shape == two[name].shape for name in one)
