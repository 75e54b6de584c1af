"""Runs in several processes: cases that a process on its own and a group of processes both run, and what starts a group."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import peft  # noqa: F401 — here, so that forked processes have loaded it
import pytest
import torch
import torch.distributed as dist
import torch.distributed.fsdp
from tiny import DATA, TOKENIZER, VALID, plan, private, public
from torch import nn
from torch.distributed import TCPStore
from transformers import AutoConfig, AutoModelForCausalLM, GPT2LMHeadModel, LlamaForCausalLM, Qwen3MoeForCausalLM  # noqa: F401 — the latter as peft

from forks import Forked, fork
from processes import ended
from taciturn.errors import DataError, Elsewhere, MismatchError, TaciturnError, UsageError
from taciturn.models import lora
from taciturn.models.half import halve_frozen
from taciturn.models.hf import checkpoint_activations, load_model
from taciturn.models.lora import Lora
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import encode_all
from taciturn.text.document import MASK
from taciturn.training import engine
from taciturn.training.distributed.fsdp import gathered, is_cut, local, shard
from taciturn.training.distributed.loading import loaded_once
from taciturn.training.distributed.processes import ALONE, World, joined
from taciturn.training.engine import Options
from taciturn.training.passes import Work
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import Counts, Fill
from taciturn.training.plan import Plan, Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.samplers import Poisson
from taciturn.training.schedules import Optimiser
from taciturn.training.updates.clip_noise import private_gradient
from taciturn.training.values.contexts import Contexts
from taciturn.training.values.fill import Filler
from taciturn.training.values.slots import Slots

GENTLE = Optimiser("adamw", 3e-4)
"""A rate at which one step of the grid that noised sums are rounded to moves no weight by 1e-6."""


def lstm(dropout: float = 0.0, width: int = 8) -> Any:
    return load_model("lstm", TOKENIZER, 1, {"embedding_size": 8, "hidden_size": width, "dropout": dropout})


def forgetful() -> Any:
    return lstm(0.1)


def gpt2() -> Any:
    return _causal("gpt2", n_layer=2, n_head=2, n_embd=12, n_positions=64, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)


def llama() -> Any:
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return _causal("llama", hidden_size=16, intermediate_size=24, num_hidden_layers=3, **heads)


def adapted() -> Any:
    """A frozen Llama with an adapter, whose activations are computed again in the backward pass."""
    torch.manual_seed(1)
    m = lora.add(llama(), Lora(r=2, alpha=4), "causal")
    checkpoint_activations(m)
    return m


def mixture() -> Any:
    """Stacked weights of experts, of which a record's tokens choose."""
    more = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 12, "num_attention_heads": 4}
    return _causal("qwen3_moe", hidden_size=16, num_hidden_layers=2, num_key_value_heads=2, head_dim=4, **more)


def halved() -> Any:
    """A base as it was published in bfloat16, with an adapter."""
    base = llama()
    with torch.no_grad():
        for p in base.parameters():
            p.copy_(p.bfloat16())
    m = lora.add(base, Lora(r=2, alpha=4), "causal")
    assert halve_frozen(m)
    return m


def _causal(kind: str, **shape: Any) -> Any:
    torch.manual_seed(1)
    end = TOKENIZER.eos_token_id
    config = AutoConfig.for_model(kind, vocab_size=len(TOKENIZER), bos_token_id=end, eos_token_id=end, **shape)
    return AutoModelForCausalLM.from_config(config)


WHOLE = Options(checkpoint_steps=4, valid=VALID)
CUT = replace(WHOLE, shard=True, evaluations=3)


@dataclass(frozen=True)
class Case:
    plan: Plan
    make: Callable[[], Any]
    options: Options = WHOLE

    def run(self, out: Path, world: World = ALONE, **how: Any) -> torch.Tensor:
        """The weights the case comes to, whole. Processes have token budgets, and so numbers of passes, of their own."""
        cut = self.options.shard and world.size > 1
        m = loaded_once(self.make, world) if cut else self.make()
        assert all(p.is_meta == (cut and not world.leads) for p in m.parameters())
        data = {phase.name: DATA if phase.moves else SLOTS for phase in self.plan.phases}
        how["fillers"] = {phase.name: FILLER for phase in self.plan.phases if phase.fill is not None}
        options = replace(self.options, token_budget=90 if world.rank == 1 else 8192)
        engine.fit(self.plan, m, TOKENIZER, data, out, options, world=world, **how)
        named = dict(m.named_parameters())
        assert all(is_cut(p) == cut for p in named.values())
        return torch.cat([w.detach().flatten() for w in gathered(named, True).values()])


