"""Which rule a module has, and how its forward is replaced *on the instance* while a pass is recorded.

The model's class, its weights, its hooks and its `state_dict` stay as they are. A module of a known kind with a forward
of its own (OPT's positions, an embedding that is scaled) runs that forward, and only the call of `torch.nn.functional`
that takes its weight is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from transformers.pytorch_utils import Conv1D

from taciturn.errors import UsageError
from taciturn.models.awd_lstm import WeightDropLSTM
from taciturn.persample.embedding import Lookup
from taciturn.persample.linear import Affine, Site
from taciturn.persample.lstm import LSTM, Keys
from taciturn.persample.norm import LayerNorm, RMSNorm
from taciturn.persample.tape import Tape, layer_of

KINDS = "Linear, Conv1D, Embedding, LayerNorm, RMSNorm, one-layer LSTM and WeightDropLSTM"
_OWN_FORWARD: dict[Any, Any] = {nn.Linear: nn.functional.linear, nn.Embedding: nn.functional.embedding}


@contextmanager
def captured(model: nn.Module, rows: int, units: int | None = None) -> Iterator[Tape]:
    """Record, in the yielded tape, what each trainable layer sees in one pass over a batch of ``rows`` rows.

    units: how many units (records, users) they form, as consecutive blocks of equal size; one a row by default.
    Raises UsageError naming every trainable parameter that belongs to a module without a rule.
    """
    check_supported(model)
    names = trainable_names(model)
    tape = Tape(rows, units or rows, tuple(dict.fromkeys(map(layer_of, names.values()))))
    swapped: list[tuple[nn.Module, Any]] = []
    try:
        for module in model.modules():
            keys = {n: names.get(p) for n, p in module._parameters.items() if p is not None}
            if any(keys.values()) and _has_rule(module):
                swapped.append((module, vars(module).get("forward")))
                module.forward = _recording(module, keys, tape)
        yield tape
    finally:
        for module, before in swapped:
            if before is None:
                del module.forward
            else:
                module.forward = before


def trainable_names(model: nn.Module) -> dict[nn.Parameter, str]:
    """Every trainable parameter and its name; a shared one once, under its first name."""
    return {p: name for name, p in model.named_parameters() if p.requires_grad}


def unsupported(model: nn.Module) -> list[str]:
    """Trainable parameters that no layer with a rule owns, each as "name (module type)"."""
    covered = {p for m in model.modules() if _has_rule(m) for p in m.parameters(recurse=False)}
    return [
        f"{f'{name}.' if name else ''}{p_name} ({type(module).__name__})"
        for name, module in model.named_modules()
        for p_name, p in module.named_parameters(recurse=False)
        if p.requires_grad and p not in covered
    ]


def check_supported(model: nn.Module) -> None:
    """Raise UsageError when a trainable parameter has no per-record rule; its name and module type are in the message."""
    unknown = unsupported(model)
    if unknown:
        raise UsageError(
            f"no per-record gradient rule for: {', '.join(unknown[:8])}{', …' if len(unknown) > 8 else ''}. Rules exist for "
            f"{KINDS}; freeze the others (requires_grad_(False)) or choose another model"
        )


def _has_rule(module: nn.Module) -> bool:
    if isinstance(module, nn.LSTM):
        plain = not module.bidirectional and module.batch_first and module.bias and not module.proj_size
        return module.num_layers == 1 and plain and _computes_as(module, nn.LSTM)
    if isinstance(module, nn.LayerNorm):
        return len(module.normalized_shape) == 1 and module.elementwise_affine and _computes_as(module, nn.LayerNorm)
    if isinstance(module, nn.Embedding):
        return module.max_norm is None and not module.scale_grad_by_freq and not module.sparse
    return isinstance(module, nn.Linear) or _is_conv1d(module) or _is_weight_drop(module) or _is_rms_norm(module)


def _computes_as(module: nn.Module, kind: Any) -> bool:
    """Whether its forward is that of ``kind``: a rule stands for the forward it was derived from, not for a class's name
    (Nemotron's LayerNorm1P scales by 1 + w)."""
    return type(module).forward is kind.forward and "forward" not in vars(module)


def _is_conv1d(module: nn.Module) -> bool:
    """transformers' transposed Linear."""
    return isinstance(module, Conv1D) and _computes_as(module, Conv1D)


def _is_weight_drop(module: nn.Module) -> bool:
    return isinstance(module, WeightDropLSTM) and _computes_as(module, WeightDropLSTM)


def _epsilon(module: Any) -> float | None:
    """What an RMSNorm adds to the mean square; each model family has a class of its own, and two names for it."""
    return next((float(e) for n in ("variance_epsilon", "eps") if (e := getattr(module, n, None)) is not None), None)


def _is_rms_norm(module: nn.Module) -> bool:
    """By name and form, then by what it computes: some classes scale by 1 + w."""
    form = "RMSNorm" in type(module).__name__ and list(module._parameters) == ["weight"]
    weight = module._parameters.get("weight")
    if not form or weight is None or weight.dim() != 1 or (eps := _epsilon(module)) is None:
        return False
    kind = (type(module), eps)
    if "forward" in vars(module):
        return False
    if kind not in _SCALES and weight.device.type != "meta":
        _SCALES[kind] = _scales_by_weight(module, weight, eps)
    return _SCALES.get(kind, True)


_SCALES: dict[tuple[type, float], bool] = {}
"""What was found out about a class of norms, so that each is tried once."""


def _scales_by_weight(module: Any, weight: Tensor, eps: float) -> bool:
    x = torch.linspace(-1, 2, 2 * weight.numel(), device=weight.device).view(1, 2, -1)
    w = torch.linspace(-2, 3, weight.numel(), device=weight.device).to(
        weight.dtype
    )  # not its own: all ones would hide much
    with torch.no_grad(), torch.autocast(weight.device.type, enabled=False):
        theirs = functional_call(module, {"weight": w}, (x,)).float()
        return torch.allclose(theirs, RMSNorm.apply(x, w.float(), eps, None), rtol=1e-4, atol=1e-4)


def _recording(module: Any, keys: dict[str, str | None], tape: Tape) -> Callable[..., Any]:
    site = Site(tape, keys.get("weight"), keys.get("bias"), _is_conv1d(module))
    if isinstance(module, nn.LSTM) or _is_weight_drop(module):
        four = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        names: Any = tuple(keys[n] for n in four)
        return lambda x, state=None: _run_lstm(module, x, state, names, tape)
    for kind, function in _OWN_FORWARD.items():
        if isinstance(module, kind) and (type(module).forward is not kind.forward or "forward" in vars(module)):
            return _intercepted(module, function, site)
    if isinstance(module, nn.Embedding):
        return lambda ids: _lookup(ids, module.weight, module.padding_idx, site)
    if isinstance(module, nn.LayerNorm):
        return lambda x: LayerNorm.apply(x, module.weight, module.bias, module.eps, site)
    if _is_rms_norm(module):
        eps = _epsilon(module)
        return lambda x: RMSNorm.apply(x, module.weight, eps, site)
    return lambda x: Affine.apply(x, module.weight, module.bias, site)


def _lookup(ids: Tensor, weight: Tensor, padding_idx: int | None, site: Site) -> Tensor:
    # Position ids come as [1, T] and are broadcast over the batch: one row per record keeps records apart.
    rows = ids.expand(site.tape.rows, *ids.shape[1:]) if ids.dim() > 1 and ids.shape[0] == 1 else ids
    return Lookup.apply(rows, weight, padding_idx, site)  # type: ignore[no-any-return]


@dataclass
class _Intercept(TorchFunctionMode):
    """Answers one function for one weight; everything else runs as it would."""

    function: Any
    module: Any
    site: Site

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is self.function and len(args) > 1 and args[1] is self.module.weight:
            if func is nn.functional.embedding:
                return _lookup(args[0], args[1], self.module.padding_idx, self.site)
            bias = args[2] if len(args) > 2 else kwargs.get("bias")
            return Affine.apply(args[0], args[1], bias, self.site)
        return func(*args, **kwargs)


def _intercepted(module: Any, function: Any, site: Site) -> Callable[..., Any]:
    forward = module.forward

    def run(*args: Any, **kwargs: Any) -> Any:
        with _Intercept(function, module, site):
            return forward(*args, **kwargs)

    return run


def _run_lstm(module: Any, x: Tensor, state: Any, names: Keys, tape: Tape) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    zeros = x.new_zeros(x.shape[0], module.hidden_size)
    h0, c0 = (zeros, zeros) if state is None else (state[0][0], state[1][0])
    if isinstance(module, WeightDropLSTM) and module.recurrent_mask() is not None:
        raise UsageError(
            "DropConnect in a pass that is clipped: its mask is shared by records, so no clip norm would hold"
        )
    weights = (module.weight_ih_l0, module.weight_hh_l0, module.bias_ih_l0, module.bias_hh_l0)
    with torch.autocast(x.device.type, enabled=False):  # a recurrence in half precision drifts
        y, h, c = LSTM.apply(x.float(), h0.float(), c0.float(), *weights, names, tape)
    return y, (h[None], c[None])
