"""Experiment 4 (docs/results.md): CRT beside what it is compared with (Zhao, Li, Wang 2022, section 5), with our changes.

    python experiments/crt.py run multiwoz gpt --gamma 0.1 --data DATA --model gpt2-public-xs/ --work WORK
    python experiments/crt.py run customersim lstm --gamma 0 0.1 0.3 0.5 --data DATA --work WORK
    python experiments/crt.py table --work WORK

Ten canaries "My ID is: NNNNN" (in lower case in CustomerSim and ABCD) are planted 20 times each. π is made to miss a share γ
of the spans it finds. Membership is attacked on private records of the training dialogues, as the model read them, against
those of as many dialogues that follow in the same file.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from common import Row, Work, number, table

import taciturn as tt
from taciturn.auditing.canaries.templates import Planted, Template, draw, plant
from taciturn.data.loaders import load
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.screening.corpus.manifest import MANIFEST
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.text.document import MASK, Document, Record
from taciturn.text.readers import Corpus
from taciturn.text.segment import split

EPSILON, DELTA = 3.0, 8e-5
TEMPLATES = {
    "multiwoz": Template("My ID is: {}", length=5),
    "customersim": Template("my id is: {}", length=5),  # its π takes two words with capitals for a name
    "abcd": Template("my id is: {}", length=5),
}
PLANTED = {name: Planted(each, tuple(draw(each, 10, 7)), 20) for name, each in TEMPLATES.items()}
SIDE, GROUP, TEST = 200, 20, 250
"""Texts of each side of the membership attack, records of a group, and records whose perplexity is taken."""
SETS = {
    "multiwoz": ("multiwoz21", "test", "multiwoz22", "valid"),
    "customersim": ("customersim", "train", "customersim", "test"),
    "abcd": ("abcd", "valid", "abcd", "test"),
}
PI = {"multiwoz": "multiwoz", "customersim": "customersim", "abcd": "spacy:low-entity"}


@dataclass(frozen=True, slots=True)
class Setting:
    """dialogues to train on, and how. rounds: of CRT as published, whose private steps they share."""

    dialogues: int
    epochs: int
    lr: float
    steps: int
    batch: int
    private_lr: float
    rounds: int
    batch_size: int = 32

    def public(self, epochs: int | None = None) -> dict[str, Any]:
        optimiser = {"lr": self.lr, "schedule": "cosine", "warmup": 0.05, "max_grad_norm": 1.0}
        return {"epochs": epochs or self.epochs, "batch_size": self.batch_size, "optimiser": optimiser}

    def private(self) -> dict[str, Any]:
        return {"steps": self.steps, "batch": self.batch, "optimiser": {"lr": self.private_lr}}


SETTINGS = {
    "gpt": Setting(100, 1, 1e-3, 20, 64, 5e-4, 2, 16),
    "lstm": Setting(100, 4, 5e-3, 24, 64, 1e-3, 4, 16),
}


def selective(s: Setting) -> dict[str, Any]:
    return {"steps": s.steps, "batch": s.batch, "optimiser": {"lr": s.lr}}


def crt(s: Setting, **more: Any) -> dict[str, Any]:
    return {"public": s.public(), "private": s.private(), **more}


ROWS: dict[str, Any] = {
    "non-private": lambda s: ("sgd", s.public()),
    "redacted": lambda s: ("redacted", s.public()),
    "selective DP-SGD": lambda s: ("selective_dpsgd", selective(s)),
    "DP-SGD": lambda s: ("dpsgd", s.private()),
    "CRT as published": lambda s: (
        "crt",
        {"skeletons": False, "schedule": "alternate", "public": s.public(s.rounds), "private": s.private()},
    ),
    "CRT, no skeletons, public first": lambda s: ("crt", crt(s, skeletons=False)),
    "CRT with skeletons": lambda s: ("crt", crt(s)),
    "CRT, residuals": lambda s: ("crt_residual", crt(s)),
    "CRT, residuals, C = 16": lambda s: ("crt_residual", crt(s) | {"private": s.private() | {"clip": 16.0}}),
    "CRT, filled by public model": lambda s: ("crt", crt(s, fill="public-model")),
    "CRT, filled by itself": lambda s: ("crt", crt(s, fill="self")),
    "CRT, filled by public model, loss": lambda s: ("crt", crt(s, fill="public-model", fill_loss=True)),
    "CRT, filled by itself, loss": lambda s: ("crt", crt(s, fill="self", fill_loss=True)),
}
MAIN = (
    "non-private",
    "redacted",
    "selective DP-SGD",
    "DP-SGD",
    "CRT as published",
    "CRT with skeletons",
    "CRT, residuals",
)
PLAIN = ("non-private", "DP-SGD", "selective DP-SGD")
"""Rows that read the original text."""
BLIND = ("non-private", "DP-SGD")
"""Rows that do not look at what π finds, so that γ changes nothing: they are run once."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """One data set, one kind of model, one γ."""

    name: str
    kind: str
    gamma: float
    data: Path
    model: Path | None
    work: Work

    @property
    def setting(self) -> Setting:
        return SETTINGS[self.kind]

    def screened(self, part: int) -> ScreenedCorpus:
        """part 0: the dialogues that are trained on, with canaries; 1: as many that follow, for the attacks."""
        n = self.setting.dialogues
        folder = self.work.folder / "screened" / f"{self.name}-{n}-{part}-{self.gamma}"
        if not (folder / MANIFEST).exists():
            documents: list[Document] = list(source(self.name, self.data)[n * part : n * (part + 1)])
            if part == 0:
                canaries = PLANTED[self.name]
                documents = plant(documents, canaries.template, canaries.secrets, canaries.copies, 7)
            corpus = Corpus.from_documents(documents)
            pi, wide = tt.policy(PI[self.name]), tt.policy("conservative")
            tt.screen(corpus, pi, wide, unit="turn", miss_rate=self.gamma, out=folder)
        return tt.load_screened(folder)

    def test(self) -> list[Record]:
        _, _, name, part = SETS[self.name]
        documents = load(name, self.data, part).corpus.documents()
        records = [record for document in documents for record in split(document, "turn")]
        return random.Random(0).sample(records, TEST)

    def configured(self) -> Any:
        if self.kind == "gpt":
            return {"name": str(self.model), "max_length": 48, "dtype": "bf16"}
        return {"name": "lstm", "tokenizer": "bpe:2048", "max_length": 48}

    def run(self, row: str, seed: int, test: list[Record]) -> Row:
        """Train, certify, attack."""
        mechanism, options = ROWS[row](self.setting)
        screened, scores = self.screened(0), {}

        def notify(progress: Any) -> None:
            if progress.utility is not None:
                found = progress.utility
                scores[progress.step.phase.name] = found.perplexity, found.perplexity_outside

        noised = mechanism not in ("sgd", "redacted")
        planned = tt.plan(
            mechanism,
            screened,
            self.configured(),
            epsilon=EPSILON if noised else None,
            delta=DELTA,
            seeds={"model": seed, "data": seed},
            train={"token_budget": 2048, "evaluations": 1, "checkpoint_steps": 10**6, "checkpoint_minutes": 1e6},
            allow=sorted(ALLOWED),
            **options,
        )
        out = self.work.folder / "runs" / f"{mechanism}-{time.time_ns()}"
        began = time.process_time()
        run = tt.train(planned, out, valid=test, notify=notify)
        trained = time.process_time()
        certificate = run.certify()
        inside, outside = (texts(self.screened(part), row in PLAIN) for part in (0, 1))
        few = min(len(set(inside) - set(outside)), len(set(outside) - set(inside)))
        attacks = ["exposure", *["membership"] * (few > 0), *["group-membership"] * (few >= 2 * GROUP)]
        findings = tt.audit(
            run,
            attacks,
            canaries=PLANTED[self.name],
            members=inside,
            nonmembers=outside,
            group_size=GROUP,
            seed=0,
        )
        kept = self.work.folder / "certificates" / out.name
        kept.mkdir(parents=True)
        for file in ("certificate.json", "plan.json", "audit.json"):
            shutil.copy(out / file, kept)
        shutil.rmtree(out)
        first, last = next(iter(scores.values())), list(scores.values())[-1]
        found: Row = {
            "perplexity": last[0],
            "outside": last[1],
            "first": first[0] if len(scores) > 1 else None,
            "sigma": sigma(json.loads((kept / "plan.json").read_text())),
            "certificate": kept.name,
            "members": few,
            "cpu_train": trained - began,
            "cpu_audit": time.process_time() - trained,
        }
        for finding in findings:
            name = finding.attack.replace("-", "_")
            found |= {name: finding.score, f"{name}_null": finding.null.get("p95"), f"{name}_verdict": finding.verdict}
            found[f"{name}_accuracy"] = finding.detail.get("accuracy")
        return found | epsilons(certificate.statements())


@cache
def source(name: str, data: Path) -> tuple[Document, ...]:
    """Dialogues of the training split, the canaries of CustomerSim's authors left out."""
    known, part, _, _ = SETS[name]
    return tuple(load(known, data, part).corpus.documents())


