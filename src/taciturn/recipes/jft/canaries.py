"""Exposure against perplexity along a run: the canary attacks of Just Fine-tune Twice (Figures 2, 3 and 4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from taciturn.recipes import rigged_policies, texts
from taciturn.recipes.cells import Row, Work
from taciturn.recipes.jft import bench as jft_bench
from taciturn.recipes.jft.bench import Bench
from taciturn.recipes.jft.paper import EPSILON, READING
from taciturn.recipes.jft.phases import epsilons
from taciturn.recipes.jft.table3 import light_noise
from taciturn.recipes.recipe import Cell, Inputs, Plot, Results, Series, Table
from taciturn.recipes.trained import Canaries
from taciturn.recipes.verdicts import Order, Runs, merged, sentences

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.screening.policies.base import Policy
    from taciturn.text.document import Document
    from taciturn.text.spans import Span

TEXT = "My ID is {}"  # section 6.4
FIRST = "341752"
"""The paper's canary; its first digits where there are fewer."""
DIFFERS = (
    READING + ".",
    "Which data set and detector the figure is of is lost with its caption; here WikiText-2 in full, and what "
    "customers say in "
    "quick runs.",
    "In quick runs the detector is what is annotated, so its recall on everything but the canary is 1; in full "
    "spaCy's low "
    "entity detector, told to see or to miss the canary, as the paper does.",
    "Quick runs have four digits, 13.3 bits at most, instead of six with 19.9.",
)


@dataclass(frozen=True, slots=True)
class Kind:
    """A run of the figure. seen: the share of the canaries that the detector finds. names: of its points, by phase."""

    key: str
    mechanism: str
    seen: float
    names: tuple[str, ...]
    light: bool = False


BASELINES = (Kind("no-DP", "sgd", 1.0, ("no-DP",)), Kind("DP-SGD", "dpsgd", 1.0, ("DP-SGD",)))
"""In every figure."""


