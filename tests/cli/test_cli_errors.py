"""Wrong command lines: one line that speaks of options, a next step, the exit code of its kind; and the gates."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.auditing.finding import Finding, Verdict
from taciturn.cli.main import app, run
from taciturn.cli.spoken import on_the_command_line, options
from taciturn.errors import UsageError
from taciturn.privacy.accounting.events import PoissonGaussian

BUDGET = "budget --rate 0.1 --steps 10"
WRONG = [
    ("frob", 2, "known: audit"),
    ("trian", 2, "did you mean 'train'?"),
    ("corrections frob", 2, "known: export, import"),
    ("screen", 2, "needs -o --output"),
    ("screen talk.jsonl -o x", 2, "needs -p --policy"),
    ("screen talk.jsnl -p ssn -o x", 3, "did you mean 'talk.jsonl'?"),
    ("screen nothere -p ssn -o x", 3, "no such file or folder: nothere"),
    ("screen talk.jsonl -p sssn -o x", 2, "did you mean 'ssn'?"),
    ("screen talk.jsonl -p frobnicate -o x", 2, "`taciturn policies` lists them"),
    ("screen talk.jsonl -p ssn -o x --clean bloom --clean-most 2", 2, "--clean-most"),
    ("screen talk.jsonl -p ssn -o x --miss-rate 2", 2, "--miss-rate must lie in [0, 1]"),
    ("screen talk.jsonl -p ssn -o x --max-record-bytes 0", 2, "--max-record-bytes must be at least 1"),
    ("screen talk.jsonl -p ssn -o x --encoding klingon", 2, "--encoding"),
    ("screen latin.txt -p ssn -o x", 3, "--encoding cp1252"),
    ("screen odd.xyz -p ssn -o x", 3, "--format text"),
    ("screen talk.jsonl -p ssn -o x --chat openai --text-pair b", 2, "--text-pair"),
    (f"{BUDGET} --sigma 0", 2, "--sigma: expected a positive number"),
    (f"{BUDGET} --sigma 1 --epsilon 1", 2, "either --sigma"),
    (f"{BUDGET} --sigma one", 2, "--sigma: expected a number"),
    (f"{BUDGET} --sigam 1", 2, "Did you mean --sigma?"),
    (f"{BUDGET} --sigma 1 --delta 2", 2, "--delta: expected a probability"),
    (f"{BUDGET} --sigma 1 --relation foo", 2, '"add-remove"'),
    (f"{BUDGET} --sigma 1 --group 0", 2, "--group: expected a whole number from 1"),
    (f"{BUDGET} --sigma 1 --gamma 2", 2, "--gamma: expected a probability"),
    (f"{BUDGET} --sigma 1 --gamma 0.1 --delta2 4", 2, "--delta2: expected a probability"),
    (f"{BUDGET} --sigma 1 --selection frob:3", 2, "selection"),
    (f"{BUDGET} --epsilon -3", 2, "--epsilon: expected a positive number"),
    ("budget --sigma 1 --rate 2 --steps 10", 2, "--rate: expected a probability"),
    ("budget --sigma 1 --rate 0.1 --steps 0", 2, "--steps: expected a whole number from 1"),
    ("budget --sigma 1", 2, "give --rate and --steps too"),
    ("plan crt nothere", 3, "no such folder: nothere; `taciturn screen"),
    ("plan", 2, "needs MECHANISM"),
    ("train", 2, "needs CONFIG"),
    ("train nothere.toml -o r", 2, "`taciturn plan"),
    ("certify nothere", 3, "no such folder: nothere; `taciturn train"),
    ("verify nothere", 2, "no such certificate"),
    ("audit", 2, "needs RUN"),
    ("audit nothere", 3, "no such folder"),
    ("audit . --attack foo", 2, "known: exposure"),
    ("audit . --attack exposure", 2, "--canaries"),
    ("audit . --attack extraction", 2, "--secrets"),
    ("audit . --attack membership", 2, "--members"),
    ("audit . --attack pii-extraction", 2, "--members"),
    ("audit . --attack pii-extraction --members talk.jsonl --nonmembers talk.jsonl", 2, "--policy email,phone"),
    ("report nothere", 3, "no such folder"),
    ("export nothere -o m", 3, "no such folder"),
    ("generate nothere", 2, "'nothere' cannot be loaded"),
    ("generate nothere/", 2, "'nothere/': no such folder"),
    ("recall nothere labels", 3, "no such folder"),
    ("sample nothere -o l.jsonl", 3, "no such folder"),
    ("run nothere.toml", 2, "taciturn init FILES"),
    ("init nothere", 3, "no such file or folder"),
    ("evaluate talk.jsonl -p ssn", 3, "--spans"),
    ("evaluate talk.jsonl -p ssn --fail-under 2", 2, "--fail-under"),
    ("cite nothere", 3, "no such folder"),
    ("recipe run foo", 2, "unknown recipe"),
]
PYTHON = re.compile(
    r"\w=['\"\[{]|\w=\.\.\.|\b(True|False|None)\b|requires_grad|Traceback|\w\(\)|NonPrivate|PoissonGaussian"
)


@pytest.mark.parametrize(("line", "code", "says"), WRONG, ids=[line for line, _, _ in WRONG])
def test_a_wrong_command_line_is_told_in_its_own_words(
    line: str, code: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("talk.jsonl").write_text('{"text": "my number is (555) 010-7788"}\n')
    Path("latin.txt").write_bytes("Müller wohnt in Köln, Straße 5.\n".encode("latin-1") * 3)
    Path("odd.xyz").write_text("hello there\n")
    argv = shlex.split(line)
    found = run(argv)
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert (found, says in said) == (code, True), said
    assert said.startswith("taciturn: ")
    assert not PYTHON.search(said), said
    words = re.findall(r"(?<![\w.-])[a-z]+_[a-z_]+", said)
    assert not set(words) & set(options(app, argv)), said


def test_the_same_error_speaks_python_in_python(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="noise_multiplier: expected a positive number"):
        PoissonGaussian(0.1, 0.0)
    assert run([*BUDGET.split(), "--sigma", "0"]) == 2
    assert "--sigma: expected a positive number" in capsys.readouterr().err


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_a_message_without_an_option_stays_as_it_is(text: str) -> None:
    assert on_the_command_line(text, {"never_in_a_text_of_60": "--x"}) == text


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("read it with encoding='cp1252', or encoding_errors='replace'",
         "read it with --encoding cp1252, or --encoding-errors replace"),
        ("'encoding' stays, as does my-encoding and x.encoding_errors", None),
        ("clean='bloom' would remove; clean_most=0.5 allows", "--clean bloom would remove; --clean-most 0.5 allows"),
        ("name it (encoding=...)", "name it (--encoding)"),
        ("give epsilon and delta", "give --epsilon and --delta"),
        ("encoding: expected a name", "--encoding: expected a name"),
        ("the encoding is odd", None),
    ],
)  # fmt: skip
def test_what_is_spelled_anew(message: str, told: str | None) -> None:
    names = ("encoding", "encoding_errors", "clean", "clean_most", "epsilon", "delta")
    spelled = {name: f"--{name.replace('_', '-')}" for name in names}
    assert on_the_command_line(message, spelled) == (message if told is None else told)


def test_evaluate_fails_under_a_recall_that_is_not_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One of two secrets is found."""
    text, phone = "call (555) 010-7788 or Ana", "(555) 010-7788"
    spans = [{"start": 5, "end": 5 + len(phone), "label": "phone"}, {"start": 23, "end": 26, "label": "name"}]
    gold = tmp_path / "gold.jsonl"
    gold.write_text(json.dumps({"text": text, "spans": spans}) + "\n")
    common = ["evaluate", str(gold), "-p", "phone", "--json"]
    assert run(common) == 0
    recall = json.loads(capsys.readouterr().out)["policies"][0]["token_recall"]
    assert 0 < recall < 1
    assert run([*common, "--fail-under", str(recall)]) == 0
    capsys.readouterr()
    assert run([*common, "--fail-under", str(recall + 1e-3)]) == 5
    both = capsys.readouterr()
    assert json.loads(both.out)["policies"][0]["token_recall"] == recall
    assert f"token recall of phone {recall:.4f}" in both.err


