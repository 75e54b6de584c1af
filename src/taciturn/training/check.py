"""What training a model with per-record gradients would be: which parts have a rule, whether they agree with one record
at a time, and what a step costs in memory."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from taciturn.errors import UsageError
from taciturn.models.hf import context_length
from taciturn.models.loss import Batch, record_losses
from taciturn.models.tokens import Tokens
from taciturn.persample.capture import captured, generic_modules, unsupported
from taciturn.persample.isolated import mixes_records, without_dropout
from taciturn.persample.premise import TOLERANCE, disagreement, verify
from taciturn.training.plan import Plan
from taciturn.training.values.slots import Slots

LONGEST = 512
SHORT = (8, 5, 11)
"""Tokens of the random records that a model is examined with; the last stands beside the others only."""

STATES = {"sgd": 0, "momentum": 1, "adamw": 2}
"""Numbers an optimiser keeps for each one it trains."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes. rows, width: the pass that was measured. activations: what is held when the forward pass ends, logits
    included. peak: the most a forward and a backward pass hold at once, the tape of per-record factors included; on top
    of weights, clipped sums and optimiser state, which stay."""

    rows: int
    width: int
    weights: int
    sums: int
    optimiser: int
    activations: int
    peak: int

    @property
    def total(self) -> int:
        return self.weights + self.sums + self.optimiser + self.peak


@dataclass(frozen=True, slots=True)
class Check:
    """layers: types of layers with something to train and how many there are. unsupported: trainable parameters that
    nothing can be recorded of. generic: modules without a rule of their own, which are run once more, one record at a
    time. mixing: what makes one record's output depend on others. refused: what stood against a first pass. difference:
    the largest relative difference between per-record gradients as passes take them and one record at a time; worst: the
    parameter it is largest in. padding: the largest difference of a record's loss when others are longer. The last four
    are None where something stands against the model."""

    model: str
    parameters: int
    trainable: int
    layers: dict[str, int]
    unsupported: tuple[str, ...]
    generic: tuple[str, ...] = ()
    mixing: tuple[str, ...] = ()
    refused: str | None = None
    difference: float | None = None
    worst: str | None = None
    padding: float | None = None
    memory: Memory | None = None

    @property
    def problems(self) -> list[str]:
        """Why the model cannot be trained, in sentences; empty when it can."""
        found = [f"no per-record gradient rule for {name}" for name in self.unsupported]
        found += [f"a record's gradient would depend on other records: {reason}" for reason in self.mixing]
        if self.refused is not None:
            found.append(self.refused)
        if self.difference is not None and not self.difference <= TOLERANCE:
            found.append(
                f"per-record gradients differ from one record at a time by {self.difference:.2g}, most in {self.worst}"
            )
        if self.padding is not None and not self.padding <= TOLERANCE:
            found.append(f"a record's loss changes by {self.padding:.2g} with padding on its right")
        return found

    def to_json(self) -> dict[str, Any]:
        memory = None if self.memory is None else {**asdict(self.memory), "total": self.memory.total}
        return {**asdict(self), "memory": memory, "problems": self.problems}


def check(
    model: nn.Module,
    *,
    classify: bool = False,
    tokens: int = 8192,
    max_length: int | None = None,
    optimiser: Literal["sgd", "momentum", "adamw"] = "adamw",
) -> Check:
    """Examine ``model`` on the CPU with two short random records. Its weights are gone afterwards: the memory of a pass of
    ``tokens`` padded tokens, in records of ``max_length``, is counted on tensors that have shapes only."""
    parameters = list(model.parameters())
    trainable = [p for p in parameters if p.requires_grad]
    report = Check(
        type(model).__name__,
        sum(p.numel() for p in parameters),
        sum(p.numel() for p in trainable),
        _layers(model),
        tuple(unsupported(model)),
        tuple(f"{name or 'the model'} ({type(m).__name__})" for name, m in generic_modules(model).items()),
    )
    if report.unsupported or not trainable:
        return report
    if mixing := mixes_records(model, max_length or 0):
        return replace(report, mixing=tuple(mixing))
    batch = random_batch(model, SHORT, classify)
    try:
        difference, worst = disagreement(model, _losses(model, batch), len(batch))
    except UsageError as error:
        return replace(report, refused=str(error))
    report = replace(report, difference=difference, worst=worst, padding=_padding(model, batch))
    width = min(n for n in (max_length or LONGEST, context_length(model)) if n)
    rows = max(1, tokens // width)
    weights = _bytes([*parameters, *model.buffers()])
    sums = sum(4 * p.numel() for p in trainable)
    activations, peak = pass_bytes(model, rows, width, classify)
    memory = Memory(rows, width, weights, sums, STATES[optimiser] * sums, activations, peak)
    return replace(report, memory=memory)


def assure(model: nn.Module, *, classify: bool = False, longest: int = 0) -> float:
    """Compare per-record gradients of short random records, as noised steps will take them, with one record at a time,
    before any private record is read; the largest relative difference. Raises UsageError when no clip norm would hold.

    longest: tokens of the longest record there will be.
    """
    batch = random_batch(model, SHORT, classify)
    return verify(model, _losses(model, batch), len(batch), longest)


def require_isolation(plan: Plan, model: nn.Module, data: Mapping[str, Tokens | Slots]) -> None:
    """:func:`assure` before a run of ``plan`` with a noised phase."""
    if any(phase.private for phase in plan.phases):
        longest = max(each.longest for each in data.values() if isinstance(each, Tokens))
        assure(model, classify=plan.model.task == "classify", longest=longest)


def random_batch(model: Any, lengths: tuple[int, ...], classify: bool) -> Batch:
    """Records of random ids, all of whose tokens but the first are targets, padded on the right."""
    g = torch.Generator().manual_seed(0)
    B, T = len(lengths), max(lengths)
    ids = torch.randint(2, model.config.vocab_size, (B, T), generator=g)
    attention = (torch.arange(T)[None] < torch.tensor(lengths)[:, None]).long()
    weights = torch.zeros(B, T)
    weights[:, :-1] = attention[:, 1:]
    labels = torch.arange(B) % model.config.num_labels if classify else None
    return Batch(ids * attention, attention, torch.roll(ids, -1, 1), weights, labels)


def pass_bytes(model: Any, rows: int, width: int, classify: bool) -> tuple[int, int]:
    """(bytes held after the forward pass, most held at once) for a batch [rows, width], weights not counted.

    Nothing is computed: ``model`` is left with tensors that have shapes and no numbers.
    """
    batch = random_batch(model, (width,) * rows, classify)
    if model.config.model_type.startswith(
        "taciturn_"
    ):  # only looks whether padding is on the right, which needs numbers
        batch = replace(batch, attention=cast(Tensor, None))
    model.train()
    with captured(model, rows), without_dropout(model), FakeTensorMode(allow_non_fake_inputs=True) as shapes:
        without_numbers(model, shapes.from_tensor)
        batch = each_tensor(batch, shapes.from_tensor)
        with counted() as count:
            losses_B = record_losses(model, batch)
            after = count.now
            losses_B.sum().backward()
    return after, count.peak


@dataclass(eq=False)
class Count(TorchDispatchMode):
    """Bytes of the tensors that operations have made and that are still held."""

    now: int = 0
    peak: int = 0

    def __post_init__(self) -> None:
        super().__init__()
        self._seen: dict[int, weakref.ref[Any]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        known = {id(t.untyped_storage()) for t in tree_leaves((args, kwargs)) if isinstance(t, Tensor)}
        out = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(out):
            if isinstance(tensor, Tensor) and id(tensor.untyped_storage()) not in known:
                self._add(tensor.untyped_storage())
        return out

    def _add(self, storage: Any) -> None:
        key, size = id(storage), storage.nbytes()
        if key in self._seen:
            return
        self.now += size
        self.peak = max(self.peak, self.now)

        def gone(_: Any) -> None:
            del self._seen[key]
            self.now -= size

        self._seen[key] = weakref.ref(storage, gone)


@contextmanager
def counted() -> Iterator[Count]:
    """Count what is allocated in the block; views and results written in place are not counted again."""
    with Count() as count:
        yield count


def _layers(model: nn.Module) -> dict[str, int]:
    owners = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(recurse=False))]
    return dict(Counter(type(m).__name__ for m in owners).most_common())


def _padding(model: nn.Module, batch: Batch) -> float:
    """How much the shorter record's loss differs from its loss alone, relative to it."""
    training = model.training
    model.eval()
    with torch.no_grad():
        together = record_losses(model, batch)[-1]
        length = int(batch.attention[-1].sum())
        alone = record_losses(model, each_tensor(batch, lambda t: t[-1:, :length] if t.dim() > 1 else t[-1:]))[0]
    model.train(training)
    return float((together - alone).abs() / alone.abs().clamp_min(1e-12))


def _losses(model: nn.Module, batch: Batch) -> Callable[[Sequence[int]], Tensor]:
    """The losses of some rows of a batch, padded to the longest of them."""

    def losses(rows: Sequence[int]) -> Tensor:
        width, some = int(batch.attention[list(rows)].sum(1).max()), list(rows)
        return record_losses(model, each_tensor(batch, lambda t: t[some, :width] if t.dim() > 1 else t[some]))

    return losses


def each_tensor(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """A batch with ``change`` of each tensor it has."""
    changed: dict[str, Any] = {}
    for field in fields(batch):
        tensor = getattr(batch, field.name)
        changed[field.name] = None if tensor is None else change(tensor)
    return Batch(**changed)


def without_numbers(model: nn.Module, convert: Callable[[Tensor], Tensor]) -> None:
    """Replace parameters and buffers by their shapes; shared ones stay shared."""
    made: dict[Tensor, Tensor] = {}
    for module in model.modules():
        held: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for tensors in held:
            for name, tensor in tensors.items():
                if tensor is not None:
                    tensors[name] = made.setdefault(tensor, convert(tensor))


def _bytes(tensors: list[Tensor]) -> int:
    return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())
