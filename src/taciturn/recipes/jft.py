"""What the recipes of Just Fine-tune Twice (Shi et al. 2022) share: tasks, data, and one cell of a table."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from taciturn.recipes import press, starts
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.trained import trained, untrained
from taciturn.recipes.work import Row, Work

if TYPE_CHECKING:
    from taciturn.screening.screened import ScreenedCorpus
    from taciturn.text.document import Document, Record

LEVELS = ("low-entity", "high-entity", "low-contextual", "high-contextual")
"""The four detectors of section 4, as policies `spacy:LEVEL`."""
EPSILON = 3.0  # section 6
CLIP = 0.1  # Table 5

NEEDS = (
    "the data sets from the hub (ABCD: a folder given with --data), gpt2 and roberta-base from the hub or --model, "
    "spaCy "
    "with an English pipeline, and a GPU with 24 GB: each cell is hundreds of steps at batch 512 and more"
)
PAPER = "ε = 3 (Table 5), clip 0.1, noise calibrated beforehand; GPT-2 small and RoBERTa base; spaCy's detectors"
READING = (
    "Theorem 1 takes the ε of add and remove for neighbours that substitute a secret (Definition 3). Here σ is "
    "calibrated by "
    "substitution (docs/guarantees.md §4.1); what the paper's accounting says of the same noise stands beside it"
)


@dataclass(frozen=True, slots=True)
class Task:
    """A data set as the paper trains on it. labels: none for a language model. records, batch: of private steps, which give
    the rate; for language models records are blocks (as in `privacy.published_jft`). splits: of train and test."""

    name: str
    labels: tuple[str, ...] = ()
    records: int = 0
    batch: int = 512
    epochs: int = 200
    delta: float = 1e-6
    splits: tuple[str, str] = ("train", "test")
    hub: bool = True

    @property
    def rate(self) -> float:
        return self.batch / self.records

    @property
    def steps(self) -> int:
        return math.ceil(self.epochs * self.records / self.batch)

    @property
    def classifies(self) -> bool:
        return bool(self.labels)


BINARY, PAIRS = ("0", "1"), ("entailment", "not_entailment")
TASKS = {
    task.name: task
    for task in (
        Task(
            "mnli", ("entailment", "neutral", "contradiction"), 392_702, 6000, 18, 1.2732300828e-6, ("train", "matched")
        ),
        Task("qqp", BINARY, 363_846, 6000, 18, 1.3742077692e-6, ("train", "valid")),
        Task("qnli", PAIRS, 104_743, 2000, 6, 4.7735886885e-6, ("train", "valid")),
        Task("sst2", BINARY, 67_349, 1000, 3, 7.4240152044e-6, ("train", "valid")),
        Task("wikitext2", (), 2361, 512, 200),
        Task("abcd", (), 2547, 256, 200, hub=False),
    )
}
"""Batches and epochs of GLUE and δ: those of the released code as `privacy.published_jft` has them, rounded to epochs."""

QUICK = {
    "press": Task("press", press.TOPICS, 800, 64, 4, 1e-5),
    "customersim": Task("customersim", (), 800, 64, 4, 1e-5),
}
"""Made-up text: topics of news, and what customers say."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """train, test: documents at most. epochs, batch_size: of noiseless phases. second_lr: of jft's second phase."""

    train: int
    test: int
    epochs: int
    batch_size: int
    public_lr: float
    private_lr: float
    second_lr: float
    max_length: int


