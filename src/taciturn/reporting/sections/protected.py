"""What was protected, in words, for somebody who has read none of the papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taciturn.privacy.guarantees.release import not_to_lean_on
from taciturn.reporting import formats
from taciturn.reporting.finished_run import RunView
from taciturn.screening.policies.public_kinds import SAID

_NOTHING = "Nothing: the model was trained on the text as it is, without noise."
_REDACTED = (
    "What the policy finds is masked before training. What it misses is trained on as it stands, and nothing "
    "covers that."
)
_CRT = (
    "What the policy finds is masked before training. A record in which either policy finds something is private: noise "
    "hides what any one such record adds, so a secret that the mask missed is covered there. The other records are public "
    "and are trained on without noise."
)
_WORDS = {
    "sgd": _NOTHING,
    "redacted": _REDACTED,
    "dpsgd": "Every record, whatever it says: noise hides what any one of them adds.",
    "own-loop": "Every record that the loop was given, whatever it is: noise hides what any one of them adds.",
    "crt": _CRT,
    "crt_residual": f"{_CRT} The noise falls only on what a private record adds to its skeleton.",
    "selective_dpsgd": "What the policy detects: noise falls on every step at which the model reads a detected secret. What "
    "the policy misses is trained on without noise.",
    "uedp": "What one user wrote about one detected entity: noise hides whether it was there.",
    "uedp-published": "What one user wrote about one detected entity, by the algorithm as published; the number it was "
    "published with is not a bound.",
    "user_dp": "Everything one user wrote: noise hides whether that user was there at all.",
}
_JFT_PLAIN = (
    "A first phase reads {first} without noise, a second reads the originals with noise. A secret that the policy detects "
    "is covered by the second phase; one that it misses also stood in the first."
)
_JFT_LIGHT = (
    "A first phase reads redacted text with light noise, a second reads the originals with more. A secret that the policy "
    "detects is covered by the second phase; one that it misses costs both."
)
_SKELETONS = "Skeletons, which are private records with everything marked masked, are trained on without noise too."
_COMMON = (
    "In them common values stay where they stand, those of the released table: a secret that is such a value by itself is "
    "not protected. Values that the policy redacts never stay."
)
_UNITS = {
    "sentence": "one sentence of a document",
    "turn": "one turn of a conversation",
    "document": "one whole document",
}


def protection(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """A paragraph and what nobody should lean on, once for all runs of which both are the same."""
    made: list[dict[str, Any]] = []
    for slot, (name, run) in enumerate(labelled):
        about = {
            "sentences": list(_sentences(run)),
            "not_covered": [{"unit": g.unit, "reason": why} for g in run.guarantees if (why := not_to_lean_on(g))],
        }
        same = [each for each in made if {k: v for k, v in each.items() if k != "runs"} == about]
        if not same:
            same = [about | {"runs": []}]
            made += same
        same[0]["runs"].append({"run": name, "slot": slot})
    return made


def _sentences(run: RunView) -> Iterator[str]:
    mechanism = str(run.plan.get("mechanism"))
    phases = run.plan.get("phases", ())
    reads = {part for phase in phases for part in phase.get("reads", ())}
    if mechanism == "jft":
        yield _jft(run)
    else:
        yield _WORDS.get(mechanism, "A mechanism that this report has no words for; the claims below say what holds.")
    masked = bool(reads & {"skeletons", "common"})
    if masked:
        yield _SKELETONS
    if "common" in reads:
        yield _COMMON
    if mechanism in ("crt", "crt_residual") or masked:
        yield from _public(run)
    if mechanism in ("sgd", "redacted", "own-loop"):
        return
    unit = _UNITS.get(str(run.evidence.get("unit") or ""))
    if unit and mechanism not in ("user_dp", "uedp", "uedp-published"):
        yield f"A record is {unit}."
    if (most := run.evidence.get("records_per_user")) and mechanism != "user_dp":
        yield f"One user has at most {formats.count(most)} protected records."
    yield from _labels(run)


def _jft(run: RunView) -> str:
    phases = run.plan.get("phases") or [{}]
    first: Mapping[str, Any] = phases[0]
    if (first.get("rule") or {}).get("clip"):
        return _JFT_LIGHT
    skeletons = "skeletons" in (first.get("reads") or ())
    return _JFT_PLAIN.format(first="public records and skeletons" if skeletons else "redacted text")


def _public(run: RunView) -> Iterator[str]:
    """What stays readable because somebody declared it public."""
    values, kinds = run.evidence.get("public_values"), run.evidence.get("public_kinds") or ()
    listed = [f"one of {formats.count(values)} listed values"] if values else []
    if told := " or ".join([*listed, *(SAID[kind] for kind in kinds)]):
        yield (
            f"Declared public beforehand, and therefore not masked where it stands by itself: {told}. A secret that is, or "
            "lies in, such a value is not protected."
        )


def _labels(run: RunView) -> Iterator[str]:
    evidence = run.evidence
    if not any(g.notion in ("confidentiality", "sdp", "bayesian-confidentiality") for g in run.guarantees):
        return
    labelled, missed = evidence.get("labelled"), evidence.get("missed_by_pi")
    if not labelled or missed is None:
        yield "Nobody labelled secrets, so how many the policies miss is not known."
        return
    what = "records with a secret" if evidence.get("label_unit") == "record" else "secrets"
    both = evidence.get("missed_by_both") or 0
    yield (
        f"Of {formats.count(labelled)} labelled {what}, the policy missed {formats.count(missed)} and both policies "
        f"{formats.count(both)}."
    )
