"""Experiment 3 (docs/results.md): user-entity privacy beside what it is compared with (Lai et al. 2022, section VI).

    python experiments/uedp.py agnews --data DATA --model gpt2-public-xs/ --work WORK          # next word: perplexity
    python experiments/uedp.py wikigold --data DATA --model gpt2-public-xs/ --work WORK
    python experiments/uedp.py contracts --data DATA --model gpt2-public-xs/ --work WORK
    python experiments/uedp.py agnews-class --data DATA --model minilm/ --work WORK            # 4 classes: error
    python experiments/uedp.py agnews --sweep --data DATA --model gpt2-public-xs/ --work WORK  # q_s
    python experiments/uedp.py table --work WORK

Users: of AG News, whose file names no source, ten articles in a row; of Wikigold ten sentences in a row; of contracts the
file, of which the first 1,500 characters are read. Entities: spaCy's (low-entity); of Wikigold the annotated ones, given to
screening as a person's corrections.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from common import Row, Work, number, records, table, untrained

import taciturn as tt
from taciturn.data.loaders import load
from taciturn.mechanisms.uedp import Config, facts
from taciturn.screening.corpus.manifest import MANIFEST
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.corrections import Correction, Corrections
from taciturn.screening.policies.view import View
from taciturn.text.document import Document, Record
from taciturn.text.readers import Corpus
from taciturn.text.segment import Unit

DELTA = 1e-5
EPSILONS = (2.0, 8.0, 32.0)
"""Targets of user_dp, and of uedp for the median pair."""
SCALES = (2.5, 1.0, 0.5, 0.1)
"""z of uedp-published."""
TEST = 200
CHARACTERS = 1500
"""Of a contract."""
BITFIT = ("transformer.wte.*", "transformer.wpe.*", "*.c_attn.weight", "*.c_proj.weight", "*.c_fc.weight")
"""Biases and layer norms are trained, the rest stays: few directions for the noise to fall into."""
HEAD = ("bert.*",)
CLASSES = ("World", "Sports", "Business", "Sci/Tech")


@dataclass(frozen=True, slots=True)
class Setting:
    """How much is read and how. users: runs of ten records that are read; of contracts, files. rate: of users; the rates of
    uedp are 2·rate for users and .5 for entities, so that a unit joins as often as a user does in user_dp."""

    name: str
    users: int
    unit: Unit
    max_length: int
    rate: float
    frozen: tuple[str, ...]
    labels: tuple[str, ...] = ()
    epochs: int = 1
    lr: float = 5e-3
    steps: int = 14
    clip: float = 0.1
    private_lr: float = 1e-2
    local_lr: float = 0.1

    def model(self, folder: Path) -> dict[str, Any]:
        task = {"task": "classify", "labels": self.labels} if self.labels else {}
        return {"name": str(folder), "max_length": self.max_length, "frozen": self.frozen} | task

    def plain(self) -> dict[str, Any]:
        optimiser = {"lr": self.lr, "schedule": "linear", "warmup": 0.1, "max_grad_norm": 1.0}
        return {"epochs": self.epochs, "batch_size": 16, "optimiser": optimiser}

    def noised(self) -> dict[str, Any]:
        optimiser = {"lr": self.private_lr, "schedule": "linear", "warmup": 0.05}
        return {"steps": self.steps, "clip": self.clip, "optimiser": optimiser}

    def uedp(self, k: int, extended: float = 0.5) -> dict[str, Any]:
        rates = {"user_rate": 2 * self.rate, "entity_rate": 0.5, "extended_rate": extended}
        return self.noised() | rates | {"k": k}

    def published(self, scale: float) -> dict[str, Any]:
        rates = {"user_rate": self.rate, "entity_rate": 0.5, "extended_rate": 0.5}
        local = {"lr": self.local_lr, "batch_size": 5}
        return self.noised() | {"scale": scale, "local": local} | rates


SETTINGS = {
    "agnews": Setting("agnews", 100, "document", 32, 0.05, BITFIT),
    "wikigold": Setting("wikigold", 100, "document", 32, 0.05, BITFIT),
    "contracts": Setting("contracts", 48, "sentence", 32, 0.1, BITFIT),
    "agnews-class": Setting(
        "agnews", 100, "document", 20, 0.2, HEAD, CLASSES, epochs=2, lr=1e-2, steps=8, private_lr=2e-2
    ),
}
ROWS = (
    "before training",
    "no-DP",
    "de-identified, mask",
    "de-identified, remove",
    *(f"user_dp ε={e:g}" for e in EPSILONS),
    *(f"uedp ε={e:g}" for e in EPSILONS),
    *(f"uedp-published z={z:g}" for z in SCALES),
)
SWEEP = tuple(f"uedp q_s={q:g}" for q in (0.0, 0.25, 0.5, 1.0))


@dataclass(frozen=True, slots=True)
class Experiment:
    """One data set, its settings and where things lie."""

    setting: Setting
    data: Path
    model: Path
    work: Work

    def screened(self) -> ScreenedCorpus:
        folder = self.work.folder / "screened" / f"uedp-{self.setting.name}"
        if not (folder / MANIFEST).exists():
            documents = list(self.documents("train"))
            policy = gold(documents) if self.setting.name == "wikigold" else tt.policy("spacy:low-entity")
            corpus, unit = Corpus.from_documents(documents), self.setting.unit
            private = tt.policy("all-private")
            tt.screen(corpus, policy, private, unit=unit, out=folder, dedup="none", skeletons=False)
        return tt.load_screened(folder)

    def documents(self, part: str) -> Iterator[Document]:
        s = self.setting
        whole = load(s.name, self.data, part).corpus.documents()
        if s.name == "contracts":
            yield from (cut(each) for each in whole)
            return
        for number_, each in zip(range(10 * s.users), whole, strict=False):
            yield replace(each, user=f"run-{number_ // 10}") if s.name == "agnews" else each

    def test(self) -> list[Record]:
        parts = ("valid", "test") if self.setting.name == "contracts" else ("test",)
        found = [
            r for part in parts for r in records(Corpus.from_documents(list(self.documents(part))), self.setting.unit)
        ]
        return found[:TEST]

    def run(self, row: str, seed: int, test: list[Record]) -> Row:
        """The numbers of one cell."""
        screened, model = self.screened(), self.setting.model(self.model)
        if row == "before training":
            return {"score": untrained(model, test, seed)}
        mechanism, epsilon, options = self.plan(row, screened)
        found = self.work.measure(
            mechanism, screened, model, test, seed=seed, delta=DELTA, epsilon=epsilon, options=options
        )
        written = json.loads(
            (self.work.folder / "certificates" / found["certificate"] / "certificate.json").read_text()
        )
        (score,) = found["utilities"].values()
        return {"score": score, **found, **curve(written["guarantees"])}

    def plan(self, row: str, screened: ScreenedCorpus) -> tuple[str, float | None, dict[str, Any]]:
        """(mechanism, target ε, options) of a row."""
        s, (name, _, asked) = self.setting, row.partition(" ")
        value = float(asked.partition("=")[2] or 0)
        if name == "no-DP":
            return "sgd", None, s.plain()
        if name == "de-identified,":
            return "redacted", None, s.plain() | {"treat": asked}
        if name == "user_dp":
            return "user_dp", value, s.noised() | {"rate": s.rate}
        if name == "uedp-published":
            return "uedp-published", None, s.published(value)
        k = int(facts(screened, Config())["median"])
        if asked.startswith("q_s"):
            return "uedp", EPSILONS[1], s.uedp(k, value)
        return "uedp", value, s.uedp(k)


def gold(documents: list[Document]) -> Policy:
    """A policy that marks what is annotated in these texts: what a person's corrections would make of it."""
    marked = tuple(Correction(View.of(d.text).text, tuple(sorted(d.gold))) for d in documents if d.gold)
    return tt.policy(Corrections(marked, "00" * 16), name="annotated")


