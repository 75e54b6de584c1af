"""What the experiments share: screen once, run a mechanism once per cell, keep rows in a file, make a table of them.

An experiment is a script that knows its rows. It takes a data folder, a model folder and a work folder outside the
repository, and works in four steps:

    work = Work(Path("work/exp1"))                          # results.jsonl, screened/ and runs/ lie here
    screened = work.screened("abcd-high-entity", corpus, "spacy:high-entity", unit="turn")   # kept; read again next time
    with work.cell(set="abcd", row="jft", seed=0) as cell:  # None if results.jsonl has it already
        if cell is not None:
            cell |= work.measure("jft", screened, model, test, epsilon=3, delta=1e-5, seed=0, options={...}, ...)
    print(table(work.rows(), by=("set", "row"), columns=("perplexity", "epsilon_missed")))

A cell is a dictionary of plain numbers and strings; its key is what `cell` was called with. It is written only when the
block ends without an error, so a script that was killed goes on where it stopped. Every run is trained with noise from the
operating system; `seed` decides first weights (or a classifier's head), dropout and the order of public batches.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import pyarrow as pa

import taciturn as tt
from taciturn.models.held_out import HeldOut
from taciturn.models.hf import load_model
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import load_tokenizer
from taciturn.privacy.accounting.accountant import compose
from taciturn.privacy.accounting.calibrate import noise_multiplier
from taciturn.privacy.accounting.events import Event, PoissonGaussian
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.screening.corpus.manifest import MANIFEST
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import MASK, Document, Record
from taciturn.text.readers import Corpus
from taciturn.text.segment import Unit, split

Row = dict[str, Any]
LEVELS = ("low-entity", "high-entity", "low-contextual", "high-contextual")
"""The four detectors of JFT section 4, as policies `spacy:LEVEL`."""


@dataclass(frozen=True, slots=True)
class Work:
    """A folder of screened corpora and results; runs are deleted once they are measured, their certificates are kept."""

    folder: Path
    results: str = "results.jsonl"

    def screened(self, name: str, corpus: Corpus, policy: str, unit: Unit, **options: Any) -> ScreenedCorpus:
        """The corpus through `policy`, from `screened/name` if it is there. Every record is private and none is removed:
        the mechanisms here read the redacted and the original text, and split nothing into a public part."""
        folder = self.folder / "screened" / name
        if not (folder / MANIFEST).exists():
            settings: dict[str, Any] = {"dedup": "none", "skeletons": False} | options
            tt.screen(corpus, tt.policy(policy), tt.policy("all-private"), unit=unit, out=folder, **settings)
        return tt.load_screened(folder)

    def rows(self) -> list[Row]:
        """Every finished cell."""
        path = self.folder / self.results
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def has(self, **key: Any) -> bool:
        return any(all(row.get(name) == value for name, value in key.items()) for row in self.rows())

    def add(self, row: Row) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / self.results).open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    @contextmanager
    def cell(self, **key: Any) -> Iterator[Row | None]:
        """The row to fill in for `key`, None if it is there; written at the end of the block, with the seconds it took."""
        if self.has(**key):
            yield None
            return
        row: Row = dict(key)
        began = time.monotonic()
        yield row
        self.add({**row, "seconds": round(time.monotonic() - began, 1)})

    def measure(
        self,
        mechanism: str,
        screened: ScreenedCorpus,
        model: Any,
        test: Sequence[Record],
        *,
        seed: int,
        delta: float,
        epsilon: float | None = None,
        options: Mapping[str, Any],
        labelled: Labelled | None = None,
    ) -> Row:
        """Train, score `test` where each phase ends, certify. utilities: by phase, in order; the last is the model's.

        labelled: counts of a labelled sample, where the corpus itself has no annotations. train.json beside the certificate
        keeps the plan.
        """
        scores: dict[str, float] = {}

        def notify(progress: Any) -> None:
            if (found := progress.utility) is not None:
                value = found.perplexity if found.accuracy is None else found.accuracy
                scores[progress.step.phase.name] = round(value, 4)

        planned = tt.plan(
            mechanism,
            screened,
            model,
            epsilon=epsilon,
            delta=delta,
            seeds={"model": seed, "data": seed},
            train={"token_budget": 2048, "evaluations": 1, "checkpoint_steps": 10**6, "checkpoint_minutes": 1e6},
            allow=sorted(ALLOWED),
            **{name: value for name, value in options.items() if name != "screened"},
        )
        if (
            "screened" in options
        ):  # of jft; tt.plan takes the corpus by that name. Training plans from the configuration
            planned = replace(planned, config=planned.config.model_copy(update={"options": dict(options)}))
        out = self.folder / "runs" / f"{mechanism}-{time.time_ns()}"
        began = time.monotonic()
        run = tt.train(planned, out, valid=list(test), notify=notify)
        seconds = round(time.monotonic() - began, 1)
        counts: dict[str, Any] = {} if labelled is None else labelled.counts()
        certificate = run.certify(**counts)
        plan = json.loads((out / "plan.json").read_text())
        kept = self.folder / "certificates" / out.name
        kept.mkdir(parents=True)
        shutil.copy(out / "certificate.json", kept)
        shutil.copy(out / "plan.json", kept)
        shutil.rmtree(out)
        steps = {
            phase["name"]: {"steps": phase["steps"], "records": phase["records"], **phase["event"]}
            for phase in plan["phases"]
        }
        return {"utilities": scores, "phases": steps, "train_seconds": seconds, "certificate": kept.name} | epsilons(
            certificate.statements()
        )


@dataclass(frozen=True, slots=True)
class Labelled:
    """A labelled sample: so many secrets, so many of them missed by the policy (by both policies: none, all is private)."""

    secrets: int
    missed: int

    @staticmethod
    def of(screened: ScreenedCorpus) -> Labelled:
        """From the annotations a corpus came with."""
        return Labelled(screened.counts.gold_spans, screened.counts.gold_missed_by_pi)

    @property
    def recall(self) -> float:
        return 1 - self.missed / self.secrets

    def counts(self) -> dict[str, int]:
        return {"labelled": self.secrets, "missed": self.missed, "missed_by_both": 0}


def epsilons(statements: Sequence[Guarantee]) -> Row:
    """The numbers of guarantees.md section 4 as the certificate states them, with their status.

    detected: phase two alone. missed: (a). averaged: (b), at the δ beside it. published: (c). For other mechanisms: the
    statement about one secret goes under `missed`, as it holds whether or not a policy finds it.
    """
    row: Row = {}
    for each in statements:
        if each.notion in ("confidentiality", "sdp"):
            names = {"a secret that the policy detects": "detected", "a secret that the policy misses": "missed"}
            name = names.get(each.unit, "missed")
        elif each.notion == "bayesian-confidentiality" and "hand-screened" not in each.unit:
            name = "published" if each.status == "estimate" else "averaged"
        else:
            continue
        row |= {f"epsilon_{name}": number(each.epsilon), f"status_{name}": each.status}
        if name == "averaged":
            row["delta_averaged"] = each.delta
    return row


def number(value: float) -> float | str:
    return round(value, 4) if math.isfinite(value) else "inf"


def thinned(screened: ScreenedCorpus, stride: int) -> ScreenedCorpus:
    """Every `stride`-th document of a screened corpus, in memory. Screening is record-local and nothing was removed, so it
    is what screening those documents alone would give; of the counts only those of records are kept up."""
    if stride == 1:
        return screened
    documents = dict.fromkeys(screened.table["document_id"].to_pylist())
    chosen = set(list(documents)[::stride])
    keep = pa.array([name in chosen for name in screened.table["document_id"].to_pylist()])
    duplicates = screened.table.select(["duplicate"]).filter(keep)
    tables = {
        "records": screened.table.drop_columns(["duplicate"]).filter(keep),
        "originals": screened.originals.filter(keep),
        "duplicates": duplicates,
    }
    n = len(duplicates)
    counts = screened.counts.model_copy(update={"documents": len(chosen), "read": n, "private": n})
    manifest = screened.manifest.model_copy(update={"counts": counts})
    return ScreenedCorpus(manifest, None, tables)


def some_ids(screened: ScreenedCorpus, share: float, file: Path) -> Path:
    """A file with the ids of a share of the records, at least one, drawn at random (always the same ones)."""
    ids = screened.table["id"].to_pylist()
    chosen = random.Random(0).sample(ids, max(1, round(share * len(ids))))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(chosen))
    return file.absolute()


def redacted_share(screened: ScreenedCorpus, tokenizer: Any) -> float:
    """Share of the model's tokens of the original text that redaction took away."""
    mask = mask_id(tokenizer)
    masked = [text.replace(f" {MASK}", MASK) for text in screened.texts("redacted")]
    before: list[list[int]] = tokenizer(screened.texts("original"), add_special_tokens=False).input_ids
    after: list[list[int]] = tokenizer(masked, add_special_tokens=False).input_ids
    return 1 - sum(token != mask for ids in after for token in ids) / sum(map(len, before))