@dataclass(frozen=True, slots=True)
class Bench:
    """One task at the size asked for: its texts, its model, and a cell of it."""

    task: Task
    inputs: Inputs
    work: Work
    sizes: Sizes
    documents: tuple[Document, ...] = field(repr=False)
    test: tuple[Record, ...] = field(repr=False)
    note: str = ""

    @property
    def private(self) -> dict[str, Any]:
        """Rate and steps of private phases; fewer in quick runs."""
        t, n = self.task, len(self.documents)
        if self.inputs.size == "full":
            return {"rate": t.rate, "steps": t.steps}
        return {"rate": min(1.0, self.inputs.pick(8, 32, 32) / n), "steps": self.inputs.pick(2, 16, 16)}

    def model(self) -> dict[str, Any]:
        made = (
            starts.encoder(self.inputs, self.work)
            if self.task.classifies
            else starts.public_model(self.inputs, self.work)
        )
        if self.inputs.size == "full" and self.inputs.model is None:
            made = {"name": "roberta-base" if self.task.classifies else "gpt2", "dtype": "bf16"}
        kind = {"task": "classify", "labels": self.task.labels} if self.task.classifies else {}
        return {**made, **kind, "max_length": self.sizes.max_length}

    def screened(self, policy: str) -> ScreenedCorpus:
        """Every record private and none removed: jft reads redacted and original text, and splits nothing."""
        return _screened(self.documents, policy)

    def public(self, epochs: int = 0) -> dict[str, Any]:
        optimiser = {"lr": self.sizes.public_lr, "schedule": "linear", "warmup": 0.1, "max_grad_norm": 1.0}
        return {"epochs": epochs or self.sizes.epochs, "batch_size": self.sizes.batch_size, "optimiser": optimiser}

    def noised(self, lr: float, sigma: float | None = None, **changed: Any) -> dict[str, Any]:
        optimiser = {"lr": lr, "schedule": "linear", "warmup": 0.05}
        fixed = {} if sigma is None else {"noise_multiplier": sigma}
        return {**self.private, "clip": CLIP, "optimiser": optimiser, **fixed, **changed}

    def start(self) -> float:
        """Score before any fine-tuning."""
        key = {"task": self.task.name, "row": "no fine-tuning", **self._key()}
        row = self.work.cell(key, lambda: {"score": untrained(self.model(), self.test, self.inputs.seed)})
        return float(row["score"])

    def cell(
        self,
        row: str,
        mechanism: str,
        policy: str,
        options: Mapping[str, Any],
        epsilon: float | None = None,
        screened: Any = None,
        canaries: Any = None,
        **more: Any,
    ) -> Row:
        """Train it once and keep the numbers; with what the paper's accounting says of the same noise. policy: a level of
        spaCy's detectors, or a name for what ``screened`` makes."""
        key = {"task": self.task.name, "row": row, "mechanism": mechanism, "policy": policy, "epsilon": epsilon,
               "options": dict(options), **self._key(), **more}  # fmt: skip

        def measure() -> Row:
            corpus = self.screened(f"spacy:{policy}") if screened is None else screened()
            counts = corpus.manifest.counts
            labelled = (
                (counts.gold_spans, counts.gold_missed_by_pi) if mechanism == "jft" and counts.gold_spans else None
            )
            found = trained(
                self.work, f"{self.task.name}-{row}".replace(" ", "-").replace("%", ""), mechanism, corpus, self.model(),
                self.test, options=options, epsilon=epsilon, delta=self.task.delta, seed=self.inputs.seed,
                labelled=labelled, canaries=canaries,
            )  # fmt: skip
            steps = {name: opts["steps"] for name, opts in _phases(mechanism, options)}
            said = {
                p: published(found["rate"][p], found["sigma"][p], steps[p], self.task.delta) for p in found["sigma"]
            }
            share = redacted_share(corpus) if mechanism in ("jft", "redacted", "crt") else None
            return {**found, "as published": said, "share": share, "labelled": labelled}

        return self.work.cell(key, measure)

    def _key(self) -> dict[str, Any]:
        return {"size": self.inputs.size, "seed": self.inputs.seed, "data": str(self.inputs.data or ""),
                "model": self.inputs.model or "", "documents": len(self.documents), "test": len(self.test),
                "sizes": repr(self.sizes)}  # fmt: skip

    def no_dp(self) -> Row:
        return self.cell("no-DP", "sgd", LEVELS[1], self.public())

    def dpsgd(self) -> Row:
        return self.cell("DP-SGD", "dpsgd", LEVELS[1], self.noised(self.sizes.private_lr), EPSILON)

    def fine_tuned_twice(self, level: str, row: str = "jft", epochs: int = 0, **more: Any) -> Row:
        """The redacted model and the jft model are where its two phases end. more: options of the mechanism."""
        far = self.task.classifies or level.endswith("contextual") or bool(more)
        private = self.noised(self.sizes.private_lr if far else self.sizes.second_lr)
        return self.cell(row, "jft", level, {"redacted": self.public(epochs), "private": private, **more}, EPSILON)

    @property
    def metric(self) -> str:
        return "accuracy, %" if self.task.classifies else "perplexity"

    def shown(self, score: float) -> float:
        return 100 * score if self.task.classifies else score

    def setting(self) -> str:
        """What was run, in words."""
        p, s, model = self.private, self.sizes, (self.inputs.model or "").rstrip("/").rsplit("/")[-1]
        return (
            f"{self.task.name}: {len(self.documents):,} records to train on, {len(self.test):,} to test; "
            f"{self.note.rstrip('.')}; "
            f"{s.epochs} plain epochs at batch {s.batch_size}; {p['steps']} private steps at rate {p['rate']:.3f}, "
            f"δ = {self.task.delta:.2g}; {model or _START[self.inputs.quick]}."
        ).replace("  ", " ")


_START = {
    True: "a GPT-2 shape of 64 units trained for 60 steps on other made-up text, or a BERT shape with random weights",
    False: "gpt2 or roberta-base",
}


