"""What scoring will take, said and refused before it starts; branch and bound ranks as a full enumeration does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from taciturn.auditing.canaries.templates import Template, draw
from taciturn.auditing.controls import TEMPLATE, overfitted
from taciturn.auditing.exposure import likelihood, search
from taciturn.auditing.exposure.exposure import exposure
from taciturn.auditing.exposure.likelihood import candidate_scores, pace
from taciturn.auditing.exposure.ranking import midranks, ranked
from taciturn.auditing.exposure.search import Estimate, scored
from taciturn.auditing.exposure.trie import candidate_trie, encode_candidates
from taciturn.errors import UsageError
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.tokenizers import byte_tokenizer

SMALL = Template("my id: {}", length=3)


def untrained() -> LSTMForCausalLM:
    torch.manual_seed(0)
    return LSTMForCausalLM(LSTMConfig(len(byte_tokenizer()), embedding_size=24, hidden_size=32, initializer_range=0.8))


def short() -> tuple[Template, str]:
    """The toy's canary with two digits in the prefix: 10⁴ candidates."""
    secret = overfitted().secret
    return Template(f"key {secret[:2]}{{}}", length=4), secret[2:]


def test_the_estimate_is_told_and_names_what_is_coming() -> None:
    said: list[str] = []
    model, tokenizer = untrained(), byte_tokenizer()
    found = ranked(model, tokenizer, SMALL, ["123"], notify=said.append)
    assert found.complete
    assert said[0].startswith("scoring all candidates: 1,000 candidates, 111 evaluations, about 0:")


def test_the_pace_is_that_of_the_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a clock that ticks once per node read, a node takes a tick: no machine's speed is involved."""
    ticks = 0.0
    read = likelihood._read

    def reading(model: object, tokens: np.ndarray, *rest: object) -> object:
        nonlocal ticks
        ticks += len(tokens)
        return read(model, tokens, *rest)

    monkeypatch.setattr(likelihood, "_read", reading)
    monkeypatch.setattr(likelihood, "perf_counter", lambda: ticks)
    assert pace(untrained(), candidate_trie(byte_tokenizer(), SMALL)) == 1.0


@pytest.mark.parametrize(
    ("how", "next_step"),
    [("exact", "--search branch-and-bound"), ("auto", "--candidates"), ("branch-and-bound", "memorised")],
)
def test_what_takes_too_long_is_refused_with_the_next_steps(
    how: search.Search, next_step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "pace", lambda model, trie: 3600.0)  # noqa: ARG005 — an hour a node
    with pytest.raises(UsageError, match=r"111 evaluations, about 111:00:00 .* 90 minutes .*--candidates") as error:
        exposure(untrained(), byte_tokenizer(), SMALL, ["123"], search=how, most_minutes=90)
    assert next_step in str(error.value)
    assert "123" not in str(error.value)


def test_a_memorised_canary_is_ranked_by_branch_and_bound_where_all_would_take_too_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    toy = overfitted()
    template, secret = short()
    monkeypatch.setattr(search, "pace", lambda model, trie: 36.0)  # noqa: ARG005 — 1,111 evaluations: 11 hours
    finding = exposure(toy.model, toy.tokenizer, template, [secret], most_minutes=60)
    assert finding.detail["search"] == "branch-and-bound"
    assert finding.detail["evaluations"] < 100
    assert finding.score == finding.detail["max_possible"]
    assert finding.verdict == "leak"
    assert finding.detail["control_candidates"] == 512
    assert len(finding.detail["control_exposures"]) == 1


@pytest.mark.parametrize("how", ["exact", "branch-and-bound", "auto"])
def test_every_search_gives_the_same_ranks(how: search.Search, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "QUICK", 0.0)  # "auto" tries branch and bound first
    toy = overfitted()
    template, secret = short()
    trie = candidate_trie(toy.tokenizer, template)
    full = candidate_scores(toy.model, trie)
    for secrets in ([secret], [secret, *draw(template, 2, 5, without=[secret])]):
        places = np.array([template.index(s) for s in secrets])
        found = scored(toy.model, trie, encode_candidates(toy.tokenizer, template, secrets), places, how, 1e9)
        np.testing.assert_array_equal(midranks(found.scores, places), midranks(full, places))
        if how == "branch-and-bound" and len(secrets) == 1:
            assert not found.complete
            assert found.evaluations < trie.evaluations / 10


def test_unknown_searches_and_small_subsets_are_refused() -> None:
    model, tokenizer = untrained(), byte_tokenizer()
    with pytest.raises(UsageError, match="did you mean 'exact'"):
        exposure(model, tokenizer, SMALL, ["123"], search="exat")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least 4 candidates for 1 canaries, found 3"):
        exposure(model, tokenizer, SMALL, ["123"], candidates=3)


def test_a_subset_ranks_among_itself_and_serves_passphrases() -> None:
    """Exposure among m random candidates: at most log2 m bits, uniform ranks on a model never trained."""
    toy = overfitted()
    finding = exposure(toy.model, toy.tokenizer, TEMPLATE, [toy.secret], candidates=256)
    assert finding.score == finding.detail["max_possible"] == 8
    assert finding.null["p"] == pytest.approx(1 / 256)
    phrases = Template("say {}", tuple(f"{a}{b}" for a in "abcdefgh" for b in "aeiou"), 12)
    assert phrases.size > 2**63
    found = ranked(untrained(), byte_tokenizer(), phrases, draw(phrases, 40, 3), candidates=400)
    assert found.size == found.control_size == 400
    for rank in (found.middle, found.control_middle):  # mean exposure of 40: sd .23, beyond 4 sd has probability 6e-5
        assert abs((np.log2(400) - np.log2(rank)).mean() - 1.44) < 0.92


def test_clock() -> None:
    assert Estimate(10, 5, 7322.0).words() == "10 candidates, 5 evaluations, about 2:02:02"
