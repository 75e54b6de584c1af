"""The loop: what a private step adds up to, what it leaves behind, and that a stop changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats

from taciturn.errors import DataError, Interrupted, MismatchError, TaciturnError, UsageError
from taciturn.models.evaluate import HeldOut
from taciturn.models.hf import load_model
from taciturn.models.tokens import Tokens, byte_tokenizer, encode_all, mask_id
from taciturn.privacy.events import NonPrivate, PoissonGaussian
from taciturn.privacy.ledger import Ledger
from taciturn.text.document import MASK, Record
from taciturn.text.spans import Span
from taciturn.training import checkpoint
from taciturn.training.engine import Options, Progress, fit
from taciturn.training.noise import SecretSource
from taciturn.training.plan import (
    ClipNoise,
    Model,
    Optimiser,
    Phase,
    Plain,
    Plan,
    Poisson,
    Seeds,
    Shuffle,
    Step,
    Target,
    epoch_steps,
)
from taciturn.training.rules import plain_gradient, private_gradient
from taciturn.training.sampling import draw

TOKENIZER = byte_tokenizer()
TEXTS = [f"record {i} says {'hello ' * (i % 5)}" for i in range(24)] + [MASK]
DATA = encode_all(TOKENIZER, TEXTS)
VALID = HeldOut.of(TOKENIZER, [Record("v#0", "v", 0, 9, "some text", gold=(Span(0, 4),))])
SGD = Optimiser("sgd", 0.5)


def model(seed: int = 0) -> Any:
    return load_model("lstm", TOKENIZER, seed, {"embedding_size": 8, "hidden_size": 8, "dropout": 0.1})


def private(rate: float = 0.3, sigma: float = 0.8, clip: float = 0.5, steps: int = 6, n: int = len(DATA)) -> Phase:
    return Phase("private", ("private",), n, Poisson(rate), ClipNoise(clip, sigma), steps, Optimiser("adamw", 0.01))


def public(steps: int = 5) -> Phase:
    return Phase("public", ("public",), len(DATA), Shuffle(7), Plain(), steps, SGD)


def plan(*phases: Phase, repeat: int = 2, noise: int | None = 5) -> Plan:
    return Plan(
        "crt", phases or (public(), private()), repeat, Target(), "key", Model("lstm", "bytes"), Seeds(1, 2, noise)
    )


def run(p: Plan, out: Path, **how: Any) -> Any:
    m = model(p.seeds.model)
    options = how.pop("options", Options(checkpoint_steps=4, valid=VALID))
    fit(p, m, TOKENIZER, {phase.name: DATA for phase in p.phases}, out, options, **how)
    return m


def weights(m: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in m.parameters()])


def released(phase: Phase, rows: list[int], budget: int = 10_000, step: int = 0, seed: int | None = 3) -> torch.Tensor:
    m = model().eval()
    at = Step(step, phase, 0, 0)
    private_gradient(m, DATA, np.array(rows, int), mask_id(TOKENIZER), budget, at, SecretSource(seed))
    return torch.cat([p.grad.flatten() for p in m.parameters()])


@pytest.mark.parametrize("budget", [1, 40, 90, 10_000])
def test_the_update_does_not_depend_on_the_physical_split(budget: int) -> None:
    rows = list(range(0, 25, 2))
    torch.testing.assert_close(released(private(), rows, budget), released(private(), rows), rtol=1e-5, atol=1e-6)
    a, b = model().eval(), model().eval()
    loss_a = plain_gradient(a, DATA, np.array(rows), mask_id(TOKENIZER), budget)
    loss_b = plain_gradient(b, DATA, np.array(rows), mask_id(TOKENIZER), 10_000)
    assert loss_a == pytest.approx(loss_b, rel=1e-5)
    for p, q in zip(a.parameters(), b.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-4, atol=1e-6)


def test_an_empty_draw_is_noise_over_the_constant_divisor() -> None:
    phase = private(rate=0.2, sigma=2.0, clip=0.5)
    noise = released(phase, [])
    assert float(noise.std()) == pytest.approx(2.0 * 0.5 / (0.2 * len(DATA)), rel=0.05)


def test_the_divisor_is_the_expected_batch_not_the_drawn_one() -> None:
    phase = private(sigma=1e-12, rate=0.2, clip=0.01)
    one = released(phase, [3])
    assert float(one.norm()) == pytest.approx(phase.rule.clip / (0.2 * len(DATA)), rel=1e-4)


def test_noise_has_the_stated_deviation() -> None:
    """1e5 draws: relative standard error of the deviation is 0.22 %, so 1 % fails by chance about once in 2e5 runs."""
    for seed in (None, 11):
        tensors = [torch.zeros(100, 500), torch.zeros(50_000)]
        SecretSource(seed).add_gaussian(0, tensors, 0.7 * 1.3)
        draws = torch.cat([t.flatten() for t in tensors]).numpy()
        assert draws.std() == pytest.approx(0.7 * 1.3, rel=0.01)
        assert stats.kstest(draws / (0.7 * 1.3), "norm").pvalue > 1e-6


def test_noise_is_fresh_at_every_step_and_repeats_only_with_a_seed() -> None:
    def noise(source: SecretSource, step: int) -> torch.Tensor:
        tensor = torch.zeros(1000)
        source.add_gaussian(step, [tensor], 1.0)
        return tensor

    seeded, again, entropy = SecretSource(4), SecretSource(4), SecretSource()
    assert torch.equal(noise(seeded, 9), noise(again, 9))
    draws = [noise(seeded, 0), noise(seeded, 1), noise(entropy, 0), noise(entropy, 0), noise(SecretSource(), 0)]
    for i, a in enumerate(draws):
        for b in draws[:i]:
            assert abs(float(torch.corrcoef(torch.stack([a, b]))[0, 1])) < 0.2  # 6 sd of independent draws


def test_poisson_coins_are_independent_with_the_stated_rate() -> None:
    """2e5 coins at rate .1: five standard deviations, false alarm below 1e-6."""
    for source in (SecretSource(), SecretSource(8)):
        sizes = np.array([len(source.coins(step, 1000, 0.1)) for step in range(200)])
        assert abs(sizes.sum() - 20_000) < 5 * np.sqrt(20_000 * 0.9)
        assert sizes.std() == pytest.approx(np.sqrt(90), rel=0.3)


def test_the_public_order_covers_every_record_once_an_epoch() -> None:
    phase = Phase("public", ("public",), 25, Shuffle(7), Plain(), 8, SGD)
    epochs = [[draw(Step(0, phase, 4 * e + i, 0), 1, SecretSource()) for i in range(4)] for e in range(2)]
    assert all(sorted(np.concatenate(e).tolist()) == list(range(25)) for e in epochs)
    assert not np.array_equal(np.concatenate(epochs[0]), np.concatenate(epochs[1]))


def test_rate_and_noise_accounted_are_those_that_run() -> None:
    assert private(rate=0.3, sigma=0.8).event == PoissonGaussian(0.3, 0.8)
    assert public().event == NonPrivate(("public",))
    p = plan(repeat=3)
    assert p.events() == {NonPrivate(("public",)): 15, PoissonGaussian(0.3, 0.8): 18}
    assert len(list(p.unroll())) == p.total_steps == 33
    assert epoch_steps(1000, Poisson(0.05)) == 20
    with pytest.raises(UsageError, match="Poisson"):
        Phase("x", ("private",), 9, Shuffle(3), ClipNoise(1, 1), 1, SGD)
    with pytest.raises(UsageError, match="shuffled"):
        Phase("x", ("public",), 9, Poisson(0.1), Plain(), 1, SGD)


def test_the_ledger_has_one_line_a_step_and_metrics_say_nothing_about_private_batches(tmp_path: Path) -> None:
    p = plan(public(3), private(rate=0.001, steps=4))  # nearly every draw is empty
    seen: list[Progress] = []
    run(p, tmp_path, notify=seen.append, spent=lambda done: done / 10)
    assert Ledger.read(tmp_path / "ledger.jsonl").counts() == p.events()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["kind"] == "step"]
    assert [row["step"] for row in steps] == list(range(1, p.total_steps + 1))
    for row in steps:
        hidden = row["phase"] == "private"
        assert (row["loss"] is None) == (row["tokens"] is None) == (row["seconds"] is None) == hidden
    assert seen[-1].epsilon == p.total_steps / 10
    assert any(row["kind"] == "eval" and row["perplexity"] > 1 for row in rows)


@pytest.mark.parametrize("stop", [1, 4, 7, 13])
def test_a_stopped_run_resumes_to_the_same_bits(tmp_path: Path, stop: int) -> None:
    whole = weights(run(plan(), tmp_path / "whole"))

    def interrupt(p: Progress) -> None:
        if p.step.number + 1 == stop:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match=f"after step {stop} "):
        run(plan(), tmp_path / "part", notify=interrupt)
    torch.manual_seed(999)  # whatever the new process's random state is
    assert torch.equal(weights(run(plan(), tmp_path / "part", resume=True)), whole)
    for name in ("ledger.jsonl",):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    steps = [
        r["step"]
        for r in map(json.loads, (tmp_path / "part/metrics.jsonl").read_text().splitlines())
        if r["kind"] == "step"
    ]
    assert steps == list(range(1, plan().total_steps + 1))


KILLED = """
    import os, signal, sys
    from pathlib import Path
    sys.path.insert(0, {here!r})
    import test_train_engine as t
    t.run(t.plan(), Path({out!r}), notify=lambda p: p.step.number + 1 == 10 and os.kill(os.getpid(), signal.SIGKILL))
