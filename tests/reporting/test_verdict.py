"""The verdict: never better than the worst of claims, attacks and labels; worse evidence never makes it better."""

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
from taciturn.privacy.accounting.tradeoff import TradeOff
from taciturn.privacy.certificates.certificate import issue
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, Status
from taciturn.privacy.guarantees.premises import COVERED
from taciturn.privacy.guarantees.release import LEAN, not_to_lean_on
from taciturn.privacy.guarantees.statements import miss_rates
from taciturn.reporting import RunView, card, data, render
from taciturn.reporting.sections import front
from taciturn.reporting.verdict import MOST, Cause, Verdict, headline, verdict

RANK = {"may be released": 0, "not yet": 1, "do not": 2}
STATUSES: list[Status] = ["proved", "conditional", "estimate", "none", "refuted"]
VERDICTS = ["no leak found", "inconclusive", "leak"]
FOUND_AT_MOST = [0.05, LEAN, 0.51, 1.0]


def claim(status: Status, found: float = 0.05, rests: tuple[Assumption, ...] = ()) -> Guarantee:
    empty = status in ("none", "refuted")
    epsilon, reason = (math.inf, "why") if empty else (3.0, "")
    told = TradeOff(1.0, 0.0, 0.01, found)
    if status == "conditional" and not rests:
        rests = (COVERED,)
    return Guarantee(
        "confidentiality", "a secret", "substitution", epsilon, 1e-5, status, "t", "a", rests, reason, {}, told
    )  # fmt: skip


def finding(kind: str) -> Finding:
    return Finding("exposure", 1.0, "bits", None, {}, {}, kind)  # type: ignore[arg-type]


def labels(labelled: int, missed: int) -> Evidence:
    if not labelled:
        return Evidence(1e-5)
    return Evidence(1e-5, labelled=labelled, missed_by_pi=labelled, missed_by_both=missed)


CLAIMS = st.lists(st.tuples(st.integers(0, len(STATUSES) - 1), st.integers(0, len(FOUND_AT_MOST) - 1)), max_size=3)
FOUND = st.lists(st.integers(0, len(VERDICTS) - 1), max_size=3)
AGAINST = st.one_of(st.none(), st.integers(0, 2))
LABELS = st.integers(0, 200).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, min(n, 3))))


def at(claims: list[tuple[int, int]], found: list[int], against: int | None, known: tuple[int, int]) -> Verdict:
    made = [claim(STATUSES[i], FOUND_AT_MOST[j]) for i, j in claims]
    said = None if against is None else ["why"] * against
    return verdict(made, made, said, [finding(VERDICTS[i]) for i in found] or None, labels(*known))


def rank(*case: Any) -> int:
    return RANK[at(*case).word]


@given(CLAIMS, FOUND, AGAINST, LABELS, st.data())
def test_whatever_gets_worse_the_word_gets_no_better(
    claims: list[tuple[int, int]], found: list[int], against: int | None, known: tuple[int, int], data: st.DataObject
) -> None:
    before = rank(claims, found, against, known)
    if against is not None:
        assert rank(claims, found, against + 1, known) >= before
        if claims:
            i = data.draw(st.integers(0, len(claims) - 1))
            worse = tuple(data.draw(st.integers(claims[i][part], most)) for part, most in ((0, 4), (1, 3)))
            # a proved claim that becomes conditional asks for labels; one that is no bound any more asks for none
            assert rank([*claims[:i], worse, *claims[i + 1 :]], found, against, known) >= before
            assert rank([*claims, worse], found, against, known) >= before
    if found:
        i = data.draw(st.integers(0, len(found) - 1))
        worse_found = data.draw(st.integers(found[i], len(VERDICTS) - 1))
        assert rank(claims, [*found[:i], worse_found, *found[i + 1 :]], against, known) >= before
        assert rank(claims, [*found, worse_found], against, known) >= before
    labelled, missed = known
    if missed < labelled:
        assert rank(claims, found, against, (labelled, missed + 1)) >= before
    if missed == 0:
        assert rank(claims, found, against, (data.draw(st.integers(0, labelled)), 0)) >= before


