"""Certified weights in another number type: written, named by digest, and made again by whoever doubts it. Needs no torch.

    run/ (certified)     model.safetensors  config.json  …
    export --dtype bf16  model.safetensors  config.json  …  cast.json: the type, the certificate, and these files' digests

A cast is a function of the certified files alone: post-processing, so every claim of the certificate stands (Dwork and Roth
2014, Prop. 2.1). The function, file by file in the top folder of the model:

    *.safetensors              each tensor of F32, F16 or BF16 rounded to the nearest, ties to even; others as they are
    config.json                dtype, wherever it is named
    *.safetensors.index.json   total_size

Whoever has the certified files computes it again and compares (:func:`again`). Without them nothing is known but that the
files here are those that cast.json names.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from taciturn.errors import DataError
from taciturn.privacy.certificates import exported_model
from taciturn.privacy.certificates.digests import load_json, opened, write_json
from taciturn.privacy.certificates.exported_model import CAST, MODEL, ModelFile

Dtype = Literal["float32", "bfloat16", "float16"]
SHORT: dict[str, Dtype] = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
"""The names of a command line."""
_CODES: dict[Dtype, str] = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}
_SIZES = {"F32": 4, "BF16": 2, "F16": 2}
_WEIGHTS, _INDEX, _CONFIG = ".safetensors", ".safetensors.index.json", "config.json"
HEADER_BYTES = 100_000_000
"""Of a .safetensors file, at most: its own format's limit."""
_CHUNK = 1 << 22


class Cast(BaseModel):
    """What ``cast.json`` holds. ``certificate``: the digest that it has of itself. ``model_files``: of every file that the
    cast changed, by its path."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, strict=True)

    format: Literal["taciturn-cast/1"] = Field("taciturn-cast/1", alias="schema")
    certificate: str = Field(pattern="^[0-9a-f]{64}$")
    dtype: Dtype
    model_files: dict[str, ModelFile]

    @staticmethod
    def read(folder: Path) -> Cast:
        """That of an exported folder. Raises DataError."""
        try:
            return Cast.model_validate(load_json(folder / CAST))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            raise DataError(
                f"{CAST}: {'.'.join(str(part)[:64] for part in first['loc'])}: {first['msg'][:200]}"
            ) from error


def changes(name: str) -> bool:
    """Whether a cast changes the file ``name`` of a model: weights and what describes them, in the top folder alone."""
    return "/" not in name and (name == _CONFIG or name.endswith((_WEIGHTS, _INDEX)))


def write(source: Path, target: Path, dtype: Dtype, certificate: str) -> None:
    """Write the cast of the model in ``source`` over its copy in ``target``, with ``cast.json``.

    Raises DataError for a weight that float16 cannot hold, and for a file that is not as its format wants it.
    """
    made = {}
    for name in sorted(path.name for path in source.iterdir() if path.is_file() and changes(path.name)):
        digest, size = hashlib.sha256(), 0
        with open(target / name, "wb") as file:
            for piece in pieces(source, name, dtype):
                file.write(piece)
                digest.update(piece)
                size += len(piece)
        made[name] = ModelFile(bytes=size, sha256=digest.hexdigest())
    entry = Cast(certificate=certificate, dtype=dtype, model_files=made)
    write_json(target / CAST, entry.model_dump(by_alias=True))


def differences(
    folder: Path, cast: Cast, certificate: str, known: Mapping[str, ModelFile]
) -> Iterator[tuple[str, str, str]]:
    """(field, certified, found) of what is wrong with a cast export in itself. certificate: its digest; known: the files."""
    if cast.certificate != certificate:
        yield f"{CAST}.certificate", certificate, cast.certificate
    for name in sorted(cast.model_files):
        if name not in known or not changes(name):
            yield f"{CAST}.model_files", "certified weights, and what describes them", name[:200]
    found = exported_model.differences(folder, {**known, **cast.model_files})
    if found is None:
        yield "model_files", "the files of a model", "none here"
    yield from ((f"model_files.{name}", was, now) for name, was, now in found or [])


def made_again(certified: Path, cast: Cast, known: Mapping[str, ModelFile]) -> Iterator[tuple[str, str, str]]:
    """(field, certified, found) of what is wrong with a cast beside the certified files in a run's folder or an export."""
    found = exported_model.differences(certified, known)
    if found is None:
        yield "certified", "the certified files of the model", f"none in {certified.name}"
    elif found:
        yield from ((f"certified.{name}", was, now) for name, was, now in found)
    else:
        source = certified / MODEL if (certified / MODEL).is_dir() else certified
        yield from ((f"{CAST}.model_files.{name}", was, now) for name, was, now in again(source, cast))


def again(source: Path, cast: Cast) -> Iterator[tuple[str, str, str]]:
    """(path, digest in cast.json, digest of the cast of the file in ``source``) where the two differ. ``source``: the
    certified model, already compared with the certificate."""
    expected = {name for name in os.listdir(source) if changes(name)}
    for name in sorted(expected ^ cast.model_files.keys()):
        yield name, "a file" if name in cast.model_files else "no such file", "a file" if name in expected else "none"
    for name in sorted(expected & cast.model_files.keys()):
        digest = hashlib.sha256()
        try:
            for piece in pieces(source, name, cast.dtype):
                digest.update(piece)
        except DataError as error:
            yield name, cast.model_files[name].sha256, str(error)
            continue
        if digest.hexdigest() != cast.model_files[name].sha256:
            yield name, cast.model_files[name].sha256, digest.hexdigest()


