"""taciturn init: what it sees in files, what it suggests, and that no text of theirs gets into the project."""

from __future__ import annotations

import csv
import json
import tomllib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel

from looked_at import SAID, seen
from taciturn.cli.main import run
from taciturn.mechanisms import MECHANISMS
from taciturn.mechanisms.config import parse
from taciturn.mechanisms.registry import mechanism
from taciturn.project.comments import words_for
from taciturn.project.inspect_files import Look, inspect
from taciturn.project.language import language
from taciturn.project.settings import Plan, Read, Screen, Settings, load
from taciturn.project.suggest import delta, suggest, suggested_comments, unit
from taciturn.project.write import render, toml
from taciturn.screening.corpus.screened import load as load_screened
from taciturn.screening.policies.conservative import LEVELS
from taciturn.text.readers import read


@pytest.mark.parametrize("code", SAID)
def test_languages_are_told_apart(code: str) -> None:
    assert language(SAID[code]) == code


NO_LANGUAGE = [
    "",
    "8491 2214 !!",
    "xqzt vbrl gnnp wzzt kkrq pplt",
    "yes",
    "Ann Roe\nBob Smith\nTom Miller",
    "\n".join(f"2024-01-02 INFO GET /api/v1/items/{i} 200 {i * 7}ms" for i in range(99)),
]


@pytest.mark.parametrize("text", NO_LANGUAGE)
def test_no_language_is_made_up(text: str) -> None:
    assert language(text) is None


FORMS = {
    "pl": "Faktura VAT nr FV/2023/05/118\nSprzedawca: Nowak Transport Sp. z o.o.\n"
    "NIP: 856-734-62-15\nNabywca: Jan Kowalski\nul. Długa 12/4\n00-238 Warszawa\n"
    "Lp. Nazwa towaru Ilość Cena netto VAT\n1 Papier 10 szt. 18,50 23% 227,55\n"
    "Razem: 227,55 zł",
    "de": "Name: Weber\nVorname: Sabine\nGeburtsdatum: 03.05.1980\n"
    "Anschrift: Lindenweg 7, 10115 Berlin\nKrankenkasse: AOK\n"
    "Versichertennummer: A123456780\nBefund: o.B.\nDiagnose: Hypertonie",
    "fr": "Facture n° 2023-118\nClient : Émile Dupont\n12 rue de la Paix\n75002 Paris\n"
    "Ramette papier A4 10 4,50 € 45,00 €\nTotal HT 45,00 €\nTVA 20 % 9,00 €\n"
    "Net à payer 54,00 €",
    "en": "Name: Dana Vale\nDOB: 03/05/1980\nAddress: 4 Water Lane, Oldtown\nPhone: 450 0840\n"
    "Policy number: 12345678\nMarital status: single\nOccupation: nurse",
    "es": "Factura nº 2023-118\nCliente: Lucía Ortega\nDNI 54362315-K\nCalle Mayor 4, 28013 Madrid\n"
    "Cantidad Descripción Precio\n10 Papel A4 4,50 € 45,00 €\nBase imponible 45,00 €\n"
    "IVA 21 % 9,45 €\nTotal a pagar 54,45 €",
    "sv": "Faktura nr 2023-118\nKundnummer: 48213\nAnna Lindqvist\nStorgatan 5\n114 55 Stockholm\n"
    "Antal Benämning Pris Belopp\n10 Skrivarpapper 45,00 450,00\nMoms 25 % 112,50\n"
    "Att betala 562,50\nFörfallodatum 2023-06-01",
}


@pytest.mark.parametrize("code", FORMS)
def test_forms_and_invoices_are_told_apart(code: str) -> None:
    assert language(FORMS[code]) == code


