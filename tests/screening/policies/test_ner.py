"""spaCy's levels."""

from __future__ import annotations

import pickle
import random
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening.policies import ner, pipelines
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection

if not pipelines.installed():
    pytest.skip("no spaCy pipeline is installed", allow_module_level=True)

TEXTS = [
    "Mary Johnson of Contoso Ltd flew from Lisbon to Kenya on 3 March 2021.",
    "She crossed the Sahara with him and gave the keys to her brother.",
    "the parcel was opened by a neighbour; three of 14 books were damaged",
    "Ärzte ohne Grenzen — naïve café owners in Zürich paid 20 € to Łukasz.",
    "",
    "   ",
    "🎉🎉 call me\r\n\r\nAnna",
]


def level(name: str, **options: object) -> ner.SpacyLevel:
    (detector,) = ner.named(name, options)
    assert isinstance(detector, ner.SpacyLevel)
    return detector


def marked(detector: ner.SpacyLevel, text: str) -> set[int]:
    (found,) = detector.find([View.of(text)])
    return {i for s in found.spans for i in range(s.start, s.end)}


def words(detector: ner.SpacyLevel, text: str) -> list[str]:
    (found,) = detector.find([View.of(text)])
    return [text[s.start : s.end] for s in found.spans]


@pytest.mark.parametrize("text", TEXTS)
def test_each_level_marks_what_the_one_before_it_marks(text: str) -> None:
    covered = [marked(level(name), text) for name in ner.LEVELS]
    assert all(a <= b for a, b in pairwise(covered))


def test_what_the_levels_add() -> None:
    low, high, low_contextual, high_contextual = (words(level(name), TEXTS[0]) for name in ner.LEVELS)
    assert {"Mary Johnson", "Lisbon", "Kenya", "3 March 2021"} <= set(low)
    assert "14" not in words(level("low-entity"), TEXTS[2])
    assert "14" in words(level("high-entity"), TEXTS[2])
    assert set(low) <= set(high)
    assert "flew" not in low_contextual
    assert "flew" in high_contextual


def test_locations_that_are_no_countries_count_in_the_lowest_level() -> None:
    """The paper's low entity; its code leaves LOC out."""
    assert "LOC" in level("low-entity").labels
    assert level("low-entity").labels != level("high-entity").labels


def test_subjects_and_objects_by_exact_label() -> None:
    text = "The neighbour repaired a bicycle in the garden."
    found = words(level("low-contextual"), text)
    assert {"neighbour", "bicycle", "garden"} <= set(found)
    assert not {"The", "a", "in", "repaired"} & set(found)


def test_a_mask_is_one_word_that_touches_nothing() -> None:
    text = "Dear <MASK>, the invoice went to Lisbon<MASK>."
    detector = level("high-contextual")
    spans = Policy((detector,), "x").find([text])[0].spans
    assert "Lisbon" in [text[s.start : s.end] for s in spans]
    assert not any(s.start <= text.index(",") < s.end or s.end == len(text) for s in spans)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(st.text(max_size=60), st.sampled_from(TEXTS)), min_size=1, max_size=12), st.randoms())
def test_the_batch_does_not_matter(texts: list[str], rng: random.Random) -> None:
    detector = level("high-contextual")
    together = dict(zip(texts, detector.find([View.of(t) for t in texts]), strict=True))
    rng.shuffle(texts)
    assert [together[t] for t in texts] == [detector.find([View.of(t)])[0] for t in texts]


def test_many_texts_of_all_lengths_in_one_batch() -> None:
    rng = random.Random(3)
    vocabulary = " ".join(TEXTS).split()
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(0, 60))) for _ in range(100)]
    detector = level("low-contextual")
    assert detector.find([View.of(t) for t in texts]) == [detector.find([View.of(t)])[0] for t in texts]


def test_beyond_the_limit_of_spacy() -> None:
    """Field case P19. spaCy raises above 1,000,000 characters."""
    text = ("0" * 1_900 + " ") * 560 + "Mary Johnson lives in Lisbon." + (" " + "0" * 1_900) * 3
    (found,) = level("low-entity").find([View.of(text)])
    assert len(text) > 1_000_000
    assert found.status == "ok"
    assert "Lisbon" in {text[s.start : s.end] for s in found.spans}


