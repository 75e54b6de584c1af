"""taciturn cite: every entry parses, every rule has one, and a run is cited by what it used."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from taciturn.auditing.run import ATTACKS
from taciturn.cli.main import run
from taciturn.mechanisms import MECHANISMS, WITHOUT_CORPUS
from taciturn.project import citing
from taciturn.project.citing import cited_keys, entries
from taciturn.screening.policies.registry import FAMILIES

NEEDED = {
    "article": {"title", "author", "journal", "year"},
    "inproceedings": {"title", "author", "booktitle", "year"},
    "misc": {"title", "author", "year"},
    "software": {"title", "author"},
}


def fields(entry: str) -> tuple[str, str, dict[str, str]]:
    """(kind, key, fields) by a parser that counts braces; raises for anything that is not BibTeX as we write it."""
    head = re.match(r"@(\w+)\{(\w+), ", entry)
    assert head, entry[:60]
    found: dict[str, str] = {}
    at = head.end()
    while entry[at] != "}":
        name = re.compile(r"(\w+) = \{").match(entry, at)
        assert name, entry[at : at + 40]
        depth, end = 1, name.end()
        while depth:
            depth += {"{": 1, "}": -1}.get(entry[end], 0)
            end += 1
        assert name[1] not in found
        found[name[1]] = entry[name.end() : end - 1]
        at = end + 2 if entry[end : end + 2] == ", " else end
    assert at == len(entry) - 1
    return head[1], head[2], found


def test_every_entry_parses_and_says_who_what_and_when() -> None:
    text = (files("taciturn.project") / "references.bib").read_text("utf-8")
    assert len(entries()) == len(re.findall("^@", text, re.MULTILINE))
    for key, entry in entries().items():
        kind, name, found = fields(entry)
        assert name == key
        assert found.keys() >= NEEDED[kind], key
        assert all(value.strip() for value in found.values())
        if "year" in found:
            assert re.fullmatch(r"(19|20)\d\d", found["year"])
        if "eprint" in found:
            assert re.fullmatch(r"\d{4}\.\d{4,5}", found["eprint"])
            assert found["archiveprefix"] == "arXiv"
        if "doi" in found:
            assert found["doi"].startswith("10.")


def test_no_entry_and_no_rule_is_left_over() -> None:
    rules = (citing.MECHANISMS, citing.ATTACKS, citing.DETECTORS)
    named = {key for rule in rules for keys in rule.values() for key in keys}
    source = Path(citing.__file__).read_text("utf-8")
    assert named <= entries().keys()
    assert not [key for key in entries() if f'"{key}"' not in source]
    assert citing.MECHANISMS.keys() | {"sgd", "redacted"} == {*MECHANISMS, *WITHOUT_CORPUS}
    assert citing.ATTACKS.keys() == set(ATTACKS)
    assert set(FAMILIES) - {"values", "wordlist", "corrections"} <= citing.DETECTORS.keys()


def test_a_run_is_cited_by_what_it_used(story: Any, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(story.folder / "run")
    assert run(["cite", folder, "--json"]) == 0
    found = {row["key"]: row["used_for"] for row in json.loads(capsys.readouterr().out)}
    assert found["zhao2022crt"] == "mechanism crt"
    assert found["carlini2019sharer"] == "attack exposure"
    assert found["wordfreq"] == "detector conservative"
    assert {"taciturn", "abadi2016dpsgd", "dpaccounting", "hochreiter1997lstm", "loshchilov2019adamw"} <= found.keys()
    assert not {"lai2022uedp", "spacy", "yeom2018overfitting", "hu2022lora"} & found.keys()
    assert run(["cite", folder]) == 0
    text = capsys.readouterr().out
    assert text.count("\n@") == len(found)
    assert text.count("{") == text.count("}")


def test_without_a_noised_step_nothing_about_noise_is_cited(tmp_path: Path) -> None:
    phase = {"event": {"event": "non-private"}, "rule": {"name": "Plain"}, "optimiser": {"name": "sgd"}}
    plan = {"mechanism": "sgd", "model": {"name": "gpt2", "lora": {"r": 8}}, "phases": [phase]}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    keys = [key for key, _ in cited_keys(tmp_path)]
    assert keys == ["taciturn", "hu2022lora", "paszke2019pytorch", "wolf2020transformers"]


def test_mistakes_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cite", str(tmp_path)]) == 3
    assert "plan.json is missing" in capsys.readouterr().err
    (tmp_path / "plan.json").write_text("[]")
    assert run(["cite", str(tmp_path)]) == 3
    assert "damaged" in capsys.readouterr().err
    assert run(["cite"]) == 0
    assert "@software{taciturn" in capsys.readouterr().out
