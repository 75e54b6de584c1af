"""Files written to hurt whoever verifies them: refused by name, with little work, little memory, and no error but ours.

Work is counted in evaluations of the accountant (privacy/accounting/effort.py), not in seconds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from signed_off import edited, make

from processes import ended
from taciturn.errors import GuaranteeError, TaciturnError
from taciturn.mechanisms.registry import examine, guarantees, verify
from taciturn.privacy.accounting.effort import at_most
from taciturn.privacy.accounting.events import SelectiveGaussian
from taciturn.privacy.accounting.selective import Selective
from taciturn.privacy.accounting.user_entity import Exchange, TwoLevel
from taciturn.privacy.certificates.certificate import digest_of, issue
from taciturn.privacy.certificates.digests import JSON_BYTES, canonical, load_json, write_json
from taciturn.privacy.certificates.verify import EFFORT, _numbers

DEEP: Any = "x"
for _ in range(200):  # orjson writes no more than 254; deeper ones are written as text below
    DEEP = [DEEP]
HOSTILE = [
    10**12, 10**15, 2**63 - 1, -1, 0, 7, -(2**62), 1e-320, 1e-200, 1e300, -1e300, 0.0, -0.0, 1.0, 0.5, True, False, None, "",
    "inf", "nan", "x" * 100_000, "\x00", "../../plan.json", [], {}, [[]], {"a": 1}, [1e-320], DEEP,
]  # fmt: skip
FILES = ["plan.json", "evidence.json", "certificate.json", "ledger.jsonl"]


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("hostile") / "r")


@pytest.fixture
def run(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "r")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every leaf and every inner value."""
    if path:
        yield path
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(inner, (*path, key))


def sealed(lines: list[dict[str, Any]]) -> bytes:
    """The lines as a ledger whose every hash fits."""
    import hashlib

    from taciturn.privacy.certificates.ledger import GENESIS

    digest, out = GENESIS, b""
    for line in lines:
        body = {key: value for key, value in line.items() if key != "hash"} | {"prev": digest}
        digest = hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
        out += orjson.dumps(body | {"hash": digest}, option=orjson.OPT_SORT_KEYS) + b"\n"
    return out


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_value_anywhere_is_refused_or_is_what_was_there(run: Path, data: st.DataObject) -> None:
    """A leaf or a branch of a valid file, by a hostile value; the certificate may be made to fit, digest and all."""
    name = data.draw(st.sampled_from(FILES))
    new = data.draw(st.sampled_from(HOSTILE))
    original = {each: (run / each).read_bytes() for each in FILES}
    if name == "ledger.jsonl":
        lines = [orjson.loads(line) for line in original[name].splitlines()]
        at = data.draw(st.integers(0, len(lines) - 1))
        path = data.draw(st.sampled_from([p for p in places(lines[at]) if p[0] not in ("hash", "prev")]))
        before, changed = lines[at], edited(lines[at], path, new)
        (run / name).write_bytes(sealed([*lines[:at], changed, *lines[at + 1 :]]))
    else:
        before = orjson.loads(original[name])
        path = data.draw(st.sampled_from(list(places(before))))
        changed = edited(before, path, new)
        (run / name).write_bytes(canonical(changed))
    forged = orjson.loads((run / "certificate.json").read_bytes())
    if name in ("plan.json", "evidence.json") and data.draw(st.booleans()):
        forged[name.removesuffix(".json")] = changed
    if data.draw(st.booleans()):
        forged["digest"] = digest_of(forged)
    write_json(run / "certificate.json", forged)
    same = changed == before and orjson.dumps(changed) == orjson.dumps(before)
    word = name == "certificate.json" and path[0] in ("versions", "created")  # of a possible form: the issuer's
    try:
        with at_most(EFFORT) as effort:
            found = verify(run / "certificate.json")
        assert found or same or word, (name, path, new)
        assert effort.spent < EFFORT / 2, (name, path, new)
        try:
            issue(run, guarantees)
            said = ""
        except TaciturnError as error:
            said = str(error)
        assert len(said) < 2000, "it says what it found, not all of it"
    finally:
        for each, content in original.items():
            (run / each).write_bytes(content)


