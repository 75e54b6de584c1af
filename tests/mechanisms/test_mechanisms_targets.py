"""Records with nothing to predict are told of, or refused, when a plan is made: in the words that training has."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import taciturn as tt
from taciturn.cli.main import run
from taciturn.errors import DataError
from taciturn.mechanisms import targets
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.run import train
from taciturn.mechanisms.settings import RunConfig
from taciturn.mechanisms.targets import certain, warn_of_targets
from taciturn.models.sequences import mask_id
from taciturn.models.tasks import encode_task
from taciturn.models.tokenizers import bpe_tokenizer, byte_tokenizer, with_mask
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import MASK
from taciturn.text.readers import Corpus, read
from taciturn.training.phase_terms import Plain

CHATS = {"name": "lstm", "tokenizer": "bytes", "loss_on": "assistant", "max_length": 60, "chat_template": "plain"}
SMALL = {"options": {"hidden_size": 8, "embedding_size": 8}}
OPTIONS: dict[str, dict[str, Any]] = {
    "sgd": {"epochs": 1},
    "dpsgd": {"steps": 2, "batch": 4, "noise_multiplier": 1.0},
    "crt": {"public": {"epochs": 1}, "private": {"steps": 2, "batch": 4, "noise_multiplier": 1.0}},
}


def chats(folder: Path, long: int, of: int = 40, out: Path | None = None) -> ScreenedCorpus:
    """Conversations, in ``long`` of which the question alone is longer than a record may be."""
    asked = [f"is it late number {i:03}" for i in range(of - long)] + [
        f"is {i}, " + "and then " * 20 for i in range(long)
    ]
    rows = [
        json.dumps({"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": "yes it is"}]})
        for q in asked
    ]
    path = folder / "chats.jsonl"
    path.write_text("\n".join(rows) + "\n")
    return screen(read(str(path), chat="openai"), policy("phone"), policy("conservative"), unit="document", out=out)


def command(screened: ScreenedCorpus, mechanism: str, *more: str) -> list[str]:
    sets = [f"model.{key}={value}" for key, value in CHATS.items() if key not in ("name", "tokenizer")]
    flat = {"sgd": ["options.epochs=1"], "dpsgd": [f"options.{k}={v}" for k, v in OPTIONS["dpsgd"].items()]}
    flat["crt"] = [f"options.private.{k}={v}" for k, v in OPTIONS["dpsgd"].items()]
    argv = ["plan", mechanism, str(screened.path), "--tokenizer", "bytes", "--delta", "1e-3", *more]
    return argv + [each for s in (*sets, *flat[mechanism]) for each in ("--set", s)]


@pytest.mark.parametrize("mechanism", OPTIONS)
def test_a_plan_in_which_no_record_has_a_token_to_predict_is_refused_as_its_run_is(
    mechanism: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screened = chats(tmp_path, 30, 30, tmp_path / "screened")
    argv = command(screened, mechanism, "-o", str(tmp_path / "run.toml"))
    assert run(argv) == DataError.exit_code == 3
    said = capsys.readouterr()
    assert not (tmp_path / "run.toml").exists()
    assert "has a token to predict, so it would train on nothing" in said.err
    assert "ε" not in said.out
    with pytest.raises(DataError) as planned:
        tt.plan(mechanism, screened, CHATS, delta=1e-3, **OPTIONS[mechanism])
    config = RunConfig(
        mechanism=mechanism, corpus=Path("m"), model={**CHATS, **SMALL}, delta=1e-3, options=OPTIONS[mechanism]
    )
    with pytest.raises(DataError) as trained:
        train(config, tmp_path / "run", screened=screened)
    assert str(planned.value) == str(trained.value)
    assert run([*argv, "--set", "model.loss_on=all"]) == 0


@pytest.mark.parametrize(("long", "more"), [(0, False), (1, False), (5, True)])
def test_some_are_told_of_in_the_words_of_training_and_stand_in_no_file(
    long: int, more: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    screened = chats(tmp_path, long, out=tmp_path / "screened")
    with caplog.at_level(logging.WARNING, "taciturn"):
        assert run(command(screened, "dpsgd", "--json", "-o", str(tmp_path / "run.toml"))) == 0
        of_command = [each.getMessage() for each in caplog.records]
        caplog.clear()
        planned = tt.plan("dpsgd", screened, CHATS, delta=1e-3, **OPTIONS["dpsgd"])
        of_plan = [each.getMessage() for each in caplog.records]
        caplog.clear()
        config = RunConfig(
            mechanism="dpsgd", corpus=Path("m"), model={**CHATS, **SMALL}, delta=1e-3, options=OPTIONS["dpsgd"]
        )
        train(config, tmp_path / "run", screened=screened)
        of_run = [each.getMessage() for each in caplog.records if "token to predict" in each.getMessage()]
    assert of_command == of_plan == of_run
    assert [line.startswith(f"{long} of 40 records of phase private have no") for line in of_run] == [True] * (long > 0)
    assert ["more than 5" in line for line in of_run] == [more] * (long > 0)
    written = [(tmp_path / "run.toml").read_text(), str(planned), capsys.readouterr().out]
    written += [path.read_text() for path in (tmp_path / "run").glob("*.json*")]
    assert "to predict" not in "".join(written)


def test_plain_text_needs_no_tokenizer_and_a_tokenizer_that_is_not_there_stops_no_plan(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts = ["hello there", "call (555) 010-7701 now", "(555) 010-7702", "…"] * 5
    screened = screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"), unit="turn")
    with caplog.at_level(logging.WARNING, "taciturn"):
        tt.plan("crt", screened, "no-such-model", delta=1e-3, **OPTIONS["crt"])
        assert not caplog.records
        tt.plan(
            "crt", chats(tmp_path, 1), {"name": "no-such-model", "loss_on": "assistant"}, delta=1e-3, **OPTIONS["crt"]
        )
    said = {each.getMessage() for each in caplog.records}
    assert len(said) == 2
    assert all("is not known before training: tokenizer 'no-such-model' cannot be loaded" in each for each in said)


def test_text_that_is_all_masked_is_refused_without_a_tokenizer() -> None:
    screened = screen(Corpus.from_texts(["hello"] * 9), policy("all-private"), policy("all-private"), unit="turn")
    with pytest.raises(DataError, match="none of its 9 records has a token to predict"):
        tt.plan("crt", screened, "no-such-model", delta=1e-3, private=OPTIONS["dpsgd"])


def test_a_class_is_a_target_whatever_the_text(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = [json.dumps({"text": f"note {i % 3}", "label": "ab"[i % 2]}) for i in range(20)]
    (tmp_path / "notes.jsonl").write_text("\n".join(rows) + "\n")
    screened = screen(
        read(str(tmp_path / "notes.jsonl"), label="label"), policy("phone"), policy("conservative"), unit="document"
    )
    with caplog.at_level(logging.WARNING, "taciturn"):
        tt.plan("sgd", screened, {"name": "no-such", "task": "classify", "labels": ["a", "b"]}, delta=1e-3, epochs=1)
        assert not caplog.records
        with pytest.raises(DataError, match=r"of model\.labels"):
            tt.plan(
                "sgd", screened, {"name": "no-such", "task": "classify", "labels": ["a", "c"]}, delta=1e-3, epochs=1
            )


# Many records


def planned(screened: ScreenedCorpus) -> Any:
    config = RunConfig(mechanism="dpsgd", corpus=Path("m"), model=CHATS, delta=1e-3, options=OPTIONS["dpsgd"])
    return make_plan(config, screened)


@pytest.mark.parametrize(("long", "sure"), [(0, None), (3, False), (20, False), (60, True)])
def test_of_many_some_are_drawn_and_only_what_is_sure_is_called_more(
    long: int, sure: bool | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    screened, seen = chats(tmp_path, long, 200), []
    made = planned(screened)
    monkeypatch.setattr(targets, "LOOKED", 100)
    coded = targets.encoded
    monkeypatch.setattr(targets, "encoded", lambda *given: seen.append(coded(*given)) or seen[-1])
    with caplog.at_level(logging.WARNING, "taciturn"):
        warn_of_targets(made, screened)
    assert [len(tokens) for tokens in seen] == [100]
    said = [each.getMessage() for each in caplog.records]
    assert len(said) == (sure is not None)
    for line in said:
        assert "of 100 records of phase private (drawn at random from 200; training counts them all) have no" in line
        assert ("more than 5" in line) == sure


def test_that_none_has_a_target_is_never_taken_from_some_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """All but one of 200 have none, and the one is not among those drawn: looking at all of them says so."""
    monkeypatch.setattr(targets, "LOOKED", 3)
    few = chats(tmp_path, 199, 200)
    with caplog.at_level(logging.WARNING, "taciturn"):
        warn_of_targets(planned(few), few)
    assert [each.getMessage()[:40] for each in caplog.records] == ["199 of 200 records of phase private have"]
    none = chats(tmp_path, 200, 200)
    with pytest.raises(DataError, match="none of its 200 records"):
        warn_of_targets(planned(none), none)


# What is certain without a tokenizer


def wordpiece() -> Any:
    """Drops white space and control characters, and knows few words."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vocab = {word: i for i, word in enumerate(("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a", "."))}
    made = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    return with_mask(PreTrainedTokenizerFast(tokenizer_object=made, **special))


