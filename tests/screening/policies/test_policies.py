"""Policies: what each detector finds and leaves, identities, user patterns, failures, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from taciturn.errors import DataError, UsageError
from taciturn.screening import Everything, Policy, Regex, policy, policy_names
from taciturn.screening.policies import View
from taciturn.screening.policies.patterns import built_in
from taciturn.text.document import MASK
from taciturn.text.spans import Detection, Span
from timing import in_proportion

EXACT = [
    ("ssn", "078-05-1126"),
    ("ssn", "123\u201045\u20106789"),
    ("ssn", "123\u201345\u20136789"),
    ("ssn", "\uff11\uff12\uff13-\uff14\uff15-\uff16\uff17\uff18\uff19"),
    ("email", "dana.vale+news@mail.example.org"),
    ("email", "jösé@exämple.org"),
    ("phone", "980.322.8737"),
    ("phone", "(555) 010-1234"),
    ("phone", "001-555-010-1234x345"),
    ("phone", "+1 555 010 1234"),
    ("phone", "+44 20 7946 0958"),
    ("phone", "020 7946 0958"),
    ("phone", "07218068540"),
    ("phone", "01223 452587"),
    ("phone", "2774023767"),
    ("phone", "60-56-85-91"),
    ("card", "4111 1111 1111 1111"),
    ("card", "5500-0000-0000-0004"),
    ("card", "378282246310005"),
    ("iban", "GB82 WEST 1234 5698 7654 32"),
    ("iban", "de89370400440532013000"),
    ("reference", "7GAWK763"),
    ("order", "843-58572-7002"),
    ("tracking", "AGZIM5T6KL"),
    ("address", "65775 Craig Union North Zachary, WI 42884"),
    ("address", "10208 Denise Manors Apt. 433 Williamsfort, NY 68061"),
    ("address", "12 1st ave  san mateo, ny 75227"),
    ("address", "2164 Lincoln Ave"),
    ("address", "Unit 3001 Box 1474 DPO AE 96779"),
    ("street", "Regent Street City Centre"),
    ("postcode", "cb21db"),
    ("postcode", "CB2 1SJ"),
    ("url", "https://www.example.org/a?b=c"),
    ("ip", "192.168.0.1"),
    ("digits", "12,345.67"),
    ("digits", "17:15"),
    ("name", "Dana Vale-Ott"),
]


@pytest.mark.parametrize(("name", "value"), EXACT)
def test_a_detector_finds_exactly_the_value(name: str, value: str) -> None:
    cue = "My name is " if name == "name" else "it is "
    text = f"{cue}{value}, thanks."
    spans = policy(name).find([text])[0].spans
    assert [text[s.start : s.end] for s in spans] == [value]
    assert {s.detector for s in spans} == {name}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ssn", "000-12-3456, 666-12-3456, 123-00-4567 and 123-45-0000"),
        ("ssn", "1123-45-6789 and 123-45-67890"),
        ("card", "4111 1111 1111 1112"),
        ("card", "0000 0000 0000 0000"),
        ("iban", "GB83 WEST 1234 5698 7654 32"),
        ("phone", "at 17:15 on 12/10/2021, 3 people, order 843-58572-7002"),
        ("reference", "SUPERMAN 12345678 abcdefg1"),
        ("tracking", "2774023767 TRACKINGNO"),
        ("email", "me at home, 5@3, a@b"),
        ("postcode", "it is 65775 of them"),
        ("ip", "300.1.1.1 and 1.2.3.4.5"),
    ],
)
def test_a_detector_leaves_what_fails_its_check(name: str, text: str) -> None:
    assert policy(name).find([text])[0].spans == ()


def test_overlapping_findings_all_come_back_on_the_original_text() -> None:
    text = "card 4151 3217 6243 3448.com"
    spans = policy("card", Regex("host", r"[\w.]+\.com", must_find=("a.com",))).find([text])[0].spans
    assert [text[s.start : s.end] for s in spans] == ["4151 3217 6243 3448", "3448.com"]


def test_a_mask_is_never_marked_and_hides_no_neighbour() -> None:
    text = f"{MASK} and {MASK}, {MASK}-7GAWK763 {MASK}@"
    greedy = Policy((Regex("all", r"\w+", must_find=("a",)),), "greedy")
    for p in (policy("pii"), policy("conservative"), greedy):
        for span in p.find([text])[0].spans:
            assert "MASK" not in text[span.start : span.end].replace(MASK, "")
            assert text[span.start : span.end] != MASK
    assert [text[s.start : s.end] for s in greedy.find([text])[0].spans] == ["and", "7GAWK763"]


def test_names_compose_by_union_and_unknown_ones_name_the_nearest() -> None:
    assert [d.name for d in policy("ssn", policy("email", "ssn")).detectors] == ["ssn", "email"]
    with pytest.raises(UsageError, match="did you mean 'email'"):
        policy("emial")
    with pytest.raises(UsageError, match="no detector"):
        policy()
    with pytest.raises(UsageError, match="two different detectors"):
        policy("ssn", Regex("ssn", r"\d", must_find=("1",)))
    assert {"pii", "conservative", "all-private", "ssn"} <= set(policy_names())
    for name in policy_names():
        assert policy(name).detectors


def test_identity_follows_definitions_not_order_or_name() -> None:
    assert policy("ssn", "email").identity == policy("email", "ssn", name="mine").identity
    assert policy("ssn").identity != policy("email").identity
    one, two = (Regex("badge", p, must_find=("B-1",)) for p in (r"B-\d", r"B-\d+"))
    assert policy(one).identity != policy(two).identity
    assert policy(one).version == policy(one).identity[:8]


def test_all_private_covers_everything() -> None:
    everything = policy("all-private")
    assert everything.covers_all
    assert not policy("conservative").covers_all
    assert everything.find(["abc", ""])[0].spans == (Span(0, 3, "text", 1.0, "all-private"),)
    assert everything.find([""])[0].spans == ()
    assert Everything().covers_all


class TestUserPatterns:
    GOOD = """
