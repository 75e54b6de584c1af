"""What a person must decide before a model leaves the house: what the numbers rest on, and what speaks against it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from taciturn.reporting.finished_run import RunView
from taciturn.reporting.sections import summary
from taciturn.reporting.verdict import attack_words

_HOW = (
    (
        "conservative policy marks every secret",
        "label a random sample; `taciturn recall` bounds what both policies miss",
    ),
    ("lies wholly in what the policies mark", "look at marked records with `taciturn preview`, spans and boundaries"),
    ("random sample", "ask how the labelled records were chosen; `taciturn sample` draws them at random"),
    ("lies in one sentence", "look for secrets that run over a sentence's end, or screen by document"),
    (
        "validation text that decisions",
        "choose settings on public text, or declare it with train.valid_is = public where it is",
    ),
)


def to_judge(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """open: every assumption that nothing enforces, once, with the runs that rest on it and what would support it. against:
    what already speaks against release, per run."""
    rests: dict[str, list[str]] = {}
    for name, run in labelled:
        for g in run.guarantees:
            for each in g.assumptions:
                if not each.enforced and name not in rests.setdefault(each.text, []):
                    rests[each.text].append(name)
    against = [{"run": name, "text": text} for name, run in labelled for text in _against(run)]
    return {"open": [{"text": t, "how": _support(t), "runs": who} for t, who in rests.items()], "against": against}


def _support(text: str) -> str:
    return next((how for part, how in _HOW if part in text), "")


def _against(run: RunView) -> Iterator[str]:
    if run.certificate is None:
        yield "it is not certified"
    elif run.certificate.get("release") is False:
        yield from (str(each).replace("not for release: ", "") for each in run.certificate.get("reasons") or ())
    if not summary.bounded(run):
        yield "no claim covers every secret"
    if run.findings is None:
        yield "it was not attacked"
    yield from (f"the {attack_words(f.attack)} attack found a leak" for f in run.findings or () if f.verdict == "leak")
    yield from (
        f"the {attack_words(f.attack)} attack was inconclusive"
        for f in run.findings or ()
        if f.verdict == "inconclusive"
    )