def test_text_without_capitals_gets_the_strongest_level_that_leaves_half_of_the_words(tmp_path: Path) -> None:
    chats = ["hi i cant log in to my account, can you help me please", "ok, what is your user name and the phone number",
             "its slevin, and I tried twice now", "thanks, i will look at it for you today"]  # fmt: skip
    found = seen(tmp_path, [{"text": chats[i % 4]} for i in range(40)])
    assert (found.language, found.lower, [name for name, _ in found.levels]) == ("en", True, list(LEVELS))
    shares = [share for _, share in found.levels]
    assert shares == sorted(shares)
    (chosen,) = suggest(found, ["mail.jsonl"], "work").screen.conservative
    assert chosen == [name for name, share in found.levels if share <= 0.5][-1]
    assert "No capitals" in " ".join(suggested_comments(found, suggest(found, ["a"], "w"))["screen"])
    for shares, level in (((0.1, 0.2, 0.3, 0.49), 3), ((0.1, 0.2, 0.51, 0.6), 1), ((0.6, 0.7, 0.8, 0.9), 0)):
        look = replace(found, levels=tuple(zip(LEVELS, shares, strict=True)))
        assert suggest(look, ["a"], "w").screen.conservative == (LEVELS[level],)
    assert not seen(tmp_path, [{"text": SAID[code]} for code in ("en", "fr")]).lower


def test_fields_of_mail_are_found(tmp_path: Path) -> None:
    rows = [
        {"id": i, "from": f"u{i % 9}@x.org", "meta": {"subject": "about the parcel"}, "body": SAID["de"],
         "intent": "abc"[i % 3]}
        for i in range(40)
    ]  # fmt: skip
    found = seen(tmp_path, rows)
    assert (found.texts, found.user, found.id, found.label) == (("body", "meta.subject"), "from", "id", "intent")
    assert (found.language, found.documents, found.whole, found.users) == ("de", 40, True, 9)
    settings = suggest(found, ["mail.jsonl"], "work")
    assert settings.screen.policy == ("pii", "de")
    assert settings.read.text == "body"


@pytest.mark.parametrize("column", ["customer_email", "agent", "requester_id"])
def test_columns_that_most_likely_name_a_user(tmp_path: Path, column: str) -> None:
    assert seen(tmp_path, [{"note": SAID["en"], column: f"u{i % 9}"} for i in range(40)]).user == column


