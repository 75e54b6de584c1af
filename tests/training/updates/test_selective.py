"""Selective DP-SGD against a slow oracle that walks over runs with torch's own LSTM, one record at a time."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from many import found_by
from scipy import stats
from tiny import python
from torch import Tensor

from processes import ended
from taciturn.errors import UsageError
from taciturn.models.hf import load_model
from taciturn.models.lora import Lora, add
from taciturn.models.sensitive import Sensitive, encode_sensitive
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.persample.sums import Sums
from taciturn.privacy.accounting.events import SelectiveGaussian
from taciturn.text.document import MASK
from taciturn.training.passes import Work
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import SelectiveState
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.samplers import Poisson, Shuffle
from taciturn.training.schedules import Optimiser
from taciturn.training.updates.plain import plain_gradient
from taciturn.training.updates.selective import (
    Runs,
    add_clipped,
    add_gradients,
    boundary_states,
    clipped_state,
    selective_gradient,
)
from taciturn.training.updates.selective import losses as run_losses

TOKENIZER = byte_tokenizer()
MASKED = mask_id(TOKENIZER)
RULE = SelectiveState(clip=0.3, noise_multiplier=0.7, state_clip=0.5, state_noise=0.4, runs=3)
RECORDS = [
    ("my name is Ann Lee.", "my name is <MASK>."),
    ("call 12 or 345 now", "call <MASK> or <MASK> now"),
    ("Bob writes to Jo, Al, Cy and all the others", "<MASK> writes to <MASK>, <MASK>, <MASK> and all the others"),
    ("all of it", MASK),
    ("nothing here", "nothing here"),
    ("ends in X", "ends in <MASK>"),
]


def model(hidden: int = 6, **options: Any) -> Any:
    made = load_model("lstm", TOKENIZER, 0, {"embedding_size": 5, "hidden_size": hidden, "dropout": 0.0, **options})
    return made.train()


def data(records: list[tuple[str, str]] = RECORDS) -> Sensitive:
    return encode_sensitive(TOKENIZER, *(list(side) for side in zip(*records, strict=True)))


def step(records: int = len(RECORDS), rate: float = 0.5, rule: SelectiveState = RULE, number: int = 3) -> Step:
    phase = Phase("private", ("original",), records, Poisson(rate), rule, 5, Optimiser("sgd", 0.1))
    return Step(number, phase, number, 0)


def gradients(m: Any, found: Sensitive, rows: list[int], rule: SelectiveState, normals: Tensor) -> tuple[dict, Sums]:
    """(public, private) sums without the noise on parameters."""
    public, private = [torch.zeros_like(p) for p in m.parameters()], Sums()
    add_gradients(m, Runs.of(found, np.array(rows), rule.runs), normals, rule, public, private)
    return dict(zip([name for name, _ in m.named_parameters()], public, strict=True)), private


def oracle(m: Any, found: Sensitive, row: int, rule: SelectiveState, normals: Tensor) -> tuple[Tensor, Tensor]:
    """(public, private) loss of a record: a pass of torch's LSTM over each maximal run, from a constant."""
    ids, hot = torch.from_numpy(found.tokens[row].astype(np.int64)), found.flagged(row, rule.runs).tolist()
    scored = found.tokens.targets(row, MASKED).tolist()
    public, private = torch.zeros(()), torch.zeros(())
    state, at, ended = (torch.zeros(1, 1, m.config.hidden_size),) * 2, 0, 0
    while at < len(ids):
        end = at
        while end < len(ids) and hot[end] == hot[at]:
            end += 1
        y, (h, c) = m.layers[0](m.embedding(ids[at:end])[None], state)
        both = torch.cat([h, c], -1).detach()
        if hot[at] and end < len(ids):
            both = both * min(1.0, rule.state_clip / float(both.norm()))
            both = both + rule.state_noise * rule.state_clip * normals[ended]
            y = torch.cat([y[:, :-1], both[..., : m.config.hidden_size]], 1)
            ended += 1
        state = tuple(part.contiguous() for part in both.chunk(2, -1))
        wanted = ids[at + 1 : end + 1]
        nll = torch.nn.functional.cross_entropy(m.decoder(y)[0, : len(wanted)], wanted, reduction="none")
        for i, each in enumerate(nll):
            if scored[at + 1 + i]:
                private, public = (private + each, public) if hot[at + 1 + i] else (private, public + each)
        at = end
    n = max(sum(s and not h for s, h in zip(scored, hot, strict=True)), 1)
    return public / n, private / n