def replace(run: Path, name: str, path: tuple[Any, ...], new: Any) -> str:
    """What is said of a run in which one value was replaced."""
    write_json(run / name, edited(load_json(run / name), path, new))
    with at_most(EFFORT) as effort:
        (found,) = verify(run / "certificate.json")
    assert effort.spent == 0, "refused before anything was computed"
    return found.recomputed


@pytest.mark.parametrize(
    ("name", "path", "new", "says"),
    [
        ("evidence.json", ("groups", 0, 1), 10**12, "records of a group"),
        ("evidence.json", ("records_per_user",), 10**12, "records_per_user"),
        ("evidence.json", ("delta",), 1e-320, "delta"),
        ("evidence.json", ("labelled",), 10**18, "labelled"),
        ("evidence.json", ("confidence",), 1.0, "confidence"),
        ("evidence.json", ("groups",), [["a", 2]] * 501, "groups"),
        ("plan.json", ("phases", 1, "steps"), 10**15, "steps"),
        ("plan.json", ("phases", 1, "event", "rate"), 1e-300, "rate"),
        ("plan.json", ("phases", 1, "event", "noise_multiplier"), 1e-9, "noise_multiplier"),
        ("plan.json", ("phases", 1, "event", "noise_multiplier"), 1e200, "noise_multiplier"),
        ("plan.json", ("group",), 10**9, "group"),
        ("plan.json", ("target", "delta"), 1e-320, "delta"),
        ("plan.json", ("target", "epsilon"), 1e300, "epsilon"),
        ("plan.json", ("mechanism",), "m" * 1000, "mechanism"),
    ],
)
def test_numbers_that_no_run_has_are_refused_by_the_name_of_their_field(
    run: Path, name: str, path: tuple[Any, ...], new: Any, says: str
) -> None:
    assert says in replace(run, name, path, new)


@pytest.mark.parametrize("name", ["plan.json", "evidence.json", "certificate.json"])
@pytest.mark.parametrize("depth", [30, 253, 900, 100_000])
def test_deep_nesting_is_refused(run: Path, name: str, depth: int) -> None:
    (run / name).write_text('{"delta": ' + "[" * depth + "]" * depth + "}")
    says = "more than" if depth > 100_000 / 2 else "nested"
    assert any(says in each.recomputed for each in verify(run / "certificate.json"))


def test_a_line_of_a_ledger_that_is_deep_long_or_endless(run: Path) -> None:
    whole = (run / "ledger.jsonl").read_bytes()
    for line, says in (
        (
            b'{"event":' + b"[" * 900 + b"]" * 900 + b',"hash":0,"n":0,"phase":0,"prev":0,"step":0}\n',
            "not a ledger entry",
        ),
        (b"x" * 10_000_000, "longer than"),
        (b"{}\n" * 1_000_000, "line 1: not a ledger entry"),
        (whole + b"\n" * 1_000_000, "comes after the end"),
        (whole.rpartition(b'{"end"')[0] + b"\n" * 1_000_000, "not JSON"),
    ):
        (run / "ledger.jsonl").write_bytes(line)
        assert any(says in each.recomputed for each in verify(run / "certificate.json")), says


def test_many_kinds_of_steps_are_refused(run: Path) -> None:
    lines = [
        orjson.loads((run / "ledger.jsonl").read_bytes().splitlines()[-2]) | {"n": n, "step": n} for n in range(1005)
    ]
    for n, line in enumerate(lines):
        line["event"] = {**line["event"], "rate": 0.01 + n * 1e-5}
    (run / "ledger.jsonl").write_bytes(sealed(lines))
    with at_most(EFFORT) as effort:
        assert any("kinds of steps" in each.recomputed for each in verify(run / "certificate.json"))
    assert effort.spent == 0


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("what", ["link", "pipe", "device", "folder", "huge"])
def test_what_is_no_file_of_reasonable_size(run: Path, name: str, what: str) -> None:
    path = run / name
    content = path.read_bytes()
    path.unlink()
    if what == "link":
        (run / "aside").write_bytes(content)
        path.symlink_to("aside")
    elif what == "pipe":
        os.mkfifo(path)
    elif what == "device":
        path.symlink_to("/dev/zero")
    elif what == "folder":
        path.mkdir()
    else:
        path.touch()
        os.truncate(path, 10**12 if name != "ledger.jsonl" else JSON_BYTES)
    assert verify(run / "certificate.json")


