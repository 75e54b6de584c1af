"""Everything the report shows, as one dictionary of numbers and short words: the page and ``--json`` both come from it.

Only numbers and a short list of named settings are taken from the run folders. Free text (paths, patterns, templates) is
left out, so that nothing a user typed can carry a secret onto the page.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taciturn.privacy.guarantees.guarantee import to_number
from taciturn.privacy.guarantees.release import not_to_lean_on
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections import attacks, flow, front, protected, provenance, recall, signoff, summary, values
from taciturn.reporting.sections.costs import budget
from taciturn.reporting.verdict import headline

POINTS = 400
"""A curve along training keeps at most this many points."""


def data(runs: Sequence[RunView], recalls: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """The content of a report over one or several runs as plain JSON values; ∞ is the string "inf".

    recalls: what recall.json files hold; one that a run's evidence came from adds its kinds of secrets.
    """
    return as_data(collect(runs, recalls))


def as_data(content: Mapping[str, Any]) -> dict[str, Any]:
    """What ``collect`` gave, as ``data`` gives it."""
    told: dict[str, Any] = _plain(content)
    return told


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return to_number(value) if isinstance(value, float) else value


def collect(runs: Sequence[RunView], recalls: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """As ``data``, with ∞ as a float."""
    if not runs:
        raise ValueError("a report needs at least one run")
    names = _labels([run.name for run in runs])
    labelled = list(zip(names, runs, strict=True))
    first = headline({name: front.of_run(run) for name, run in labelled})
    return {
        "title": f"{first} · taciturn report",
        "headline": first,
        "verdicts": [front.front(run, name, slot) for slot, (name, run) in enumerate(labelled)],
        "told": summary.told(runs, names),
        "runs": [summary.run_row(run, name, slot) for slot, (name, run) in enumerate(labelled)],
        "protected": protected.protection(labelled),
        "claims": _claims(labelled),
        "other_runs": list(_other_runs(labelled)),
        "sign": signoff.to_judge(labelled),
        "uncertified": [name for name, run in labelled if run.certificate is None],
        **budget(labelled),
        "training": _training(labelled),
        "findings": [
            attacks.finding(f, name, slot) for slot, (name, run) in enumerate(labelled) for f in run.findings or ()
        ],
        "unaudited": [name for name, run in labelled if run.findings is None],
        "against": attacks.against(labelled),
        "attacks": attacks.arrays(labelled),
        "corpora": flow.corpora(labelled),
        "tables": values.tables(labelled),
        "recall": recall.tables(labelled, recalls),
        "settings": [provenance.settings(run, name) for name, run in labelled],
        "environment": provenance.environment(labelled),
        "limits": provenance.limits(runs),
    }


def _labels(names: Sequence[str]) -> list[str]:
    """Run names, numbered where two are the same.

    >>> _labels(["crt", "mail", "crt"])
    ['crt (1)', 'mail', 'crt (2)']
    """
    total, seen = Counter(names), Counter[str]()
    labels = []
    for name in names:
        seen[name] += 1
        labels.append(f"{name} ({seen[name]})" if total[name] > 1 else name)
    return labels


def _claims(labelled: Sequence[tuple[str, RunView]]) -> list[dict[str, Any]]:
    """Every claim once, with the runs that make it."""
    claims: list[dict[str, Any]] = []
    for slot, (name, run) in enumerate(labelled):
        for g in run.guarantees:
            ticks = [{"text": a.text, "enforced": a.enforced} for a in g.assumptions]
            claim = {
                "notion": g.notion,
                "unit": g.unit,
                "relation": g.relation,
                "epsilon": g.epsilon,
                "delta": g.delta,
                "status": g.status,
                "lean": not not_to_lean_on(g),
                "theorem": g.theorem,
                "accountant": g.accountant,
                "words": g.words(),
                "short": summary.short(g),
                "reason": g.reason,
                "detail": dict(sorted(g.detail.items())),
                "trade_off": None if g.trade_off is None else g.trade_off.to_json(),
                "mu": "" if g.trade_off is None else g.trade_off.label(),
                "assumptions": ticks,
                "open": sum(not t["enforced"] for t in ticks),
            }
            same = [c for c in claims if {k: v for k, v in c.items() if k != "runs"} == claim]
            if not same:
                same = [claim | {"runs": []}]
                claims += same
            same[0]["runs"].append({"run": name, "slot": slot})
    return claims


def _other_runs(labelled: Sequence[tuple[str, RunView]]) -> Iterator[dict[str, Any]]:
    """What each certificate says of other runs on the same corpus, which its claims do not count."""
    for slot, (name, run) in enumerate(labelled):
        told = (run.certificate or {}).get("other_runs")
        if isinstance(told, Mapping) and told.get("words"):
            yield {"run": name, "slot": slot, "known": told.get("known"), "words": str(told["words"])}


def _training(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """Held-out utility at each evaluation (perplexity; accuracy, where there are classes) and ε after each step."""
    spent = []
    utility: dict[str, list[dict[str, Any]]] = {"perplexity": [], "accuracy": []}
    for slot, (name, run) in enumerate(labelled):
        for measure, found in utility.items():
            evals = [r for r in run.rows("eval") if r.get(measure) is not None and r.get("split") != "test"]
            if evals:
                columns = {key: [row.get(key) for row in evals] for key in ("step", "epoch", measure)}
                found.append({"run": name, "slot": slot, **columns})
        steps = [
            r for r in run.rows("step") if isinstance(r.get("epsilon"), int | float) and math.isfinite(r["epsilon"])
        ]
        if any(row["epsilon"] for row in steps):
            kept = _thin([(row["step"], row["epsilon"]) for row in steps])
            spent.append({"run": name, "slot": slot, "step": [k[0] for k in kept], "epsilon": [k[1] for k in kept]})
    targets = {e for _, run in labelled if (e := (run.plan.get("target") or {}).get("epsilon"))}
    return {**utility, "spent": spent, "target": targets.pop() if len(targets) == 1 else None}


def _thin(points: Sequence[tuple[float, float]], most: int = POINTS) -> list[tuple[float, float]]:
    """At most ``most`` points, evenly spread, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    return [points[round(i * (len(points) - 1) / (most - 1))] for i in range(most)]
