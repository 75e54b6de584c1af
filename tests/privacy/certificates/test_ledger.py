from __future__ import annotations

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, GuaranteeError, MismatchError, UsageError
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.ledger import Ledger, entries
from taciturn.privacy.certificates.ledger_lines import digest_after, is_finished, sealed

OPEN = NonPrivate(("public",))
NOISY = PoissonGaussian(0.1, 1.5)
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(path, steps=12):
    with Ledger.create(path) as ledger:
        for step in range(steps):
            ledger.append(step, "public" if step % 3 == 0 else "private", OPEN if step % 3 == 0 else NOISY)
    return Ledger.read(path)


def test_what_was_written_is_read(tmp_path):
    ledger = write(tmp_path / "l.jsonl")
    assert len(ledger) == 12
    assert ledger.counts() == {OPEN: 4, NOISY: 8}
    assert ledger.counts("private") == {NOISY: 8}
    assert ledger.counts("nowhere") == {}
    assert ledger.phases() == {"public": 4, "private": 8}
    assert [e.n for e in entries(tmp_path / "l.jsonl")] == list(range(12))


def test_each_step_is_on_disk_before_the_next(tmp_path):
    ledger = Ledger.create(tmp_path / "l.jsonl")
    for step in range(5):
        ledger.append(step, "private", NOISY)
        assert len(Ledger.read(tmp_path / "l.jsonl")) == step + 1
    ledger.close()


def test_a_history_is_never_overwritten(tmp_path):
    write(tmp_path / "l.jsonl")
    with pytest.raises(DataError, match="already exists"):
        Ledger.create(tmp_path / "l.jsonl")
    with pytest.raises(UsageError):
        Ledger.read(tmp_path / "l.jsonl").append(99, "private", NOISY)


def test_steps_do_not_go_back(tmp_path):
    with Ledger.create(tmp_path / "l.jsonl") as ledger:
        ledger.append(3, "private", NOISY)
        with pytest.raises(UsageError, match="step 2"):
            ledger.append(2, "private", NOISY)


@quick
@given(st.data())
def test_any_changed_byte_is_found_and_the_line_named(tmp_path, data):
    path = tmp_path / "l.jsonl"
    path.unlink(missing_ok=True)
    write(path)
    raw = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at] = data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]))
    path.write_bytes(raw)
    with pytest.raises(GuaranteeError, match="line "):
        Ledger.read(path)


@quick
@given(st.data())
def test_dropped_doubled_or_swapped_lines_are_found(tmp_path, data):
    path = tmp_path / "l.jsonl"
    path.unlink(missing_ok=True)
    before = write(path)
    lines = path.read_bytes().splitlines(keepends=True)
    i, j = data.draw(st.tuples(st.integers(0, 10), st.integers(0, 10)).filter(lambda p: p[0] != p[1]))
    change = data.draw(st.sampled_from(["drop", "double", "swap"]))
    if change == "drop":
        del lines[i]
    elif change == "double":
        lines.insert(i, lines[i])
    else:
        lines[i], lines[j] = lines[j], lines[i]
    path.write_bytes(b"".join(lines))
    with pytest.raises(GuaranteeError, match="line "):
        Ledger.read(path)
    path.write_bytes(b"".join(lines[:i]))  # a cut at a line's end leaves a valid, shorter chain: the digest tells
    if change != "swap" or i < j:
        assert Ledger.read(path).digest != before.digest


def test_an_unknown_event_is_refused_even_with_a_right_hash(tmp_path):
    path = tmp_path / "l.jsonl"
    with Ledger.create(path) as ledger:

        class Sly:
            def to_json(self):
                return {"event": "free-lunch"}

        ledger.append(0, "private", Sly())  # type: ignore[arg-type]
    with pytest.raises(GuaranteeError, match="line 1: event 'free-lunch' is unknown"):
        Ledger.read(path)


def test_a_torn_last_line_is_repaired_by_resuming_and_refused_by_reading(tmp_path):
    path = tmp_path / "l.jsonl"
    whole = write(path)
    intact = path.read_bytes()
    path.write_bytes(intact + intact.splitlines()[-1][:40])
    with pytest.raises(GuaranteeError, match="line 13: torn"):
        Ledger.read(path)
    with Ledger.resume(path) as ledger:
        assert (len(ledger), ledger.digest) == (12, whole.digest)
        ledger.append(12, "private", NOISY)
    assert len(Ledger.read(path)) == 13


def at(path, lines):
    """What a checkpoint after so many lines has kept."""
    return lines, digest_after(path, lines)


@pytest.mark.parametrize("keep", [0, 1, 7, 12])
def test_steps_that_are_repeated_are_the_lines_that_are_there(tmp_path, keep):
    straight = write(tmp_path / "l.jsonl")
    before = straight.path.read_bytes()
    with Ledger.resume(straight.path, at(straight.path, keep)) as ledger:
        assert ledger.ahead == (keep < 12)
        for step in range(keep, 12):
            assert ledger.position == at(straight.path, step)
            if step < 11:
                with pytest.raises(UsageError, match="there are steps after line"):
                    ledger.append(step, "private", NOISY)
            assert not ledger.repeat(step, "private", NOISY, "another release")
            assert ledger.repeat(step, "public" if step % 3 == 0 else "private", OPEN if step % 3 == 0 else NOISY, None)
        assert not ledger.ahead
        assert not ledger.repeat(12, "private", NOISY, None)
    assert straight.path.read_bytes() == before