@pytest.mark.parametrize(
    ("verdict", "gate", "code"),
    [
        ("leak", None, 0), ("leak", "leak", 5), ("leak", "inconclusive", 5),
        ("inconclusive", "leak", 0), ("inconclusive", "inconclusive", 5),
        ("no leak found", "leak", 0), ("no leak found", "inconclusive", 0),
    ],
)  # fmt: skip
def test_audit_fails_on_a_verdict(
    verdict: Verdict, gate: str | None, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    finding = Finding("exposure", 3.2, "bits", None, {"mean": 1.0, "p95": 4.0, "p": 0.2}, {}, verdict)
    monkeypatch.setattr("taciturn.auditing.run.audit", lambda *_, **__: [finding])
    (tmp_path / "plan.json").write_text("{}")
    assert run(["audit", str(tmp_path), "--json", *([] if gate is None else ["--fail-on", gate])]) == code
    both = capsys.readouterr()
    assert json.loads(both.out)["findings"][0]["verdict"] == verdict
    assert (f"--fail-on {gate}: exposure: {verdict}" in both.err) == (code == 5)
    assert json.loads((tmp_path / "audit.json").read_text())["findings"][0]["verdict"] == verdict


def test_a_gate_is_about_what_an_attack_really_found(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["audit", f"{story.folder}/run", "--canaries", f"{story.folder}/canaries.json", "--json"]
    for gate, stopped in (("leak", {"leak"}), ("inconclusive", {"leak", "inconclusive"})):
        code = run([*line, "--fail-on", gate])
        verdict = json.loads(capsys.readouterr().out)["findings"][0]["verdict"]
        assert code == (5 if verdict in stopped else 0)
