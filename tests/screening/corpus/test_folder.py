"""screen() end to end: counts, the folder, its modes, its bytes, and what is refused."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.screening import Counts, ScreenedCorpus, load, measure, policy, screen
from taciturn.screening.policies import View
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus, read
from taciturn.text.spans import Detection, Span

SECRET = "980.322.8737"
LINES = [
    "hello, how can I help you?",
    f"call me at {SECRET}",
    "my name is Rhonda Young",
    "my name is Rhonda Young",
    "hello, how can I help you?",
    f"already {MASK} here",
]


def corpus() -> Corpus:
    return Corpus.from_texts(["\n".join(LINES)])


def run(out: Path | None = None, **options: object) -> ScreenedCorpus:
    return screen(corpus(), policy("phone"), policy("conservative"), unit="turn", out=out, **options)  # type: ignore[arg-type]


def test_parts_and_counts() -> None:
    screened = run()
    counts = screened.counts
    assert screened.texts("public") == [LINES[0], LINES[4]]
    assert screened.texts("private") == ["call me at <MASK>", LINES[2], MASK, LINES[5]]
    assert screened.texts("skeletons") == ["call me at <MASK>", "my name is <MASK>", "my name is <MASK>", LINES[5]]
    assert screened.texts("redacted") == [LINES[0], "call me at <MASK>", *LINES[2:]]
    assert screened.texts("original") == LINES
    assert (counts.read, counts.public, counts.private, counts.duplicates, counts.suspicious) == (6, 2, 4, 1, 2)
    assert screened.group_size([SECRET]) == 0
    assert screened.group_size(["rhonda young"]) == 2
    # Untouched text holds every secret, and each copy of it; redacted text what π left.
    assert screened.group_size([SECRET], "original") == 1
    assert screened.group_size([SECRET, "Rhonda", "hello"], "original") == 5
    assert screened.group_size([SECRET], "redacted") == 0
    assert screened.group_size(["hello"], "redacted") == 2
    assert screened.group_size(["hello"]) == 0
    # Where a secret must not be at all: what is found there is evidence against the policies.
    assert screened.group_size([SECRET], "public") == screened.group_size([SECRET], "skeletons") == 0
    assert screened.group_size(["hello"], "public") == 2
    assert screened.group_size(["my name"], "skeletons") == 2
    with pytest.raises(UsageError, match="unknown"):
        screened.group_size([SECRET], "privat")  # type: ignore[arg-type]


def test_scopes_and_switches() -> None:
    assert run(dedup="all").texts("public") == [LINES[0]]
    assert run(dedup="none").texts("private").count(MASK) == 0
    assert run(skeletons=False).texts("skeletons") == []
    published = run(order="as-published")
    assert published.texts("private") == ["call me at <MASK>", LINES[2], MASK, MASK, LINES[5]]
    assert published.texts("skeletons") == []
    for wrong in ({"unit": "sentense"}, {"dedup": "some"}, {"order": "redact"}, {"miss_rate": 2.0}):
        with pytest.raises(UsageError):
            screen(corpus(), policy("phone"), policy("conservative"), **wrong)  # type: ignore[arg-type]


def test_all_private() -> None:
    screened = screen(corpus(), policy("phone"), policy("all-private"), unit="turn")
    assert screened.texts("public") == screened.texts("skeletons") == []
    assert screened.manifest.policies.conservative.covers_all
    assert screened.manifest.conditions == ()


def test_the_dial_leaves_the_conservative_policy_alone() -> None:
    screened = run(miss_rate=1.0)
    assert f"call me at {SECRET}" in screened.texts("private")
    assert "call me at <MASK>" in screened.texts("skeletons")
    assert screened.manifest.miss_rate == 1.0
    assert screened.group_size([SECRET]) == 1


def test_labelled_spans_are_measured() -> None:
    text = f"it is {SECRET} or joyce or Rhonda Young"
    spans = [Span(text.index(v), text.index(v) + len(v)) for v in (SECRET, "joyce", "Rhonda Young")]
    screened = screen(
        Corpus.from_documents([Document("d", text, gold=tuple(spans))]), policy("phone"), policy("conservative")
    )
    recall = measure(screened)
    assert (recall.labelled, recall.missed_by_pi, recall.missed_by_both) == (3, 2, 1)
    assert recall.miss_rate == pytest.approx(2 / 3)
    assert measure(screened.counts) == recall
    with pytest.raises(DataError, match="no labelled spans"):
        measure(Counts())


def test_the_folder_is_private_and_comes_back(tmp_path: Path) -> None:
    out = tmp_path / "screened"
    screened = run(out)
    again = load(out)
    for part in ("public", "private", "skeletons", "redacted", "original"):
        assert screened.texts(part) == again.texts(part) == run().texts(part)
    assert again.key == run().key == screened.key
    assert stat.S_IMODE(out.stat().st_mode) == 0o700
    assert stat.S_IMODE((out / "originals").stat().st_mode) == 0o700
    for file in out.rglob("*"):
        assert stat.S_IMODE(file.stat().st_mode) == (0o700 if file.is_dir() else 0o600)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["screened"]


def test_no_text_in_the_manifest(tmp_path: Path) -> None:
    run(tmp_path / "s")
    manifest = (tmp_path / "s/manifest.json").read_text()
    assert not any(word in manifest for line in LINES for word in (SECRET, "Rhonda", line))
    assert json.loads(manifest)["counts"]["read"] == 6


def test_without_originals_nothing_untouched_is_written(tmp_path: Path) -> None:
    screened = run(tmp_path / "s", keep_originals=False)
    assert not (tmp_path / "s/originals").exists()
    assert not any(SECRET.encode() in f.read_bytes() for f in (tmp_path / "s").rglob("*.*"))
    for use in (lambda: screened.texts("original"), lambda: screened.group_size(["x"])):
        with pytest.raises(DataError, match="keep_originals"):
            use()


CHILD = """
import sys
from pathlib import Path
from taciturn.screening import policy, screen
from taciturn.text.readers import Corpus
texts = [f"turn {i % 7} by Rhonda Young, call 980.322.{i % 5:04d}" for i in range(50)] + ["hello there"] * 3
screen(Corpus.from_texts(texts), policy("pii"), policy("conservative"), miss_rate=0.3, out=Path(sys.argv[1]))
assert "torch" not in sys.modules
"""


def test_bytes_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    for seed in ("0", "1"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        subprocess.run([sys.executable, "-c", CHILD, str(tmp_path / seed)], env=env, check=True)
    files = sorted(p.relative_to(tmp_path / "0") for p in (tmp_path / "0").rglob("*.*"))
    assert len(files) == 4
    for file in files:
        assert (tmp_path / "0" / file).read_bytes() == (tmp_path / "1" / file).read_bytes()


def test_the_key_follows_input_policy_and_options() -> None:
    keys = {
        run().key,
        run(dedup="all").key,
        run(miss_rate=0.1).key,
        run(skeletons=False).key,
        screen(corpus(), policy("email"), policy("conservative"), unit="turn").key,
        screen(corpus(), policy("phone"), policy("all-private"), unit="turn").key,
        screen(Corpus.from_texts(LINES), policy("phone"), policy("conservative"), unit="turn").key,
    }
    assert len(keys) == 7
    assert run().key == run().key


def test_an_existing_folder_is_replaced_only_by_itself(tmp_path: Path) -> None:
    out = tmp_path / "s"
    run(out)
    before = (out / "manifest.json").read_bytes()
    run(out)
    assert (out / "manifest.json").read_bytes() == before
    with pytest.raises(MismatchError, match="another screened corpus"):
        run(out, dedup="none")
    assert (out / "manifest.json").read_bytes() == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("keep")
    with pytest.raises(DataError, match="not a screened corpus"):
        run(tmp_path / "mine")
    assert [p.name for p in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_bad_items_are_counted_or_refused(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text('{"text": "hello there"}\n{broken\n\n{"text": "call 980.322.8737"}\n[]\n', encoding="utf-8")
    both = policy("phone"), policy("conservative")
    with pytest.raises(DataError, match=r"2 items cannot be read, 1 allowed: in\.jsonl, line 2.*in\.jsonl, line 5"):
        screen(read(source), *both, max_bad=1, out=tmp_path / "out")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.jsonl"]
    counts = screen(read(source), *both, max_bad=2, out=tmp_path / "out").counts
    assert (counts.read, counts.public, counts.private, counts.quarantined, counts.blank) == (4, 1, 1, 2, 1)


@pytest.mark.parametrize("damage", ["gone", "changed", "manifest", "format"])
def test_damage_is_noticed(tmp_path: Path, damage: str) -> None:
    run(tmp_path / "s")
    shard, manifest = tmp_path / "s/records/part-00000.parquet", tmp_path / "s/manifest.json"
    if damage == "gone":
        shard.unlink()
    elif damage == "changed":
        shard.write_bytes(shard.read_bytes()[:-1] + b"x")
    elif damage == "manifest":
        manifest.unlink()
    else:
        manifest.write_text(manifest.read_text().replace('"format": 3', '"format": 99'))
    with pytest.raises(DataError, match="screen"):
        load(tmp_path / "s")


@dataclass(frozen=True)
class Failing:
    name: str = "failing"

    def definition(self) -> Mapping[str, object]:
        return {"kind": "failing"}

    def find(self, views: Sequence[View]) -> list[Detection]:
        raise ValueError("".join(v.text for v in views))

    def local(self, view: View) -> bool:  # noqa: ARG002
        return False


def test_a_failing_detector_makes_records_private_and_counted() -> None:
    for pi, wide in ((policy(Failing()), policy("conservative")), (policy("phone"), policy(Failing()))):
        screened = screen(corpus(), pi, wide, unit="turn")
        assert screened.counts.detector_failures == screened.counts.private == 6
        assert screened.texts("skeletons") == []
        assert any("did not finish" in w for w in screened.manifest.warnings)
        assert any("have no skeleton" in c for c in screened.manifest.conditions)


def test_documents_private_for_their_own_reasons_give_no_skeleton() -> None:
    document = Document("d", "hello there", private_because="undecodable bytes")
    screened = screen(Corpus.from_documents([document]), policy("phone"), policy("conservative"))
    assert (screened.texts("private"), screened.texts("skeletons")) == (["hello there"], [])


def test_an_interrupted_screening_leaves_no_corpus_and_goes_on(tmp_path: Path) -> None:
    stop = [True]

    @dataclass(frozen=True)
    class Stops(Failing):
        def find(self, views: Sequence[View]) -> list[Detection]:
            if stop[0]:
                raise KeyboardInterrupt
            return super().find(views)

    def again(out: Path | None, key: str = "phone") -> ScreenedCorpus:
        return screen(corpus(), policy(Stops()), policy(key), out=out)

    with pytest.raises(KeyboardInterrupt):
        again(tmp_path / "s")
    (left,) = tmp_path.iterdir()
    assert left.name == ".s.unfinished"
    assert stat.S_IMODE(left.stat().st_mode) == 0o700
    with pytest.raises(MismatchError, match="unfinished"):
        again(tmp_path / "s", "email")
    assert left.exists()
    stop[0] = False
    assert again(tmp_path / "s").table == again(None).table
    assert [p.name for p in tmp_path.iterdir()] == ["s"]