def oracle_gradients(
    m: Any, found: Sensitive, rows: list[int], rule: SelectiveState, normals: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    names = [name for name, _ in m.named_parameters()]
    sums: tuple[dict[str, Tensor], dict[str, Tensor]] = ({}, {})
    for row, noise in zip(rows, normals, strict=True):
        both = oracle(m, found, row, rule, noise)
        for side, loss in enumerate(both):
            if not loss.requires_grad:
                continue
            found_ = torch.autograd.grad(loss, list(m.parameters()), retain_graph=True, allow_unused=True)
            flat = [torch.zeros_like(p) if g is None else g for p, g in zip(m.parameters(), found_, strict=True)]
            norm = float(torch.cat([g.flatten() for g in flat]).norm())
            factor = min(1.0, rule.clip / norm) if side and norm else 1.0
            for name, g in zip(names, flat, strict=True):
                sums[side][name] = sums[side].get(name, 0) + factor * g
    return sums


def noise(rows: int, runs: int = RULE.runs, hidden: int = 6, seed: int = 1) -> Tensor:
    return torch.randn(rows, runs, 2 * hidden, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("clip", [0.3, 50.0])
@pytest.mark.parametrize("runs", [1, 2, 3, 9])
def test_gradients_are_those_of_the_oracle(runs: int, clip: float, tied: bool) -> None:
    m = model(**({"tie_word_embeddings": True, "embedding_size": 6} if tied else {}))
    rule = replace(RULE, runs=runs, clip=clip)
    rows, normals = list(range(len(RECORDS))), noise(len(RECORDS), runs)
    public, private = gradients(m, data(), rows, rule, normals)
    want_public, want_private = oracle_gradients(m, data(), rows, rule, normals)
    for name, _ in m.named_parameters():
        torch.testing.assert_close(public[name], want_public[name], atol=2e-6, rtol=1e-4)
        torch.testing.assert_close(private[name], want_private[name], atol=2e-6, rtol=1e-4)


def test_without_sensitive_tokens_it_is_the_plain_gradient_of_every_record() -> None:
    m = model()
    texts = ["one text", "another, longer text", "x"]
    found = data([(t, t) for t in texts])
    selective_gradient(
        m, found, np.arange(3), Work(), step(3, 1.0, replace(RULE, noise_multiplier=1e-12)), SecretSource(1)
    )
    got = {name: p.grad.clone() for name, p in m.named_parameters()}
    tokens = encode_all(TOKENIZER, texts)
    want = dict.fromkeys(got, 0.0)
    for i in range(3):  # the mean over targets of each record, over qN = 3
        plain_gradient(m, tokens, np.array([i]), MASKED, Work())
        want = {name: want[name] + p.grad / 3 for name, p in m.named_parameters()}
    for name in got:
        torch.testing.assert_close(got[name], want[name], atol=1e-6, rtol=1e-4)


def test_no_public_gradient_reaches_a_sensitive_input() -> None:
    """Letters that only secrets have: their rows of the embedding (not tied) get nothing at all from public losses."""
    m = model()
    public, private = gradients(m, data([("ab ZZY ba QQ.", "ab <MASK> ba <MASK>.")]), [0], RULE, noise(1))
    ids = [TOKENIZER.convert_tokens_to_ids(c) for c in "ZYQ"]
    assert (public["embedding.weight"][ids] == 0).all()
    assert (private["embedding.weight"][ids[:2]] != 0).any()
    assert public["embedding.weight"].abs().sum() > 0


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(*[st.text("xyz19 ", min_size=1, max_size=9)] * 4), min_size=2, max_size=2))
def test_secrets_move_public_gradients_through_the_states_alone(secrets: list[tuple[str, ...]]) -> None:
    """Two secrets of any lengths: once the noised states after each run are made equal, so are the public gradients."""
    m = model(3)
    texts = ["a", "b", "c", "d", "e"]
    both = ["".join(t + s for t, s in zip(texts, (*each, ""), strict=True)) for each in secrets]
    found = data([(text, MASK.join(texts)) for text in both])
    weights = dict(m.named_parameters())
    public = []
    for row in (0, 1):
        runs = Runs.of(found, np.array([row]), 2)
        starts = boundary_states(weights, runs, noise(1, 2, 3), RULE)
        starts[runs.noised] = noise(1, 2, 3, seed=9)[0]  # the mechanism's outputs, forced to be the same
        loss = run_losses(weights, runs.public, *runs.inputs(starts)).sum()
        public.append([loss, *torch.autograd.grad(loss, list(m.parameters()), allow_unused=True)])
        assert int(runs.noised.sum()) == 2
    for a, b in zip(*public, strict=True):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_what_a_secret_changes_in_the_released_states_is_bounded_by_the_clip() -> None:
    """And so is what it changes in public gradients, which read nothing else; the same noise in both worlds."""
    m = model()
    with torch.no_grad():
        for p in m.parameters():  # a model that hears its state
            p.mul_(4)
    found = data([("to Ann and all", "to <MASK> and all"), ("to QQQQQQ and all", "to <MASK> and all")])
    runs = Runs.of(found, np.array([0, 1]), 1)
    moved = []
    for C in (1e-3, 10.0):
        rule = replace(RULE, state_clip=C, state_noise=0.05 / C)
        states = boundary_states(dict(m.named_parameters()), runs, noise(2, 1)[[0, 0]], rule)[runs.noised]
        assert float((states[0] - states[1]).norm()) <= 2 * C
        public = [gradients(m, found, [row], rule, noise(1, 1))[0] for row in (0, 1)]
        moved.append(max(float((public[0][name] - public[1][name]).norm()) for name in public[0]))
    assert moved[0] < 0.005 < 0.03 < moved[1]