def untrained(model: Mapping[str, Any], test: Sequence[Record], seed: int = 0) -> float:
    """Perplexity (or accuracy) of the model as it is named, with a classifier's head drawn from `seed`."""
    task, labels = model.get("task", "causal"), model.get("labels", ())
    tokenizer = load_tokenizer("auto", str(model["name"]))
    net = load_model(str(model["name"]), tokenizer, seed, task=task, labels=labels)
    held = HeldOut.of(tokenizer, test, model.get("max_length"), task=task, names=labels)
    found = held.utility(net)
    return round(found.perplexity if found.accuracy is None else found.accuracy, 4)


def light_noise(
    epsilon: float, delta: float, share: float, rate: float, steps: int, second: Mapping[Event, int]
) -> float:
    """σ of a lightly noised first phase as the paper sets it: the smallest (to 1 %) for which sampling at `rate`·`share`
    and the second phase together come to `epsilon` by add/remove (JFT section 3.1: an estimate, not a bound)."""

    def spent(sigma: float) -> float:
        return compose({PoissonGaussian(rate * share, sigma): steps, **second}, "add-remove").epsilon(delta)

    low, high = 0.05, 20.0
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if spent(middle) <= epsilon else (middle, high)
    return float(f"{high:.3g}")


def second_phase(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """σ for which `steps` Poisson steps spend `epsilon` by substitution."""
    return noise_multiplier(epsilon, delta, rate, steps, "substitution")


def every(corpus: Corpus, stride: int, first: int = 0) -> Corpus:
    """Every `stride`-th document from number `first` on."""
    return held(corpus, list(corpus.documents())[first::stride])


def held(corpus: Corpus, documents: Sequence[Document]) -> Corpus:
    """Documents in memory, under the options they were read with."""
    return replace(corpus, sources=(), held=tuple(documents))


def records(corpus: Corpus, unit: Unit) -> list[Record]:
    return [record for document in corpus.documents() for record in split(document, unit)]


def table(rows: Sequence[Row], by: Sequence[str], columns: Mapping[str, str], digits: int = 2) -> str:
    """A markdown table: one line for each value of `by`, in order of appearance; mean ± sd over the rows that share it.

    columns: from a key of the rows to a heading. A value that is not a number is shown as it is where all agree.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    lines = [
        "| " + " | ".join([*by, *columns.values(), "runs"]) + " |",
        "|" + "---|" * len(by) + "---:|" * (len(columns) + 1),
    ]
    for key, group in groups.items():
        cells = [spread([row.get(name) for row in group], digits) for name in columns]
        lines.append("| " + " | ".join([*map(str, key), *cells, str(len(group))]) + " |")
    return "\n".join(lines)


def beside_a_page(doc: str | None, run: Callable[[Path, Path], None], show: Callable[[], str]) -> None:
    """The command line of a script whose cells stand beside those of a recipe's page. run: takes the data sets' folder and
    the one that page was written to; show: the table of what is kept."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("--data", type=Path, help="the data sets' folder")
    parser.add_argument("--papers", type=Path, help="where the recipe's page was written")
    options = parser.parse_args()
    if options.do == "table":
        print(show())
        return
    if options.data is None or options.papers is None:
        parser.error("run: give --data, the folder of the data sets, and --papers, where the recipe's page was written")
    run(options.data, options.papers)


def spread(values: Sequence[Any], digits: int = 2) -> str:
    """Mean ± sd of numbers; one value where all are the same; a dash where there is none.

    >>> spread([1.0, 2.0, 3.0]), spread(["inf", "inf"]), spread([None])
    ('2.00 ± 1.00', '∞', '–')
    """
    if any(value is None for value in values):
        return "–"
    if any(isinstance(value, str) for value in values):
        return " / ".join(dict.fromkeys("∞" if value == "inf" else str(value) for value in values))
    text = f"{mean(values):.{digits}f}"
    return text if len(set(values)) == 1 else f"{text} ± {stdev(values):.{digits}f}"
