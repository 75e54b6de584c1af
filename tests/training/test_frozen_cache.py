"""What frozen first layers make of records, kept in a file: the same run as without it, computed once."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny import ADAM, SGD, TEXTS, TOKENIZER

import taciturn as tt
from taciturn.errors import DataError, UsageError
from taciturn.models.held_out import HeldOut
from taciturn.models.hf import load_model
from taciturn.models.loss import Batch, collate, record_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tasks import encode_task
from taciturn.models.tokens import Tokens
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.text.document import Record
from taciturn.training.distributed.processes import ALONE
from taciturn.training.engine import Options, fit
from taciturn.training.frozen.cache import frozen_cache
from taciturn.training.frozen.store import store
from taciturn.training.given import check_cut
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise, Plain
from taciturn.training.plan import Model, Plan, Seeds, Target
from taciturn.training.samplers import Poisson, Shuffle

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24,
    "max_position_embeddings": 64,
}  # fmt: skip
SHAPES: dict[str, dict[str, Any]] = {
    "bert": {**SMALL, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0},
    "gpt2": {"n_embd": 16, "n_layer": 3, "n_head": 2, "n_positions": 64, "resid_pdrop": 0.0, "embd_pdrop": 0.0,
             "attn_pdrop": 0.0, "tie_word_embeddings": False},
    "llama": {**SMALL, "num_key_value_heads": 1, "tie_word_embeddings": False},
}  # fmt: skip
FROZEN = {
    "bert": ("*.embeddings.*", "*.layer.0.*", "*.layer.1.*"),
    "gpt2": ("*.wte.*", "*.wpe.*", "*.h.0.*", "*.h.1.*"),
    "llama": ("*.embed_tokens.*", "*.layers.0.*", "*.layers.1.*"),
}
LABELS = ["cold", "warm"]
KINDS = ("bert", "gpt2", "llama")
CLASSES = [LABELS[i % 2] for i in range(len(TEXTS))]


def made(kind: str, folder: Path, frozen: tuple[str, ...] | None = None, **changed: Any) -> Any:
    """A model of that family with three layers, of which the first two are frozen; a BERT classifies."""
    path = folder / f"{kind}.json"
    path.write_text(json.dumps({"model_type": kind, **SHAPES[kind], **changed}))
    task: Any = {"task": "classify", "labels": LABELS} if kind == "bert" else {}
    return load_model(str(path), TOKENIZER, 0, frozen=FROZEN[kind] if frozen is None else frozen, **task)


def coded(kind: str, texts: list[str] = TEXTS) -> Tokens:
    if kind == "bert":
        return encode_task(TOKENIZER, texts, 40, task="classify", labels=CLASSES[: len(texts)], names=LABELS)
    return encode_task(TOKENIZER, texts, 40)


def fitted(kind: str, folder: Path, name: str, cache: Path | None, tokens: Tokens | None = None) -> torch.Tensor:
    """The trained weights after two plain epochs and six noised steps with seeds, evaluated on the way."""
    n = len(TEXTS)
    phases = (
        Phase("public", ("public",), n, Shuffle(7), Plain(), 8, SGD),
        Phase("private", ("private",), n, Poisson(0.3), ClipNoise(0.5, 0.8), 6, ADAM),
    )
    task: Any = {"task": "classify", "labels": tuple(LABELS)} if kind == "bert" else {}
    plan = Plan("crt", phases, 1, Target(), "key", Model(kind, "bytes", **task), Seeds(1, 2, 5))
    model, tokens = made(kind, folder), coded(kind) if tokens is None else tokens
    told = {"task": "classify", "names": LABELS} if kind == "bert" else {}
    valid = HeldOut.of(TOKENIZER, [Record("v#0", "v", 0, 9, "some text", label="warm")], **told)
    options = Options(valid=valid, frozen_cache=cache)
    fit(plan, model, TOKENIZER, {phase.name: tokens for phase in phases}, folder / name, options)
    assert not any("forward" in vars(module) for module in model.modules())  # the model is as it was
    assert not model._forward_pre_hooks
    assert not model._forward_hooks
    return torch.cat([p.detach().flatten() for p in model.parameters() if p.requires_grad])


@contextmanager
def counted(module: torch.nn.Module) -> Iterator[list[int]]:
    """Rows that a layer really computes, seen at a linear layer inside it."""
    rows: list[int] = []
    inner = next(m for m in module.modules() if m.__class__.__name__ in ("Linear", "Conv1D"))
    handle = inner.register_forward_hook(lambda _m, args, _out: rows.append(len(args[0])))
    try:
        yield rows
    finally:
        handle.remove()


def first_layer(model: Any) -> torch.nn.Module:
    return max((m for m in model.modules() if isinstance(m, torch.nn.ModuleList)), key=len)[0]


def batch_of(kind: str, rows: list[int], tokens: Tokens | None = None) -> Batch:
    return collate(coded(kind) if tokens is None else tokens, np.array(rows), mask_id(TOKENIZER))


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_is_the_same_but_for_rounding(kind: str, tmp_path: Path) -> None:
    """Without the file, with an empty one, and with one that is full."""
    path = tmp_path / "frozen.sqlite"
    plain = fitted(kind, tmp_path, "plain", None)
    empty = fitted(kind, tmp_path, "empty", path)
    full = fitted(kind, tmp_path, "full", path)
    torch.testing.assert_close(empty, plain, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(full, plain, rtol=1e-4, atol=1e-5)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [(tmp_path / name / "ledger.jsonl").read_text().count("\n") for name in ("plain", "full")]
    assert lines[0] == lines[1]  # every access is in the ledger, whether it was computed or read


@pytest.mark.parametrize("kind", KINDS)
def test_each_record_is_computed_once(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "frozen.sqlite"
    short, long = [0, 5, 10], [1, 4, 0]
    for expected in (1, 0):  # the second time in another process's place: the file is opened anew
        model, tokens = made(kind, tmp_path), coded(kind)
        batches = [batch_of(kind, rows) for rows in (short, long, long)]
        wanted = [record_losses(model, batch).detach() for batch in batches]
        with frozen_cache(model, path, [tokens], classify=kind == "bert"), counted(first_layer(model)) as rows:
            found = [record_losses(model, batch).detach() for batch in batches]
        for a, b in zip(found, wanted, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
        assert sum(rows) == 5 * expected


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_kept_is_to_the_bit_a_function_of_the_record_alone(kind: str, tmp_path: Path) -> None:
    """So that a step without noise shows nothing of whom a private record stood beside when it was kept."""
    found = []
    for name, rows in (("a", [0, 5, 10]), ("b", [1, 4, 0, 0]), ("c", [0])):
        model = made(kind, tmp_path)
        with frozen_cache(model, tmp_path / name, [coded(kind)], classify=kind == "bert"):
            record_losses(model, batch_of(kind, rows))
        with store(tmp_path / name) as kept:
            found.append(dict(kept.db.execute("SELECT key, hidden FROM kept").fetchall()))
    assert [len(each) for each in found] == [3, 3, 1]
    ((key, alone),) = found[2].items()
    assert found[0][key] == found[1][key] == alone


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_of_the_trained_rest(kind: str, tmp_path: Path) -> None:
    grads = []
    for path in (None, tmp_path / "a.sqlite", tmp_path / "a.sqlite"):
        model = made(kind, tmp_path)
        with frozen_cache(model, path, [coded(kind)], classify=kind == "bert"):
            record_losses(model, batch_of(kind, [3, 4, 7])).sum().backward()
        grads.append(
            torch.cat([p.grad.flatten() for p in model.parameters() if p.requires_grad and p.grad is not None])
        )
        assert all(p.grad is None for p in model.parameters() if not p.requires_grad)
    torch.testing.assert_close(grads[1], grads[0], rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(grads[2], grads[0], rtol=1e-4, atol=1e-6)


def test_other_weights_find_nothing_of_what_these_left(tmp_path: Path) -> None:
    path = tmp_path / "frozen.sqlite"
    for change, fresh in ((0.0, 3), (0.0, 0), (1e-3, 3), (0.0, 0)):
        model = made("bert", tmp_path)
        with torch.no_grad():
            first_layer(model).output.dense.weight += change
        batch = batch_of("bert", [2, 3, 9])
        wanted = record_losses(model, batch)
        with frozen_cache(model, path, [coded("bert")], classify=True), counted(first_layer(model)) as rows:
            torch.testing.assert_close(record_losses(model, batch), wanted, rtol=1e-5, atol=1e-6)
        assert sum(rows) == fresh


def test_what_is_no_record_of_the_run_is_not_kept(tmp_path: Path) -> None:
    """Filled and packed records are other ones each time."""
    path = tmp_path / "frozen.sqlite"
    model = made("gpt2", tmp_path)
    other = coded("gpt2", ["of no phase", "nor this"])
    batch = batch_of("gpt2", [0, 1], other)
    wanted = record_losses(model, batch)
    with frozen_cache(model, path, [coded("gpt2")]), counted(first_layer(model)) as rows:
        for _ in range(2):
            torch.testing.assert_close(record_losses(model, batch), wanted, rtol=1e-5, atol=1e-6)
    assert sum(rows) == 4
    with store(path) as kept:
        assert kept.db.execute("SELECT count(*) FROM kept").fetchone() == (0,)


def test_zeros_at_a_records_end_are_told_from_padding(tmp_path: Path) -> None:
    """Token 0 pads, and is a token too: a record that ends in it is another one where attention sees both ends."""
    model = made("bert", tmp_path)
    flat = np.array([5, 6, 0, 0, 5, 6, 5, 6, 0, 7, 8, 9, 9], np.int32)
    tokens = Tokens(flat, np.array([0, 4, 6, 9, 13]), labels=np.array([0, 0, 0, 1]))
    wanted = [record_losses(model, batch_of("bert", [i], tokens)).detach() for i in range(4)]
    with frozen_cache(model, tmp_path / "a.sqlite", [tokens], classify=True):
        for rows in ([0, 3], [1, 3], [2, 3], [2, 1, 0]):
            found = record_losses(model, batch_of("bert", rows, tokens)).detach()
            torch.testing.assert_close(found, torch.cat([wanted[i] for i in rows]), rtol=1e-4, atol=1e-5)
    assert len({round(float(each), 6) for each in wanted[:3]}) == 3


def test_the_text_of_a_pair_is_a_part_of_the_record(tmp_path: Path) -> None:
    model = made("bert", tmp_path, type_vocab_size=2)
    flat, offsets, labels = np.array([5, 6, 7, 5, 6, 7], np.int32), np.array([0, 3, 6]), np.array([0, 0])
    tokens = Tokens(flat, offsets, labels=labels, segments=np.array([0, 0, 1, 0, 1, 1], np.int8))
    batch = batch_of("bert", [0, 1], tokens)
    wanted = record_losses(model, batch)
    with frozen_cache(model, tmp_path / "a.sqlite", [tokens], classify=True):
        for _ in range(2):
            torch.testing.assert_close(record_losses(model, batch), wanted, rtol=1e-4, atol=1e-5)
    assert float((wanted[0] - wanted[1]).detach().abs()) > 1e-6


def test_on_a_cpu_one_row_serves_both_number_types(tmp_path: Path) -> None:
    model = made("bert", tmp_path)
    batch, tokens = batch_of("bert", [2, 3, 9]), coded("bert")
    wanted = {half: _under(half, model, batch) for half in (True, False)}
    found: dict[bool, list[torch.Tensor]] = {True: [], False: []}
    with frozen_cache(model, tmp_path / "a.sqlite", [tokens], classify=True), counted(first_layer(model)) as rows:
        for half in (True, False, True, False):
            found[half].append(_under(half, model, batch))
    assert sum(rows) == 3  # computed once each, in whichever pass comes first
    assert torch.equal(*found[True])
    assert torch.equal(*found[False])
    torch.testing.assert_close(found[False][0], wanted[False], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(found[True][0], wanted[True], rtol=2**-6, atol=2**-8)  # the front is float32 there
    assert not torch.equal(found[True][0], found[False][0])


def _under(half: bool, model: Any, batch: Batch) -> torch.Tensor:
    with torch.autocast("cpu", torch.bfloat16, enabled=half), torch.no_grad():
        return record_losses(model, batch)


@pytest.mark.parametrize(
    ("kind", "frozen", "changed", "said"),
    [
        ("bert", (), {}, "no frozen layers"),
        ("bert", ("*.layer.0.*",), {}, "no frozen layers"),  # the embedding before it is trained
        ("bert", ("*.embeddings.*", "*.layer.1.*"), {}, "no frozen layers"),
        ("gpt2", ("*.h.0.*",), {}, "no frozen layers"),
        ("bert", FROZEN["bert"], {"hidden_dropout_prob": 0.1}, "draws random numbers"),
        ("bert", FROZEN["bert"], {"attention_probs_dropout_prob": 0.1}, "draws random numbers"),
    ],
)
def test_a_model_without_such_layers_is_refused_by_what_is_wrong(
    kind: str, frozen: tuple[str, ...], changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    model = made(kind, tmp_path, frozen, **changed)
    modes = [module.training for module in model.modules()]
    with (
        pytest.raises(UsageError, match=f"train.frozen_cache: .*{said}"),
        frozen_cache(model, tmp_path / "a.sqlite", [coded(kind)], classify=kind == "bert"),
    ):
        pass
    assert not (tmp_path / "a.sqlite").exists()
    assert [module.training for module in model.modules()] == modes


def test_layers_that_are_run_twice_or_read_by_others_are_refused(tmp_path: Path) -> None:
    model = made("bert", tmp_path)
    layers = model.bert.encoder.layer
    layers[1] = layers[0]
    with pytest.raises(UsageError, match="run once, in order"), frozen_cache(model, tmp_path / "a", [], classify=True):
        pass
    model = made("bert", tmp_path)
    seen: list[torch.Tensor] = []
    model.bert.encoder.layer[0].register_forward_hook(lambda _m, _args, out: seen.append(out))
    model.classifier.register_forward_hook(lambda _m, _args, out: out + seen[-1].mean() + seen[-1][:, 0, :2])
    with (
        pytest.raises(UsageError, match="losses would be others"),
        frozen_cache(model, tmp_path / "a", [], classify=True),
    ):
        pass


def test_a_file_that_is_none_of_ours_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("a secret of mine, not a database at all" * 100)
    with (
        pytest.raises(DataError, match=r"notes\.txt cannot be used") as error,
        frozen_cache(made("bert", tmp_path), path, [coded("bert")], classify=True),
    ):
        pass
    assert "secret" not in str(error.value)
    assert path.read_text().startswith("a secret")


def test_two_at_once_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "frozen.sqlite"
    one, two = made("bert", tmp_path), made("bert", tmp_path)
    batch = batch_of("bert", [2, 3, 9])
    with (
        frozen_cache(one, path, [coded("bert")], classify=True),
        frozen_cache(two, path, [coded("bert")], classify=True),
        counted(first_layer(two)) as rows,
    ):
        wanted = record_losses(one, batch)
        torch.testing.assert_close(record_losses(two, batch), wanted)
    assert not rows


def test_a_step_of_such_a_run_that_is_lost_is_paid_for_and_never_done_again_for_the_same_noise(tmp_path: Path) -> None:
    """What is in the file decides how sums are rounded, so bits do not repeat; without it nothing is lost."""
    for name, cache, lost in (("with", tmp_path / "a.sqlite", 3), ("without", None, 0)):
        phase = Phase("private", ("private",), len(TEXTS), Poisson(0.3), ClipNoise(0.5, 0.8), 6, ADAM)
        plan = Plan("dpsgd", (phase,), 1, Target(), "key", Model("gpt2", "bytes"), Seeds(1, 2, None))
        options = Options(frozen_cache=cache, checkpoint_steps=100)

        def broken(progress: Any) -> None:
            if progress.step.number == 2:
                raise KeyboardInterrupt

        out, data = tmp_path / name, {"private": coded("gpt2")}
        with pytest.raises(KeyboardInterrupt):
            fit(plan, made("gpt2", tmp_path), TOKENIZER, data, out, options, notify=broken)
        fit(plan, made("gpt2", tmp_path), TOKENIZER, data, out, options, resume=True)
        assert sum(Ledger.read(out / "ledger.jsonl").lost("private").values()) == lost


def test_it_is_not_for_a_model_that_is_cut() -> None:
    plan = Plan("dpsgd", (), 1, Target(), "key", Model("gpt2", "bytes"), Seeds(1, 2, None))
    with pytest.raises(UsageError, match=r"frozen_cache with train\.shard"):
        check_cut(plan, ALONE, cached=True)


def test_a_run_that_cannot_have_it_says_so_before_anything_is_written(tmp_path: Path) -> None:
    """And the same folder takes the run that can."""
    path = tmp_path / "gpt2.json"
    path.write_text(json.dumps({"model_type": "gpt2", **SHAPES["gpt2"]}))
    screened = tt.screen(
        tt.read([f"call me at (555) 010-7{i:03}" for i in range(40)]), tt.policy("pii"), tt.policy("conservative")
    )
    noised = {"noise_multiplier": 1.0, "steps": 3, "rate": 0.2}
    (tmp_path / "other").write_text("not a database at all, but some text" * 100)

    def trained(frozen: tuple[str, ...], cache: str) -> None:
        model: Any = {"name": str(path), "tokenizer": "bytes", "frozen": frozen}
        train: Any = {"frozen_cache": str(tmp_path / cache), "evaluations": 0}
        plan = tt.plan("dpsgd", screened, model, delta=1e-3, train=train, allow=["cannot-learn"], **noised)
        tt.train(plan, tmp_path / "run", progress=False).certify()

    for frozen, cache, said in (((), "a.sqlite", "no frozen layers"), (FROZEN["gpt2"], "other", "cannot be used")):
        with pytest.raises((UsageError, DataError), match=said):
            trained(frozen, cache)
        assert not (tmp_path / "run" / "plan.json").exists()
        assert not (tmp_path / "a.sqlite").exists()
    trained(FROZEN["gpt2"], "a.sqlite")
    assert (tmp_path / "a.sqlite").stat().st_size
    assert not tt.verify(tmp_path / "run" / "certificate.json")
