"""What a trained row of CRT's experiments is measured by: noise, Bayesian ε on the way, exposure and membership."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taciturn.recipes.cells import Row
from taciturn.recipes.crt.sizes import DELTA

if TYPE_CHECKING:
    from taciturn.text.document import Document, Record


def noise(plan: Mapping[str, Any]) -> Row:
    """σ and sampling rate of the noised phase, None without one."""
    events = [phase["event"] for phase in plan["phases"] if phase["event"].get("noise_multiplier")]
    return {"sigma": events[0]["noise_multiplier"], "rate": events[0].get("rate")} if events else {"sigma": None}


def bayesian(plan: Mapping[str, Any], points: Sequence[Row], gamma: float | None) -> Row:
    """Bayesian ε at δ where each point was taken, as it holds and by the paper's accounting; γ None: nothing is redacted.

    Returns holds, published: one ε a point, of the private steps until then. Empty for rows without such a statement
    (redaction: 0; S-DP: ∞, since what π misses is trained on without noise).
    """
    from taciturn.privacy.accounting.accountant import compose
    from taciturn.privacy.accounting.events import PoissonGaussian
    from taciturn.privacy.guarantees.published_crt import published_epsilon
    from taciturn.privacy.guarantees.theorems import bayesian as theorem
    from taciturn.privacy.guarantees.theorems import bayesian_simple

    if plan["mechanism"] not in ("dpsgd", "crt"):
        return {}
    phase = next(each for each in plan["phases"] if each["event"].get("noise_multiplier"))
    event = PoissonGaussian(phase["event"]["rate"], phase["event"]["noise_multiplier"])
    rounds = int(plan["repeat"])
    total = int(phase["steps"])  # of all rounds, as plan.json counts
    before = (sum(int(each["steps"]) for each in plan["phases"]) - total) // rounds
    holds, published = [], []
    for point in points:
        steps = _private_steps(int(point["done"]), before, total // rounds, rounds)
        profile = compose({event: steps}, "substitution")
        share = 1.0 if gamma is None else gamma
        holds.append(profile.epsilon(DELTA) if gamma is None else theorem(profile, share, 0.0, DELTA).epsilon)
        if not steps or share <= DELTA:
            published.append(0.0)
            continue
        at = published_epsilon(event.rate, event.noise_multiplier, steps, min(DELTA / share, 0.999))
        published.append(bayesian_simple(at, share))
    return {"holds": holds, "published": published}


def _private_steps(done: int, before: int, steps: int, rounds: int) -> int:
    """Private steps among the first ``done`` of [``before`` public, ``steps`` private] × rounds.

    >>> [_private_steps(done, 3, 2, 2) for done in (0, 3, 4, 5, 8, 9, 10)]
    [0, 0, 1, 2, 2, 3, 4]
    """
    whole, rest = divmod(done, before + steps)
    return min(whole, rounds) * steps + max(0, rest - before)


def attacks(run: Any, canaries: Any, members: Sequence[Document], others: Sequence[Document], group: int) -> Row:
    """Highest exposure of the canaries, accuracy and AUC of membership, alone and in groups of ``group`` (A.5).

    Members are turns of the training dialogues that hold a secret, as they were written; non-members turns of the same kind
    with other people's secrets, from the same generator.
    """
    import taciturn as tt

    inside, outside = (secret_turns(documents) for documents in (members, others))
    few = min(len(inside), len(outside), 1000)
    names = ["exposure", "membership", *(["group-membership"] if few >= 2 * group else [])]
    found = tt.audit(
        run, names, canaries=canaries, members=inside[:few], nonmembers=outside[:few],
        group_size=group, seed=0,
    )  # fmt: skip
    row: Row = {"members": few}
    for each in found:
        name = each.attack.replace("-", "_")
        row |= {name: each.score, f"{name}_verdict": each.verdict, f"{name}_p95": each.null.get("p95")}
        if name != "exposure":
            row |= {f"{name}_accuracy": each.detail["accuracy_same_set"], f"{name}_mean": _null(each)}
    return row


def _null(finding: Any) -> list[float]:
    """Mean and 95 % point of the accuracy when nothing leaked: above .5, as the threshold is chosen afterwards."""
    return [finding.null["accuracy_same_set_mean"], finding.null["accuracy_same_set_p95"]]


def secret_turns(documents: Sequence[Document]) -> list[str]:
    """Different turns with an annotated secret, names alone left out where other kinds are annotated."""
    from taciturn.text.segment import split

    records: list[Record] = [record for document in documents for record in split(document, "turn")]
    kept = [r.body for r in records if any(span.label not in ("name", "tracking_number") for span in r.gold)]
    return list(dict.fromkeys(kept))
