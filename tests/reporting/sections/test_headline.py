"""The headline is never better than the worst of claims, attacks and evidence."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.auditing.finding import Finding
from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.certificates.certificate import issue
from taciturn.privacy.guarantees.guarantee import Guarantee, Status
from taciturn.reporting import RunView, card, data, render
from taciturn.reporting.sections.headline import Outcome, headline, outcome

STATUSES: list[Status] = ["proved", "conditional", "estimate", "none", "refuted"]
VERDICTS = ["no leak found", "inconclusive", "leak"]


def claim(status: Status) -> Guarantee:
    empty = status in ("none", "refuted")
    epsilon, reason = (math.inf, "why") if empty else (1.0, "")
    return Guarantee("confidentiality", "a secret", "substitution", epsilon, 1e-5, status, "t", "a", reason=reason)


def finding(verdict: str) -> Finding:
    return Finding("exposure", 1.0, "bits", None, {}, {}, verdict)  # type: ignore[arg-type]


def at(claims: list[int], found: list[int], against: int | None) -> Outcome:
    said = None if against is None else ["why"] * against
    return outcome([claim(STATUSES[i]) for i in claims], [finding(VERDICTS[i]) for i in found], said)


CLAIMS = st.lists(st.integers(0, len(STATUSES) - 1), max_size=4)
FOUND = st.lists(st.integers(0, len(VERDICTS) - 1), max_size=4)
AGAINST = st.integers(0, 3)


@given(CLAIMS, FOUND, AGAINST, st.data())
def test_whatever_gets_worse_the_headline_gets_no_better(
    claims: list[int], found: list[int], against: int, data: st.DataObject
) -> None:
    before = at(claims, found, against)
    assert at(claims, found, against + 1) >= before
    assert at(claims, found, None) >= min(before, Outcome.UNBOUNDED)
    if claims:
        i = data.draw(st.integers(0, len(claims) - 1))
        worse = data.draw(st.integers(claims[i], len(STATUSES) - 1))
        assert at([*claims[:i], worse, *claims[i + 1 :]], found, against) >= before
        assert at([*claims, worse], found, against) >= before
    if found:
        i = data.draw(st.integers(0, len(found) - 1))
        worse = data.draw(st.integers(found[i], len(VERDICTS) - 1))
        assert at(claims, [*found[:i], worse, *found[i + 1 :]], against) >= before
        assert at(claims, [*found, worse], against) >= before


@given(CLAIMS, FOUND, AGAINST)
def test_it_is_no_better_than_any_of_the_three_alone(claims: list[int], found: list[int], against: int) -> None:
    whole = at(claims, found, against)
    assert whole == max(at(claims, [0], 0), at([0], found, 0), at([0], [0], against))
    clear = claims and set(claims) <= {0, 1} and found and set(found) == {0} and not against
    assert (whole is Outcome.CLEAR) == bool(clear)


@given(st.lists(st.sampled_from(list(Outcome)), min_size=1, max_size=5))
def test_no_leak_found_is_said_of_all_or_of_none(stands: list[Outcome]) -> None:
    assert headline(stands).startswith("No leak found") == (set(stands) == {Outcome.CLEAR})


def quiet(folder: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> RunView:
    """A run whose attacks all found nothing."""
    audit = json.loads((folder / "audit.json").read_text())
    for each in audit["findings"]:
        each["verdict"] = "no leak found"
    change(audit)
    (folder / "audit.json").write_text(json.dumps(audit))
    return RunView.load(folder)


def test_a_model_that_was_only_redacted_is_never_without_leak(make_run: Callable[..., Path]) -> None:
    told = data([quiet(make_run("redacted", "redacted"))])
    assert told["headline"] == "This model is not for release"
    both = data([quiet(make_run("redacted-too", "redacted")), quiet(make_run("crt"))])
    assert both["headline"] == "1 of 2 models is not for release"


def test_an_inconclusive_attack_is_said_to_decide_nothing(make_run: Callable[..., Path]) -> None:
    def change(audit: dict[str, Any]) -> None:
        audit["findings"][0]["verdict"] = "inconclusive"

    told = data([quiet(make_run("crt"), change)])
    assert told["headline"] == "The attacks on this model decide nothing"
    assert "The exposure attack decided nothing about crt." in told["verdict"]
    assert not [line for line in told["verdict"] if "found no leak" in line]
    assert data([quiet(make_run("clear"))])["headline"] == "No leak found in this model"


def test_a_plan_that_was_allowed_although_it_cannot_learn_is_withheld(make_run: Callable[..., Path]) -> None:
    folder = make_run("crt")
    evidence = json.loads((folder / "evidence.json").read_text())
    (folder / "evidence.json").write_text(json.dumps(evidence | {"allowed": ["cannot-learn"]}))
    issue(folder, guarantees).write(folder / "certificate.json")
    assert data([quiet(folder)])["headline"] == "This model is not for release"


def test_a_refuted_claim_is_in_headline_page_and_card_with_its_bound(make_run: Callable[..., Path]) -> None:
    folder = make_run("crt")
    evidence = json.loads((folder / "evidence.json").read_text())
    evidence |= {"labelled": 21, "missed_by_pi": 11, "missed_by_both": 11}
    (folder / "evidence.json").write_text(json.dumps(evidence))
    certificate = issue(folder, guarantees)
    certificate.write(folder / "certificate.json")
    assert certificate.release is False
    run = quiet(folder)
    missed = "11 of 21 labelled secrets are marked whole by no policy: at most 71.5 % with 95 % confidence"
    told = data([run])
    assert told["headline"] == f"Evidence refutes what this model was to promise: {missed}"
    assert missed in render([run])
    assert missed in card.render(run)
    assert "**refuted**" in card.render(run)
    leaking = replace(run, findings=(finding("leak"),))
    assert data([leaking])["headline"] == "This model gives secrets away"


@pytest.mark.parametrize("without", [("audit.json",), ("certificate.json",)])
def test_what_was_not_done_is_not_passed(make_run: Callable[..., Path], without: tuple[str, ...]) -> None:
    folder = make_run("crt")
    quiet(folder)
    for name in without:
        (folder / name).unlink()
    assert not data([RunView.load(folder)])["headline"].startswith("No leak")
