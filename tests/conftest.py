"""What every test may ask for."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A machine with other work on it makes any example late; how long a whole test may take is pytest's to say. The same
# examples each time, so that a change is judged by what it does; `make explore` looks for new ones.
settings.register_profile("taciturn", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("taciturn")

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite pinned help texts instead of comparing")


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real corpora, small public models and reference values beside the checkout; absent in a plain clone."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared folder beside this checkout: real corpora and reference values are not at hand")
    return SHARED
