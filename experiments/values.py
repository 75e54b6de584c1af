"""Learned values: CRT whose masks are filled from a table of common values, beside skeletons alone and redacted text.

    python experiments/values.py run multiwoz --data DATA --model GPT2 --work WORK
    python experiments/values.py table --work WORK

Ten canaries are planted 20 times each; π misses a tenth of what it finds; π_c is `conservative`. Every private row has the
same total ε by substitution. Perplexity is that of untouched held-out turns outside annotated secrets, where the noiseless
phase ends (`first`) and at the end; `marked` is that of the tokens among them that π_c marks.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from common import Row, Work, spread
from scipy.stats import ttest_1samp

import taciturn as tt
from taciturn.auditing.canaries.templates import Planted, Template, draw, plant
from taciturn.auditing.finding import Finding
from taciturn.data.loaders import load
from taciturn.errors import UsageError
from taciturn.models.held_out import utility
from taciturn.models.sequences import touched
from taciturn.models.tokens import encode_all
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.screening.corpus.manifest import MANIFEST
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.policies.public import Public
from taciturn.screening.policies.public_kinds import KINDS
from taciturn.screening.redact import BRIDGED, redact
from taciturn.screening.standing import Places
from taciturn.text.document import Document, Record
from taciturn.text.readers import Corpus, read
from taciturn.text.segment import split
from taciturn.text.spans import Span, merge
from taciturn.training.values.shapes import shape
from taciturn.training.values.slots import parted
from taciturn.training.values.table import Table

DELTA = 8e-5
SETS: dict[str, tuple[tuple[tuple[str, str], ...], tuple[str, str], str]] = {
    "multiwoz": ((("multiwoz21", "test"), ("sgd", "dev")), ("multiwoz22", "valid"), "multiwoz"),
    "abcd": ((("abcd", "valid"),), ("abcd", "test"), "spacy:low-entity"),
    "multidogo": ((("multidogo", "train"),), ("multidogo", "valid"), "spacy:low-entity"),
}
"""Training dialogues, held-out ones, and π."""
CANARIES = Planted(Template("My ID is: {}"), tuple(draw(Template("My ID is: {}"), 10, 7)), 20)
TEST, SUBSET = 600, 10_000
ROWS: dict[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "non-private": ("sgd", {}, {}),
    "redacted": ("redacted", {}, {}),
    "skeletons": ("crt", {}, {}),
    "table": ("crt", {"fill": "learned"}, {}),
    "table, kept": ("crt", {"fill": "learned"}, {"kept": 0.8}),
    "table, stays, kept": ("crt", {"fill": "learned", "common": "stay"}, {"kept": 0.8}),
    "table, stays": ("crt", {"fill": "learned", "common": "stay"}, {}),
    "table, kept, marked": ("crt", {"fill": "learned"}, {"kept": 0.8, "targets": "marked"}),
    "CRT as published": ("crt", {"skeletons": False, "schedule": "alternate"}, {}),
    "DP-SGD": ("dpsgd", {}, {}),
}
"""Mechanism, its options, and what else the steps have. A model from scratch has no public weights to keep."""
PLAIN = ("sgd", "redacted")
"""Mechanisms without noise."""


def screened(options: argparse.Namespace) -> ScreenedCorpus:
    """The training dialogues with canaries, through both policies; kept."""
    folder = options.work / "screened" / "-".join(["values", options.set, str(options.stride), *narrow(options)])
    if not (folder / MANIFEST).exists():
        sources, _, pi = SETS[options.set]
        parts = [list(source(name, part, options.data))[:: options.stride] for name, part in sources]
        together = [document for documents in parts for document in documents]
        documents = plant(together, CANARIES.template, CANARIES.secrets, CANARIES.copies, 7)
        wide = tt.policy("conservative")
        public = Public.read([options.public_values] if options.public_values else [], options.public_kinds)
        corpus = Corpus.from_documents(documents)
        tt.screen(corpus, tt.policy(pi), wide, unit="turn", miss_rate=0.1, public=public, out=folder)
    return tt.load_screened(folder)


def narrow(options: argparse.Namespace) -> list[str]:
    """What π_c leaves unmarked, for the name of a row."""
    return [*(["public"] if options.public_values else []), *options.public_kinds]


def source(name: str, part: str, data: Path) -> Iterable[Document]:
    """The dialogues of a set; those of Schema-Guided Dialogue have no loader of their own."""
    if name == "sgd":
        return read(data / "sgd" / f"{part}.jsonl.gz", gold="secret").documents()
    return load(name, data, part).corpus.documents()


def tested(options: argparse.Namespace) -> tuple[list[Record], list[Record]]:
    """Held-out turns; and the same with what π_c does not mark counted as secret, so that the rest is what it marks."""
    name, part = SETS[options.set][1]
    turns = [record for document in source(name, part, options.data) for record in split(document, "turn")]
    chosen = random.Random(0).sample(turns, TEST)
    marks = tt.policy("conservative").find([record.body for record in chosen])
    return chosen, [_all_but(record, found.spans) for record, found in zip(chosen, marks, strict=True)]


def _all_but(record: Record, spans: tuple[Span, ...]) -> Record:
    """The record with every word outside ``spans`` as a secret of its own: a token begins with the blank before its word."""
    inside = merge(spans)
    words = (match.span() for match in re.finditer(r"\S+", record.body))
    others = [Span(a, b) for a, b in words if not any(start < b and a < end for start, end in inside)]
    return Record(record.id, record.document_id, 0, len(record.body), record.body, gold=(*record.gold, *others))


def by_slot(trained: Any, model: Any, tokenizer: Any, test: list[Record]) -> dict[str, tuple[int, float]]:
    """Tokens outside annotated secrets, and their mean −log p: of marked ones, by what the run's table has of the slot they
    stand in (a value, a shape, neither: rare), and of those that π_c does not mark. Without a table all marked are rare."""
    file = trained.folder / "values.json"
    table = Table.from_bytes(file.read_bytes()) if file.exists() else None
    values, shapes = (set(table.values), set(table.shapes)) if table else (set(), set())
    texts, wide = [record.body for record in test], tt.policy("conservative")
    places = [Places.of(text, m, "particles") for text, m in zip(texts, redact(texts, wide, BRIDGED), strict=True)]
    found: dict[str, list[float]] = {name: [] for name in ("value", "shape", "rare", "unmarked")}
    for record, at in zip(test, places, strict=True):
        ids = torch.from_numpy(encode_all(tokenizer, [record.body], 128)[0].astype(np.int64))[None]
        with torch.no_grad():
            logs = model(input_ids=ids).logits[0].float().log_softmax(-1)
        nats = -logs[:-1].gather(1, ids[0, 1:, None])[:, 0].numpy()
        kinds = np.full(len(nats) + 1, "unmarked", object)
        for a, b in () if at is None else at.places:
            value = parted(record.body[a:b])[0]
            kind = "value" if value in values else "shape" if shape(value) in shapes else "rare"
            kinds[touched(tokenizer, record.body, [(a, b)], len(kinds))] = kind
        kinds[touched(tokenizer, record.body, [(g.start, g.end) for g in record.gold], len(kinds))] = "secret"
        for kind, nat in zip(kinds[1:], nats, strict=True):
            if kind != "secret":
                found[kind].append(float(nat))
    return {name: (len(each), round(sum(each) / max(len(each), 1), 4)) for name, each in found.items()}


def run(options: argparse.Namespace) -> None:
    """Every cell of a set."""
    work = Work(options.work, "values.jsonl")
    torch.set_num_threads(options.threads)
    corpus, (test, marked) = screened(options), tested(options)
    for seed in options.seeds:
        for name in options.rows:
            with work.cell(
                set=options.set,
                model="lstm" if options.tokenizer else options.model.name,
                stride=options.stride,
                row=", ".join([name, *narrow(options)]),
                epsilon=options.epsilon,
                seed=seed,
            ) as cell:
                if cell is not None:
                    cell |= measured(options, corpus, test, marked, name, seed)


def measured(
    options: argparse.Namespace, corpus: ScreenedCorpus, test: list[Record], marked: list[Record], name: str, seed: int
) -> Row:
    """Train, certify, measure, attack."""
    mechanism, chosen, steps = ROWS[name]
    optimiser = {"lr": options.lr, "schedule": "cosine", "warmup": 0.05, "max_grad_norm": 1.0}
    public = {"epochs": options.epochs, "batch_size": 32, "optimiser": optimiser}
    settings: dict[str, Any] = public
    if mechanism not in PLAIN:
        private = {"steps": options.steps, "batch": options.batch, "optimiser": {"lr": 5e-4}, **steps}
        both = {**chosen, "public": {**public, "kept": steps.get("kept", 1.0)}, "private": private}
        settings = both if mechanism == "crt" else private
    planned = tt.plan(
        mechanism,
        corpus,
        {
            "name": str(options.model),
            "max_length": 128,
            **({"tokenizer": options.tokenizer} if options.tokenizer else {}),
        },
        epsilon=None if mechanism in PLAIN else options.epsilon,
        delta=DELTA,
        seeds={"model": seed, "data": seed},
        train={"evaluations": 1, "checkpoint_steps": 10**6, "checkpoint_minutes": 1e6},
        allow=sorted(ALLOWED),
        **settings,
    )
    scores: dict[str, float] = {}

    def notify(progress: Any) -> None:
        if progress.utility is not None:
            scores[progress.step.phase.name] = progress.utility.perplexity_outside

    out, began = options.work / "runs" / f"values-{time.time_ns()}", time.process_time()
    trained = tt.train(planned, out, valid=test, notify=notify)
    seconds = time.process_time() - began
    certificate = trained.certify()
    found = exposure(trained, None if mechanism in PLAIN else 1, seed)
    model, tokenizer = trained.model()
    whole, inside = utility(model, tokenizer, test), utility(model, tokenizer, marked)
    row: Row = {
        "outside": whole.perplexity_outside,
        "all": whole.perplexity,
        "slots": by_slot(trained, model, tokenizer, test),
        "marked": inside.perplexity_outside,
        "first": scores.get("public", whole.perplexity_outside),
        "spent": certificate.model_dump()["spent"]["epsilon"],
        "mu": mu(certificate.statements()),
        "exposure": found.score,
        "exposure_null": found.null.get("p95"),
        "cpu": round(seconds),
    }
    shutil.rmtree(out)
    return row


def mu(statements: Iterable[Guarantee]) -> float | None:
    """μ of one secret by substitution, as the certificate has it; None where it promises nothing about a missed one."""
    found = [each.trade_off.mu for each in statements if each.notion in ("dp", "confidentiality") and each.trade_off]
    return found[0] if found else None


def exposure(trained: Any, copies: int | None, seed: int) -> Finding:
    """Ranked among all 10⁶ secrets where that takes minutes, else in a random subset, whose null says what that shows."""
    for candidates in (None, SUBSET):
        try:
            return tt.audit(
                trained,
                ["exposure"],
                canaries=CANARIES,
                copies=copies,
                candidates=candidates,
                most_minutes=15,
                seed=seed,
            )[0]
        except UsageError:
            if candidates:
                raise
    raise AssertionError


def show(work: Work) -> str:
    """A line for each row: perplexities, and the ratio to redacted text of the same seeds with its spread."""
    rows = work.rows()
    heads = "set | model | stride | ε | row | first | outside | ratio | marked | all | exposure (null) | runs"
    lines = [f"| {heads} |", "|---|---|---:|---|---|" + "---:|" * 7]
    keys = dict.fromkeys((r["set"], r["model"], r["stride"], r["epsilon"], r["row"]) for r in rows)
    for key in sorted(keys, key=lambda key: key[:4]):
        group = [r for r in rows if (r["set"], r["model"], r["stride"], r["epsilon"], r["row"]) == key]
        plain = {
            r["seed"]: r["outside"]
            for r in rows
            if (r["set"], r["model"], r["stride"], r["row"]) == (*key[:3], "redacted")
        }
        ratios = [r["outside"] / plain[r["seed"]] for r in group if r["seed"] in plain]
        cells = [spread([r[name] for r in group]) for name in ("first", "outside")]
        cells += [
            spread(ratios, 3) if ratios else "–",
            *(spread([r[name] for r in group]) for name in ("marked", "all")),
        ]
        highest = max(group, key=lambda r: r["exposure"])
        cells.append(f"{highest['exposure']:.2f} ({highest['exposure_null']:.2f})")
        lines.append("| " + " | ".join([*map(str, key), *cells, str(len(group))]) + " |")
    settings = sorted({(r["set"], r["model"], r["stride"], r["epsilon"]) for r in rows})
    pairs = [verdict(rows, *setting, one) for setting in settings for one in ("table, kept", "table")]
    return "\n".join([*lines, "", *filter(None, pairs)])


def verdict(rows: list[Row], name: str, model: str, stride: int, epsilon: float, one: str) -> str:
    """Whether a table predicts better than skeletons: said only where a paired t-test of log perplexities has p < .05; ""
    for less than three pairs of runs, which decide nothing."""
    setting = (name, model, stride, epsilon)
    here = [r for r in rows if (r["set"], r["model"], r["stride"], r["epsilon"]) == setting]
    by = {(r["row"], r["seed"]): math.log(r["outside"]) for r in here}
    seeds = sorted({seed for _, seed in by})
    other = "skeletons"
    gains = [by[one, seed] - by[other, seed] for seed in seeds if (one, seed) in by and (other, seed) in by]
    if len(gains) < 3:
        return ""
    p = float(ttest_1samp(gains, 0.0).pvalue)
    error = stdev(gains) / math.sqrt(len(gains))
    shown = "a difference" if p < 0.05 else "no difference shown"
    found = f"{100 * math.expm1(mean(gains)):+.1f} % perplexity (standard error {100 * error:.1f}, p = {p:.2g})"
    return f"{name}, {model}, ε = {epsilon}, {one} beside {other}: {found}: {shown}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("set", nargs="?", choices=SETS, default="multiwoz")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--tokenizer", help="of a model from scratch, as `--model lstm`: a folder")
    parser.add_argument("--lr", type=float, default=1e-3, help="of the noiseless phase")
    parser.add_argument("--public-values", type=Path, help="π_c leaves these values unmarked: a file, one a line")
    parser.add_argument(
        "--public-kinds", nargs="+", choices=KINDS, default=[], help="π_c leaves values of these kinds unmarked"
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--stride", type=int, default=1, help="train on every so many dialogues")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(show(Work(options.work, "values.jsonl"))) if options.do == "table" else run(options)


if __name__ == "__main__":
    main()
