"""crt with common = "stay": what noiseless steps read, what the certificate says of it, and what refutes that."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leaks import told
from taciturn.cli.main import run as command
from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.registry import verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.values import filler_of
from taciturn.models.tokenizers import load_tokenizer
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, ThresholdedCounts
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections.values import tables
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus
from taciturn.training.values.contexts import FOLLOWS, Contexts
from taciturn.training.values.fill import Filler
from taciturn.training.values.slots import TAILS
from taciturn.training.values.table import Table

DAYS = ("Monday", "Tuesday", "Sunday")
SECRET = "zqunique"
TEXTS = [f"see you on {DAYS[i % 3]} says {SECRET}{'abcdefghij'[i % 10]}{'klmnop'[i // 10]}" for i in range(45)]
TEXTS += ["have a nice day"] * 6


def screened(texts: Sequence[str], **options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_texts(list(texts)), policy("phone"), policy("conservative"), unit="document", **options)


def config(**options: Any) -> RunConfig:
    chosen: dict[str, Any] = {
        "fill": "learned",
        "common": "stay",
        "values": {"mu": 2.0, "protect_copies": 2},
        "public": {"epochs": 2, "batch_size": 12},
        "private": {"steps": 4, "batch": 6, "noise_multiplier": 2.0},
    }
    model = {"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8, "dropout": 0.0}}
    return RunConfig(mechanism="crt", corpus=Path("memory"), model=model, delta=1e-2, options=chosen | options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A run on a folder, certified, and every text that its noiseless steps read."""
    folder = tmp_path_factory.mktemp("stay")
    screened(TEXTS, out=folder / "screened")
    read: list[str] = []
    real = Filler.written

    def heard(*args: Any) -> list[str]:
        read.extend(real(*args))
        return read[-len(args[3]) :]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Filler, "written", heard)
        train(config().model_copy(update={"corpus": str(folder / "screened")}), folder / "run")
    certify(folder / "run")
    return folder / "run", read


@pytest.fixture
def run(finished: tuple[Path, list[str]], tmp_path: Path) -> Path:
    return shutil.copytree(finished[0], tmp_path / "run")


# What is read


def test_common_values_are_read_where_they_stand_and_no_rare_one_is(finished: tuple[Path, list[str]]) -> None:
    out, read = finished
    shown = set(Table.from_bytes((out / "values.json").read_bytes()).values) & set(DAYS)
    assert shown, "of fourteen records each, with noise of half a record"
    assert len(read) == 2 * len(TEXTS)
    assert not any(SECRET in text for text in read)
    for day in shown:
        assert sum(f"on {day} " in text for text in read) >= 2 * 15, day
    for path in out.rglob("*"):
        assert not (path.is_file() and told(SECRET, path.read_bytes())), path


def table(values: tuple[str, ...] = DAYS, never_drawn: tuple[str, ...] = ()) -> Table:
    counts = np.array([100.0] * len(values) + [0.0] * len(never_drawn))
    ends = np.array([[1.0, *[0.0] * (len(TAILS) - 1)]] * len(FOLLOWS))
    context, in_context = Contexts(((None, None),)), np.array([[*counts, 100.0]])
    return Table((*values, *never_drawn), (), context, counts, np.zeros(0), in_context, ends, (0.1,) * 4)


def written(corpus: ScreenedCorpus, made: Table, seed: int = 3) -> list[str]:
    """What noiseless steps of a plan read, of all rows."""
    plan = make_plan(config(), corpus, b"salt")
    (phase,) = [each for each in plan.phases if each.fill is not None]
    filler = filler_of(load_tokenizer("bytes", "lstm", []), plan, phase, corpus, 64)
    return filler.written(made, None, np.arange(phase.records), (seed, 1), 1)