def _phases(mechanism: str, options: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """Noised phases and their options."""
    if mechanism == "dpsgd":
        return [("private", options)]
    light = [("redacted", options["light"])] if options.get("light") else []
    return [*light, *([("private", options["private"])] if "private" in options else [])]


def bench(name: str, inputs: Inputs, work: Work) -> Bench:
    """The task ``name`` of the paper in full; in quick runs made-up text of its kind, or the user's copy of it, thinned."""
    task = TASKS[name]
    if inputs.quick and inputs.data is None:
        task = QUICK["press" if task.classifies else "customersim"]
        sizes = _sizes(inputs, task)
        train = _made_up(task.name, inputs.seed, "train", sizes.train)
        test = _made_up(task.name, inputs.seed, "test", sizes.test)
        return Bench(task, inputs, work, sizes, train, _records(test), "made-up text")
    return _loaded(task, inputs, work)


def chosen(names: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """The tasks that the user's model can serve: an encoder classifies, another writes. All, where none is given."""
    if inputs.model is None:
        return tuple(names)
    from transformers import AutoConfig
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    from taciturn.errors import UsageError

    encoder = AutoConfig.from_pretrained(inputs.model).model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    found = tuple(name for name in names if TASKS[name].classifies == encoder)
    if not found:
        wanted = "an encoder such as roberta-base" if TASKS[names[0]].classifies else "one that writes, such as gpt2"
        raise UsageError(f"--model: the tasks asked for ({', '.join(names)}) need {wanted}")
    return found


def _sizes(inputs: Inputs, task: Task) -> Sizes:
    if inputs.quick:
        lr = 3e-3 if inputs.model is None else 5e-4
        return Sizes(inputs.pick(24, 200, 200), inputs.pick(12, 80, 80), inputs.pick(1, 4, 4), 16, lr, lr, lr / 3, 64)
    return Sizes(10**9, 10**9, 3, 16, 5e-5, 5e-4, 5e-4, 128 if task.classifies else 512)


def _made_up(name: str, seed: int, split: str, most: int) -> tuple[Document, ...]:
    if name == "press":
        return tuple(press.write(math.ceil(most / 20), 20, seed, split)[:most])
    from taciturn.data.customersim import simulate

    return tuple(turns(simulate(math.ceil(most / 7), seed, split)))[:most]


def turns(dialogues: Sequence[Document]) -> list[Document]:
    """Each turn a document of its own, its annotations with it."""
    from dataclasses import replace

    from taciturn.text.document import Document
    from taciturn.text.segment import split

    return [
        Document(r.id, r.body, user=r.user, gold=tuple(replace(s) for s in r.gold))
        for dialogue in dialogues
        for r in split(dialogue, "turn")
        if r.body.strip()
    ]


def _records(documents: Sequence[Document]) -> tuple[Record, ...]:
    from taciturn.text.segment import split

    return tuple(record for document in documents for record in split(document, "document"))


def _loaded(task: Task, inputs: Inputs, work: Work) -> Bench:
    """Of a data folder, or of the hub."""
    from taciturn.data.loaders import load
    from taciturn.errors import UsageError

    if inputs.data is None and not task.hub:
        raise UsageError(
            f"{task.name} is not on the hub: give --data FOLDER with it, or run it with --quick on made-up text"
        )
    source: Any = "hf:" if inputs.data is None else inputs.data
    parts, notes, sizes = [], [], _sizes(inputs, task)
    for split, most in zip(task.splits, (sizes.train, sizes.test), strict=True):
        found = load(task.name, source, split)
        documents = list(found.corpus.documents())
        if documents and documents[0].turns:
            documents = turns(documents)
        parts.append(tuple(documents[:: max(1, len(documents) // most)][:most]))
        notes.append(found.note)
    return Bench(task, inputs, work, sizes, parts[0], _records(parts[1]), " ".join(dict.fromkeys(notes)))


@cache
def _screened(documents: tuple[Document, ...], policy: str) -> ScreenedCorpus:
    import taciturn as tt
    from taciturn.text.readers import Corpus

    corpus = Corpus.from_documents(list(documents))
    private = tt.policy("all-private")
    return tt.screen(corpus, tt.policy(policy), private, unit="document", dedup="none", skeletons=False)


def redacted_share(screened: ScreenedCorpus) -> float:
    """Share of the words that redaction took away; a word that is masked in part is gone."""
    from taciturn.text.document import MASK

    before = sum(len(text.split()) for text in screened.texts("original"))
    left = sum(MASK not in word for text in screened.texts("redacted") for word in text.split())
    return 1 - left / before


def published(rate: float, sigma: float, steps: int, delta: float) -> float:
    """ε that the paper's accounting gives: exact, by add and remove."""
    from taciturn.privacy.accountant import compose
    from taciturn.privacy.events import PoissonGaussian

    return compose({PoissonGaussian(rate, sigma): steps}, "add-remove").epsilon(delta)


def epsilons(row: Row) -> tuple[float | None, float | None]:
    """(ε of a secret the policy detects, of one it misses) of a cell, as its certificate has them."""
    detected = missed = None
    for each in row["claims"]:
        if each["notion"] == "sdp":
            if "detects" in each["unit"]:
                detected = each["epsilon"]
            else:
                missed = each["epsilon"]
        elif each["notion"] == "confidentiality" and detected is None:
            detected = each["epsilon"]
            missed = each["epsilon"]
    return detected, missed
