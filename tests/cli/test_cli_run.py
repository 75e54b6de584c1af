"""taciturn run: every step once, whatever moment it is killed at; what was paid for is never overwritten."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from forks import fork
from processes import ended
from taciturn.cli.main import run
from taciturn.project.context import Show
from taciturn.project.done_steps import State, opened
from taciturn.project.progress import resumable
from taciturn.project.settings import load
from taciturn.project.steps import STEPS, Work

NAME = "Zyxwvana Quillfeather"
PROJECT = """
folder = "work"
[read]
paths = ["talk.jsonl"]
user = "user"
[split]
held_out = 0.2
[canaries]
number = 2
copies = 2
length = 3
[screen]
policy = ["phone", "email"]
unit = "document"
[plan]
delta = 1e-3
[plan.model]
name = "lstm"
tokenizer = "bytes"
[plan.model.options]
hidden_size = 8
embedding_size = 8
[plan.options.public]
epochs = 1
batch_size = 16
[plan.options.private]
steps = 6
batch = 6
[plan.seeds]
noise = 7
[plan.train]
checkpoint_steps = 2
evaluations = 1
[audit]
attacks = ["exposure"]
"""


class Killed(BaseException):
    """No code catches this, as none sees SIGKILL."""


def begin(folder: Path, text: str = PROJECT) -> Path:
    lines = []
    for i in range(48):
        said = ["good morning, how can i help?", "my number is (555) 010-7788", f"my name is {NAME}, thank you"][i % 3]
        lines.append(json.dumps({"text": f"{said} it is number {i}", "user": f"u{i % 12}"}))
    folder.mkdir(exist_ok=True)
    (folder / "talk.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "project.toml").write_text(text)
    return folder / "project.toml"


def carried_out(
    project: Path, until: str = STEPS[-1], say: Callable[[str], None] = lambda _: None, notify: Any = None
) -> Work:
    """`taciturn run` without its talk, with a hook before every step and in training."""

    @contextlib.contextmanager
    def display(*_: Any) -> Iterator[Any]:
        yield notify or (lambda _: None)

    loaded = load(project)
    with opened(loaded.folder) as state:
        work = Work(loaded, state, Show(say, display, display))
        work.carry_out(until)
    return work


def said(argv: list[str]) -> tuple[int, str]:
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        code = run(argv)
    return code, heard.getvalue()


def states(work: Work) -> dict[str, str]:
    return {step.name: step.state for step in work.steps}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A project carried out once, and what it said."""
    project = begin(tmp_path_factory.mktemp("whole"))
    code, heard = said(["run", str(project)])
    assert code == 0, heard
    return project, heard


@pytest.fixture
def copied(whole: tuple[Path, str], tmp_path: Path) -> Path:
    """A copy to change."""
    shutil.copytree(whole[0].parent, tmp_path / "copy")
    return tmp_path / "copy" / "project.toml"


def change(project: Path, old: str, new: str) -> None:
    text = project.read_text()
    assert old in text
    project.write_text(text.replace(old, new))


def test_everything_is_there_and_nothing_secret_was_said(whole: tuple[Path, str]) -> None:
    project, heard = whole
    folder = project.parent / "work"
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*")}
    assert names >= {"screened/1/manifest.json", "runs/1/certificate.json", "runs/1/audit.json", "report.html",
                     "model/certificate.json", "model/README.md", "canaries-1.json"}  # fmt: skip
    planted = json.loads((folder / "canaries-1.json").read_text())
    told = heard + (folder / "state.json").read_text() + (folder / "report.html").read_text()
    assert not [s for s in (*NAME.split(), "010-7788", *(f"ID is: {c}" for c in planted["secrets"])) if s in told]
    assert folder.stat().st_mode & 0o77 == 0
    assert (folder / "state.json").stat().st_mode & 0o77 == 0
    assert "confidentiality" in heard
    assert "not for release" in heard  # the noise of these tests is seeded


