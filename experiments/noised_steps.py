"""The variants of :mod:`private_steps`, and the noised steps that carry them out."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from banded_noise import banded
from numpy.typing import NDArray
from scipy.optimize import brentq
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from values import DELTA

from taciturn.models.loss import collate
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import trainable_names
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import Event, PoissonGaussian
from taciturn.training.clipping import clipped
from taciturn.training.passes import Work as Passes

CHUNK = 8
"""Records whose whole gradients are held at once."""
STAGES = 4
"""Into so many equal parts a schedule of noise or rates cuts the steps."""


@dataclass(frozen=True)
class Variant:
    """steps, batch (expected), lr, clip, rule: of DP-SGD. noise_growth, rate_growth: last stage's σ or q over the first's.
    second: of AdamW, its own second moments, less the noise's share (corrected; Tang et al. 2023), or those of skeletons'
    gradients, fixed (public). precondition: gradients are divided by the root of the latter before they are clipped (AdaDPS,
    Li et al. 2022), and SGD follows. project: onto so many leading directions of skeletons' gradients (Yu et al. 2021);
    fills: of those of words that the public model puts into their masks. marked: only what π_c marks is learned of a record.
    crops: gradients of a record and so many pieces of it are averaged before clipping (De et al. 2022). train: names of
    weights that move hold one of these. lora: rank of an adapter that moves instead. bands: of correlated noise; so many
    parts of the records take turns (:mod:`banded_noise`). noise: whether any is added; clipping goes with it."""

    steps: int = 20
    batch: int = 64
    lr: float = 5e-4
    clip: float = 1.0
    rule: str = "flat"
    noise_growth: float = 1.0
    rate_growth: float = 1.0
    second: str = "own"
    precondition: bool = False
    project: int = 0
    fills: bool = False
    marked: bool = False
    crops: int = 0
    train: tuple[str, ...] = ("",)
    lora: int = 0
    bands: int = 1
    noise: bool = True


BASE = Variant()
VARIANTS: dict[str, Variant] = {
    "default": BASE,
    "none": replace(BASE, steps=0),
    "noiseless": replace(BASE, noise=False),
    "20 of 256": replace(BASE, batch=256),
    "80 of 64": replace(BASE, steps=80),
    "80 of 256": replace(BASE, steps=80, batch=256),
    "20 of 256, last block": replace(BASE, batch=256, train=("h.5", "h.3", "ln_f")),
    "20 of 256, rate 1e-3": replace(BASE, batch=256, lr=1e-3),
    "20 of 256, public second moments": replace(BASE, batch=256, second="public"),
    "20 of 256, public second moments, rate 1e-3": replace(BASE, batch=256, second="public", lr=1e-3),
    "20 of 256, public second moments, rate 2e-3": replace(BASE, batch=256, second="public", lr=2e-3),
    "20 of 256, corrected second moments": replace(BASE, batch=256, second="corrected"),
    "20 of 256, noise grows": replace(BASE, batch=256, noise_growth=2.0),
    "20 of 256, marked": replace(BASE, batch=256, marked=True),
    "20 of 256, noiseless": replace(BASE, batch=256, noise=False),
    "20 of 256, AdaDPS": replace(BASE, batch=256, precondition=True, lr=2e-3),
    "20 of 256, AdaDPS, rate 1e-2": replace(BASE, batch=256, precondition=True, lr=1e-2),
    "20 of 256, AdaDPS, rate 5e-2": replace(BASE, batch=256, precondition=True, lr=5e-2),
    "20 of 256, crops": replace(BASE, batch=256, crops=1),
    "20 of 256, 4 bands": replace(BASE, batch=256, bands=4),
    "20 of 256, 4 bands, rate 1e-3": replace(BASE, batch=256, bands=4, lr=1e-3),
    "20 of 256, 4 bands, public second moments": replace(BASE, batch=256, bands=4, second="public"),
    "20 of 256, 4 bands, public second moments, rate 1e-3": replace(BASE, batch=256, bands=4, second="public", lr=1e-3),
    "5 of 256": replace(BASE, steps=5, batch=256),
    "rate 2.5e-4": replace(BASE, lr=2.5e-4),
    "rate 1e-3": replace(BASE, lr=1e-3),
    "rate 2e-3": replace(BASE, lr=2e-3),
    "noise falls": replace(BASE, noise_growth=0.5),
    "noise grows": replace(BASE, noise_growth=2.0),
    "sampling grows": replace(BASE, rate_growth=3.0),
    "sampling falls": replace(BASE, rate_growth=1 / 3),
    "corrected second moments": replace(BASE, second="corrected"),
    "public second moments": replace(BASE, second="public"),
    "AdaDPS": replace(BASE, precondition=True, lr=2e-3),
    "AdaDPS, rate 1e-2": replace(BASE, precondition=True, lr=1e-2),
    "projected": replace(BASE, project=32, lr=0.1),
    "projected on fills": replace(BASE, project=32, fills=True, lr=0.1),
    "projected on fills, rate 1": replace(BASE, project=32, fills=True, lr=1.0),
    "projected on fills, noiseless": replace(BASE, project=32, fills=True, lr=0.1, noise=False),
    "marked": replace(BASE, marked=True),
    "crops": replace(BASE, crops=3),
    "automatic clipping": replace(BASE, rule="automatic"),
    "clip per layer": replace(BASE, rule="per-layer"),
    "clip .3": replace(BASE, clip=0.3),
    "biases and norms": replace(BASE, train=("bias", "ln_"), lr=2e-3),
    "biases and norms, rate 5e-4": replace(BASE, train=("bias", "ln_")),
    "biases and norms, 80 of 64": replace(BASE, train=("bias", "ln_"), lr=1e-3, steps=80),
    "adapter": replace(BASE, lora=4, lr=2e-3),
    "adapter, rate 5e-4": replace(BASE, lora=4),
    "adapter, rate 1e-2": replace(BASE, lora=4, lr=1e-2),
    "marked, biases and norms": replace(BASE, train=("bias", "ln_"), lr=2e-3, marked=True),
    "embeddings": replace(BASE, train=("wte",)),
    "last block": replace(BASE, train=("h.5", "h.3", "ln_f")),
}


def growth(last: float, stages: int = STAGES) -> NDArray[np.float64]:
    """A factor for each stage, from 1 to ``last``, geometric, of mean 1."""
    factors = last ** np.linspace(0, 1, stages)
    return np.asarray(factors / factors.mean())


def stage_of(step: int, steps: int) -> int:
    return step * STAGES // steps


def noise_of(variant: Variant, records: int, table: Event, epsilon: float) -> tuple[list[float], list[float]]:
    """(σ, q) of each step, so that all steps and the table spend ``epsilon`` by substitution."""
    sigmas, rates = growth(variant.noise_growth), growth(variant.rate_growth) * min(1.0, variant.batch / records)
    stages = [stage_of(t, variant.steps) for t in range(variant.steps)]
    many = Counter(stages[:: variant.bands])  # a record's part takes every so many steps

    def spent(scale: float) -> float:
        events: Counter[Event] = Counter({table: 1})
        for stage, steps in many.items():
            rate = variant.bands * float(rates[stage])
            events[PoissonGaussian(rate, float(sigmas[stage] * scale))] += steps
        return compose(events, "substitution").epsilon(DELTA) - epsilon

    scale = float(brentq(spent, 0.2, 50.0, xtol=1e-3))
    return [float(sigmas[s] * scale) for s in stages], [float(rates[s]) for s in stages]


class Loss:
    """Per-record gradients as they are, for what no sum of factors can do."""

    def __init__(self, model: nn.Module, tokens: Tokens, mask: int) -> None:
        self.model, self.tokens, self.mask = model, tokens, mask
        self.shapes = {name: p.shape for p, name in trainable_names(model).items()}
        self.others = {name: p for name, p in model.named_parameters() if name not in self.shapes}

    def each(self, rows: NDArray[np.int64], crops: int, rng: np.random.Generator) -> Iterator[Tensor]:
        """Gradients [n, d], a chunk at a time."""
        now = {name: p.detach() for p, name in trainable_names(self.model).items()}
        for first in range(0, len(rows), CHUNK):
            batch = collate(self.tokens, rows[first : first + CHUNK], self.mask)
            ids, targets, weights = cropped(batch.input_ids, batch.targets, batch.weights, crops, rng)
            found = vmap(grad(self._loss), (None, 0, 0, 0))(now, ids, targets, weights)
            yield torch.cat([g.flatten(1) for g in found.values()], 1)

    def _loss(self, weights: dict[str, Tensor], ids: Tensor, targets: Tensor, scored: Tensor) -> Tensor:
        """Mean over the pieces of a record, [1 + crops, T], of their mean loss."""
        logits = functional_call(self.model, {**weights, **self.others}, kwargs={"input_ids": ids}).logits
        nats = -logits.log_softmax(-1).gather(2, targets[..., None])[..., 0]
        whole: Tensor = ((nats * scored).sum(1) / scored.sum(1).clamp_min(1.0)).mean()
        return whole

    def parts(self, flat: Tensor) -> dict[str, Tensor]:
        sizes = [shape.numel() for shape in self.shapes.values()]
        return {n: x.view(s) for (n, s), x in zip(self.shapes.items(), torch.split(flat, sizes), strict=True)}


def cropped(
    ids: Tensor, targets: Tensor, weights: Tensor, crops: int, rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """[B, T] to [B, 1 + crops, T]: each record, and pieces of it that begin anywhere in its first half."""
    lengths = [max(int(n), 2) for n in (weights.cumsum(1).argmax(1) + 1)]
    found = [(ids, targets, weights)]
    for _ in range(crops):
        shifts = torch.tensor([int(rng.integers(0, n // 2 + 1)) for n in lengths])[:, None]
        at = torch.arange(ids.shape[1])[None] + shifts
        inside = at < ids.shape[1]
        at = at.clamp_max(ids.shape[1] - 1)
        found.append((ids.gather(1, at), targets.gather(1, at), weights.gather(1, at) * inside))
    pieces = [torch.stack(list(each), 1) for each in zip(*found, strict=True)]
    return pieces[0], pieces[1], pieces[2]


class Correlated:
    """Rows of C⁻¹z, one a step, [d]; C as in :mod:`banded_noise`. One band: fresh normals."""

    def __init__(self, bands: int, steps: int, width: int, rng: torch.Generator) -> None:
        self.c, self.width, self.rng = banded(bands, steps), width, rng
        self.last: deque[Tensor] = deque(maxlen=bands - 1)

    def draw(self, step: int) -> Tensor:
        row = torch.randn(self.width, generator=self.rng)
        for back, earlier in enumerate(reversed(self.last), start=1):
            row -= float(self.c[step, step - back]) * earlier
        row /= float(self.c[step, step])
        self.last.append(row)
        return row


def public_gradients(loss: Loss, count: int, rng: np.random.Generator) -> Tensor:
    """Mean gradients of batches of 8 skeletons, [count, d]: a function of skeletons alone, so free."""
    rows = rng.permutation(len(loss.tokens))[: count * CHUNK]
    return torch.cat([g.mean(0, keepdim=True) for g in loss.each(np.asarray(rows, np.int64), 0, rng)])


def leading(gradients: Tensor, count: int) -> Tensor:
    """Orthonormal directions that hold most of the ``gradients`` [n, d], at most ``count``: [count, d]."""
    values, vectors = torch.linalg.eigh(gradients @ gradients.T)
    values, vectors = values.flip(0)[:count], vectors.flip(1)[:, :count]
    found: Tensor = (vectors.T @ gradients) / values.clamp_min(1e-20).sqrt()[:, None]
    return found


def train(
    variant: Variant,
    model: nn.Module,
    known: dict[str, Tokens],
    mask: int,
    table: Event,
    epsilon: float,
    seed: int,
    as_if: int,
) -> list[float]:
    """The noised steps of a variant, in place; the σ of its steps."""
    if not variant.lora:
        for name, p in model.named_parameters():
            p.requires_grad_(any(part in name for part in variant.train))
    tokens = known["marked" if variant.marked else "private"]
    skeletons = known["fills" if variant.fills else "skeletons"]
    rng, torch_rng = np.random.default_rng([seed, 99]), torch.Generator().manual_seed(seed + 17)
    sigmas, rates = noise_of(variant, len(tokens) * as_if, table, epsilon)
    rates = [rate * as_if for rate in rates]
    names = trainable_names(model)
    public = Loss(model, skeletons, mask)
    own = Loss(model, tokens, mask)
    basis = scale = None
    if variant.project:
        basis = leading(public_gradients(public, min(2 * variant.project, 128), rng), variant.project)
    if variant.precondition or variant.second == "public":
        root = public_gradients(public, 64, rng).square().mean(0).sqrt()
        scale = 1 / (root / root.square().mean().sqrt() + 0.1)  # of about 1 where gradients are as large as on average
    whole = basis is not None or variant.precondition or variant.crops > 0
    groups = [{"params": [p for p in names if (p.dim() > 1) == matrix]} for matrix in (True, False)]
    plain = variant.precondition or variant.second != "own"
    sgd = torch.optim.SGD([g for g in groups if g["params"]], lr=variant.lr)
    adam = torch.optim.AdamW([g for g in groups if g["params"]], lr=variant.lr, weight_decay=0.0)
    moments = [torch.zeros(sum(p.numel() for p in names)) for _ in range(2)]
    passes = Passes()
    noise = Correlated(
        variant.bands, variant.steps, sum(p.numel() for p in names) if basis is None else len(basis), torch_rng
    )
    turns = rng.permutation(len(tokens)) % variant.bands
    for step, (sigma, rate) in enumerate(zip(sigmas, rates, strict=True)):
        rows = np.flatnonzero((turns == step % variant.bands) & (rng.random(len(tokens)) < variant.bands * rate))
        expected, clip = rate * len(tokens), variant.clip if variant.noise else 1e6
        if whole:
            total = torch.zeros(sum(p.numel() for p in names)) if basis is None else torch.zeros(len(basis))
            for g in own.each(rows, variant.crops, rng):
                g = g * scale if variant.precondition and scale is not None else g
                g = g if basis is None else g @ basis.T
                total += (g * (clip / g.norm(dim=1, keepdim=True)).clamp_max(1.0)).sum(0)
        else:
            sums, _ = clipped(model, tokens, rows, mask, passes, variant.rule, clip)
            flat = [(sums[n] if n in sums else torch.zeros_like(p)).flatten() for p, n in names.items()]
            total = torch.cat(flat)
        if variant.noise:
            total = total + sigma * clip * noise.draw(step)
        noised = total / expected
        if basis is not None:  # plain steps: Adam would move each weight as far, however little it has in the span
            with torch.no_grad():
                for p, g in zip(names, own.parts(noised @ basis).values(), strict=True):
                    p.sub_(variant.lr * g)
            continue
        if variant.second == "own" or variant.precondition:
            for p, g in zip(names, own.parts(noised).values(), strict=True):
                p.grad = g.clone()
            (sgd if variant.precondition else adam).step()
            continue
        assert plain
        moments[0].lerp_(noised, 0.1)
        moments[1].lerp_(noised.square(), 0.001)
        first = moments[0] / (1 - 0.9 ** (step + 1))
        second = moments[1] / (1 - 0.999 ** (step + 1))
        noise_share = (sigma * clip / expected) ** 2 if variant.noise else 0.0
        if variant.second == "corrected":  # Tang, Shpilevskiy, Lécuyer 2023: v − (σC/B)², floored
            by = (second - noise_share).clamp_min(noise_share * 0.05 + 1e-16).sqrt()
        else:
            assert scale is not None
            by = 1 / scale * second.mean().sqrt()
        with torch.no_grad():
            for p, g in zip(names, own.parts(first / by).values(), strict=True):
                p.sub_(variant.lr * g)
    model.zero_grad(set_to_none=True)
    return sigmas
