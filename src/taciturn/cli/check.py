"""taciturn check: can this model be trained with per-record gradients, and what will a step cost."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.options import Json

Precision = Literal["float32", "bf16", "fp16"]


def check(
    model: Annotated[str, Parameter(help="lstm, awd-lstm, a config.json, a folder, a .gguf file or a hub name")],
    *,
    task: Literal["causal", "classify", "masked"] = "causal",
    lora: Annotated[int | None, Parameter(help="rank of an adapter on all linear layers; the rest is frozen")] = None,
    tokens: Annotated[int, Parameter(help="padded tokens in one pass")] = 8192,
    max_length: Annotated[int | None, Parameter(help="tokens of the longest record; at most 512 if not given")] = None,
    optimiser: Literal["sgd", "momentum", "adamw"] = "adamw",
    gradient_checkpointing: Annotated[bool, Parameter(help="less memory, more time", negative="")] = False,
    memory: Annotated[
        float | None,
        Parameter(group="A device without weights", help="GB of a device: what fits there, from shapes alone"),
    ] = None,
    gpus: Annotated[
        int, Parameter(group="A device without weights", help="with --memory: devices that the model is cut over")
    ] = 1,
    dtype: Annotated[
        Precision, Parameter(group="A device without weights", help="with --memory: of matrix products")
    ] = "bf16",
    base_bits: Annotated[
        Literal[4] | None,
        Parameter(group="A device without weights", help="with --lora: keep the frozen base in 4 bits"),
    ] = None,
    json: Json = False,
) -> int:
    """Say which layers have a per-record rule, compare two random records with one-by-one gradients, and count memory.

    Nothing is trained. Exit code 2 when something cannot be trained, with its name. Memory is counted in float32, for
    tensors the pass itself allocates. With --memory no weights are needed: what fits, and code 2 if nothing does.

    Example: `taciturn check gpt2 --tokens 8192 --max-length 256`
    """
    from taciturn.cli.show import as_json, step

    with step("loading torch"):
        import torch

    if memory is not None:
        return fit(
            model, task, lora, base_bits, max_length, optimiser, gradient_checkpointing, memory, gpus, dtype, json
        )
    from taciturn.models.four_bit import quantize_frozen
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
    if base_bits == 4:
        quantize_frozen(loaded)
    if gradient_checkpointing:
        checkpoint_activations(loaded)
    with step("comparing gradients of made-up records"):
        found = examine(loaded, classify=task == "classify", tokens=tokens, max_length=max_length, optimiser=optimiser)
    if json:
        as_json(found.to_json())
    else:
        show(found)
    return 2 if found.problems else 0


def fit(
    model: str,
    task: Any,
    lora: int | None,
    base_bits: int | None,
    max_length: int | None,
    optimiser: Any,
    gradient_checkpointing: bool,
    memory: float,
    gpus: int,
    dtype: Precision,
    json: bool,
) -> int:
    """What fits on devices, printed."""
    from dataclasses import asdict

    from taciturn.cli.show import as_json, out, table
    from taciturn.models.four_bit import quantize_frozen
    from taciturn.models.half import halve_frozen
    from taciturn.models.hf import checkpoint_activations, context_length
    from taciturn.models.lora import Lora, add
    from taciturn.models.source import shapes
    from taciturn.training.check import LONGEST
    from taciturn.training.fits import SPARE, fits

    loaded = shapes(model, task, ("a", "b") if task == "classify" else ())
    width = min(n for n in (max_length or LONGEST, context_length(loaded)) if n)
    if lora is not None:
        loaded = add(loaded, Lora(r=lora, alpha=2 * lora), task)
    if base_bits == 4:
        quantize_frozen(loaded)
    if dtype == "bf16":
        halve_frozen(loaded)
    if gradient_checkpointing:
        checkpoint_activations(loaded)
    found = fits(
        loaded, memory=round(memory * 1e9), width=width, gpus=gpus, dtype=dtype, optimiser=optimiser,
        classify=task == "classify",
    )  # fmt: skip
    if json:
        as_json({**asdict(found), "rows": found.rows, "token_budget": found.token_budget})
        return 0 if found.rows else 2
    parts = (
        ("weights", found.weights),
        ("clipped sums", found.sums),
        ("optimiser", found.optimiser),
        *([("blocks put together", found.whole)] if gpus > 1 else []),
        (f"a pass of one record of {width} tokens", found.first),
        ("  each further one", found.each),
    )
    what = f"each of {gpus} devices" if gpus > 1 else "a device"
    out.print(table(f"a step in {dtype}, {what}", ("", "GB"), [(n, f"{b / 1e9:,.2f}") for n, b in parts]))
    room = f"{memory:g} GB, of which {SPARE:.0%} are planned with".replace("%", " %")
    if found.rows:
        said = f"fits {room}: up to {found.rows} records in a pass, train.token_budget = {found.token_budget}"
    else:
        short = (found.fixed + found.first - SPARE * found.memory) / 1e9
        ways = ["--gradient-checkpointing"] * (not gradient_checkpointing) + ["--lora 16"] * (lora is None)
        said = f"does not fit {room}: {short:,.1f} GB too much; try {', '.join([*ways, '--gpus', '--max-length'])}"
    out.print(said)
    return 0 if found.rows else 2


def show(found: Any) -> None:
    """Print what was found."""
    from taciturn.cli.show import out, table

    layers = ", ".join(f"{n} {name}" for name, n in found.layers.items())
    out.print(f"{found.model}: {found.trainable:,} of {found.parameters:,} parameters are trained, in {layers}")
    if found.generic:
        some = ", ".join(found.generic[:4]) + (", …" if len(found.generic) > 4 else "")
        out.print(f"run once more, one record at a time, for want of a rule: {some}")
    for problem in found.problems:
        out.print(problem, style="red")
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
