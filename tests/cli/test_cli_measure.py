"""sample, recall, preview, evaluate and corrections as a user runs them: what they write, refuse and never say."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run
from taciturn.screening.corpus.screened import load

PHONE, NAME, WORD, MAIL = "(555) 010-7788", "Zyxwvana Quillfeather", "sunshine", "dana@example.com"
SECRETS = (PHONE, NAME, *NAME.split(), WORD, MAIL)
LABELS = {PHONE: "phone", NAME: "name", WORD: "password", MAIL: "email"}
TALK = [
    f"please call me at {PHONE} today",
    f"my name is {NAME} and i live here",
    "hello, how can I help you?",
    f"the magic word is {WORD}",
    f"write to {MAIL} or call {PHONE}",
    "thank you very much, have a nice day.",
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """talk.jsonl with annotations, screened into screened/."""
    folder = tmp_path_factory.mktemp("desk")
    lines = []
    for i in range(120):
        text = TALK[i % len(TALK)]
        lines.append(json.dumps({"text": text, "user": f"u{i % 7}", "spans": spans(text)}))
    (folder / "talk.jsonl").write_text("\n".join(lines) + "\n")
    argv = ["screen", f"{folder}/talk.jsonl", "--user", "user", "--unit", "document", "-p", "phone,email"]
    assert run([*argv, "-o", f"{folder}/screened"]) == 0
    return folder


def spans(text: str) -> list[dict[str, Any]]:
    return [
        {"start": text.index(s), "end": text.index(s) + len(s), "label": label}
        for s, label in LABELS.items()
        if s in text
    ]


def label(source: Path, target: Path) -> None:
    """What a person does."""
    made = []
    for raw in source.read_text().splitlines():
        line = json.loads(raw)
        made.append(json.dumps(line | {"spans": spans(line["text"]), "label_status": "done"}))
    target.write_text("\n".join(made) + "\n")


@pytest.fixture(scope="module")
def labels(desk: Path) -> Path:
    assert run(["sample", f"{desk}/screened", "-n", "120", "--seed", "1", "-o", f"{desk}/sample.jsonl"]) == 0
    label(desk / "sample.jsonl", desk / "labels.jsonl")
    return desk / "labels.jsonl"


def said(argv: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert run(argv) == code, capsys.readouterr().err
    heard = capsys.readouterr()
    return heard.out, heard.err


def test_sample_says_that_it_holds_text_and_never_overwrites(
    desk: Path, labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert labels.exists()
    target = desk / "cue.jsonl"
    argv = ["sample", f"{desk}/screened", "-n", "40", "--by", "cue", "-o", str(target)]
    out, err = said(argv, capsys)
    assert "holds the text of 40 of 120 records" in err
    assert "π, digit" in out
    assert target.stat().st_mode & 0o777 == 0o600
    assert "exists and may hold labels" in said(argv, capsys, 2)[1]
    out, _ = said([*argv, "--force", "--json", "--seed", "5"], capsys)
    assert json.loads(out)["seed"] == 5
    assert sum(s["records"] for s in json.loads(out)["strata"].values()) == 120


def test_recall_states_bounds_and_what_they_allow(desk: Path, labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["recall", f"{desk}/screened", str(labels)]
    out, err = said([*argv, "--want", "0.01", "--target", "0.99", "-o", f"{desk}/recall.json"], capsys)
    assert "40 of 80 labelled records" in out
    assert "20 of 80 labelled records" in out
    assert "299" in out
    assert "use: -c " in out
    assert "assumed: the person found every secret" in err
    found = json.loads((desk / "recall.json").read_text())
    assert (found["labels"], found["missed_by_pi"], found["missed_by_both"]) == (80, 40, 20)
    assert found["bounds"] == {"gamma": 40 / 80, "delta2": 20 / 80}  # every record of the corpus was looked at
    assert found["sample"]["looked_at"] == found["sample"]["records"] == 120
    assert {k: v["both"]["missed"] for k, v in found["kinds"].items()} == {
        "phone": 0, "email": 0, "name": 0, "password": 20,
    }  # fmt: skip
    assert found["levels"]["tried"][-1]["conservative"] == "all-private"
    assert found["levels"]["tried"][-1]["recall_at_least"] == 1.0
    assert (desk / "recall.json").stat().st_mode & 0o777 == 0o600
    same, _ = said([*argv, "--json"], capsys)
    assert json.loads(same)["overall"] == found["overall"]


def test_a_weighted_sample_of_everything_is_exact(desk: Path, labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(["sample", f"{desk}/screened", "-n", "120", "--by", "cue", "-o", f"{desk}/all.jsonl", "--force"])
    label(desk / "all.jsonl", desk / "weighted.jsonl")
    argv = [f"{desk}/screened", f"{desk}/weighted.jsonl", "--json"]
    weighted = json.loads(said(["recall", *argv], capsys)[0])
    simple = json.loads(said(["recall", f"{desk}/screened", str(labels), "--json"], capsys)[0])
    assert weighted["sample"]["design"] == "stratified"
    assert weighted["overall"]["pi"]["share"] == pytest.approx(simple["overall"]["pi"]["share"])
    assert weighted["bounds"] == simple["bounds"] == {"gamma": 40 / 80, "delta2": 20 / 80}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_weighted_sample_costs_little(desk: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    """Half of the corpus: bounds above the truth, and the weighted one no 40 % above what the same counts allow by
    themselves (it was twice as wide)."""
    from taciturn.exact_bounds import upper

    for by in ("simple", "cue"):
        drawn, done = desk / f"{by}{seed}.jsonl", desk / f"{by}{seed}-done.jsonl"
        run(["sample", f"{desk}/screened", "-n", "60", "--by", by, "--seed", str(seed), "-o", str(drawn), "--force"])
        label(drawn, done)
        found = json.loads(said(["recall", f"{desk}/screened", str(done), "--json"], capsys)[0])
        alone = upper(found["missed_by_both"], found["labels"])
        assert 0.25 < found["bounds"]["delta2"] <= (1.4 if by == "cue" else 1) * alone


def test_preview_in_a_terminal_and_on_a_page(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = said(["preview", f"{desk}/screened", "-n", "6"], capsys)
    assert f"⟦{PHONE}⟧phone" in out
    assert "→ please call me at <MASK> today" in out
    assert "6 records: " in err
    (desk / "nasty.jsonl").write_text(
        json.dumps({"text": f"<script>alert(1)</script> call {PHONE} \u202egnp\u202c\u0000 now"}) + "\n"
    )
    out, _ = said(["preview", f"{desk}/nasty.jsonl", "-p", "phone", "-c", "all-private"], capsys)
    assert "\\u202egnp\\u202c\\x00" in out
    page = desk / "preview.html"
    _, err = said(["preview", f"{desk}/nasty.jsonl", "-p", "phone", "--html", str(page)], capsys)
    assert "holds the text of 1 records (mode 0600)" in err
    assert page.stat().st_mode & 0o777 == 0o600
    html = page.read_text()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert '<i class="esc">\\u202e</i>' in html
    assert not {"\u202e", "\u202c", "\x00"} & set(html)
    assert "secrets included" in html
    assert "http" not in html.replace("http-equiv", "")


def test_preview_draws_and_filters(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["preview", f"{desk}/talk.jsonl", "-p", "phone", "--unit", "document", "--json", "-n", "5"]
    first = json.loads(said(argv, capsys)[0])["records"]
    assert [r["id"] for r in first] == [f"talk:{i}#0" for i in range(1, 6)]
    drawn = json.loads(said([*argv, "--random", "--seed", "2"], capsys)[0])["records"]
    assert len({r["id"] for r in drawn}) == 5
    assert drawn != first
    public = json.loads(said([*argv, "--show", "public", "--random"], capsys)[0])["records"]
    assert {r["part"] for r in public} == {"public"}


def test_colours_by_label(desk: Path) -> None:
    from io import StringIO

    from rich.console import Console

    from taciturn.cli.preview import _show
    from taciturn.screening.measuring.preview import chosen, of_corpus
    from taciturn.screening.policies import policy
    from taciturn.text.readers import read

    console = Console(file=StringIO(), force_terminal=True, color_system="standard", width=200)
    records = chosen(of_corpus(read(f"{desk}/talk.jsonl"), "document"), policy("pii"), policy("conservative"), 6)
    _show(records, console)
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert f"\x1b[30;46m{PHONE}\x1b[0m" in shown
    assert "π_c alone" in shown


def test_evaluate_side_by_side(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["evaluate", f"{desk}/talk.jsonl", "--unit", "document", "-p", "phone", "-p", "phone,email"]
    out, _ = said([*argv, "--by-label"], capsys)
    assert "120 records, 80 with annotations" in out
    scores = json.loads(said([*argv, "--json"], capsys)[0])["policies"]
    assert [s["name"] for s in scores] == ["phone", "phone,email"]
    assert [s["records_clean"] for s in scores] == [20, 40]
    assert scores[1]["precision"] == 1.0
    assert scores[1]["labels"]["password"] == {"tokens": 20, "tokens_found": 0, "spans": 20, "spans_found": 0}
    wide = json.loads(said([*argv, "-c", "all-private", "--json"], capsys)[0])["policies"]
    assert [s["records_exposed"] for s in wide] == [0, 0]
    assert [s["records_exposed"] for s in scores] == [40, 40]


def test_corrections_round_trip(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    todo, done = desk / "todo.jsonl", desk / "done.jsonl"
    export = ["corrections", "export", f"{desk}/screened", "-n", "60", "--seed", "3", "-o", str(todo)]
    assert "mode 0600" in said(export, capsys)[1]
    assert "exists and may hold corrections" in said(export, capsys, 2)[1]
    label(todo, done)
    changes = json.loads(said(["corrections", "import", f"{desk}/screened", str(done), "--json"], capsys)[0])
    assert changes["records"] == 60
    assert changes["added"] == changes["changed"] > 0
    argv = ["corrections", "import", f"{desk}/screened", str(done), f"{desk}/talk.jsonl", "--user", "user"]
    assert "-o FOLDER" in said(argv, capsys, 2)[1]
    said([*argv, "-o", f"{desk}/corrected"], capsys)
    manifest = json.loads((desk / "corrected" / "manifest.json").read_text())
    assert ",corrections:" in manifest["policies"]["pi"]["name"]
    assert manifest["counts"]["read"] == 120
    # the same sample, measured on the corrected corpus: its policies are made again from the folder
    run(["sample", f"{desk}/corrected", "-n", "120", "-o", f"{desk}/s2.jsonl"])
    label(desk / "s2.jsonl", desk / "l2.jsonl")
    found = json.loads(said(["recall", f"{desk}/corrected", f"{desk}/l2.jsonl", "--json"], capsys)[0])
    assert found["missed_by_pi"] < 40
    assert found["overall"]["both"]["missed"] < 20


def test_screen_takes_corrections_by_name(desk: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said(["corrections", "export", f"{desk}/screened", "-n", "30", "-o", f"{desk}/t3.jsonl"], capsys)
    label(desk / "t3.jsonl", desk / "d3.jsonl")
    argv = ["screen", f"{desk}/talk.jsonl", "--unit", "document", "-p", f"phone,corrections:{desk}/d3.jsonl"]
    said([*argv, "-o", f"{desk}/named"], capsys)
    out, _ = said(["preview", f"{desk}/named", "--json", "-n", "120"], capsys)
    marked = [span[1] for record in json.loads(out)["records"] for span in record["spans"] if span[0] == "π"]
    assert "password" in marked


def test_a_certificate_takes_measured_recall(story: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screened, copy = story.folder / "screened", tmp_path / "run"
    shutil.copytree(story.folder / "run", copy)
    phone, name = story.secrets[4], story.secrets[1]

    def measure(by: str, n: int) -> Path:
        run(["sample", str(screened), "-n", str(n), "--by", by, "--seed", "4", "-o", f"{tmp_path}/s.jsonl", "--force"])
        return recalled(tmp_path / "s.jsonl", by)

    def recalled(sample: Path, name_of_it: str) -> Path:
        made = []
        for raw in sample.read_text().splitlines():
            line = json.loads(raw)
            found = [
                {"start": line["text"].index(s), "end": line["text"].index(s) + len(s), "label": "x"}
                for s in (phone, name)
                if s in line["text"]
            ]
            made.append(json.dumps(line | {"spans": found, "label_status": "done"}))
        (tmp_path / "l.jsonl").write_text("\n".join(made) + "\n")
        said(["recall", str(screened), f"{tmp_path}/l.jsonl", "-o", f"{tmp_path}/{name_of_it}.json"], capsys)
        return tmp_path / f"{name_of_it}.json"

    records = load(screened).counts.read
    whole = measure("simple", records)
    out, _ = said(["certify", str(copy), "--recall", str(whole), "--json"], capsys)
    drawn = next(g for g in json.loads(out)["guarantees"] if g["notion"] == "bayesian-confidentiality")
    found = json.loads(whole.read_text())
    evidence = json.loads(out)["evidence"]
    assert (found["bounds"]["delta2"], drawn["detail"]["delta2"]) == (
        0.0,
        0.0,
    )  # all were looked at and none was missed
    assert evidence["population"] == evidence["labelled"] == found["labels"]
    assert drawn["status"] == "conditional"
    assert f"of at most {found['labels']} in the corpus" in " ".join(each["text"] for each in drawn["assumptions"])
    assert run(["verify", str(copy / "certificate.json")]) == 0
    # what verify makes again takes the number of records
    forged = json.loads((copy / "certificate.json").read_text())
    forged["evidence"]["population"] = None
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    assert run(["verify", str(tmp_path / "forged.json")]) != 0

    simple = measure("simple", records // 2)
    out, _ = said(["certify", str(copy), "--recall", str(simple), "--json"], capsys)
    drawn = next(g for g in json.loads(out)["guarantees"] if g["notion"] == "bayesian-confidentiality")
    found = json.loads(simple.read_text())
    assert drawn["detail"]["gamma"] == pytest.approx(found["bounds"]["gamma"])
    assert drawn["detail"]["delta2"] == pytest.approx(found["bounds"]["delta2"])
    assert json.loads(out)["evidence"]["label_unit"] == "record"
    assert (drawn["status"], drawn["assumptions"]) == ("none", [])  # ten records: without a miss still above 10 %
    assert json.loads(out)["evidence"]["population"] == records - records // 2 + found["labels"]
    assert "29 labels without a miss" in drawn["reason"]
    assert run(["verify", str(copy / "certificate.json")]) == 0

    weighted = measure("cue", records // 2)
    out, _ = said(["certify", str(copy), "--recall", str(weighted), "--json"], capsys)
    drawn = next(g for g in json.loads(out)["guarantees"] if g["notion"] == "bayesian-confidentiality")
    found = json.loads(weighted.read_text())
    assert drawn["detail"]["gamma"] == pytest.approx(found["bounds"]["gamma"])
    assert json.loads(out)["evidence"]["miss_bounds"] == [found["bounds"]["gamma"], found["bounds"]["delta2"]]
    assert (drawn["status"], drawn["assumptions"]) == ("none", [])  # its bounds are above 10 %
    assert "labels without a miss" in drawn["reason"]
    assert run(["verify", str(copy / "certificate.json")]) == 0
    assert (
        "confidence 0.95"
        in said(["certify", str(copy), "--recall", str(weighted), "--confidence", "0.9"], capsys, 2)[1]
    )

    run(["sample", str(screened), "-n", "9", "--part", "private", "-o", f"{tmp_path}/p.jsonl"])
    private = recalled(tmp_path / "p.jsonl", "private")
    assert "private records only" in said(["certify", str(copy), "--recall", str(private)], capsys, 3)[1]
    for change, says in (
        ({"corpus": "0" * 32}, "another screened corpus"),
        ({"labels": -1}, "labels"),
        ({"policies": {**found["policies"], "pi": {"name": "x", "identity": "y"}}}, "another policy"),
    ):
        weighted.write_text(json.dumps(found | change))
        assert says in said(["certify", str(copy), "--recall", str(weighted)], capsys, 3)[1]


def test_mistakes(desk: Path, labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    screened = f"{desk}/screened"
    for argv, code, says in (
        (["sample", f"{desk}/nowhere", "-o", f"{desk}/x.jsonl"], 3, "no such folder"),
        (["recall", screened, f"{desk}/nowhere.jsonl"], 3, "cannot be read"),
        (["recall", screened, f"{desk}/sample.jsonl"], 3, "label_status"),
        (["recall", screened, str(labels), "-p", "emial"], 2, "did you mean 'email'?"),
        (["recall", screened, str(labels), "--confidence", "1.5"], 2, "must lie in (0, 1)"),
        (["preview"], 2, "name files"),
        (["preview", f"{desk}/talk.jsonl"], 2, "name π with -p"),
        (["evaluate", f"{desk}/nasty2.jsonl", "-p", "phone"], 3, "no annotated span"),
        (["evaluate", f"{desk}/bad.jsonl", "-p", "phone"], 3, "bad.jsonl, line 2"),
        (["evaluate", f"{desk}/bad.jsonl", "-p", "phone", "--max-bad", "1"], 3, "no annotated span"),
        (["preview", f"{desk}/bad.jsonl", "-p", "phone"], 3, "raise --max-bad"),
    ):
        (desk / "bad.jsonl").write_text(json.dumps({"text": "nothing here"}) + "\nzebra\n")
        (desk / "nasty2.jsonl").write_text(json.dumps({"text": "nothing here"}) + "\n")
        assert says in said(argv, capsys, code)[1], argv


def test_a_policy_that_is_not_what_it_was_is_refused(
    desk: Path, labels: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (desk / "mine.toml").write_text('[[detector]]\nname = "word"\npattern = "magic"\nmust_find = ["magic"]\n')
    argv = ["screen", f"{desk}/talk.jsonl", "-p", "phone", "--policy-file", f"{desk}/mine.toml", "--unit", "document"]
    said([*argv, "-o", f"{desk}/own"], capsys)
    measure = ["recall", f"{desk}/own", str(labels)]
    assert "--policy-file" in said(measure, capsys, 2)[1]
    said([*measure, "--policy-file", f"{desk}/mine.toml"], capsys)
    (desk / "mine.toml").write_text('[[detector]]\nname = "word"\npattern = "magi."\nmust_find = ["magic"]\n')
    assert "finds other things now" in said([*measure, "--policy-file", f"{desk}/mine.toml"], capsys, 2)[1]


def test_no_text_in_numbers(desk: Path, labels: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Console and JSON of the commands that only count, and recall.json."""
    screened, talk = f"{desk}/screened", f"{desk}/talk.jsonl"
    for argv in (
        ["sample", screened, "-n", "60", "--by", "cue", "-o", f"{desk}/y.jsonl", "--force"],
        ["recall", screened, str(labels), "--want", "0.05", "--target", "0.9", "-o", f"{desk}/r.json"],
        ["evaluate", talk, "-p", "pii", "-p", "conservative", "--by-label"],
        ["corrections", "export", screened, "-o", f"{desk}/z.jsonl", "--force"],
        ["preview", talk, "-p", "pii"],
    ):
        for more in ([], ["--json"]):
            if argv[0] == "preview" and not more:
                continue  # showing text is its purpose
            heard = "".join(said([*argv, *more], capsys))
            assert not [s for s in SECRETS if s in heard], argv
    assert not [s for s in SECRETS if s in (desk / "r.json").read_text()]
