"""The frozen layers before the first trained one: which they are, and why a model has none that can be kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import takewhile
from typing import Any

import torch
from torch import nn

from taciturn.errors import UsageError
from taciturn.models.loss import Batch, record_losses
from taciturn.persample.capture import generic_modules
from taciturn.persample.isolated import random_layers, without_dropout

_ASIDE = ("id2label", "label2id", "_name_or_path", "architectures")
"""Of a configuration: what no layer reads."""


@dataclass(frozen=True, slots=True)
class Front:
    """layers: in order, the last first of those whose output is kept to be what the trained rest reads. digest: of their
    weights, of those before them and of the shape, [16 bytes]."""

    layers: tuple[nn.Module, ...]
    digest: bytes


def front_of(model: Any, batch: Batch) -> Front:
    """The front of ``model``, found by what is called in a pass of ``batch`` (random records).

    Raises UsageError where nothing is frozen before the first trained layer, where a layer is run twice, is a part of what
    is replayed record by record, or draws random numbers in training.
    """
    name = type(model).__name__
    lists = [module for module in model.modules() if isinstance(module, nn.ModuleList)]
    longest = max(lists, key=len, default=nn.ModuleList())
    layers = tuple(takewhile(_frozen, longest))
    before = _before(model, batch, layers) if layers else None
    if before is None:
        raise UsageError(
            f"train.frozen_cache: {name} has no frozen layers that are run once, in order, before anything that is trained; "
            "freeze the first ones and what is before them by model.frozen, or leave train.frozen_cache out"
        )
    training = model.training
    model.train()
    with random_layers(model) as drew, torch.no_grad(), torch.random.fork_rng():
        record_losses(model, batch)
    model.train(training)
    modules = dict(model.named_modules())
    drawn = [each for each in drew if modules.get(each.rpartition(" (")[0], model) in before]
    if drawn:
        raise UsageError(
            f"train.frozen_cache: {drawn[0]} draws random numbers in training, so what frozen layers make of a record is "
            "another thing each time: set the model's dropout to 0 (model.options), or leave train.frozen_cache out"
        )
    return Front(layers, _digest(model, before))


def _before(model: nn.Module, batch: Batch, layers: tuple[nn.Module, ...]) -> list[nn.Module] | None:
    """What is called in a pass until the last of ``layers`` returns; None where that is not a pass through frozen layers,
    each once and in order."""
    with _called(model) as calls, torch.no_grad(), without_dropout(model):
        record_losses(model, batch)
    begun = [module for begins, module in calls if begins and module in layers]
    if begun != list(layers) or len(set(layers)) < len(layers):
        return None
    before = [module for begins, module in calls[: calls.index((False, layers[-1]))] if begins]
    replayed = {inner for root in generic_modules(model).values() for inner in root.modules()}
    if any(map(_owns_trained, before)) or replayed & set(layers):
        return None
    return before


def _frozen(module: nn.Module) -> bool:
    return not any(p.requires_grad for p in module.parameters())


def _owns_trained(module: nn.Module) -> bool:
    return any(p.requires_grad for p in module.parameters(recurse=False))


@contextmanager
def _called(model: nn.Module) -> Iterator[list[tuple[bool, nn.Module]]]:
    """Collects (True, module) where a module is called and (False, module) where it returns, in the block."""
    calls: list[tuple[bool, nn.Module]] = []
    handles = []
    for module in model.modules():
        handles.append(module.register_forward_pre_hook(lambda module, *_: calls.append((True, module))))
        handles.append(module.register_forward_hook(lambda module, *_: calls.append((False, module))))
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def _digest(model: Any, modules: list[nn.Module]) -> bytes:
    shape = {name: value for name, value in model.config.to_dict().items() if name not in _ASIDE}
    digest = blake2b(json.dumps(shape, sort_keys=True, default=str).encode(), digest_size=16)
    for module in modules:
        for tensor in (*module._parameters.values(), *module._buffers.values()):
            if tensor is not None:
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
                digest.update(tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.digest()