def test_planted_canaries_are_not_labels_of_a_person(whole: tuple[Path, str]) -> None:
    """Else a certificate would promise something about random secrets from canaries that we made up."""
    certificate = json.loads((whole[0].parent / "work/runs/1/certificate.json").read_text())
    assert not certificate["evidence"]["labelled"]
    stated = {g["notion"]: g for g in certificate["guarantees"]}
    assert "no secrets were labelled" in stated["bayesian-confidentiality"]["reason"]
    # two copies of each, one of which deduplication leaves
    assert dict(certificate["evidence"]["groups"]) == {"one canary": 1, "all canaries": 2}


def test_a_second_call_keeps_everything(whole: tuple[Path, str]) -> None:
    before = {p: p.stat().st_mtime_ns for p in (whole[0].parent / "work").rglob("*") if p.is_file()}
    work = carried_out(whole[0])
    assert states(work) == {name: "done" if name == "plan" else "kept" for name in STEPS}
    assert {p: p.stat().st_mtime_ns for p in before} == before
    code, heard = said(["run", str(whole[0]), "--json"])
    summary, _ = json.JSONDecoder().raw_decode(heard, heard.index("{"))
    assert code == 0
    assert summary["verdicts"].keys() == {"exposure"}
    assert summary["spent"]["epsilon"] <= summary["target"]["epsilon"]


def test_stopped_anywhere_it_goes_on_to_the_same_bits(whole: tuple[Path, str], tmp_path: Path) -> None:
    """Noise is seeded here, so what comes out can be compared with the run that nobody stopped."""
    project = begin(tmp_path / "stopped")

    def before(stop: str) -> Callable[[str], None]:
        def say(line: str) -> None:
            if line.endswith(f"] {stop}"):
                raise Killed

        return say

    def in_training(progress: Any) -> None:
        if hasattr(progress, "step") and progress.step.number == 4:
            raise Killed

    for how in ({"say": before("plan")}, {"notify": in_training}, *({"say": before(stop)} for stop in STEPS[3:])):
        with pytest.raises(Killed):
            carried_out(project, **how)
        if "notify" in how:
            assert not (project.parent / "work/runs/1/model").exists()
    assert states(carried_out(project))["train"] == "kept"
    for name in ("runs/1/model/model.safetensors", "model/model.safetensors", "runs/1/ledger.jsonl"):
        assert (project.parent / "work" / name).read_bytes() == (whole[0].parent / "work" / name).read_bytes()


DIES = """
import os, signal, sys
from taciturn.cli.main import run
begun = []
def listen(event, args):
    if begun and event != "os.kill":  # a kill is told of as well
        os.kill(os.getpid(), signal.SIGKILL)
    if event == "os.rename" and os.path.basename(args[1]).startswith("step-"):
        begun.append(args[1])
sys.addaudithook(listen)
run({words!r})
"""
"""The command line, killed as soon as it has a checkpoint: at what the interpreter does next that it would tell of."""


def test_killed_for_good_it_goes_on(tmp_path: Path) -> None:
    project = begin(tmp_path / "killed", PROJECT.replace("steps = 6", "steps = 12"))
    code = DIES.format(words=["run", str(project), "--until", "certify"])
    child = fork(code, {**os.environ, "OMP_NUM_THREADS": "1"}, subprocess.PIPE, subprocess.STDOUT)
    ended(child)
    assert child.returncode == -signal.SIGKILL
    assert list((project.parent / "work/runs/1/checkpoints").glob("step-*.pt"))
    assert not (project.parent / "work/runs/1/model").exists()
    assert states(carried_out(project, until="certify"))["screen"] == "kept"
    certificate = json.loads((project.parent / "work/runs/1/certificate.json").read_text())
    assert sum(row["steps"] for row in certificate["ledger_steps"] if row["phase"] == "private") == 12


