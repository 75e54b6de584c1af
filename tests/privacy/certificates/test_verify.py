"""What `verify` compares, what it says it did not, and every way in which a certificate passed that it should not."""

from __future__ import annotations

import math
import os
import re
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from signed_off import FILES, exported, make

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.registry import examine, guarantees, verify
from taciturn.privacy.accounting.rounding import bounds_attacks
from taciturn.privacy.certificates import plan_fields
from taciturn.privacy.certificates.certificate import Certificate, digest_of, issue
from taciturn.privacy.certificates.digests import load_json, write_json
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.claims import spent_of
from taciturn.training import phase as phases
from taciturn.training import phase_terms, samplers, schedules
from taciturn.training import plan as plans


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("verify") / "r")


@pytest.fixture(params=["run", "export"])
def folder(request: pytest.FixtureRequest, pristine: Path, tmp_path: Path) -> Path:
    """The certificate's folder, as a run has it and as an export has it."""
    if request.param == "run":
        return shutil.copytree(pristine, tmp_path / "r")
    return exported(pristine, tmp_path / "e")


@pytest.fixture
def run(pristine: Path, tmp_path: Path) -> Path:
    return shutil.copytree(pristine, tmp_path / "r")


def model_of(folder: Path) -> Path:
    return folder / "model" if (folder / "model").is_dir() else folder


def wrong(folder: Path, **how: bool) -> list[str]:
    return [each.field for each in verify(folder / "certificate.json", **how)]


def reissued(run: Path, change: Any) -> None:
    """The certificate with a change and a digest that fits it."""
    fields = load_json(run / "certificate.json")
    change(fields)
    write_json(run / "certificate.json", fields | {"digest": digest_of(fields)})


def test_a_run_and_its_export_both_verify(folder: Path) -> None:
    assert wrong(folder) == []
    found = examine(folder / "certificate.json")
    assert [(each.what, each.state) for each in found.compared] == [
        ("certificate", "checked"), ("numbers", "checked"), ("model", "checked"), ("created", "absent"),
        ("versions", "absent"),
    ]  # fmt: skip
    assert f"each of its {len(FILES)} files" in str(found.compared[2])
    assert found.claim == Certificate.read(folder / "certificate.json").words[0]
    assert "conditional" in found.claim


@pytest.mark.parametrize("name", FILES)
def test_any_replaced_file_of_the_model_differs(folder: Path, name: str) -> None:
    path = model_of(folder) / name
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert wrong(folder) == [f"model_files.{name}"]
    path.write_bytes(content + b" ")
    (longer,) = verify(folder / "certificate.json")
    assert longer.recomputed == f"{len(content) + 1} bytes"
    path.unlink()
    assert wrong(folder) == [f"model_files.{name}"]


@pytest.mark.parametrize(
    "name", ["adapter/more.bin", "pytorch_model.bin", "special_tokens_map.json", ".hidden", "a/b/c"]
)
def test_any_added_file_differs(folder: Path, name: str) -> None:
    path = model_of(folder) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    assert wrong(folder) == [f"model_files.{name}"]


def test_renamed_weights_differ(folder: Path) -> None:
    model = model_of(folder)
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    assert set(wrong(folder)) == {"model_files.model.safetensors", "model_files.pytorch_model.bin"}
    assert ("model", "differs") in [(each.what, each.state) for each in examine(folder / "certificate.json").compared]


def test_what_may_lie_beside_an_export_is_a_closed_list(pristine: Path, tmp_path: Path) -> None:
    out = exported(pristine, tmp_path / "e")
    (out / "LICENSE").write_text("do as you like")
    (out / ".gitattributes").write_text("*.safetensors filter=lfs")
    (out / "README.md").unlink()
    assert wrong(out) == []
    (out / "handler.py").write_text("import os")
    assert wrong(out) == ["model_files.handler.py"]


@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "weights.PT", "adapter"])
def test_a_second_model_beside_the_one_that_was_certified(run: Path, name: str) -> None:
    (run / name).write_bytes(b"x")
    assert wrong(run) == [f"model_files.{name}"]


def test_a_model_that_is_not_there_is_said_and_is_no_pass(folder: Path) -> None:
    for name in {each.partition("/")[0] for each in FILES}:
        path = model_of(folder) / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    if (folder / "model").is_dir():
        assert set(wrong(folder)) == {f"model_files.{name}" for name in FILES}, (
            "an empty folder is a model that differs"
        )
        (folder / "model").rmdir()
    found = examine(folder / "certificate.json")
    assert found.model_absent
    assert "not compared" in next(each.words for each in found.compared if each.what == "model")
    assert found.mismatches == ()
    (absent,) = verify(folder / "certificate.json")
    assert (absent.field, absent.recomputed) == ("model_files", "none here: nothing was compared")
    assert wrong(folder, without_weights=True) == []


