"""The commands as a user runs them: what they write, what they refuse, how they exit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import COMMANDS, run


def test_a_run_folder_holds_all_that_later_steps_need(story: Any) -> None:
    names = {p.name for p in (story.folder / "run").iterdir()}
    assert names >= {
        "run.toml", "plan.json", "ledger.jsonl", "metrics.jsonl", "evidence.json", "certificate.json", "audit.json",
        "model", "checkpoints",
    }  # fmt: skip
    assert "verified: every number follows" in story.said
    assert "read 60 = public" in story.said


def test_the_certificate_says_what_holds(story: Any) -> None:
    certificate = json.loads((story.folder / "run/certificate.json").read_text())
    single = certificate["guarantees"][0]
    assert (single["notion"], single["relation"], single["status"]) == (
        "confidentiality",
        "substitution",
        "conditional",
    )
    assert 2.7 < single["epsilon"] <= 3.0
    assert certificate["spent"]["epsilon"] == pytest.approx(single["epsilon"])
    assert any("'family'" in words for words in certificate["words"])
    assert certificate["release"] is True
    assert any("no dropout mask is shared" in each["text"] and each["enforced"] for each in single["assumptions"])
    assert "steps with noise run without dropout" in " ".join(story.said.split())


def test_an_edited_certificate_exits_4(story: Any, tmp_path: Path) -> None:
    for name in ("certificate.json", "plan.json", "evidence.json", "ledger.jsonl"):
        (tmp_path / name).write_bytes((story.folder / "run" / name).read_bytes())
    assert run(["verify", str(tmp_path / "certificate.json")]) == 4, "the model is not there"
    assert run(["verify", str(tmp_path / "certificate.json"), "--without-weights"]) == 0
    text = (tmp_path / "certificate.json").read_text()
    epsilon = json.loads(text)["spent"]["epsilon"]
    (tmp_path / "certificate.json").write_text(text.replace(str(epsilon), "0.5"))
    assert run(["verify", str(tmp_path / "certificate.json"), "--without-weights"]) == 4


def test_the_exported_model_loads_after_import_taciturn_alone(story: Any) -> None:
    code = (
        "import sys, taciturn; assert 'torch' not in sys.modules\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"m = AutoModelForCausalLM.from_pretrained({str(story.folder / 'model')!r})\n"
        f"t = AutoTokenizer.from_pretrained({str(story.folder / 'model')!r})\n"
        "print(type(m).__name__, len(t(['<MASK>'], add_special_tokens=False)['input_ids'][0]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["LSTMForCausalLM", "1"]
    assert "provided that" in (story.folder / "model/README.md").read_text()


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["plan", "crt", "nowhere"], 3, "no such folder"),
        (["train", "nowhere.toml", "-o", "x"], 2, "no such configuration"),
        (["verify", "nowhere.json"], 2, "no such certificate"),
        (["verify", "."], 2, "no such certificate"),
        (["report", "nowhere"], 3, "no such folder"),
        (["screen", "nowhere.txt", "-p", "email", "-o", "x"], 3, "no such file"),
        (["budget", "--rate", "0.1", "--steps", "10"], 2, "--sigma"),
        (["budget", "--rate", "2", "--steps", "10", "--sigma", "1"], 2, "rate"),
    ],
)
def test_mistakes_are_one_line_with_the_right_exit_code(
    argv: list[str],
    code: int,
    says: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(argv) == code
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_unknown_words_name_the_nearest(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    screened = str(story.folder / "screened")
    assert run(["plan", "crt", screened, "--set", "options.privat.steps=3"]) == 2
    assert "did you mean 'private'?" in capsys.readouterr().err
    assert run(["screen", str(story.folder / "talk.jsonl"), "-p", "emial", "-o", "x"]) == 2
    assert "did you mean 'email'?" in capsys.readouterr().err


def test_a_used_folder_and_a_changed_configuration_are_refused(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    f = str(story.folder)
    assert run(["train", f"{f}/run.toml", "-o", f"{f}/run"]) == 3
    assert "--resume" in capsys.readouterr().err
    assert run(["train", f"{f}/run", "--resume", "--set", "options.private.clip=0.5"]) == 3
    assert "begun with another" in capsys.readouterr().err


def test_json_goes_to_standard_output_and_parses(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    f = str(story.folder)
    for argv in (
        ["budget", "--sigma", "1", "--rate", "0.01", "--steps", "1000", "--json"],
        ["plan", "sgd", f"{f}/screened", "--tokenizer", "bytes", "--json"],
        ["verify", f"{f}/run/certificate.json", "--json"],
        ["policies", "--json"],
        ["doctor", "--json"],
        ["generate", f"{f}/model", "--max-tokens", "2", "--json"],
    ):
        assert run(argv) == 0
        json.loads(capsys.readouterr().out)


def test_help_and_torch_free_commands_import_no_torch(story: Any) -> None:
    f = str(story.folder)
    lines = [[name, "--help"] for name in COMMANDS] + [
        ["--help"], ["budget", "--sigma", "1", "--rate", "0.01", "--steps", "100"], ["verify", f"{f}/run/certificate.json"],
        ["policies"], ["screen", f"{f}/talk.jsonl", "-p", "email", "-o", f"{f}/again"], ["plan", "crt", f"{f}/again",
        "--epsilon", "3", "--delta", "1e-3", "--allow", "full-batch"],
    ]  # fmt: skip
    code = (
        "import sys\nfrom taciturn.cli.main import run\n"
        f"for argv in {lines!r}:\n    code = run(argv)\n    assert code == 0, (argv, code)\n"
        "    assert not {'torch', 'transformers'} & set(sys.modules), argv\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_bad_lines_are_counted_named_and_above_the_limit_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = b'{"text": "one"}\n\n{"text": null}\nnot json zebra-secret\n{"text": "caf\xe9"}\n{"text": "a\\u0000b"}\n'
    (tmp_path / "in.jsonl").write_bytes(bad)
    argv = ["screen", str(tmp_path / "in.jsonl"), "-p", "email", "-o", str(tmp_path / "out")]
    assert run(argv) == 3
    said = capsys.readouterr().err
    assert "line 3" in said
    assert "zebra-secret" not in said
    assert not (tmp_path / "out").exists()
    assert run([*argv, "--max-bad", "3", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["counts"]
    assert (counts["read"], counts["public"], counts["private"]) == (5, 1, 1)
    assert (counts["quarantined"], counts["blank"]) == (3, 1)
