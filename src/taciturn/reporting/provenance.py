"""Where a model comes from: its data in counts, its settings, its environment; and the limits of the claims about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from taciturn.privacy.guarantee import from_number
from taciturn.reporting.view import RunView

_RECORDS = (
    ("read", "Records read", ""),
    ("public", "Public", "neither policy found anything"),
    ("private", "Private", "redacted; trained on with noise where the plan says so"),
    ("quarantined", "Quarantined", "could not be read; not trained on"),
    ("duplicates", "Duplicates", "copies replaced by a mask-only record"),
    ("suspicious", "Suspicious", "private, and the conservative policy still marks something after redaction"),
    ("skeletons", "Skeletons", "private records with everything marked masked; free to train on"),
    ("skeletons_refused", "Skeletons refused", "masking the secret first gave another skeleton"),
    ("detector_failures", "Detector failures", "a policy failed or timed out; the record is private"),
)
_OTHERS = (
    ("documents", "Documents", ""),
    ("blank", "Blank lines", "skipped before reading"),
    ("spans", "Spans redacted", ""),
    ("spans_undetected_after_check", "Spans that count as missed", "detection does not survive its own masking"),
    ("gold_spans", "Labelled secrets", ""),
    ("gold_missed_by_pi", "Labelled, missed by the policy", ""),
    ("gold_missed_by_both", "Labelled, missed by both policies", ""),
)


def corpora(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """One entry per distinct screened corpus, with the runs that used it."""
    entries: dict[str, dict[str, Any]] = {}
    for name, run in labelled:
        counts = run.evidence.get("counts") or (run.certificate or {}).get("corpus_counts") or {}
        if not counts:
            continue
        key = str(run.plan.get("corpus_key") or name)
        if key in entries:
            entries[key]["runs"].append(name)
            continue
        read = counts.get("read") or 0
        share = {field: counts[field] / read for field, _, _ in _RECORDS[1:] if read and counts.get(field) is not None}
        rows = [
            {"what": what, "why": why, "n": counts[field], "share": share.get(field)}
            for field, what, why in (*_RECORDS, *_OTHERS)
            if counts.get(field) is not None
        ]
        shares = [
            {"name": field, "slot": slot, "share": share[field]}
            for field, slot in (("public", 2), ("private", 0), ("quarantined", 4))
            if share.get(field)
        ]
        entries[key] = {
            "runs": [name],
            "rows": rows,
            "shares": shares,
            "counts": counts,
        }
    return list(entries.values())


def settings(run: RunView, name: str) -> dict[str, Any]:
    """The plan's phases. Only its numbers and its own words are read: a path or a pattern could carry a secret."""
    phases = []
    spent = (run.certificate or {}).get("spent")
    if spent:
        spent = spent | {"epsilon": from_number(spent["epsilon"])}
    for phase in run.plan.get("phases", ()):
        event, sampler = phase.get("event") or {}, phase.get("sampler") or {}
        rule, optimiser = phase.get("rule") or {}, phase.get("optimiser") or {}
        phases.append(
            {
                "name": phase.get("name"),
                "reads": list(phase.get("reads", ())),
                "records": phase.get("records"),
                "steps": phase.get("steps"),
                "batch_size": sampler.get("batch_size"),
                "rate": event.get("rate"),
                "clip": rule.get("clip"),
                "noise_multiplier": event.get("noise_multiplier"),
                "optimiser": optimiser.get("name"),
                "lr": optimiser.get("lr"),
                "schedule": optimiser.get("schedule"),
            }
        )
    return {
        "run": name,
        "phases": phases,
        "repeat": run.plan.get("repeat"),
        "seeds": dict(run.plan.get("seeds") or {}),
        "target": run.plan.get("target"),
        "spent": spent,
    }


def environment(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    certified = [(name, run.certificate) for name, run in labelled if run.certificate is not None]
    packages = sorted({p for _, c in certified for p in c.get("versions") or {}})
    rows = [{"what": p, "values": [str((c.get("versions") or {}).get(p, "")) for _, c in certified]} for p in packages]
    # The corpus key and the plan's digest are functions of private text, by which a guess could be confirmed: not shown.
    rows.append({"what": "digest, ledger", "values": [str(c.get("ledger_digest") or "")[:16] for _, c in certified]})
    weights = [" ".join(str(d)[:16] for d in (c.get("weights_digest") or {}).values()) for _, c in certified]
    rows.append({"what": "digest, weights", "values": weights})
    noise = ["seeded" if c.get("seeded_noise") else "operating system" for _, c in certified]
    rows.append({"what": "noise from", "values": noise})
    return {"runs": [name for name, _ in certified], "rows": rows if certified else []}


def limits(runs: Sequence[RunView]) -> list[str]:
    """What the page does not say, most important first."""
    certificates = [run.certificate for run in runs if run.certificate is not None]
    texts = list(_LIMITS)
    if any(c.get("seeded_noise") for c in certificates):
        texts.insert(0, _SEEDED)
    if any(c.get("release") is False for c in certificates):
        texts.insert(0, _NOT_RELEASED)
    return texts


_LIMITS = (
    "Confidentiality is about one span of one record. What a record says beside its secrets, and that it was used at all, "
    "is outside the claim.",
    "A conditional claim holds for secrets that the conservative policy marks. A secret that both policies miss, in a "
    "record that is public, is trained on without noise.",
    "A record is not a person. Everything one person wrote is covered by the claims that say user, and by no others.",
    "A secret in many distinct records costs more than a secret in one; the group claims say how much.",
    "Attacks bound what an attacker gains from below, claims bound it from above. An attack that found nothing shows only "
    "that this attack found nothing.",
    "ε values of different notions, units or relations do not compare.",
)
_SEEDED = (
    "Noise came from a seed in at least one run: whoever knows the seed can remove it. Such a model is not for release."
)
_NOT_RELEASED = "At least one certificate says that its model is not for release; the summary lists why."
