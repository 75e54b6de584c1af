"""Policies by name: presets, families, lists of a command line, TOML tables with ``use``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from taciturn.cli.main import run
from taciturn.errors import UsageError
from taciturn.screening import Regex, policy
from taciturn.screening.policies import View, patterns, registry
from taciturn.screening.policies.narrowed import Narrowed
from taciturn.text.spans import Detection, Span


@pytest.mark.parametrize(
    ("lists", "names"),
    [
        ("ssn", ["ssn"]),
        ("ssn, email,,gb", ["ssn", "email", "gb"]),
        ("ssn,presidio:PERSON,PHONE_NUMBER", ["ssn", "presidio:PERSON,PHONE_NUMBER"]),
        (["values:a.csv#name,phone", "ssn"], ["values:a.csv#name,phone", "ssn"]),
        ([], []),
    ],
)
def test_a_family_takes_the_rest_of_its_list(lists: str | list[str], names: list[str]) -> None:
    assert registry.split(lists) == names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("uk", "did you mean 'gb'"),
        ("UK", "did you mean 'gb'"),
        ("GB", "did you mean 'gb'"),
        ("uk-nino", "did you mean 'gb-nino'"),
        ("credit_card", "unknown name"),
        ("secret", "did you mean 'secrets'"),
        ("spcay:low-entity", "did you mean 'spacy:'"),
        ("conservative:strickt", "did you mean 'strict'"),
        ("words:many", "expected a number"),
    ],
)
def test_an_unknown_name_names_the_nearest(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        policy(name)


def test_a_detector_swallowed_by_a_family_is_an_error_that_says_so() -> None:
    with pytest.raises(UsageError, match="'ssn' was read as part of 'conservative:'"):
        policy(*registry.split("conservative:strict,ssn"))


def test_presets_hold_detectors_that_exist_once() -> None:
    assert set(patterns.PACKS) <= set(registry.PRESETS)
    for preset, members in patterns.PRESETS.items():
        assert len(members) == len(set(members)) > 1, preset
        assert set(members) <= set(patterns.names()), preset
        assert [d.name for d in policy(preset).detectors] == list(members)
    assert len(patterns.names()) == sum(len(table) for table in patterns.GROUPS.values())
    assert not set(patterns.names()) & {*registry.PRESETS, *registry.FAMILIES}


def test_identity_changes_with_a_pattern_and_its_options() -> None:
    plain = {"pattern": r"B-\d{5}", "must_find": ("B-12345",)}
    identities = {
        policy(Regex("badge", **(plain | changed))).identity  # type: ignore[arg-type]
        for changed in ({}, {"pattern": r"B-\d{5,6}"}, {"ignore_case": True}, {"label": "x"}, {"check": "mixed"})
    }
    assert len(identities) == 5
    assert policy("gb", "us").identity == policy("us", "gb").identity != policy("us").identity


@dataclass(frozen=True)
class Scored:
    """Two spans a text, of two labels and scores; "cut" texts are truncated."""

    name: str = "scored"
    labels: tuple[str, ...] = field(default=("PERSON", "ORG"))

    def definition(self) -> Mapping[str, object]:
        return {"kind": "scored"}

    def find(self, views: Sequence[View]) -> list[Detection]:
        spans = (Span(0, 1, "PERSON", 0.9, self.name), Span(1, 2, "ORG", 0.4, self.name))
        return [Detection(spans, "truncated" if "cut" in v.text else "ok") for v in views]

    def local(self, view: View) -> bool:  # noqa: ARG002
        return True


class TestNarrowed:
    def labels(self, detector: Narrowed, text: str = "abc") -> tuple[list[str], str]:
        (found,) = policy(detector).find([text])
        return [s.label for s in found.spans], found.status

    def test_labels_and_scores(self) -> None:
        assert self.labels(Narrowed(Scored(), "a", ("ORG",))) == (["ORG"], "ok")
        assert self.labels(Narrowed(Scored(), "a", threshold=0.5)) == (["PERSON"], "ok")
        assert self.labels(Narrowed(Scored(), "a", ("ORG",), 0.5)) == ([], "ok")

    def test_a_status_passes_through(self) -> None:
        assert self.labels(Narrowed(Scored(), "a", ("ORG",), 0.5), "cut") == ([], "truncated")

    def test_it_is_part_of_the_identity_and_never_local(self) -> None:
        bar = {policy(Narrowed(Scored(), "a", threshold=t)).identity for t in (0.0, 0.3, 0.5)}
        assert len(bar) == 3
        assert not Narrowed(Scored(), "a").local(View.of("abc"))

    def test_mistakes(self) -> None:
        with pytest.raises(UsageError, match="did you mean 'PERSON'"):
            Narrowed(Scored(), "a", ("PERSONS",))
        with pytest.raises(UsageError, match=r"\[0, 1\]"):
            Narrowed(Scored(), "a", threshold=1.5)


class TestUse:
    def write(self, folder: Path, text: str) -> Path:
        path = folder / "mine.toml"
        path.write_text(f"[[detector]]\n{text}\n", encoding="utf-8")
        return path

    def test_names_presets_and_families(self, tmp_path: Path) -> None:
        assert [d.name for d in policy(file=self.write(tmp_path, 'use = "ssn"')).detectors] == ["ssn"]
        assert len(policy(file=self.write(tmp_path, 'use = "gb"')).detectors) == len(patterns.PRESETS["gb"])
        many = policy(file=self.write(tmp_path, 'use = "words:4"')).find(["unlikely blancmange"])
        assert many[0].spans

    def test_labels_choose_among_the_detectors_of_a_preset(self, tmp_path: Path) -> None:
        p = policy(file=self.write(tmp_path, 'use = "pii"\nlabels = ["card", "address"]'))
        found = p.find(["card 4111 1111 1111 1111, ssn 078-05-1126, 2164 Lincoln Ave"])[0].spans
        assert {s.label for s in found} == {"card", "address"}

    def test_another_name(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, 'use = "ssn"\nname = "mine"\n[[detector]]\nuse = "ssn"')
        assert [d.name for d in policy(file=path).detectors] == ["mine", "ssn"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('use = "sns"', "did you mean 'ssn'"),
            ('use = "ssn"\nregions = ["UK"]', "unknown key 'regions'"),
            ('use = "ssn"\nlable = ["x"]', "did you mean 'labels'"),
            ('use = "pii"\nlabels = ["cards"]', "did you mean 'card'"),
            ('use = "pii"\nname = "mine"', "leave it out"),
            ('use = "ssn"\nthreshold = 2.0', "threshold"),
            ('use = "ssn"\nthreshold = "high"', "threshold"),
            ('use = "words:4"\nname_s = true', "did you mean 'names'"),
            ('use = "conservative:strict"\nwide = true', "unknown option 'wide'"),
            ('use = "ssn"\n[[detector]]\nuse = "ssn"', "defined twice"),
        ],
    )
    def test_mistakes_name_the_place_and_the_nearest(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(UsageError, match=message) as caught:
            policy(file=self.write(tmp_path, text))
        assert str(caught.value).startswith("mine.toml")


class TestCommand:
    def test_the_list_fits_80_columns_and_leaves_nothing_out(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["policies"]) == 0
        text = capsys.readouterr().out
        assert max(map(len, text.splitlines())) <= 80
        words = set(text.replace(",", " ").split())
        assert words >= {*patterns.names(), *registry.PRESETS}
        assert "[[detector]]" in text

    def test_json(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["policies", "--json"]) == 0
        listed = json.loads(capsys.readouterr().out)
        assert {n for names in listed["detectors"].values() for n in names} == set(patterns.names())
        assert set(listed["families"]) == set(registry.FAMILIES)

    def test_what_a_name_is_made_of(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["policies", "gb,ssn", "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["identity"] == policy("gb", "ssn").identity
        assert [d["name"] for d in shown["detectors"]] == [*patterns.PRESETS["gb"], "ssn"]
        assert all(d["example"] for d in shown["detectors"])
        assert run(["policies", "secrets"]) == 0
        assert policy("secrets").identity in capsys.readouterr().out

    def test_p20_an_unknown_name_is_a_usage_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["policies", "uk"]) == 2
        assert "did you mean 'gb'" in capsys.readouterr().err
