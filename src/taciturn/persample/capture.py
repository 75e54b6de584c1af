"""How forwards are replaced *on the instance* while a pass is recorded: by a layer's rule, or by the generic one.

The model's class, its weights, its hooks and its `state_dict` stay as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.persample.generic import replayed
from taciturn.persample.rules import SUPPORTED, rule_of
from taciturn.persample.tape import Tape, Use, layer_of

WHOLE = ("DebertaEncoder", "DebertaV2Encoder")
"""Modules that take a layer's weight behind its back, as an input that all records share: the generic rule is for all of
them, not for what is in them."""

PARTIAL = ("DoraLinearLayer", "DoraEmbeddingLayer")
"""Modules of peft whose forward is handed other layers: the generic rule is for the module that they are a part of."""


@contextmanager
def captured(
    model: nn.Module,
    rows: int,
    units: int | None = None,
    *,
    norms_only: bool = False,
    summed: Callable[[Use], None] | None = None,
) -> Iterator[Tape]:
    """Record, in the yielded tape, what each trainable layer sees in one pass over a batch of ``rows`` rows.

    units: how many units (records, users) they form, as consecutive blocks of equal size; one a row by default.
    norms_only, summed: of a pass that is the first or the second of two (twice.py). What a decoder keeps for generation is
    not kept. Raises UsageError naming every trainable parameter that no module's forward can be replaced for.
    """
    check_supported(model)
    names = trainable_names(model)
    kept = frozenset(_shared(model, names)) if norms_only else None
    tape = Tape(rows, units or rows, tuple(dict.fromkeys(map(layer_of, names.values()))), kept=kept, summed=summed)
    whole = generic_modules(model)
    inside = {m for root in whole.values() for m in root.modules()}
    swapped: list[tuple[nn.Module, str, Any]] = []
    config = getattr(model, "config", None)
    caching = getattr(config, "use_cache", None)

    def swap(module: Any, forward: Any, name: str = "forward") -> None:
        swapped.append((module, name, vars(module).get(name)))
        setattr(module, name, forward)

    try:
        if caching:
            config.use_cache = False  # type: ignore[union-attr]
        for module in model.modules():
            keys = {n: names.get(p) for n, p in module._parameters.items() if p is not None}
            rule = rule_of(module) if any(keys.values()) and module not in inside else None
            if rule is not None:
                swap(module, rule(module, keys, tape))
        for module in whole.values():
            trained = {n: names[p] for n, p in module.named_parameters() if p in names}
            swap(module, replayed(module, trained, tape))
        if hasattr(model, "get_prompt"):
            swap(model, _prompts(model), "get_prompt")
        yield tape
    finally:
        if caching:
            config.use_cache = caching  # type: ignore[union-attr]
        for module, name, before in swapped:
            if before is None:
                delattr(module, name)
            else:
                setattr(module, name, before)


def trainable_names(model: nn.Module) -> dict[nn.Parameter, str]:
    """Every trainable parameter and its name; a shared one once, under its first name."""
    return {p: name for name, p in model.named_parameters() if p.requires_grad}


def _shared(model: nn.Module, names: dict[nn.Parameter, str]) -> Iterator[str]:
    """The parameters that several layers have in common: their uses are needed together."""
    owners = Counter(p for module in model.modules() for p in module._parameters.values() if p is not None)
    yield from (name for p, name in names.items() if owners[p] > 1)


def generic_modules(model: nn.Module) -> dict[str, nn.Module]:
    """The modules that the generic rule is for, by name: innermost ones that are called and hold what has no rule."""
    named = dict(model.named_modules())
    covered = {p for m in named.values() if rule_of(m) for p in m.parameters(recurse=False)}
    found: dict[str, nn.Module] = {}
    for name, module in named.items():
        own = [p for p in module.parameters(recurse=False) if p.requires_grad and p not in covered]
        entire = type(module).__name__ in WHOLE and any(p.requires_grad for p in module.parameters())
        if own or entire:
            while name and not _is_called(named[name]):
                name = layer_of(name)
            found[name] = named[name]
    return {n: m for n, m in found.items() if not any(_within(n, other) for other in found if other != n)}


def unsupported(model: nn.Module) -> list[str]:
    """Trainable parameters that nothing can be recorded of, each as "name (module type)"."""
    return [
        f"{f'{name}.' if name else ''}{p_name} ({type(owner).__name__})"
        for root, module in generic_modules(model).items()
        if not _is_called(module)
        for name, owner in module.named_modules(prefix=root)
        for p_name, p in owner.named_parameters(recurse=False)
        if p.requires_grad and not rule_of(owner)
    ]


def check_supported(model: nn.Module) -> None:
    """Raise UsageError, with its name and the type of its module, when nothing can be recorded of a trainable parameter."""
    unknown = unsupported(model)
    if unknown:
        raise UsageError(
            f"no per-record gradient rule for: {', '.join(unknown[:8])}{', …' if len(unknown) > 8 else ''}; freeze "
            f"it (requires_grad_(False)) or choose another model. {SUPPORTED}"
        )


def _prompts(model: Any) -> Callable[..., Any]:
    """peft looks a trained prompt up once and repeats it for the batch. The rule of a layer makes one for each record of
    that, and the first of the repetitions has them in order."""
    get_prompt = model.get_prompt

    def run(batch_size: int, *args: Any, **kwargs: Any) -> Any:
        found = get_prompt(batch_size, *args, **kwargs)
        return found[:batch_size] if isinstance(found, Tensor) else found

    return run


def _is_called(module: nn.Module) -> bool:
    """Whether it has a forward of its own; lists and dictionaries of modules or parameters have none."""
    forward = type(module).forward is not nn.Module.forward or "forward" in vars(module)
    return forward and type(module).__name__ not in PARTIAL


def _within(name: str, other: str) -> bool:
    return other == "" or name.startswith(f"{other}.")
