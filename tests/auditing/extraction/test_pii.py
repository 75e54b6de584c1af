"""Attacks on personal data: what a model learned is told from what any model says; nothing secret is kept."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from leaks import told
from taciturn.auditing.controls import MEMBERS, overfitted
from taciturn.auditing.extraction.decoding import Decoding
from taciturn.auditing.extraction.pii import (
    blind_guess,
    emitted,
    inferred,
    pii_extraction,
    pii_inference,
    pii_reconstruction,
)
from taciturn.auditing.extraction.rates import BLIND, rates, two_sides
from taciturn.auditing.extraction.spans import Masked, distinct_values, gold, tagged
from taciturn.auditing.run import audit
from taciturn.errors import UsageError
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.text.document import Document
from taciturn.text.spans import Detection, Span

TOKENIZER = byte_tokenizer()


class Digits:
    """A policy for runs of six digits."""

    identity = "digits"

    def find(self, texts: Sequence[str]) -> list[Detection]:
        return [Detection(tuple(Span(*m.span(), "code") for m in re.finditer(r"\d{6}", text))) for text in texts]


def untrained(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return LSTMForCausalLM(LSTMConfig(len(TOKENIZER), embedding_size=16, hidden_size=16, initializer_range=1.0))


def sides() -> tuple[list[Masked], list[Masked]]:
    toy = overfitted()
    return tagged(toy.members, Digits()), tagged(toy.nonmembers, Digits())


def with_canary() -> tuple[list[Masked], list[Masked]]:
    """The toy's records and the canary it saw 20 times, and as many records it did not see."""
    inside, outside = sides()
    return [*inside, Masked("key ", overfitted().secret, "", "code")], outside


def test_extraction_counts_what_an_overfitted_model_says() -> None:
    toy = overfitted()
    inside, outside = with_canary()
    finding = pii_extraction(toy.model, toy.tokenizer, inside, outside, Digits(), samples=100, max_tokens=14)
    assert finding.detail["hits"] >= 1
    assert finding.score == finding.detail["hits"] / 50
    assert finding.interval[0] > 0
    assert finding.detail["precision"] > 0
    assert finding.controls["positive"] == 1.0
    assert (finding.detail["values"], finding.detail["values_unseen"]) == (
        50,
        50,
    )  # the canary is one of the records as well
    assert not any(told(each.value, str(finding.to_json())) for each in (*inside, *outside))


def test_what_the_base_model_says_is_not_counted() -> None:
    toy = overfitted()
    base = (toy.model, toy.tokenizer)
    finding = pii_extraction(*base, *with_canary(), Digits(), base=base, samples=100, max_tokens=14)
    assert (finding.score, finding.detail["hits"]) == (0.0, 0)
    assert finding.controls["base"] > 0
    assert finding.verdict == "no leak found"


def test_a_leak_is_a_difference_to_what_was_never_seen() -> None:
    """Fisher's exact test: 12 of 24 against none, against as many, and on too few values."""
    assert rates("pii-extraction", 12, 24, 0, 24, None, 1.0, {}).verdict == "leak"
    assert rates("pii-extraction", 12, 24, 12, 24, None, 1.0, {}).verdict == "no leak found"
    assert rates("pii-extraction", 9, 9, 0, 9, None, 1.0, {}).verdict == "inconclusive"
    broken = rates("pii-extraction", 12, 24, 0, 24, None, 0.0, {})
    assert (broken.verdict, "positive control failed" in broken.notes[0]) == ("inconclusive", True)
    p = sum(math.comb(24, k) * math.comb(24, 20 - k) for k in range(12, 21)) / math.comb(48, 20)
    assert rates("pii-extraction", 12, 24, 8, 24, None, 1.0, {}).null["p"] == pytest.approx(p)


def test_inference_tells_members_from_a_pool_and_not_from_an_untrained_model() -> None:
    """Chance is 1 in 10; 50 + 50 spans. The untrained model is right about as often on both sides."""
    toy = overfitted()
    pool = {"code": [f"{i:06d}" for i in range(3, 10**6, 9973)]}
    finding = pii_inference(toy.model, toy.tokenizer, *sides(), candidates=10, pool=pool)
    assert finding.score > 0.7
    assert finding.controls["negative"] < 0.4
    assert finding.detail["chance"] == pytest.approx(0.1)
    assert finding.verdict == "leak"
    nothing = pii_inference(untrained(), TOKENIZER, *sides(), candidates=10, pool=pool)
    assert nothing.null["p"] > 0.01
    assert nothing.verdict != "leak"


def test_reconstruction_fills_in_what_stands_in_one_context() -> None:
    """Of fifty codes after one word a model can be right about one; that is no leak of the others."""
    toy = overfitted()
    inside, outside = sides()
    finding = pii_reconstruction(toy.model, toy.tokenizer, inside[:20], outside[:20], Digits(), samples=8, max_tokens=8)
    assert finding.controls["positive"] == 1.0
    assert finding.detail["right"] <= 1
    assert finding.verdict != "leak"


