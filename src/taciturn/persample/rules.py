"""Which rule a layer has, and the forward that records by it. A rule stands for what a forward computes, not for the name
of a class (Gemma's RMSNorm scales by 1 + w, Falcon's Linear multiplies by hand): known classes with a forward of their own
are tried, once for each class, with weights of which none is one or zero."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.overrides import TorchFunctionMode
from transformers.pytorch_utils import Conv1D

from taciturn.models.families import WORKING
from taciturn.persample import attention, experts, recurrent
from taciturn.persample.embedding import Lookup
from taciturn.persample.linear import Affine, Site
from taciturn.persample.norm import LayerNorm, RMSNorm
from taciturn.persample.tape import Tape

KINDS = (
    "Linear, Conv1D, Embedding, LayerNorm, RMSNorm (scaled by w or 1 + w), MultiheadAttention, experts of a mixture, "
    "LSTM and GRU (batch_first), WeightDropLSTM"
)

FILES: tuple[Any, ...] = (recurrent, attention, experts)

SUPPORTED = f"Rules exist for {KINDS}; any other module is run one record at a time, if it can be. {WORKING}"

Keys = dict[str, str | None]
"""Names in the model of a module's own parameters; None for a frozen one."""

Rule = Callable[[Any, Keys, Tape], Callable[..., Any]]
"""(module, keys, tape) → its recording forward."""


def rule_of(module: nn.Module) -> Rule | None:
    """The rule for the parameters that ``module`` itself owns, None if it has none."""
    if isinstance(module, nn.Embedding):
        plain = module.max_norm is None and not module.scale_grad_by_freq and not module.sparse
        return (_embedding if computes_as(module, nn.Embedding) else _intercepted) if plain else None
    if isinstance(module, nn.Linear):
        return _affine if computes_as(module, nn.Linear) or _tried(module, _is_affine) else _intercepted
    if isinstance(module, Conv1D):
        return _affine if computes_as(module, Conv1D) else None
    for kind in FILES:
        if kind.fits(module) and "forward" not in vars(module):
            rule: Rule = kind.recording
            return rule
    if _router(module):
        return _intercepted
    return _normalised if _norm(module) else None


def computes_as(module: nn.Module, kind: Any) -> bool:
    """Whether its forward is that of ``kind``."""
    return type(module).forward is kind.forward and "forward" not in vars(module)


_FOUND: dict[Any, Any] = {}
"""What was found out about a class, so that each is tried once."""


def _tried(module: Any, find: Callable[[Any], Any], *more: Any) -> Any:
    key = (find, type(module), *more)
    if "forward" in vars(module):
        return None
    if key not in _FOUND:
        try:
            with torch.no_grad(), torch.autocast("cpu", enabled=False):
                _FOUND[key] = find(module)
        except (RuntimeError, TypeError, ValueError, AttributeError):
            _FOUND[key] = None
    return _FOUND[key]