def noisy(rate: float = 0.3, **rule: Any) -> Any:
    return replace(private(rate, **rule), optimiser=GENTLE)


SAID = [f"record {i} says hello on {('Monday', 'Sunday')[i % 2]}" for i in range(len(DATA))]
SKELETONS = [f"record {i} says hello on {MASK}" for i in range(len(DATA))]
SLOTS = Slots.of(zip(SAID, SKELETONS, strict=True), Contexts.of(SKELETONS))
FILLER = Filler(SKELETONS, lambda _, texts: encode_all(TOKENIZER, texts), TOKENIZER)
TABLE = Phase("values", ("private",), len(DATA), Poisson(1.0), Counts(0.2, 2.0), 1, Optimiser(), once=True)
FILLED = replace(public(), fill=Fill("initial", table="values", candidates=3))
CLIPPED = Optimiser("sgd", 0.1, momentum=0.9, max_grad_norm=0.5)
CASES = {
    "two phases": Case(plan(public(), noisy()), lstm),
    "nearly all draws empty": Case(plan(noisy(0.01, clip=0.05)), lstm),
    "average, adaptive clipping": Case(plan(public(3, CLIPPED), noisy(clipping="adaptive"), average=0.9), lstm),
    "operating-system noise": Case(plan(public(2), noisy(), noise=None), lstm),
    "dropout": Case(plan(public(), noisy()), forgetful),
    "a table of values": Case(
        plan(TABLE, replace(public(), fill=Fill("initial", table="values", candidates=3)), noisy()), lstm
    ),
}
SHARDED = {
    "gpt2": Case(plan(public(2, CLIPPED), noisy(steps=3)), gpt2, CUT),
    "llama": Case(plan(public(2, GENTLE), noisy(steps=3, clipping="per-layer"), average=0.9), llama, CUT),
    "llama, adapter": Case(plan(public(3), noisy(steps=4), repeat=1), adapted, CUT),
    "experts": Case(plan(public(2, GENTLE), noisy(steps=3)), mixture, CUT),
    "lstm, adaptive": Case(plan(noisy(0.05, clipping="adaptive")), lstm, CUT),
}


def run_all(folder: Path) -> None:
    """Run every case, one after the other, in this group; each process leaves its weights, and released noise."""
    with joined() as world:
        disagree(world)
        load_once(world)
        for name, case in (CASES | SHARDED).items():
            out = folder / name
            out.mkdir(exist_ok=True)
            torch.save(case.run(out, world), out / f"weights-{world.rank}.pt")
            world.wait()
        for kind, cut in (("copies", False), ("sharded", True)):
            torch.save(noise(world, cut), folder / f"noise-{kind}-{world.rank}.pt")
        world.wait()


def disagree(world: World) -> None:
    """What one process has wrong, or fails at for all, is an error in each of them."""
    with pytest.raises(MismatchError, match="differ in b:"):
        world.same(lambda: {"a": "1", "b": str(world.rank)})

    def fail() -> None:
        raise DataError("no space")

    with pytest.raises(DataError if world.leads else Elsewhere, match="no space") as raised:
        world.once(fail)
    assert raised.value.exit_code == 3
    assert world.agree(np.arange(world.rank, 5)).tolist() == [0, 1, 2, 3, 4]


