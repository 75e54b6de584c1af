"""A tiny certified run, once."""

from __future__ import annotations

import pytest

from synthesis_runs import trained
from taciturn.api import TrainedRun


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> TrainedRun:
    return trained(tmp_path_factory.mktemp("synthesis"))