def test_a_weights_file_of_a_terabyte_is_not_read(run: Path) -> None:
    os.truncate(run / "model/model.safetensors", 10**12)
    assert [each.recomputed for each in verify(run / "certificate.json")] == [f"{10**12} bytes"]


def test_within_the_limits_work_has_a_limit_too(run: Path) -> None:
    """Groups as large as may be, or as many: refused before the first is computed, with the flag that would compute it."""
    evidence = load_json(run / "evidence.json")
    for path, value in ((("records_per_user",), 10**6), (("groups",), [[f"g{k}", 40_000 + k] for k in range(40)])):
        write_json(run / "evidence.json", edited(evidence, path, value))
        with at_most(EFFORT) as effort:
            found = examine(run / "certificate.json")
        assert effort.spent == 0
        assert any("--patient" in each.recomputed for each in found.mismatches)


def test_what_was_not_foreseen_is_stopped(run: Path) -> None:
    write_json(run / "evidence.json", edited(load_json(run / "evidence.json"), ("records_per_user",), 2000))
    with at_most(EFFORT) as effort:
        found = _numbers(run, load_json(run / "certificate.json"), guarantees, 6e7)
    assert 0 < effort.spent <= 6e7
    assert any("--patient" in each.recomputed for each in found)


def test_a_ledger_longer_than_anybody_waits_for_is_refused_unread(run: Path) -> None:
    os.truncate(run / "ledger.jsonl", 10**9)
    assert any("--patient" in each.recomputed for each in verify(run / "certificate.json"))
    assert not any("--patient" in each.recomputed for each in verify(run / "certificate.json", patient=True))


@pytest.mark.parametrize(
    "law",
    [
        TwoLevel(0.5, 0.5, 1, 10**5, 1, 1.0, 100),
        Exchange(((10**5, 0.5), (10**5, 0.4)), (), 1.0, 100),
        Selective(SelectiveGaussian(0.5, 1.0, 1.0, 1), 100, 10**6),
    ],
    ids=lambda law: type(law).__name__,
)
def test_laws_with_coins_of_their_own_are_foreseen_too(law: Any) -> None:
    with at_most(EFFORT) as effort, pytest.raises(GuaranteeError, match="--patient"):
        law.epsilon(1e-6)
    assert effort.spent < EFFORT / 10


def test_little_memory_is_enough(run: Path) -> None:
    """The largest of these files, one after the other, in a process of its own: less than 100 MiB beside the valid run."""
    files = {
        "evidence.json": b'{"groups": [' + b"[]," * 600_000 + b"[]]}",
        "plan.json": b'{"x": "' + b"y" * (JSON_BYTES - 20) + b'"}',
        "certificate.json": b'{"words": [' + b'"",' * 90_000 + b'""]}',
        "ledger.jsonl": b"x" * 300_000_000,
    }
    code = (
        "import resource, pathlib\n"
        "from taciturn.mechanisms.registry import verify\n"
        f"path = pathlib.Path({str(run / 'certificate.json')!r})\n"
        "assert verify(path) == []\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        f"for name in {list(files)!r}:\n"
        "    file = path.with_name(name)\n"
        "    file.rename(file.with_suffix('.kept')); file.with_suffix('.bad').rename(file)\n"
        "    assert verify(path), name\n"
        "    file.rename(file.with_suffix('.bad')); file.with_suffix('.kept').rename(file)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    if sys.platform != "linux":
        pytest.skip("ru_maxrss is in KiB on Linux")
    for name, content in files.items():
        (run / name).with_suffix(".bad").write_bytes(content)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    [(said, complaints)] = ended(process)
    assert process.returncode == 0, complaints
    assert int(said) < 100 << 10