def pieces(folder: Path, name: str, dtype: Dtype) -> Iterator[bytes]:
    """The bytes of the cast of one file of the model in ``folder``."""
    if name.endswith(_WEIGHTS):
        yield from _weights(folder / name, dtype)
        return
    fields = load_json(folder / name)
    if name == _CONFIG:
        fields = _renamed(fields, dtype) | {"dtype": dtype}
    elif "total_size" in fields.get("metadata", {}):
        files = {str(each) for each in fields.get("weight_map", {}).values()}
        fields["metadata"]["total_size"] = sum(_layout(folder / each, dtype)[2] for each in files if changes(each))
    yield (json.dumps(fields, indent=2, sort_keys=True) + "\n").encode()


def _renamed(fields: Mapping[str, Any], dtype: Dtype) -> dict[str, Any]:
    """A configuration with every dtype it names, of itself or of a part."""
    return {
        key: dtype if key == "dtype" else _renamed(value, dtype) if isinstance(value, Mapping) else value
        for key, value in fields.items()
    }


def _layout(path: Path, dtype: Dtype) -> tuple[dict[str, Any], list[tuple[str, str, int, int, int]], int]:
    """(header of the cast, [name, type in the file, type code, begin, end] in the order of the file, bytes of the data)."""
    with opened(path) as file:
        length = int.from_bytes(file.read(8), "little")
        whole = os.fstat(file.fileno()).st_size
        if not 2 <= length <= min(HEADER_BYTES, whole - 8):
            raise DataError(f"{path.name}: not a .safetensors file")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise DataError(f"{path.name}: its header is not JSON") from error
    if not isinstance(header, dict):
        raise DataError(f"{path.name}: its header is not a JSON object")
    code = _CODES[dtype]
    tensors = []
    at, size = 0, 0
    fresh: dict[str, Any] = {"__metadata__": header.pop("__metadata__")} if "__metadata__" in header else {}
    try:
        order = sorted(header.items(), key=lambda item: (item[1]["data_offsets"], item[0]))
        for name, each in order:
            begin, end = each["data_offsets"]
            kind = str(each["dtype"])
            if (
                begin != at
                or end < begin
                or end > whole - 8 - length
                or (kind in _SIZES and (end - begin) % _SIZES[kind])
            ):
                raise ValueError
            at = end
            width = (end - begin) // _SIZES[kind] * _SIZES[code] if kind in _SIZES else end - begin
            offsets = [size, size + width]
            fresh[name] = {"dtype": code if kind in _SIZES else kind, "shape": each["shape"], "data_offsets": offsets}
            tensors.append((name, kind, 8 + length, begin, end))
            size += width
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path.name}: its tensors do not lie end to end as its header says") from error
    return fresh, tensors, size


def _weights(path: Path, dtype: Dtype) -> Iterator[bytes]:
    header, tensors, _ = _layout(path, dtype)
    said = json.dumps(header, separators=(",", ":")).encode()
    said += b" " * (-len(said) % 8)
    yield len(said).to_bytes(8, "little") + said
    with opened(path) as file:
        for name, kind, start, begin, end in tensors:
            file.seek(start + begin)
            left = end - begin
            while left:
                piece = file.read(min(_CHUNK, left))
                if not piece:
                    raise DataError(f"{path.name}: ends within its tensors")
                left -= len(piece)
                yield _rounded(piece, kind, dtype, name) if kind in _SIZES else piece


def _rounded(piece: bytes, kind: str, dtype: Dtype, name: str) -> bytes:
    """Numbers of one type as another: to the nearest, ties to even (IEEE 754, 4.3.1)."""
    if kind == _CODES[dtype]:
        return piece
    exact: NDArray[np.float32]
    if kind == "BF16":
        exact = (np.frombuffer(piece, "<u2").astype(np.uint32) << np.uint32(16)).view(np.float32)
    else:
        exact = np.frombuffer(piece, "<f4" if kind == "F32" else "<f2").astype(np.float32)
    if dtype == "float32":
        return exact.astype("<f4").tobytes()
    if dtype == "bfloat16":
        return _bfloat16(exact).astype("<u2").tobytes()
    with np.errstate(over="ignore"):
        narrow = exact.astype("<f2")
    if bool((np.isinf(narrow) & np.isfinite(exact)).any()):
        raise DataError(f"{name}: a weight lies outside of float16, which ends at 65,504: take bf16")
    return narrow.tobytes()


def _bfloat16(exact: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each number's bits after adding just under half of what the lower holds, or half where it is odd."""
    bits = exact.view(np.uint32)
    up = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (np.where(np.isnan(exact), bits | np.uint32(0x400000), up) >> np.uint32(16)).astype(np.uint16)
