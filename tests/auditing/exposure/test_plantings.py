"""Several plantings in one audit: a finding each, one over all, Fisher's p against simulation, kinds side by side."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from taciturn.auditing import nulls
from taciturn.auditing.canaries.alphabets import NAMED
from taciturn.auditing.canaries.templates import Planted, Template, draw, write_plantings
from taciturn.auditing.controls import overfitted
from taciturn.auditing.exposure import plantings as module
from taciturn.auditing.exposure.exposure import exposure, finding_from_ranks
from taciturn.auditing.exposure.plantings import combined, exposures
from taciturn.auditing.exposure.ranking import Ranked, ranked
from taciturn.auditing.finding import Finding
from taciturn.auditing.run import audit
from taciturn.errors import UsageError

HEX, WORDS = Template("id: {}", NAMED["hex"], 2), Template("say {}", ("red", "blue", "green", "grey", "ten"), 4)


def planting(template: Template, n: int, kind: str = "", seed: int = 0) -> Planted:
    return Planted(template, tuple(draw(template, n, seed)), 5, kind)  # type: ignore[arg-type]


def memorised(kind: str = "missed") -> Planted:
    """The toy's canary, two of its digits in the template."""
    secret = overfitted().secret
    return Planted(Template(f"key {secret[:2]}{{}}", length=4), (secret[2:],), 20, kind)  # type: ignore[arg-type]


def test_one_planting_is_the_plain_attack() -> None:
    toy, planted = overfitted(), planting(HEX, 4)
    (found,) = exposures(toy.model, toy.tokenizer, [planted], seed=3)
    plain = exposure(toy.model, toy.tokenizer, HEX, planted.secrets, seed=3)
    assert (found.attack, found.score, found.null) == ("exposure", plain.score, plain.null)
    assert found.detail.items() >= plain.detail.items()


def test_several_templates_and_alphabets_have_a_finding_each_and_one_over_all(tmp_path: Path) -> None:
    """Through canaries.json and the audit: the leak of one planting is in the whole, the other plantings stay quiet."""
    toy = overfitted()
    write_plantings(tmp_path / "canaries.json", [memorised(), planting(HEX, 6, "caught"), planting(WORDS, 3)])
    findings = audit((toy.model, toy.tokenizer), ["exposure"], canaries=tmp_path / "canaries.json")
    assert [f.attack for f in findings] == ["exposure-1-missed", "exposure-2-caught", "exposure-3", "exposure"]
    whole = findings[-1]
    assert whole.verdict == "leak"
    assert whole.score == math.log2(10**4)
    assert whole.detail["exposures"] == [x for f in findings[:-1] for x in f.detail["exposures"]]
    assert whole.detail["mean"] == pytest.approx(np.mean(whole.detail["exposures"]))
    assert "independently" in whole.detail["assumes"]
    kinds = whole.detail["by_kind"]
    assert {kind: each["canaries"] for kind, each in kinds.items()} == {"missed": 1, "caught": 6, "not said": 3}
    assert kinds["missed"]["p"] == pytest.approx(1e-4)
    assert kinds["caught"]["max"] == findings[1].score
    assert findings[1].verdict == findings[2].verdict == "no leak found"  # seeded; P("leak") is .01 each
    text = json.dumps([f.to_json() for f in findings])
    assert Finding.from_json(json.loads(text)[-1]) is not None
    assert overfitted().secret[2:] not in text.replace(str(whole.score), "")


