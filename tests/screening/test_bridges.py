"""What skeletons mask beside what policies mark (bridges.py, guarantees.md §3.1)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening import policy, screen
from taciturn.screening.bridges import BRIDGES, Bridge, places, substituted, whole
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span

WORDS = st.sampled_from(
    f"of de the le a street Inc. and &amp; mayo home {MASK} {MASK} ({MASK}), x{MASK} upon I - _ to\n "
    "e figli & sons z o.o. van der Di di 't co".split(" ")
)
TEXTS = st.lists(WORDS, max_size=10).map(" ".join)


def skeletons(text: str, bridge: Bridge = "particles") -> list[str]:
    wide = policy("conservative")
    return screen(Corpus.from_texts([text]), policy("pii"), wide, unit="document", bridge=bridge).texts("skeletons")


@pytest.mark.parametrize(
    ("text", "skeleton"),
    [
        ("we meet le 14 mai at noon", f"we meet {MASK} at noon"),
        ("this is for Rodger of Earlsferry to read", f"this is for {MASK} to read"),
        ("write to anna.berg&#64;example.com today", f"write to {MASK} today"),
        ("write to Anna &amp; Berta today", f"write to {MASK} today"),
        ("it is on Trumpington street and open", f"it is on {MASK} and open"),
        ("he wrote it on the 26 de mayo de 2004 at home", f"he wrote it on {MASK} at home"),
        ("she went to Newcastle upon Tyne by train", f"she went to {MASK} by train"),
        ("go to number 12 of the Rue de la Paix now", f"go to number {MASK} now"),
    ],
)
def test_a_secret_is_masked_whole(text: str, skeleton: str) -> None:
    """Each left half a secret where only signs were joined."""
    assert skeletons(text) == [skeleton]
    assert skeletons(text, "signs") != [skeleton] or "&#64;" in text


@pytest.mark.parametrize(
    ("language", "text", "rest"),
    [
        ("pl", "faktura firmy Kempka Sp. z o.o. jest jeszcze otwarta", "faktura firmy … jest jeszcze otwarta"),
        ("pl", "faktura firmy Kempka sp. z o.o. jest jeszcze otwarta", "faktura firmy … jest jeszcze otwarta"),
        ("pl", "faktura firmy Starek i syn s.c. jest jeszcze otwarta", "faktura firmy … jest jeszcze otwarta"),
        ("it", "la fattura di Polizzi e figli non è ancora pagata", "la fattura di … non è ancora pagata"),
        ("de", "die Rechnung von Kleinschmidt & Söhne ist offen", "die Rechnung … ist offen"),
        ("de", "die Rechnung von Kleinschmidt und Söhne ist offen", "die Rechnung … ist offen"),
        ("de", "hier wohnt von der Leyen mit uns", "hier wohnt … mit uns"),
        ("en", "the bill of Kleinschmidt and sons is open", "the bill of … is open"),
        ("fr", "la facture de Lemoine et fils est ouverte", "la facture … est ouverte"),
        ("es", "la factura pagada por Quintanilla y hermanos está bien", "la factura pagada por … está bien"),
        ("nl", "het huis is nu bij van der Dussen en zonen", "het huis is nu bij …"),
        ("nl", "dat is voor van 't Riet en niet voor u", "dat is voor … en niet voor u"),
        ("nl", "dat is in Krimpen aan den IJssel en niet hier", "dat is in … en niet hier"),
        ("it", "ho visto ieri Di Stefano in casa", "ho visto ieri … in casa"),
        ("pt", "moro em São Januário agora", "moro em … agora"),
    ],
)
def test_firms_and_surnames_are_masked_with_what_belongs_to_them(language: str, text: str, rest: str) -> None:
    """Each left the end of a firm or the beginning of a surname."""
    wide = policy("conservative" + (f"@{language}" if language != "en" else ""))
    made = screen(Corpus.from_texts([text]), policy("pii"), wide, unit="document").texts("skeletons")
    assert made == [rest.replace("…", MASK)]


def test_an_and_or_a_preposition_by_itself_stays() -> None:
    assert whole(f"{MASK} and may go") == f"{MASK} and may go"
    assert whole(f"vado di {MASK} e dico") == f"vado di {MASK} e dico"


def test_other_words_keep_masks_apart() -> None:
    assert skeletons("from Cambridge to Leicester on 12 May at 17:45 please") == [
        f"from {MASK} to {MASK} on {MASK} at {MASK} please"
    ]
    assert skeletons("a\n17 and\n18", "signs") == [f"a\n{MASK} and\n{MASK}"]


def test_short_words_are_joined_where_that_is_asked_for() -> None:
    text = "please go from Cambridge to Leicester today"
    assert skeletons(text, "short") == [f"please go from {MASK} today"]
    with pytest.raises(UsageError, match="bridge 'shrot' is unknown; did you mean 'short'"):
        screen(Corpus.from_texts([text]), policy("pii"), policy("conservative"), bridge="shrot")  # type: ignore[arg-type]


def test_a_message_ends_what_is_joined() -> None:
    text = f"\x1euser\x1f{MASK} of\x1eassistant\x1f{MASK} the"
    assert whole(text) == text
    assert whole(f"the\n{MASK} of {MASK}") == f"the\n{MASK}"


def test_a_labelled_secret_has_no_blanks_around_it() -> None:
    """The address is the whole record, and its skeleton only a mask: neither has one, and the secret is not missed."""
    text = " Suite 250 "
    assert skeletons(text) == []
    document = Document("d", text, gold=(Span(0, len(text), "address"),))
    counts = screen(Corpus.from_documents([document]), policy("pii"), policy("conservative"), unit="document").counts
    assert (counts.gold_spans, counts.gold_missed_by_both) == (1, 0)


@settings(max_examples=500, deadline=None)
@given(TEXTS, st.sampled_from(BRIDGES), st.data())
def test_masking_words_of_places_leaves_them_as_they_are(text: str, bridge: Bridge, data: st.DataObject) -> None:
    """The closure that the proof of §3.1 needs, and twice is once."""
    found = places(text, (), bridge)
    assert whole(substituted(text, found), bridge) == whole(text, bridge)
    words = [(a + i, a + j) for a, b in found for i, j in _words(text[a:b])]
    some = data.draw(st.lists(st.sampled_from(words), unique=True, max_size=4)) if words else []
    assert whole(substituted(text, sorted(some)), bridge) == whole(text, bridge)


@settings(max_examples=300, deadline=None)
@given(TEXTS)
def test_each_bridge_masks_what_the_one_before_masks(text: str) -> None:
    covered = [{i for a, b in places(text, (), bridge) for i in range(a, b)} for bridge in BRIDGES]
    assert covered[0] <= covered[1] <= covered[2]


def _words(text: str) -> list[tuple[int, int]]:
    found, at = [], 0
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        found.append((start, at))
    return found
