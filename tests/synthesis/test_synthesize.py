"""A synthetic corpus from start to end: what it holds, that it goes on where it stopped, what is refused."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import taciturn as tt
from forks import fork
from processes import ended, fresh
from synthesis_runs import SECRET, files, trained
from taciturn.api import TrainedRun
from taciturn.cli.main import run as command
from taciturn.errors import DataError, GuaranteeError, Interrupted, MismatchError, UsageError
from taciturn.screening.corpus.manifest import file_digest
from taciturn.synthesis import synthesize as rooms
from taciturn.synthesis.corpus import Manifest, rows_of

SHORT = {"max_tokens": 12, "batch": 64}


def texts(folder: Path) -> list[dict[str, str]]:
    return [row for shard in Manifest.read(folder).shards for row in rows_of(folder / shard.path)]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_corpus_reads_screens_and_loads_as_any_other(run: TrainedRun, tmp_path: Path, format: str) -> None:
    made = run.synthesize(300, tmp_path / "made", format=format, labels=["good", "bad"], **SHORT)
    found = texts(made.folder)
    assert len(found) == made.manifest.number == len(made.read().documents()) == 300
    assert len({row["text"] for row in found}) == 300
    labels, counts = Counter(row["label"] for row in found), made.manifest.counts
    assert abs(labels["good"] - labels["bad"]) <= counts.drawn - counts.kept + 1  # drawn in turn
    assert Counter(document.label for document in made.read().documents()) == labels
    for shard in made.manifest.shards:
        assert file_digest(made.folder / shard.path) == shard.digest
    screened = tt.screen(made.read(), tt.policy("phone"), tt.policy("conservative"), unit="document")
    assert screened.counts.read == 300
    datasets = pytest.importorskip("datasets", reason="datasets comes with the extra taciturn[datasets]")
    assert len(datasets.load_dataset(str(made.folder), split="train", cache_dir=str(tmp_path / "cache"))) == 300


def test_few_texts_take_few_draws_and_what_was_begun_for_few_is_finished_for_many(
    run: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = run.synthesize(20, tmp_path / "few", keep_copies=True, **SHORT)
    assert few.manifest.counts.drawn in (48, 112)  # 16 + 32, and 64 if many are empty
    with monkeypatch.context() as stopped:
        stopped.setattr(rooms, "_finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run.synthesize(20, tmp_path / "begun", keep_copies=True, **SHORT)
    many = run.synthesize(300, tmp_path / "begun", keep_copies=True, **SHORT)
    assert files(many.folder) == files(run.synthesize(300, tmp_path / "many", keep_copies=True, **SHORT).folder)
    assert texts(many.folder)[:20] == texts(few.folder)
    assert many.manifest.counts.drawn in (496, 752)


def test_the_certificate_travels_with_it(run: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "made")
    assert command(["synthesize", str(run.folder), "-n", "40", "-o", out, "--max-tokens", "8", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    certificate = json.loads((run.folder / "certificate.json").read_text())
    assert said["claims"]["statements"] == certificate["guarantees"]
    assert said["claims"]["words"] == certificate["words"][: len(certificate["guarantees"])]
    readme = (tmp_path / "made" / "README.md").read_text()
    for each in certificate["guarantees"]:
        assert f"- **{each['status']}**: " in readme
    assert command(["verify", out, "--without-weights"]) == 0
    (tmp_path / "made" / "ledger.jsonl").write_text("")
    assert command(["verify", out, "--without-weights"]) == 4


def test_the_files_are_a_function_of_the_model_the_seed_and_what_is_given(run: TrainedRun, tmp_path: Path) -> None:
    """The premise of post-processing: the same bytes from an export alone, where private text, screened corpus and
    checkpoints are gone; other ones from another seed."""
    given: dict[str, Any] = {"labels": ["good", "bad"], "policy": "phone", **SHORT}
    here = run.synthesize(100, tmp_path / "here", **given).folder
    run.export(tmp_path / "model")
    alone = tt.synthesize(tmp_path / "model", 100, tmp_path / "alone", **given).folder
    assert files(here) == files(alone)
    bare = tmp_path / "elsewhere" / "run"
    shutil.copytree(run.folder, bare, ignore=shutil.ignore_patterns("checkpoints"))
    (bare / "run.toml").unlink()
    assert files(tt.synthesize(bare, 100, tmp_path / "bare", **given).folder) == files(here)
    other = tt.synthesize(tmp_path / "model", 100, tmp_path / "other", seed=1, **given).folder
    assert {row["text"] for row in texts(other)}.isdisjoint(row["text"] for row in texts(here))


def test_no_private_text_is_opened(run: TrainedRun, tmp_path: Path) -> None:
    """What this process opens while it writes a corpus: nothing of the input, the screened corpus, or the checkpoints but
    their lock."""
    (tmp_path / "openings.txt").write_text("hello\nthank you\n")
    said = fresh(
        "import os, sys, json\nimport taciturn as tt\nimport taciturn.synthesis.synthesize as s\n"
        "seen = set()\n"
        "sys.addaudithook(lambda name, args: seen.add(os.path.abspath(args[0])) if name == 'open' and "
        "isinstance(args[0], str) else None)\n"
        f"given = s.read_openings(s.Path({str(run.folder)!r}), prompts=s.Path({str(tmp_path / 'openings.txt')!r}))\n"
        f"tt.synthesize({str(run.folder)!r}, 20, {str(tmp_path / 'made')!r}, max_tokens=5, **given)\n"
        "print(json.dumps(sorted(seen)))"
    )
    opened = [Path(name) for name in json.loads(said.splitlines()[-1])]
    home = run.folder.parent
    of_run = {path.relative_to(home).as_posix() for path in opened if path.is_relative_to(home)}
    assert "run/certificate.json" in of_run  # the hook sees
    assert home / "mail.jsonl" not in opened
    assert {name for name in of_run if not name.startswith("run/")} <= {"screened/manifest.json"}
    assert {name for name in of_run if name.startswith("run/checkpoints")} <= {"run/checkpoints/lock"}


@pytest.mark.parametrize("at", [1, 3, 6])
def test_it_goes_on_where_it_stopped_and_comes_to_the_same_bytes(
    run: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    monkeypatch.setattr(rooms, "PIECE", 32)
    whole = run.synthesize(70, tmp_path / "whole", **SHORT).folder
    calls = 0

    def stop(*_: int) -> None:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="of 70 texts kept; the same command goes on"):
        run.synthesize(70, tmp_path / "made", notify=stop, **SHORT)
    assert not (tmp_path / "made").exists()
    for damaged in (tmp_path / ".made.unfinished" / "data").glob("*-00000.jsonl"):
        damaged.write_bytes(damaged.read_bytes()[:-9])  # half of a text
    with pytest.raises(MismatchError, match="another corpus"):
        run.synthesize(70, tmp_path / "made", seed=5, **SHORT)
    assert files(run.synthesize(70, tmp_path / "made", **SHORT).folder) == files(whole)
    assert not (tmp_path / ".made.unfinished").exists()
    assert run.synthesize(70, tmp_path / "made", **SHORT).manifest == Manifest.read(whole)
    with pytest.raises(MismatchError, match="holds another synthetic corpus"):
        run.synthesize(71, tmp_path / "made", **SHORT)


def test_a_killed_process_leaves_nothing_half_written(run: TrainedRun, tmp_path: Path) -> None:
    """SIGKILL after each file that is put in its place, one after the other, until the corpus is there."""
    code = (
        "import os, signal\nfrom pathlib import Path\nimport taciturn as tt\nimport taciturn.text.atomic as atomic\n"
        "import taciturn.synthesis.corpus as corpus, taciturn.synthesis.synthesize as rooms\n"
        "rooms.PIECE, left = 16, {left}\n"
        "def write(path, data, mode=0o644, kept=atomic.write_bytes):\n"
        "    global left\n"
        "    kept(path, data, mode)\n"
        "    left -= 1\n"
        "    if left == 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "corpus.write_bytes = write\n"
        "tt.synthesize({run!r}, 40, {out!r}, max_tokens=5)\n"
    )
    out = tmp_path / "made"
    for left in (2, 3, 4, 0):
        process = fork(
            code.format(left=left, run=str(run.folder), out=str(out)), {**os.environ, "OMP_NUM_THREADS": "1"}
        )
        ended(process)
        if left:
            assert process.returncode == -signal.SIGKILL
            assert not out.exists()
        else:
            assert process.returncode == 0
    monkey = rooms.PIECE
    try:
        rooms.PIECE = 16
        assert files(out) == files(run.synthesize(40, tmp_path / "whole", max_tokens=5).folder)
    finally:
        rooms.PIECE = monkey


def test_a_model_that_repeats_itself_is_told_and_fewer_may_be_asked_for(
    run: TrainedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rooms, "PIECE", 64)
    with pytest.raises(DataError, match="are copies of earlier ones") as told:
        run.synthesize(300, tmp_path / "made", top_k=1, max_tokens=2, batch=64)
    assert "expected 300" in str(told.value)
    assert run.synthesize(1, tmp_path / "made", top_k=1, max_tokens=2, batch=64).manifest.counts.kept == 1
    with_copies = run.synthesize(30, tmp_path / "copies", top_k=1, max_tokens=2, keep_copies=True)
    assert len({row["text"] for row in texts(with_copies.folder)}) == 1


def test_texts_begin_as_asked_and_none_is_marked(run: TrainedRun, tmp_path: Path) -> None:
    told = run.synthesize(60, tmp_path / "told", prompts=["hello there ", "thank you"], **SHORT).folder
    starts = Counter(row["text"][:9] for row in texts(told))
    counts = Manifest.read(told).counts
    assert starts.keys() == {"hello the", "thank you"}
    assert abs(starts["hello the"] - starts["thank you"]) <= counts.drawn - counts.kept + 1  # drawn in turn
    prompts = ["call (555) 010-7788 now", "thank you"]
    kept = run.synthesize(60, tmp_path / "kept", prompts=prompts, policy="phone", **SHORT)
    assert {row["text"][:9] for row in texts(kept.folder)} == {"thank you"}
    assert kept.manifest.counts.marked >= 60
    assert kept.manifest.counts.drawn == sum(
        getattr(kept.manifest.counts, name) for name in ("kept", "empty", "copies", "marked")
    )


def test_masks_of_skeletons_are_filled_and_all_else_stays(run: TrainedRun, tmp_path: Path) -> None:
    made = run.synthesize(40, tmp_path / "made", skeletons=["my name is <MASK>.", "<MASK> and <MASK> came"]).folder
    for row in texts(made):
        assert (row["text"].startswith("my name is ") and row["text"].endswith(".")) or (
            " and " in row["text"] and row["text"].endswith(" came")
        )
        assert "<MASK>" not in row["text"]
    with pytest.raises(UsageError, match="hold no <MASK>"):
        run.synthesize(1, tmp_path / "other", skeletons=["nothing to fill"])


def test_what_is_given_is_a_condition_and_the_corpus_itself_is_refused(
    run: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Manifest.read(run.synthesize(20, tmp_path / "bare", **SHORT).folder)
    told = Manifest.read(run.synthesize(20, tmp_path / "told", prompts=["hello"], **SHORT).folder)
    assert {each["status"] for each in bare.claims["statements"]} == {"proved"}
    assert {each["status"] for each in told.claims["statements"]} == {"conditional"}
    assert all(
        "the prompts that the texts begin with were not made from the private text" in w for w in told.claims["words"]
    )
    model = rooms.Settings(policy="spacy:low-entity") if find_spec("spacy") else rooms.Settings()
    assert all("'spacy' was not fitted on the private text" in each for each in model.conditions)
    own = ["synthesize", str(run.folder), "-n", "5", "-o", str(tmp_path / "own")]
    assert command([*own, "--prompts", str(run.folder.parent / "mail.jsonl")]) == 2
    said = capsys.readouterr().err
    assert "the corpus was screened from that very file" in said
    assert SECRET not in said


@pytest.mark.parametrize("name", ["values:secrets.csv", "wordlist:names.txt", "corrections:marks.jsonl"])
def test_a_filter_that_knows_a_list_is_refused(run: TrainedRun, tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="made from a file"):
        run.synthesize(5, tmp_path / "made", policy=f"phone + {name}")


def test_no_certificate_no_corpus(run: TrainedRun, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(run.folder, folder)
    certificate = (folder / "certificate.json").read_text()
    for broken, why in (
        (None, "has no certificate.json"),
        (certificate.replace('"epsilon":', '"epsilon": 0.5, "was":', 1), "damaged"),
    ):
        (folder / "certificate.json").unlink() if broken is None else (folder / "certificate.json").write_text(broken)
        with pytest.raises(GuaranteeError, match=why):
            tt.synthesize(folder, 5, tmp_path / "made")
    (folder / "certificate.json").write_text(certificate)
    weights = next((folder / "model").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"\1")  # another model
    with pytest.raises(GuaranteeError, match="not this model's certificate"):
        tt.synthesize(folder, 5, tmp_path / "made", allow=["uncertified", "not-for-release"])
    assert not (tmp_path / "made").exists()
    (folder / "certificate.json").unlink()
    made = tt.synthesize(folder, 5, tmp_path / "made", allow=["uncertified"], max_tokens=4)
    assert not made.manifest.claims["statements"]
    assert "**Not for release.**" in (made.folder / "README.md").read_text()
    assert not (made.folder / "certificate.json").exists()


def test_a_model_that_is_not_for_release_writes_only_when_that_is_said(tmp_path: Path) -> None:
    run = trained(tmp_path, "sgd")
    with pytest.raises(GuaranteeError, match="not for release on its certificate"):
        run.synthesize(5, tmp_path / "made", max_tokens=4)
    made = run.synthesize(5, tmp_path / "made", max_tokens=4, allow=["not-for-release"])
    readme = (made.folder / "README.md").read_text()
    assert "**Not for release.**" in readme
    assert "nothing is promised" in readme


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"labels": ["a", "a"]}, "each once"),
        ({"labels": ["a"], "prompts": ["b"]}, "one of the three"),
        ({"template": "no field"}, "expected {label} once"),
        ({"temprature": 1.0}, "did you mean 'temperature'"),
        ({"top_p": 0.0}, "top_p"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
def test_settings_are_checked_before_anything_is_drawn(
    run: TrainedRun, tmp_path: Path, options: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        run.synthesize(5, tmp_path / "made", **options)
    assert not list(tmp_path.iterdir())
