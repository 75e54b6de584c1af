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


def locate(spec: str) -> tuple[str, dict[str, str]]:
    """What ``from_pretrained`` takes for a model: a folder or hub name, and ``gguf_file`` where it is such a file.

    spec: a .gguf file, a folder whose only model is one .gguf file, or anything else, which is returned as it is. Raises
    MissingExtra without the packages that read the format, UsageError when a folder holds several such files.

    >>> locate("gpt2")
    ('gpt2', {})
    """
    path = Path(spec)
    if path.suffix != ".gguf":
        files = sorted(path.glob("*.gguf")) if path.is_dir() and not (path / "config.json").exists() else []
        if not files:
            return spec, {}
        if len(files) > 1:
            raise UsageError(f"{spec} holds {len(files)} GGUF files; name one of them, e.g. {files[0]}")
        path = files[0]
    if not path.is_file():
        raise UsageError(f"there is no file {path}")
    for package in ("gguf", "accelerate"):
        if find_spec(package) is None:
            raise MissingExtra(package, "gguf")
    return str(path.parent), {"gguf_file": path.name}


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