def test_states_are_clipped_then_noised_once_a_run() -> None:
    state = torch.randn(5, 12) * 3
    out = clipped_state(state, 0.5)
    assert (out.norm(dim=1) <= 0.5).all()
    torch.testing.assert_close(out, state * (0.5 / state.norm(dim=1, keepdim=True)), rtol=1e-5, atol=1e-6)
    small = state / 100
    assert torch.equal(clipped_state(small, 5.0), small)
    runs = Runs.of(data(), np.arange(len(RECORDS)), 3)
    # the record masked whole and the one that ends in a secret have the end of text behind it, or nothing
    assert runs.noised.sum(1).tolist() == [1, 2, 3, 0, 0, 1]
    assert runs.run[2][runs.noised[2]].tolist() == [0, 1, 2]


def test_per_record_private_gradients_are_within_the_clip() -> None:
    m, rule = model(), replace(RULE, clip=0.05)
    for row in range(len(RECORDS)):
        _, private = gradients(m, data(), [row], rule, noise(1))
        norm = math.sqrt(sum(float(private[key].square().sum()) for key in private))
        assert norm <= 0.05
        assert (norm > 0.049) == (row != 4)
    into = Sums()
    add_clipped({"w": torch.tensor([[math.nan, 0.0], [math.inf, 1.0]]), "v": torch.ones(2, 1)}, 1.0, into)
    assert not into["w"].any()  # what is not finite adds nothing
    assert not into["v"].any()
    add_clipped({"w": torch.tensor([[3.0, 0.0], [0.0, 0.1]]), "v": torch.tensor([[4.0], [0.0]])}, 1.0, into)
    torch.testing.assert_close(into["w"], torch.tensor([0.6, 0.1]))
    torch.testing.assert_close(into["v"], torch.tensor([0.8]))


def test_the_update_is_both_sums_and_noise_over_a_constant() -> None:
    m, source = model(), SecretSource(5)
    rows = np.array([0, 2, 5])
    selective_gradient(m, data(), rows, Work(), step(), source)
    got = [p.grad.clone() for p in m.parameters()]
    states = source.normals(3, (3, RULE.runs, 12))
    public, private = gradients(m, data(), rows.tolist(), RULE, states)
    want = [private[name].clone() for name, _ in m.named_parameters()]
    source.add_gaussian(3, want, RULE.noise_multiplier * RULE.clip / 3, 1 / 3)
    for a, b, (name, _) in zip(got, want, m.named_parameters(), strict=True):
        torch.testing.assert_close(a, b + public[name] / 3, atol=1e-5, rtol=1e-4)
    for budget in (40, 1):  # neither order nor cut changes anything but rounding
        selective_gradient(m, data(), rows, Work(budget), step(), source)
        for a, p in zip(got, m.parameters(), strict=True):
            torch.testing.assert_close(a, p.grad, atol=2e-3 * RULE.noise_multiplier * RULE.clip, rtol=1e-4)


def test_an_empty_draw_is_noise_of_the_right_size() -> None:
    """Kolmogorov–Smirnov, false alarm 1e-6."""
    m = model(40)
    selective_gradient(m, data(), np.empty(0, np.int64), Work(), step(), SecretSource(2))
    flat = torch.cat([p.grad.flatten() for p in m.parameters()]).numpy()
    assert all(p.grad.shape == p.shape for p in m.parameters())
    assert stats.kstest(flat / (RULE.noise_multiplier * RULE.clip / 3), "norm").pvalue > 1e-6


def test_state_noise_is_a_stream_of_its_own() -> None:
    """Normal (Kolmogorov–Smirnov, false alarm 1e-6), new in each step, from the system without a seed."""
    source = SecretSource(4)
    z = source.normals(0, (100, 3, 50))
    assert stats.kstest(z.numpy().ravel(), "norm").pvalue > 1e-6
    assert torch.equal(z, source.normals(0, (100, 3, 50)))
    assert not torch.equal(z, source.normals(1, (100, 3, 50)))
    other = torch.zeros(15_000)
    source.add_gaussian(0, [other], 1.0)
    assert abs(float(np.corrcoef(other.numpy(), z.numpy().ravel())[0, 1])) < 0.05
    free = SecretSource(None)
    assert not torch.equal(free.normals(0, (10,)), free.normals(0, (10,)))
    assert source.normals(0, (0, 3, 4)).shape == (0, 3, 4)