def test_a_lone_surrogate_is_an_error_and_only_there() -> None:
    found = level("low-entity").find([View.of("Anna \ud800 Smith"), View.of("Mary Johnson lives in Lisbon.")])
    assert found[0] == Detection(status="error")
    assert found[1].spans


def test_never_local() -> None:
    assert not level("low-entity").local(View.of("nothing here"))


def test_pickles_and_has_an_identity() -> None:
    detector = level("low-entity")
    detector.find([View.of("x")])
    copy = pickle.loads(pickle.dumps(detector))
    assert copy == detector
    assert len(pickle.dumps(detector)) < 10_000
    identities = {Policy((level(name),), "x").identity for name in ner.LEVELS}
    assert len(identities | {Policy((level("low-entity", labels=["GPE"]),), "x").identity}) == 5
    definition = detector.definition()
    assert definition["pipeline"] in pipelines.DEFAULTS
    assert definition["version"]


def test_labels_of_ones_own() -> None:
    assert words(level("high-entity", labels=["GPE"]), TEXTS[0]) == ["Lisbon", "Kenya"]


def test_a_pipeline_by_name_and_by_folder() -> None:
    found = pipelines.pipeline()
    by_name = level(f"low-entity@{found.name}")
    by_folder = level(f"low-entity@{found.folder}")
    assert by_name.find([View.of(TEXTS[0])])[0].spans
    assert [s.start for s in by_folder.find([View.of(TEXTS[0])])[0].spans] == [
        s.start for s in by_name.find([View.of(TEXTS[0])])[0].spans
    ]


@pytest.mark.parametrize(
    ("argument", "options", "message"),
    [
        ("low-entitty", {}, "unknown level 'low-entitty'; did you mean 'low-entity'"),
        (
            "low-entity@en_core_web_smm",
            {},
            "no installed pipeline or folder 'en_core_web_smm'; did you mean 'en_core_web_sm",
        ),
        ("low-entity", {"labels": ["PERSO"]}, "no label 'PERSO'; did you mean 'PERSON'"),
        ("low-entity", {"label": ["PERSON"]}, "unknown option 'label'; did you mean 'labels'"),
        ("low-entity", {"labels": "PERSON"}, "option 'labels': input should be a valid list"),
    ],
)
def test_mistakes_are_named(argument: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ner.named(argument, options)


def test_spacy_is_imported_when_something_is_looked_for() -> None:
    code = "import sys; from taciturn.screening.policies import ner; ner.named('low-entity', {})[0].definition(); "
    code += "sys.exit('spacy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_words_seen_are_not_kept() -> None:
    detector = level("low-contextual")
    detector.find([View.of("Anna")])
    nlp = pipelines.loaded(detector.pipeline, pipelines.NEVER | pipelines.LEMMAS)
    before = len(nlp.vocab.strings)
    found = detector.find([View.of(" ".join(f"Word{i + j}q" for j in range(20))) for i in range(0, 2_000, 20)])
    assert len(found) == 100
    assert len(nlp.vocab.strings) < before + 100


def test_low_entity_knows_what_other_languages_call_a_person(tmp_path: Path) -> None:
    """Polish pipelines say persName, Swedish ones PRS; a pipeline of which no label is known is refused."""
    import spacy

    for language, label, found in (
        ("pl", "persName", True),
        ("sv", "PRS", True),
        ("nb", "GPE_LOC", True),
        ("pl", "X", False),
    ):
        nlp = spacy.blank(language)
        nlp.add_pipe("ner").add_label(label)
        nlp.initialize()
        folder = tmp_path / label
        nlp.to_disk(folder)
        if found:
            assert level(f"low-entity@{folder}").labels == (label,)
        else:
            with pytest.raises(UsageError, match=r"names neither persons.* it has X"):
                level(f"low-entity@{folder}")