def test_a_run_killed_while_it_wrote_its_first_files_begins_anew(tmp_path: Path) -> None:
    """plan.json is written before evidence.json, and training refuses a folder that has a plan."""
    assert not resumable(tmp_path)
    (tmp_path / "plan.json").write_text("{}")
    assert not resumable(tmp_path)
    assert not (tmp_path / "plan.json").exists()
    for name in ("plan.json", "evidence.json"):
        (tmp_path / name).write_text("{}")
    assert resumable(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "redone"),
    [
        ("[audit]", '[report]\noutput = "other.html"\n[audit]', {"report"}),
        ("[audit]", "[certify]\nconfidence = 0.99\n[audit]", {"certify", "audit", "report", "export"}),
        ('["exposure"]', '["exposure"]\nseed = 1', {"audit", "report", "export"}),
        ("[audit]", '[plan.extra]\n[audit]', None),
    ],
)  # fmt: skip
def test_a_changed_setting_redoes_what_depends_on_it(copied: Path, old: str, new: str, redone: set[str] | None) -> None:
    change(copied, old, new)
    if redone is None:
        code, heard = said(["run", str(copied)])
        assert code == 2
        assert "unknown key 'plan.extra'" in heard
        return
    assert {name for name, state in states(carried_out(copied)).items() if state == "done"} == {*redone, "plan"}


def test_training_again_is_refused_until_agreed_to_and_then_counted(copied: Path) -> None:
    weights = copied.parent / "work/runs/1/model/model.safetensors"
    before = weights.read_bytes()
    change(copied, "steps = 6", "steps = 5")
    code, heard = said(["run", str(copied)])
    assert code == 2
    assert "--again" in heard
    assert "spends its own ε" in heard
    change(copied, '["phone", "email"]', '["phone"]')  # another screening of the same text: what was spent stays spent
    code, heard = said(["run", str(copied), "--until", "plan"])
    assert code == 0
    code, heard = said(["run", str(copied), "--again", "--until", "certify"])
    assert code == 0
    certificate = json.loads((copied.parent / "work/runs/2/certificate.json").read_text())
    assert certificate["other_runs"]["known"] == 1
    assert weights.read_bytes() == before
    change(copied, "steps = 5", "steps = 6")
    change(copied, '["phone"]', '["phone", "email"]')
    kept = carried_out(copied, until="train")
    assert (states(kept)["train"], kept.run_folder.name) == ("kept", "1")


def test_a_target_out_of_reach_and_a_broken_bound_exit_4(copied: Path) -> None:
    path = copied.parent / "work/runs/1/audit.json"
    found = json.loads(path.read_text())
    found["findings"][0]["detail"]["certificate"]["exceeded"] = True
    path.write_text(json.dumps(found))
    code, heard = said(["run", str(copied)])
    assert code == 4
    assert "lower bound on ε is above" in heard
    change(copied, "steps = 6", "steps = 6\nnoise_multiplier = 0.2")
    code, heard = said(["run", str(copied)])
    assert code == 4
    assert "would spend" in heard


def test_only_one_process_works_on_a_project(copied: Path) -> None:
    with opened(copied.parent / "work"):
        code, heard = said(["run", str(copied)])
    assert code == 2
    assert "another taciturn run" in heard


def test_what_is_in_the_way_is_not_replaced(copied: Path) -> None:
    change(copied, "[audit]", '[export]\noutput = "../mine"\n[audit]')
    (copied.parent / "mine").mkdir()
    code, heard = said(["run", str(copied)])
    assert code == 3
    assert "is not of this project" in heard
    assert (copied.parent / "mine").exists()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("number = 2", "number = 0", "canaries.number"),
        ('["exposure"]', '["membership", "exposure"]\n[split2]', "split2"),
        ("held_out = 0.2", "held_out = 1.2", "split.held_out"),
        ("steps = 6", "stepps = 6", "did you mean 'steps'?"),
        ('name = "lstm"', 'name = "lstm"\nlable = []', "model.lable"),
    ],
)
def test_mistakes_in_the_file_are_named_before_any_work(tmp_path: Path, old: str, new: str, says: str) -> None:
    project = begin(tmp_path)
    change(project, old, new)
    code, heard = said(["run", str(project)])
    assert code == 2
    assert says in heard
    assert not (tmp_path / "work").exists()