@given(CLAIMS, FOUND, AGAINST, LABELS)
def test_what_is_not_known_is_never_passed(
    claims: list[tuple[int, int]], found: list[int], against: int | None, known: tuple[int, int]
) -> None:
    """Without a certificate, without attacks or without labels where a claim rests on them: not yet, at best."""
    assert rank(claims, found, None, known) >= 1
    assert rank(claims, [], against, known) >= 1
    if any(STATUSES[i] == "conditional" for i, _ in claims):
        assert rank(claims, found, against, (0, 0)) >= 1


@given(CLAIMS, FOUND, AGAINST, LABELS)
def test_it_may_be_released_if_and_only_if_nothing_is_left(
    claims: list[tuple[int, int]], found: list[int], against: int | None, known: tuple[int, int]
) -> None:
    whole = at(claims, found, against, known)
    strong = claims and all(i in (0, 1) and FOUND_AT_MOST[j] <= LEAN for i, j in claims)
    asked = any(i == 1 for i, _ in claims)
    enough = not asked or (known[0] > 0 and known[1] == 0 and miss_rates(labels(*known))["delta2"] <= 0.1)
    clear = strong and found and set(found) == {0} and against == 0 and enough
    assert (whole.word == "may be released") == bool(clear)
    assert 1 <= len(whole.reasons) <= MOST
    if whole.word != "may be released":
        causes = [each.cause for each in whole.all_reasons]
        assert causes == sorted(causes)  # heaviest first
        assert {each.word for each in whole.all_reasons if each.text in whole.reasons} == {whole.word}


def one(**changed: Any) -> Verdict:
    """Of a model against which nothing stands, but for what is changed."""
    known: dict[str, Any] = {
        "claims": [claim("conditional")],
        "guarantees": [],
        "against": [],
        "findings": [finding("no leak found")],
        "evidence": labels(60, 0),
    }
    return verdict(**known | changed)


EXCEEDED = replace(finding("leak"), detail={"certificate": {"exceeded": True}})
CASES: dict[Cause, dict[str, Any]] = {
    Cause.EXCEEDED: {"findings": [EXCEEDED]},
    Cause.LEAK: {"findings": [finding("leak")]},
    Cause.REFUTED: {"evidence": labels(60, 1)},
    Cause.WITHHELD: {"against": ["not for release: the seed was stored"]},
    Cause.UNBOUNDED: {"claims": [claim("estimate")]},
    Cause.WEAK: {"claims": [claim("conditional", 0.93)]},
    Cause.UNCERTIFIED: {"claims": [], "against": None},
    Cause.UNATTACKED: {"findings": None},
    Cause.UNLABELLED: {"evidence": labels(0, 0)},
    Cause.FEW_LABELS: {"evidence": labels(20, 0)},
    Cause.INCONCLUSIVE: {"findings": [finding("inconclusive")]},
}


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_alone_decides(cause: Cause) -> None:
    found = one(**CASES[cause])
    assert [each.cause for each in found.all_reasons] == [cause]
    assert found.word == ("do not" if cause < Cause.UNCERTIFIED else "not yet")
    assert str(found).startswith(f"{found.word}: ")


def test_the_reasons_are_sentences_with_their_numbers() -> None:
    assert one(**CASES[Cause.WITHHELD]).reasons == ("the seed was stored",)
    assert "at most" in one(**CASES[Cause.REFUTED]).reasons[0]
    assert "20 labels leave open that the policies miss 14 % of secrets" in one(**CASES[Cause.FEW_LABELS]).reasons[0]
    assert "29 without a miss" in one(**CASES[Cause.FEW_LABELS]).reasons[0]
    assert "93 % of cases, more than half" in one(**CASES[Cause.WEAK]).reasons[0]
    for_it = one().reasons
    assert for_it[0].startswith("at 1 % false alarms an attack finds at most 5 % of cases (confidentiality of a secret")
    assert "neighbours by substitution: ε = 3, δ = 1e-05, conditional" in for_it[0]
    assert for_it[1] == "no leak was found by exposure"
    assert "both policies 0 (at most 4.88 %)" in for_it[2]


