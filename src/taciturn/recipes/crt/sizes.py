"""Sizes of CRT's experiments, the rows they compare, and what the paper calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from taciturn.recipes.cells import Row
from taciturn.recipes.recipe import Size

DELTA = 8e-5
EPSILON = 3.0
"""ε of the noised rows at the end of training, by substitution. The text does not print the paper's."""
CANARIES, COPIES = 10, 20
KINDS = ("LSTM", "GPT")
OURS = ("CRT with skeletons", "CRT with values", "CRT with common values")
"""Skeletons of private records in the noiseless phase; masks filled from a noised table of values; and common values left
where they stand."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Sizes of one data set and of two kinds of model.

    digits: of a canary. group: texts a group. epochs, lr: of the noiseless steps, and of the noised ones ``steps`` and
    ``private_lr``, for the rows of RAW ``raw_lr`` where there is one; pairs are of the LSTM from scratch
    and of the GPT. CRT as published alternates as often as it has epochs.
    points: utilities on the way. rows, kinds, sets: which rows, of which kinds of model, on which data sets.
    """

    dialogues: int
    test: int
    digits: int
    gammas: tuple[float, ...]
    seeds: int
    group: int
    epochs: tuple[int, int]
    batch_size: int
    lr: tuple[float, float]
    steps: int
    batch: int
    private_lr: tuple[float, float]
    lstm: int
    raw_lr: tuple[float, float] | None = None
    points: int = 6
    rows: tuple[str, ...] = ("redacted", "S-DP", "DPSGD", "CRT", "CRT with skeletons")
    kinds: tuple[str, ...] = KINDS
    sets: tuple[str, ...] = ("multiwoz", "customersim")

    @property
    def lines(self) -> list[tuple[str, str]]:
        """(kind, row) of every line, by kind."""
        return [(kind, row) for kind in self.kinds for row in self.rows if kind in ROWS[row]]

    def public(self, kind: str) -> Row:
        """Options of noiseless steps."""
        at = KINDS.index(kind)
        optimiser = {"lr": self.lr[at], "schedule": "cosine", "warmup": 0.05, "max_grad_norm": 1.0}
        return {"epochs": self.epochs[at], "batch_size": self.batch_size, "optimiser": optimiser}

    def private(self, kind: str, row: str) -> Row:
        """Options of noised steps; the noise is calibrated to ε."""
        lr = (self.raw_lr if row in RAW else None) or self.private_lr
        return {"steps": self.steps, "batch": self.batch, "optimiser": {"lr": lr[KINDS.index(kind)]}}


SMOKE = Setting(
    dialogues=6, test=10, digits=2, gammas=(0.0, 0.5), seeds=1, group=2, epochs=(2, 1), batch_size=16, lr=(1e-2, 3e-3),
    steps=2, batch=16, private_lr=(4e-3, 2e-3), lstm=16, points=2,
)  # fmt: skip
QUICK = Setting(
    dialogues=120, test=150, digits=4, gammas=(0.0, 0.1, 0.3, 0.5), seeds=1, group=10, epochs=(10, 5), batch_size=32,
    lr=(1e-2, 3e-3), steps=40, batch=48, private_lr=(4e-3, 2e-3), lstm=64,
)  # fmt: skip
MEDIUM = Setting(
    dialogues=10_000, test=1_000, digits=6, gammas=(0.0, 0.1, 0.5), seeds=3, group=20, epochs=(2, 1), batch_size=64,
    lr=(5e-3, 1e-3), steps=500, batch=256, private_lr=(5e-3, 5e-4), raw_lr=(1.5e-2, 5e-4), lstm=100,
    rows=("redacted", "S-DP as accounted", "DPSGD", "CRT", *OURS), kinds=("LSTM",),
)  # fmt: skip
FULL = Setting(
    dialogues=10_000, test=1_000, digits=6, gammas=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5), seeds=5, group=20, epochs=(50, 10),
    batch_size=256, lr=(5e-3, 5e-4), steps=2_000, batch=256, private_lr=(1e-3, 5e-4), lstm=200, points=10,
    rows=("redacted", "S-DP", "S-DP as accounted", "DPSGD", "CRT", *OURS),
)  # fmt: skip
SIZES: Mapping[Size, Setting] = {"smoke": SMOKE, "quick": QUICK, "medium": MEDIUM, "full": FULL}
APART: Mapping[tuple[Size, str], Mapping[str, Any]] = {
    ("medium", "multiwoz"): {
        "epochs": (6, 1), "steps": 504,
        "rows": ("redacted", "S-DP as accounted", "DPSGD", "CRT", "CRT with skeletons", "CRT with values"),
    },
}  # fmt: skip
"""What differs in one data set of a size: MultiWOZ has fewer turns, so there is time for six plain epochs."""


def of(size: Size, data: str) -> Setting:
    """The setting of a data set in a size."""
    return replace(SIZES[size], **APART.get((size, data), {}))


ROWS: dict[str, tuple[str, ...]] = {
    "redacted": ("LSTM", "GPT"),
    "S-DP": ("LSTM",),
    "DPSGD": ("LSTM", "GPT"),
    "CRT": ("LSTM", "GPT"),
    "CRT with skeletons": ("LSTM", "GPT"),
    "CRT with values": ("LSTM", "GPT"),
    "CRT with common values": ("LSTM", "GPT"),
    "S-DP as accounted": ("LSTM",),
}
"""The paper's rows by the kinds of model it has them for, and ours. "redacted" is its Non-private with mask. "S-DP as
accounted" has the σ for which the paper's accounting, that of DP-SGD with sampling and by add and remove, gives ε."""
SELECTIVE = ("S-DP", "S-DP as accounted")
RAW = (*SELECTIVE, "DPSGD", "CRT", "CRT with skeletons")
"""Rows whose noised steps teach most of what is learned, not the last of it: their rate is chosen apart."""
NAMES = {"redacted": "Non-private"}


def name_of(kind: str, row: str) -> str:
    """As the paper names its models.

    >>> name_of("LSTM", "redacted")
    'Non-private-LSTM'
    """
    base, *rest = NAMES.get(row, row).split(" ", 1)
    return " ".join([f"{base}-{kind}", *rest])
