"""Built-in patterns beyond those of test_policies.py: what each finds, what it leaves, check digits."""

from __future__ import annotations

import pickle
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taciturn.screening import policy
from taciturn.screening.policies import View, patterns
from taciturn.screening.policies.checks import CHECKS, version
from taciturn.screening.redact import redact
from taciturn.text.document import MASK

FINDS = [
    ("phone", "call (08) 8747 6301 now", "(08) 8747 6301"),
    ("phone", "or 01.84.17.61.18", "01.84.17.61.18"),
    ("phone-cued", "call me on 450 0840.", "450 0840"),
    ("phone-cued", "Tel: 78 651 450", "78 651 450"),
    (
        "address-block",
        "at 28 Edeby 55\n Apt. 297\n TYSTBERGA\n Sweden 18237.",
        "28 Edeby 55\n Apt. 297\n TYSTBERGA\n Sweden 18237",
    ),
    ("address", "PSC 0413, Box 8144\nAPO AA 42323", "PSC 0413, Box 8144\nAPO AA 42323"),
    ("street-abroad", "lives at Rua do Arenque 1634, Goiânia", "Rua do Arenque 1634"),
    ("street-abroad", "12 rue de la Paix", "12 rue de la Paix"),
    ("street-abroad", "in der Hauptstraße 5a, Köln", "Hauptstraße 5a"),
    ("postcode", "endicott ny 13760", "ny 13760"),
    ("postcode-cued", "my zip code is 880", "880"),
    ("email-spoken", "dana dot vale at example dot org", "dana dot vale at example dot org"),
    ("email-spoken", "dana (at) example (dot) org", "dana (at) example (dot) org"),
    ("email-spoken", "its raj 2015 gmailcom", "raj 2015 gmailcom"),
    ("url-token", "see https://a.example/b?x=1&access_token=abc end", "https://a.example/b?x=1&access_token=abc"),
    ("url-token", "ftp://dana:" + "pw@a.example/x", "ftp://dana:pw@a.example/x"),
    ("domain", "card 4151 3217 6243 3448.com", "3448.com"),
    ("account", "my account number is 542168940 and", "542168940"),
    ("account", "routing: 123456789", "123456789"),
    ("bic", "SWIFT code: DEUTDEFF500", "DEUTDEFF500"),
    ("identifier", "claim number is abd 654895565, ok", "abd 654895565"),
    ("identifier", "booking reference a 4 g 4 f 3", "a 4 g 4 f 3"),
    ("number-named", "the number is AB-99182", "AB-99182"),
    ("card-shaped", "9632 1245 9856 3256", "9632 1245 9856 3256"),
    ("wallet", "to 1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2.", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2"),
    ("ip", "from 2001:db8::8:800:200c:417a,", "2001:db8::8:800:200c:417a"),
    ("ip", "at ::ffff:192.168.0.1", "::ffff:192.168.0.1"),
    ("mac", "00-1b-44-11-3a-b7", "00-1b-44-11-3a-b7"),
    ("imei", "IMEI: 49-015420-323751-8", "49-015420-323751-8"),
    ("vin", "car 1m8gdm9axkp042788", "1m8gdm9axkp042788"),
    ("coordinates", "at 48.85837, 2.294481", "48.85837, 2.294481"),
    ("degrees", "48° 51′ 29.6″ N, 2°17′40.2″ E", "48° 51′ 29.6″ N, 2°17′40.2″ E"),
    ("uuid", "id 123E4567-e89b-12d3-a456-426614174000", "123E4567-e89b-12d3-a456-426614174000"),
    ("passport", "passport number: C01X00T47", "C01X00T47"),
    ("driving-licence", "driver's license F162823540116 please", "F162823540116"),
    ("medical-record", "MRN: 00-482913", "00-482913"),
    ("tax-id", "Steuernummer: 93/815/08152", "93/815/08152"),
    ("vat", "ATU 13585627", "ATU 13585627"),
    ("plate", "license plate 8ABC123 and", "8ABC123"),
    ("plate", "Kennzeichen: B-MW 1234", "B-MW 1234"),
    ("date", "on 4th of March 1987,", "4th of March 1987"),
    ("date", "le 14 juillet 1989", "14 juillet 1989"),
    ("date-of-birth", "date of birth. It's 3/23/1940", "3/23/1940"),
    ("date-of-birth", "geboren am 4. März 1987", "4. März 1987"),
    ("mrz", "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<", "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"),
    ("us-ssn", "last four of my ssn is 2254", "2254"),
    ("us-itin", "912-90-3456", "912-90-3456"),
    ("gb-nino", "AB 12 34 56 C", "AB 12 34 56 C"),
    ("gb-sort-code", "sort code 20-45-45 12345678", "20-45-45 12345678"),
    ("gb-driving-licence", "MORGA753116SM9IJ", "MORGA753116SM9IJ"),
    ("de-plate", "der Wagen B-MW 1234", "B-MW 1234"),
    ("de-pension", "65 170839 J 003", "65 170839 J 003"),
    ("fr-insee", "2 95 10 99 126 111 93", "2 95 10 99 126 111 93"),
    ("es-nie", "nie x-2482300w", "x-2482300w"),
    ("in-pan", "PAN ACUPA7085R", "ACUPA7085R"),
    ("in-phone", "98765 43210", "98765 43210"),
    ("cue-name", "my name is richard and i will be taking over from here", "richard"),
    ("cue-name", "name: dana vale-ott, 34", "dana vale-ott"),
    ("cue-calling", "hello this is dana calling about", "dana"),
    ("cue-i-am", "Hi, I'm Dana.", "Dana"),
    ("cue-address", "my address is 4 water lane, oldtown. thanks", "4 water lane, oldtown"),
    ("cue-number", "pin is 4821", "4821"),
    ("cue-login", "username: cminh730", "cminh730"),
]


@pytest.mark.parametrize(("name", "text", "value"), FINDS)
def test_a_detector_finds_exactly_the_value(name: str, text: str, value: str) -> None:
    spans = policy(name).find([text])[0].spans
    assert [text[s.start : s.end] for s in spans] == [value]


LEAVES = [
    ("account", "on account of the 12 of them, an account in 2015"),
    ("identifier", "the order number on 3 May, a case of 12345"),
    ("number-named", "no. 12 of a number is large"),
    ("bic", "a swift recovery"),
    ("wallet", "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN3 and bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdr"),
    ("ip", "std::vector, 12:30:45, a::b and 1:2:3"),
    ("mac", "00:1B:44:11:3A and 00:1B-44:11:3A:B7"),
    ("imei", "IMEI 49-015420-323751-9"),
    ("vin", "1M8GDM9A1KP042788 ABCDEFGHJKLMNPRST"),
    ("coordinates", "99.12345, 2.294481 and 1.5, 2.5"),
    ("passport", "a passport photo for 12 people"),
    ("plate", "the registration fee of 120, registration is 5 days late"),
    ("tax-id", "a tin of 12 beans"),
    ("date", "99/99/2020, 1/2, may 2"[:18]),
    ("date-of-birth", "born in 1940"),
    ("street-abroad", "Plaza . It is a 7, Avenue . Route 29, Spring 2003, During 1940"),
    ("email-spoken", "look at example, dots at the end"),
    ("cue-name", "my name is not important, the name of the rose, my name appears wrong"),
    ("cue-calling", "i'm exhausted from work and i'm going with you"),
    ("cue-number", "i like to order 2 pizzas, the battery of your phone is below 20"),
    ("cue-address", "change the address on my card"),
    ("us-routing", "111000026"),
    ("gb-nino", "BG 12 34 56 C"),
    ("fr-insee", "2 95 10 99 126 111 94"),
    ("es-dni", "54362315-Z"),
]


@pytest.mark.parametrize(("name", "text"), LEAVES)
def test_a_detector_leaves_what_only_looks_alike(name: str, text: str) -> None:
    assert policy(name).find([text])[0].spans == ()


FIELD = [  # what people reported of other tools, and what is right
    ("312.714.8142 (cell) or 773.415.7432 (office)", "{} (cell) or {} (office)"),
    ("anna dot berg at example dot com", "{}"),
    ("write anna [at] example [dot] com now", "write {} now"),
    ("anna underscore berg at example dot co dot uk", "{}"),
    ("message 1693526400 and order 2028675309", "message 1693526400 and order 2028675309"),
    ("Ticket: 2028675309, but call 2028675309", "Ticket: 2028675309, but call {}"),
    ("at 1693526400000 ms", "at 1693526400000 ms"),
    ("MongoDB v4.4.2.10, nginx 1.22.1.3, loopback 127.0.0.1", "MongoDB v4.4.2.10, nginx 1.22.1.3, loopback 127.0.0.1"),
    ("from 84.12.7.200, ip 1.2.3.4", "from {}, ip {}"),
    ("id 110bcd25-a55d-453a-8046-1297901ea002", "id 110bcd25-a55d-453a-8046-1297901ea002"),
    ("IT60 X054 2811 1010 0000 0123 456", "{}"),
    ("IT60-X054-2811-1010-0000-0123-456 said", "{} said"),
    ("DE89370400440532013000 failed and DE89 3704 0044 0532 0130 00 ok", "{} failed and {} ok"),
    ("my ssn is 078051121", "my ssn is {}"),
    ("SSN: 078.05.1121", "SSN: {}"),
    ("cvv: 123", "cvv: {}"),
    ("pin is 4821", "pin is {}"),
    ("your verification code is 482 913", "your verification code is {}"),
    ("ext 555-0132", "ext {}"),
    ("0171/2345678", "{}"),
    ("030/123456", "{}"),
]


@pytest.mark.parametrize(("text", "right"), FIELD)
def test_pii_masks_the_whole_and_nothing_else(text: str, right: str) -> None:
    assert redact([text], policy("pii"))[0].text == right.replace("{}", MASK)


CHECKED = [
    ("us-routing", "us.rtn", st.from_regex(r"(?:0[1-9]|1[0-2]|2[1-9]|3[0-2])[0-9]{7}", fullmatch=True)),
    ("gb-nhs", "gb.nhs", st.from_regex(r"[0-9]{10}", fullmatch=True)),
    ("de-tax-id", "de.idnr", st.from_regex(r"[1-9][0-9]{10}", fullmatch=True)),
    ("de-vat", "de.vat", st.from_regex(r"DE[1-9][0-9]{8}", fullmatch=True)),
    ("fr-siret", "fr.siret", st.from_regex(r"[0-9]{14}", fullmatch=True)),
    ("fr-tax-id", "fr.nif", st.from_regex(r"[0-3][0-9]{12}", fullmatch=True)),
    ("es-dni", "es.dni", st.from_regex(r"[0-9]{8}[A-Z]", fullmatch=True)),
    ("es-nie", "es.nie", st.from_regex(r"[XYZ][0-9]{7}[A-Z]", fullmatch=True)),
    ("in-aadhaar", "in_.aadhaar", st.from_regex(r"[2-9][0-9]{11}", fullmatch=True)),
    ("in-voter-id", "in_.epic", st.from_regex(r"[A-Z]{3}[0-9]{7}", fullmatch=True)),
    ("pl-pesel", "pl.pesel", st.from_regex(r"[0-9]{2}0[1-9][01][1-9][0-9]{5}", fullmatch=True)),
    ("pl-nip", "pl.nip", st.from_regex(r"[1-9][0-9]{9}", fullmatch=True)),
    ("it-vat", "it.iva", st.from_regex(r"[0-9]{7}0[0-9]{3}", fullmatch=True)),
    ("nl-bsn", "nl.bsn", st.from_regex(r"[1-9][0-9]{8}", fullmatch=True)),
    ("pt-nif", "pt.nif", st.from_regex(r"[12][0-9]{8}", fullmatch=True)),
    ("se-organisation", "se.orgnr", st.from_regex(r"5[0-9]{5}-[0-9]{4}", fullmatch=True)),
    ("br-cpf", "br.cpf", st.from_regex(r"[0-9]{11}", fullmatch=True)),
]


@pytest.mark.parametrize(("name", "module", "numbers"), CHECKED, ids=[c[0] for c in CHECKED])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_check_digits_are_those_of_the_standard(
    name: str, module: str, numbers: st.SearchStrategy[str], data: st.DataObject
) -> None:
    """With every last character: one of them is mostly right, so both outcomes are met."""
    number = data.draw(numbers)
    valid = import_module(f"stdnum.{module}").is_valid
    last = "ABCDEFGHJKLMNPQRSTVWXYZ" if number[-1].isalpha() else "0123456789"
    for number in {number[:-1] + c for c in last}:
        assert bool(policy(name).find([f"is {number}."])[0].spans) == valid(number)


def test_an_iban_has_the_length_of_its_country() -> None:
    right, short = "DE89370400440532013000", "DE893704004405320130"
    digits = "".join(str(int(c, 36)) for c in short[4:] + "DE00")
    short = f"DE{98 - int(digits) % 97:02d}{short[4:]}"  # its check digits hold, its length does not
    assert policy("iban").find([right])[0].spans
    assert not policy("iban").find([short])[0].spans


@pytest.mark.parametrize(
    "text", ["123\u201045\u20106789", "123\u201345\u20136789", "\uff11\uff12\uff13-45-6789", "123\u00ad-45-6789"]
)
def test_unicode_dashes_and_digits_hide_nothing(text: str) -> None:
    (span,) = policy("ssn").find([f"№ {text}!"])[0].spans
    assert f"№ {text}!"[span.start : span.end] == text


def test_p16_overlapping_card_and_host_leave_no_remnant() -> None:
    from taciturn.screening.redact import redact

    masked = redact(["card 4151 3217 6243 3448.com"], policy("card", "domain"))[0].text
    assert masked == f"card {MASK}"


@pytest.mark.parametrize("name", patterns.names())
def test_every_detector_travels_and_finds_its_examples(name: str) -> None:
    detector = patterns.detector(name)
    other = pickle.loads(pickle.dumps(detector))
    assert other == detector
    views = [View.of(example) for example in detector.must_find]
    assert views
    assert all(d.spans and d.status == "ok" for d in other.find(views))
    # and behind the prefilter, in the middle of a text
    assert all(d.spans for d in policy(name).find(list(detector.must_find)))


@pytest.mark.parametrize("cue", ["my name is {}", "address is {}", "pin: {}", "password: {}", "this is {} calling"])
def test_a_mask_behind_a_cue_ends_the_match(cue: str) -> None:
    """What follows the mask must not be taken in its place."""
    text = cue.format(MASK) + " and what follows, thanks"
    assert policy("cues").find([text])[0].spans == ()


def test_checks_say_what_they_depend_on() -> None:
    assert version("luhn") == ""
    assert version("gb.nhs") == version("iban") != ""
    assert {d.check for d in patterns.built_in().values()} <= {"", *CHECKS}
