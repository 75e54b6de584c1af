"""An export in another number type: rounded as torch does, passed only beside what was certified, and any edit shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from signed_off import exported, make

from taciturn.cli.main import run as command
from taciturn.errors import DataError
from taciturn.mechanisms.registry import examine, guarantees, verify
from taciturn.privacy.certificates.cast import Cast, Dtype, _rounded, again, pieces, write
from taciturn.privacy.certificates.certificate import Certificate, issue
from taciturn.privacy.certificates.digests import load_json, write_json

TYPES: dict[Dtype, torch.dtype] = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
CODES = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}


def tensors(dtype: torch.dtype) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "wte": torch.randn(40, 8).to(dtype), "bias": torch.tensor([0.0, -0.0, 1e-30, -3.3, 1.00390625]).to(dtype),
        "steps": torch.arange(7), "seen": torch.tensor([True, False, True]), "none": torch.zeros(0, 3).to(dtype),
    }  # fmt: skip


def certified(folder: Path, dtype: torch.dtype = torch.float32) -> Path:
    """A certified run with real weights."""
    make(folder)
    save_file(tensors(dtype), folder / "model" / "model.safetensors", {"format": "pt"})
    config = {"dtype": "float32", "text_config": {"dtype": "float32", "layers": 2}, "vocab_size": 40}
    (folder / "model" / "config.json").write_text(json.dumps(config))
    issue(folder, guarantees).write(folder / "certificate.json")
    return folder


def cast(run: Path, out: Path, dtype: Dtype = "bfloat16") -> Path:
    exported(run, out)
    write(run / "model", out, dtype, Certificate.read(run / "certificate.json").digest)
    return out


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return certified(tmp_path_factory.mktemp("cast") / "run")


@pytest.mark.parametrize("to", TYPES)
@pytest.mark.parametrize("since", TYPES.values())
def test_files_hold_what_torch_makes_of_the_weights(since: torch.dtype, to: Dtype, tmp_path: Path) -> None:
    save_file(tensors(since), tmp_path / "model.safetensors", {"format": "pt"})
    (tmp_path / "cast.safetensors").write_bytes(b"".join(pieces(tmp_path, "model.safetensors", to)))
    found = load_file(tmp_path / "cast.safetensors")
    for name, tensor in tensors(since).items():
        expected = tensor.to(TYPES[to]) if tensor.is_floating_point() else tensor
        assert found[name].dtype == expected.dtype
        assert torch.equal(found[name], expected)
        assert found[name].shape == expected.shape


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_every_number_is_rounded_as_torch_rounds_it(numbers: list[float]) -> None:
    exact = torch.tensor(numbers, dtype=torch.float32)
    piece = exact.numpy().astype("<f4").tobytes()
    found = torch.frombuffer(bytearray(_rounded(piece, "F32", "bfloat16", "w")), dtype=torch.bfloat16)
    assert torch.equal(found, exact.bfloat16())
    if torch.isinf(exact.half()).any():
        with pytest.raises(DataError, match="w: a weight lies outside of float16"):
            _rounded(piece, "F32", "float16", "w")
    else:
        found = torch.frombuffer(bytearray(_rounded(piece, "F32", "float16", "w")), dtype=torch.float16)
        assert torch.equal(found, exact.half())


def test_not_a_number_stays_one() -> None:
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x7FC00000, 0x7F800000, 0xFF800000], np.uint32)
    found = torch.frombuffer(bytearray(_rounded(bits.tobytes(), "F32", "bfloat16", "w")), dtype=torch.bfloat16)
    assert torch.isnan(found[:3]).all()
    assert torch.isinf(found[3:]).all()


def test_it_passes_beside_what_was_certified_and_is_unknown_without(run: Path, tmp_path: Path) -> None:
    out = cast(run, tmp_path / "out")
    assert load_json(out / "config.json")["text_config"] == {"dtype": "bfloat16", "layers": 2}
    path = out / "certificate.json"
    assert verify(path, certified=run) == []
    assert verify(path, certified=exported(run, tmp_path / "plain")) == []
    assert verify(path, without_weights=True) == []
    (mismatch,) = verify(path)
    assert (mismatch.field, mismatch.recomputed) == ("model_files", "those of a cast that nobody made again")
    found = examine(path)
    assert found.cast
    assert found.model_absent
    assert not examine(path, certified=run).model_absent
    assert verify(run / "certificate.json") == []  # a run is what it was


def test_the_command_says_what_it_could_compare(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = cast(run, tmp_path / "out")
    assert command(["verify", str(out)]) == 4
    said = " ".join(capsys.readouterr().out.split())
    assert "– model: absent, its 8 files are those of cast.json, and 2 of them hold bfloat16 by the word of" in said
    assert "not verified: nobody cast the certified weights again (--certified RUN)" in said
    assert command(["verify", str(out), "--certified", str(run)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "✓ model: checked, each of its 8 files, as certified or as its cast to bfloat16" in said
    assert said.endswith("every file of the model is the one certified, or its cast")


def _weights(out: Path, _: Path) -> None:
    changed = load_file(out / "model.safetensors")
    changed["wte"][0, 0] += 1
    save_file(changed, out / "model.safetensors", {"format": "pt"})


def _weights_and_entry(out: Path, run: Path) -> None:
    """Somebody else's weights, with a cast.json that fits them."""
    other = {
        name: tensor + 1 if tensor.is_floating_point() else tensor for name, tensor in tensors(torch.float32).items()
    }
    folder = shutil.copytree(run / "model", out.with_name("other"))
    save_file(other, folder / "model.safetensors", {"format": "pt"})
    write(folder, out, "bfloat16", Certificate.read(run / "certificate.json").digest)


