"""taciturn check: can this model be trained with per-record gradients, and what will a step cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.options import Json


def check(
    model: Annotated[str, Parameter(help="lstm, awd-lstm, a config.json, a folder, a .gguf file or a hub name")],
    *,
    task: Literal["causal", "classify", "masked"] = "causal",
    lora: Annotated[int | None, Parameter(help="rank of an adapter on all linear layers; the rest is frozen")] = None,
    tokens: Annotated[int, Parameter(help="padded tokens in one pass")] = 8192,
    max_length: Annotated[int | None, Parameter(help="tokens of the longest record; at most 512 if not given")] = None,
    optimiser: Literal["sgd", "momentum", "adamw"] = "adamw",
    gradient_checkpointing: Annotated[bool, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Say which layers have a per-record rule, compare two random records with one-by-one gradients, and count memory.

    Nothing is trained. Exit code 2 when something cannot be trained, with its name. Memory is counted in float32, for
    tensors the pass itself allocates.

    Example: `taciturn check gpt2 --tokens 8192 --max-length 256`
    """
    import torch

    from taciturn.cli.show import as_json
    from taciturn.models.hf import checkpoint_activations
    from taciturn.models.lora import Lora, add
    from taciturn.models.source import is_random, published_model, random_model
    from taciturn.training.check import check as examine

    torch.manual_seed(0)
    labels = ("a", "b") if task == "classify" else ()
    loaded, new = (
        (random_model(model, None, task, labels), [])
        if is_random(model)
        else published_model(model, None, task, labels)
    )
    if lora is not None:
        loaded = add(loaded, Lora(r=lora, alpha=2 * lora), task, new=new)
    if gradient_checkpointing:
        checkpoint_activations(loaded)
    found = examine(loaded, classify=task == "classify", tokens=tokens, max_length=max_length, optimiser=optimiser)
    if json:
        as_json(found.to_json())
    else:
        show(found)
    return 2 if found.problems else 0


def show(found: Any) -> None:
    """Print what was found."""
    from taciturn.cli.show import out, table

    layers = ", ".join(f"{n} {name}" for name, n in found.layers.items())
    out.print(f"{found.model}: {found.trainable:,} of {found.parameters:,} parameters are trained, in {layers}")
    if found.generic:
        some = ", ".join(found.generic[:4]) + (", …" if len(found.generic) > 4 else "")
        out.print(f"run once more, one record at a time, for want of a rule: {some}", soft_wrap=True)
    for problem in found.problems:
        out.print(f"[red]{problem}[/red]", soft_wrap=True)
    if found.difference is not None:
        out.print(
            f"per-record gradients differ from one record at a time by {found.difference:.1e} at most ({found.worst}), "
            f"losses with padding by {found.padding:.1e}",
            soft_wrap=True,
        )
    memory = found.memory
    if memory is None:
        return
    parts = (
        ("weights", memory.weights),
        ("clipped sums", memory.sums),
        ("optimiser", memory.optimiser),
        (f"a pass of {memory.rows} × {memory.width} tokens", memory.peak),
        ("  of it activations", memory.activations),
        ("together", memory.total),
    )
    out.print(table("memory of a step", ("", "MiB"), [(name, f"{size / 2**20:,.1f}") for name, size in parts]))
