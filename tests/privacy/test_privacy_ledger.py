from __future__ import annotations

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, GuaranteeError, UsageError
from taciturn.privacy.events import NonPrivate, PoissonGaussian
from taciturn.privacy.ledger import GENESIS, Ledger, entries

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


@pytest.mark.parametrize("keep", [0, 1, 7, 12])
def test_cut_and_continued_is_the_same_as_never_stopped(tmp_path, keep):
    straight = write(tmp_path / "straight.jsonl")
    write(tmp_path / "cut.jsonl")
    with Ledger.resume(tmp_path / "cut.jsonl") as ledger:
        ledger.truncate_to(keep)
        assert len(ledger) == keep
        assert keep or ledger.digest == GENESIS
        for step in range(keep, 12):
            ledger.append(step, "public" if step % 3 == 0 else "private", OPEN if step % 3 == 0 else NOISY)
    assert Ledger.read(tmp_path / "cut.jsonl").digest == straight.digest
    assert (tmp_path / "cut.jsonl").read_bytes() == (tmp_path / "straight.jsonl").read_bytes()
    with Ledger.resume(tmp_path / "cut.jsonl") as ledger, pytest.raises(DataError, match="checkpoint is newer"):
        ledger.truncate_to(13)


def test_lines_hold_numbers_and_names_only(tmp_path):
    write(tmp_path / "l.jsonl", 1)
    assert set(orjson.loads((tmp_path / "l.jsonl").read_bytes())) == {"n", "step", "phase", "event", "prev", "hash"}


def test_missing_ledger_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nothing\.jsonl"):
        Ledger.read(tmp_path / "nothing.jsonl")