def test_a_folder_is_looked_at_file_by_file(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.jsonl").write_text(json.dumps({"text": SAID["fr"], "agent": "x"}) + "\n")
    (folder / "b.txt").write_text(SAID["fr"])
    (folder / ".c").write_text("no")
    (folder / "d.png").write_text("no")
    with zipfile.ZipFile(folder / "e.zip", "w") as archive:
        archive.writestr("e.txt", SAID["fr"])
        archive.writestr("f.doc", "no")
    found = inspect(read(folder))
    assert (dict(found.formats), found.text, found.documents) == ({"text": 2, "jsonl": 1}, "text", 3)
    assert [name for name, _ in found.unreadable] == ["d.png", "e.zip/f.doc"]


def test_a_field_that_is_different_in_each_row_is_no_user_and_a_long_one_no_label(tmp_path: Path) -> None:
    found = seen(tmp_path, [{"text": SAID["en"], "topic": f"{SAID['fr']} {i}"} for i in range(40)])
    assert (found.user, found.label, found.texts[0]) == (None, None, "text")


@pytest.mark.parametrize(
    ("row", "chat", "cut"),
    [
        ({"messages": [{"role": "user", "content": SAID["en"]}]}, "openai", "document"),
        ({"conversations": [{"from": "human", "value": SAID["en"]}]}, "sharegpt", "document"),
        ({"prompt": SAID["en"], "completion": SAID["en"]}, "pairs", "document"),
        ({"instruction": SAID["en"], "input": "", "output": SAID["en"]}, "alpaca", "document"),
        ({"turns": [{"speaker": "USR", "text": SAID["en"]}]}, None, "turn"),
    ],
)
def test_conversations_are_recognised(tmp_path: Path, row: object, chat: str | None, cut: str) -> None:
    found = seen(tmp_path, [row] * 5)
    assert (found.chat, unit(found), found.language) == (chat, cut, "en")


def test_tables_and_plain_text(tmp_path: Path) -> None:
    with (tmp_path / "notes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("nr", "patient", "note"), *((i, f"p{i % 4}", SAID["fr"]) for i in range(8))])
    (tmp_path / "one.txt").write_text(SAID["fr"])
    found = inspect(read(tmp_path / "notes.csv", tmp_path / "one.txt"))
    assert dict(found.formats) == {"csv": 1, "text": 1}
    assert (found.text, found.user, found.language) == ("note", "patient", "fr")


def test_only_some_rows_of_many_are_looked_at(tmp_path: Path) -> None:
    found = seen(tmp_path, [{"text": SAID["en"]}] * 2500)
    assert (found.documents, found.whole) == (2000, False)
    assert 2000 <= found.about <= 4000


def test_settings_follow_the_size() -> None:
    assert delta(800_000) == pytest.approx(1e-7)
    assert delta(3) == 1e-5
    small = Look({"jsonl": 1}, ("text",), None, None, None, None, False, False, "en", 60, True, None, 80.0, 5000, ())
    assert (suggest(small, ["a"], "w").canaries.number, suggest(small, ["a"], "w").audit.attacks) == (
        0,
        ("membership",),
    )
    assert suggest(small, ["a"], "w", mechanism="sgd").plan.epsilon is None
    large = replace(small, documents=5000, whole=True)
    assert suggest(large, ["a"], "w").plan.options["fill"] == "learned"
    assert "fill" not in suggest(small, ["a"], "w").plan.options
    for code, wide in (
        ("en", "conservative"),
        ("fr", "conservative@fr"),
        ("ja", "conservative"),
        (None, "conservative"),
    ):
        assert suggest(replace(small, language=code), ["a"], "w").screen.conservative == (wide,)
    assert "fill" not in suggest(large, ["a"], "w", mechanism="jft").plan.options
    assert "goes into a table that is released" in " ".join(
        suggested_comments(large, suggest(large, ["a"], "w"))["plan"]
    )
    learned = {
        name for name in MECHANISMS if suggest(large, ["a"], "w", mechanism=name).plan.model.tokenizer != "bytes"
    }
    assert learned == set(MECHANISMS) - {"dpsgd", "uedp", "uedp-published", "user_dp"}, (
        "no vocabulary of what is protected"
    )


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_is_written_reads_back_as_it_was(tmp_path: Path, name: str) -> None:
    settings = Settings(
        folder="w", read=Read(paths=("a", "b")), screen=Screen(policy=("pii",)), plan=Plan(mechanism=name)
    )
    (tmp_path / "p.toml").write_text(render(settings, "p.toml"), "utf-8")
    back = load(tmp_path / "p.toml").settings
    config = mechanism(name).Config
    assert parse(config, back.plan.options, "back") == config()
    plain = {"plan": {"options": True}}
    assert back.model_dump(exclude=plain) == settings.model_dump(exclude=plain)


def test_a_project_offers_public_values_and_refuses_the_corpus_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "talk.txt").write_text("we met in Ely\nwe met Dana\nwrite to a@b.org\nall is well\n" * 3, "utf-8")
    (tmp_path / "places.txt").write_text("Ely\n", "utf-8")
    path = tmp_path / "project.toml"
    assert run(["init", f"{tmp_path}/talk.txt", "--format", "lines", "-o", str(path)]) == 0
    text = path.read_text("utf-8")
    assert '# public_values = ["catalogue.txt"]' in text
    assert "Never make it from the corpus itself" in text

    def screened(values: str, kinds: str = "") -> int:
        made = text.replace("public_values = []", f'public_values = ["{values}"]')
        made = made.replace("public_kinds = []", f"public_kinds = [{kinds}]").replace("number = 10", "number = 0")
        path.write_text(made, "utf-8")
        return run(["run", str(path), "--until", "screen"])

    assert screened("talk.txt") == 2
    assert "talk.txt is one of the files to screen" in capsys.readouterr().err
    assert screened("places.txt", '"tim"') == 2
    assert "public_kinds" in capsys.readouterr().err
    assert screened("places.txt") == 0
    assert screened("places.txt") == 0
    assert len(list((tmp_path / "project/screened").iterdir())) == 1
    (tmp_path / "places.txt").write_text("Ely\nDana\n", "utf-8")
    assert screened("places.txt") == 0
    folders = sorted((tmp_path / "project/screened").iterdir())
    assert [load_screened(each).manifest.public.values for each in folders] == [1, 2]  # type: ignore[union-attr]
    assert [load_screened(each).counts.public for each in folders] == [6, 9]


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_setting_has_a_comment_and_every_example_is_toml(name: str) -> None:
    """Nothing can be added to a configuration without saying in words what it is."""

    def check(model: type[BaseModel], path: str) -> None:
        for field, about in model.model_fields.items():
            key = f"{path}.{field}".lstrip(".")
            inner = [k for k in (about.annotation, *getattr(about.annotation, "__args__", ()))
                     if isinstance(k, type) and issubclass(k, BaseModel)]  # fmt: skip
            if key == "plan.options":
                check(mechanism(name).Config, key)
                continue
            said, example = words_for(key, table=bool(inner)) if inner else words_for(key)
            if not said:
                said, _ = words_for(key, table=True)
            assert said, f"{key} has no words in project/comments.py"
            assert not example or tomllib.loads(f"x = {example}" if not inner else example)
            for each in inner:
                check(each, key)

    check(Settings, "")


def test_the_command_writes_a_project_without_a_word_of_the_corpus(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secrets = ["Zyxwvana", "Quillfeather", "078-05-1126"]
    rows = [
        {"body": f"{SAID['en']} {secrets[0]} {secrets[1]} {secrets[2]} {i}", "sender": f"{secrets[1]}{i % 7}"}
        for i in range(30)
    ]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mail.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "data/broken.parquet").write_text("no table")
    argv = ["init", f"{tmp_path}/data/*", "-o", f"{tmp_path}/p/project.toml", "--json"]
    assert run(argv) == 0
    told = capsys.readouterr()
    facts = json.loads(told.out)["seen"]
    assert (facts["text"], facts["user"], facts["language"], facts["unreadable"]) == (
        "body",
        "sender",
        "en",
        ["broken.parquet"],
    )
    text = (tmp_path / "p/project.toml").read_text()
    assert not [secret for secret in (*secrets, "parcel") if secret in text + told.out + told.err]
    assert load(tmp_path / "p/project.toml").settings.read.paths == ("../data/*",)
    assert max(map(len, text.splitlines())) <= 122
    assert run(argv) == 2  # it exists
    assert "--force" in capsys.readouterr().err
    assert run([*argv, "--force"]) == 0
    assert (tmp_path / "p/project.toml").read_text() == text


@pytest.mark.parametrize(
    ("argv", "code", "says"),
    [
        (["nowhere.jsonl"], 3, "no such file"),
        (["bad.bin"], 3, "none of the files can be read: bad.bin"),
        (["empty.jsonl"], 3, "none of the files can be read: empty.jsonl"),
        (["good.txt", "--mechanism", "ctr"], 2, "did you mean 'crt'?"),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    argv: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.bin").write_bytes(b"\0\1\2")
    (tmp_path / "empty.jsonl").write_text("")
    (tmp_path / "good.txt").write_text("hello")
    assert run(["init", *argv]) == code
    assert says in capsys.readouterr().err
    assert not (tmp_path / "project.toml").exists()


def test_values_are_toml() -> None:
    for value in (1, 1.5, True, 'a "b" \\', ("x", "y"), [], {"a": {"b": [1]}}):
        back = tomllib.loads(f"x = {toml(value)}")["x"]
        assert back == (list(value) if isinstance(value, tuple) else value)