def load_once(world: World) -> None:
    """What each process has of a model is, put together, that of a process which loads it alone: every bit and type, what
    is trained, what is one weight, and the buffers, kept ones or not."""
    for make in (gpt2, llama, adapted, halved, mixture, lstm):
        alone, m = make(), loaded_once(make, world)
        assert all(p.is_meta != world.leads for p in m.parameters())
        shard(m, world)
        tied = [[names for _, names in _by_weight(each)] for each in (alone, m)]
        assert tied[0] == tied[1]
        assert (len(tied[0]) < len(list(alone.named_parameters(remove_duplicate=False)))) == (make is gpt2)
        for (name, p), (other, q) in zip(alone.named_parameters(), m.named_parameters(), strict=True):
            assert (name, p.requires_grad, p.dtype) == (other, q.requires_grad, q.dtype)
            assert torch.equal(p, gathered(q, True)), name
            assert local(q).numel() <= -(-len(p) // world.size) * (p.numel() // len(p)), name
        buffers = dict(m.named_buffers())
        assert len(buffers) == len(dict(alone.named_buffers()))
        assert all(torch.equal(t, buffers[name]) for name, t in alone.named_buffers())
    twice = nn.ModuleList([nn.Sequential(nn.Linear(2, 2)) for _ in range(2)])
    twice[1][0].weight = twice[0][0].weight
    with pytest.raises(UsageError, match=r"0\.0\.weight is in several blocks"):
        shard(nn.Sequential(twice), world)


def _by_weight(m: nn.Module) -> list[tuple[Any, list[str]]]:
    found: dict[Any, list[str]] = {}
    for name, p in m.named_parameters(remove_duplicate=False):
        found.setdefault(p, []).append(name)
    return list(found.items())


def noise(world: World, cut: bool) -> dict[str, torch.Tensor]:
    """The released gradient of records without targets: noise and nothing else, from the operating system."""
    m = lstm(width=96)
    if cut:
        world = shard(m, world)
    phase = private(0.2, sigma=2.0, clip=0.5)
    rows, secret = np.full(5, len(DATA) - 1), SecretSource(None)  # the last record is only <MASK>
    private_gradient(m, DATA, rows, mask_id(TOKENIZER), Work(), phase.rule, Step(0, phase, 0, 0), secret, 0.5, world)
    released: dict[str, torch.Tensor] = gathered({name: p.grad for name, p in m.named_parameters()}, True)
    return released


def die_at(rank: int, step: int, how: int = signal.SIGKILL) -> None:
    """Have the process ``rank`` of this group end in the middle of a step."""
    draw = engine.draw

    def dying(at: Step, *rest: Any) -> Any:
        if int(os.environ["RANK"]) == rank and at.number + 1 == step:
            os.kill(os.getpid(), how)
        return draw(at, *rest)

    engine.draw = dying  # type: ignore[attr-defined]


def hang_at(rank: int, step: int, folder: Path, minutes: float) -> None:
    """Have the process ``rank`` of this group stop in the middle of a step. The others have been told to wait ``minutes``
    for it; once it hangs, and not before, a second of them is enough."""
    draw = engine.draw

    def hanging(at: Step, *rest: Any) -> Any:
        if at.number + 1 == step and int(os.environ["RANK"]) == rank:
            (folder / "hangs").touch()
            os.kill(os.getpid(), signal.SIGSTOP)
        elif at.number + 1 == step:
            while not (folder / "hangs").exists():  # whoever started them watches over how long
                time.sleep(0.01)
            group = dist.distributed_c10d._get_default_group()
            assert group._get_backend(torch.device("cpu")).options._timeout == timedelta(minutes=minutes)
            dist.distributed_c10d._set_pg_timeout(timedelta(seconds=1), group)
        return draw(at, *rest)

    engine.draw = hanging  # type: ignore[attr-defined]


def run_case(folder: Path, name: str, resume: bool, minutes: float = 10) -> None:
    """One case, by way of the exit codes of the command line."""
    try:
        with joined(minutes) as world:
            torch.save((CASES | SHARDED)[name].run(folder, world, resume=resume), folder / f"weights-{world.rank}.pt")
            world.wait()
    except TaciturnError as error:
        print(error, flush=True)
        sys.exit(error.exit_code)


_stores: list[TCPStore] = []


def found_by() -> dict[str, str]:
    """The environment in which the processes of a group find each other: by a store of their own, as torchrun has one, at a
    port that is taken until the tests end."""
    _stores.append(TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False))
    here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_stores[-1].port)}
    return here | {"TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RESTART_COUNT": "0"}


def group(code: str, size: int) -> list[Forked]:
    """``size`` processes, as torchrun would start them, running ``code``, in which ``many`` is this module."""
    head = "import os, signal, sys\nfrom pathlib import Path\nimport many\n"
    here = {**os.environ, **found_by(), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}

    def start(rank: int) -> Forked:
        env = {**here, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        return fork(head + code, env, subprocess.PIPE, subprocess.STDOUT)

    return [start(rank) for rank in range(size)]


def finish(processes: list[Forked]) -> list[tuple[int, str]]:
    """(exit code, what it said) of each; none is left running."""
    said = ended(*processes)
    return [(p.returncode, text.decode()) for p, (text, _) in zip(processes, said, strict=True)]


def together(code: str, size: int) -> None:
    for returned, said in finish(group(code, size)):
        assert returned == 0, said
