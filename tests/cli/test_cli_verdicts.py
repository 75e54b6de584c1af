"""The last line of run, certify and audit on real runs: may be released, refuted by labels, leaking, inconclusive."""

from __future__ import annotations

import contextlib
import io
import json
import random
import shutil
from pathlib import Path

import pytest

from taciturn.cli.main import run
from taciturn.reporting import RunView, data

PHONE = "(555) 010-7788"
UNSEEN = "good day"
PROJECT = """
folder = "work"
name = "{name}"
[read]
paths = ["talk.jsonl"]
spans = "spans"
[canaries]
number = 4
copies = {copies}
length = 3
[screen]
policy = ["phone"]
unit = "document"
[plan]
delta = 1e-3
{plan}
[audit]
attacks = ["exposure"]
"""
MODEL = '[plan.model]\nname = "lstm"\ntokenizer = "bytes"\noptions = { hidden_size = 48, embedding_size = 48 }\n'
CRT = f"{MODEL}[plan.options]\npublic = {{ epochs = 1, batch_size = 32 }}\nprivate = {{ steps = 4, batch = 8 }}"
SGD = f'mechanism = "sgd"\n{MODEL}[plan.options]\nepochs = 30\nbatch_size = 16\noptimiser = {{ lr = 0.02 }}'


def write(folder: Path, name: str, plan: str, unseen: bool = False, copies: int = 2) -> Path:
    """A corpus whose secrets are labelled, of which the policies miss some where ``unseen``; and its project."""
    rng, lines = random.Random(1), []
    for i in range(180):
        text = [
            f"good morning, how can i help you with parcel {rng.randint(10, 99)} today?",
            f"my number is {PHONE}, please call me back {i}.",
            "thank you very much, have a nice day.",
        ][i % 3]
        if unseen and i % 36 == 0:
            text = f"the word is {UNSEEN} to you."
        spans = [
            {"start": text.index(each), "end": text.index(each) + len(each), "label": "secret"}
            for each in (PHONE, UNSEEN)
            if each in text
        ]
        lines.append(json.dumps({"text": text, "spans": spans}))
    folder.mkdir()
    (folder / "talk.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "project.toml").write_text(PROJECT.format(name=name, plan=plan, copies=copies))
    return folder / "project.toml"


def said(*argv: str) -> tuple[int, str]:
    """The exit code, and what stands on standard output."""
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(io.StringIO()):
        code = run([*argv])
    return code, heard.getvalue()


def told(folder: Path) -> tuple[str, list[str]]:
    (found,) = data([RunView.load(folder)])["verdicts"]
    return found["word"], found["causes"]


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run that nothing stands against, and what it said."""
    project = write(tmp_path_factory.mktemp("released") / "mail", "mail", CRT)
    code, heard = said("run", str(project), "--until", "audit")
    assert code == 0, heard
    return project.parent / "work/runs/1", heard


@pytest.fixture
def copied(released: tuple[Path, str], tmp_path: Path) -> Path:
    return Path(shutil.copytree(released[0], tmp_path / "run"))


def test_may_be_released(released: tuple[Path, str]) -> None:
    folder, heard = released
    last = heard.splitlines()[-1]
    assert last.startswith("mail: may be released: at 1 % false alarms an attack finds at most ")
    assert "no leak was found by exposure; of 60 labelled secrets the policy misses 0" in last
    assert last.endswith(", provided that the 2 open assumptions hold")
    assert told(folder) == ("may be released", [])
    assert RunView.load(folder).name == "mail"


def test_the_share_of_tokens_is_of_the_corpus(released: tuple[Path, str]) -> None:
    """Recounted from the corpus: bytes are tokens, and every record has a start and an end."""
    from taciturn.screening.corpus.screened import load
    from taciturn.text.document import MASK

    folder, _ = released
    screened = load(folder.parents[1] / "screened/1")

    def count(texts: list[str]) -> int:
        return sum(len(text.replace(MASK, "").encode()) + (1 if text == MASK else 2) for text in texts)

    rows = screened.table.select(["part", "skeleton", "duplicate"]).to_pylist()
    skeletons = [row["skeleton"] for row in rows if row["skeleton"] is not None and not row["duplicate"]]
    public, private = count(screened.texts("public")), count(screened.texts("private"))
    counted = json.loads((folder / "tokens.json").read_text())
    assert counted["without_noise"] == public + count(skeletons)
    assert counted["tokens"] == max(public + private, counted["without_noise"])
    assert 0 < counted["without_noise"] < counted["tokens"]
    assert (folder / "tokens.json").stat().st_mode & 0o77 == 0


def test_an_attack_on_few_texts_is_inconclusive(copied: Path, tmp_path: Path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).write_text("".join(f"have a nice day {i}, {name}\n" for i in range(5)))
    sides = ["--members", str(tmp_path / "in"), "--nonmembers", str(tmp_path / "out")]
    code, heard = said("audit", str(copied), "--attack", "membership", *sides)
    assert code == 0
    why = "the membership attack decided nothing: fewer than 20 members or non-members"
    assert heard.splitlines()[-1] == f"mail: not yet: {why}"
    assert told(copied) == ("not yet", ["inconclusive"])
    answer = json.loads(said("audit", str(copied), "--attack", "membership", *sides, "--json")[1])
    assert answer["verdict"] == {"word": "not yet", "reasons": [why]}


def test_labels_that_show_a_miss_refute(copied: Path) -> None:
    code, heard = said("certify", str(copied), "--labelled", "60", "--missed", "3", "--missed-by-both", "2")
    assert code == 4
    last = heard.splitlines()[-1]
    assert last.startswith("mail: do not: evidence refutes what was to be promised: 2 of 60 labelled secrets")
    assert told(copied)[1][0] == "refuted"


def test_what_labels_of_the_corpus_refute_is_said_by_run(tmp_path: Path) -> None:
    code, heard = said("run", str(write(tmp_path / "open", "open", CRT, unseen=True)), "--until", "audit")
    assert code == 4
    assert heard.splitlines()[-1].startswith("open: do not: evidence refutes what was to be promised: 5 of ")


def test_a_leak_comes_first(tmp_path: Path) -> None:
    code, heard = said("run", str(write(tmp_path / "plain", "plain", SGD, copies=12)), "--until", "audit")
    assert code == 0
    assert heard.splitlines()[-1].startswith("plain: do not: the exposure attack found a leak; nothing is guaranteed")
    assert told(tmp_path / "plain/work/runs/1") == ("do not", ["leak", "withheld", "unbounded"])
