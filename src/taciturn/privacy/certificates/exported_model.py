"""Every file of an exported model, by path, size and digest; and the comparison with what lies beside a certificate.

    run folder    certificate.json  plan.json …  model/**          the model is all of model/
    export        certificate.json  plan.json …  README.md  **     the model is all but what BESIDE lists
    … --dtype     the same, with cast.json                         as above; some files are of another type (cast.py)

The last two are what `taciturn export` writes. There every file that is neither certified nor in BESIDE is a difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from taciturn.errors import DataError
from taciturn.privacy.certificates.digests import file_digest, opened, tree

EVIDENCE, LEDGER, CERTIFICATE, MODEL = "evidence.json", "ledger.jsonl", "certificate.json", "model"
CAST = "cast.json"
"""Which files of an export hold the certified weights in another number type (cast.py), where it has such."""
VALUES = "values.json"
"""The table of common values that a run released (taciturn/training/values/table.py), where it did."""
COPIED = (CERTIFICATE, f"{CERTIFICATE}.sig", "plan.json", EVIDENCE, LEDGER, VALUES)
"""What an export copies from the run's folder."""
BESIDE = frozenset({*COPIED, CAST, "README.md", "LICENSE", ".gitattributes"})
"""What may lie in the top folder of a model and is no part of it: the certificate and its files, prose, and what a hub
adds. No loader reads these."""
LOADED = (
    ".safetensors", ".bin", ".pt", ".pth", ".ckpt", ".pkl", ".gguf", ".h5", ".msgpack", ".onnx", ".npz", ".model",
)  # fmt: skip
"""Endings of files that hold weights (or vocabularies) somewhere."""


class ModelFile(BaseModel):
    """One file of a model."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    bytes: int = Field(ge=0, le=2**53)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


def model_files(folder: Path) -> dict[str, dict[str, int | str]]:
    """Every file of the model in the run folder ``folder``; empty before there is one. DataError for links and pipes."""
    root = folder / MODEL
    if not os.path.lexists(root):
        return {}
    return {name: _described(root / name) for name in _of_model(root)}


def differences(folder: Path, certified: Mapping[str, ModelFile]) -> list[tuple[str, str, str]] | None:
    """(path, certified, found) of each file that differs, is missing or was added; None if no model is there at all."""
    root = folder / MODEL
    if os.path.lexists(root):
        stray = [(name, "no file of a model beside model/", "there is one") for name in _loadable(folder, certified)]
    else:
        root, stray = folder, []
        if not _loadable(folder, certified):
            return None
    try:
        found = set(_of_model(root))
    except (DataError, OSError) as error:
        return [*stray, (root.name, "files and folders", str(error))]
    stray += [(name, "no such file", "there is one") for name in sorted(found - certified.keys())]
    stray += [(name, "a file", "none") for name in sorted(certified.keys() - found)]
    return stray + list(_changed(root, {name: certified[name] for name in sorted(found & certified.keys())}))


def _changed(root: Path, files: Mapping[str, ModelFile]) -> Iterator[tuple[str, str, str]]:
    for name, known in files.items():
        try:
            with opened(root / name) as file:
                size = os.fstat(file.fileno()).st_size
            if size != known.bytes:  # before a digest: a file can be larger than anybody wants to read
                yield name, f"{known.bytes} bytes", f"{size} bytes"
            elif (digest := file_digest(root / name)) != known.sha256:
                yield name, known.sha256, digest
        except DataError as error:
            yield name, known.sha256, str(error)


def _of_model(root: Path) -> list[str]:
    return sorted(name for name in tree(root) if name not in BESIDE)


def _loadable(folder: Path, certified: Mapping[str, ModelFile]) -> list[str]:
    """What in ``folder`` itself, sub-folders aside, is or could be taken for a file of the model."""
    tops = {name.partition("/")[0] for name in certified}
    return sorted(
        name for name in os.listdir(folder) if name not in BESIDE and (name in tops or name.lower().endswith(LOADED))
    )


def _described(path: Path) -> dict[str, int | str]:
    return {"bytes": path.stat().st_size, "sha256": file_digest(path)}
