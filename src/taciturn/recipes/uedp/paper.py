"""User-Entity Differential Privacy (Lai et al. 2022): its data sets, its δ, and words that several pages share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

DELTA = 1e-5


ANNOTATED = {"Org": ("ORG",), "Loc": ("LOC",), "Person": ("PER", "PERSON"), "Misc": ("MISC",)}
"""Labels of a category: spaCy's, and CoNLL-2003's own."""


@dataclass(frozen=True, slots=True)
class Annotated:
    """A data set that is not the paper's. labels: of its annotation, in upper case, by category. user: label of the span
    that names the user of a dialogue, which is then cut into turns, or "" where the set has users of its own."""

    name: str
    loader: str
    labels: Mapping[str, tuple[str, ...]] = field(hash=False)
    user: str = ""

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(self.labels)


@dataclass(frozen=True, slots=True)
class Published:
    """A data set of Table II. drawn: users a step for which the printed budgets come out (docs/guarantees.md §8).
    sensitive: sentences that hold an entity of a category."""

    name: str
    loader: str
    vocabulary: int
    sentences: int
    users: int
    drawn: int
    sensitive: Mapping[str, int] = field(hash=False)

    user: ClassVar[str] = ""
    labels: ClassVar[Mapping[str, tuple[str, ...]]] = ANNOTATED

    @property
    def categories(self) -> tuple[str, ...]:
        return tuple(name for name in self.sensitive if name != "All")

    @property
    def user_rate(self) -> float:
        return self.drawn / self.users

    def share(self, category: str) -> float:
        """Share of the sentences that hold an entity of the category."""
        return self.sensitive[category] / self.sentences


PUBLISHED = {
    each.name: each
    for each in (
        Published("CONLL-2003", "conll2003", 8_882, 14_040, 946, 50,
                  {"Org": 5_187, "Loc": 5_433, "Person": 4_406, "Misc": 3_438, "All": 11_176}),
        Published("AG", "agnews", 30_000, 112_000, 7_536, 500,
                  {"Org": 58_177, "Loc": 39_988, "GPE": 18_506, "PII": 42_683, "All": 67_157}),
        Published("SEC", "contracts", 12_651, 5_188, 1_592, 100,
                  {"Org": 1_955, "Loc": 273, "GPE": 60, "PII": 357, "All": 2_166}),
    )
}  # fmt: skip
OTHERS = {
    each.name: each
    for each in (
        Annotated(
            "CustomerSim", "customersim",
            {"Name": ("NAME",), "Address": ("ADDRESS",), "Phone": ("PHONE_NUMBER",), "Parcel": ("TRACKING_NUMBER",)},
            user="NAME",
        ),
        Annotated("Loans", "sec_contracts", {name: ANNOTATED[name] for name in ("Org", "Loc", "Person")}),
    )
}  # fmt: skip
"""Sets of the medium size. CustomerSim: simulated, so that a customer is known by the name that is given in a dialogue."""
SETS: Mapping[str, Published | Annotated] = {**PUBLISHED, **OTHERS}

NEEDS = (
    "CoNLL-2003 (by agreement), AG News and contracts in a folder given with --data, gpt2 or bert-base-uncased from "
    "the hub or --model, spaCy with an English pipeline, and a GPU with 24 GB"
)
READINGS = (
    "Both readings stand side by side: Algorithm 1 as printed, at the ε that the paper's Theorem 1 claims and at "
    "the ε that holds for it; and taciturn's `uedp`, whose ε is proved for every pair whose removal deletes at most "
    "k units (docs/guarantees.md §4.4)."
)
DIFFERS = (
    "Theorem 1 and Lemma 1 do not hold (docs/guarantees.md §8): the ε of the paper's axis is a claim.",
    "Algorithm 1 is run with the standard deviation it prints; the released code squares it, which for deviations "
    "below one is far less noise. The last row of the table has that.",
    "AG News names no source in the usual file, so users are runs of ten sentences; contracts are CUAD's, not the "
    "paper's filings.",
)
