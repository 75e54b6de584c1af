"""Any module without a rule of its own: its gradients for each unit, by running it again with that unit alone.

The forward pass is the module's own, on the batch. The backward pass runs it once more under `torch.func.vmap`, every
unit by itself and in float32, and takes the products with the output gradient there (`torch.func.vjp`). So what a unit
adds is a function of its own input and output gradient whatever the module does. A module that mixes records computes
something else together than alone, which the look before the first step refuses (premise.py), and one that draws random
numbers raises.

Cost: one more forward pass of the module, its products of matrices unit by unit, and U gradients of its size, which are
kept until the sum: for modules with few parameters of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vjp, vmap
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from taciturn.errors import UsageError
from taciturn.persample.linear import KeptUse
from taciturn.persample.rules import SUPPORTED
from taciturn.persample.tape import Tape

HALF = (torch.bfloat16, torch.float16)


class _Plain(nn.Module):
    """A module with the forward that it had before it was replaced, so that it can be called with other parameters."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.inner = module
        self.run = module.forward

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs)


@dataclass(slots=True)
class _Call:
    """One call of a module. keys: the names of its trainable parameters within it, and in the model. tensors: places of the
    tensors among ``leaves``."""

    plain: _Plain
    keys: dict[str, str]
    tape: Tape
    leaves: list[Any]
    spec: TreeSpec
    tensors: list[int]
    found: tuple[list[Any], TreeSpec] | None = None

    @property
    def name(self) -> str:
        first = next(iter(self.keys.values()))
        return f"{first} ({type(self.plain.inner).__name__})"

    def run(self, parameters: dict[str, Tensor], tensors: Sequence[Tensor]) -> tuple[list[Any], TreeSpec]:
        """The leaves of what the module returns."""
        leaves = list(self.leaves)
        for at, tensor in zip(self.tensors, tensors, strict=True):
            leaves[at] = tensor
        args, kwargs = tree_unflatten(leaves, self.spec)
        return tree_flatten(functional_call(self.plain, parameters, args, kwargs))

    def frozen(self) -> dict[str, Tensor]:
        """What else of the module is in half precision, in float32."""
        held = chain(self.plain.named_parameters(), self.plain.named_buffers())
        return {n: t.detach().float() for n, t in held if t.dtype in HALF and n not in self.keys}

    def by_unit(self, x: Tensor, differentiable: bool) -> Tensor | None:
        """[U, ...]: the part of each unit; None for what all units share, which must not have a gradient."""
        rows, units = self.tape.rows, self.tape.units
        batched = x.dim() > 1 or differentiable  # what has one dimension may be the positions'
        flattened = x.dim() == 2 and x.shape[0] > 1 and x.shape[0] % rows == 0
        if batched and x.dim() and (x.shape[0] == rows or flattened):
            return x.reshape(units, x.shape[0] // units, *x.shape[1:])
        if not differentiable and (x.dim() < 2 or x.shape[0] == 1):
            return None
        raise UsageError(
            f"{self.name} saw a tensor of shape {tuple(x.shape)} in a batch of {rows} rows: the model broadcasts an input "
            "or mixes records, so their gradients cannot be told apart; freeze that part or choose another model"
        )


def _single(x: Tensor) -> Tensor:
    return x.float() if x.dtype in HALF else x


class Replay(torch.autograd.Function):
    """The module's forward; backward leaves the units' gradients of its parameters on the tape."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: Tensor) -> tuple[Tensor, ...]:
        inputs, weights = tensors[: len(call.tensors)], tensors[len(call.tensors) :]
        leaves, spec = call.run(dict(zip(call.keys, weights, strict=True)), inputs)
        call.found = leaves, spec
        out = tuple(leaf for leaf in leaves if isinstance(leaf, Tensor))
        ctx.mark_non_differentiable(*(t for t in out if not t.is_floating_point()))
        ctx.set_materialize_grads(False)
        ctx.call = call
        ctx.save_for_backward(*tensors)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        call, n, saved = ctx.call, len(ctx.call.tensors), ctx.saved_tensors
        inputs, weights = saved[:n], saved[n:]
        wanted = list(ctx.needs_input_grad[1 : n + 1])
        singles, frozen = [_single(x) for x in inputs], call.frozen()
        parts = [call.by_unit(x, w) for x, w in zip(singles, wanted, strict=True)]
        given = [None if g is None else call.by_unit(_single(g), True) for g in grads]
        some = [i for i, w in enumerate(wanted) if w]

        def of_unit(parts: list[Tensor | None], given: list[Tensor | None]) -> tuple[Any, ...]:
            whole = [x if part is None else part for x, part in zip(singles, parts, strict=True)]

            def outputs(parameters: dict[str, Tensor], floats: list[Tensor]) -> list[Tensor]:
                for i, x in zip(some, floats, strict=True):
                    whole[i] = x
                leaves, _ = call.run({**frozen, **parameters}, whole)
                tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
                return [t for t, g in zip(tensors, given, strict=True) if g is not None]

            pulled: Any = vjp(outputs, dict(zip(call.keys, weights, strict=True)), [whole[i] for i in some])
            (out, pull), cotangents = pulled, [g for g in given if g is not None]
            if [o.shape for o in out] != [g.shape for g in cotangents]:
                raise RuntimeError("its output has another shape for one record than for several")
            back: tuple[Any, ...] = pull([g.to(o.dtype) for g, o in zip(cotangents, out, strict=True)])
            return back

        def dims(tensors: list[Tensor | None]) -> list[int | None]:
            return [None if t is None else 0 for t in tensors]

        try:
            with torch.autocast(weights[0].device.type, enabled=False):
                found, gx = vmap(of_unit, in_dims=(dims(parts), dims(given)), randomness="error")(parts, given)
        except torch.OutOfMemoryError:
            raise
        except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
            said = (str(error).splitlines() or [""])[0][:160]
            raise UsageError(
                f"no per-record gradient rule for {call.name}, and it cannot be run one record at a time ({said}); freeze "
                f"it (requires_grad_(False)) or choose another model. {SUPPORTED}"
            ) from error
        for name, key in call.keys.items():
            call.tape.add(KeptUse(key, found[name].float()))
        back: list[Tensor | None] = [None] * n
        for i, g in zip(some, gx, strict=True):
            back[i] = g.reshape(inputs[i].shape).to(inputs[i].dtype)
        return None, *back, *([None] * len(weights))


def replayed(module: nn.Module, keys: dict[str, str], tape: Tape) -> Callable[..., Any]:
    """A forward for ``module`` that records its gradients and those of all modules in it. keys: the trainable parameters
    by their names in it, with their names in the model.

    Tensors are taken by unit along their first dimension, which is the batch or, in two dimensions, batch·positions; what
    has one row or one dimension is shared. Raises UsageError for another shape.
    """
    plain = _Plain(module)
    inner = {f"inner.{name}": key for name, key in keys.items()}

    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        places = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        tensors = [leaves[at] for at in places]
        owned = dict(module.named_parameters())
        call = _Call(plain, inner, tape, leaves, spec, places)
        out = iter(Replay.apply(call, *tensors, *(owned[name] for name in keys)))
        assert call.found is not None
        made, form = call.found
        call.found = None
        return tree_unflatten([next(out) if isinstance(leaf, Tensor) else leaf for leaf in made], form)

    return run
