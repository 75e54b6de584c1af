"""The Python interface: its names, what importing it costs, and the story the README tells."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import taciturn as tt
from taciturn.errors import GuaranteeError, UsageError

NAMES = [
    *("PrivateSteps", "PrivateTrainer", "audit", "load_screened", "plan", "policy", "read", "report", "screen"),
    *("simulate", "synthesize", "train", "verify"),
]


def test_public_names_are_these() -> None:
    assert sorted(tt.__all__) == sorted(["__version__", *NAMES])
    assert all(callable(getattr(tt, name)) for name in NAMES)
    with pytest.raises(AttributeError, match="scren"):
        tt.scren  # noqa: B018


def test_names_stay_functions_whatever_is_imported() -> None:
    for module in pkgutil.iter_modules(tt.__path__):
        if not module.name.startswith("_"):
            importlib.import_module(f"taciturn.{module.name}")
    assert all(callable(getattr(tt, name)) for name in NAMES)
    assert not set(NAMES) & {module.name for module in pkgutil.iter_modules(tt.__path__)}


def test_importing_costs_nothing() -> None:
    code = (
        "import sys, taciturn, taciturn.text.readers, taciturn.screening, taciturn.privacy.certificates.verify\n"
        "assert not {'torch', 'transformers', 'matplotlib'} & set(sys.modules)\n"
        "import subprocess"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys, taciturn; assert not {'numpy', 'pyarrow', 'scipy', 'dp_accounting'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def rows_of(count: int) -> list[dict[str, str]]:
    return [
        {"body": f"Dear {name}, {text}", "sender": name}
        for i, name in enumerate((["ann", "bob", "cem", "dora"] * 8)[:count])
        for text in (["call me at (555) 010-7788 today.", "thank you for the parcel."][i % 2],)
    ]


def test_the_readme_story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mail.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows_of(32)))
    corpus = tt.read("mail*.jsonl", text="body", user="sender")
    screened = tt.screen(corpus, tt.policy("pii"), tt.policy("conservative"), out="screened")
    assert screened.counts.read == screened.counts.public + screened.counts.private == 32
    tiny = {"epochs": 1, "batch_size": 8}, {"steps": 3, "batch": 4}
    plan = tt.plan("crt", screened, "lstm", tokenizer="bytes", epsilon=3, delta=1e-3, public=tiny[0], private=tiny[1])
    assert "private: 3 steps" in str(plan)
    assert "skeletons; no noise\n" in str(plan)
    assert "records of private; q = " in str(plan)
    assert "ε = " in str(plan)
    run = tt.train(plan, out="runs/mail")
    assert run.certify().words
    tt.report(run).save("report.html")
    assert "<html" in Path("report.html").read_text()
    assert run.export("model/") <= 1e-5
    for shown in (screened, plan, run):
        told = shown._repr_html_()
        assert not [row for row in rows_of(32) if row["body"][-20:] in told or row["sender"] in told]
        assert told.startswith(("<table>", "<pre>"))
    assert "<td>32</td>" in screened._repr_html_()
    assert "32 records" in repr(screened)
    assert len(repr(screened)) < 160
    assert "3 steps over" in run._repr_html_()
    assert not tt.verify("model/certificate.json")
    assert not tt.verify("runs/mail/certificate.json")
    rows = run.metrics()
    assert [row["step"] for row in rows] == list(range(1, len(rows) + 1))
    texts = run.generate("Dear", samples=2, max_tokens=5, seed=1)
    assert len(texts) == 2
    assert all(text.startswith("Dear") for text in texts)
    assert texts == run.generate("Dear", samples=2, max_tokens=5, seed=1)
    told = {"members": [row["body"] for row in rows_of(24)], "nonmembers": [f"Dear {i}, a parcel." for i in range(24)]}
    (finding,) = run.audit(["membership"], **told)
    assert finding.attack == "membership"
    assert finding.verdict in finding._repr_html_()
    assert tt.policy("pii,us") == tt.policy("pii", "us")


def test_a_plan_that_would_overspend_is_refused_before_training(tmp_path: Path) -> None:
    from taciturn.text.readers import Corpus

    corpus = Corpus.from_texts(["call me at (555) 010-7788 today"] * 9 + ["thank you"] * 9)
    screened = tt.screen(corpus, tt.policy("pii"), tt.policy("conservative"))
    private = {"steps": 50, "batch": 5, "noise_multiplier": 0.5}
    plan = tt.plan("crt", screened, "lstm", tokenizer="bytes", epsilon=1, delta=1e-3, private=private)
    with pytest.raises(GuaranteeError, match="where the target is 1"):
        tt.train(plan, tmp_path / "run")
    assert not (tmp_path / "run" / "plan.json").exists()
    with pytest.raises(UsageError, match="did you mean 'crt'"):
        tt.plan("ctr", screened)