@pytest.mark.parametrize("row", [0, 7, 44])
def test_records_that_differ_in_a_value_that_is_not_shown_are_read_alike(row: int) -> None:
    """Theorem B, with noise left out: the table is given, and the same in both worlds."""
    ours = screened(TEXTS)
    words = TEXTS[row].split()
    theirs = screened([*TEXTS[:row], TEXTS[row].replace(words[-1], MASK), *TEXTS[row + 1 :]])
    assert ours.texts("private") != theirs.texts("private")
    assert written(ours, table()) == written(theirs, table())
    common = screened([*TEXTS[:row], TEXTS[row].replace(words[3], MASK), *TEXTS[row + 1 :]])
    assert written(ours, table()) != written(common, table()), "one whose value is shown is not protected"
    rare = tuple(day for day in DAYS if day != words[3])
    assert written(ours, table(rare)) == written(common, table(rare)), "and is, where it is not"


def test_what_the_policy_detects_never_stands() -> None:
    """Even if many records hold it; what it does not detect would."""
    texts = [f"{text} or call 555-010-7701" for text in TEXTS[:30]]
    rare = TEXTS[0].split()[-1]
    made = written(screened(texts), table(never_drawn=("555-010-7701", rare)))
    assert not any("555-010" in text for text in made)
    assert sum(rare in text for text in made) == 1


# What is said of it


def test_the_ledger_has_what_was_read_and_the_certificate_what_that_protects(finished: tuple[Path, list[str]]) -> None:
    events = Ledger.read(finished[0] / "ledger.jsonl").counts()
    assert [type(event) for event in events] == [ThresholdedCounts, NonPrivate, PoissonGaussian]
    release, reading, _ = events
    assert isinstance(release, ThresholdedCounts)
    assert isinstance(reading, NonPrivate)
    assert (release.copies, reading.reads) == (2, ("common", "public"))
    certificate = certify(finished[0])
    claims = {each.notion: each for each in certificate.statements()}
    assert claims["confidentiality"].unit.endswith("where what stands at its mask stands in at most 2 records")
    assert claims["confidentiality"].status == "conditional"
    assert claims["bayesian-confidentiality"].status == "none"
    assert verify(finished[0] / "certificate.json") == []
    (entry,) = tables([("run", RunView.load(finished[0]))])
    assert any("value stands in at most 2 records" in said for said in entry["words"])


@pytest.mark.parametrize("field", ["copies", "reads"])
def test_a_ledger_that_hides_it_is_named(run: Path, field: str) -> None:
    """Without copies what is read is paid by nothing; and so many more copies than were planned are not the plan's."""
    text = (run / "ledger.jsonl").read_text()
    pairs = {"copies": ('"copies":2', '"copies":3'), "reads": ('"common","public"', '"public","skeletons"')}
    changed = text.replace(*pairs[field])
    assert changed != text
    (run / "ledger.jsonl").write_text(changed)
    assert verify(run / "certificate.json")
    assert command(["verify", str(run)]) == 4


def test_secrets_by_name_that_stand_refute_their_claim(run: Path) -> None:
    shown = Table.from_bytes((run / "values.json").read_bytes()).values
    day = next(each for each in shown if each in DAYS)
    found = certify(run, groups={"days": [day.lower()], "names": [TEXTS[0].split()[-1]]})
    refuted = [each for each in found.statements() if each.status == "refuted"]
    assert refuted[0].unit.startswith("a secret in one record")
    assert "15 records that are read without noise still hold a secret of the group 'days'" in refuted[0].reason
    evidence = json.loads((run / "evidence.json").read_text())
    assert dict(evidence["open_groups"]) == {"days": 15, "names": 0}
    assert found.release is False


# Options


def test_common_values_without_a_table_of_them_are_refused() -> None:
    with pytest.raises(UsageError, match="common = stay is about values that a table shows"):
        make_plan(config(fill="none"), screened(TEXTS), b"salt")


def test_what_stands_is_known_from_originals_alone(tmp_path: Path) -> None:
    corpus = screened(TEXTS, keep_originals=False)
    with pytest.raises(DataError, match="keep_originals"):
        train(config(), tmp_path / "run", screened=corpus)