def test_torchs_own_random_numbers_are_not_used() -> None:
    m, out = model(), []
    for seed in (1, 2):
        torch.manual_seed(seed)
        selective_gradient(m, data(), np.arange(4), Work(), step(), SecretSource(5))
        out.append([p.grad.clone() for p in m.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*out, strict=True))


def test_two_processes_make_the_update_of_one(tmp_path: Path) -> None:
    """With a seed, to the grid that noised sums are rounded to: each record has its own state noise wherever it is run."""
    code = f"""
    os.environ |= {{"RANK": sys.argv[-1], "LOCAL_RANK": "0", "WORLD_SIZE": "2"}}
    os.environ |= {found_by()!r}
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    import numpy as np, torch, test_selective as s
    from taciturn.training.distributed.processes import joined
    with joined() as world:
        m = s.model()
        s.selective_gradient(m, s.data(), np.array([0, 1, 2, 4, 5]), s.Work(), s.step(), s.SecretSource(5), world)
        torch.save([p.grad for p in m.parameters()], {str(tmp_path)!r} + f"/{{world.rank}}.pt")
    """
    started = [python(code.replace("sys.argv[-1]", f"'{rank}'")) for rank in (0, 1)]
    ended(*started)
    assert [each.returncode for each in started] == [0, 0]
    m = model()
    selective_gradient(m, data(), np.array([0, 1, 2, 4, 5]), Work(), step(), SecretSource(5))
    for rank in (0, 1):
        for p, g in zip(m.parameters(), torch.load(tmp_path / f"{rank}.pt"), strict=True):
            torch.testing.assert_close(g, p.grad, atol=2e-3 * RULE.noise_multiplier * RULE.clip, rtol=1e-4)


def test_a_frozen_tensor_has_no_gradient() -> None:
    m = model()
    m.embedding.weight.requires_grad_(False)
    selective_gradient(m, data(), np.arange(3), Work(), step(), SecretSource(5))
    assert m.embedding.weight.grad is None
    assert all(p.grad is not None for p in m.parameters() if p.requires_grad)


def test_the_phase_says_what_a_step_costs_and_wants_poisson_draws() -> None:
    assert step().phase.event == SelectiveGaussian(0.5, 0.7, 0.4, 3)
    assert step().phase.private
    with pytest.raises(UsageError, match="Poisson"):
        Phase("private", ("original",), 5, Shuffle(2), RULE, 1, Optimiser("sgd", 0.1))


@pytest.mark.parametrize(
    "made",
    [
        lambda: model(num_layers=2),
        lambda: add(model(), Lora(targets=("decoder",))),
        lambda: load_model("awd-lstm", TOKENIZER, 0, {"embedding_size": 4, "hidden_size": 4}),
        lambda: torch.nn.LSTM(2, 2),
    ],
)
def test_other_models_are_refused(made: Any) -> None:
    with pytest.raises(UsageError, match=r"one-layer LSTM only .* its ε needs"):
        selective_gradient(made(), data(), np.arange(2), Work(), step(), SecretSource(1))


def test_dropout_and_half_precision_are_refused() -> None:
    with pytest.raises(UsageError, match="dropout"):
        selective_gradient(model(dropout=0.1), data(), np.arange(2), Work(), step(), SecretSource(1))
    with pytest.raises(UsageError, match="float32"):
        selective_gradient(model(), data(), np.arange(2), Work(autocast=torch.bfloat16), step(), SecretSource(1))


def test_a_step_of_the_papers_size_takes_seconds() -> None:
    """16 records of 60 tokens, LSTM 200/200, 2,000 words: about two, with room for a busy machine."""
    from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
    from timing import seconds

    m = LSTMForCausalLM(LSTMConfig(vocab_size=2000))
    words = np.random.default_rng(0)
    flat = words.integers(300, 2000, 16 * 60).astype(np.int32)
    hot = np.tile(np.arange(60) % 20 > 14, 16)
    scored = np.tile(np.arange(60) > 0, 16)
    tokens = replace(data().tokens, flat=flat, offsets=np.arange(17, dtype=np.int64) * 60, scored=scored)
    read, rows = Sensitive(tokens, hot), np.arange(16)
    assert seconds(lambda: selective_gradient(m, read, rows, Work(), step(16, 1.0), SecretSource(1))) < 30