def cut(document: Document) -> Document:
    """The beginning of a contract, up to the last line end before CHARACTERS."""
    text = document.text[:CHARACTERS]
    return replace(document, text=text[: text.rfind("\n") + 1] or text)


def curve(statements: list[dict[str, Any]]) -> Row:
    """ε where the corpus stands on the curve of uedp; of a user; the bound and the claim of uedp-published."""
    row: Row = {}
    for each in statements:
        epsilon, detail = number(float(each["epsilon"])), each.get("detail", {})
        if each["notion"] == "user-dp":
            row["epsilon_user"] = epsilon
        elif each["notion"] == "uedp" and each["status"] == "published-claim":
            row["epsilon_published"] = epsilon
        elif each["notion"] == "uedp" and "holders" in detail:
            row |= {"epsilon_valid": epsilon, "holders": detail["holders"]}
        elif each["notion"] == "uedp":
            for name in ("median", "p95", "largest"):
                row[f"k_{name}"] = detail[name]
                if detail[name] == detail["k"]:
                    row[f"epsilon_{name}"] = epsilon
    return row


COLUMNS = {
    "score": "perplexity, or error in %",
    "epsilon_user": "ε, user",
    "epsilon_median": "ε, median pair",
    "epsilon_p95": "ε, 95 % of pairs",
    "epsilon_valid": "ε, bound that holds",
    "epsilon_published": "ε, as published",
    "sigma": "σ",
}


def show(work: Work) -> str:
    order = [*ROWS, *SWEEP]
    rows = []
    for each in sorted(work.rows(), key=lambda r: (list(SETTINGS).index(r["set"]), order.index(r["row"]))):
        score = 100 * (1 - each["score"]) if SETTINGS[each["set"]].labels else each["score"]
        sigma = (each.get("phases") or {}).get("private", {}).get("noise_multiplier")
        rows.append({**each, "score": score, "sigma": sigma})
    return table(rows, ("set", "row"), COLUMNS)


def main() -> None:
    options = arguments()
    work = Work(options.work, "uedp.jsonl")
    if options.set == "table":
        print(show(work))
        return
    torch.set_num_threads(1)
    changed = {name: type(getattr(SETTINGS[options.set], name))(value) for name, value in options.change}
    experiment = Experiment(replace(SETTINGS[options.set], **changed), options.data, options.model, work)
    test = experiment.test()
    for seed in options.seeds:
        for row in SWEEP if options.sweep else options.rows:
            with work.cell(set=options.set, row=row, seed=seed) as cell:
                if cell is not None:
                    cell |= experiment.run(row, seed, test)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("set", choices=[*SETTINGS, "table"])
    parser.add_argument("--data", type=Path, help="the folder that holds the data sets' folders")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=ROWS)
    parser.add_argument("--sweep", action="store_true", help="q_s of uedp instead of the rows")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument(
        "--change", nargs="*", default=[], type=lambda text: tuple(text.split("=", 1)), help="NAME=VALUE"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
