"""A data set of UeDP at the size asked for, and one run on it by each of the mechanisms that the figures compare."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from taciturn.recipes import encoder, simulated_news, texts, tiny_models
from taciturn.recipes.at_hand import Texts, at_hand, there
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.trained import constant, trained, untrained
from taciturn.recipes.uedp import data
from taciturn.recipes.uedp.accounting import PLANS, TUNED, Plan, claimed_and_real, facts, squared_noise
from taciturn.recipes.uedp.paper import DELTA, SETS, Annotated, Published
from taciturn.recipes.verdicts import Floor, Runs

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.text.document import Document, Record

TARGET = 8.0
"""ε of uedp for the median pair in quick runs and in full."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A data set at the size asked for. published: the set, None for made-up text. seed: of first weights and
    order, one a run."""

    name: str
    inputs: Inputs
    work: Work
    model: dict[str, Any]
    plan: Plan
    categories: tuple[str, ...]
    published: Published | Annotated | None
    documents: Sequence[Document] = field(repr=False)
    test: Sequence[Record] = field(repr=False)
    users: int
    note: str = ""
    seed: int = 0

    def each_run(self) -> list[Bench]:
        """The same bench for each run of a row."""
        return [replace(self, seed=seed) for seed in self.inputs.seeds]

    @property
    def classifies(self) -> bool:
        return self.model.get("task") == "classify"

    @property
    def metric(self) -> str:
        return "test error, %" if self.classifies else "perplexity"

    def shown(self, score: float) -> float:
        return 100 * (1 - score) if self.classifies else score

    def screened(self, category: str) -> ScreenedCorpus:
        return data.screened(self.documents, category, self.published)

    def start(self) -> float:
        key = {"row": "before training", **self._key()}
        return self.shown(self.work.cell(key, lambda: {"score": untrained(self.model, self.test, self.seed)})["score"])

    def constant(self) -> float:
        """Score of the best prediction that looks at no text; the same in each run."""
        key = {"row": "constant predictor", **self._key(), "seed": self.inputs.seed}

        def measure() -> Row:
            return {"score": constant(self.model, texts.records(self.documents), self.test)}

        return self.shown(self.work.cell(key, measure)["score"])

    def runs(self, name: str, scores: Sequence[float]) -> Runs:
        """A row of these scores, as shown, one a run, with what its models must beat. Less is better in both metrics."""
        start = tuple(each.start() for each in self.each_run())
        return Runs(name, tuple(scores), Floor(tuple(scores), start, self.constant()))

    def no_dp(self) -> float:
        return self._plain("no-DP", "sgd", {})

    def de_identified(self) -> float:
        """All categories masked."""
        return self._plain("de-identified", "redacted", {})

    def _plain(self, row: str, mechanism: str, more: Mapping[str, Any]) -> float:
        optimiser = {"lr": self.plan.plain_lr, "schedule": "linear", "warmup": 0.1, "max_grad_norm": 1.0}
        options = {"epochs": self.plan.epochs, "batch_size": 16, "optimiser": optimiser, **more}
        return self.shown(self._cell(row, mechanism, "all", options)["score"])

    def user_level(self, epsilon: float | None = None) -> Row:
        """McMahan et al. 2018: with the paper's z, or with the noise for ``epsilon``."""
        p = self.plan
        noise = {"noise_multiplier": p.scale} if epsilon is None else {}
        name = f"user-level DP{'' if epsilon is None else f' {epsilon:g}'}"
        return self._cell(name, "user_dp", "all", {**self._noised(), "rate": p.user_rate, **noise}, epsilon)

    def ours(self, category: str, **changed: float) -> Row:
        """uedp at ε = TARGET for the median pair of the category."""
        k = self.work.cell({"k": category, **self._key()}, lambda: facts("uedp", self.screened(category), {}))["median"]
        options = {**self._noised(), **self._rates(changed), "k": int(k)}
        return self._cell(f"uedp {category}", "uedp", category, options, TARGET)

    def as_published(self, category: str, squared: bool = False, **changed: float) -> Row:
        """Algorithm 1 with its printed noise, or with the released code's."""
        p = self.plan
        local = {"lr": p.local_lr, "batch_size": 8}
        options: dict[str, Any] = {**self._noised(), **self._rates(changed), "scale": p.scale, "local": local}
        if squared:
            about = self.work.cell(
                {"facts": category, **self._key(), **changed},
                lambda: facts("uedp-published", self.screened(category), {"user_rate": p.user_rate}),
            )
            options["noise_multiplier"] = squared_noise(p, about)
        return self._cell(f"Algorithm 1 {category}{' squared' * squared}", "uedp-published", category, options)

    def _noised(self) -> dict[str, Any]:
        optimiser = {"lr": self.plan.lr, "schedule": "linear", "warmup": 0.05}
        return {"steps": self.plan.steps, "clip": self.plan.clip, "optimiser": optimiser}

    def _rates(self, changed: Mapping[str, float]) -> dict[str, float]:
        p = self.plan
        return {"user_rate": p.user_rate, "entity_rate": p.entity_rate, "extended_rate": p.extended_rate} | dict(
            changed
        )

    def _cell(
        self, row: str, mechanism: str, category: str, options: Mapping[str, Any], epsilon: float | None = None
    ) -> Row:
        """The row of one run. curve: [updates, score, ε as claimed, ε that holds] along it."""
        key = {"row": row, "mechanism": mechanism, "options": dict(options), "epsilon": epsilon, **self._key()}

        def measure() -> Row:
            corpus = self.screened(category)
            found = trained(
                self.work, f"{self.name}-{row}".replace(" ", "-"), mechanism, corpus, self.model, self.test, options=options,
                epsilon=epsilon, delta=DELTA, seed=self.seed, evaluations=self.inputs.pick(1, 3, 10),
                frozen_cache=self.work.path("frozen.sqlite") if "frozen" in self.model else None,
            )  # fmt: skip
            about = facts(mechanism, corpus, options)
            sigma = found["sigma"].get("private")
            curve = [
                [updates, self.shown(score), *claimed_and_real(mechanism, options, about, sigma, updates)]
                for _, updates, score in found["scores"]
            ]
            return {**found, "facts": about, "curve": curve}

        return self.work.cell(key, measure)

    def _key(self) -> dict[str, Any]:
        return {"set": self.name, "size": self.inputs.size, "seed": self.seed, "text": self.inputs.seed,
                "data": self.inputs.data.resolve().name if self.inputs.data else "",
                "model": json.dumps({k: v for k, v in self.model.items() if k not in ("name", "tokenizer")}, default=str),
                "kind": (self.inputs.model or self.model["name"]).rstrip("/").rsplit("/")[-1],
                "documents": len(self.documents), "test": len(self.test), "plan": repr(self.plan)}  # fmt: skip

    def setting(self) -> str:
        """What was run, in words."""
        p = self.plan
        return (
            f"{self.name}: {len(self.documents):,} sentences of {self.users:,} users, "
            f"{len(self.test):,} to test; {self.note.rstrip('.')}; {p.steps} private steps, q_u = {p.user_rate:g}, "
            f"q_e = {p.entity_rate:g}, q_s = {p.extended_rate:g}, z = {p.scale:g}, β = {p.clip:g}, δ = 1e-5; uedp at "
            f"ε = {TARGET:g} for its median pair; {len(self.inputs.seeds)} run{'s' * (len(self.inputs.seeds) > 1)} a row; "
            f"the constant predictor is at {self.constant():.3g}."
        )