def test_links_and_pipes_are_not_files(run: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(FILES["config.json"])
    (run / "model/config.json").unlink()
    (run / "model/config.json").symlink_to(tmp_path / "elsewhere")
    assert wrong(run) == ["model_files.model"]
    with pytest.raises(DataError, match=r"config\.json: a link"):
        issue(run, guarantees)
    (run / "model/config.json").unlink()
    os.mkfifo(run / "model/config.json")
    assert wrong(run) == ["model_files.model"]
    shutil.rmtree(run / "model")
    shutil.copytree(make(tmp_path / "other") / "model", tmp_path / "aside")
    (run / "model").symlink_to(tmp_path / "aside")
    assert wrong(run) == ["model_files.model"]


def epsilons(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of every ε, μ and share found that a certificate computes."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    inner = [found for key, each in items for found in epsilons(each, (*path, key))]
    return [*inner, *([path] if path and isinstance(value, float) and value and bounds_attacks(str(path[-1])) else [])]


def test_no_epsilon_mu_or_share_may_be_lowered(run: Path) -> None:
    fields = load_json(run / "certificate.json")
    computed = {name: fields[name] for name in ("guarantees", "spent", "other_runs")}
    paths = epsilons(computed)
    names = [path[-1] for path in paths]
    assert names.count("epsilon") > 4
    assert names.count("mu") > 3
    assert names.count("detected") > 3
    original = (run / "certificate.json").read_bytes()

    def scaled(path: tuple[Any, ...], factor: float) -> list[str]:
        def change(fields: Any) -> None:
            place = fields
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] *= factor

        reissued(run, change)
        found = wrong(run)
        (run / "certificate.json").write_bytes(original)
        return found

    for path in paths:
        name = str(path[0]) + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path[1:])
        assert scaled(path, 1 - (2e-3 if path[-1] == "mu" else 9e-7)) == [name]  # μ is compared by its four digits
        assert scaled(path, 0.5)
        if path[-1] != "mu":  # has four digits, and words that say them
            assert scaled(path, 1 - 1e-9) == [], "what another machine's transforms may do"
            assert scaled(path, 1 + 5e-7) == [], "a weaker claim, as from a looser accountant"


def test_a_sentence_says_the_numbers_beside_it(run: Path) -> None:
    """A weaker claim is true, but its words are its own: neither raised numbers pass with the old words, nor the old numbers
    with words that say less."""
    mu = load_json(run / "certificate.json")["guarantees"][0]["trade_off"]["mu"]

    def weaker(fields: Any) -> None:
        fields["guarantees"][0]["trade_off"] |= {"mu": 2 * mu, "detected": 0.5}

    reissued(run, weaker)
    assert wrong(run) == ["words[0]"]

    def said(fields: Any) -> None:
        fields["words"] = [each.words() for each in Certificate.read(run / "certificate.json").statements()]

    reissued(run, said)
    assert wrong(run) == []
    assert "at most 50 % of cases" in str(examine(run / "certificate.json").claim)
    reissued(run, lambda fields: fields["guarantees"][0]["trade_off"].update(mu=mu))
    assert wrong(run) == ["words[0]"]


def test_a_target_with_more_digits_than_certificates_have_is_kept(run: Path) -> None:
    plan = load_json(run / "plan.json")
    plan["target"]["epsilon"] = spent_of(plan, Ledger.read(run / "ledger.jsonl").counts(), plan["target"]["delta"])
    write_json(run / "plan.json", plan)
    found = issue(run, guarantees)
    found.write(run / "certificate.json")
    assert found.epsilon_spent > plan["target"]["epsilon"], "rounded up"
    assert not found.over_target
    assert found.release
    assert wrong(run) == []
    plan["target"]["epsilon"] *= 1 - 1e-8
    write_json(run / "plan.json", plan)
    assert issue(run, guarantees).over_target


@pytest.mark.parametrize(
    ("created", "why"),
    [
        ("yesterday", "pattern"),
        ("2024-13-01T00:00:00+00:00", "month"),
        ("2024-01-01", "pattern"),
        ("9999-12-31T23:59:59+00:00", "future"),
    ],
)
def test_a_date_that_is_none_or_is_still_to_come(run: Path, created: str, why: str) -> None:
    reissued(run, lambda fields: fields.update(created=created))
    (found,) = verify(run / "certificate.json")
    assert re.search(f"created.*{why}", found.recomputed)


@pytest.mark.parametrize("versions", [{"torch": "the newest"}, {"torch; rm": "1"}, {"torch": ""}, {"torch": "1\n"}])
def test_versions_look_like_versions(run: Path, versions: dict[str, str]) -> None:
    reissued(run, lambda fields: fields.update(versions=versions))
    assert "versions" in verify(run / "certificate.json")[0].recomputed
    with pytest.raises(DataError, match="versions"):
        issue(run, guarantees, versions)


