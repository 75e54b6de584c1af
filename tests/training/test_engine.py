"""The loop: what a private step adds up to, and what it leaves behind."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy import stats
from tiny import DATA, SGD, TOKENIZER, VALID, model, plan, private, public, run, weights

from taciturn.errors import DataError, UsageError
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import Tokens, encode_all
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.text.document import MASK
from taciturn.training.engine import Options, fit
from taciturn.training.passes import Work
from taciturn.training.phase import Phase, epoch_steps
from taciturn.training.phase_terms import ClipNoise, Plain
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.randomness.sampling import draw
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.state import metrics
from taciturn.training.state.metrics import Clock, Progress
from taciturn.training.updates.clip_noise import private_gradient
from taciturn.training.updates.plain import plain_gradient


def released(phase: Phase, rows: list[int], budget: int = 10_000, step: int = 0, seed: int | None = 3) -> torch.Tensor:
    m = model().eval()
    at = Step(step, phase, 0, 0)
    private_gradient(
        m,
        DATA,
        np.array(rows, int),
        mask_id(TOKENIZER),
        Work(budget),
        phase.rule,
        at,
        SecretSource(seed),
        phase.rule.clip,
    )
    return torch.cat([p.grad.flatten() for p in m.parameters()])


@pytest.mark.parametrize("budget", [1, 40, 90, 10_000])
def test_p08_the_update_does_not_depend_on_the_physical_split(budget: int) -> None:
    rows = list(range(0, 25, 2))
    torch.testing.assert_close(released(private(), rows, budget), released(private(), rows), rtol=1e-5, atol=1e-6)
    a, b = model().eval(), model().eval()
    loss_a = plain_gradient(a, DATA, np.array(rows), mask_id(TOKENIZER), Work(budget))
    loss_b = plain_gradient(b, DATA, np.array(rows), mask_id(TOKENIZER), Work())
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
    run(p, tmp_path, notify=seen.append, spent=lambda done, _: done / 10)
    assert Ledger.read(tmp_path / "ledger.jsonl").counts() == p.events()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    steps = [row for row in rows if row["kind"] == "step"]
    assert [row["step"] for row in steps] == list(range(1, p.total_steps + 1))
    for row in steps:
        hidden = row["phase"] == "private"
        assert (row["loss"] is None) == (row["tokens"] is None) == (row["seconds"] is None) == hidden
    assert seen[-1].epsilon == p.total_steps / 10
    assert any(row["kind"] == "eval" and row["perplexity"] > 1 for row in rows)


def test_mask_only_records_move_nothing_but_count() -> None:
    only = encode_all(TOKENIZER, [MASK] * 5)
    p = plan(private(sigma=1e-9, rate=1.0, n=5, steps=2), repeat=1)
    m = model(1)
    before = weights(m).clone()
    secret = SecretSource(1)
    private_gradient(
        m, only, np.arange(5), mask_id(TOKENIZER), Work(99), p.phases[0].rule, Step(0, p.phases[0], 0, 0), secret, 0.5
    )
    grads = torch.cat([q.grad.flatten() for q in m.parameters()])
    assert float(grads.abs().max()) < 1e-8
    assert torch.equal(before, weights(m))


def test_tokens_and_plan_must_agree(tmp_path: Path) -> None:
    short = Tokens(DATA.flat[: DATA.offsets[3]], DATA.offsets[:4])
    with pytest.raises(DataError, match="has 3 records, its plan says 25"):
        fit(plan(public()), model(), TOKENIZER, {"public": short}, tmp_path, Options())


@pytest.mark.parametrize("records", [0, -1])
def test_noised_steps_are_over_a_stated_number_of_units(records: int) -> None:
    """δ ≥ 1/n promises nothing, so a plan made by hand says its n; that of :func:`fit` must be the data's (above)."""
    with pytest.raises(UsageError, match="give records, the number of those that are drawn from"):
        private(n=records)


def test_public_seconds_stand_still_in_private_phases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time since the start, written at a public step, would hold the sum of the private durations before it."""
    now = [0.0]

    def later(p: Progress) -> None:
        now[0] += 100.0 if p.step.phase.private else 1.0

    monkeypatch.setattr(metrics, "time", SimpleNamespace(monotonic=lambda: now[0]))
    run(plan(public(1), private(steps=4), repeat=3), tmp_path, notify=later)
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    seconds = [row["seconds"] for row in rows if row["kind"] == "step" and row["phase"] == "public"]
    assert len(seconds) == 3
    assert now[0] == 12 * 100 + 3  # the whole run
    assert seconds[-1] < 2 * 100 + 3  # showing a step takes time from the next one: twice that is a public one


def test_time_left_and_speed_come_from_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("taciturn.training.state.metrics.time.monotonic", lambda: now[0])
    p = plan(public(3), private(rate=0.2, steps=4), repeat=1)
    steps = list(p.unroll())
    clock = Clock(p, 0)
    for step in steps[:2]:
        now[0] += 2.0
        clock.tick(step, 50)
    assert (clock.seconds, clock.left, clock.speed(steps[1])) == (4.0, 5 * 2.0, 25.0)
    for step in steps[2:5]:
        now[0] += 2.0 if step.number == 2 else 10.0
        clock.tick(step, None if step.phase.private else 50)
    assert clock.left == 2 * 10.0
    assert clock.speed(steps[4]) == pytest.approx(0.2 * len(DATA) / 10)  # expected records, whatever was drawn


def test_tensorboard_holds_the_numbers_of_the_metrics_and_no_private_time(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    p = plan(public(3), private(steps=4), repeat=2)
    run(p, tmp_path, options=Options(valid=VALID, report_to=("tensorboard",)), spent=lambda done, _: done / 10)
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    rows = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    losses = {row["step"]: row["loss"] for row in rows if row.get("loss") is not None}
    assert {e.step: pytest.approx(e.value, rel=1e-6) for e in events.Scalars("public/loss")} == losses
    assert set(events.Tags()["scalars"]) == {
        "public/loss", "public/tokens", "privacy/epsilon", "valid/perplexity", "valid/perplexity_public_tokens",
    }  # fmt: skip
    times = {e.step: e.wall_time for e in events.Scalars("privacy/epsilon")}
    assert times[3] == times[4] == times[7] < times[8]
