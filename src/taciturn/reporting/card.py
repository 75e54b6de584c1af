"""The model card of an exported model: what it was trained on, what is promised, what was tried against it.

Only numbers and sentences of our own go in; no text of the corpus, no path, no pattern of a policy.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from taciturn.reporting import formats, summary
from taciturn.reporting.view import RunView


def write(folder: str | Path, run: RunView) -> Path:
    """Write ``README.md`` into the exported model's folder and return its path."""
    folder = Path(folder)
    config = folder / "config.json"
    architecture = json.loads(config.read_text("utf-8")).get("model_type", "") if config.exists() else ""
    path = folder / "README.md"
    path.write_text(render(run, architecture), encoding="utf-8", newline="\n")
    return path


def render(run: RunView, architecture: str = "") -> str:
    """The card as Markdown with the YAML head that model hubs read. architecture: ``model_type`` of the config."""
    ours = architecture.startswith("taciturn")
    parts = [
        _head(run),
        f"# {_plain(run.name)}\n",
        f"A language model trained with taciturn by {summary.method(run)}.\n",
        "## What is promised\n",
        *_claims(run),
        "## How well it predicts\n",
        *_quality(run),
        "## What was tried against it\n",
        *_audit(run),
        "## What it was trained on\n",
        *_training(run),
        "## Intended use and limits\n",
        _LIMITS,
        "## How to load it\n",
        _load(ours),
        "## How to check it\n",
        _VERIFY,
    ]
    return "\n".join(parts)


def _head(run: RunView) -> str:
    """YAML front matter. Strings are written as JSON, which is YAML too, so no name can break out of it."""
    base = str((run.plan.get("model") or {}).get("name") or "")
    tags = ["taciturn", "differential-privacy", "confidentiality"]
    lines = [
        "---",
        "license: other",
        "license_name: unspecified",
        "library_name: transformers",
        "pipeline_tag: text-generation",
    ]
    if _from_hub(base):
        lines.append(f"base_model: {json.dumps(base)}")
    return "\n".join([*lines, "tags:", *(f"- {tag}" for tag in tags), "---\n"])


def _from_hub(name: str) -> bool:
    """Whether ``name`` looks like a hub name ("gpt2", "owner/model") rather than a kind of ours, a file or a folder."""
    return (
        bool(name)
        and name != "lstm"
        and not name.startswith((".", "/", "~"))
        and not name.endswith((".json", ".toml"))
        and not Path(name).exists()
    )


def _claims(run: RunView) -> Iterator[str]:
    if run.certificate is None:
        yield "Nothing: this run was not certified.\n"
        return
    if run.certificate.get("release") is False:
        yield "**Not for release.**\n"
        yield from (f"- {_plain(str(reason))}" for reason in run.certificate.get("reasons") or ())
        yield ""
    for g in run.guarantees:
        yield f"- **{g.status}**: {_plain(g.words())}"
        if enforced := [_plain(a.text) for a in g.assumptions if a.enforced]:
            yield f"  - kept by the code: {'; '.join(enforced)}"
        if left := [_plain(a.text) for a in g.assumptions if not a.enforced]:
            yield f"  - left for you to judge: {'; '.join(left)}"
    if run.guarantees:
        yield "\n`conditional` means that a claim rests on something taciturn cannot check.\n"


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
            summary.spoken(f.attack),
            f"{show(f.score)} {f.unit_of_score}",
            show(f.null.get("p95")),
            formats.probability(f.null.get("p")),
            show(f.controls.get("positive")),
            f.verdict,
        ]
        yield f"| {' | '.join(cells)} |"
    yield "\nAn attack that finds nothing shows only that this attack found nothing.\n"


def _training(run: RunView) -> Iterator[str]:
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


def _load(ours: bool) -> str:
    register = "import taciturn.models.lstm  # registers the architecture with the Auto classes\n" if ours else ""
    return (
        "```python\nfrom transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f'{register}\nmodel = AutoModelForCausalLM.from_pretrained("path/to/this/folder")\n'
        'tokenizer = AutoTokenizer.from_pretrained("path/to/this/folder")\n```\n'
    )


def _plain(text: str) -> str:
    """``text`` with what Markdown or HTML would read as markup escaped; ``<MASK>`` shows as itself."""
    for mark in "\\`*_[]|":
        text = text.replace(mark, "\\" + mark)
    return text.replace("<", "&lt;").replace("\r", " ").replace("\n", " ")