def _computed(module: nn.Module, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """What it makes of x with other weights, wherever its own are."""
    found: Tensor = functional_call(module, weights, (x,))
    return found.float()


def _is_affine(module: Any) -> bool:
    (p, d), x = module.weight.shape, torch.linspace(-1, 2, 2 * module.in_features).view(1, 2, -1)
    weights = {"weight": torch.linspace(-2, 3, p * d).view(p, d)}
    if module.bias is not None:
        weights["bias"] = torch.linspace(2, -1, p)
    return _close(_computed(module, weights, x), nn.functional.linear(x, **weights))


def _close(found: Tensor, want: Tensor) -> bool:
    return found.shape == want.shape and torch.allclose(found, want, rtol=1e-4, atol=1e-4)


@dataclass(frozen=True)
class _Form:
    """A norm: about the mean or not, scaled by w or by ``plus`` + w."""

    centred: bool
    plus: int

    def __call__(self, x: Tensor, weight: Tensor, bias: Tensor | None, eps: float, site: Site | None) -> Any:
        if self.centred:
            return LayerNorm.apply(x, weight, bias, eps, self.plus, site)
        return RMSNorm.apply(x, weight, eps, self.plus, site)


_FORMS = [_Form(centred, plus) for centred in (False, True) for plus in (0, 1)]


def _norm(module: Any) -> _Form | None:
    """By name and form, then by what it computes."""
    weight, own = module._parameters.get("weight"), {n for n, p in module._parameters.items() if p is not None}
    if "Norm" not in type(module).__name__ or weight is None or weight.dim() != 1 or not own <= {"weight", "bias"}:
        return None
    if computes_as(module, nn.LayerNorm):
        return _FORMS[2]
    eps = _epsilon(module)
    found: _Form | None = None if eps is None else _tried(module, _form, eps, "bias" in own)
    return found


def _form(module: Any) -> _Form | None:
    d, eps = module.weight.shape[0], _epsilon(module)
    if eps is None or len(inspect.signature(type(module).forward).parameters) != 2:  # gated ones take another input
        return None
    x = torch.linspace(-1, 2, 2 * d).view(1, 2, -1)
    weights = {"weight": torch.linspace(-2, 3, d)}
    if getattr(module, "bias", None) is not None:
        weights["bias"] = torch.linspace(2, -1, d)
    theirs = _computed(module, weights, x)
    for form in _FORMS:
        if (form.centred or "bias" not in weights) and _close(
            theirs, form(x, weights["weight"], weights.get("bias"), eps, None)
        ):
            return form
    return None


def _epsilon(module: Any) -> float | None:
    """What a norm adds to the mean square; each model family has a class of its own, and two names for it."""
    if isinstance(module, nn.RMSNorm) and module.eps is None:
        return torch.finfo(torch.float32).eps
    return next((float(e) for n in ("variance_epsilon", "eps") if (e := getattr(module, n, None)) is not None), None)


def _router(module: Any) -> bool:
    """A linear map to experts, with the weight in the module itself."""
    own = [n for n, p in module._parameters.items() if p is not None and p.requires_grad]
    known = type(module).__name__.endswith("Router") and own in (["weight"], ["weight", "bias"])
    return known and module.weight.dim() == 2


def _site(module: Any, keys: Keys, tape: Tape) -> Site:
    return Site(tape, keys.get("weight"), keys.get("bias"), isinstance(module, Conv1D))


def _affine(module: Any, keys: Keys, tape: Tape) -> Callable[..., Any]:
    site = _site(module, keys, tape)
    return lambda input: Affine.apply(input, module.weight, module.bias, site)


def _embedding(module: Any, keys: Keys, tape: Tape) -> Callable[..., Any]:
    site = _site(module, keys, tape)
    return lambda input: _lookup(input, module.weight, module.padding_idx, site)


def _normalised(module: Any, keys: Keys, tape: Tape) -> Callable[..., Any]:
    site, form, eps = _site(module, keys, tape), _norm(module), _epsilon(module)
    assert form is not None
    assert eps is not None
    return lambda x: form(x, module.weight, getattr(module, "bias", None), eps, site)


def _lookup(ids: Tensor, weight: Tensor, padding_idx: int | None, site: Site) -> Tensor:
    # Position ids come as [1, T] and are broadcast over the batch: one row per record keeps records apart.
    rows = ids.expand(site.tape.rows, *ids.shape[1:]) if ids.dim() > 1 and ids.shape[0] == 1 else ids
    return Lookup.apply(rows, weight, padding_idx, site)  # type: ignore[no-any-return]


@dataclass
class _Intercept(TorchFunctionMode):
    """Answers the functions that take the module's weight; everything else runs as it would."""

    module: Any
    site: Site

    def __post_init__(self) -> None:
        super().__init__()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if len(args) > 1 and args[1] is self.module.weight:
            if func is nn.functional.embedding:
                return _lookup(args[0], args[1], self.module.padding_idx, self.site)
            if func is nn.functional.linear:
                bias = args[2] if len(args) > 2 else kwargs.get("bias")
                return Affine.apply(args[0], args[1], bias, self.site)
        return func(*args, **kwargs)


def _intercepted(module: Any, keys: Keys, tape: Tape) -> Callable[..., Any]:
    forward, site = module.forward, _site(module, keys, tape)

    def run(*args: Any, **kwargs: Any) -> Any:
        with _Intercept(module, site):
            return forward(*args, **kwargs)

    return run
