"""Plans of the mechanisms, and a run's folder from start to certificate: stopped, resumed, refused."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from taciturn.errors import DataError, Interrupted, MismatchError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.registry import mechanism, verify
from taciturn.mechanisms.run import make_plan, train
from taciturn.mechanisms.settings import RunConfig
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.certificate import file_digest
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections.protected import protection
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.screening.policies.public import Public
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus

TEXTS = (
    ["hello there"] * 6
    + [f"my number is (555) 010-77{i:02}, ask for Zed Quill" for i in range(9)]
    + ["My ID is 4711"] * 3
)


def corpus(texts: list[str] = TEXTS, **options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"), **options)


def config(name: str = "crt", noise: int | str = 3, **options: Any) -> RunConfig:
    private = {"steps": 6, "batch": 4, "noise_multiplier": 1.5}
    defaults: dict[str, dict[str, Any]] = {
        "crt": {"public": {"epochs": 2, "batch_size": 4}, "private": private},
        "dpsgd": private,
        "sgd": {"epochs": 2, "batch_size": 4},
        "redacted": {"epochs": 2, "batch_size": 4},
        "jft": {"redacted": {"epochs": 2, "batch_size": 4}, "private": private},
    }
    return RunConfig(
        mechanism=name,
        corpus=Path("memory"),
        model={"name": "lstm", "tokenizer": "bytes", "options": {"hidden_size": 8, "embedding_size": 8}},  # type: ignore[arg-type]
        delta=1e-3,
        options={**defaults[name], **options},
        seeds={"noise": noise},  # type: ignore[arg-type]
        train={"checkpoint_steps": 4},  # type: ignore[arg-type]
    )


def test_crt_reads_public_text_and_skeletons_plainly_and_private_records_with_noise() -> None:
    screened = corpus()
    public, private = make_plan(config(), screened).phases
    assert (public.reads, private.reads) == (("public", "skeletons"), ("private",))
    assert public.records == len(screened.texts("public")) + len(screened.texts("skeletons")) == 6 + 12
    assert private.records == len(screened.texts("private")) == 12
    assert public.event == NonPrivate(("public", "skeletons"))
    assert private.event == PoissonGaussian(4 / 12, 1.5)
    assert public.steps == 2 * 5
    assert not any("Quill" in text or "4711" in text for text in screened.texts("skeletons"))
    assert any("Quill" in text for text in screened.texts("private"))
    assert all(MASK in text for text in screened.texts("skeletons"))


def test_jft_trains_on_redacted_text_and_then_privately_on_the_originals() -> None:
    screened = corpus()
    first, second = make_plan(config("jft"), screened).phases
    assert (first.reads, second.reads) == (("redacted",), ("original",))
    assert first.records == second.records == len(TEXTS)
    assert (first.event, second.event) == (NonPrivate(("redacted",)), PoissonGaussian(4 / 18, 1.5))
    private = {"steps": 6, "batch": 4, "noise_multiplier": 1.5}
    light = make_plan(config("jft", light={**private, "noise_multiplier": 0.7}), screened).phases[0]
    assert light.event == PoissonGaussian(4 / 18, 0.7)
    with pytest.raises(UsageError, match="cannot be shared"):
        make_plan(config("jft", light={"steps": 6}), screened)


def test_jft_spends_its_target_on_what_the_policy_detects(tmp_path: Path) -> None:
    aimed = config("jft", noise="os", private={"steps": 6, "batch": 4})
    aimed = aimed.model_copy(update={"epsilon": 4.0})
    train(aimed, tmp_path, screened=corpus())
    certificate = certify(tmp_path)
    assert 3.9 <= certificate.spent["epsilon"] <= 4.0
    (detected,) = [g for g in certificate.guarantees if "detects" in g["unit"]]
    assert detected["epsilon"] == pytest.approx(certificate.spent["epsilon"], rel=1e-3)
    assert not verify(tmp_path / "certificate.json")


def test_crt_as_published_alternates_over_public_text_alone() -> None:
    plan = make_plan(config(skeletons=False, schedule="alternate"), corpus())
    assert [s.phase.name for s in plan.unroll()] == (["public"] * 2 + ["private"] * 3) * 2
    assert plan.phases[0].reads == ("public",)
    with pytest.raises(UsageError, match="alternating rounds"):
        make_plan(config(schedule="alternate", private={"steps": 7, "noise_multiplier": 1.0}), corpus())


def test_the_number_of_private_records_does_not_depend_on_a_secret() -> None:
    masked = [t.replace("4711", MASK) if i == len(TEXTS) - 1 else t for i, t in enumerate(TEXTS)]
    for dedup in ("suspicious", "private", "all"):
        a, b = (make_plan(config(), corpus(texts, dedup=dedup)) for texts in (TEXTS, masked))
        assert a.phases == b.phases


@pytest.mark.parametrize("name", ["crt", "dpsgd", "jft", "redacted", "sgd"])
def test_every_mechanism_runs_certifies_and_verifies(name: str, tmp_path: Path) -> None:
    train(config(name, noise="os"), tmp_path, screened=corpus())
    certificate = certify(tmp_path)
    assert not verify(tmp_path / "certificate.json")
    notion = "sdp" if name == "jft" else "confidentiality"
    statuses = {g["status"] for g in certificate.guarantees if g["notion"] == notion}
    assert statuses == {
        "crt": {"conditional"}, "dpsgd": {"conditional"}, "redacted": {"conditional", "none"}, "sgd": {"none"},
        "jft": {"conditional", "none"},
    }[name]  # fmt: skip
    assert certificate.release == (name in ("crt", "dpsgd")), "the others promise nothing about what the policy misses"


def test_public_values_are_named_in_the_certificate_and_the_report(tmp_path: Path) -> None:
    public = Public.of(["Zed Quill", "4711"], ["time"])
    train(config(noise="os"), tmp_path, screened=corpus(public=public))
    certificate = certify(tmp_path)
    assert not verify(tmp_path / "certificate.json")
    evidence = json.loads((tmp_path / "certificate.json").read_bytes())["evidence"]
    assert (evidence["public_values"], evidence["public_digest"]) == (2, public.digest)
    assert evidence["public_kinds"] == ["time"]
    (claim,) = [g for g in certificate.guarantees if g["notion"] == "confidentiality"]
    assert any("one of the 2 public values" in a["text"] for a in claim["assumptions"])
    assert "quill" not in (tmp_path / "certificate.json").read_text("utf-8").lower()
    view = RunView.load(tmp_path)
    (said,) = [s for each in protection([("run", view)]) for s in each["sentences"] if "Declared public" in s]
    assert "one of 2 listed values or a time of day" in said


@pytest.mark.parametrize(("options", "sizes"), [({}, (9, 3)), ({"reads": "redacted"}, (0, 3))])
def test_a_group_is_counted_in_the_text_that_noised_steps_read(
    options: dict[str, Any], sizes: tuple[int, int], tmp_path: Path
) -> None:
    """On untouched text a detected secret counts wherever it stands; on either part, copies are not removed."""
    screened = corpus(out=tmp_path / "screened")
    run_config = config("dpsgd", noise="os", **options).model_copy(update={"corpus": str(tmp_path / "screened")})
    train(run_config, tmp_path / "run", screened=screened)
    numbers = [f"(555) 010-77{i:02}" for i in range(9)]
    certificate = certify(tmp_path / "run", groups={"numbers": numbers, "ids": ["4711"]})
    found = {g["unit"]: g["detail"]["k"] for g in certificate.guarantees if g["notion"] == "group-confidentiality"}
    assert found == {
        f"the secrets of group '{n}' in {k} records": k for n, k in zip(("numbers", "ids"), sizes, strict=True)
    }


def test_a_stopped_run_resumes_to_the_same_weights_and_the_same_epsilon(tmp_path: Path) -> None:
    screened = corpus()
    train(config(), tmp_path / "whole", screened=screened)

    def stop(p: Any) -> None:
        if p.step.number + 1 == 11:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(config(), tmp_path / "part", screened=screened, notify=stop)
    with pytest.raises(DataError, match="no finished model"):
        certify(tmp_path / "part")
    train(config(), tmp_path / "part", screened=screened, resume=True)
    weights = "model/model.safetensors"
    assert file_digest(tmp_path / "part" / weights) == file_digest(tmp_path / "whole" / weights)
    whole, part = certify(tmp_path / "whole"), certify(tmp_path / "part")
    assert whole.spent == part.spent
    assert whole.seeded_noise
    assert not whole.release
    assert any("not for release" in reason for reason in whole.reasons)
    with pytest.raises(DataError, match="this run has ended"):
        train(config(), tmp_path / "part", screened=screened, resume=True)
    assert file_digest(tmp_path / "part" / weights) == file_digest(tmp_path / "whole" / weights)


def test_resume_refuses_a_changed_corpus_or_plan_and_names_it(tmp_path: Path) -> None:
    train(config(), tmp_path, screened=corpus())
    with pytest.raises(MismatchError, match="corpus_key"):
        train(config(), tmp_path, screened=corpus([*TEXTS[:-1], "My ID is 4712"]), resume=True)
    with pytest.raises(MismatchError, match="phases"):
        train(
            config(private={"steps": 6, "batch": 4, "noise_multiplier": 1.4}), tmp_path, screened=corpus(), resume=True
        )
    with pytest.raises(MismatchError, match="seeds"):
        train(config(noise=4), tmp_path, screened=corpus(), resume=True)


def test_what_is_published_names_the_corpus_only_under_a_salt(tmp_path: Path) -> None:
    screened = corpus()
    keys = set()
    for run in ("a", "b"):
        train(config(), tmp_path / run, screened=screened)
        keys.add(certify(tmp_path / run).corpus_key)
        assert (tmp_path / run / "checkpoints" / "corpus.salt").stat().st_mode & 0o777 == 0o600
        published = "".join(
            (tmp_path / run / n).read_text() for n in ("plan.json", "evidence.json", "certificate.json")
        )
        assert screened.key not in published
        counts = json.loads((tmp_path / run / "evidence.json").read_text())["counts"]
        assert not {"spans", "suspicious", "duplicates"} & counts.keys()
    assert len(keys) == 2


def test_unknown_names_are_answered_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'dpsgd'"):
        mechanism("dp-sgd")
    with pytest.raises(UsageError, match="did you mean 'skeletons'"):
        make_plan(config(skeleton=True), corpus())
    with pytest.raises(UsageError, match="epsilon and delta"):
        make_plan(config(private={"steps": 3}), corpus())


def test_held_out_files_with_another_text_field_are_told_by_the_option_that_names_it(tmp_path: Path) -> None:
    """Nothing was trained, and a certificate of that folder says so instead of asking for --resume."""
    (tmp_path / "new.csv").write_text("ticket,message\n1,where is my parcel\n")
    wrong = config()
    wrong = wrong.model_copy(
        update={"train": wrong.train.model_copy(update={"valid": (str(tmp_path / "new.csv"),), "valid_text": "text"})}
    )
    with pytest.raises(
        DataError, match=r"held-out files \(train.valid\).*fields there: message, ticket.*train.valid_text"
    ):
        train(wrong, tmp_path / "run", screened=corpus())
    with pytest.raises(DataError, match="training never began there"):
        certify(tmp_path / "run")
    right = wrong.model_copy(update={"train": wrong.train.model_copy(update={"valid_text": "message"})})
    assert train(right, tmp_path / "run", screened=corpus()).finished