@dataclass(frozen=True)
class Attack:
    """A bench with canaries planted. only: they are the only secrets (Figure 4)."""

    bench: Bench
    canaries: Canaries = field(repr=False)
    copies: int
    only: bool = False

    def each_run(self) -> list[Attack]:
        """The same attack for each run of a row."""
        return [replace(self, bench=each) for each in self.bench.each_run()]

    @cached_property
    def documents(self) -> tuple[Document, ...]:
        from taciturn.auditing.canaries.templates import plant

        c, n = self.canaries, self.bench.inputs.seed
        return tuple(plant(self.bench.documents, c.template, c.secrets, self.copies, n))

    def policy(self, seen: float) -> Policy:
        """Finds that share of the canaries, the first ones, and what else is secret."""
        known = {
            self.canaries.template.fill(s) for s in self.canaries.secrets[: round(seen * len(self.canaries.secrets))]
        }

        def wanted(document: Document, span: Span) -> bool:
            return document.text in known if span.label == "canary" else not self.only

        if self.bench.inputs.quick or self.only:
            return rigged_policies.annotated(self.documents, wanted)
        import taciturn as tt

        (inner,) = tt.policy("spacy:low-entity").detectors
        planted = [d for d in self.documents if d.gold and d.gold[0].label == "canary"]
        told = {d.text: d.gold if d.text in known else () for d in planted}
        return tt.policy(rigged_policies.Rigged(inner, told), name="rigged")

    def screened(self, kind: Kind) -> ScreenedCorpus:
        wide = "conservative" if kind.mechanism == "crt" else "all-private"
        return texts.screen(self.documents, self.policy(kind.seen), wide)

    def run(self, kind: Kind) -> Row:
        b = replace(self.bench, documents=self.documents)
        lr = b.sizes.private_lr
        options: dict[str, Any] = {"redacted": b.public(), "private": b.noised(b.sizes.second_lr)}
        every = max(1, round(len(b.documents) * b.sizes.epochs / b.sizes.batch_size / 4))
        epsilon: float | None = EPSILON
        if kind.mechanism == "sgd":
            options, epsilon = b.public(), None
        elif kind.mechanism == "dpsgd":
            options, every = b.noised(lr), max(1, b.private["steps"] // 3)
        elif kind.mechanism == "crt":
            options = {"skeletons": False, "public": b.public(), "private": _batch(b, b.noised(lr, clip=1.0))}
        elif kind.light:  # what ten copies of one canary among so many words come to as a miss rate
            m = 6 * len(self.canaries.secrets) * self.copies / sum(len(d.text.split()) for d in self.documents)
            p = b.private
            noise = light_noise(p["rate"], p["steps"], min(m, 1.0), b.task.delta)
            options = {"light": b.noised(lr, noise["first"]), "private": b.noised(lr, noise["second"])}
            every, epsilon = max(1, p["steps"] // 3), None
        canaries = replace(self.canaries, every=every)
        return b.cell(
            f"{kind.key} {self.copies}x{len(canaries.secrets)}", kind.mechanism, f"recall {kind.seen:g}, only "
                f"{self.only}",
            options, epsilon, screened=lambda: self.screened(kind), canaries=canaries,
        )  # fmt: skip


def _batch(bench: Bench, options: dict[str, Any]) -> dict[str, Any]:
    """The same expected batch of a part of the records: a rate would be of those."""
    expected = max(1, round(bench.private["rate"] * len(bench.documents)))
    return {k: v for k, v in options.items() if k != "rate"} | {"batch": expected}


def attack(inputs: Inputs, work: Work, count: int, copies: int, only: bool = False) -> Attack:
    """``count`` canaries planted ``copies`` times each."""
    from taciturn.auditing.canaries.templates import Template, draw

    template = Template(TEXT, length=inputs.pick(2, 4, 6))
    first = FIRST[: template.length]
    secrets = (first, *draw(template, count - 1, inputs.seed, without=[first]))
    return Attack(jft_bench.bench("wikitext2", inputs, work), Canaries(template, secrets), copies, only)


Ends = Mapping[str, tuple[Runs, Runs]]
"""Where each curve ends, over its runs: perplexity, and exposure (the mean of the canaries), by name."""


def figure(attacked: Attack, kinds: Sequence[Kind], title: str) -> tuple[Plot, Table, Ends]:
    """The plot of the first run, a table of where each curve ends, and the ends."""
    many = len(attacked.canaries.secrets) > 1
    found = [_curves(each, kinds) for each in attacked.each_run()]
    series = [Series(name, curve[0], curve[1]) for name, (curve, _) in found[0].items()]
    chance = 1 / math.log(2)  # mean exposure of a secret that no model has seen (auditing.nulls)
    plot = Plot(
        "exposure", title, "perplexity", "mean exposure, bits" if many else "exposure, bits", tuple(series),
        level=("chance", chance), caption="A curve follows one run; a dot is a checkpoint. Down and left is better.",
    )  # fmt: skip
    rows = [{name: cells for name, (_, cells) in each.items()} for each in found]
    ends = {}
    for name, perplexity in attacked.bench.compared(rows).items():
        exposure = tuple(float(run[name][1] or 0) for run in rows)
        ends[name] = (perplexity, Runs(name, exposure, perplexity.floor))
    columns = ("model", "perplexity", "exposure (mean)", "highest of all", "ε, detected", "ε, missed")
    return plot, Table("Where each run ends", columns, merged(rows)), ends


Curve = tuple[tuple[float, ...], tuple[float, ...]]
"""Perplexities and exposures on the way."""


def _curves(attacked: Attack, kinds: Sequence[Kind]) -> dict[str, tuple[Curve, tuple[Cell, ...]]]:
    """Of one run: the curve of each name, and the cells of its end."""
    made: dict[str, tuple[Curve, tuple[Cell, ...]]] = {}
    many = len(attacked.canaries.secrets) > 1
    for kind in kinds:
        found = attacked.run(kind)
        split = found["scores"][0][1] if len(kind.names) == 2 else math.inf
        for name, chosen in zip(
            kind.names,
            ([p for p in found["points"] if p[0] <= split], [p for p in found["points"] if p[0] > split]),
            strict=False,
        ):
            if not chosen:
                continue
            x, y = tuple(p[1] for p in chosen), tuple(p[3] for p in chosen)
            made[name] = ((x, y), (x[-1], y[-1], chosen[-1][2] if many else None, *_claims(name, kind, found)))
    return made


def _claims(name: str, kind: Kind, found: Row) -> tuple[float | None, float | None]:
    if kind.mechanism == "sgd":
        return math.inf, math.inf
    if kind.mechanism == "jft" and name == kind.names[0] and not kind.light:
        return 0.0, math.inf
    if kind.mechanism == "jft" and name == kind.names[0]:
        return 0.0, None
    return epsilons(found)


def results(
    attacked: Attack, kinds: Sequence[Kind], title: str, orders: Callable[[Ends], list[Order]], *says: str
) -> Results:
    """orders: what the paper reads off the figure. says: what else is to be known."""
    plot, table, ends = figure(attacked, kinds, title)
    c = attacked.canaries
    most = math.log2(c.template.size)
    setting = (
        f"{attacked.bench.setting()} {len(c.secrets)} canar{'y' if len(c.secrets) == 1 else 'ies'} of "
        f"{c.template.length} digits, {attacked.copies} cop{'y' if attacked.copies == 1 else 'ies'} each; at most "
        f"{most:.1f} bits."
    )
    return Results(
        setting, (plot,), (table,), (*sentences(orders(ends)), *says, f"At most {most:.1f} bits are possible.")
    )