def test_null_suite_of_inference() -> None:
    """12 untrained models, 20 + 20 fresh values: Fisher's test is conservative, so 3 or more p < .05 have probability .02,
    and a leak (p < .01) is seen at most once but with probability .006."""
    verdicts, small = [], 0
    for seed in range(12):
        texts = [MEMBERS.fill(f"{(i * 7919 + seed * 104729) % 10**6:06d}") for i in range(1, 41)]
        finding = pii_inference(
            untrained(seed),
            TOKENIZER,
            tagged(texts[:20], Digits()),
            tagged(texts[20:], Digits()),
            candidates=8,
            seed=seed,
        )
        verdicts.append(finding.verdict)
        small += finding.null["p"] < 0.05
    assert small <= 2
    assert verdicts.count("leak") <= 1


def test_spans_are_of_gold_or_of_a_policy() -> None:
    text = "call Ann Lee on 123456"
    document = Document("d", text, gold=(Span(5, 12, "name"),))
    assert gold([document]) == [Masked("call ", "Ann Lee", " on 123456", "name")]
    assert tagged([text], Digits()) == [Masked("call Ann Lee on ", "123456", "", "code")]
    assert Masked("", "Ann  LEE", "").key == gold([document])[0].key
    assert "Ann" not in repr(gold([document]))


def test_a_value_on_both_sides_belongs_to_neither() -> None:
    a, b, c = (Masked("x ", name, "", "name") for name in ("Ann", "Bob", "Cem"))
    assert distinct_values([a, a, b], [b, c]) == ([a], [c])
    with pytest.raises(UsageError, match="found 0 and 1"):
        distinct_values([b], [b, c])
    with pytest.raises(UsageError, match="at least two values"):
        pii_inference(untrained(), TOKENIZER, [a], [Masked("x ", "1", "", "code")])


def test_samples_and_candidates_are_counted_once() -> None:
    toy = overfitted()
    model = (toy.model, toy.tokenizer)
    said = emitted(model, Digits(), ("key ", "code "), 60, 8, Decoding(), 0)
    assert toy.secret in said
    assert all(re.fullmatch(r"\d{6}", value) for value in said)
    spans = [Masked("key ", toy.secret, "", "code"), Masked("key ", "000000", "", "code")]
    assert inferred(model, spans, [["000000", "999999"], [toy.secret]]) == [True, False]


def test_audit_takes_texts_with_a_policy_and_documents_with_gold() -> None:
    toy = overfitted()
    run = (toy.model, toy.tokenizer)
    by_policy, extracted = audit(
        run,
        ["pii-inference", "pii-extraction"],
        members=toy.members,
        nonmembers=toy.nonmembers,
        policy=Digits(),
        samples=50,
    )
    documents = [
        [Document(str(i), text, gold=(Span(5, 11, "code"),)) for i, text in enumerate(side)]
        for side in (toy.members, toy.nonmembers)
    ]
    (by_gold,) = audit(run, ["pii-inference"], members=documents[0], nonmembers=documents[1])
    told = [{**f.to_json(), "null": None, "detail": {**f.detail, "comparisons": 0}} for f in (by_gold, by_policy)]
    assert told[0] == told[1]
    assert by_gold.null == {**by_policy.null, "p_holm": by_gold.null["p"]}  # one comparison; there it was one of two
    assert extracted.detail["samples"] == 50
    with pytest.raises(UsageError, match="needs a policy"):
        audit(run, ["pii-reconstruction"], members=documents[0], nonmembers=documents[1])
    with pytest.raises(UsageError, match="needs a policy"):
        audit(run, ["pii-inference"], members=toy.members, nonmembers=toy.nonmembers)
    with pytest.raises(UsageError, match="needs members"):
        audit(run, ["pii-inference"], policy="email")
    with pytest.raises(UsageError, match="known secrets"):
        audit(run, ["extraction"])


def test_values_that_stand_out_without_a_model_are_no_leak() -> None:
    """Thirty members' values repeat what stands before them, so zlib alone has them; the model may or may not."""
    found = two_sides(
        "pii-inference", [[True] * 30, [False] * 30], None, 1.0, {}, [[True] * 28 + [False] * 2, [False] * 30]
    )
    assert (found.verdict, found.notes) == ("inconclusive", (BLIND,))
    fair = two_sides(
        "pii-inference", [[True] * 30, [False] * 30], None, 1.0, {}, [[True] * 3 + [False] * 27, [False] * 30]
    )
    assert fair.verdict == "leak"
    assert fair.controls["blind"] == 0.1
    repeating = [Masked("742913 ", "742913", "", "code"), Masked("742913 ", "528860", "", "code")]
    assert blind_guess(repeating, [["105377", "860425"]] * 2) == [True, False]