def bench(model: str, inputs: Inputs, work: Work, name: str = "AG") -> Bench:
    """``model``: gpt2, bert or awd-lstm. name: of SETS, for full runs and the user's own copy."""
    if inputs.quick and inputs.data is None:
        return _made_up(model, inputs, work)
    published = SETS[name]

    def load() -> Texts:
        train, test, note = data.loaded(published, inputs)
        facts = {
            "users": len({d.user for d in train}),
            "labels": sorted({d.label for d in train if d.label is not None}),
        }
        return Texts(train, texts.records(test), (), note, facts)

    found = at_hand(name, inputs, work, load)
    note = found.note
    plan = TUNED.get((model, name), PLANS[inputs.size]) if inputs.size == "medium" else PLANS[inputs.size]
    chosen = _model(model, inputs, work, tuple(found.facts["labels"]))
    if "frozen" in chosen:
        note = f"{note.rstrip('.')}; {encoder.said(0)}."
    return Bench(
        f"{published.name}-{model}", inputs, work, chosen, plan.of(model), published.categories, published, found.train,
        found.test, found.facts["users"], note, inputs.seed,
    )  # fmt: skip


def benches(places: Sequence[tuple[str, str]], inputs: Inputs, work: Work) -> list[Bench]:
    """Of these (model, name) the ones whose set was measured or is in the folder. Raises the DataError of the first where
    none is."""
    found = [place for place in places if there(SETS[place[1]].loader, place[1], inputs, work)]
    return [bench(model, inputs, work, name) for model, name in found or places[:1]]


def _made_up(model: str, inputs: Inputs, work: Work) -> Bench:
    users, each, test = inputs.pick((8, 4, 12), (30, 8, 80), (30, 8, 80))
    documents = tuple(simulated_news.write(users, each, inputs.seed, "train"))
    tested, note = texts.unseen(simulated_news.write(40, each, inputs.seed, "test"), documents, test)
    plan = Plan(inputs.pick(2, 8, 8), 0.25, epochs=inputs.pick(1, 4, 4), local_lr=0.3)
    categories = inputs.pick(simulated_news.CATEGORIES[:1], simulated_news.CATEGORIES, simulated_news.CATEGORIES)
    chosen = _model(model, inputs, work, simulated_news.TOPICS)
    return Bench(
        f"press-{model}", inputs, work, chosen, plan.of(model), categories, None, documents, texts.records(tested),
        len({d.user for d in documents}), f"made-up news; {note}", inputs.seed,
    )  # fmt: skip


def _model(model: str, inputs: Inputs, work: Work, labels: tuple[str, ...]) -> dict[str, Any]:
    tiny = inputs.size != "full"
    length = {"max_length": 64 if tiny else 128}
    if model == "bert":
        task = {"task": "classify", "labels": labels, **length}
        if inputs.size == "medium":
            return {**encoder.encoder(inputs, 0), **task}
        full = {"name": "bert-base-uncased"} if inputs.model is None and not tiny else tiny_models.encoder(inputs, work)
        return {**full, **task}
    if model == "awd-lstm" and inputs.model is None:
        small = {"embedding_size": 32, "hidden_size": 64} if tiny else {}
        tokenizer = tiny_models.public_model(inputs, work)["name"] if tiny else "gpt2"
        return {"name": "awd-lstm", "tokenizer": tokenizer, "options": small, **length}
    if inputs.model is None and not tiny:
        return {"name": "gpt2", **length}
    return {**tiny_models.public_model(inputs, work), **length}
