"""screen, evaluate and run say when text and policies speak different languages: in shares, without a word of the text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from taciturn.cli.main import run
from taciturn.project import speaking
from taciturn.project.speaking import marked, notes, sample, speech, spoken
from taciturn.screening import Words, policy
from taciturn.screening.policies.view import WORD
from taciturn.text.readers import Corpus, read

FRENCH = (
    "Je voudrais savoir où est mon colis, parce qu'il devait être ici lundi et il n'est pas encore arrivé. "
    "Nous avons reçu votre demande et nous vous répondrons dès que possible. "
)
ENGLISH = (
    "I would like to know where my parcel is, because it was to be here on Monday and it is not. "
    "We have received your request and we will answer you as soon as we can. "
)
SECRET = "Quillfeather"


def corpus(folder: Path, *texts: str) -> Path:
    path = folder / "mail.jsonl"
    path.write_text("".join(json.dumps({"text": f"{text} {SECRET}{i}", "spans": [
        {"start": len(text) + 1, "end": len(text) + 1 + len(f"{SECRET}{i}"), "label": "NAME"}]}) + "\n"
        for i, text in enumerate(texts)))  # fmt: skip
    return path


def test_french_under_english_words_is_told_with_shares_and_a_better_policy(tmp_path: Path) -> None:
    texts = read(corpus(tmp_path, *[FRENCH] * 12, *[ENGLISH] * 3))
    (said,) = notes(texts, policy("pii"), policy("conservative:names"))
    by = {each.language: each.share for each in speech(sample(texts))}
    assert f"{100 * by['fr']:.0f} % of a sample of the text reads as 'fr'" in said
    assert "`conservative:names@fr`" in said
    english, french = float(said.split("it marks ")[1][:3]), float(said.split("which marks ")[1][:3])
    assert english > 0.4 > 0.2 > french
    assert SECRET not in said
    assert notes(texts, policy("pii"), policy("conservative@fr")) == []
    assert notes(texts, policy("pii"), policy("all-private")) == []
    assert (
        len(notes(texts, policy("words"), policy("conservative"), policy("conservative"), policy("conservative@fr")))
        == 2
    )
    (said,) = notes(texts, policy("words"))
    assert "take a recogniser of that language" in said


def test_two_languages_are_to_be_screened_apart() -> None:
    texts = Corpus.from_texts([*[FRENCH * 8] * 5, *[ENGLISH * 8] * 5])
    (said,) = notes(texts, policy("pii"), policy("conservative"))
    assert "screen the languages apart" in said
    (said,) = notes(texts, policy("pii"), policy("conservative@fr"))
    assert "reads as 'en'" in said


def test_a_little_of_another_language_is_not_worth_a_word() -> None:
    assert notes(Corpus.from_texts([FRENCH, *[ENGLISH * 9] * 9]), policy("pii"), policy("conservative")) == []
    assert notes(Corpus.from_texts([FRENCH]), policy("pii"), policy("conservative")) == []


def test_what_policies_speak() -> None:
    assert spoken(policy("pii", "secrets")) == frozenset()
    assert spoken(policy("conservative:strict@de", "words:4")) == {"de", "en"}


def test_marked_words_are_counted_whole() -> None:
    texts = ["the Slevin's and", "so it is", "Ab-Cd ef-the", "May I", ""]
    words = [word for text in texts for word in WORD.findall(text)]
    one_by_one = sum(Words().marks(word) for word in words if word != "May") / len(words)
    assert marked(policy(Words()), texts) == pytest.approx(one_by_one)
    assert marked(policy("email"), ["write to dana.vale@example.org or not"]) == pytest.approx(4 / 8)
    assert marked(policy(Words()), []) == 0.0


def test_the_sample_is_spread_and_bounded(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text(ENGLISH * 3000 + FRENCH * 3000)
    for i in range(45):
        (tmp_path / f"short{i}.txt").write_text(ENGLISH)
    texts = sample(read(f"{tmp_path}/*.txt"))
    assert len(texts) <= speaking.WINDOWS + speaking.FILES
    assert max(map(len, texts)) <= 2 * speaking.WINDOW
    found = {each.language: each.share for each in speech(sample(read(tmp_path / "long.txt")))}
    assert found["fr"] == pytest.approx(0.5, abs=0.06)
    assert sample(read(tmp_path / "long.txt")) == sample(read(tmp_path / "long.txt"))


def test_the_commands_say_it_and_do_as_they_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(corpus(tmp_path, *[FRENCH] * 6))
    assert run(["screen", path, "-p", "pii", "-o", f"{tmp_path}/a"]) == 0
    told = capsys.readouterr()
    assert "reads as 'fr'" in " ".join(told.err.split())
    assert SECRET not in told.err + told.out
    assert run(["screen", path, "-p", "pii", "-c", "conservative@fr", "-o", f"{tmp_path}/b"]) == 0
    assert "reads as" not in capsys.readouterr().err
    manifests = [json.loads((tmp_path / folder / "manifest.json").read_text()) for folder in "ab"]
    assert [m["policies"]["conservative"]["name"] for m in manifests] == ["conservative", "conservative@fr"]
    assert run(["evaluate", path, "-p", "pii", "-p", "ssn", "-c", "conservative"]) == 0
    err = " ".join(capsys.readouterr().err.split())
    assert err.count("reads as 'fr'") == 1
    assert run(["init", path, "-o", f"{tmp_path}/p.toml"]) == 0
    project = (tmp_path / "p.toml").read_text()
    (tmp_path / "p.toml").write_text(project.replace('"conservative@fr"', '"conservative"'))
    capsys.readouterr()
    assert run(["run", f"{tmp_path}/p.toml", "--until", "screen"]) == 0
    assert "reads as 'fr'" in " ".join(capsys.readouterr().err.split())