def test_what_is_the_issuers_word_is_called_that(run: Path) -> None:
    reissued(run, lambda fields: fields.update(created="2001-01-01T00:00:00+00:00", versions={"torch": "9"}))
    found = examine(run / "certificate.json")
    assert found.mismatches == ()
    assert all("issuer's word" in each.words for each in found.compared if each.what in ("created", "versions"))


@pytest.mark.parametrize(
    "path",
    [
        (), ("target",), ("seeds",), ("phases", 0), ("phases", 1, "event"), ("phases", 1, "sampler"),
        ("phases", 1, "rule"),
    ],
)  # fmt: skip
def test_a_field_that_no_plan_has_is_refused(run: Path, path: tuple[Any, ...]) -> None:
    plan = load_json(run / "plan.json")
    place: Any = plan
    for key in path:
        place = place[key]
    place["promise"] = "none of it is private"
    write_json(run / "plan.json", plan)
    with pytest.raises(DataError, match=r"promise|expected the fields"):
        issue(run, guarantees)
    assert any("plan.json" in each.recomputed for each in verify(run / "certificate.json"))


@pytest.mark.parametrize("where", ["evidence", "ledger", "certificate", "guarantee", "file"])
def test_a_field_that_nothing_else_has_is_refused(run: Path, where: str) -> None:
    if where == "evidence":
        write_json(run / "evidence.json", load_json(run / "evidence.json") | {"promise": 1})
    elif where == "ledger":
        text = (run / "ledger.jsonl").read_text()
        (run / "ledger.jsonl").write_text(text.replace('"phase":', '"oath":1,"phase":', 1))
    elif where == "certificate":
        reissued(run, lambda fields: fields.update(promise=1))
    elif where == "guarantee":
        reissued(run, lambda fields: fields["guarantees"][0].update(promise=1))
    else:
        reissued(run, lambda fields: fields["model_files"]["config.json"].update(promise=1))
    assert wrong(run)


def test_the_closed_set_is_what_plans_have() -> None:
    """A field added to a plan is added to plan_fields.py, or no run with it can be certified."""

    def names(kind: Any) -> set[str]:
        return {field.name for field in fields(kind)}

    assert {
        each.__name__: names(each)
        for each in (samplers.Shuffle, samplers.Poisson, samplers.PoissonKinds, samplers.UserEntity)
    } == (plan_fields.SAMPLERS)
    rules = (
        phase_terms.Plain,
        phase_terms.ClipNoise,
        phase_terms.SelectiveState,
        phase_terms.Residual,
        phase_terms.LocalUpdates,
        phase_terms.Counts,
    )
    assert {each.__name__: names(each) for each in rules} == plan_fields.RULES
    assert names(schedules.Optimiser) == plan_fields.PARTS["optimiser"]
    assert names(phase_terms.Fill) == plan_fields.PARTS["fill"]
    assert names(plans.Model) == plan_fields.PARTS["model"]
    rule, sampler = phase_terms.ClipNoise(1.0, 2.0), samplers.Poisson(0.1)
    phase = phases.Phase("private", ("private",), 9, sampler, rule, 3, schedules.Optimiser(), rows=(1, 2))
    plan_fields.checked(plans.Plan("crt", (phase,), 1, plans.Target(1.0, 1e-5), "key").to_json())


def test_a_certificate_of_an_older_form_says_what_to_do(run: Path) -> None:
    reissued(run, lambda fields: fields.update(schema="taciturn-certificate/1"))
    (found,) = verify(run / "certificate.json")
    assert "certify the run again" in found.recomputed


def test_a_ledger_line_is_numbered_by_a_whole_number(run: Path) -> None:
    """0.0 == 0, and its line is written as taciturn writes it."""
    import hashlib

    import orjson

    line = orjson.loads((run / "ledger.jsonl").read_bytes().splitlines()[0])
    body = {key: value for key, value in line.items() if key != "hash"} | {"n": 0.0}
    seal = hashlib.sha256(orjson.dumps(body, option=orjson.OPT_SORT_KEYS)).hexdigest()
    (run / "ledger.jsonl").write_bytes(orjson.dumps(body | {"hash": seal}, option=orjson.OPT_SORT_KEYS) + b"\n")
    with pytest.raises(Exception, match="numbered"):
        Ledger.read(run / "ledger.jsonl")


def test_numbers_beyond_the_limits_are_refused_by_name() -> None:
    from taciturn.privacy import limits

    for value in (math.nan, math.inf, 1e-320, 0.0, True, "1", None, 10**400):
        with pytest.raises(UsageError, match="x: expected"):
            limits.delta("x", value)
    assert "1329 bits" in limits.short(10**400)
