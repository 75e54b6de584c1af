"""Units of several rows: clipped sums against one unit at a time, passes over every row, coins of users and entities."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import DATA, SGD, TOKENIZER, VALID, model, plan, weights

from taciturn.mechanisms import user_dp
from taciturn.models.loss import collate, record_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tokens import encode_all, packed
from taciturn.screening import policy, screen
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.training.clipping import clipped_units, passes
from taciturn.training.engine import Options, fit
from taciturn.training.passes import Work, scored
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise, LocalUpdates, Residual
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.randomness.sampling import chosen, draw
from taciturn.training.samplers import Poisson, PoissonKinds, UserEntity
from taciturn.training.schedules import Optimiser
from taciturn.training.units.grouping import by_user, by_user_entity, mentions
from taciturn.training.units.row_groups import Units, grouped, of_lists
from taciturn.training.updates.clip_noise import private_gradient
from taciturn.training.updates.federated import local_gradient
from taciturn.training.updates.residual import residual_batch

MASK_ID = mask_id(TOKENIZER)
TEXT = "the quick brown fox"
USERS = [f"u{i % 4}" if i % 6 else None for i in range(len(DATA))]
NAMES = [[f"e{j}" for j in range(3) if (i >> j) % 2] for i in range(len(DATA))]
MENTIONS = mentions(USERS, NAMES)
SOME = of_lists([[(0, 1.0), (3, -1.0)], [(4, 0.5)], [], [(i, 0.2) for i in range(5, 16)], [(24, 1.0)]])


def slow(m: torch.nn.Module, units: Units, C: float) -> tuple[dict[str, torch.Tensor], list[float]]:
    """Σ of clipped gradients and their norms, one unit and one row at a time."""
    total, norms = {n: torch.zeros_like(p) for n, p in m.named_parameters()}, []
    for u in range(len(units)):
        grad = {n: torch.zeros_like(p) for n, p in m.named_parameters()}
        span = slice(units.offsets[u], units.offsets[u + 1])
        for row, weight in zip(units.rows[span], units.weights[span], strict=True):
            m.zero_grad()
            batch = collate(DATA, np.array([row]), MASK_ID)
            (weight * record_losses(m, batch)[0] / scored(batch).clamp_min(1.0)[0]).backward()
            for n, p in m.named_parameters():
                grad[n] += 0 if p.grad is None else p.grad
        norms.append(sqrt(sum(float(g.double().square().sum()) for g in grad.values())))
        for n, g in grad.items():
            total[n] += g * min(1.0, C / norms[-1] if norms[-1] else 1.0)
    m.zero_grad()
    return total, norms


@pytest.mark.parametrize("budget", [8192, 64, 16])
@pytest.mark.parametrize("C", [0.05, 10.0])
def test_clipped_sums_of_units_agree_with_one_unit_at_a_time(C: float, budget: int) -> None:
    m = model().eval()
    expected, norms = slow(m, SOME, C)
    sums, below = clipped_units(m, DATA, SOME, MASK_ID, Work(budget), "flat", C)
    assert below == sum(norm <= C for norm in norms)
    for name, total in expected.items():
        assert torch.allclose(sums[name], total, rtol=2e-4, atol=2e-6), name


def test_the_worth_of_a_unit_multiplies_its_clipped_gradient() -> None:
    m = model().eval()
    worth = np.array([1.0, 0.5, 0.3, 0.1, 0.9], np.float32)
    for budget in (8192, 16):
        sums, _ = clipped_units(m, DATA, replace(SOME, worth=worth), MASK_ID, Work(budget), "flat", 0.05)
        total = {name: torch.zeros_like(p) for name, p in m.named_parameters()}
        for u, w in enumerate(worth):
            for name, g in slow(m, SOME.take(np.array([u])), 0.05)[0].items():
                total[name] += float(w) * g
        for name, expected in total.items():
            assert torch.allclose(sums[name], expected, rtol=2e-4, atol=2e-6), name


def test_a_unit_of_a_row_and_minus_the_same_row_adds_nothing() -> None:
    m = model().eval()
    sums, below = clipped_units(m, DATA, of_lists([[(2, 1.0), (2, -1.0)]]), MASK_ID, Work(), "flat", 1.0)
    assert below == 1
    assert max(float(sums[name].abs().max()) for name in sums) < 1e-6


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.sampled_from([8, 64, 1000]))
def test_passes_take_every_row_of_every_unit_once(counts: list[int], budget: int) -> None:
    rows = np.random.default_rng(sum(counts)).integers(0, len(DATA), sum(counts))
    units = Units(rows, np.concatenate([[0], np.cumsum(counts)]), np.ones(len(rows), np.float32))
    seen: dict[int, list[int]] = {}
    for part, laid in passes(units, DATA, budget):
        for i, unit in enumerate(part):
            mine = units.of(int(unit)) if laid is None else laid[i][laid[i] >= 0]
            seen[int(unit)] = mine.tolist()
        if laid is not None:
            wide = laid.shape[1] * max(DATA.lengths[laid[laid >= 0]])
            assert laid.shape[0] * wide <= budget
    assert seen == {u: units.of(u).tolist() for u, n in enumerate(counts) if n}


RULE = ClipNoise(10.0, 1e-9)


def phase(sampler: object, rule: object, records: int, unit: str) -> Phase:
    return Phase("private", ("original",), records, sampler, rule, 3, SGD, unit=unit)  # type: ignore[arg-type]


def test_a_noised_step_over_units_divides_by_the_expected_number_and_not_by_the_drawn() -> None:
    m = model().eval()
    step = Step(0, phase(Poisson(0.5), RULE, len(SOME), "user"), 0, 0)
    private_gradient(m, DATA, SOME.take(np.array([0, 1])), MASK_ID, Work(), RULE, step, SecretSource(1), 10.0)
    found = {n: p.grad.clone() for n, p in m.named_parameters() if p.grad is not None}
    expected, _ = slow(m, SOME.take(np.array([0, 1])), 10.0)
    for name, total in expected.items():
        assert torch.allclose(found[name], total / (0.5 * len(SOME)), rtol=1e-3, atol=1e-6)
    private_gradient(m, DATA, SOME.take(np.array([], np.int64)), MASK_ID, Work(), RULE, step, SecretSource(1), 10.0)
    assert all(p.grad is not None for p in m.parameters())  # an empty step is one, noise and all


def test_local_updates_are_what_plain_sgd_moves_clipped_and_weighted() -> None:
    m = model().eval()
    rule = LocalUpdates(0.02, 1e-12, lr=0.5, batch_size=3, epochs=2)
    users = replace(
        by_user(MENTIONS),
        weights=np.ones(len(MENTIONS), np.float32),
        worth=np.linspace(0.2, 1.0, len(by_user(MENTIONS)), dtype=np.float32),
    )
    step = Step(4, phase(Poisson(0.5), rule, len(users), "user"), 4, 0)
    before = weights(m).clone()
    local_gradient(m, DATA, users.take(np.array([0, 3])), MASK_ID, Work(), step, SecretSource(1), 0)
    assert torch.equal(weights(m), before)  # users train copies
    found = torch.cat([p.grad.flatten() for p in m.parameters() if p.grad is not None])
    total = torch.zeros_like(before)
    for user in (0, 3):
        torch.nn.utils.vector_to_parameters(before.clone(), m.parameters())
        rows = users.of(user)
        for epoch in range(2):
            order = np.random.Generator(np.random.PCG64([4, epoch])).permutation(len(rows))
            for i in range(0, len(rows), 3):
                m.zero_grad()
                batch = collate(DATA, rows[order[i : i + 3]], MASK_ID)
                losses = record_losses(m, batch) / scored(batch).clamp_min(1.0)
                losses.mean().backward()
                with torch.no_grad():
                    for p in m.parameters():
                        p -= 0.5 * p.grad
        moved = before - weights(m).detach()
        assert float(moved.norm()) > 0.02
        total += moved * float(users.worth[user]) * min(1.0, 0.02 / float(moved.norm()))
    torch.nn.utils.vector_to_parameters(before.clone(), m.parameters())
    assert torch.allclose(found, total / (0.5 * len(users)), rtol=1e-3, atol=1e-7)


def test_a_user_with_many_records_learns_from_each_batch_as_much_as_one_with_few() -> None:
    """user_dp itself: eight copies of one record, in one batch, move a copy of the model as one does (McMahan et al. 2018,
    Algorithm 1, has the mean over the batch; divided by the user's records as well it would be an eighth)."""
    documents = [Document(str(i), TEXT, "many" if i else "one") for i in range(9)]
    everything = policy("all-private")
    screened = screen(Corpus.from_documents(documents), everything, everything, unit="document", dedup="none")
    users = user_dp.units(screened, user_dp.Config(noise_multiplier=1.0, local=user_dp.Local()))["private"]
    assert sorted(users.counts.tolist()) == [1, 8]
    assert user_dp.units(screened, user_dp.Config(noise_multiplier=1.0))["private"].weights.max() < 1.01
    data = encode_all(TOKENIZER, [TEXT] * 9)
    rule, m = LocalUpdates(1e6, 1e-18, lr=0.5, batch_size=16, epochs=1), model().eval()
    step = Step(0, phase(Poisson(0.5), rule, 2, "user"), 0, 0)
    moved = []
    for user in range(2):
        local_gradient(m, data, users.take(np.array([user])), MASK_ID, Work(), step, SecretSource(1), 0)
        moved.append(torch.cat([p.grad.flatten() for p in m.parameters() if p.grad is not None]))
    assert float(moved[0].norm()) > 1e-4
    assert torch.allclose(moved[0], moved[1], rtol=1e-3, atol=1e-7)


# Each of these frequencies is within 4 sd of its rate; a true rate fails one of the ~60 checks with probability < 4e-3,
# and the seed is fixed.
TIMES = 10_000


def frequencies(p: Phase, units: Units) -> tuple[np.ndarray, np.ndarray]:
    """How often each unit came, and each row."""
    came, rows = np.zeros(len(units)), np.zeros(len(DATA))
    secret = SecretSource(7)
    numbered = replace(units, weights=np.ones(len(units.rows), np.float32))
    number = {tuple(units.of(u)): u for u in range(len(units))}
    for i in range(TIMES):
        step = Step(i, p, i, 0)
        coins = draw(step, 0, secret)
        drawn = chosen(p, coins, numbered)
        assert isinstance(drawn, Units)
        rows[drawn.rows] += 1
        if p.unit != "user":
            found = {number.get(tuple(drawn.of(d))) for d in range(len(drawn))} - {None}
            came[list(found)] += 1
        elif not isinstance(p.sampler, UserEntity):
            came[coins] += 1
        else:
            came[coins[coins < len(units)]] += 1
    return came / TIMES, rows / TIMES


def close(found: np.ndarray, rate: np.ndarray) -> bool:
    return bool((abs(found - rate) <= 4 * np.sqrt(rate * (1 - rate) / TIMES) + 1e-12).all())


def test_units_of_two_kinds_come_at_the_rates_of_their_kinds() -> None:
    units = by_user_entity(MENTIONS)
    first = units.rows[units.offsets[:-1]]
    extended = MENTIONS.extended[first]
    counts = (int((~extended).sum()), int(extended.sum()))
    p = phase(PoissonKinds((0.1, 0.4), counts), ClipNoise(1.0, 1.0), len(units), "user-entity")
    came, _ = frequencies(p, units)
    assert close(came, np.where(extended, 0.4, 0.1))
    assert p.expected == pytest.approx(0.1 * counts[0] + 0.4 * counts[1])


def test_two_level_coins_use_a_unit_when_its_user_and_all_its_entities_are_drawn() -> None:
    units = by_user_entity(MENTIONS)
    first = units.rows[units.offsets[:-1]]
    counts = (int(MENTIONS.users.max()) + 1, MENTIONS.detected, MENTIONS.total - MENTIONS.detected)
    p = phase(UserEntity(0.5, 0.6, 0.8, counts, 1.0, (9, 9, 9)), ClipNoise(1.0, 1.0), len(units), "user-entity")
    came, _ = frequencies(p, units)
    each = np.array([0.5 * (0.8 if MENTIONS.extended[r] else 0.6 ** len(MENTIONS.of(r))) for r in first])
    assert close(came, each)


def test_the_published_sampling_takes_of_drawn_users_the_rows_with_a_drawn_entity() -> None:
    units = grouped(MENTIONS.users, int(MENTIONS.users.max()) + 1)
    units = replace(units, mentions=MENTIONS)
    counts = (len(units), MENTIONS.detected, MENTIONS.total - MENTIONS.detected)
    p = phase(UserEntity(0.5, 0.6, 0.8, counts, 1.0), LocalUpdates(1.0, 1.0, 0.1, 4), len(units), "user")
    came, rows = frequencies(p, units)
    assert close(came, np.full(len(units), 0.5))
    q = [0.8 if MENTIONS.extended[r] else 1 - 0.4 ** len(MENTIONS.of(r)) for r in range(len(DATA))]
    assert close(rows, 0.5 * np.array(q))


def test_the_weight_of_a_row_is_the_sum_over_its_drawn_entities() -> None:
    m = replace(MENTIONS, weights=np.arange(MENTIONS.total, dtype=np.float32) / 10 + 0.5)
    units = replace(grouped(m.users, int(m.users.max()) + 1), mentions=m)
    counts = (len(units), m.detected, m.total - m.detected)
    p = phase(UserEntity(1.0, 0.5, 0.5, counts, 1.0), LocalUpdates(1.0, 1.0, 0.1, 4), len(units), "user")
    coins = draw(Step(0, p, 0, 0), 0, SecretSource(3))
    drawn = chosen(p, coins, units)
    assert isinstance(drawn, Units)
    fell = set((coins[coins >= len(units)] - len(units)).tolist())
    for row, weight in zip(drawn.rows, drawn.weights, strict=True):
        assert weight == pytest.approx(sum(float(m.weights[e]) for e in m.of(int(row)) if e in fell))
    left = set(range(len(DATA))) - set(drawn.rows.tolist())
    assert all(not fell & set(m.of(row).tolist()) for row in left)


def test_the_noiseless_half_of_a_residual_step_reads_every_skeleton_once_an_epoch() -> None:
    rule = Residual(ClipNoise(1.0, 1.0), 4)
    p = phase(Poisson(0.3), rule, 15, "residual")
    seen = np.concatenate([residual_batch(Step(i, p, i, 0), rule, 25, 0) for i in range(3)])
    assert sorted(seen.tolist()) == list(range(15, 25))


def test_packed_batches_hold_every_token_and_score_none_across_a_cut() -> None:
    rows = np.array([3, 0, 7])
    blocks = packed(DATA, rows, 16, MASK_ID)
    assert blocks.flat.tolist() == np.concatenate([DATA[r] for r in rows]).tolist()
    assert set(blocks.lengths[:-1].tolist()) == {16}
    assert not any(blocks.targets(i, MASK_ID)[0] for i in range(len(blocks)))


@pytest.mark.parametrize("kind", ["residual", "local", "two-level"])
def test_a_run_over_units_resumes_to_the_same_bits(kind: str, tmp_path) -> None:  # type: ignore[no-untyped-def]
    if kind == "residual":
        units = of_lists([[(i, 1.0), (i + 15, -1.0)] if i < 10 else [(i, 1.0)] for i in range(15)])
        p = phase(Poisson(0.3), Residual(ClipNoise(0.5, 0.8), 4), 15, "residual")
    elif kind == "local":
        units = by_user(MENTIONS)
        p = phase(Poisson(0.5), LocalUpdates(0.1, 0.5, 0.1, 4), len(units), "user")
    else:
        units = by_user_entity(MENTIONS)
        counts = (int(MENTIONS.users.max()) + 1, MENTIONS.detected, MENTIONS.total - MENTIONS.detected)
        p = phase(UserEntity(0.5, 0.6, 0.8, counts, 3.0, (9, 9, 9)), ClipNoise(0.5, 0.8), len(units), "user-entity")
    p = replace(p, steps=6, optimiser=Optimiser("adamw", 0.01))
    whole = plan(p, repeat=1)
    options = Options(checkpoint_steps=2, valid=VALID)

    def run(out, **how):  # type: ignore[no-untyped-def]
        m = model(1)
        fit(whole, m, TOKENIZER, {"private": DATA}, out, options, units={"private": units}, **how)
        return weights(m)

    expected = run(tmp_path / "whole")

    def stop(progress) -> None:  # type: ignore[no-untyped-def]
        if progress.step.number == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "part", notify=stop)
    assert torch.equal(run(tmp_path / "part", resume=True), expected)
