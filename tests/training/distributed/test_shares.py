"""How work and gradients are divided among processes; nothing here starts any."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from many import adapted, gpt2, lstm
from tiny import plan, public, run
from torch import nn

from taciturn.errors import TaciturnError, UsageError
from taciturn.training.distributed import all_reduce
from taciturn.training.distributed.all_reduce import pieces
from taciturn.training.distributed.fsdp import blocks
from taciturn.training.distributed.processes import ALONE, World, answering, joined
from taciturn.training.engine import Options
from taciturn.training.given import check_cut
from taciturn.training.passes import Work
from taciturn.training.plan import Model


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 6))
def test_shares_hold_every_row_once_and_about_as_many_tokens(lengths: list[int], size: int) -> None:
    rows, of = np.arange(len(lengths)), np.array(lengths, np.int64)
    shares = [World(rank, size).share(rows, of) for rank in range(size)]
    assert sorted(np.concatenate(shares).tolist()) == rows.tolist()
    sizes, tokens = [len(s) for s in shares], [int(of[s].sum()) for s in shares]
    assert max(sizes) - min(sizes) <= 1
    assert max(tokens) - min(tokens) <= max(lengths, default=0)  # dealt in order of length


@given(st.lists(st.integers(0, 30), max_size=12), st.integers(1, 9), st.integers(1, 20))
def test_pieces_hold_every_place_once_and_write_back(sizes: list[int], small: int, piece: int) -> None:
    tensors = [torch.zeros(n) for n in sizes]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(all_reduce, "SMALL", small)
        patch.setattr(all_reduce, "PIECE", piece)
        cut = list(pieces(tensors))
    at = 0
    for part in cut:
        assert part.start == at
        assert part.flat.numel() <= max(piece, small * -(-piece // small))
        part.flat.copy_(torch.arange(at, at := at + part.flat.numel()))
        part.put_back()
    assert torch.cat(tensors).tolist() == list(range(sum(sizes))) if tensors else not cut


def test_a_process_on_its_own_is_a_world_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as world:
        assert replace(world, device=ALONE.device) == ALONE
    rows = np.array([4, 1])
    assert ALONE.share(rows, np.ones(9)) is rows
    assert ALONE.agree(rows) is rows
    assert ALONE.passes([3, 5]) == [3, 5]
    assert ALONE.once(lambda: 7) == 7
    assert ALONE.most([1, 0]) == [1, 0]


def test_each_process_has_random_numbers_of_its_own_in_each_step_wherever_the_stream_stood() -> None:
    drawn = []
    for rank, step in [(1, 5), (1, 5), (2, 5), (1, 6), (0, 5), (0, 5)]:
        torch.rand(len(drawn))
        World(rank, 3).seed(3, step)
        drawn.append(torch.rand(4))
    assert torch.equal(drawn[0], drawn[1])
    assert torch.equal(drawn[4], drawn[5])
    assert len({tuple(d.tolist()) for d in drawn}) == 4


def test_only_a_failed_exchange_is_a_lost_process() -> None:
    with pytest.raises(RuntimeError, match="shape") as raised, answering(lambda: "in step 3"):
        raise RuntimeError("shape")
    assert type(raised.value) is RuntimeError


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "cuda", SimpleNamespace(is_available=lambda: True, device_count=lambda: 2))
    monkeypatch.setenv("WORLD_SIZE", "3")
    monkeypatch.setenv("LOCAL_RANK", "2")
    with pytest.raises(UsageError, match="no GPU, there are 2"), joined():
        pass


def test_what_a_model_repeats_is_cut_on_its_own() -> None:
    m = gpt2()
    assert blocks(m) == list(m.transformer.h)
    assert [type(b).__name__ for b in blocks(adapted())] == ["LlamaDecoderLayer"] * 3
    assert blocks(lstm()) == []
    inner = nn.ModuleList([nn.Sequential(nn.Linear(2, 2))])
    experts = nn.ModuleList([nn.ModuleDict({"experts": inner}), nn.Linear(2, 2)])
    assert blocks(nn.Sequential(experts)) == [experts[0]]


def test_a_pass_through_a_sharded_model_is_not_tried_again_by_one_process() -> None:
    def full() -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with pytest.raises(TaciturnError, match=r"--resume --set train.token_budget=4096"):
        Work(again=False).attempt(full)


def test_fp16_is_refused_for_a_sharded_model(tmp_path: Path) -> None:
    half = replace(plan(public()), model=Model("lstm", "bytes", dtype="fp16"))
    with pytest.raises(UsageError, match="choose bf16 or float32"):
        run(half, tmp_path, options=Options(shard=True))


def test_what_needs_a_whole_model_is_refused_by_name() -> None:
    two = World(0, 2)
    check_cut(plan(public()), two)
    four = replace(plan(public()), model=Model("base", "bytes", base_bits=4))
    for refused, word in ((four, "base_bits"), (plan(replace(public(), kept=0.5)), "stays near it")):
        with pytest.raises(UsageError, match=word):
            check_cut(refused, two)
        check_cut(refused, ALONE)
