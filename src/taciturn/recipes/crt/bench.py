"""What CRT's Figures 2 to 5 measure: models trained on one corpus, ε and perplexity on the way, three attacks.

Canaries "my id is: NNNNNN" are planted as in section 5.1, each ten times twenty. They are secrets like the others: π finds
them, except for a share γ. All rows of one γ are one screened corpus; the figures share their cells.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from typing import Any

from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.recipes.at_hand import holds
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.crt.corpus import Texts
from taciturn.recipes.crt.data import SECRETS, SPLITS
from taciturn.recipes.crt.measures import attacks, bayesian, noise
from taciturn.recipes.crt.sizes import DELTA, EPSILON, SIZES, Setting, of
from taciturn.recipes.recipe import Inputs
from taciturn.recipes.trained import constant, token_budget, untrained


@dataclass(frozen=True)
class Bench:
    """One data set in one size. data: "customersim" (simulated unless a folder is given) or "multiwoz" (a folder)."""

    inputs: Inputs
    work: Work
    data: str = "customersim"

    @property
    def setting(self) -> Setting:
        chosen = of(self.inputs.size, self.data)
        return replace(chosen, seeds=self.inputs.runs or chosen.seeds)

    @cached_property
    def texts(self) -> Texts:
        """What is trained, tested and attacked on."""
        return Texts(self.inputs, self.work, self.data, self.setting)

    def cells(self) -> dict[tuple[str, str, float, int], Row]:
        """Every (kind, row, γ, seed) of the bench. DPSGD does not look at what π finds: one cell stands for all γ."""
        found: dict[tuple[str, str, float, int], Row] = {}
        for seed in range(self.setting.seeds):
            for gamma in self.setting.gammas:
                for kind, row in self.setting.lines:
                    if row == "DPSGD" and gamma != self.setting.gammas[0]:
                        found[kind, row, gamma, seed] = found[kind, row, self.setting.gammas[0], seed]
                    else:
                        found[kind, row, gamma, seed] = self.cell(kind, row, gamma, seed)
        return found

    def cell(self, kind: str, row: str, gamma: float, seed: int) -> Row:
        """Perplexities, ε on the way, exposure and membership of one row, kept by every setting that decides them. seed:
        0, 1, … from that of the inputs on."""
        seed += self.inputs.seed
        key = {
            "bench": self.data, "kind": kind, "row": row, "gamma": gamma, "seed": seed, **self._given,
            "simulated": self.inputs.seed, **self._sizes,
        }  # fmt: skip
        return self.work.cell(key, partial(self._measure, kind, row, gamma, seed))

    def bar(self, kind: str) -> Row:
        """Perplexity of each run's model before training (start), and of the tokens' frequencies (constant)."""
        from taciturn.text.segment import split

        def measure() -> Row:
            documents = self.texts.documents("train")
            train = [record for document in documents for record in split(document, "turn")]
            test, note = self.texts.test()
            seeds = range(self.inputs.seed, self.inputs.seed + self.setting.seeds)
            start = [untrained(self.model(kind), test, seed) for seed in seeds]
            return {
                "start": start,
                "constant": constant(self.model(kind), train, test),
                "test": note,
                "turns": len(test),
                "dialogues": len(documents),
                "sides": self.texts.sides()[2],
            }

        return self.work.cell(self._bar(kind), measure)

    def missed(self) -> Row:
        """Annotated secrets (secrets), and those of them that neither policy marks wholly (missed): none of CRT's ε holds
        for these. π_c is the same at every γ."""

        def measure() -> Row:
            counts = self.texts.screened(self.setting.gammas[0]).manifest.counts
            return {"secrets": counts.gold_spans, "missed": counts.gold_missed_by_both}

        return self.work.cell({**self._bar("none"), "row": "secrets"}, measure)

    def kept(self) -> bool:
        """Whether it was measured, so that a page needs no data."""
        return self.work.kept(self._bar(self.setting.kinds[0])) is not None

    def _bar(self, kind: str) -> Row:
        return {
            "bench": self.data, "kind": kind, "row": "bar", **self._given,
            "simulated": self.inputs.seed, "seeds": self.setting.seeds, **self._sizes,
        }  # fmt: skip

    @property
    def _sizes(self) -> Row:
        """What decides a cell; which others there are does not."""
        others = ("seeds", "rows", "kinds", "sets", "gammas")
        return {name: value for name, value in asdict(self.setting).items() if name not in others and value is not None}

    @property
    def _given(self) -> Row:
        """The user's data and model, by the names of their folders: rows are shown to others."""
        data, model = self.inputs.data, self.inputs.model
        return {"given": str(data and data.resolve().name), "model": model and model.rstrip("/").rsplit("/")[-1]}

    # Training and attacks

    def model(self, kind: str) -> Any:
        """Settings of the model: the user's or, in quick, a tiny one trained on public text; or an LSTM from scratch, which
        reads the same tokens, so that perplexities compare."""
        full = self.inputs.size == "full"
        length = 128 if full else 48
        start: dict[str, Any] = {"name": self.inputs.model or "distilgpt2"}
        if not full:
            from taciturn.recipes.tiny_models import public_model

            start = public_model(self.inputs, self.work)
        if kind == "GPT":
            return {**start, "max_length": length}
        options = {"embedding_size": self.setting.lstm, "hidden_size": self.setting.lstm}
        return {"name": "lstm", "tokenizer": start["name"], "options": options, "max_length": length}

    def plan(self, row: str, kind: str, records: int) -> tuple[str, Row]:
        """Mechanism and its options. records: of the corpus."""
        public, private = self.setting.public(kind), self.setting.private(kind, row)
        if row == "S-DP as accounted":
            from taciturn.privacy.guarantees.published_crt import published_noise

            rate = min(1.0, self.setting.batch / records)
            return "selective_dpsgd", {
                **private,
                "noise_multiplier": published_noise(EPSILON, rate, self.setting.steps, DELTA),
            }
        return {
            "redacted": ("redacted", public),
            "S-DP": ("selective_dpsgd", private),
            "DPSGD": ("dpsgd", private),
            "CRT": ("crt", {"skeletons": False, "schedule": "alternate", "public": public, "private": private}),
            "CRT with skeletons": ("crt", {"public": public, "private": private}),
            "CRT with values": ("crt", {"fill": "learned", "public": public, "private": private}),
            "CRT with common values": (
                "crt",
                {"fill": "learned", "common": "stay", "public": public, "private": private},
            ),
        }[row]

    def _measure(self, kind: str, row: str, gamma: float, seed: int) -> Row:
        import taciturn as tt

        screened = self.texts.screened(gamma)
        mechanism, options = self.plan(row, kind, len(screened.texts("original")))
        points: list[Row] = []

        def notify(progress: Any) -> None:
            if progress.utility is not None:
                phase, found = progress.step.phase, progress.utility
                done = progress.step.number + 1
                points.append(
                    {"done": done, "private": phase.private, "perplexity": found.perplexity,
                     "outside": found.perplexity_outside, "epsilon": progress.epsilon}
                )  # fmt: skip

        target = mechanism != "redacted" and "noise_multiplier" not in options
        test, _ = self.texts.test()
        planned = tt.plan(
            mechanism, screened, self.model(kind), epsilon=EPSILON if target else None, delta=DELTA,
            seeds={"model": seed, "data": seed},
            train={"token_budget": token_budget(), "evaluations": self.setting.points, "checkpoint_steps": 10**6,
                   "checkpoint_minutes": 1e6}, allow=sorted(ALLOWED), **options,
        )  # fmt: skip
        out = self.work.path("runs", f"{self.data}-{kind}-{row}-{gamma:g}-{seed}".replace(" ", "-"))
        shutil.rmtree(out, ignore_errors=True)
        try:
            run = tt.train(planned, out, valid=test, notify=notify)
            plan = json.loads((out / "plan.json").read_text())
            return {
                "points": points, "perplexity": points[-1]["perplexity"], "outside": points[-1]["outside"],
                **noise(plan), **bayesian(plan, points, gamma if row.startswith("CRT") else None),
                **attacks(run, self.texts.canaries, *self.texts.sides()[:2], SECRETS[self.data], self.setting.group),
            }  # fmt: skip
        finally:
            shutil.rmtree(out, ignore_errors=True)


def benches(inputs: Inputs, work: Work) -> dict[str, Bench]:
    """A bench for each data set: those of the size that were measured or that the folder holds; without one the simulated
    set. Raises DataError where there is none."""
    from taciturn.errors import DataError

    every = {data: Bench(inputs, work, data) for data in SIZES[inputs.size].sets}
    if inputs.data is None:
        return {data: every[data] for data in list(every)[-1:]}
    found = {
        data: bench
        for data, bench in every.items()
        if bench.kept() or any(holds(inputs.data, *place) for place in SPLITS[data, "train"])
    }
    if not found:
        raise DataError(f"{inputs.data.name}: expected MultiWOZ 2.2 or CustomerSim in it, found neither")
    return found
