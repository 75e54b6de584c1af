"""A loop of one's own around noised steps (own_steps.py): what may be said of it. It has no screened corpus."""

from __future__ import annotations

from collections.abc import Iterator

from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.events import Relation
from taciturn.privacy.guarantees.claims import Phases, merged
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee
from taciturn.privacy.guarantees.premises import ALONE, CONSTANTS, RECORD, SAMPLED, SIZE
from taciturn.privacy.guarantees.status import with_status

NAME = "own-loop"
SUMMARY = "DP-SGD steps under a loop, a loss and records of somebody else's"
CONTENT = "what one record holds"
OWN_LOSS = Assumption(
    "the loss, with what fetches and collates records, gives a record a number that depends on the weights and that record "
    "alone (compared on made-up records before the first step, not on those trained on)",
    enforced=False,
)
OWN_CODE = Assumption(
    "nothing else in the program looks at the records: no loss, learning rate, stopping or choice of model that depends on "
    "them, and no other run on them",
    enforced=False,
)
BASE = (SAMPLED, CONSTANTS, ALONE, OWN_LOSS, OWN_CODE)


def guarantees(phases: Phases, evidence: Evidence) -> Iterator[Guarantee]:
    """DP-SGD (§1), of a record's presence and of its content, under what no code here can see of the loop."""
    counts = merged(phases)
    claims: tuple[tuple[str, Relation, tuple[Assumption, ...]], ...] = (
        (CONTENT, "substitution", ()),
        (RECORD, "add-remove", (SIZE,)),
    )
    for unit, relation, more in claims:
        profile = compose(counts, relation)
        yield with_status(
            "dp", unit, relation, profile.epsilon(evidence.delta), evidence.delta,
            "Poisson-sampled Gaussian mechanism (guarantees.md §1)", (*BASE, *more), evidence,
            curve=profile.curve, reason=profile.reason,
        )  # fmt: skip
