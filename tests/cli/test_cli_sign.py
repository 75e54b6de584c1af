"""Signing and verifying as a user does: a key, a signature beside the certificate, and what a reader is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run
from taciturn.privacy.certificates.digests import load_json


@pytest.fixture
def folder(story: Any, tmp_path: Path) -> Path:
    return shutil.copytree(story.folder / "run", tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))


def test_a_key_a_signature_and_three_answers(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, certificate = f"{tmp_path}/signer", f"{folder}/certificate.json"
    assert run(["certify", "--new-key", key]) == 0
    assert run(["certify", str(folder), "--sign", key]) == 0
    assert "this run alone" in " ".join(capsys.readouterr().out.split())
    assert run(["verify", certificate]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "– signature: absent, not compared: there is one by the key" in said
    assert run(["verify", certificate, "--key", f"{key}.pub"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "✓ signature: checked, signed by the key" in said
    assert "✓ model: checked, each of its" in said
    assert f"first claim: {load_json(folder / 'certificate.json')['words'][0]}" in said
    assert said.endswith("every file of the model is the one certified")
    assert run(["certify", "--new-key", f"{tmp_path}/other"]) == 0
    assert run(["verify", certificate, "--key", f"{tmp_path}/other.pub", "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert [each["field"] for each in found["mismatches"]] == ["signature"]
    assert (found["verified"], found["signature"]) == (False, "differs")
    assert found["claim"] is None
    assert {each["what"]: each["state"] for each in found["compared"]} == {
        "certificate": "checked", "numbers": "checked", "model": "checked", "created": "absent", "versions": "absent",
        "signature": "differs",
    }  # fmt: skip
    assert run(["export", str(folder), "-o", f"{tmp_path}/model"]) == 0
    assert run(["verify", f"{tmp_path}/model/certificate.json", "--key", f"{key}.pub"]) == 0


def test_a_model_that_is_absent_or_differs_is_said_in_words_and_in_json(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def verified(*more: str) -> tuple[int, str, dict[str, Any]]:
        code = run(["verify", f"{folder}/certificate.json", *more])
        said = " ".join(capsys.readouterr().out.split())
        assert run(["verify", f"{folder}/certificate.json", *more, "--json"]) == code
        found = json.loads(capsys.readouterr().out)
        assert found["verified"] == (code == 0)
        assert found["signature"] == "absent"
        return code, said, {each["what"]: each["state"] for each in found["compared"]}

    code, said, states = verified()
    assert (code, states["model"]) == (0, "checked")
    assert "– signature: absent, not signed" in said
    (folder / "model/model.safetensors").rename(folder / "model/pytorch_model.bin")
    code, said, states = verified()
    assert (code, states["model"], states["numbers"]) == (4, "differs", "checked")
    assert "✗ model_files.pytorch_model.bin: certified no such file" in said
    assert "do not rely on this certificate" in said
    shutil.rmtree(folder / "model")
    code, said, states = verified()
    assert (code, states["model"]) == (4, "absent")
    assert "– model: absent, not compared: none of its" in said
    assert said.endswith("not verified: the model is not here; --without-weights checks the numbers alone")
    code, said, states = verified("--without-weights")
    assert (code, states["model"]) == (0, "absent")
    assert said.endswith("no file of a model was compared")


def test_certifying_again_takes_an_old_signature_away(folder: Path, tmp_path: Path) -> None:
    key = f"{tmp_path}/signer"
    assert run(["certify", "--new-key", key]) == 0
    assert run(["certify", str(folder), "--sign", key]) == 0
    assert run(["certify", str(folder)]) == 0
    assert not (folder / "certificate.json.sig").exists()
    assert run(["verify", f"{folder}/certificate.json", "--key", f"{key}.pub"]) == 4


def test_mistakes_with_keys(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify"]) == 2
    assert "name the run's folder" in capsys.readouterr().err
    assert run(["certify", "--new-key", f"{tmp_path}/k"]) == 0
    assert run(["certify", "--new-key", f"{tmp_path}/k"]) == 3
    assert run(["certify", str(folder), "--sign", f"{tmp_path}/k.pub"]) == 3
    assert "no private key" in capsys.readouterr().err
    assert run(["verify", f"{folder}/certificate.json", "--key", f"{tmp_path}/nowhere.pub"]) == 3


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["certify", "--schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "taciturn certificate"
