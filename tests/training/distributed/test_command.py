"""``torchrun -m taciturn train``: one display, one set of files, a signal that stops it and a run that goes on."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from forks import fork
from processes import Process, ended, until
from taciturn.cli.main import run
from taciturn.mechanisms.run import Run

TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
FORKED = """
import subprocess, sys
from forks import fork
from torch.distributed.elastic.multiprocessing.subprocess_handler import subprocess_handler
from torch.distributed.run import main

def start(args, env, stdout, stderr, start_new_session):
    assert args[:2] == (sys.executable, "-u") and stdout is stderr is None and start_new_session
    return fork(f"words = {{args[2:]}}" + {program!r}, env, stdout=1, stderr=subprocess.STDOUT)

subprocess_handler.Popen = start
main({words})
"""
"""torchrun, but for the interpreters: it and the processes it starts are forked from one that has loaded torch."""
PROGRAM = """
import os, runpy, sys
os.setsid()
sys.stdout.reconfigure(write_through=True)
sys.argv = list(words[words[0] == "-m" :])
run, what = (runpy.run_module, {"alter_sys": True}) if words[0] == "-m" else (runpy.run_path, {})
run(sys.argv[0], run_name="__main__", **what)
"""
TOLD = """
import os, sys
from taciturn.cli.main import run
code = run(sys.argv[1:])
print(f"process {os.environ['RANK']} ends with {code}", flush=True)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """run.toml of a short run with a plain and a private phase and seeded noise."""
    folder = tmp_path_factory.mktemp("talk")
    talk = [{"text": f"call me back on (555) 010-{i:04} please" if i % 3 else "have a nice day"} for i in range(60)]
    (folder / "talk.jsonl").write_text("\n".join(map(json.dumps, talk)))
    small = ["options.public.epochs=1", "options.private.steps=16", "options.private.batch=6", "seeds.noise=5",
             "options.private.optimiser.lr=3e-4", "model.options.hidden_size=8", "model.options.embedding_size=8",
             "model.options.dropout=0.0", "train.evaluations=2", "options.public.optimiser.lr=3e-4"]  # fmt: skip
    sets = [word for setting in small for word in ("--set", setting)]
    f = str(folder)
    assert run(["screen", f"{f}/talk.jsonl", "-p", "phone", "-o", f"{f}/screened"]) == 0
    plan = ["plan", "crt", f"{f}/screened", "--tokenizer", "bytes", "--epsilon", "8", "--delta", "1e-3"]
    assert run([*plan, "--valid", f"{f}/talk.jsonl", *sets, "-o", f"{f}/run.toml"]) == 0
    return folder / "run.toml"


def start(*words: Any, forked: bool = True) -> Process:
    """torchrun with two processes; forked: see ``FORKED``."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "200"}
    given = [*TORCHRUN, *map(str, words)]
    if forked:
        code = FORKED.format(words=given[2:], program=PROGRAM)
        return fork(code, env, subprocess.PIPE, subprocess.STDOUT, forks=True)
    command = [sys.executable, *given]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)


def heard(process: Process) -> str:
    """All it said, once it has ended. Work of forked ones, which are not below torchrun, is not seen: hence the limit."""
    said: bytes = ended(process, idle=900)[0][0]
    return said.decode()


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in Run(folder).model()[0].parameters()])


@pytest.mark.parametrize("shard", ["false", "true"])
def test_torchrun_trains_exports_and_talks_once(config: Path, tmp_path: Path, shard: str) -> None:
    setting = ("--set", f"train.shard={shard}")
    forked = shard == "true"  # the other time all is as a user has it
    process = start("-m", "taciturn", "train", config, "-o", tmp_path / "two", "--json", *setting, forked=forked)
    said = heard(process)
    assert process.returncode == 0, said
    assert said.count("model in ") == 1
    lines = [line for line in said.splitlines() if line.startswith("two: step ")]
    assert len(lines) == len({line.split("(")[0] for line in lines}) > 1
    assert said.count('"run": ') == 1
    assert run(["train", str(config), "-o", str(tmp_path / "one"), *setting]) == 0
    torch.testing.assert_close(weights(tmp_path / "two"), weights(tmp_path / "one"), rtol=0, atol=1e-6)
    ledgers = {(tmp_path / name / "ledger.jsonl").read_bytes() for name in ("one", "two")}
    assert len(ledgers) == 1
    names = [sorted(str(p.relative_to(tmp_path / n)) for p in (tmp_path / n).rglob("*")) for n in ("one", "two")]
    assert names[0] == names[1]
    assert run(["certify", str(tmp_path / "two")]) == 0
    assert run(["verify", str(tmp_path / "two" / "certificate.json")]) == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_torchrun_stops_every_process_with_130(config: Path, tmp_path: Path, number: int) -> None:
    (tmp_path / "told.py").write_text(TOLD)
    out, long = tmp_path / "run", ("--set", "options.private.steps=3000")
    process = start(tmp_path / "told.py", "train", config, "-o", out, *long)
    until(lambda: (out / "ledger.jsonl").exists() and (out / "ledger.jsonl").stat().st_size, process, idle=900)
    process.send_signal(number)
    said = heard(process)
    # Both write to one pipe, so a line of one may stand behind what the other has not ended yet.
    assert set(re.findall(r"process \d ends with \d+", said)) == {
        "process 0 ends with 130",
        "process 1 ends with 130",
    }, said
    assert said.count("continue with --resume") == 1
    [saved] = (out / "checkpoints").glob("step-*.pt")
    content = torch.load(saved, weights_only=True)
    assert content["position"][0] == len((out / "ledger.jsonl").read_text().splitlines()) < 3000


def test_a_mistake_is_told_once_and_ends_all(config: Path, tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(TOLD)
    (tmp_path / "plan.json").write_text("{}")
    process = start(tmp_path / "told.py", "train", config, "-o", tmp_path)
    said = heard(process)
    assert "process 0 ends with 3" in said
    assert said.count("already holds a run") == 1