def test_a_refutation_that_the_certificate_repeats_is_told_once() -> None:
    said = "evidence refutes a condition of what was to be promised: why"
    found = one(claims=[claim("refuted")], against=[said])
    assert [each.cause for each in found.all_reasons] == [Cause.REFUTED, Cause.UNBOUNDED]


@given(st.floats(0, 200), st.floats(0, 1), st.sampled_from(STATUSES))
def test_what_nobody_should_lean_on(epsilon: float, found: float, status: Status) -> None:
    made = claim(status, found)
    assert bool(not_to_lean_on(made)) == (status not in ("proved", "conditional") or found > LEAN)
    if status == "proved":  # without a curve, what (ε, δ) alone allows
        bare = replace(made, epsilon=epsilon, trade_off=None)
        assert bool(not_to_lean_on(bare)) == (1e-5 + 0.01 * math.exp(min(epsilon, 100)) > LEAN)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["do not"], "mail 0: do not release"),
        (["not yet"], "mail 0: not to be released yet"),
        (["may be released"], "mail 0 may be released"),
        (["do not", "not yet"], "None of 2 models may be released"),
        (["may be released", "do not", "not yet"], "1 of 3 models may be released"),
    ],
)
def test_the_headline_counts_what_may_go_out(words: list[Any], said: str) -> None:
    assert headline({f"mail {i}": Verdict(word, ()) for i, word in enumerate(words)}) == said


