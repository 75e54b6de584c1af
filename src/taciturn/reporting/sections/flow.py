"""Where the records went, in counts: one entry per screened corpus, and its picture."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taciturn.reporting import formats
from taciturn.reporting.finished_run import RunView

_RECORDS = (
    ("read", "Records read", ""),
    ("public", "Public", "neither policy found anything"),
    ("private", "Private", "redacted; trained on with noise where the plan says so"),
    ("quarantined", "Quarantined", "could not be read; not trained on"),
    ("duplicates", "Duplicates", "copies replaced by a mask-only record"),
    ("suspicious", "Suspicious", "private, and the conservative policy still marks something after redaction"),
    ("skeletons", "Skeletons", "private records with everything marked masked; free to train on"),
    ("skeletons_refused", "Skeletons refused", "masking the secret first gave another skeleton"),
    ("values_refused", "Skeletons without values", "masking one value may change whether the policy finds another"),
    ("corrected", "Corrected by hand", "a person added marks"),
    ("detector_failures", "Detector failures", "a policy failed or timed out; the record is private"),
)
_OTHERS = (
    ("documents", "Documents", ""),
    ("cleaned", "Documents cleaned out", "left out before screening"),
    ("left_out", "Parts that are no text", "skipped"),
    ("blank", "Blank lines", "skipped before reading"),
    ("spans", "Spans redacted", ""),
    ("spans_undetected_after_check", "Spans that count as missed", "detection does not survive its own masking"),
    ("gold_spans", "Labelled secrets", ""),
    ("gold_missed_by_pi", "Labelled, missed by the policy", ""),
    ("gold_missed_by_both", "Labelled, missed by both policies", ""),
)
IN_HOUSE = frozenset(name for name, _, _ in (*_RECORDS, *_OTHERS)) - {
    "documents", "read", "public", "private", "quarantined", "blank", "skeletons",
}  # fmt: skip
"""Counts that one secret can change, which a certificate therefore leaves out."""
_WHEN_ANY = frozenset(
    {"skeletons_refused", "values_refused", "corrected", "detector_failures", "cleaned", "left_out", "blank"}
)


def corpora(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """One entry per corpus, told apart by their counts, with the runs that used it."""
    entries: dict[tuple[tuple[str, int], ...], dict[str, Any]] = {}
    for name, run in labelled:
        quoted = run.evidence.get("counts") or (run.certificate or {}).get("corpus_counts") or {}
        found = {field: n for field, n in {**quoted, **(run.screened or {})}.items() if type(n) is int}
        if not found:
            continue
        entry = entries.setdefault(tuple(sorted(found.items())), {"runs": [], **_entry(found)})
        entry["runs"].append(name)
    return list(entries.values())


def _entry(counts: Mapping[str, int]) -> dict[str, Any]:
    read = counts.get("read") or 0
    share = {field: counts[field] / read for field, _, _ in _RECORDS[1:] if read and counts.get(field) is not None}
    rows = [
        {"what": what, "why": why, "n": counts[field], "share": share.get(field), "in_house": field in IN_HOUSE}
        for field, what, why in (*_RECORDS, *_OTHERS)
        if counts.get(field) is not None and (counts[field] or field not in _WHEN_ANY)
    ]
    parts = [
        {"name": field, "n": counts[field], "share": share[field]}
        for field in ("public", "private", "quarantined")
        if field in share
    ]
    inside = [
        {"name": field, "n": counts[field]}
        for field in ("duplicates", "spans", "skeletons")
        if counts.get(field) is not None
    ]
    return {"rows": rows, "parts": parts, "inside": inside, "read": read}


WIDTH, GAP, TALL = 340.0, 4.0, 34.0
_HUES = {"public": "s2", "private": "s0", "quarantined": "s4"}
_INSIDE = {
    "duplicates": "copies became a mask alone",
    "spans": "secrets redacted",
    "skeletons": "of them also give a skeleton, free to train on",
}
_TRAINED = {
    "public": "trained on as they are",
    "private": "noise, where the plan has some",
    "quarantined": "not trained on",
}


def picture(entry: Mapping[str, Any]) -> str:
    """The way of the records as an ``<svg>``: a bar of all, bands to its parts, and what was done to them.

    It is as wide as a phone, so its words stay legible there; where a part is thin, its words stand below the others'.
    """
    parts = [part for part in entry["parts"] if part["n"]]
    if not entry["read"] or not parts:
        return ""
    body = "".join(_drawn(entry, parts))
    lines = len(parts) + len(entry["inside"])
    height = 128 + 17 * lines
    label = html.escape(words(entry), quote=True)
    return f'<svg role="img" aria-label="{label}" viewBox="0 0 {WIDTH:.0f} {height}" font-size="12">{body}</svg>'


def words(entry: Mapping[str, Any]) -> str:
    """The same as one sentence."""
    parts = ", ".join(
        f"{formats.count(part['n'])} {part['name']} ({_TRAINED[part['name']]})" for part in entry["parts"]
    )
    inside = "; ".join(f"{formats.count(each['n'])} {_INSIDE[each['name']]}" for each in entry["inside"])
    return f"{formats.count(entry['read'])} records read: {parts}" + (f"; {inside}." if inside else ".")


def _drawn(entry: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield _text(0, 12, f"{formats.count(entry['read'])} records read", 600)
    yield f'<rect x="0" y="20" width="{WIDTH:.1f}" height="{TALL / 2}" rx="2" fill="var(--muted)"/>'
    room = WIDTH - GAP * (len(parts) - 1)
    above, below, y = 0.0, 0.0, 20 + TALL / 2
    for part in parts:
        hue = f"var(--{_HUES[part['name']]})"
        wide, thin = part["share"] * WIDTH, max(2.0, part["share"] * room)
        a, b, c, d = above, above + wide, below + thin, below
        middle = y + TALL / 2
        yield (
            f'<path d="M{a:.1f} {y} C{a:.1f} {middle} {d:.1f} {middle} {d:.1f} {y + TALL} L{c:.1f} {y + TALL} '
            f'C{c:.1f} {middle} {b:.1f} {middle} {b:.1f} {y} Z" fill="{hue}" opacity=".25"/>'
            f'<rect x="{d:.1f}" y="{y + TALL}" width="{thin:.1f}" height="{TALL / 2}" rx="2" fill="{hue}"/>'
        )
        above, below = above + wide, below + thin + GAP
    y += TALL * 1.5 + 20
    for part in parts:
        hue = f"var(--{_HUES[part['name']]})"
        said = (
            f"{formats.count(part['n'])} {part['name']} · {formats.percent(part['share'])} · {_TRAINED[part['name']]}"
        )
        yield f'<rect x="0" y="{y - 9}" width="9" height="9" rx="2" fill="{hue}"/>' + _text(16, y, said)
        y += 17
    for each in entry["inside"]:
        yield _text(16, y, f"{formats.count(each['n'])} {_INSIDE[each['name']]}", muted=True)
        y += 17


def _text(x: float, y: float, text: str, weight: int = 400, *, muted: bool = False) -> str:
    colour = "muted" if muted else "text"
    return f'<text x="{x:g}" y="{y:g}" font-weight="{weight}" fill="var(--{colour})">{html.escape(text)}</text>'