[[detector]]
name = "badge"
pattern = 'B-\\d{5}'
must_find = ["badge B-10422"]
"""

    def write(self, folder: Path, text: str) -> Path:
        path = folder / "mine.toml"
        path.write_text(text, encoding="utf-8")
        return path

    def test_they_join_the_built_in_ones(self, tmp_path: Path) -> None:
        p = policy("ssn", file=self.write(tmp_path, self.GOOD))
        assert p.name == "ssn,mine.toml"
        assert [s.label for s in p.find(["B-10422 and 078-05-1126"])[0].spans] == ["badge", "ssn"]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("pattern", "patern", "did you mean 'pattern'"),
            ("[[detector]]", "[[detectors]]", "did you mean 'detector'"),
            ('["badge B-10422"]', "[]", "must_find"),
            ("B-10422", "C-10422", "example 1 is not found"),
            ("B-\\d{5}", "B-(", "does not compile"),
            ("B-\\d{5}", "(B-\\d+)+", "exponential"),
            ("'B-\\d{5}'", "5", "pattern"),
            ("[[detector]]", "[[detector", "not valid TOML"),
            ('name = "badge"', 'name = "badge"\ncheck = "lunh"', "did you mean 'luhn'"),
        ],
    )
    def test_mistakes_are_usage_errors(self, tmp_path: Path, old: str, new: str, message: str) -> None:
        with pytest.raises(UsageError, match=message):
            policy(file=self.write(tmp_path, self.GOOD.replace(old, new)))

    def test_a_missing_file_is_a_data_error(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match=r"absent\.toml"):
            policy(file=tmp_path / "absent.toml")


@dataclass(frozen=True)
class Broken:
    """Raises on texts with a trigger word; quotes the text in its message, as real detectors do."""

    name: str = "broken"
    trigger: str = field(default="trigger")

    def definition(self) -> Mapping[str, object]:
        return {"kind": "broken"}

    def find(self, views: Sequence[View]) -> list[Detection]:
        if any(self.trigger in v.text for v in views):
            raise RuntimeError("cannot digest: " + views[0].text)
        return [Detection(status="truncated") if "long" in v.text else Detection() for v in views]

    def local(self, view: View) -> bool:  # noqa: ARG002
        return False


def test_a_detector_that_fails_fails_only_its_texts() -> None:
    found = policy(Broken(), "ssn").find(["fine", "trigger 078-05-1126", "long"])
    assert [d.status for d in found] == ["ok", "error", "truncated"]
    assert [s.label for s in found[1].spans] == ["ssn"]


def test_offsets_hold_on_folded_text() -> None:
    text = "naïve № １２３‐４５‐６７８９ und ﬁn"
    (span,) = policy("ssn").find([text])[0].spans
    assert text[span.start : span.end] == "１２３‐４５‐６７８９"


@pytest.mark.parametrize(
    "unit", ["1", "12-", "a@", "+1", "1 a ", "4111 ", "A1", "a.", "www.", "Aa ", "(555", "St ", " ", ", "]
)
def test_adversarial_texts_take_linear_time(unit: str) -> None:
    """Four times the text may take about four times as long (eight allowed); a quadratic pattern takes sixteen."""
    wide, text = policy("pii", "digits", "name", "conservative"), unit * (200_000 // len(unit))
    wide.find(["warm 1 a@b"])
    assert in_proportion(lambda: wide.find([text[:50_000]]), lambda: wide.find([text[:200_000]]), 8, 0.5)


def test_ten_million_characters_in_one_text() -> None:
    text = "word " * 2_000_000 + "078-05-1126"
    spans = policy("pii").find([text])[0].spans
    assert {text[s.start : s.end] for s in spans} == {"078-05-1126"}


def test_every_built_in_example_is_tried() -> None:
    assert all(d.must_find for d in built_in().values())
    with pytest.raises(UsageError, match="example 2"):
        Regex("phone", r"\d{11}", must_find=("02079460958", "020 7946 0958"))
    with pytest.raises(UsageError, match="must_find is empty"):
        Regex("phone", r"\d{11}")


def test_a_detector_that_takes_too_long_loses_only_that_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is the processor's; a detector that catches everything does not catch the end of it."""
    from taciturn.screening.policies import base

    @dataclass(frozen=True)
    class Slow:
        name: str = "slow"

        def definition(self) -> Mapping[str, object]:
            return {"kind": "slow"}

        def find(self, views: Sequence[View]) -> list[Detection]:
            try:
                while any("stuck" in view.text for view in views):
                    pass
            except Exception:
                return []
            return [Detection((Span(0, 1),)) for _ in views]

        def local(self, view: View) -> bool:  # noqa: ARG002
            return False

    monkeypatch.setattr(base, "_PATIENCE", {False: (0.2, 0.0), True: (0.2, 0.0)})
    found = policy(Slow()).find(["one", "stuck", "two"])
    assert [(d.status, len(d.spans)) for d in found] == [("ok", 1), ("timeout", 0), ("ok", 1)]
    slow = Regex("slow", r"\w*\w*\w*\d", must_find=("a1",))
    assert [d.status for d in policy(slow).find(["a1", "1 " + "a" * 5000])] == ["ok", "timeout"]