def test_plantings_of_one_template_share_an_enumeration(monkeypatch: pytest.MonkeyPatch) -> None:
    toy, calls = overfitted(), []
    secrets = draw(HEX, 6, 0)
    parts = [Planted(HEX, tuple(secrets[:2]), 1, "missed"), Planted(HEX, tuple(secrets[2:]), 1, "caught")]
    monkeypatch.setattr(module, "ranked", lambda *a, **k: calls.append(1) or ranked(*a, **k))
    found = exposures(toy.model, toy.tokenizer, parts, seed=1)
    assert len(calls) == 1
    for each, planted in zip(found, parts, strict=False):
        alone = ranked(toy.model, toy.tokenizer, HEX, planted.secrets)
        assert each.detail["exposures"] == pytest.approx((8 - np.log2(alone.middle)).tolist())
    with pytest.raises(UsageError, match="the same secret"):
        exposures(toy.model, toy.tokenizer, [parts[0], parts[0]])


def uniform(rng: np.random.Generator, n: int, size: int) -> Finding:
    """The finding of n secrets on a model that never saw them, made from uniform ranks."""
    own, control = (rng.integers(1, size + 1, n).astype(float) for _ in range(2))
    found = finding_from_ranks(Ranked(size, own, own, size, control, control, True, 0))
    told = {**found.detail, "kind": "", "copies": 1, "canaries": n}
    return Finding(**{**{f: getattr(found, f) for f in found.__dataclass_fields__}, "detail": told})


def test_combined_p_values_are_right_on_unseen_secrets() -> None:
    """1,000 audits of three templates with 256, 10⁴ and 10⁶ candidates: the shares of p_fisher and p_max below .05 are
    binomial; each lies outside its bounds with probability 1e-4. A leak, p < .01, has at most that share: beyond the
    upper bound with probability 5e-5."""
    rng = np.random.default_rng(5)
    low = {"p_fisher": 0, "p_max": 0}
    leaks = 0
    for _ in range(1000):
        whole = combined([uniform(rng, 2, 256), uniform(rng, 5, 10**4), uniform(rng, 10, 10**6)])
        for key in low:
            low[key] += whole.null[key] < 0.05
        leaks += whole.verdict == "leak"
    for count in low.values():
        assert (
            binom.ppf(5e-5, 1000, 0.04) <= count <= binom.ppf(1 - 5e-5, 1000, 0.05)
        )  # |R| = 256: a little conservative
    assert leaks <= binom.ppf(1 - 5e-5, 1000, 0.01)


def test_many_small_leaks_are_seen_by_fisher() -> None:
    """Twenty canaries in the first tenth: none remarkable by itself, all of them together are."""
    ranks = np.full(10, 1e5)
    found = finding_from_ranks(Ranked(10**6, ranks, ranks, 10**6, np.full(10, 5e5), np.full(10, 5e5), True, 0))
    told = {**found.detail, "kind": "", "copies": 1, "canaries": 10}
    made = Finding(**{**{f: getattr(found, f) for f in found.__dataclass_fields__}, "detail": told})
    whole = combined([made, made])
    assert whole.null["p_max"] > 0.05
    assert whole.null["p_fisher"] < 1e-5
    assert whole.verdict == "leak"


def test_fisher_is_the_gamma_tail() -> None:
    rng = np.random.default_rng(0)
    ranks = rng.integers(1, 10**6, 12).astype(float)
    assert nulls.fisher_p(ranks / 10**6) == pytest.approx(nulls.exposure_sum_p(ranks, 10**6), rel=1e-3)
    assert nulls.fisher_p(ranks / 10**6) < nulls.exposure_sum_p(ranks, 10**6)  # distinct ranks cost 66 in 10⁶
    assert nulls.exposure_max_mean_large(7) == pytest.approx(nulls.exposure_max_mean(7, 10**6), abs=1e-4)


def test_ties_count_against_the_secret() -> None:
    """A constant model: exposure of the middle rank, one bit, but a p-value of 1."""
    toy = overfitted()
    found = ranked(toy.model, toy.tokenizer, HEX, draw(HEX, 2, 0))
    assert (found.last >= found.middle).all()
    tied = Ranked(100, np.full(2, 50.5), np.full(2, 100.0), 100, np.full(2, 50.5), np.full(2, 100.0), True, 1)
    assert finding_from_ranks(tied).null["p"] == 1.0
