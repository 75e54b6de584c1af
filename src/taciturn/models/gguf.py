"""GGUF files as a source of weights. They are quantised to store, and float32 once loaded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from taciturn.errors import MissingExtra, UsageError
from taciturn.models import hub


def locate(spec: str) -> tuple[str, dict[str, str]]:
    """What ``from_pretrained`` takes for a model: a folder or hub name, and ``gguf_file`` where it is such a file.

    spec: a .gguf file, a folder whose only model is one .gguf file, or anything else, which is returned as it is; but for
    a name of a hub that does not answer the folder where it was downloaded to. Raises MissingExtra without the packages that
    read the format, UsageError when a folder holds several such files, and for a model that is neither here nor in reach.

    >>> locate("./gpt2")
    ('./gpt2', {})
    """
    path = Path(spec)
    if path.suffix != ".gguf":
        files = sorted(path.glob("*.gguf")) if path.is_dir() and not (path / "config.json").exists() else []
        if not files:
            return hub.downloaded(spec) if hub.is_name(spec) and not hub.reached() else spec, {}
        if len(files) > 1:
            raise UsageError(f"{spec} holds {len(files)} GGUF files; name one of them, e.g. {files[0]}")
        path = files[0]
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    for package in ("gguf", "accelerate"):
        if find_spec(package) is None:
            raise MissingExtra(package, "gguf")
    return str(path.parent), {"gguf_file": path.name}


def is_file(spec: str) -> bool:
    """Whether a model is such a file, or a folder with one."""
    return bool(locate(spec)[1])


@contextmanager
def without_bar() -> Iterator[None]:
    """Keep the bar that transformers draws while it reads a file off the screen; pass on what else is said."""
    said = StringIO()
    try:
        with redirect_stderr(said):
            yield
    finally:
        sys.stderr.writelines(
            f"{line}\n" for line in said.getvalue().splitlines() if line and "\r" not in line and "%|" not in line
        )


def dequantized(model: Any, spec: str) -> Any:
    """The same weights in a model that knows nothing of the file they came from, so that it can be saved.

    transformers refuses to save a model whose configuration still names a quantisation, and takes the model's name from
    the file's metadata; here it is ``spec``, so that an adapter finds its base again.
    """
    config = model.config
    for name in ("quantization_config", "_model_name_or_path"):
        vars(config).pop(name, None)
    fresh = type(model)(config)
    fresh.load_state_dict(model.state_dict())
    fresh.tie_weights()
    fresh.name_or_path = config._name_or_path = spec
    fresh.generation_config = model.generation_config
    return fresh


METADATA = {
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "rope.freq_base": "rope_theta",
}
"""What a file says of its model, and the field of a configuration that is about the same."""


def check_read(model: Any, spec: str) -> None:
    """Raise UsageError where a model that was made of a file is not the one that the file says it holds: it would train and
    give numbers, and wrong ones. Compared are the fields of :data:`METADATA` that both have, and how many weights there are.
    """
    import gguf

    folder, source = locate(spec)
    file = gguf.GGUFReader(Path(folder) / source["gguf_file"])
    kind = file.fields["general.architecture"].contents()
    wrong = []
    for key, name in METADATA.items():
        field, found = file.fields.get(f"{kind}.{key}"), _of(model.config, name)
        if field is None or found is None or isinstance(said := field.contents(), list):
            continue
        if abs(said - found) > 1e-6 * abs(said):  # float32 there
            wrong.append(f"{kind}.{key} is {said:g} there and {found:g} here")
    held = sum(int(tensor.n_elements) for tensor in file.tensors if not tensor.name.startswith("rope_"))
    if held != (here := sum(p.numel() for p in model.parameters())):
        wrong.append(f"it holds {held:,} weights and the model has {here:,}")
    if wrong:
        raise UsageError(
            f"{Path(spec).name} was read into another model than it holds: {'; '.join(wrong)}. Another release of "
            "transformers may read it right; else take the model in its own format"
        )


def _of(config: Any, name: str) -> float | None:
    """A number of a configuration, wherever its class keeps it."""
    found = getattr(config, name, None)
    if found is None and name == "rope_theta":
        found = (getattr(config, "rope_parameters", None) or {}).get("rope_theta")
    return found if isinstance(found, int | float) else None


def architectures() -> list[str]:
    """The architectures whose files can be read."""
    from transformers.modeling_gguf_pytorch_utils import GGUF_SUPPORTED_ARCHITECTURES

    return sorted(set(GGUF_SUPPORTED_ARCHITECTURES) - {"general", "tokenizer"})  # which are parts of every file
