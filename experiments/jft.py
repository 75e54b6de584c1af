"""Experiments 1 and 2 (docs/results.md): JFT beside what it is compared with (Shi et al. 2022, tables 2 to 4).

    python experiments/jft.py wikitext2 --data DATA --model gpt2-public-xs/ --work WORK      # perplexity
    python experiments/jft.py abcd --data DATA --model gpt2-public-xs/ --work WORK
    python experiments/jft.py sst2 --data DATA --model minilm/ --work WORK                   # accuracy
    python experiments/jft.py qnli --data DATA --model minilm/ --work WORK
    python experiments/jft.py table --work WORK

A redacted row is the model of the jft row beside it where its first phase ends: same text, settings and seed. `--rows` and
`--seeds` choose cells; `--set` overrides a setting, `--valid` scores a validation split instead (to choose settings by).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from common import (
    LEVELS,
    Labelled,
    Row,
    Work,
    every,
    held,
    light_noise,
    records,
    redacted_share,
    second_phase,
    some_ids,
    table,
    thinned,
    untrained,
)

from taciturn.data.loaders import load
from taciturn.models.tokenizers import load_tokenizer
from taciturn.privacy.accounting.events import PoissonGaussian
from taciturn.text.document import Document
from taciturn.text.readers import Corpus
from taciturn.text.segment import Unit

EPSILON, DELTA = 3.0, 1e-5
SCREENED = {"jft 0.1 % screened": 0.001, "jft 5 % screened": 0.05}
"""Share of the records in the first phase. 0.1 % of the paper's data are 70 to 400 records, of ours three."""
SCREENED_EPOCHS = 2


@dataclass(frozen=True, slots=True)
class Setting:
    """What is trained on and how.

    strides: one document of how many is taken, in train and test. thin: of the documents that are screened, one of so many
    is trained on. frozen: see `taciturn.mechanisms.settings.ModelConfig`. labels: none for a language model. lr: of plain
    steps; dp_lr: of DP-SGD; second_lr: of the second phase of jft; wide_lr: of the same after a contextual level or a few
    screened records; light_lr: of a lightly noised first phase. steps, batch: of private steps, in any private phase.
    """

    name: str
    unit: Unit
    strides: tuple[int, int]
    thin: int
    max_length: int
    labels: tuple[str, ...] = ()
    frozen: tuple[str, ...] = ()
    epochs: int = 1
    batch_size: int = 16
    lr: float = 1e-3
    steps: int = 40
    batch: int = 96
    clip: float = 0.1
    dp_lr: float = 1e-3
    second_lr: float = 3e-4
    wide_lr: float = 2e-3
    light_lr: float = 1e-3

    def model(self, folder: Path) -> dict[str, Any]:
        task = {"task": "classify", "labels": self.labels} if self.labels else {}
        return {"name": str(folder), "max_length": self.max_length, "dtype": "bf16", "frozen": self.frozen} | task

    def public(self) -> dict[str, Any]:
        optimiser = {"lr": self.lr, "schedule": "linear", "warmup": 0.1, "max_grad_norm": 1.0}
        return {"epochs": self.epochs, "batch_size": self.batch_size, "optimiser": optimiser}

    def private(self, lr: float, sigma: float | None = None) -> dict[str, Any]:
        optimiser = {"lr": lr, "schedule": "linear", "warmup": 0.05}
        settings = {"batch": self.batch, "steps": self.steps, "clip": self.clip, "optimiser": optimiser}
        return settings if sigma is None else settings | {"noise_multiplier": sigma}


FROZEN = ("bert.embeddings.*", *(f"bert.encoder.layer.{i}.*" for i in range(4)))
SETTINGS = {
    "wikitext2": Setting(
        "wikitext2",
        "sentence",
        (30, 15),
        3,
        64,
        batch_size=16,
        lr=1e-3,
        steps=20,
        batch=48,
        dp_lr=2e-3,
        second_lr=5e-4,
        light_lr=2e-3,
    ),
    "abcd": Setting(
        "abcd",
        "turn",
        (2, 10),
        4,
        64,
        batch_size=32,
        lr=2e-3,
        steps=20,
        batch=96,
        dp_lr=2e-3,
        second_lr=1e-3,
        light_lr=2e-3,
    ),
    "sst2": Setting(
        "sst2",
        "document",
        (30, 1),
        1,
        48,
        labels=("0", "1"),
        frozen=(*FROZEN, "bert.encoder.*"),
        epochs=2,
        batch_size=32,
        lr=1e-2,
        steps=60,
        batch=128,
        clip=1.0,
        dp_lr=3e-2,
        second_lr=3e-3,
        light_lr=3e-2,
    ),
    "qnli": Setting(
        "qnli",
        "document",
        (4, 11),
        1,
        96,
        labels=("entailment", "not_entailment"),
        frozen=FROZEN,
        epochs=2,
        batch_size=32,
        lr=4e-4,
        steps=20,
        batch=96,
        dp_lr=2e-3,
        second_lr=5e-4,
        light_lr=2e-3,
    ),
}
BASELINES = ("no fine-tuning", "no-DP", "DP-SGD")
LATE = (*SCREENED, "jft light noise", "jft light conservative noise")
LATE_LEVEL = "high-entity"  # JFT 6.2 and 6.3 use this one
ROWS = (*BASELINES, *(f"jft {level}" for level in LEVELS), *LATE)


