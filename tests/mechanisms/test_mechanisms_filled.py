"""Masks filled from a table in jft and on redacted text; private steps on marked tokens; weights near the first ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from every_mechanism import config
from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.certify import certify
from taciturn.mechanisms.config import parse
from taciturn.mechanisms.corpus import encoded
from taciturn.mechanisms.materials import initial_model
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.registry import mechanism, verify
from taciturn.mechanisms.run import train
from taciturn.mechanisms.values import filler_of, public_values, slots_of
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import ThresholdedCounts
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import MASK, Document
from taciturn.text.readers import Corpus, read
from taciturn.training.phase_terms import Counts
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.updates.counts import noised

TABLE = {"mu": 4.0, "protect_copies": 1}
MAILS = ("ann@x.org", "bob@y.com", "cyd@z.net")
DAYS = ("Monday", "Friday")
DOCUMENTS = [
    Document(f"d{i}", f"write to {MAILS[i % 3]} on {DAYS[i % 2]} please {'so ' * (i // 6)}") for i in range(60)
]


def corpus(documents: list[Document] = DOCUMENTS, **options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_documents(documents), policy("email"), policy("conservative"), unit="document", **options)


def test_the_table_of_jft_is_of_what_the_policy_redacts_and_costs_a_detected_secret(tmp_path: Path) -> None:
    screened = corpus()
    options: dict[str, Any] = {"redacted": {"epochs": 1, "fill": "learned", "values": TABLE}}
    run = train(config("jft", epsilon=20.0, **options), tmp_path / "run", screened=screened)
    table, first, second = make_plan(config("jft", epsilon=20.0, **options), screened).phases
    assert (table.reads, first.reads) == (("original",), ("redacted",))
    assert set(slots_of(make_plan(run.config, screened), table, screened).values) == set(MAILS)
    certificate = certify(run.folder)
    assert verify(run.folder / "certificate.json") == []
    detected = certificate.statements()[0]
    events = {table.event: 1, second.event: second.steps}
    assert detected.status == "proved"
    assert detected.epsilon == pytest.approx(compose(events, "substitution").epsilon(1e-3), rel=1e-6)
    assert any("table of values" in each.text for each in detected.assumptions)


def test_redacted_text_with_a_table_costs_a_detected_secret_what_the_table_does(tmp_path: Path) -> None:
    plain = certify(train(config("redacted", treat="mask"), tmp_path / "plain", screened=corpus()).folder)
    run = train(config("redacted", treat="mask", fill="learned", values=TABLE), tmp_path / "run", screened=corpus())
    certificate = certify(run.folder)
    assert verify(run.folder / "certificate.json") == []
    (event,) = [e for e in make_plan(run.config, corpus()).events() if isinstance(e, ThresholdedCounts)]
    assert plain.statements()[0].epsilon == 0
    assert certificate.statements()[0].epsilon == pytest.approx(
        compose({event: 1}, "substitution").epsilon(1e-3), rel=1e-6
    )
    assert not certificate.statements()[1].finite  # what the policy misses is read as it is, table or none
    with pytest.raises(UsageError, match="treat = remove leaves none"):
        make_plan(config("redacted", treat="remove", fill="learned"), corpus())


def test_what_a_policy_misses_is_in_no_table_of_redacted_text() -> None:
    """Its slots are those of redacted masks, so a secret that stands in redacted text is counted nowhere."""
    documents = [Document(f"e{i}", f"mail {MAILS[0]} or call Zed{i}") for i in range(20)]
    screened = corpus(documents)
    plan = make_plan(config("redacted", treat="mask", fill="learned", values=TABLE), screened)
    slots = slots_of(plan, plan.phases[0], screened)
    assert slots.values == (MAILS[0],)


def test_jft_on_skeletons_says_of_detected_secrets_too_what_skeletons_rest_on(tmp_path: Path) -> None:
    """A detected secret has the same redacted text in both worlds; that its record has the same skeleton is another matter,
    and was left out of the statement, which called itself proved."""
    for start, status in (("redacted", "proved"), ("skeletons", "conditional")):
        run = train(config("jft", start=start), tmp_path / start, screened=corpus())
        detected = certify(run.folder).statements()[0]
        assert "that the policy detects" in detected.unit
        assert detected.status == status
        assert any("skeleton is the same" in each.text for each in detected.assumptions) == (start == "skeletons")


def test_marked_targets_are_the_tokens_of_what_is_still_marked_and_equal_texts_have_the_same() -> None:
    screened = corpus([*DOCUMENTS, Document("copy", DOCUMENTS[0].text)])
    plan = make_plan(config("crt", private={"steps": 2, "batch": 4, "targets": "marked"}), screened)
    phase = plan.phases[-1]
    tokens = encoded(byte_tokenizer(), plan, phase, screened, 512)
    texts = screened.texts("private")
    suspects = [
        list(zip(flat[::2], flat[1::2], strict=True))
        for rows in screened.stream("private", "suspects")
        for flat in rows["suspects"]
    ]
    for i, (text, spans) in enumerate(zip(texts, suspects, strict=True)):
        scored = tokens.targets(i, -1)
        if text == MASK:
            assert not scored.any()
            continue
        assert "".join(text[a:b] for a, b in spans) in ("Monday", "Friday")
        shown = bytes(tokens[i][scored].astype(np.uint8).tolist()) if scored.any() else b""
        assert len(shown) == 6  # one byte a token
    everything = make_plan(config("crt"), screened)
    assert encoded(byte_tokenizer(), everything, everything.phases[-1], screened, 512).scored is None
    bare = corpus(keep_originals=False)
    with pytest.raises(DataError, match="keep_originals"):
        encoded(byte_tokenizer(), plan, phase, bare, 512)


@pytest.mark.parametrize("kept", [0.0, 0.25, 1.0])
def test_weights_are_kept_near_the_first_ones_where_the_phase_ends(tmp_path: Path, kept: float) -> None:
    """A run without later phases ends at (1 − α)·θ₀ + α·θ of the same run that keeps nothing, also after a stop."""
    plain = train(config("redacted", treat="mask", kept=1.0), tmp_path / "plain", screened=corpus()).model()[0]
    run = train(config("redacted", treat="mask", kept=kept), tmp_path / "run", screened=corpus())
    first = initial_model(make_plan(run.config, corpus()), byte_tokenizer())
    model = run.model()[0]
    for (name, begun), trained, found in zip(
        first.named_parameters(), plain.parameters(), model.parameters(), strict=True
    ):
        expected = (1 - kept) * begun + kept * trained
        torch.testing.assert_close(found, expected, msg=name)


def test_weights_are_kept_in_every_round_and_after_noised_steps(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "schedule": "alternate",
        "public": {"epochs": 2, "batch_size": 6, "kept": 0.0},
        "private": {"steps": 4, "batch": 4, "kept": 0.0},
    }
    run = train(config("crt", **options), tmp_path / "run", screened=corpus())
    first = initial_model(make_plan(run.config, corpus()), byte_tokenizer())
    for begun, found in zip(first.parameters(), run.model()[0].parameters(), strict=True):
        assert torch.equal(begun, found)


def test_shapes_are_made_of_public_values_where_a_file_names_some(tmp_path: Path) -> None:
    """They go into masks like made-up names: no text is unmasked for them, and a file of the corpus itself is refused."""
    places = tmp_path / "places.txt"
    places.write_text("\ufeffAcorn Hotel\r\nElm Hotel\n\nhotel\n", encoding="utf-8")
    names = ("Zed", "Quill", "Ruby", "Otto")
    own = [f"{names[i % 4]}{chr(97 + i % 26)}{chr(97 + i // 26)}" for i in range(60)]
    documents = [Document(f"d{i}", f"we like the {name} Hotel very much") for i, name in enumerate(own)]
    screened = corpus(documents)
    options: dict[str, Any] = {"fill": "learned", "values": {**TABLE, "public": [str(places)]}}
    plan = make_plan(config("crt", epsilon=20.0, **options), screened)
    filled = next(phase for phase in plan.phases if phase.fill is not None)
    other = make_plan(config("crt", epsilon=20.0, fill="learned", values=TABLE), screened)
    assert plan.key != other.key  # which public values there were is part of the plan
    known = public_values(parse(mechanism("crt").Config, options, "options"), screened)
    assert known == ("Acorn Hotel", "Elm Hotel", "hotel")
    rule = next(phase.rule for phase in plan.phases if not phase.moves)
    assert isinstance(rule, Counts)
    table = noised(slots_of(plan, plan.phases[0], screened), rule, SecretSource(1), 0)
    assert table.shapes == ("the X Hotel",)
    filler = filler_of(byte_tokenizer(), plan, filled, screened, 512, known)
    rows = np.flatnonzero([MASK in text for text in filler.texts])
    written = filler.written(table, None, rows, (0,), 1)
    made = {word for text in written for word in ("Acorn Hotel", "Elm Hotel") if word in text}
    assert made == {"Acorn Hotel", "Elm Hotel"}
    assert not any(name in text for text in written for name in names)
    corpus_file = tmp_path / "mail.txt"
    corpus_file.write_text("\n".join(document.text for document in documents))
    screened = screen(read(str(corpus_file), format="lines"), policy("email"), policy("conservative"))
    options["values"]["public"] = [str(corpus_file)]
    with pytest.raises(UsageError, match="so it is private"):
        public_values(parse(mechanism("crt").Config, options, "options"), screened)


def test_a_table_of_redacted_text_has_a_claim_about_a_user_beside_that_about_a_record(tmp_path: Path) -> None:
    """Three records of each user: as a group of three, and nothing of the kind where nobody's names are known."""
    named = [Document(d.id, d.text, user=f"u{i // 3}") for i, d in enumerate(DOCUMENTS)]
    options: dict[str, Any] = {"treat": "mask", "fill": "learned", "values": TABLE}
    for documents, k in ((named, 3), (DOCUMENTS, None)):
        run = train(config("redacted", **options), tmp_path / f"run-{k}", screened=corpus(documents))
        claims = certify(run.folder).statements()
        of_users = [g for g in claims if "all secrets of one user" in g.unit]
        assert [g.detail["k"] for g in of_users] == ([] if k is None else [float(k)])
        assert all(g.epsilon > claims[0].epsilon for g in of_users)
        assert verify(run.folder / "certificate.json") == []