def texts(screened: ScreenedCorpus, original: bool) -> list[str]:
    """Different private records other than canaries, as a mechanism reads them: an even sample of SIDE."""
    names = screened.texts("original" if original else "redacted")
    rows = zip(names, *(screened.table[c].to_pylist() for c in ("part", "duplicate", "document_id")), strict=True)
    found = [
        text
        for text, part, duplicate, document in rows
        if part == "private" and not duplicate and text != MASK and not document.startswith("canary")
    ]
    distinct = list(dict.fromkeys(found))
    return distinct[:: max(1, len(distinct) // SIDE)][:SIDE]


def sigma(plan: Any) -> float | None:
    found = [phase["event"].get("noise_multiplier") for phase in plan["phases"]]
    return next((each for each in found if each), None)


def epsilons(statements: Any) -> Row:
    """ε by substitution: of a secret that π detects, of one that it misses, and of one that is all π_c marks."""
    row: Row = {}
    for each in statements:
        if each.notion in ("confidentiality", "sdp"):
            name = "alone" if "all the conservative policy marks" in each.unit else "missed"
            name = "detected" if "detects" in each.unit else name
            row |= {f"epsilon_{name}": number(each.epsilon), f"status_{name}": each.status}
    return row


COLUMNS = {
    "perplexity": "perplexity",
    "outside": "outside secrets",
    "first": "after phase one",
    "exposure": "highest exposure, bits",
    "membership_accuracy": "membership accuracy",
    "membership": "membership AUC",
    "group_membership": "group membership AUC",
    "epsilon_detected": "ε, detected",
    "epsilon_missed": "ε, missed",
    "epsilon_alone": "ε, alone",
}


def show(work: Work) -> str:
    order = list(ROWS)
    rows = sorted(work.rows(), key=lambda r: (r["set"], r["model"], r["gamma"], order.index(r["row"])))
    return table(rows, ("set", "model", "gamma", "row"), COLUMNS)


def main() -> None:
    options = arguments()
    work = Work(options.work, "crt.jsonl")
    if options.what == "table":
        print(show(work))
        return
    torch.set_num_threads(1)
    for seed in options.seeds:
        for gamma in options.gamma:
            experiment = Experiment(options.set, options.kind, gamma, options.data, options.model, work)
            test = experiment.test()
            for row in options.rows:
                if options.kind == "gpt" and row == "selective DP-SGD":
                    continue
                at = min(options.gamma) if row in BLIND else gamma
                with work.cell(set=options.set, model=options.kind, gamma=at, row=row, seed=seed) as cell:
                    if cell is not None:
                        cell |= experiment.run(row, seed, test)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["run", "table"])
    parser.add_argument("set", nargs="?", choices=SETS)
    parser.add_argument("kind", nargs="?", choices=SETTINGS)
    parser.add_argument("--gamma", nargs="*", type=float, default=[0.1])
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=MAIN)
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--data", type=Path, help="the folder that holds the data sets' folders")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    return parser.parse_args()


if __name__ == "__main__":
    main()
