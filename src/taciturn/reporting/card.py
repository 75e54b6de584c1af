"""The model card of an exported model: what it was trained on, what is promised, what was tried against it.

Only numbers and sentences of our own go in; no text of the corpus, no path, no pattern of a policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from taciturn.privacy.certificates.exported_model import CAST
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.privacy.guarantees.release import not_to_lean_on
from taciturn.reporting import formats
from taciturn.reporting.finished_run import RunView
from taciturn.reporting.hub import Hub
from taciturn.reporting.sections import front, summary
from taciturn.reporting.verdict import attack_words

NOTHING = Hub()


@dataclass(frozen=True, slots=True)
class Kind:
    """What a model does: its name in words, the hub's name of its task, and the class of transformers that loads it."""

    words: str
    pipeline: str
    loader: str


CAUSAL = Kind("A language model", "text-generation", "AutoModelForCausalLM")
MASKED = Kind("A masked language model", "fill-mask", "AutoModelForMaskedLM")
CLASSIFIER = Kind("A text classifier", "text-classification", "AutoModelForSequenceClassification")
_BY_TASK = {"classify": CLASSIFIER, "masked": MASKED}
_MODULES = {"taciturn_lstm": "taciturn.models.lstm", "taciturn_awd_lstm": "taciturn.models.awd_lstm"}
"""Architectures of our own, which transformers knows once their module is imported."""


def kind_of(run: RunView, config: Mapping[str, Any]) -> Kind:
    """By the class that the model was saved as (config.json), else by the task of the plan."""
    name = str((config.get("architectures") or [""])[0])
    if name:
        return CLASSIFIER if "SequenceClassification" in name else MASKED if "MaskedLM" in name else CAUSAL
    return _BY_TASK.get(str((run.plan.get("model") or {}).get("task")), CAUSAL)


def write(folder: str | Path, run: RunView, hub: Hub = NOTHING) -> Path:
    """Write ``README.md`` into the exported model's folder and return its path."""
    folder = Path(folder)
    config = folder / "config.json"
    path = folder / "README.md"
    cast = (folder / CAST).is_file()
    text = render(run, json.loads(config.read_text("utf-8")) if config.exists() else {}, hub, cast=cast)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


def render(run: RunView, config: Mapping[str, Any] | None = None, hub: Hub = NOTHING, *, cast: bool = False) -> str:
    """The card as Markdown with the YAML head that model hubs read. config: config.json of the model. cast: whether its
    weights are the certified ones in another number type."""
    config = run.model if config is None else config
    kind, module = kind_of(run, config), _MODULES.get(str(config.get("model_type")))
    parts = [
        _head(run, kind, hub, ours=module is not None),
        f"# {_plain(run.name)}\n",
        f"{kind.words} trained with taciturn by {summary.method(run)}.\n",
        *_verdict(run),
        "## What is promised\n",
        *_claims(run),
        *_not_covered(run),
        "## How well it predicts\n",
        *_quality(run),
        "## What was tried against it\n",
        *_audit(run),
        "## What it was trained on\n",
        *_training(run, {} if cast else config),
        *([_CAST.format(dtype=config.get("dtype"))] if cast else []),
        "## Intended use and limits\n",
        _LIMITS,
        "## How to load it\n",
        _load(kind, module),
        "## How to check it\n",
        _VERIFY,
        *([_VERIFY_CAST] if cast else []),
    ]
    return "\n".join(parts)


def _head(run: RunView, kind: Kind, hub: Hub, *, ours: bool) -> str:
    """YAML front matter."""
    base = str((run.plan.get("model") or {}).get("name") or "")
    library = f"library_name: {'taciturn' if ours else 'transformers'}"
    lines = [*hub.lines(base if front.from_hub(base) else None), library, f"pipeline_tag: {kind.pipeline}"]
    return "\n".join(["---", *lines, "---\n"])


_WORDS = {"may be released": "May be released", "not yet": "Not to be released yet", "do not": "Not for release"}


def _verdict(run: RunView) -> Iterator[str]:
    """The word first, then what belongs to it. How many tokens were read depends on private text, and stays in the house."""
    found = front.of_run(run)
    provided = f", {clause}" if found.word == "may be released" and (clause := front.judged(run)) else ""
    yield f"**{_WORDS[found.word]}{provided}.**\n"
    yield from (f"- {_plain(reason)}" for reason in found.reasons)
    yield ""
    yield from (
        f"- {fact['what']}: {_plain(formats.powers(fact['said']))}"
        for fact in front.facts(run)
        if fact["what"] != front.WITHOUT_NOISE
    )
    yield ""


def _claims(run: RunView) -> Iterator[str]:
    if run.certificate is None:
        yield "Nothing: this run was not certified.\n"
        return
    promised = [g for g in run.guarantees if not not_to_lean_on(g)]
    for g in promised:
        yield f"- **{g.status}**: {_plain(g.words())}"
        yield from _rests_on(g)
    if not promised:
        yield "Nothing that anybody should lean on.\n"
    elif any(g.status == "conditional" for g in promised):
        yield "\n`conditional` means that a claim rests on something taciturn cannot check.\n"


