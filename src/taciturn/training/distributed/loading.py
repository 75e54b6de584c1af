"""A model that process 0 alone loads: the others get its form, with parameters that have no numbers (the device "meta")
until they get their rows of them (:mod:`taciturn.training.distributed.fsdp`)."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from io import BytesIO
from typing import Any

import torch
from torch import nn

from taciturn.training.distributed.processes import World

logger = logging.getLogger("taciturn")


class _Form(pickle.Pickler):
    """Writes a module without the numbers of its parameters; buffers have theirs."""

    def persistent_id(self, obj: Any) -> Any:
        if isinstance(obj, nn.Parameter):
            return id(obj), obj.shape, obj.dtype, obj.requires_grad
        return None


class _Formed(pickle.Unpickler):
    """Reads what :class:`_Form` wrote, parameters on the device "meta"; shared ones are shared again."""

    def __init__(self, file: BytesIO) -> None:
        super().__init__(file)
        self._made: dict[int, nn.Parameter] = {}

    def persistent_load(self, pid: Any) -> nn.Parameter:
        key, shape, dtype, trained = pid
        if key not in self._made:
            self._made[key] = nn.Parameter(torch.empty(shape, dtype=dtype, device="meta"), requires_grad=trained)
        return self._made[key]


def loaded_once(load: Callable[[], Any], world: World) -> Any:
    """The model ``load`` returns in process 0, and its form in the others: modules, names, buffers, what is shared and what
    is trained, the parameters on the device "meta". A model that cannot be sent is loaded by all, with a warning."""
    kept: list[Any] = []

    def form() -> bytes | None:
        kept.append(load())
        file = BytesIO()
        try:
            _Form(file).dump(kept[0])
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            logger.warning("every process loads the whole model: its form cannot be sent (%s)", error)
            return None
        return file.getvalue()

    sent = world.once(form)
    if world.leads:
        return kept[0]
    return load() if sent is None else _Formed(BytesIO(sent)).load()


def make_room(module: nn.Module, device: torch.device) -> None:
    """Give parameters without numbers some; shared ones stay shared."""
    made: dict[nn.Parameter, nn.Parameter] = {}
    for owner in module.modules():
        for name, p in owner._parameters.items():
            if p is not None and p.is_meta:
                if p not in made:
                    made[p] = nn.Parameter(torch.empty_like(p, device=device), requires_grad=p.requires_grad)
                owner._parameters[name] = made[p]
