"""What `release` says, and that batches of a fixed size are refused because Poisson's pair does not cover them."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from taciturn.errors import GuaranteeError
from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian, SelectiveGaussian
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.release import against_release, over_target

NOISY = PoissonGaussian(0.02, 1.0)
PLAIN = {"public": {NonPrivate(("public",)): 9}, "private": {NOISY: 100}}
TWICE = {"redacted": {NonPrivate(("redacted",)): 9}, "private": {NOISY: 100}}


def against(name: str, phases: Any, **facts: Any) -> list[str]:
    evidence = Evidence(1e-5, **facts)
    return against_release(guarantees(name, phases, evidence), evidence)


@pytest.mark.parametrize(
    ("name", "phases", "says"),
    [
        ("sgd", {"plain": {NonPrivate(("original",)): 9}}, "nothing is guaranteed"),
        ("redacted", {"plain": {NonPrivate(("redacted",)): 9}}, "a secret that the policy misses"),
        ("jft", TWICE, "a secret that the policy misses"),
        ("selective_dpsgd", {"private": {SelectiveGaussian(0.05, 4.0, 8.0, 2): 9}}, "a secret that the policy misses"),
    ],
)
def test_release_is_refused_where_a_missed_secret_has_no_bound(name: str, phases: Any, says: str) -> None:
    (reason,) = against(name, phases, redacted=name == "redacted", labelled=200, missed_by_pi=1, missed_by_both=0)
    assert says in reason


def test_release_needs_nothing_of_what_a_mechanism_is_not_about() -> None:
    """crt with skeletons says nothing about a record's presence, which is in not_covered, and may be released."""
    assert against("crt", {**PLAIN, "public": {NonPrivate(("public", "skeletons")): 9}}, skeletons=True) == []
    assert against("crt", PLAIN) == against("dpsgd", {"private": {NOISY: 9}}, redacted=False) == []
    assert against("jft", {**TWICE, "redacted": {NOISY: 9}}, redacted=False) == []
    assert against("user_dp", {"private": {NOISY: 9}}, redacted=False) == []


@pytest.mark.parametrize(
    "fact", [{"seeded_noise": True}, {"dial": 0.1}, {"preprocessing": ("a tokenizer was fitted",)}]
)
def test_release_is_refused_for_what_was_done(fact: dict[str, Any]) -> None:
    assert against("crt", PLAIN, **fact)


def test_a_target_binds_the_run_and_the_choice() -> None:
    alone = {"counted_by": None, "together": []}
    assert (
        over_target(None, "substitution", 5.0, alone) == over_target({"epsilon": 3.0}, "substitution", 3.0, alone) == []
    )
    assert over_target({"epsilon": 3.0}, "substitution", 3.1, alone)
    said = [{"notion": "confidentiality", "relation": "substitution", "epsilon": 4.0}]
    assert over_target({"epsilon": 3.0}, "substitution", 2.0, {"counted_by": "selection", "together": said})
    assert over_target({"epsilon": 3.0}, "add-remove", 2.0, {"counted_by": "selection", "together": said}), "not stated"
    assert not over_target({"epsilon": 4.0}, "substitution", 2.0, {"counted_by": "selection", "together": said})


def hockey_stick(p: np.ndarray, q: np.ndarray, x: np.ndarray, epsilon: float) -> float:
    return float(np.trapezoid(np.maximum(p - np.exp(epsilon) * q, 0), x))


def test_fixed_size_batches_exceed_the_poisson_pair() -> None:
    """Five of fifty records without replacement, one at +C among −C, against all at −C: the exact law of a batch's sum."""
    n, m, sigma = 50, 5, 1.0
    drawn = sum(1 for batch in combinations(range(12), 3) if 0 in batch) / len(list(combinations(range(12), 3)))
    assert drawn == pytest.approx(3 / 12), "a record is in a share m/n of the batches"
    x = np.linspace(-15, 15, 40_001)
    with_it = (1 - m / n) * norm.pdf(x, -m, sigma) + m / n * norm.pdf(x, -m + 2, sigma)
    true = hockey_stick(with_it, norm.pdf(x, -m, sigma), x, 1.0)
    as_poisson = compose({PoissonGaussian(m / n, sigma): 1}, "substitution").delta(1.0)
    assert true == pytest.approx(0.0196, abs=1e-4)
    assert as_poisson == pytest.approx(0.00033, abs=1e-5)
    with pytest.raises(GuaranteeError, match="unknown"):
        from_json({"event": "fixed-size-gaussian", "size": m, "noise_multiplier": sigma})
