"""What rests on π_c sees that public values are spared: parts, counts, δ₂, dedup, keys, manifest, measuring commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import app
from taciturn.errors import UsageError
from taciturn.screening import ScreenedCorpus, load, policy, screen
from taciturn.screening.measuring.evaluate import evaluate
from taciturn.screening.measuring.preview import preview_records
from taciturn.screening.policies.public import Public
from taciturn.screening.sparing import Sparing
from taciturn.text.document import Document, Record
from taciturn.text.readers import Corpus, read
from taciturn.text.spans import Span

PII, WIDE = policy("pii"), policy("conservative")
PUBLIC = Public.of(["Ely", "Copper Kettle"], ["small-number"])


def labelled(text: str, secret: str, name: str) -> Document:
    at = text.index(secret)
    return Document(name, text, gold=(Span(at, at + len(secret), "name"),))


DOCUMENTS = [
    labelled("we met in Ely there", "Ely", "alone"),
    labelled("we met Dana in Ely there", "Ely", "beside"),
    labelled("we met Dana in Ely there", "Dana", "other"),
    labelled("we met Ely Dana there", "Ely", "within"),
    labelled("write to ely@b.org there", "ely@b.org", "found"),
]


def screened(public: Public | None, **options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_documents(DOCUMENTS), PII, WIDE, unit="document", public=public, **options)


def test_secrets_that_are_public_values_count_as_missed_by_both() -> None:
    """With skeletons wherever they stand alone; without, in public records: a private record's noise covers them. Those that
    π marks, and those in a longer span, are covered as before."""
    before, after = screened(None).counts, screened(PUBLIC).counts
    assert (before.gold_spans, before.gold_missed_by_pi, before.gold_missed_by_both) == (5, 4, 0)
    assert (after.gold_spans, after.gold_missed_by_pi, after.gold_missed_by_both) == (5, 4, 2)
    assert (before.public, after.public) == (0, 1)
    without = screened(PUBLIC, skeletons=False).counts
    assert without.gold_missed_by_both == 1


def test_suspicious_and_copies_follow() -> None:
    """Of two equal records with a redacted address and a public value nothing is suspicious any more, so both stay."""
    texts = ["write to a@b.org at 5 in Ely"] * 2
    for public, suspicious, copies in ((None, 2, 1), (PUBLIC, 0, 0)):
        counts = screen(Corpus.from_texts(texts), PII, WIDE, unit="document", public=public).counts
        assert (counts.suspicious, counts.duplicates) == (suspicious, copies)


def test_the_manifest_says_how_many_and_which_kinds_but_no_value(tmp_path: Path) -> None:
    plain, made = screened(None), screened(PUBLIC, out=tmp_path / "s")
    assert plain.manifest.public is None
    public = made.manifest.public
    assert public is not None
    assert (public.values, public.digest, public.kinds) == (2, PUBLIC.digest, ("small-number",))
    assert not any(
        "kettle" in path.read_bytes().decode(errors="ignore").lower() for path in (tmp_path / "s").glob("*.json")
    )
    assert any("no secret is, or lies in, one of the 2 public values" in said for said in made.manifest.conditions)
    others = [
        screened(public).key for public in (None, Public.of(["Ely"]), Public.of([], ["time"]), Public.of([], ["day"]))
    ]
    assert len({made.key, *others}) == 5
    assert screened(PUBLIC).key == made.key == load(tmp_path / "s").key


def test_workers_see_it_too(tmp_path: Path) -> None:
    one, two = screened(PUBLIC, out=tmp_path / "1"), screened(PUBLIC, out=tmp_path / "2", workers=2)
    assert one.manifest == two.manifest


def test_a_file_of_the_corpus_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mail.txt"
    file.write_text("we met in Ely\n", "utf-8")
    with pytest.raises(UsageError, match=r"mail\.txt is one of the files to screen"):
        screen(read(str(file), format="lines"), PII, WIDE, public=Public.read([file]))


def test_preview_and_evaluate_show_what_screening_does() -> None:
    wide = Sparing.of(PII, WIDE, PUBLIC)
    records = [Record(d.id, d.id, 0, len(d.text), d.text, gold=d.gold) for d in DOCUMENTS]
    shown = preview_records(records, PII, wide)
    assert [r.part for r in shown] == screened(PUBLIC).table["part"].to_pylist()
    assert [(p.text, p.by) for p in shown[1].pieces if p.by] == [("Dana", "π_c")]
    for public, exposed in ((None, 0), (PUBLIC, 1)):
        (score,) = evaluate(records, [PII], WIDE, public)
        assert (score.records_exposed, score.public) == (exposed, exposed)


def run(*arguments: str) -> None:
    app(list(arguments), result_action="return_value", exit_on_error=False)


def test_measuring_needs_the_same_values_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mail, values, folder = tmp_path / "mail.txt", tmp_path / "places.txt", tmp_path / "s"
    mail.write_text("we met in Ely there\n\nwe met Dana for 5 days\n\nwrite to a@b.org there\n", "utf-8")
    values.write_text("Ely\n", "utf-8")
    given = ["--public-values", str(values), "--public-kinds", "small-number,time"]
    run("screen", str(mail), "-p", "pii", "--unit", "document", "-o", str(folder), *given)
    corpus = load(folder)
    assert corpus.manifest.public is not None
    assert corpus.manifest.policies.conservative.name == "conservative without 1 public value, time, small-number"
    labels = str(tmp_path / "labels.jsonl")
    run("sample", str(folder), "-n", "1", "--seed", "1", "-o", labels)
    Path(labels).write_text(_with_a_secret(labels), "utf-8")
    with pytest.raises(UsageError, match="screened with 1 public values"):
        run("recall", str(folder), labels)
    run("recall", str(folder), labels, "--public-values", str(values), "-o", str(tmp_path / "recall.json"))
    with pytest.raises(UsageError, match="expected the same here"):
        run("preview", str(folder), "--public-values", str(mail))
    with pytest.raises(UsageError, match="did you mean 'time'"):
        run("preview", str(folder), "--public-values", str(values), "--public-kinds", "tim")
    capsys.readouterr()
    run("preview", str(folder), "--public-values", str(values))
    told = capsys.readouterr()
    assert "we met in Ely there" in told.out
    assert "‹Ely›" not in told.out
    assert "‹Dana›" in told.out
    run("recall", str(folder), labels, "--public-values", str(values), "--target", "0.5")
    run("preview", str(folder), "-c", "conservative:strict")  # another π_c needs no values


def _with_a_secret(labels: str) -> str:
    import orjson

    lines = [orjson.loads(line) for line in Path(labels).read_bytes().splitlines()]
    for line in lines:
        line |= {"label_status": "done", "spans": [{"start": 0, "end": 2}]}
    return "".join(orjson.dumps(line).decode() + "\n" for line in lines)
