"""Canaries in any corpus before screening: the kinds, the way back through the reader and the screener, no secret said."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from taciturn.auditing.canaries.alphabets import NAMED
from taciturn.auditing.canaries.planting import Dial, choose, policy_outcomes, write
from taciturn.auditing.canaries.templates import Planted, Template, draw, read_plantings
from taciturn.cli.main import run
from taciturn.errors import DataError, UsageError
from taciturn.screening.measuring.sample import read_population
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import Policy, policy
from taciturn.text.document import Document, Turn
from taciturn.text.readers import Corpus, read
from taciturn.text.spans import Span

ID = Template("My ID is: {}")


@pytest.fixture(scope="module")
def digits() -> Policy:
    return policy("digits")


def test_kinds_are_what_the_policy_does(digits: Policy) -> None:
    secrets = draw(ID, 5, 0)
    assert policy_outcomes(ID, secrets, policy("email")) == ["missed"] * 5
    assert policy_outcomes(ID, secrets, digits) == ["caught"] * 5
    mixed = Template("{}@mail.com", NAMED["letters"], 5)
    assert policy_outcomes(mixed, draw(mixed, 2, 0), policy("email")) == ["caught"] * 2
    assert [p.kind for p in choose(ID, 3, 2, "missed", pi=policy("email"))] == ["missed"]
    (unchecked,) = choose(ID, 3, 2, "caught", seed=4, without=secrets)
    assert not set(unchecked.secrets) & set(secrets)


@pytest.mark.parametrize(("kind", "names"), [("missed", None), ("caught", "email"), ("dialled", "email")])
def test_a_policy_that_does_otherwise_is_refused_by_count(kind: str, names: str | None, digits: Policy) -> None:
    pi = policy(names) if names else digits
    dial = Dial(0.5) if kind == "dialled" else None
    with pytest.raises(UsageError, match="treats 4 of 4 canaries otherwise") as error:
        choose(ID, 4, 2, kind, pi=pi, dial=dial, seed=1)  # type: ignore[arg-type]
    assert not any(secret in str(error.value) for secret in draw(ID, 4, 1))


def test_partly_marked_secrets_are_neither(digits: Policy) -> None:
    mixed = Template("say {}", ("alpha", "12345", "beta", "67890"), 4)
    secret = "alpha 12345 beta 67890"
    assert policy_outcomes(mixed, [secret], digits) == ["partly"]


@pytest.mark.parametrize(
    ("kind", "dial", "pi"), [("dialled", None, True), ("missed", Dial(0.5), True), ("dialled", Dial(0.5), False)]
)
def test_a_dial_belongs_to_dialled_canaries_and_to_a_policy(
    kind: str, dial: Dial | None, pi: bool, digits: Policy
) -> None:
    with pytest.raises(UsageError, match="needs a policy"):
        choose(ID, 4, 2, kind, pi=digits if pi else None, dial=dial)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one canary"):
        choose(ID, 0, 2, "missed")


def test_dialled_canaries_fare_in_screening_as_they_were_told_apart(digits: Policy, tmp_path: Path) -> None:
    """γ = .5, 40 secrets: screening masks exactly those of kind "caught"; the missed ones are binomial (sd 3.2, 5 sd)."""
    plantings = choose(ID, 40, 2, "dialled", pi=digits, dial=Dial(0.5, 7), seed=2)
    kinds = {planted.kind: planted.secrets for planted in plantings}
    assert 4 <= len(kinds["missed"]) <= 36
    out = tmp_path / "planted.jsonl"
    write(Corpus.from_texts([f"line {'x' * i}" for i in range(30)]), plantings, out, seed=2)
    dialled = {"miss_rate": 0.5, "miss_seed": 7}
    screened = screen(read(out, id="id"), digits, digits, dedup="none", out=tmp_path / "s", **dialled)
    redacted = [record.redacted for record in read_population(screened)]
    for kind, expected in (("missed", 2), ("caught", 0)):
        assert all(sum(secret in text for text in redacted) == expected for secret in kinds[kind])  # type: ignore[index]


def test_what_is_written_reads_back_as_it_was(tmp_path: Path) -> None:
    """Dialogues, users, labels, annotations; every canary as often as asked, each at its place with its span."""
    hello = "hello Ann\nhi\n"
    documents = [
        Document("a", "plain\nlines with U+2028: \u2028", "u1", gold=(Span(0, 5, "x", 1.0, "gold"),), label="yes"),
        Document("b", hello, "u2", (Turn(0, 10, "bot"), Turn(10, 13)), (Span(6, 9, "name", 1.0, "gold"),), label="no"),
    ]
    planted = (Planted(ID, tuple(draw(ID, 3, 0)), 4),)
    out = tmp_path / "planted.jsonl"
    done = write(Corpus.from_documents(documents), planted, out, seed=1)
    assert (done.documents, done.canaries) == (2, 12)
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    back = read(out, id="id", user="user", label="label").documents()
    assert [d for d in back if not d.id.startswith("canary")] == documents
    canaries = [d for d in back if d.id.startswith("canary")]
    assert len(canaries) == 12
    for each in canaries:
        _, i, _ = each.id.split("-")
        (span,) = each.gold
        assert each.text[span.start : span.end] == planted[0].secrets[int(i)]
        assert each.user == f"canary-{i}"
        assert each.label in {"yes", "no"}


def test_places_are_spread_over_a_corpus(tmp_path: Path) -> None:
    out = tmp_path / "planted.jsonl"
    write(Corpus.from_texts([f"t{i}" for i in range(1000)]), (Planted(ID, tuple(draw(ID, 10, 0)), 20),), out)
    names = [json.loads(line)["id"] for line in out.read_text().splitlines()]
    places = [i for i, name in enumerate(names) if name.startswith("canary")]
    assert 0.4 < sum(places) / len(places) / len(names) < 0.6  # 200 uniform places: sd .02, beyond 4 sd
    assert [name for name in names if not name.startswith("canary")] == [f"memory:{i}" for i in range(1, 1001)]


def test_what_cannot_be_written_back_is_refused(tmp_path: Path) -> None:
    planted = (Planted(ID, ("123456",)),)
    held = Corpus.from_documents([Document("a", "x", private_because="undecodable bytes")])
    with pytest.raises(DataError, match="document 'a' is private"):
        write(held, planted, tmp_path / "p.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"text": "x"}\n{"text": 3}\n')
    with pytest.raises(DataError, match="line 2"):
        write(read(tmp_path / "bad.jsonl"), planted, tmp_path / "p.jsonl")
    with pytest.raises(UsageError, match="no place for a canary"):
        write(read(tmp_path / "bad.jsonl", chat="openai"), planted, tmp_path / "p.jsonl")
    assert not (tmp_path / "p.jsonl").exists()


def test_the_command_plants_twice_and_says_no_secret(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Missed ones, then words as well with --add; what screening reports, and nothing secret in any output or error."""
    (tmp_path / "talk.jsonl").write_text(
        "".join(json.dumps({"text": f"talk of day {'i' * i}"}) + "\n" for i in range(20))
    )
    (tmp_path / "words.txt").write_text("red\nblue\ngreen\ngrey\n")
    first, second = tmp_path / "a" / "planted.jsonl", tmp_path / "a" / "both.jsonl"
    name = ["--id", "id"]
    wide = [
        "--alphabet",
        f"words:{tmp_path / 'words.txt'}",
        "--length",
        "5",
        "--template",
        "say {}",
        "--kind",
        "missed",
    ]
    plant = ["plant", str(tmp_path / "talk.jsonl"), "--canaries", "4", "--copies", "3", "-p", "email"]
    assert run([*plant, "-o", str(first)]) == 0
    assert run([*plant, "-o", str(first)]) == 2, "canaries.json is there already"
    heard = capfd.readouterr()
    again = ["plant", str(first), *name, *wide, "--canaries", "2", "--copies", "5", "-p", "email", "--add", "--json"]
    assert run([*again, "-o", str(second)]) == 0
    told = capfd.readouterr()
    said = json.loads(told.out)
    assert (said["documents"], said["records"], said["candidates"]) == (32, 10, 4**5)
    assert said["kinds"] == {"missed": 2}
    plantings = read_plantings(tmp_path / "a" / "canaries.json")
    assert [(len(p.secrets), p.copies, p.kind) for p in plantings] == [(4, 3, "missed"), (2, 5, "missed")]
    assert stat.S_IMODE((tmp_path / "a" / "canaries.json").stat().st_mode) == 0o600
    texts = [document.text for document in read(second, id="id").documents()]
    for planted in plantings:
        assert all(texts.count(planted.template.fill(s)) == planted.copies for s in planted.secrets)
    assert run([*plant, "-o", str(tmp_path / "b" / "p.jsonl"), "--kind", "caught"]) == 2
    assert run(["screen", str(second), *name, "-p", "email", "-o", str(tmp_path / "s"), "--json"]) == 0
    spoken = capfd.readouterr()
    everything = "".join(each.out + each.err for each in (heard, told, spoken))
    assert not any(secret in everything for planted in plantings for secret in planted.secrets)
    assert "treats 4 of 4" in spoken.err
    counts = json.loads(spoken.out)["counts"]  # canaries are not labels: they say nothing of the secrets of the text
    assert (counts["gold_spans"], counts["gold_missed_by_pi"]) == (0, 0)
