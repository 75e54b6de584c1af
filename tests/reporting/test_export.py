"""An exported folder as a hub gets it: whole, of one mode, and silent about the machine it comes from."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, pipeline

import taciturn as tt
from taciturn.errors import UsageError
from taciturn.models.generation import generate
from taciturn.models.hf import load_exported, load_named
from taciturn.models.tokenizers import bpe_tokenizer
from taciturn.reporting.hub import Hub

TEXTS = ["thank you for the parcel"] * 20 + [f"call me at (555) 010-7{i:03}" for i in range(30)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A run with an adapter on a model in a folder of this machine."""
    folder = tmp_path_factory.mktemp("private-place")
    torch.manual_seed(0)
    tokenizer = bpe_tokenizer(TEXTS[:20], 300)
    base = GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), n_positions=32, n_embd=16, n_layer=1, n_head=2))
    base.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    screened = tt.screen(tt.read(TEXTS), tt.policy("pii"), tt.policy("conservative"), out=folder / "screened")
    model = {"name": str(folder / "base"), "tokenizer": str(folder / "base"), "lora": {"r": 2, "targets": ["c_attn"]}}
    small = {"public": {"epochs": 1}, "private": {"steps": 2, "batch": 5, "noise_multiplier": 1.0}}
    planned = tt.plan("crt", screened, model, tokenizer=model["name"], delta=1e-3, allow=["cannot-learn"], **small)
    made = tt.train(planned, folder / "run", progress=False)
    made.certify()
    return made


def test_no_file_says_where_it_comes_from(run: Any, tmp_path: Path) -> None:
    """The folders of the run, of its base and corpus, and of the home directory."""
    run.export(tmp_path / "model")
    places = {str(run.folder.parent), str(run.folder), "private-place", str(Path.home()) + "/", str(Path.cwd())}
    files = [path for path in (tmp_path / "model").rglob("*") if path.is_file()]
    assert any(path.parent.name == "adapter" for path in files)
    said = {(path.name, place) for path in files for place in places if place.encode() in path.read_bytes()}
    assert not said
    assert not tt.verify(tmp_path / "model" / "certificate.json")
    assert json.loads((tmp_path / "model" / "plan.json").read_text())["model"]["name"] == "./base"


def test_every_file_has_one_mode(run: Any, tmp_path: Path) -> None:
    (run.folder / "certificate.json").chmod(0o600)
    run.export(tmp_path / "model")
    modes = {(path.is_dir(), stat.S_IMODE(path.stat().st_mode)) for path in (tmp_path / "model").rglob("*")}
    assert modes == {(True, 0o755), (False, 0o644)}


def test_the_card_has_what_a_hub_reads(run: Any, tmp_path: Path) -> None:
    from huggingface_hub import ModelCard

    run.export(tmp_path / "model", base_model="owner/base", language=("en", "de"), license="apache-2.0", tags=("mail",))
    data = ModelCard.load(tmp_path / "model" / "README.md").data
    assert (data.base_model, data.language, data.license) == ("owner/base", ["en", "de"], "apache-2.0")
    assert data.tags == ["taciturn", "differential-privacy", "confidentiality", "mail"]
    run.export(tmp_path / "plain")
    plain = ModelCard.load(tmp_path / "plain" / "README.md").data
    assert (plain.base_model, plain.license, plain.license_name) == (None, "other", "unspecified")
    assert len(pipeline("text-generation", str(tmp_path / "model"))("thank", max_new_tokens=2)) == 1
    for wrong in ({"base_model": "/home/ana/base"}, {"base_model": "../base"}, {"language": ("English",)}):
        with pytest.raises(UsageError, match="expected"):
            Hub(**wrong)


def test_generate_takes_what_check_takes(run: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from taciturn.cli.main import run as command

    base = run.folder.parent / "base"
    how: dict[str, Any] = {"max_tokens": 4, "temperature": 0}
    for model in (str(run.folder), str(run.folder / "model"), str(base)):
        assert command(["generate", model, "--prompt", "thank", "--max-tokens", "4", "--temperature", "0"]) == 0
        expected = load_exported(base if model == str(base) else run.folder / "model")
        assert capsys.readouterr().out.strip() == generate(*expected, "thank", **how)[0].strip()
    assert generate(*load_named(str(base)), "thank", **how) == generate(*load_exported(base), "thank", **how)
    assert command(["generate", "lstm"]) == 2
    assert "a shape without weights" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("short", "dtype"), [("bf16", torch.bfloat16), ("fp16", torch.float16), ("fp32", torch.float32)]
)
def test_a_cast_loads_in_its_type_and_is_checked_against_the_run(
    run: Any, tmp_path: Path, short: str, dtype: torch.dtype, capsys: pytest.CaptureFixture[str]
) -> None:
    from taciturn.cli.main import run as command

    out = tmp_path / "model"
    assert command(["export", str(run.folder), "-o", str(out), "--dtype", short]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert f"taciturn verify {out} --certified {run.folder}" in told
    model = GPT2LMHeadModel.from_pretrained(out, dtype="auto")
    whole, _ = load_exported(run.folder / "model")
    assert model.dtype == dtype
    assert all(torch.equal(p, q.to(dtype)) for p, q in zip(model.parameters(), whole.parameters(), strict=True))
    assert not tt.verify(out / "certificate.json", certified=run.folder)
    assert "cast.json" in (out / "README.md").read_text()


def test_a_cast_is_of_a_certificate(run: Any, tmp_path: Path) -> None:
    import shutil

    from taciturn.errors import DataError
    from taciturn.reporting.export import export

    bare = shutil.copytree(run.folder, tmp_path / "bare")
    (bare / "certificate.json").unlink()
    with pytest.raises(DataError, match="certify the run first"):
        export(bare, tmp_path / "model", dtype="bfloat16")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare"]