TOKENIZERS = {"bytes": byte_tokenizer(), "bpe": bpe_tokenizer(["a aa . é a"] * 9, 300), "wordpiece": wordpiece()}
PIECES = (MASK, MASK, " ", "a", "é", ".", "<", "\n", "\u200b", "_", "M>")


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=5).map("".join), st.integers(3, 6))
def test_what_is_certain_has_a_target_under_every_tokenizer_and_cut(name: str, text: str, length: int) -> None:
    plan: Any = SimpleNamespace(model=SimpleNamespace(task="causal"))
    phase: Any = SimpleNamespace(targets="all", rule=Plain())
    tokenizer = TOKENIZERS[name]
    aimless = bool(encode_task(tokenizer, [text], length).aimless(mask_id(tokenizer))[0])
    if certain(plan, phase, text):
        assert not aimless
    if text.count(MASK) < 2 and text not in ("", MASK):
        assert certain(plan, phase, text), "nearly all text is"
    for other in (SimpleNamespace(task="masked"), SimpleNamespace(task="causal")):
        marked: Any = SimpleNamespace(targets="marked" if other.task == "causal" else "all", rule=Plain())
        assert not certain(SimpleNamespace(model=other), marked, text)  # type: ignore[arg-type]


def test_what_is_certain_of_sensitive_tokens_is_so() -> None:
    texts = ["(555) 010-7701", "call (555) 010-7701", "(555) 010-7702 ok", "…", "ok", f"{MASK} (555) 010-7703 ok"] * 3
    screened = screen(Corpus.from_texts(texts), policy("phone"), policy("conservative"), unit="turn")
    config = RunConfig(
        mechanism="selective_dpsgd", corpus=Path("m"), model={"name": "lstm", "tokenizer": "bytes"}, delta=1e-3,
        options={"steps": 2, "batch": 4, "noise_multiplier": 6.0},
    )  # fmt: skip
    plan = make_plan(config, screened)
    (phase,) = plan.phases
    found = targets.encoded(byte_tokenizer(), plan, phase, screened, 3)
    some = targets.encoded(byte_tokenizer(), plan, replace(phase, rows=(1, 3)), screened, 3)
    assert [some[i].tolist() for i in range(2)] == [found[1].tolist(), found[3].tolist()]
    sure = [certain(plan, phase, text) for text in screened.texts("original")]
    assert any(sure)
    assert not any(found.aimless(mask_id(byte_tokenizer()))[[i for i, each in enumerate(sure) if each]])
