"""The notebooks run from top to bottom, in a process of their own; two passes over the data are enough for that."""

from __future__ import annotations

import os
import re
from pathlib import Path

import nbformat
import pytest
from blocks import ROOT
from nbclient import NotebookClient

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_there_are_two() -> None:
    assert len(NOTEBOOKS) == 2


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the kernel's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_runs(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        cell.source = re.sub(r'(?<="epochs": )\d+', "2", cell.source)
    client = NotebookClient(notebook, timeout=None, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env={**os.environ, "OMP_NUM_THREADS": "1"})
    printed = [out for cell in notebook.cells for out in cell.get("outputs", ())]
    assert any(out.output_type == "display_data" and "image/png" in out.data for out in printed), "no picture was drawn"