def quiet(folder: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> RunView:
    """A run whose attacks all found nothing."""
    audit = json.loads((folder / "audit.json").read_text())
    for each in audit["findings"]:
        each["verdict"] = "no leak found"
    change(audit)
    (folder / "audit.json").write_text(json.dumps(audit))
    return RunView.load(folder)


def certified_again(folder: Path, **evidence: Any) -> None:
    known = json.loads((folder / "evidence.json").read_text())
    (folder / "evidence.json").write_text(json.dumps(known | evidence))
    issue(folder, guarantees).write(folder / "certificate.json")


def told(run: RunView) -> tuple[str, list[str]]:
    (found,) = data([run])["verdicts"]
    return found["word"], found["causes"]


def test_a_model_that_was_only_redacted_is_never_released(make_run: Callable[..., Path]) -> None:
    assert told(quiet(make_run("redacted", "redacted"))) == ("do not", ["withheld", "unbounded"])
    both = data([quiet(make_run("redacted-too", "redacted")), quiet(make_run("crt"))])
    assert both["headline"] == "1 of 2 models may be released"


def test_an_inconclusive_attack_is_said_to_decide_nothing(make_run: Callable[..., Path]) -> None:
    def change(audit: dict[str, Any]) -> None:
        audit["findings"][0]["verdict"] = "inconclusive"

    run = quiet(make_run("crt"), change)
    assert told(run) == ("not yet", ["inconclusive"])
    content = data([run])
    assert content["headline"] == "crt: not to be released yet"
    assert "The exposure attack decided nothing about crt." in content["told"]
    assert not [line for line in content["told"] if "found no leak" in line]
    assert told(quiet(make_run("clear"))) == ("may be released", [])


def test_a_plan_that_was_allowed_although_it_cannot_learn_is_withheld(make_run: Callable[..., Path]) -> None:
    folder = make_run("crt")
    certified_again(folder, allowed=["cannot-learn"])
    assert told(quiet(folder)) == ("do not", ["withheld"])


def test_a_refuted_claim_is_in_verdict_page_and_card_with_its_bound(make_run: Callable[..., Path]) -> None:
    folder = make_run("crt")
    certified_again(folder, labelled=21, missed_by_pi=11, missed_by_both=11)
    run = quiet(folder)
    missed = "11 of 21 labelled secrets are marked whole by no policy: at most 71.5 % with 95 % confidence"
    assert told(run)[0] == "do not"
    assert data([run])["verdicts"][0]["reasons"][0] == f"evidence refutes what was to be promised: {missed}"
    assert missed in render([run])
    assert missed in card.render(run)
    assert "**refuted**" in card.render(run)
    assert told(replace(run, findings=(finding("leak"),)))[1][0] == "leak"


@pytest.mark.parametrize("without", [("audit.json",), ("certificate.json",), ("evidence.json",)])
def test_what_was_not_done_is_not_passed(make_run: Callable[..., Path], without: tuple[str, ...]) -> None:
    folder = make_run("crt")
    quiet(folder)
    for name in without:
        (folder / name).unlink()
    assert told(RunView.load(folder))[0] == "not yet"


def test_a_run_has_the_name_it_was_given(make_run: Callable[..., Path]) -> None:
    folder = make_run("1")
    assert RunView.load(folder).name == "1"
    (folder / "run.toml").write_text('name = "mail of 2024"\n', "utf-8")
    assert RunView.load(folder).name == "mail of 2024"
    assert "<h1>mail of 2024 may be released</h1>" in render([RunView.load(folder)])


def test_nobody_hears_an_epsilon_without_its_words(make_run: Callable[..., Path]) -> None:
    run = quiet(make_run("crt"))
    facts = {each["what"]: each["said"] for each in front.front(run, "crt", 0)["facts"]}
    holds = facts["What holds"]
    for piece in ("confidentiality of a secret in one record", "substitution", "δ = 8e-05", "conditional", "μ = "):
        assert piece in holds
    assert "at 1 % false alarms an attack finds at most" in holds
    assert facts["Missed by the policies"].startswith("of 200 labelled secrets the policy misses 20 (at most 14.2 %)")
    assert facts["Digest"] == str((run.certificate or {})["digest"])[:16]
    assert facts[front.WITHOUT_NOISE] == "not counted"
    assert "**May be released, provided that the 2 open assumptions hold.**" in card.render(run)
    counted = front.without_noise(replace(run, tokens={"tokens": 3000, "without_noise": 2999}))
    assert counted == "100 % of 3,000 tokens"
    assert front.without_noise(replace(run, tokens={"tokens": 0, "without_noise": 0})) == "0 % of 0 tokens"


def test_the_share_read_without_noise_stays_in_the_house(make_run: Callable[..., Path]) -> None:
    folder = make_run("crt")
    (folder / "tokens.json").write_text('{"tokens": 71003, "without_noise": 43119}')
    run = quiet(folder)
    assert "60.8\xa0% of 71,003 tokens" in render([run])
    assert "71,003" not in card.render(run)
    assert front.WITHOUT_NOISE not in card.render(run)


def test_a_claim_that_is_no_protection_is_listed_as_not_covered(make_run: Callable[..., Path]) -> None:
    """ε = 188 of all records of a user is a bound, and no protection."""
    folder = make_run("many", "classifier")
    certified_again(folder, records_per_user=80)
    run = quiet(folder)
    weak = [g for g in run.guarantees if "user" in g.unit]
    assert weak
    assert all(g.finite and g.status == "proved" for g in weak)
    content = data([run])
    not_covered = {each["unit"] for each in content["protected"][0]["not_covered"]}
    assert {g.unit for g in weak} <= not_covered
    assert {c["unit"] for c in content["claims"] if not c["lean"]} == not_covered
    written = card.render(run)
    promised, rest = written.split("## What is not covered")
    for g in weak:
        assert card._plain(g.words()) not in promised
        assert card._plain(g.words()) in rest
    assert 'class="badge bad">proved, no protection</span>' in render([run])


def test_a_claim_about_one_secret_that_is_no_protection_decides(make_run: Callable[..., Path]) -> None:
    run = quiet(make_run("crt"))
    weak = tuple(replace(g, epsilon=30.0, trade_off=TradeOff(9.0, 0.0, 0.01, 0.999)) if g.finite else g
                 for g in run.guarantees)  # fmt: skip
    assert told(replace(run, guarantees=weak)) == ("do not", ["weak"])