def _rests_on(g: Guarantee) -> Iterator[str]:
    if enforced := [_plain(a.text) for a in g.assumptions if a.enforced]:
        yield f"  - kept by the code: {'; '.join(enforced)}"
    if left := [_plain(a.text) for a in g.assumptions if not a.enforced]:
        yield f"  - left for you to judge: {'; '.join(left)}"


def _not_covered(run: RunView) -> Iterator[str]:
    """Every claim that nobody should lean on, with why."""
    if not_covered := [(g, why) for g in run.guarantees if (why := not_to_lean_on(g))]:
        yield "\n## What is not covered\n"
        yield from (f"- **{g.status}**: {_plain(g.words())} {_plain(_because(g, why))}" for g, why in not_covered)
        yield ""


def _because(g: Guarantee, why: str) -> str:
    return "" if why in g.words() else f"No protection: {why}."


def _quality(run: RunView) -> Iterator[str]:
    value = summary.perplexity(run)
    accuracy = summary.perplexity(run, "accuracy")
    if accuracy is not None:
        yield f"Held-out accuracy: {formats.rate(accuracy)}.\n"
        return
    if value is None:
        yield "No held-out perplexity was measured.\n"
        return
    public = summary.perplexity(run, "perplexity_public_tokens")
    outside = f" ({formats.general(public)} on the tokens outside known secrets)" if public is not None else ""
    yield f"Held-out perplexity, per token of this model's tokenizer: {formats.general(value)}{outside}.\n"


def _audit(run: RunView) -> Iterator[str]:
    if not run.findings:
        yield "Nothing: this run was not audited.\n"
        return
    yield "| attack | score | chance, 95 % point | p | positive control | verdict |\n|---|---|---|---|---|---|"
    for f in run.findings:
        show = formats.bits if f.unit_of_score == "bits" else formats.rate
        cells = [
            attack_words(f.attack),
            f"{show(f.score)} {f.unit_of_score}",
            show(f.null.get("p95")),
            formats.probability(f.null.get("p")),
            show(f.controls.get("positive")),
            f.verdict,
        ]
        yield f"| {' | '.join(cells)} |"
    yield "\nAn attack that finds nothing shows only that this attack found nothing.\n"


def _training(run: RunView, config: Mapping[str, Any]) -> Iterator[str]:
    counts: dict[str, Any] = run.evidence.get("counts") or {}
    told = [
        f"{formats.count(counts[field])} {words}"
        for field, words in (
            ("read", "records read"),
            ("public", "public"),
            ("private", "private"),
            ("skeletons", "skeletons"),
        )
        if counts.get(field) is not None
    ]
    if told:
        yield f"{', '.join(told)}. The text itself is not described here.\n"
    yield "| phase | reads | records | steps | rate q | clip C | noise σ |\n|---|---|---|---|---|---|---|"
    for phase in run.plan.get("phases", ()):
        event, rule = phase.get("event") or {}, phase.get("rule") or {}
        cells = [
            _plain(str(phase.get("name"))),
            ", ".join(phase.get("reads", ())),
            formats.count(phase.get("records")),
            formats.count(phase.get("steps")),
            formats.setting(event.get("rate")),
            formats.setting(rule.get("clip")),
            formats.setting(event.get("noise_multiplier")),
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""
    if (run.plan.get("model") or {}).get("base_bits") == 4:
        yield _FOUR_BITS
    if config.get("dtype") == "bfloat16":
        yield _BFLOAT16


_FOUR_BITS = """\
The base was kept in 4 bits (NormalFloat). The weights here are the base made whole from those, with the adapter added.
Put on the base as it was published, the adapter makes a slightly different model.
"""

_BFLOAT16 = """\
The weights are bfloat16: trained in float32 and rounded after the last step, which every claim covers. Attacks were made on
the rounded weights; how well the model predicts was measured before.
"""

_CAST = """\
The weights here are the certified ones cast to {dtype}, which is post-processing: every claim covers them. Attacks and
measurements were made on the certified weights.
"""

_LIMITS = """\
Meant for text like the text it was trained on. It may state what is false, and repeat any biases of its corpus.

- A promise covers a secret as a span of one record, not everything that can be inferred about a person.
- A record is not a person: only claims that say user cover all of what one person wrote.
- A secret that both policies miss may be trained on without noise.
- Further training on private text is not covered by these claims.
"""

_VERIFY = """\
`certificate.json` beside this card lists every claim with its assumptions. `taciturn verify certificate.json` recomputes
each ε from the ledger of the run and compares the digests; it needs the run's `ledger.jsonl` and no torch.
"""

_VERIFY_CAST = """\
`cast.json` names the files that hold another number type than was certified. With the certified files,
`taciturn verify . --certified RUN` casts them again and compares; without them `verify` does not pass.
"""


def _load(kind: Kind, module: str | None) -> str:
    register = f"import {module}  # registers the architecture with the Auto classes\n" if module else ""
    return (
        f"```python\nfrom transformers import {kind.loader}, AutoTokenizer\n"
        f'{register}\nmodel = {kind.loader}.from_pretrained("path/to/this/folder")\n'
        'tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")\n```\n'
    )


def _plain(text: str) -> str:
    """``text`` with what Markdown or HTML would read as markup escaped; ``<MASK>`` shows as itself."""
    for mark in "\\`*_[]|":
        text = text.replace(mark, "\\" + mark)
    return text.replace("<", "&lt;").replace("\r", " ").replace("\n", " ")
