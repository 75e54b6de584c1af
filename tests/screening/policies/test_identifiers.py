"""Numbers by which others know a person: in other languages, and behind cues that say no "number"."""

from __future__ import annotations

import pytest

from taciturn.screening.policies import policy
from taciturn.screening.redact import redact
from taciturn.text.document import MASK


@pytest.mark.parametrize(
    "text",
    [
        "Meine Kundennr. lautet [48213-A], danke",
        "Aktenzeichen: [12 C 345/22]",
        "Az. [7 O 112/21] des Gerichts",
        "Ihre Vertrags-Nummer ist [998812].",
        "numéro de dossier : [45-8812]",
        "mon n° client est [88112]",
        "le dossier n° [2021/0882] est clos",
        "nº de expediente [22/2019]",
        "el número de cliente es [99812]",
        "mi póliza [8812993] vence hoy",
        "numero di pratica [2020/118]",
        "la polizza [9981-22] è scaduta",
        "mijn klantnummer is [88120]",
        "dossiernummer [2020-118]",
        "numer umowy to [2020/118]",
        "sygnatura akt [II K 118/20]",
        "o número de processo é [118/20]",
        "apólice [77123-1]",
        "about case [22-1881] again",
        "my claim [88120-A] is open",
        "policy [QX 4471]",
        "customer #[88120]",
    ],
)
def test_an_identifier_is_masked_whole(text: str) -> None:
    before, _, rest = text.partition("[")
    value, _, after = rest.partition("]")
    assert redact([before + value + after], policy("pii"))[0].text == before + MASK + after


@pytest.mark.parametrize(
    "text",
    [
        "in the case 2019 was hard",
        "a policy 5000 euros worth",
        "customer 1234 times",
        "member since 2011",
        "booking 2 rooms for 4 people",
        "your case is 2 days old",
        "fall 2019 was warm",
        "no cliente 20 llegó",
        "el contrato de 2019 es largo",
        "im Fall 12 ist es so",
    ],
)
def test_years_and_counts_are_none(text: str) -> None:
    assert redact([text], policy("pii"))[0].text == text
