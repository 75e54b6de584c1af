"""A model of a few thousand weights, 25 short records, and plans over them: whole runs in a fraction of a second."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import torch

from forks import Forked, fork
from taciturn.models.held_out import HeldOut
from taciturn.models.hf import load_model
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.text.document import MASK, Record
from taciturn.text.spans import Span
from taciturn.training.engine import Options, fit
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise, Plain
from taciturn.training.plan import Model, Plan, Seeds, Target
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.schedules import Optimiser

TOKENIZER = byte_tokenizer()
TEXTS = [f"record {i} says {'hello ' * (i % 5)}" for i in range(24)] + [MASK]
DATA = encode_all(TOKENIZER, TEXTS)
VALID = HeldOut.of(TOKENIZER, [Record("v#0", "v", 0, 9, "some text", gold=(Span(0, 4),))])
SGD = Optimiser("sgd", 0.5)
ADAM = Optimiser("adamw", 0.01)


def model(seed: int = 0, hidden: int = 8) -> Any:
    return load_model("lstm", TOKENIZER, seed, {"embedding_size": 8, "hidden_size": hidden, "dropout": 0.1})


def private(
    rate: float = 0.3, sigma: float = 0.8, clip: float = 0.5, steps: int = 6, n: int = len(DATA), **rule: Any
) -> Phase:
    return Phase("private", ("private",), n, Poisson(rate), ClipNoise(clip, sigma, **rule), steps, ADAM)


def public(steps: int = 5, optimiser: Optimiser = SGD) -> Phase:
    return Phase("public", ("public",), len(DATA), Shuffle(7), Plain(), steps, optimiser)


def plan(*phases: Phase, repeat: int = 2, noise: int | None = 5, average: float | None = None) -> Plan:
    phases = phases or (public(), private())
    return Plan("crt", phases, repeat, Target(), "key", Model("lstm", "bytes"), Seeds(1, 2, noise), average=average)


def run(p: Plan, out: Path, m: Any = None, **how: Any) -> Any:
    """Fit a tiny model (or ``m``) to ``p`` under ``out``; the model."""
    m = m if m is not None else model(p.seeds.model)
    options = how.pop("options", Options(checkpoint_steps=4, valid=VALID))
    fit(p, m, TOKENIZER, {phase.name: DATA for phase in p.phases}, out, options, **how)
    return m


def weights(m: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in m.parameters()])


def python(code: str, stdout: int | None = None) -> Forked:
    """Another process running ``code``, in which ``t`` is this module; as many threads as here, so bits agree."""
    env = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    head = "import os, signal, sys\nfrom pathlib import Path\nimport tiny as t\n"
    return fork(head + textwrap.dedent(code), env, stdout)
