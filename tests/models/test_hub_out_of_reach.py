"""A model by a hub name where the hub does not answer: one question, one sentence, and what was downloaded still loads."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from transformers import GPT2Config, GPT2LMHeadModel

from taciturn.cli.main import run as command
from taciturn.models import hub
from taciturn.models.source import published_model


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Every name that is asked for; none resolves."""
    asked: list[str] = []

    def unknown(host: str, *_: object, **__: object) -> None:
        asked.append(str(host))
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    hub._answers.cache_clear()
    return asked


@pytest.mark.parametrize("offline", [False, True])
@pytest.mark.parametrize("more", [[], ["--memory", "8"]])
def test_the_hub_is_asked_once_and_named(
    no_network: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    offline: bool,
    more: list[str],
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    assert command(["check", "owner/no-such-model", *more]) == 2
    said = capfd.readouterr().err
    assert "Retrying" not in said
    assert "'owner/no-such-model' cannot be loaded: it is no file or folder here" in said
    assert ("HF_HUB_OFFLINE is set" if offline else "was not reached") in said
    assert "hf download owner/no-such-model" in said
    assert len(no_network) == (0 if offline else 1)


def test_a_downloaded_model_loads_all_the_same(no_network: list[str], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=1))
    folder = tmp_path / "cache" / "models--owner--small"
    model.save_pretrained(folder / "snapshots" / "abc")
    (folder / "refs").mkdir()
    (folder / "refs" / "main").write_text("abc")
    found, _ = published_model("owner/small")
    assert found.name_or_path == "owner/small"
    assert torch.equal(found.transformer.wte.weight, model.transformer.wte.weight)
    assert len(no_network) == 1


def test_a_folder_asks_nobody(no_network: list[str], tmp_path: Path) -> None:
    GPT2LMHeadModel(GPT2Config(vocab_size=20, n_positions=8, n_embd=8, n_layer=1, n_head=1)).save_pretrained(
        tmp_path / "m"
    )
    published_model(str(tmp_path / "m"))
    assert not no_network
