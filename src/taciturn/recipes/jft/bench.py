"""One task of Just Fine-tune Twice at the size asked for: its model, its options, and the cells of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.recipes import texts, tiny_models
from taciturn.recipes.at_hand import Texts, at_hand
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.jft import data, medium
from taciturn.recipes.jft.data import QUICK, Sizes
from taciturn.recipes.jft.paper import CLIP, EPSILON, LEVELS, TASKS, Task
from taciturn.recipes.jft.phases import named, phases, portable, published
from taciturn.recipes.recipe import Cell, Inputs
from taciturn.recipes.trained import constant, trained, untrained
from taciturn.recipes.verdicts import Floor, Runs

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.text.document import Document, Record


@dataclass(frozen=True, slots=True)
class Bench:
    """One task at the size asked for: its texts, its model, and a cell of it. seed: of weights and order, one a run. held:
    records to choose a learning rate by, where the size does."""

    task: Task
    inputs: Inputs
    work: Work
    sizes: Sizes
    documents: Sequence[Document] = field(repr=False)
    test: Sequence[Record] = field(repr=False)
    note: str = ""
    seed: int = 0
    held: Sequence[Record] = field(default=(), repr=False)

    def each_run(self) -> list[Bench]:
        """The same bench for each run of a row."""
        return [replace(self, seed=seed) for seed in self.inputs.seeds]

    @property
    def private(self) -> dict[str, Any]:
        """Rate and steps of private phases; fewer in quick runs."""
        t, n = self.task, len(self.documents)
        if self.inputs.size == "full":
            return {"rate": t.rate, "steps": t.steps}
        if self.inputs.size == "medium":
            m = medium.of(t)
            return {"rate": min(1.0, m.batch / n), "steps": m.steps}
        return {"rate": min(1.0, self.inputs.pick(8, 32, 32) / n), "steps": self.inputs.pick(2, 16, 16)}

    def model(self) -> dict[str, Any]:
        made = (
            medium.of(self.task).model(self.inputs)
            if self.inputs.size == "medium"
            else tiny_models.encoder(self.inputs, self.work)
            if self.task.classifies
            else tiny_models.public_model(self.inputs, self.work)
        )
        if self.inputs.size == "full" and self.inputs.model is None:
            made = {"name": "roberta-base" if self.task.classifies else "gpt2", "dtype": "bf16"}
        kind = {"task": "classify", "labels": self.task.labels} if self.task.classifies else {}
        return {**made, **kind, "max_length": self.sizes.max_length}

    def screened(self, policy: str) -> ScreenedCorpus:
        out = self.folder(policy)
        if out is None:
            return data.screened(self.documents, policy)
        return medium.kept(out, lambda: texts.screen(self.documents, policy, out=out))

    def folder(self, name: str) -> Path | None:
        """Where the corpus screened by what is called so is kept, or None where it is screened again each time."""
        if self.inputs.size != "medium":
            return None
        given = sha256(str(self.inputs.data and self.inputs.data.resolve()).encode()).hexdigest()[:8]
        what = f"{self.task.name}-{len(self.documents)}-{name}-{given}".replace(":", "-").replace(" ", "-")
        return self.work.path("screened", what)

    @property
    def private_lr(self) -> float:
        """Of DP-SGD: the size's, or in the medium size that with which one run is best on the records held out."""
        if not self.held:
            return self.sizes.private_lr
        trial = replace(self, test=self.held, held=(), seed=self.inputs.seed)

        def score(lr: float) -> float:
            options = self.noised(lr, steps=max(1, self.private["steps"] // 2))
            return float(trial.cell("tried", "dpsgd", LEVELS[1], options, EPSILON)["score"])

        best = max if self.task.classifies else min
        return best(medium.of(self.task).rates, key=score)

    @property
    def second_lr(self) -> float:
        """Of jft's second phase after an entity level; in the medium size after any."""
        return self.private_lr / 3 if self.held else self.sizes.second_lr

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
        row = self.work.cell(key, lambda: {"score": untrained(self.model(), self.test, self.seed)})
        return float(row["score"])

    def constant(self) -> float:
        """Score of the best prediction that looks at no text; the same in each run."""
        key = {"task": self.task.name, "row": "constant predictor", **self._key(), "seed": self.inputs.seed}

        def measure() -> Row:
            return {"score": constant(self.model(), texts.records(self.documents), self.test)}

        return float(self.work.cell(key, measure)["score"])

    def floor(self, utility: Sequence[float]) -> Floor:
        """What models of these scores, as shown, of one a run, must beat."""
        start = tuple(self.shown(each.start()) for each in self.each_run())
        return Floor(tuple(utility), start, self.shown(self.constant()), higher=self.task.classifies)

    def compared(self, runs: Sequence[Mapping[str, tuple[Cell, ...]]], at: int = 0) -> dict[str, Runs]:
        """Rows of a table of several runs by name, to be compared by the score in cell ``at``."""
        scores = {name: tuple(float(run[name][at] or 0) for run in runs) for name in runs[0]}
        return {name: Runs(name, each, self.floor(each)) for name, each in scores.items()}

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
               "options": portable(options), **self._key(), **more}  # fmt: skip

        def measure() -> Row:
            corpus = self.screened(f"spacy:{policy}") if screened is None else screened()
            counts = corpus.manifest.counts
            labelled = (
                (counts.gold_spans, counts.gold_missed_by_pi) if mechanism == "jft" and counts.gold_spans else None
            )
            found = trained(
                self.work, f"{self.task.name}-{row}".replace(" ", "-").replace("%", ""), mechanism, corpus, self.model(),
                self.test, options=options, epsilon=epsilon, delta=self.task.delta, seed=self.seed,
                labelled=labelled, canaries=canaries,
                frozen_cache=self.work.path("frozen.sqlite") if self.inputs.size == "medium" else None,
            )  # fmt: skip
            steps = {name: opts["steps"] for name, opts in phases(mechanism, options)}
            said = {
                p: published(found["rate"][p], found["sigma"][p], n, self.task.delta)
                for p, n in steps.items()
                if p in found["sigma"]
            }
            share = texts.redacted_share(corpus) if mechanism in ("jft", "redacted", "crt") else None
            return {**found, "as published": said, "share": share, "labelled": labelled}

        return self.work.cell(key, measure)

    def _key(self) -> dict[str, Any]:
        given = self.inputs.data
        start = {"start": medium.of(self.task).start} if self.inputs.size == "medium" else {}
        return {"size": self.inputs.size, "seed": self.seed, "text": self.inputs.seed,
                "data": given.resolve().name if given else "", "model": named(self.inputs.model),
                "documents": len(self.documents), "test": len(self.test), "sizes": repr(self.sizes),
                **start}  # fmt: skip

    def no_dp(self) -> Row:
        return self.cell("no-DP", "sgd", LEVELS[1], self.public())

    def dpsgd(self) -> Row:
        return self.cell("DP-SGD", "dpsgd", LEVELS[1], self.noised(self.private_lr), EPSILON)

    def fine_tuned_twice(self, level: str, row: str = "jft", epochs: int = 0, **more: Any) -> Row:
        """The redacted model and the jft model are where its two phases end. more: options of the mechanism."""
        if self.inputs.size == "medium":
            far = "screened" in more
        else:
            far = self.task.classifies or level.endswith("contextual") or bool(more)
        private = self.noised(self.private_lr if far else self.second_lr)
        return self.cell(row, "jft", level, {"redacted": self.public(epochs), "private": private, **more}, EPSILON)

    @property
    def metric(self) -> str:
        return "accuracy, %" if self.task.classifies else "perplexity"

    def shown(self, score: float) -> float:
        return 100 * score if self.task.classifies else score

    def setting(self, epochs: int = 0) -> str:
        """What was run, in words; epochs: plain ones, if not those of the size."""
        p, s = self.private, self.sizes
        start = (
            medium.of(self.task).said(self.private_lr, len(self.held))
            if self.held
            else named(self.inputs.model) or _START[self.inputs.size]
        )
        return (
            f"{self.task.name}: {len(self.documents):,} records to train on, {len(self.test):,} to test; "
            f"{self.note.rstrip('.')}; {epochs or s.epochs} plain epochs at batch {s.batch_size}; {p['steps']} private "
            f"steps at rate {p['rate']:.3f}, δ = {self.task.delta:.2g}; {start}; "
            f"{len(self.inputs.seeds)} run{'s' * (len(self.inputs.seeds) > 1)} a row; the constant predictor is at "
            f"{self.shown(self.constant()):.3g}."
        ).replace("  ", " ")


_TINY = (
    "a GPT-2 shape of 64 units trained for 60 steps on other made-up text, or a BERT shape trained to tell its topics"
)
_START = {"smoke": _TINY, "quick": _TINY, "full": "gpt2 or roberta-base"}


def bench(name: str, inputs: Inputs, work: Work) -> Bench:
    """The task ``name`` of the paper in full; in quick runs made-up text of its kind, or the user's copy of it, thinned."""
    task, made_up = TASKS[name], inputs.quick and inputs.data is None
    if made_up:
        task = QUICK["press" if task.classifies else "customersim"]
    if inputs.writer and not task.classifies:
        inputs = replace(inputs, model=inputs.writer)
    sizes = medium.of(task).sizes if inputs.size == "medium" else data.sizes(inputs, task)

    def load() -> Texts:
        train, test, note = (data.made_up if made_up else data.loaded)(task, inputs, sizes)
        train, held = medium.held_out(train) if inputs.size == "medium" else (train, ())
        return Texts(train, texts.records(test), texts.records(held), note)

    found = load() if made_up else at_hand(task.name, inputs, work, load)
    return Bench(task, inputs, work, sizes, found.train, found.test, found.note, inputs.seed, found.held)


def chosen(names: Sequence[str], inputs: Inputs) -> tuple[str, ...]:
    """The tasks that the user's models can serve: an encoder classifies, another writes. All, where none is given."""
    if inputs.writer is not None:
        return tuple(name for name in names if inputs.model or not TASKS[name].classifies)
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
