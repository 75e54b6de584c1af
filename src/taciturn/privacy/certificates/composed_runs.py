"""What several runs on one corpus spend: all of them together, or the one that was chosen among them.

Together: as one run of all their steps, whatever was looked at in between. Chosen: by private selection
(private_selection.py), which costs less than composition and rests on much more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from taciturn.privacy.accounting.accountant import Profile, accountant_name, compose
from taciturn.privacy.accounting.events import (
    FREE,
    Event,
    NonPrivate,
    PoissonGaussian,
    Relation,
    ThresholdedCounts,
)
from taciturn.privacy.accounting.tradeoff import TradeOff
from taciturn.privacy.certificates.history import Paid, added, paid_by_run
from taciturn.privacy.guarantees import selection_law
from taciturn.privacy.guarantees.claims import Phases
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Assumption, Guarantee, Notion
from taciturn.privacy.guarantees.premises import COVERED, DETECTED, PRIVATE_RECORD, RECORD, SECRET
from taciturn.privacy.guarantees.private_selection import ONLY_THE_BEST, SCORES, SETTINGS, Runs, select
from taciturn.privacy.guarantees.refutation import contradictions, emptied, refuted
from taciturn.privacy.guarantees.status import faults

USER = "whether one user's records were there"
THEOREM = "composition of dominating pairs (guarantees.md §1)"
EACH = Assumption("what the certificate of each of these runs assumes holds", enforced=False)
FIXED = Assumption(
    "how many runs there were, and the noise, rate and steps of each, did not depend on what earlier ones had learned",
    enforced=False,
)
DREW = Assumption(
    "taciturn drew the number of runs from the named law, from secret entropy, before the first run; so many were made",
    enforced=True,
)
EQUAL = Assumption(
    "every run that the corpus remembers had the mechanism, the noise, the rate and the noised steps of this one",
    enforced=True,
)
NOWHERE_ELSE = Assumption("no other run was made on a copy or another screening of this text", enforced=False)

_MASKED: frozenset[str] = frozenset({"redacted", "removed"})


def compose_runs(paid: Sequence[Paid], delta: float, runs: Runs | None = None) -> list[Guarantee]:
    """What all these steps cost at ``delta``, one statement a relation.

    A record that becomes another changes what one unit adds, whatever of record, residual or user is drawn; a record more or
    less is a unit more or less only where records are drawn, a user only where users are. Other steps do not compose with
    these here: the statement is then ``none`` and its reason lists them. Steps without noise count as in a certificate.

    runs: the steps are of one run, chosen as the best of so many like it (§3.6 of guarantees.md has what that rests on).
    """
    paid = [each for each in paid if each.steps]
    plain = {part for each in paid if isinstance(each.event, NonPrivate) for part in each.event.reads}
    units = {each.unit for each in paid if not isinstance(each.event, NonPrivate)}
    any_unit = {"record", "residual", "user"}
    asked: list[tuple[Notion, str, Relation, set[str], frozenset[str]]] = [
        ("confidentiality", SECRET, "substitution", any_unit, FREE)
    ]
    if plain & _MASKED:  # for a secret that the policy detects, redacted text is the same in both worlds
        asked.append(("sdp", DETECTED, "substitution", any_unit, FREE | _MASKED))
    one = PRIVATE_RECORD if plain else RECORD
    asked.append(("dp", one, "add-remove", {"record"}, frozenset({"public"})))
    if "user" in units:
        asked.append(("user-dp", USER, "add-remove", {"user"}, frozenset()))
    made = []
    for notion, unit, relation, composing, free in asked:
        counts, reasons = _counted(paid, composing, free)
        profile = Profile((), relation, 1, "; ".join(reasons)) if reasons else compose(counts, relation)
        made.append(_statement(notion, unit, profile, delta, runs))
    return made


def _counted(paid: Sequence[Paid], composing: set[str], free: frozenset[str]) -> tuple[dict[Event, int], list[str]]:
    """The noised steps, and why they are no guarantee."""
    counts: dict[Event, int] = {}
    refused: list[str] = []
    void: list[str] = []
    for each in paid:
        if isinstance(each.event, NonPrivate):
            if not set(each.event.reads) <= free:
                void.append(f"{each.steps} steps without noise read {', '.join(each.event.reads)}")
            continue
        if each.seeded:
            void.append("noise or sampling coins of a run came from a stored seed")
        if each.unit not in composing or not isinstance(each.event, PoissonGaussian | ThresholdedCounts):
            kind = str(each.event.to_json()["event"])
            refused.append(f"{each.steps} steps over units of the kind {each.unit} ({kind}) do not compose with it")
        else:
            counts[each.event] = counts.get(each.event, 0) + each.steps
    return counts, list(dict.fromkeys([*void, *refused]))


def _statement(notion: Notion, unit: str, profile: Profile, delta: float, runs: Runs | None) -> Guarantee:
    if runs is not None:
        rests = (DREW, EQUAL, SETTINGS, SCORES, ONLY_THE_BEST, NOWHERE_ELSE, EACH)
        return select(profile, runs, delta).guarantee(notion, unit, rests)
    common = (notion, unit, profile.relation, profile.epsilon(delta), delta)
    if profile.reason is not None:
        return Guarantee(*common, "none", THEOREM, accountant_name(), reason=profile.reason)
    attacks = TradeOff.of(profile.curve(delta), profile.epsilon(delta), delta)
    return Guarantee(*common, "conditional", THEOREM, accountant_name(), (EACH, FIXED), trade_off=attacks)


def other_runs(plan: Mapping[str, Any], phases: Phases, evidence: Evidence, delta: float) -> dict[str, Any]:
    """A certificate's ``other_runs``: how many are known, by what means they are counted and with what result, in words."""
    mine, known = paid_by_run(plan, phases, evidence.seeded_noise), evidence.other_runs
    alone = "The guarantees of this certificate count this run alone"
    if evidence.selection is not None:
        runs = selection_law.from_json(evidence.selection)
        found = promised(compose_runs(added(mine), delta, runs), phases, evidence)
        said = (
            f"{alone}, as if it had not been chosen. It was chosen among a number of runs on this corpus that was drawn "
            f"from {selection_law.describe(runs)}; the other runs are counted in what follows, and in nothing else. How "
            f"many they were is not said: the price holds while that is hidden. The chosen run spends: {_listed(found)}."
        )
        return _other_runs(None, "selection", found, said)
    if known is None:
        return _other_runs(
            None, None, [], f"{alone}: whether other runs were made on this corpus is not known, and none are counted."
        )
    if not known:
        return _other_runs(0, None, [], f"{alone}: no other run on this corpus is recorded, so there is none to count.")
    others = [Paid.from_json(each) for each in evidence.other_steps]
    found = promised(compose_runs(added([*mine, *others]), delta), phases, evidence)
    runs_are = "1 other run on this corpus is" if known == 1 else f"{known} other runs on this corpus are"
    said = (
        f"{alone}: {runs_are} recorded (such as those that settings were tried in) and not counted in them. "
        f"Counted together, all {known + 1} spend: {_listed(found)}. Whoever chose this model by looking at the others "
        "relies on that."
    )
    return _other_runs(known, "composition", found, said)


def promised(found: list[Guarantee], phases: Phases, evidence: Evidence) -> list[Guarantee]:
    """Without what evidence refutes or voids: several runs promise nothing that one of them does not."""
    if void := faults(evidence):
        return [emptied(each, "none", "; ".join(void)) if each.finite else each for each in found]
    plain = {
        part
        for counts in phases.values()
        for e, n in counts.items()
        if n and isinstance(e, NonPrivate)
        for part in e.reads
    }
    why = (
        contradictions(COVERED, evidence)
        if plain & set(FREE) and (not evidence.all_private or evidence.skeletons)
        else []
    )
    return [refuted(each, why) if why and each.unit == SECRET and each.finite else each for each in found]


def _other_runs(known: int | None, counted_by: str | None, found: list[Guarantee], said: str) -> dict[str, Any]:
    listed = [each.to_json() for each in found]
    return {"known": known, "counted_by": counted_by, "together": listed, "words": said}


def _listed(found: Sequence[Guarantee]) -> str:
    return "; ".join(each.label() for each in found)
