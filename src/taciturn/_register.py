"""Make `import taciturn` enough for an exported LSTM or AWD-LSTM to load with the Auto classes, without importing torch.

When transformers is already imported, our models register at once; else the registration waits until transformers' auto
classes are imported, which a finder on ``sys.meta_path`` sees.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

AUTO = "transformers.models.auto.modeling_auto"


def register_lstm() -> None:
    """Register now, or as soon as the auto classes exist."""
    if AUTO in sys.modules:
        import taciturn.models.registered  # noqa: F401 — importing it registers
    elif not any(isinstance(finder, _AfterAuto) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AfterAuto())


class _AfterAuto(MetaPathFinder):
    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name != AUTO:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Registering(spec.loader)
        return spec


class _Registering(Loader):
    """Executes the module as its own loader would, then registers."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        register_lstm()
