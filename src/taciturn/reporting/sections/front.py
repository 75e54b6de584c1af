"""What stands at the top of report and card, and in the last line of a command: the word, its reasons, and the few numbers
that nobody should hear the word without."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import TypedDict

from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.release import not_to_lean_on
from taciturn.reporting import formats
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.verdict import Verdict, Word, missed_words, verdict

_HUB = re.compile(r"[A-Za-z0-9][\w.-]{0,95}(/[A-Za-z0-9][\w.-]{0,95})?", re.ASCII)
OURS = ("lstm", "awd-lstm")
WITHOUT_NOISE = "Trained on without noise"


class Fact(TypedDict):
    """A number with its name."""

    what: str
    said: str


class Front(TypedDict):
    """name: of the run. causes: names of the reasons' causes, none for what may be released. more: further reasons that are
    not told. open: assumptions that a person must judge."""

    run: str
    slot: int
    word: Word
    reasons: list[str]
    causes: list[str]
    more: int
    open: int
    facts: list[Fact]


def leading_claims(run: RunView) -> list[Guarantee]:
    """The claims that a model stands on: all of the confidentiality of one secret, else of selective privacy, else whatever
    is; of those about k units at once, k no larger than what the plan is about."""
    found = ([g for g in run.guarantees if g.notion == notion] for notion in ("confidentiality", "sdp"))
    leading = next(filter(None, found), list(run.guarantees))
    asked = [g for g in leading if g.detail.get("k", 1) <= (run.plan.get("group") or 1)]
    return asked or leading


def of_run(run: RunView) -> Verdict:
    """The word for a run, by its claims, attacks and evidence together."""
    against = None if run.certificate is None else [str(each) for each in run.certificate.get("reasons") or ()]
    if run.certificate is not None and run.certificate.get("release") is not True and not against:
        against = ["its certificate says nothing of release"]
    return verdict(leading_claims(run), run.guarantees, against, run.findings, _evidence(run))


def to_judge(run: RunView) -> int:
    """How many assumptions the leading claims leave to a person."""
    return len({each.text for g in leading_claims(run) for each in g.assumptions if not each.enforced})


def judged(run: RunView) -> str:
    """The same as a clause, empty for none: nobody should hear "may be released" without it."""
    number = to_judge(run)
    return (
        f"provided that the {number} open assumption{'s' * (number != 1)} hold{'s' * (number == 1)}" if number else ""
    )


def front(run: RunView, name: str, slot: int) -> Front:
    """As plain values."""
    found = of_run(run)
    carried = [each for each in found.all_reasons if each.text in found.reasons]
    return {
        "run": name,
        "slot": slot,
        "word": found.word,
        "reasons": list(found.reasons),
        "causes": [each.cause.name.lower().replace("_", " ") for each in carried if each.cause is not None],
        "more": len(found.all_reasons) - len(found.reasons),
        "open": to_judge(run),
        "facts": facts(run),
    }


def facts(run: RunView) -> list[Fact]:
    """What to know beside the word, in the order in which it is asked."""
    told = {
        WITHOUT_NOISE: without_noise(run),
        "What holds": _holds(run),
        "Missed by the policies": _missed(run),
        "Base model": base_model(run),
        "Certified": str((run.certificate or {}).get("created") or "")[:10] or "not certified",
        "Digest": str((run.certificate or {}).get("digest") or "")[:16] or formats.MISSING,
    }
    return [{"what": what, "said": said} for what, said in told.items()]


def claim_words(g: Guarantee) -> str:
    """A claim with all that belongs to its ε, and what an attacker gains."""
    told = g.trade_off
    if told is None:
        return g.label()
    return f"{g.label()}; {told.label()}: at {told.alarms()} false alarms an attack finds at most {told.share()}"


def without_noise(run: RunView) -> str:
    """The share of the training text that a step without noise read; rounded up, as it is told to somebody who signs."""
    if run.tokens is None:
        return "not counted"
    total, without = int(run.tokens["tokens"]), int(run.tokens["without_noise"])
    share = 0.0 if not total else -(-1000 * without // total) / 10
    return f"{share:g} % of {formats.count(total)} tokens"


def base_model(run: RunView) -> str:
    """The model that training began with: named if it is a hub's or ours, as a path could say something."""
    name = str((run.plan.get("model") or {}).get("name") or "")
    if name in OURS:
        return f"{name}, from random weights"
    if from_hub(name):
        return name
    kind = str(run.model.get("model_type") or "")
    return "a model of the house" + (f" ({kind})" if re.fullmatch("[a-z][a-z0-9_]{0,40}", kind) else "")


def from_hub(name: str) -> bool:
    """Whether ``name`` looks like a hub name ("gpt2", "owner/model") rather than a kind of ours, a file or a folder."""
    return (
        bool(_HUB.fullmatch(name))
        and name not in OURS
        and not name.endswith((".json", ".toml", ".gguf"))
        and not Path(name).exists()
    )


def _holds(run: RunView) -> str:
    if run.certificate is None:
        return "nothing: not certified"
    told = [claim_words(g) for g in leading_claims(run) if not not_to_lean_on(g)]
    return "; ".join(told) or "nothing that anybody should lean on"


def _missed(run: RunView) -> str:
    evidence = _evidence(run)
    return missed_words(evidence) if evidence is not None and evidence.labels else "not known: nobody labelled secrets"


def _evidence(run: RunView) -> Evidence | None:
    known = {each.name for each in fields(Evidence)}
    return Evidence.from_json({k: v for k, v in run.evidence.items() if k in known}) if run.evidence else None
