"""The packs pl, it, nl, pt, se, br: whole numbers with their offsets; wrong check digits, named or not."""

from __future__ import annotations

from importlib import import_module

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening import policy
from taciturn.screening.policies import patterns
from taciturn.screening.policies.check_digits import pl_id_card, pt_social, se_personal

FINDS = [
    ("pl", "Jego PESEL to 44051401359, dziękuję.", "44051401359"),
    ("pl", "numer 44051401359 w umowie", "44051401359"),
    ("pl", "firma (NIP 856-734-62-15)", "856-734-62-15"),
    ("pl", "dowód osobisty seria i numer: ABA 300000", "ABA 300000"),
    ("pl", "na konto 61 1090 1014 0000 0712 1981 2874 do piątku", "61 1090 1014 0000 0712 1981 2874"),
    ("pl", "mieszka przy ul. Długiej 12/4, 00-238 Warszawa", "ul. Długiej 12/4, 00-238 Warszawa"),
    ("pl", "urodzony 3 maja 1980 w Łodzi", "3 maja 1980"),
    ("it", "il codice RCCMNL83S18D969H è suo", "RCCMNL83S18D969H"),
    ("it", "P.IVA 00743110157", "00743110157"),
    ("it", "abita in via Garibaldi, 12, 00184 Roma", "via Garibaldi, 12, 00184 Roma"),
    ("it", "in viale dei Mille 4", "viale dei Mille 4"),
    ("it", "nata a Roma il 1º maggio 1980", "1º maggio 1980"),
    ("nl", "zijn BSN is 111222333.", "111222333"),
    ("nl", "kenteken 12-ABC-3", "12-ABC-3"),
    ("nl", "geboren te Utrecht op 3 mei 1980", "3 mei 1980"),
    ("nl", "KvK-nummer 12345678", "12345678"),
    ("pt", "o NIF 501 964 843 está certo", "501 964 843"),
    ("pt", "segurança social 11234567892", "11234567892"),
    ("pt", "ligue 912345678", "912345678"),
    ("pt", "nascido a 3 de maio de 1980", "3 de maio de 1980"),
    ("se", "hon har 880320-0016", "880320-0016"),
    ("se", "samordningsnummer 701063-2391", "701063-2391"),
    ("se", "bankgiro 5050-1055", "5050-1055"),
    ("se", "född den 3 maj 1980", "3 maj 1980"),
    ("br", "meu CPF 390.533.447-05", "390.533.447-05"),
    ("br", "a empresa 16.727.230/0001-97", "16.727.230/0001-97"),
    ("br", "fone (11) 91234-5678", "(11) 91234-5678"),
]


@pytest.mark.parametrize(("pack", "text", "value"), FINDS)
@pytest.mark.parametrize("around", ["{}", "…\u00a0{}", "Zażółć 🙂\n{}\n"])
def test_a_number_is_found_whole(pack: str, text: str, value: str, around: str) -> None:
    text = around.format(text)
    spans = policy(pack).find([text])[0].spans
    assert value in [text[s.start : s.end] for s in spans]


WRONG = [  # pack, a number whose check digit fails, its name
    ("pl", "44051401358", "PESEL:"),
    ("pl", "856-734-62-16", "NIP"),
    ("pl", "ABA 400000", "dowód osobisty nr"),
    ("it", "RCCMNL83S18D969A", "codice fiscale"),
    ("it", "00743110158", "partita IVA n."),
    ("nl", "111222334", "BSN is"),
    ("pt", "501964844", "NIF:"),
    ("pt", "11234567890", "NISS"),
    ("se", "880320-0018", "personnummer är"),
    ("br", "390.533.447-06", "CPF nº"),
    ("br", "16.727.230/0001-98", "CNPJ:"),
]


@pytest.mark.parametrize(("pack", "number", "cue"), WRONG)
def test_a_wrong_check_digit_needs_the_name_of_the_number(pack: str, number: str, cue: str) -> None:
    named, bare = f"… {cue} {number} …", f"… {number} …"
    spans = policy(pack).find([named])[0].spans
    assert [named[s.start : s.end] for s in spans] == [number]
    assert policy(pack).find([bare])[0].spans == ()


LEAVES = [
    ("pl", "W latach 2010-2020 sprzedano 12 345,67 ton, str. 123-456, faktura 1/2020"),
    ("it", "Via libera del governo nel 2020, nato 30 anni fa, il corso di 12 lezioni, patente da 10 anni"),
    ("nl", "In 2012, van 1990 tot 2000, het nummer 12345, 1234 SS"),
    ("pt", "Entre 1990-2000 foram 12.345 pessoas, a conta de 12 euros"),
    ("se", "år 2010-2020 kostade det 123 456 kronor, sidan 12-34"),
    ("br", "de 1990-2000, 12.345 pessoas, R$ 1.234,56"),
]


@pytest.mark.parametrize(("pack", "text"), LEAVES)
def test_years_amounts_and_pages_are_left(pack: str, text: str) -> None:
    assert policy(pack).find([text])[0].spans == ()


@given(st.from_regex(r"[0-9]{6}[-+][0-9]{4}", fullmatch=True))
def test_swedish_numbers_are_those_of_the_standard_but_for_leap_years_and_coordination_numbers(number: str) -> None:
    valid = import_module("stdnum.se.personnummer").is_valid
    for each in {number[:-1] + c for c in "0123456789"}:
        day = int(each[4:6])
        if day <= 28:
            assert bool(se_personal(each)) == valid(each)


@given(st.from_regex(r"[A-Z]{3}[0-9]{6}", fullmatch=True), st.from_regex(r"[12][0-9]{10}", fullmatch=True))
def test_check_digits_by_the_sums_that_are_published(card: str, social: str) -> None:
    """Polish cards: weights 7 3 1 9 7 3 1 7 3 sum to a multiple of ten. NISS: primes, and the last digit, to 9."""
    for each in (card[:3] + c + card[4:] for c in "0123456789"):
        total = sum(w * int(c, 36) for w, c in zip((7, 3, 1, 9, 7, 3, 1, 7, 3), each, strict=True))
        assert bool(pl_id_card(each)) == (total % 10 == 0)
    for each in (social[:-1] + c for c in "0123456789"):
        total = sum(w * int(c) for w, c in zip((29, 23, 19, 17, 13, 11, 7, 5, 3, 2, 1), each, strict=True))
        assert bool(pt_social(each)) == (total % 10 == 9)


def test_packs_are_presets_and_their_countries_names_lead_to_them() -> None:
    assert {"pl", "it", "nl", "pt", "se", "br"} <= set(patterns.PACKS)
    with pytest.raises(UsageError, match="did you mean 'pl'"):
        policy("polska")
    with pytest.raises(UsageError, match="did you mean 'se-personal'"):
        policy("sweden-personal")