@dataclass(frozen=True, slots=True)
class Experiment:
    """One data set, its settings and where things lie."""

    setting: Setting
    data: Path
    folder: Path
    work: Work
    valid: bool

    def corpus(self) -> Corpus:
        corpus = load(self.setting.name, self.data, "train").corpus
        return taken(corpus, self.setting.name, self.setting.strides[0], 0)

    def test(self) -> Any:
        """Records of the test split (dev, of a GLUE task), untouched. With `valid`: others, to choose settings by.

        Of WikiText-2 and ABCD those halfway between the first, second, … of every stride: some settings were changed after
        results on the latter had been seen.
        """
        name, stride = self.setting.name, self.setting.strides[1]
        if not self.valid:
            split, first = ("valid", 0) if self.setting.labels else ("test", stride // 2)
            return records(taken(load(name, self.data, split).corpus, name, stride, first), self.setting.unit)
        split = {"wikitext2": "valid", "qnli": "heldout"}.get(name, "train")  # of train, what training does not take
        stride = 4 if split == "heldout" else 20 * self.setting.strides[0]
        corpus = taken(load(name, self.data, split).corpus, name, stride, 1)
        return records(corpus, self.setting.unit)

    def screened(self, level: str) -> Any:
        name = f"{self.setting.name}-{level}"
        whole = self.work.screened(name, self.corpus(), f"spacy:{level}", self.setting.unit)
        return whole if self.setting.thin == 1 else thinned(whole, self.setting.thin)

    def labelled(self, level: str) -> Labelled:
        """The corpus's own annotations where it has some; else Wikigold stands in."""
        if self.setting.name == "abcd":
            name = f"abcd-{level}"
            return Labelled.of(self.work.screened(name, self.corpus(), f"spacy:{level}", self.setting.unit))
        corpus = every(load("wikigold", self.data, "all").corpus, 4)
        return Labelled.of(self.work.screened(f"wikigold-{level}", corpus, f"spacy:{level}", "document"))

    def run(self, row: str, seed: int, test: Any) -> Row:
        """The numbers of one cell."""
        model = self.setting.model(self.folder)
        if row == "no fine-tuning":
            return {"score": untrained(model, test, seed)}
        level = next((each for each in LEVELS if row.endswith(each)), LATE_LEVEL)
        screened = self.screened(level)
        mechanism, options, epsilon, extra = self.plan(row, screened, level)
        found = self.work.measure(
            mechanism,
            screened,
            model,
            test,
            seed=seed,
            delta=DELTA,
            epsilon=epsilon,
            options=options,
            labelled=self.labelled(level) if mechanism == "jft" else None,
        )
        scores = list(found["utilities"].values())
        share = redacted_share(screened, load_tokenizer("auto", str(self.folder))) if mechanism == "jft" else None
        return {"score": scores[-1], "first": scores[0] if len(scores) > 1 else None, "share": share, **extra, **found}

    def plan(self, row: str, screened: Any, level: str) -> tuple[str, dict[str, Any], float | None, Row]:
        """(mechanism, its options, target ε, what else the row says)."""
        s = self.setting
        if row == "no-DP":
            return "sgd", s.public(), None, {}
        if row == "DP-SGD":
            return "dpsgd", s.private(s.dp_lr), EPSILON, {}
        private = s.private(s.wide_lr if level.endswith("contextual") or row in SCREENED else s.second_lr)
        if row in ("jft light noise", "jft light conservative noise"):
            return self.light(row, screened, level)
        if share := SCREENED.get(row):
            ids = some_ids(screened, share, self.work.folder / "ids" / f"{s.name}-{share:g}.txt")
            first = s.public() | {"epochs": SCREENED_EPOCHS}
            return "jft", {"redacted": first, "private": private, "screened": {"ids": str(ids)}}, EPSILON, {}
        return "jft", {"redacted": s.public(), "private": private}, EPSILON, {}

    def light(self, row: str, screened: Any, level: str) -> tuple[str, dict[str, Any], float | None, Row]:
        """JFT 6.3: the first phase is noised so that, sampled at q·m, both phases together are estimated to cost ε.
        m = (1 − recall)·(share of sensitive tokens), by the paper's definition of recall; conservative: recall 0."""
        s, count = self.setting, len(screened.texts("redacted"))
        rate = min(1.0, s.batch / count)
        share = redacted_share(screened, load_tokenizer("auto", str(self.folder)))
        labelled = self.labelled(level)
        m = share if "conservative" in row else (1 - labelled.recall) * share
        second = second_phase(EPSILON, DELTA, rate, s.steps)
        first = light_noise(EPSILON, DELTA, m, rate, s.steps, {PoissonGaussian(rate, second): s.steps})
        options = {"light": s.private(s.light_lr, first), "private": s.private(s.second_lr, second)}
        return "jft", options, None, {"m": m, "sigma_light": first, "recall": labelled.recall}


def taken(corpus: Corpus, name: str, stride: int, first: int) -> Corpus:
    """Every `stride`-th article of WikiText, dialogue or row of the others."""
    if name != "wikitext2":
        return every(corpus, stride, first)
    articles: list[list[Document]] = []
    for document in corpus.documents():
        if re.fullmatch(r" = [^=].* = ?\n?", document.text) or not articles:
            articles.append([])
        articles[-1].append(document)
    return held(corpus, [line for article in articles[first::stride] for line in article])


def lines(rows: list[Row]) -> Iterator[Row]:
    """Rows of the table: those of a jft run at a level twice, the redacted model first."""
    order = {name: at for at, name in enumerate(ROWS)}
    for row in sorted(rows, key=lambda row: (row["set"], order[row["row"]])):
        if row["row"].startswith("jft") and row.get("first") is not None and row["row"] not in LATE:
            name = row["row"].replace("jft", "redacted", 1)
            redacted = {"epsilon_detected": 0.0, "epsilon_missed": "inf", "epsilon_averaged": None}
            yield {"set": row["set"], "row": name, "score": row["first"], "share": row["share"], **redacted}
        yield row


def show(work: Work) -> str:
    """A table a kind of data set: perplexity, or accuracy in per cent."""
    epsilons = {
        "percent": "redacted, % of tokens",
        "epsilon_detected": "ε, detected",
        "epsilon_missed": "ε, missed (a)",
        "averaged": "ε, averaged (b)",
        "epsilon_published": "ε, published (c)",
    }
    tables = []
    for heading, classifies in (("perplexity", False), ("accuracy, %", True)):
        rows = [shown(row) for row in lines(work.rows()) if bool(SETTINGS[row["set"]].labels) == classifies]
        tables.append(table(rows, ("set", "row"), {"score": heading, **epsilons}))
    return "\n\n".join(tables)


def shown(row: Row) -> Row:
    """A row as the tables have it: shares and accuracies in per cent, (b) with its δ where that is not the run's."""
    found, delta = row.get("epsilon_averaged"), float(row.get("delta_averaged") or 0.0)
    averaged = None if found is None else f"{found:.2f}" + (f" at δ = {delta:.2f}" if delta > 2 * DELTA else "")
    score = 100 * row["score"] if SETTINGS[row["set"]].labels else row["score"]
    percent = None if row.get("share") is None else 100 * row["share"]
    return {**row, "score": score, "percent": percent, "averaged": averaged}


def main() -> None:
    options = arguments()
    work = Work(options.work, "tuning.jsonl" if options.valid else "results.jsonl")
    if options.set_name == "table":
        print(show(work))
        return
    torch.set_num_threads(options.threads)
    changed = {name: type(getattr(SETTINGS[options.set_name], name))(value) for name, value in options.set}
    setting = replace(SETTINGS[options.set_name], **changed)
    experiment = Experiment(setting, options.data, options.model, work, options.valid)
    test = experiment.test()
    for seed in options.seeds:
        for row in options.rows:
            key = {"set": setting.name, "row": row, "seed": seed} | ({"changed": changed} if options.valid else {})
            with work.cell(**key) as cell:
                if cell is not None:
                    cell |= experiment.run(row, seed, test)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set_name", choices=[*SETTINGS, "table"], metavar="set")
    parser.add_argument("--data", type=Path, help="the folder that holds the data sets' folders")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=ROWS)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--set", nargs="*", type=lambda text: tuple(text.split("=", 1)), default=[])
    parser.add_argument("--valid", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
