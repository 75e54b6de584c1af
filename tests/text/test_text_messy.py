"""Real and awkward files, one by one: what each becomes with the options that a user would give."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from taciturn.cli.main import run
from taciturn.errors import DataError
from taciturn.text.document import Document
from taciturn.text.readers import Blank, Quarantined, read
from taciturn.text.segment import split


@dataclass(frozen=True, slots=True)
class Case:
    """documents, blank: how many. bad: how many quarantined for a reason that holds the text. error: part of a DataError."""

    file: str
    documents: int = 0
    options: dict[str, Any] = field(default_factory=dict)
    blank: int = 0
    bad: tuple[int, str] = (0, "")
    error: str = ""


NO_OBJECT = "where an object with named fields is expected"
UDHR = [f"udhr_{code}.txt" for code in ("cmn_hans", "ell_monotonic", "hin", "jpn", "rus", "tha", "arb", "heb", "kor")]
CASES = [
    Case("PROVENANCE.md", 1),
    Case(
        "alpaca_zh.json", error="fields there: input, instruction, output; they look like conversations: chat='alpaca'"
    ),
    Case("alpaca_zh.json", 1000, {"chat": "alpaca"}),
    Case("alpaca_zh.json", 1000, {"text": "output"}),
    Case("chat_ubuntu_irc_raw.txt", 1),
    Case("chat_ubuntu_irc_raw.txt", 2089, {"format": "lines"}),
    Case(
        "chat_ubuntu_irc_raw.txt", options={"format": "whatsapp"}, error="is no WhatsApp export: line 1 does not begin"
    ),
    Case("contacts_outlook2007.vcf", 1, blank=2),
    Case("contacts_outlook2007.vcf", 1, {"text": "fn"}, blank=2),
    Case("csv_empty_crlf.csv", error="none of the 2 records has a field 'text'; fields there: a, b, c"),
    Case("csv_empty_crlf.csv", 1, {"text": "b"}, blank=1),
    Case("csv_newlines_crlf.csv", 3, {"text": "a"}),
    Case("csv_quotes_and_newlines.csv", 2, {"text": "b"}),
    Case("doc_id_passwd.txt", 1),
    Case(
        "gitleaks_baseline.json", error="none of the 2 records has a field 'text'; fields there: Author, Commit, Date"
    ),
    Case("gitleaks_baseline.json", 2, {"text": "Message"}),
    Case("html_table_credentials.html", 1),
    Case("json_i_string_1st_surrogate_but_2nd_missing.json", bad=(1, "lone surrogate")),
    Case("json_i_string_invalid_utf-8.json", bad=(1, "not valid UTF-8 at byte 2")),
    Case("json_i_string_invalid_utf-8.json", options={"encoding_errors": "replace"}, bad=(1, NO_OBJECT)),
    Case("json_i_string_invalid_utf-8.json", 1, {"encoding_errors": "replace", "format": "text"}),
    Case(
        "json_i_structure_UTF-8_BOM_empty_object.json",
        error="none of the 1 records has a field 'text'; fields there: none",
    ),
    Case("json_n_structure_100000_opening_arrays.json", bad=(1, "not valid JSON")),
    Case("json_n_structure_100000_opening_arrays.json", 1, {"format": "lines"}),
    Case("json_y_string_null_escape.json", bad=(1, NO_OBJECT)),
    Case("log_pem_key.log", 1),
    Case("log_pem_key_docker.log", 1),
    Case("mail_encoding_madness.eml", 1),
    Case("mail_encoding_madness.eml", 1, {"text": "body"}),
    Case("mail_japanese_iso2022jp.eml", 1, blank=1),
    Case("mail_two_from.eml", 1),
    Case("mbox_test-4-message.mbox", 4),
    Case("mbox_test-not-an.mbox", error="is no mbox: line 1 is no 'From ' line with a date"),
    Case(
        "mbox_test-not-an.mbox", options={"format": "eml"}, error="is no mail message: it does not begin with a header"
    ),
    Case("naughty_strings.json", bad=(515, NO_OBJECT)),
    Case("naughty_strings.json", 517, {"format": "lines"}),
    Case("openai_style_messages.jsonl", error="fields there: messages; they look like conversations: chat='openai'"),
    Case("openai_style_messages.jsonl", 500, {"chat": "openai"}),
    Case("people_fakenames_100.csv", error="none of the 100 records has a field 'text'; fields there: Age, Birthday"),
    Case("people_fakenames_100.csv", 100, {"text": "Surname", "id": "Number", "user": "Username"}),
    Case("presidio_demo.txt", 1),
    Case("secrets_config.env", 1),
    Case("secrets_each_secret.py", 1),
    Case("secrets_private_key", 1),
    Case(
        "sharegpt_toolcall.json",
        error="fields there: conversations, tools; they look like conversations: chat='sharegpt'",
    ),
    Case("sharegpt_toolcall.json", 300, {"chat": "sharegpt"}),
    Case("sharegpt_toolcall.json", options={"chat": "openai:conversations"}, bad=(300, "message 1 has no role")),
    Case("sql_password.txt", 1),
    *(Case(name, 1) for name in UDHR[:6]),
    Case("utf8_utf8_sequence_0-0xff_assigned_including-unprintable-replaced_unseparated.txt", 1),
    Case("utf8_utf8_sequence_0-0xffff_including-unassigned_including-unprintable-asis_unseparated.txt", 1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.file}-{','.join(map(str, case.options.values()))}")
def test_what_each_file_becomes(shared: Path, case: Case) -> None:
    corpus = read(shared / "data" / "messy" / case.file, **case.options)
    if case.error:
        with pytest.raises(DataError) as caught:
            list(corpus.items())
        assert case.error in str(caught.value)
        assert len(str(caught.value)) < 400
        return
    items = list(corpus.items())
    counts = Counter(type(item) for item in items)
    assert (counts[Document], counts[Blank], counts[Quarantined]) == (case.documents, case.blank, case.bad[0])
    assert all(case.bad[1] in item.reason for item in items if isinstance(item, Quarantined))


def test_no_file_is_left_out(shared: Path) -> None:
    assert {path.name for path in (shared / "data" / "messy").iterdir()} == {case.file for case in CASES}


def one(shared: Path, name: str, **options: Any) -> Document:
    (document,) = read(shared / "data" / "messy" / name, **options).documents()
    return document


def test_what_is_read_of_mail_and_cards(shared: Path) -> None:
    japanese = one(shared, "mail_japanese_iso2022jp.eml")
    assert japanese.text.strip() == "まみむめも" * 10
    assert japanese.user == "mikel@test.lindsaar.net"
    assert one(shared, "mail_encoding_madness.eml", text="body").text == "Body Text"
    two = one(shared, "mail_two_from.eml").text
    assert "* From Hotmail you get the ads as well.\r\n* From GMail" in two
    assert "<div" not in two
    card = one(shared, "contacts_outlook2007.vcf").text
    assert card.startswith("N: Angstadt, Michael, Mr., Jr.\nFN: Mr. Michael Angstadt Jr.\n")
    assert "\nADR: TheOffice, 222 Broadway, New York, NY, 99999, USA\n" in card
    assert "/9j/" not in card
    page = one(shared, "html_table_credentials.html").text
    assert page.startswith("Title\n3\ttoken\tsecret\tkey\tpassword\n")


def test_all_code_points_are_read_and_private(shared: Path) -> None:
    every = one(shared, "utf8_utf8_sequence_0-0xffff_including-unassigned_including-unprintable-asis_unseparated.txt")
    assert set(map(ord, every.text)) >= {*range(0xD800), *range(0xE000, 0xFDD0)}
    assert every.private_because


@pytest.mark.parametrize("name", UDHR)
def test_a_text_in_any_script_is_cut_into_sentences_that_join_back(shared: Path, name: str) -> None:
    path = shared / "data" / "messy" / name
    if not path.exists():
        pytest.skip(f"{name} is not among the shared files")
    (document,) = read(path).documents()
    records = split(document, "sentence")
    assert "".join(record.text for record in records) == document.text == path.read_bytes().decode()
    lines = [line for line in document.text.split("\n") if line.strip()]
    assert len(records) >= len(lines)
    if "tha" not in name:  # Thai has no mark at the end of a sentence
        assert len(records) > len(lines)


@pytest.mark.parametrize(
    ("name", "options", "code", "unsaid"),
    [
        ("mbox_test-4-message.mbox", [], 0, ["mail content"]),
        ("mail_two_from.eml", ["--unit", "document"], 0, ["Hotmail", "signature"]),
        ("secrets_private_key", [], 0, ["somethingSuper"]),
        ("naughty_strings.json", [], 3, ["undefined", "hasOwn"]),
        ("json_i_string_invalid_utf-8.json", [], 3, ["\ufffd"]),
        ("openai_style_messages.jsonl", [], 3, ["{{name}}", "assistant developed"]),
        ("people_fakenames_100.csv", [], 3, ["Hamanov", "Desrosiers"]),
        ("people_fakenames_100.csv", ["--text", "NationalID"], 0, ["Hamanov", "Desrosiers"]),
        ("mbox_test-not-an.mbox", [], 3, ["This isn't"]),
    ],
)
def test_screening_ends_in_a_folder_or_a_message(
    shared: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    options: list[str],
    code: int,
    unsaid: list[str],
) -> None:
    folder = tmp_path / "screened"
    path = str(shared / "data" / "messy" / name)
    assert run(["screen", path, *options, "-p", "phone,email", "-o", str(folder)]) == code
    said = "".join(capsys.readouterr())
    assert "Traceback" not in said
    assert not [text for text in unsaid if text in said]
    assert (folder / "manifest.json").exists() == (code == 0)