def test_a_damaged_state_is_named(copied: Path) -> None:
    (copied.parent / "work/state.json").write_text("{")
    code, heard = said(["run", str(copied)])
    assert code == 3
    assert "state.json is damaged" in heard


def test_state_is_there_before_the_folder_it_names(tmp_path: Path) -> None:
    with opened(tmp_path) as state:
        assert state.place("runs", "a").name == "1"
        assert state.place("runs", "b").name == "2"
        assert State.read(tmp_path).folders == {"runs": ["a", "b"]}
        assert state.place("runs", "a").name == "1"


def test_what_the_split_keeps_out_is_private_whatever_is_declared(copied: Path) -> None:
    """Certifying again is enough: nothing is trained anew for a declaration."""
    run_folder = copied.parent / "work/runs/1"

    def private() -> bool:
        evidence = json.loads((run_folder / "certificate.json").read_text())["evidence"]
        return bool(evidence["private_validation"])

    assert private()
    change(copied, "evaluations = 1", 'evaluations = 1\nvalid_is = "public"')
    work = carried_out(copied, "certify")
    assert private()
    assert states(work)["train"] == "kept"
    text = 'valid = ["other.txt"]\nvalid_is = "public"'
    (copied.parent / "other.txt").write_text("nobody wrote this\n")
    change(copied, 'valid_is = "public"', text)
    carried_out(copied, "certify")
    assert not private()
    change(copied, 'valid_is = "public"', 'valid_is = "unknown"')
    assert states(carried_out(copied, "certify"))["certify"] == "done"
    assert private()


def test_a_project_whose_plan_is_a_mistake_stops_before_training_unless_allowed(tmp_path: Path) -> None:
    project = begin(
        tmp_path / "p", PROJECT.replace("batch = 6", "batch = 600").replace("held_out = 0.2", "held_out = 0.0")
    )
    code, heard = said(["run", str(project)])
    assert code == 2, heard
    assert "--allow full-batch" in heard
    assert not (tmp_path / "p/work/runs/1/ledger.jsonl").exists()
    code, heard = said(["run", str(project), "--until", "train", "--allow", "full-batch"])
    assert code == 0, heard
    assert 'allow = [\n    "full-batch",\n]' in (tmp_path / "p/work/runs/1/run.toml").read_text()
    change(project, "[plan]\n", '[plan]\nallow = ["full-batch"]\n')
    work = carried_out(project, "certify")
    assert states(work)["train"] == "kept"
    assert not json.loads((tmp_path / "p/work/runs/1/certificate.json").read_text())["evidence"]["private_validation"]


def test_labels_that_refute_the_claim_end_a_project_with_4(copied: Path) -> None:
    """The corpus's own annotations: a name that neither policy marks."""
    rows = [json.loads(line) for line in (copied.parent / "talk.jsonl").read_text().splitlines()]
    for row in rows:
        start = row["text"].find("good")
        row["spans"] = [] if start < 0 else [{"start": start, "end": start + 4, "label": "name"}]
    (copied.parent / "talk.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    change(copied, "noise = 7", 'noise = "os"')
    code, heard = said(["run", str(copied), "--again"])
    assert code == 4, heard
    found = json.loads((copied.parent / "work/runs/2/certificate.json").read_text())
    assert not found["release"]
    missed = f"{found['evidence']['missed_by_both']} of {found['evidence']['labelled']} labelled secrets"
    assert missed in heard.strip().splitlines()[-1]
    assert missed in (copied.parent / "work/report.html").read_text()
    assert missed in (copied.parent / "work/model/README.md").read_text()