"""


def test_kill_minus_nine_between_checkpoints_resumes_to_the_same_bits(tmp_path: Path) -> None:
    whole = weights(run(plan(), tmp_path / "whole"))
    out = tmp_path / "part"
    out.mkdir()
    code = textwrap.dedent(KILLED.format(here=str(Path(__file__).parent), out=str(out)))
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    )
    assert done.returncode == -signal.SIGKILL
    assert [c.name for c in checkpoint.complete(out / "checkpoints")] == ["step-000000004.pt", "step-000000008.pt"]
    with (out / "ledger.jsonl").open("ab") as ledger:
        ledger.write(b'{"torn')
    (out / "checkpoints" / "step-000000012.partial").write_bytes(b"half a checkpoint")
    assert torch.equal(weights(run(plan(), out, resume=True)), whole)
    assert (out / "ledger.jsonl").read_bytes() == (tmp_path / "whole/ledger.jsonl").read_bytes()


def test_resume_refuses_another_plan_and_a_fresh_start_refuses_a_used_folder(tmp_path: Path) -> None:
    run(plan(), tmp_path)
    with pytest.raises(DataError, match="already holds a run"):
        run(plan(), tmp_path)
    for other in (replace(plan(), corpus_key="other"), plan(public(), private(sigma=0.9)), plan(noise=6)):
        with pytest.raises(MismatchError, match=r"another|changed"):
            run(other, tmp_path, resume=True)
    with pytest.raises(DataError, match="nothing to resume"):
        run(plan(), tmp_path / "nowhere", resume=True)


def test_checkpoints_are_for_the_owner_only(tmp_path: Path) -> None:
    run(plan(), tmp_path)
    assert (tmp_path / "checkpoints").stat().st_mode & 0o777 == 0o700
    assert len(checkpoint.complete(tmp_path / "checkpoints")) == checkpoint.KEEP


def test_a_full_disk_leaves_the_last_good_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(plan(), tmp_path)
    good = checkpoint.complete(tmp_path / "checkpoints")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(DataError, match="No space left"):
        checkpoint.save(tmp_path / "checkpoints", "k", checkpoint.Position(99, 0, 0), model(), {})
    assert checkpoint.complete(tmp_path / "checkpoints") == good
    assert not list((tmp_path / "checkpoints").glob("*.partial"))


def test_a_tensor_that_does_not_move_stops_the_run_by_name(tmp_path: Path) -> None:
    m = model()
    m.extra = torch.nn.Linear(2, 2)  # takes part in nothing
    phase = public(2)
    with pytest.raises(TaciturnError, match=r"extra\.weight"):
        fit(plan(phase), m, TOKENIZER, {"public": DATA}, tmp_path, Options())


def test_mask_only_records_move_nothing_but_count() -> None:
    only = encode_all(TOKENIZER, [MASK] * 5)
    p = plan(private(sigma=1e-9, rate=1.0, n=5, steps=2), repeat=1)
    m = model(1)
    before = weights(m).clone()
    secret = SecretSource(1)
    private_gradient(m, only, np.arange(5), mask_id(TOKENIZER), 99, Step(0, p.phases[0], 0, 0), secret)
    grads = torch.cat([q.grad.flatten() for q in m.parameters()])
    assert float(grads.abs().max()) < 1e-8
    assert torch.equal(before, weights(m))


def test_tokens_and_plan_must_agree(tmp_path: Path) -> None:
    short = Tokens(DATA.flat[: DATA.offsets[3]], DATA.offsets[:4])
    with pytest.raises(DataError, match="has 3 records, its plan says 25"):
        fit(plan(public()), model(), TOKENIZER, {"public": short}, tmp_path, Options())
