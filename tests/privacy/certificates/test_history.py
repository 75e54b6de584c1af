"""A corpus remembers its runs; what they spend together is never less than it is, and what does not compose is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError
from taciturn.mechanisms.registry import guarantees, verify
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import (
    KindsGaussian,
    NonPrivate,
    PoissonGaussian,
    SelectiveGaussian,
    TwoLevelGaussian,
)
from taciturn.privacy.accounting.rounding import up
from taciturn.privacy.certificates.certificate import issue, load_json, write_json
from taciturn.privacy.certificates.composed_runs import compose_runs
from taciturn.privacy.certificates.history import RUNS, Line, Paid, added, append, read_history
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.evidence import Evidence

OPEN, NOISY, OTHER = NonPrivate(("public", "skeletons")), PoissonGaussian(0.05, 2.0), PoissonGaussian(0.02, 1.0)
DELTA = 1e-5


def line(key="a", state="finished", steps=8, event=NOISY, **more):
    phases = (("public", "record", OPEN.to_json(), 6), ("private", "record", event.to_json(), steps))
    fields = {"date": "2026-01-01T00:00:00+00:00", "path": f"/runs/{key}", "mechanism": "crt", "seeded": False}
    return Line(key=key, state=state, relation="substitution", phases=phases, **fields | more)


def noised(run):
    return {each.event: each.steps for each in run.paid if not isinstance(each.event, NonPrivate)}


def test_lines_come_back_as_they_were_and_only_the_owner_reads_them(tmp_path: Path):
    assert read_history(tmp_path) == []
    for each in (line(state="begun", steps=10), line(), line("b", event=OTHER)):
        append(tmp_path, each)
    assert (tmp_path / RUNS).stat().st_mode & 0o777 == 0o600
    a, b = read_history(tmp_path)
    assert (a.last, noised(a), a.noised) == (line(), {NOISY: 8}, 8)
    assert (b.last.path, noised(b)) == ("/runs/b", {OTHER: 8})


@pytest.mark.parametrize(
    ("lines", "steps"),
    [
        ([("begun", 10)], 10),  # killed: all that was planned
        ([("begun", 10), ("stopped", 4)], 4),
        ([("begun", 10), ("stopped", 4), ("begun", 10)], 10),  # resumed, then killed
        ([("begun", 10), ("stopped", 4), ("begun", 10), ("finished", 10)], 10),
        ([("begun", 10), ("stopped", 7), ("begun", 10), ("stopped", 5)], 7),  # resumed from an older checkpoint
    ],
)
def test_a_run_that_was_killed_or_resumed_counts_in_full(lines, steps, tmp_path: Path):
    for state, count in lines:
        append(tmp_path, line(state=state, steps=count))
    (run,) = read_history(tmp_path)
    assert noised(run) == {NOISY: steps}


def test_a_damaged_line_is_named_and_stays_one_line(tmp_path: Path):
    append(tmp_path, line())
    with (tmp_path / RUNS).open("ab") as file:
        file.write(b'{"torn')
    append(tmp_path, line("b"))
    with pytest.raises(DataError, match="line 2"):
        read_history(tmp_path)
    content = (tmp_path / RUNS).read_bytes().splitlines(keepends=True)
    (tmp_path / RUNS).write_bytes(content[0] + content[2])
    assert len(read_history(tmp_path)) == 2


def test_runs_compose_as_one_run_of_all_their_steps():
    total = compose_runs([Paid("record", NOISY, 8), Paid("record", OTHER, 30), Paid("record", NOISY, 5)], DELTA)
    steps = [NOISY] * 13 + [OTHER] * 30
    assert [(g.notion, g.relation, g.status) for g in total] == [
        ("confidentiality", "substitution", "conditional"),
        ("dp", "add-remove", "conditional"),
    ]
    for found in total:
        assert found.epsilon == compose(steps, found.relation).epsilon(DELTA)
        open_ones = [each.text for each in found.assumptions if not each.enforced]
        assert any("did not depend on what earlier ones had learned" in text for text in open_ones)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from([NOISY, OTHER]), st.integers(1, 20)), min_size=1, max_size=4), st.randoms())
def test_the_order_does_not_matter_and_more_runs_never_cost_less(runs, shuffled):
    paid = [Paid("record", event, steps) for event, steps in runs]
    again = list(paid)
    shuffled.shuffle(again)
    assert added(paid) == added(again)
    whole = compose_runs(added(paid), DELTA)
    assert whole == compose_runs(added(again), DELTA)
    for each in paid:
        for all_of_them, one in zip(whole, compose_runs([each], DELTA), strict=True):
            assert all_of_them.epsilon >= one.epsilon * (1 - 1e-3)  # the grids of two compositions differ


def by(total):
    return {(g.notion, g.relation): g for g in total}


def test_skeletons_cost_a_secret_nothing_but_show_a_record():
    found = by(compose_runs([Paid("record", OPEN, 9), Paid("record", NOISY, 8)], DELTA))
    assert found["confidentiality", "substitution"].status == "conditional"
    assert found["dp", "add-remove"].status == "none"
    assert "skeletons" in found["dp", "add-remove"].reason
    public = by(compose_runs([Paid("record", NonPrivate(("public",)), 9), Paid("record", NOISY, 8)], DELTA))
    assert "public records are not protected" in public["dp", "add-remove"].unit
    assert math.isfinite(public["dp", "add-remove"].epsilon)


def test_plain_steps_on_redacted_text_leave_only_what_is_detected():
    found = by(compose_runs([Paid("record", NonPrivate(("redacted",)), 9), Paid("record", NOISY, 8)], DELTA))
    assert found["confidentiality", "substitution"].epsilon == math.inf
    assert found["sdp", "substitution"].epsilon == compose({NOISY: 8}, "substitution").epsilon(DELTA)
    plain = by(compose_runs([Paid("record", NonPrivate(("original",)), 9)], DELTA))
    assert all("original" in g.reason for g in plain.values())


@pytest.mark.parametrize(
    ("unit", "event"),
    [
        ("user-entity", NOISY),
        ("user-entity", KindsGaussian((0.1, 0.2), 2.0)),
        ("user-entity", TwoLevelGaussian(0.1, 0.5, 3, 2, 1, 2.0)),
        ("record", SelectiveGaussian(0.1, 1.0, 1.0, 2)),
    ],
)
def test_steps_that_do_not_compose_are_listed_and_refused(unit, event):
    for total in compose_runs([Paid("record", NOISY, 8), Paid(unit, event, 3)], DELTA):
        assert (total.status, total.epsilon) == ("none", math.inf)
        assert "3 steps" in total.reason
        assert "do not compose" in total.reason
        assert event.to_json()["event"] in total.reason


def test_a_users_run_counts_for_a_secret_and_not_for_a_record_more_or_less():
    found = by(compose_runs([Paid("record", NOISY, 8), Paid("user", OTHER, 30)], DELTA))
    both = compose({NOISY: 8, OTHER: 30}, "substitution").epsilon(DELTA)
    assert found["confidentiality", "substitution"].epsilon == both
    assert "units of the kind user" in found["dp", "add-remove"].reason
    assert "units of the kind record" in found["user-dp", "add-remove"].reason
    alone = by(compose_runs([Paid("user", OTHER, 30)], DELTA))["user-dp", "add-remove"]
    assert alone.epsilon == compose({OTHER: 30}, "add-remove").epsilon(DELTA)


def test_a_stored_seed_in_any_run_leaves_nothing():
    for total in compose_runs([Paid("record", NOISY, 8), Paid("record", OTHER, 3, seeded=True)], DELTA):
        assert total.status == "none"
        assert "seed" in total.reason


@pytest.mark.parametrize(
    "wrong",
    [{}, {"unit": "record"}, Paid("record", NOISY, 1).to_json() | {"steps": -1},
     Paid("record", NOISY, 1).to_json() | {"steps": 1.5}, Paid("record", NOISY, 1).to_json() | {"more": 1},
     Paid("record", NOISY, 1).to_json() | {"event": {"event": "laplace"}}],
)  # fmt: skip
def test_steps_that_are_none_are_refused(wrong):
    with pytest.raises(DataError, match="other runs"):
        Paid.from_json(wrong)
    assert Paid.from_json(Paid("user", OTHER, 3, True).to_json()) == Paid("user", OTHER, 3, True)


def certified(folder: Path, evidence: Evidence):
    plan = {
        "mechanism": "dpsgd", "relation": "substitution", "target": None, "corpus_key": "abc",
        "seeds": {"noise": "os"},
        "phases": [{"name": "private", "reads": ["original"], "records": 40, "steps": 8, "event": NOISY.to_json()}],
    }  # fmt: skip
    (folder / "model").mkdir(parents=True)
    (folder / "model/model.safetensors").write_bytes(b"weights")
    write_json(folder / "plan.json", plan)
    write_json(folder / "evidence.json", evidence.to_json())
    with Ledger.create(folder / "ledger.jsonl") as ledger:
        for step in range(8):
            ledger.append(step, "private", NOISY)
    certificate = issue(folder, guarantees)
    certificate.write(folder / "certificate.json")
    assert verify(folder / "certificate.json") == []
    return certificate


def test_a_certificate_says_whether_other_runs_are_counted(tmp_path: Path):
    none = certified(tmp_path / "none", Evidence(DELTA, redacted=False, protected=40))
    assert none.other_runs["known"] is None
    assert "not known" in none.other_runs["words"]
    first = certified(tmp_path / "first", Evidence(DELTA, redacted=False, protected=40, other_runs=0))
    assert "count this run alone: no other run on this corpus is recorded" in first.other_runs["words"]
    steps = (Paid("record", OTHER, 30).to_json(),)
    third = certified(
        tmp_path / "third", Evidence(DELTA, redacted=False, protected=40, other_runs=2, other_steps=steps)
    )
    assert third.guarantees[0]["epsilon"] == first.guarantees[0]["epsilon"]
    total = third.other_runs["together"][0]
    assert total["epsilon"] == up(compose({NOISY: 8, OTHER: 30}, "substitution").epsilon(DELTA))
    assert "2 other runs on this corpus are recorded" in third.other_runs["words"]
    assert "not counted in them. Counted together, all 3 spend" in third.other_runs["words"]
    assert [none.other_runs["counted_by"], third.other_runs["counted_by"]] == [None, "composition"]
    assert third.release


def test_other_runs_cannot_be_edited_away(tmp_path: Path):
    steps = (Paid("record", OTHER, 30).to_json(),)
    certified(tmp_path / "run", Evidence(DELTA, redacted=False, protected=40, other_runs=1, other_steps=steps))
    evidence = load_json(tmp_path / "run/evidence.json")
    write_json(tmp_path / "run/evidence.json", evidence | {"other_runs": 0, "other_steps": []})
    fields = {m.field for m in verify(tmp_path / "run/certificate.json")}
    assert {"other_runs.known", "other_runs.words", "evidence_digest"} <= fields
    write_json(tmp_path / "run/evidence.json", evidence | {"other_runs": 0})
    assert any("other_steps" in m.recomputed for m in verify(tmp_path / "run/certificate.json"))
