"""Selective DP-SGD (Shi, Cui, Li, Jia, Yu 2021) for a one-layer LSTM: noise only where sensitive tokens are.

Each record's tokens are split by the policy into public and sensitive runs (taciturn.models.sensitive). For every record
drawn, going along the LSTM:

(a) public targets: their plain gradient, without noise;
(b) sensitive targets: the gradient of their loss, record by record, clipped to C, summed, plus N(0, (σC)²), over the
    constant qN;
(c) where a sensitive run ends, the state (h, c) is clipped to norm C_h and N(0, (σ_h·C_h)²) is added, once a record, run and
    step, before the next public token reads it or is predicted from it.

The state is a constant at every boundary between runs: no gradient of a public loss reaches a sensitive input. So public
losses are functions of public tokens and noised states, and (b) and (c) are all that a step shows of secrets, which is what
`privacy/accounting/selective.py` accounts for. At most ``runs`` sensitive runs are noised: from the next one on the rest of
a record is sensitive. Both losses are divided by the number of *public* targets, since how many sensitive ones there are is
a secret.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import grad, vmap

from taciturn.errors import UsageError
from taciturn.models.loss import microbatches
from taciturn.models.lstm import LSTMForCausalLM
from taciturn.models.sensitive import Sensitive
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import trainable_names
from taciturn.persample.clip import SAFETY, NotFiniteError
from taciturn.persample.isolated import isolated
from taciturn.persample.sums import Sums
from taciturn.training.distributed.all_reduce import total_gradient
from taciturn.training.distributed.fsdp import release_sums
from taciturn.training.distributed.processes import ALONE, World
from taciturn.training.passes import Work
from taciturn.training.phase_terms import SelectiveState
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.state.checkpoint import State
from taciturn.training.units.row_groups import Ints, Units
from taciturn.training.updates.release import Context

Weights = Mapping[str, Tensor]
AT_A_TIME = 2**25
"""Most numbers of per-record gradients held at once."""


def release(step: Step, state: State, tokens: Tokens, drawn: Ints | Units, run: Context) -> None:
    """Public gradients as they are, sensitive ones and states noised."""
    assert not isinstance(drawn, Units)
    assert tokens.sensitive is not None
    data = Sensitive(tokens, tokens.sensitive)
    selective_gradient(state.model, data, drawn, run.clipped, step, run.secret, run.world)


def selective_gradient(
    model: nn.Module,
    data: Sensitive,
    rows: NDArray[np.int64],
    work: Work,
    step: Step,
    secret: SecretSource,
    world: World = ALONE,
) -> None:
    """Set ``.grad`` of every trainable parameter to (Σ public gradients + Σ clipped private gradients + noise) / (qN), for
    any number of ``rows``, none included; they are all that the step draws, the same in every process of ``world``.

    Raises UsageError for a model or a way of running it that :func:`suits` refuses.
    """
    rule, expected = step.phase.rule, step.phase.expected
    assert isinstance(rule, SelectiveState)
    lstm = suits(model, work, world)
    mine = world.share(rows, data.sizes(rows))
    # For all rows in every process: with a seed all have the same stream, and a record its place in it.
    normals = secret.normals(step.number, (len(rows), rule.runs, 2 * lstm.config.hidden_size))
    place = {int(row): i for i, row in enumerate(rows)}

    @isolated(model)
    def run() -> tuple[list[Tensor], Sums]:
        public = [torch.zeros_like(p) for p in trainable_names(lstm)]
        private = Sums()
        for part in microbatches(mine, data.sizes(mine), work.token_budget):
            states = normals[[place[int(row)] for row in part]]
            add_gradients(lstm, Runs.of(data, part, rule.runs, lstm.device), states, rule, public, private)
        return public, private

    public, private = work.attempt(run)
    parameters = list(trainable_names(model))
    for p, total in zip(parameters, public, strict=True):
        p.grad = total / expected
    total_gradient(model, 0.0, world)
    plain = [p.grad for p in parameters]

    def noise(tensors: Sequence[Tensor], starts: Sequence[int]) -> None:
        secret.add_gaussian(step.number, tensors, rule.noise_multiplier * rule.clip / expected, 1 / expected, starts)

    release_sums(model, private, [], noise, world)
    for p, shown in zip(parameters, plain, strict=True):
        assert p.grad is not None
        assert shown is not None
        p.grad.add_(shown)


def suits(model: nn.Module, work: Work, world: World = ALONE) -> LSTMForCausalLM:
    """The model, if the guarantee holds for it; UsageError that says what is needed otherwise."""
    if not isinstance(model, LSTMForCausalLM) or model.config.num_layers != 1:
        raise UsageError(
            "selective_dpsgd takes the one-layer LSTM only (model.name = 'lstm', num_layers = 1, no adapter): its ε needs a "
            "state through which alone the past acts, noised where a secret ends; for other models choose jft, crt or dpsgd"
        )
    if model.config.dropout:
        raise UsageError(
            f"selective_dpsgd: dropout {model.config.dropout:g} must be 0; which units are dropped at a public token would "
            "depend on the length of the secrets before it, and ε would not hold"
        )
    if work.autocast is not None or world.mesh is not None:
        raise UsageError(
            "selective_dpsgd computes in float32 with a whole model in each process: leave dtype and shard out"
        )
    return model


@dataclass(frozen=True, slots=True)
class Runs:
    """Records padded on the right, [B, T] over their tokens; position t reads token t and predicts token t + 1.

    public, private: what the loss of predicting token t counts. boundary: whether the state before token t is a constant: at
    the start, and where a run ends. noised: where it is a sensitive run that ends. run: the number of that run.
    """

    ids: Tensor
    public: Tensor
    private: Tensor
    boundary: Tensor
    noised: Tensor
    run: Tensor

    @classmethod
    def of(cls, data: Sensitive, rows: NDArray[np.int64], runs: int, device: torch.device | str = "cpu") -> Runs:
        lengths = data.sizes(rows)
        shape = (len(rows), max(int(lengths.max()), 2))
        ids, run = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        public, private = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        boundary, noised = np.zeros(shape, bool), np.zeros(shape, bool)
        for b, (row, n) in enumerate(zip(rows, lengths, strict=True)):
            hot, scored = data.flagged(int(row), runs), data.scored(int(row))
            weight = 1 / max(int((scored & ~hot).sum()), 1)
            ids[b, :n] = data.tokens[int(row)]
            public[b, :n], private[b, :n] = weight * (scored & ~hot), weight * (scored & hot)
            before = np.concatenate([[False], hot[:-1]])
            boundary[b, :n], noised[b, :n] = hot != before, before & ~hot
            run[b, :n] = np.cumsum(noised[b, :n]) - 1
        boundary[:, 0] = True
        return cls(*(torch.from_numpy(a).to(device) for a in (ids, public, private, boundary, noised, run.clip(0))))

    def inputs(self, starts: Tensor, rows: Tensor | slice = slice(None)) -> tuple[Tensor, ...]:
        """What :func:`losses` takes after the weights of the loss."""
        return self.ids[rows], starts[rows], self.boundary[rows], self.noised[rows]


def add_gradients(
    model: LSTMForCausalLM, runs: Runs, normals: Tensor, rule: SelectiveState, public: list[Tensor], private: Sums
) -> None:
    """Add Σ_b ∇ public loss to ``public``, one tensor a trainable parameter, and Σ_b clipped ∇ private loss to ``private``.

    normals: [B, runs, 2H], the noise of the states in units of its deviation.
    """
    everything = dict(model.named_parameters())
    free = {name: p for p, name in trainable_names(model).items()}
    starts = boundary_states(everything, runs, normals.to(model.device), rule)
    loss = losses(everything, runs.public, *runs.inputs(starts)).sum()
    for total, g in zip(public, torch.autograd.grad(loss, list(free.values()), allow_unused=True), strict=True):
        if g is not None:
            total.add_(g)
    if not all(bool(total.isfinite().all()) for total in public):
        raise NotFiniteError("a gradient is not finite: lower the learning rate, or check the model's weights")
    fixed = {name: p.detach() for name, p in everything.items() if name not in free}

    def one(weights: Weights, counts: Tensor, *inputs: Tensor) -> Tensor:
        return losses({**fixed, **weights}, counts, *inputs)

    held = {name: p.detach() for name, p in free.items()}
    per_record = vmap(grad(one), in_dims=(None, 0, 0, 0, 0, 0))
    size = max(1, AT_A_TIME // sum(p.numel() for p in held.values()))
    for part in runs.private.any(1).nonzero().flatten().split(size):
        if len(part):
            add_clipped(per_record(held, runs.private[part], *runs.inputs(starts, part)), rule.clip, private)


def add_clipped(gradients: Mapping[str, Tensor], C: float, into: Sums) -> None:
    """Add Σ_b min(1, C/‖g_b‖)·g_b over the records whose gradient is finite; gradients: [B, ...] by name."""
    norm_B = torch.stack([g.flatten(1).square().sum(1) for g in gradients.values()]).sum(0).sqrt()
    kept = norm_B.isfinite()
    factor_B = (C / (norm_B[kept] * SAFETY)).clamp_max(1.0)
    for name, g in gradients.items():
        into.add(name, torch.tensordot(factor_B, g[kept], 1))


@torch.no_grad()
def boundary_states(weights: Weights, runs: Runs, normals: Tensor, rule: SelectiveState) -> Tensor:
    """The constant (h, c) that holds at each boundary, noised where a sensitive run ends: [B, T, 2H], zero elsewhere."""
    x, H = _inputs(weights, runs.ids), normals.shape[-1] // 2
    state = torch.zeros(len(runs.ids), 2 * H, device=x.device)
    out = x.new_zeros(*runs.ids.shape, 2 * H)
    own = torch.arange(len(runs.ids), device=x.device)
    for t in range(runs.ids.shape[1]):
        if t and bool(runs.noised[:, t].any()):
            noise = rule.state_noise * rule.state_clip * normals[own, runs.run[:, t]]
            state = torch.where(runs.noised[:, t, None], clipped_state(state, rule.state_clip) + noise, state)
        out[:, t] = torch.where(runs.boundary[:, t, None], state, 0.0)
        state = torch.cat(_cell(weights, x[:, t], *state.split(H, 1)), 1)
    return out


def clipped_state(state: Tensor, C: float) -> Tensor:
    """``state``, [B, 2H], each row at most C in norm."""
    factor: Tensor = (C / (state.norm(dim=1, keepdim=True) * SAFETY)).clamp_max(1.0)
    return state * factor


def losses(weights: Weights, counts: Tensor, ids: Tensor, starts: Tensor, boundary: Tensor, noised: Tensor) -> Tensor:
    """Σ_t counts_t · −log p(token t | state before it), of a record, [T], or of several, [B, T].

    The state before token t is the one after token t − 1, but ``starts`` at a boundary; the token that opens a sensitive run
    is predicted from the state it follows on, not from its copy, so that the loss has a gradient there.
    """
    x, H = _inputs(weights, ids), starts.shape[-1] // 2
    h, c = starts[..., 0, :H], starts[..., 0, H:]
    before = []
    for t in range(1, ids.shape[-1]):
        h, c = _cell(weights, x[..., t - 1, :], h, c)
        before.append(torch.where(noised[..., t, None], starts[..., t, :H], h))
        h = torch.where(boundary[..., t, None], starts[..., t, :H], h)
        c = torch.where(boundary[..., t, None], starts[..., t, H:], c)
    decoder = weights["decoder.weight"] if "decoder.weight" in weights else weights["embedding.weight"]
    logits = nn.functional.linear(torch.stack(before, -2), decoder, weights["decoder.bias"])
    wanted = ids[..., 1:]
    nll = logits.logsumexp(-1) - logits.gather(-1, wanted[..., None]).squeeze(-1)
    return (nll * counts[..., 1:]).sum(-1)


def _inputs(weights: Weights, ids: Tensor) -> Tensor:
    """What the tokens add to the gates, [..., T, 4H]."""
    bias = weights["layers.0.bias_ih_l0"] + weights["layers.0.bias_hh_l0"]
    embedded = nn.functional.embedding(ids, weights["embedding.weight"])
    return nn.functional.linear(embedded, weights["layers.0.weight_ih_l0"], bias)


def _cell(weights: Weights, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
    """One step of an LSTM (the equations of torch.nn.LSTM); x: what the token adds to the gates."""
    gates: Any = (x + nn.functional.linear(h, weights["layers.0.weight_hh_l0"])).chunk(4, -1)
    i, f, g, o = gates
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c