def _tokenizer(out: Path, _: Path) -> None:
    """A file that no cast changes, named in cast.json."""
    (out / "tokenizer.json").write_bytes(b"{}")
    fields = load_json(out / "cast.json")
    fields["model_files"]["tokenizer.json"] = {
        "bytes": 2,
        "sha256": "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
    }
    write_json(out / "cast.json", fields)


def _added(out: Path, _: Path) -> None:
    shutil.copy(out / "model.safetensors", out / "more.safetensors")
    fields = load_json(out / "cast.json")
    fields["model_files"]["more.safetensors"] = fields["model_files"]["model.safetensors"]
    write_json(out / "cast.json", fields)


def _another_certificate(out: Path, _: Path) -> None:
    write_json(out / "cast.json", load_json(out / "cast.json") | {"certificate": "0" * 64})


def _broken(out: Path, _: Path) -> None:
    (out / "cast.json").write_text('{"schema": "taciturn-cast/1"}')


def _link(out: Path, _: Path) -> None:
    (out / "cast.json").rename(out.with_name("elsewhere.json"))
    (out / "cast.json").symlink_to(out.with_name("elsewhere.json"))


def _removed(out: Path, _: Path) -> None:
    (out / "cast.json").unlink()


@pytest.mark.parametrize(
    "edit", [_weights, _weights_and_entry, _tokenizer, _added, _another_certificate, _broken, _link, _removed]
)
def test_every_edit_differs(run: Path, tmp_path: Path, edit: Any) -> None:
    out = cast(run, tmp_path / "out")
    edit(out, run)
    found = examine(out / "certificate.json", certified=run)
    assert found.mismatches
    assert {each.what: each.state for each in found.compared}["model"] == "differs"
    assert (
        verify(out / "certificate.json", without_weights=True) or edit is _weights_and_entry
    )  # which alone fits itself


def test_what_it_is_compared_with_must_be_what_was_certified(run: Path, tmp_path: Path) -> None:
    out = cast(run, tmp_path / "out")
    other = shutil.copytree(run, tmp_path / "other")
    (other / "model" / "tokenizer.json").write_bytes(b"{}")
    assert [each.field for each in verify(out / "certificate.json", certified=other)] == ["certified.tokenizer.json"]
    shutil.rmtree(other / "model")
    assert [each.field for each in verify(out / "certificate.json", certified=other)] == ["certified"]
    assert verify(out / "certificate.json", certified=out)  # a cast proves nothing of itself


def test_a_sharded_model_keeps_its_index_in_step(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    for name, tensor in (("a", torch.randn(4, 4)), ("b", torch.arange(3))):
        save_file({name: tensor}, source / f"model-{name}.safetensors", {"format": "pt"})
    index = {"metadata": {"total_size": 88}, "weight_map": {"a": "model-a.safetensors", "b": "model-b.safetensors"}}
    (source / "model.safetensors.index.json").write_text(json.dumps(index))
    shutil.copytree(source, target)
    write(source, target, "bfloat16", "0" * 64)
    assert load_json(target / "model.safetensors.index.json") == index | {"metadata": {"total_size": 32 + 24}}
    assert list(again(source, Cast.read(target))) == []


@pytest.mark.parametrize(
    "content", [b"", b"\x02\0\0\0\0\0\0\0[]", b"\xff" * 16, b'\x08\0\0\0\0\0\0\0{"a": 1}', b"\x40\0\0\0\0\0\0\0{}"]
)
def test_what_is_no_safetensors_file_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(DataError, match=r"model\.safetensors"):
        list(pieces(tmp_path, "model.safetensors", "bfloat16"))