def test_lost_steps_stay_and_count_and_their_steps_may_come_again(tmp_path):
    path = tmp_path / "l.jsonl"
    write(path)
    before = path.read_bytes()
    with Ledger.resume(path, at(path, 7)) as ledger:
        ledger.go_on()
        assert (ledger.done(), ledger.lost()) == ({OPEN: 3, NOISY: 4}, {OPEN: 1, NOISY: 4})
        for step in (7, 8):
            ledger.append(step, "private", NOISY, "f00d")
        with pytest.raises(UsageError, match="step 8 comes after step 8"):
            ledger.append(8, "private", NOISY)
    assert path.read_bytes().startswith(before)
    found = Ledger.read(path)
    assert found.counts() == {OPEN: 4, NOISY: 10}
    assert found.by_phase() == {"public": {OPEN: 4}, "private": {NOISY: 10}}
    assert found.done() == {OPEN: 3, NOISY: 6}
    assert [(row["phase"], row["steps"], row["lost"]) for row in found.summary()] == [
        ("public", 4, 1),
        ("private", 10, 4),
    ]
    with Ledger.resume(path, at(path, 3)) as ledger:  # further back: the mark is passed over, not what came before it
        assert [
            ledger.repeat(n, "public" if n % 3 == 0 else "private", OPEN if n % 3 == 0 else NOISY, None)
            for n in range(3, 7)
        ]
        assert ledger.position == at(path, 7)
        assert ledger.repeat(7, "private", NOISY, "f00d")
        assert ledger.position == at(path, 14)
    with Ledger.resume(path, at(path, 9)) as ledger:  # a state of steps that were lost: nothing after it is its own
        assert ledger.ahead
        assert not ledger.repeat(7, "private", NOISY, "f00d")
        ledger.go_on()
        assert ledger.done() == {OPEN: 3, NOISY: 6}
        assert ledger.lost() == {OPEN: 1, NOISY: 4}
    assert Ledger.read(path).counts() == {OPEN: 4, NOISY: 10}


@quick
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 30)), max_size=6))
def test_the_state_and_the_lost_agree_with_a_list_that_is_kept_by_hand(tmp_path, stops):
    """Steps are done, and a run goes on from any earlier state, over and over."""
    path = tmp_path / "l.jsonl"
    path.unlink(missing_ok=True)
    Ledger.create(path).close()
    states = [[]]  # after so many lines: the steps that the state holds
    steps = 0
    for more, back in stops:
        back = min(back, len(states) - 1)
        with Ledger.resume(path, at(path, back)) as ledger:
            if ledger.ahead:
                ledger.go_on()
                states.append(states[back])
            elif states[back] != states[-1]:
                raise AssertionError("steps were forgotten")
            for _ in range(more):
                step = len(states[-1])
                ledger.append(step, "private", NOISY)
                states.append([*states[-1], len(states)])
            steps += more
    found = Ledger.read(path)
    assert found.counts().get(NOISY, 0) == steps
    assert found.done().get(NOISY, 0) == len(states[-1])
    assert found.lost().get(NOISY, 0) == steps - len(states[-1])


def test_missing_lines_and_other_lines_are_refused_at_once(tmp_path):
    path = tmp_path / "l.jsonl"
    write(path)
    stood = at(path, 12)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:11]))
    with pytest.raises(DataError, match="has 11 lines, and the checkpoint was saved after 12"):
        Ledger.resume(path, stood)
    with pytest.raises(MismatchError, match="line 11 is not the one"):
        Ledger.resume(path, (11, stood[1]))
    path.unlink()
    with pytest.raises(DataError, match="cannot be read"):
        Ledger.resume(path, stood)


def test_after_the_end_there_is_nothing(tmp_path):
    path = tmp_path / "l.jsonl"
    write(path)
    assert not is_finished(path)
    with Ledger.resume(path) as ledger:
        ledger.end()
        with pytest.raises(UsageError, match="has ended"):
            ledger.append(12, "private", NOISY)
    assert is_finished(path)
    assert Ledger.read(path).done() == {OPEN: 4, NOISY: 8}
    with pytest.raises(DataError, match="an ended run does not go on"):
        Ledger.resume(path, at(path, 4))
    body = {"n": 13, "step": 12, "phase": "private", "event": NOISY.to_json(), "prev": Ledger.read(path).digest}
    path.write_bytes(path.read_bytes() + sealed(body)[0])
    with pytest.raises(GuaranteeError, match="line 14: comes after the end"):
        Ledger.read(path)
    assert not is_finished(tmp_path / "nowhere")


def test_lines_hold_numbers_and_names_only(tmp_path):
    write(tmp_path / "l.jsonl", 1)
    assert set(orjson.loads((tmp_path / "l.jsonl").read_bytes())) == {"n", "step", "phase", "event", "prev", "hash"}


def test_missing_ledger_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.jsonl"):
        Ledger.read(tmp_path / "nothing.jsonl")
