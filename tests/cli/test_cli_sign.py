"""Signing and verifying as a user does: a key, a signature beside the certificate, and what a reader is told."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run


@pytest.fixture
def folder(story: Any, tmp_path: Path) -> Path:
    return shutil.copytree(story.folder / "run", tmp_path / "run", ignore=shutil.ignore_patterns("checkpoints"))


def test_a_key_a_signature_and_three_answers(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    key, certificate = f"{tmp_path}/signer", f"{folder}/certificate.json"
    assert run(["certify", "--new-key", key]) == 0
    assert run(["certify", str(folder), "--sign", key]) == 0
    assert "this run alone" in " ".join(capsys.readouterr().out.split())
    assert run(["verify", certificate]) == 0
    assert run(["verify", certificate, "--key", f"{key}.pub"]) == 0
    assert "signature is of this key" in capsys.readouterr().out
    assert run(["certify", "--new-key", f"{tmp_path}/other"]) == 0
    assert run(["verify", certificate, "--key", f"{tmp_path}/other.pub", "--json"]) == 4
    (mismatch,) = json.loads(capsys.readouterr().out)["mismatches"]
    assert mismatch["field"] == "signature"
    assert run(["export", str(folder), "-o", f"{tmp_path}/model"]) == 0
    assert run(["verify", f"{tmp_path}/model/certificate.json", "--key", f"{key}.pub"]) == 0


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
