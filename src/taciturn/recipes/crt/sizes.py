"""Sizes of CRT's experiments, the rows they compare, and what the paper calls them."""

from __future__ import annotations

from dataclasses import dataclass

from taciturn.recipes.cells import Row

DELTA = 8e-5
EPSILON = 3.0
"""ε of the noised rows at the end of training, by substitution. The text does not print the paper's."""
CANARIES, COPIES = 10, 20
KINDS = ("LSTM", "GPT")


@dataclass(frozen=True, slots=True)
class Setting:
    """Sizes of one data set and of two kinds of model.

    digits: of a canary. group: texts a group. epochs, lr: of the noiseless steps, and of the noised ones ``steps`` and
    ``private_lr``; pairs are of the LSTM from scratch and of the GPT. CRT as published alternates as often as it has epochs.
    points: utilities on the way.
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
    points: int = 6

    def public(self, kind: str) -> Row:
        """Options of noiseless steps."""
        at = KINDS.index(kind)
        optimiser = {"lr": self.lr[at], "schedule": "cosine", "warmup": 0.05, "max_grad_norm": 1.0}
        return {"epochs": self.epochs[at], "batch_size": self.batch_size, "optimiser": optimiser}

    def private(self, kind: str) -> Row:
        """Options of noised steps; the noise is calibrated to ε."""
        return {"steps": self.steps, "batch": self.batch, "optimiser": {"lr": self.private_lr[KINDS.index(kind)]}}


SMOKE = Setting(
    dialogues=6, test=10, digits=2, gammas=(0.0, 0.5), seeds=1, group=2, epochs=(2, 1), batch_size=16, lr=(1e-2, 3e-3),
    steps=2, batch=16, private_lr=(4e-3, 2e-3), lstm=16, points=2,
)  # fmt: skip
QUICK = Setting(
    dialogues=120, test=150, digits=4, gammas=(0.0, 0.1, 0.3, 0.5), seeds=1, group=10, epochs=(10, 5), batch_size=32,
    lr=(1e-2, 3e-3), steps=40, batch=48, private_lr=(4e-3, 2e-3), lstm=64,
)  # fmt: skip
FULL = Setting(
    dialogues=10_000, test=1_000, digits=6, gammas=(0.0, 0.1, 0.2, 0.3, 0.4, 0.5), seeds=5, group=20, epochs=(50, 10),
    batch_size=256, lr=(5e-3, 5e-4), steps=2_000, batch=256, private_lr=(1e-3, 5e-4), lstm=200, points=10,
)  # fmt: skip

ROWS: dict[str, tuple[str, ...]] = {
    "redacted": ("LSTM", "GPT"),
    "S-DP": ("LSTM",),
    "DPSGD": ("LSTM", "GPT"),
    "CRT": ("LSTM", "GPT"),
    "CRT with skeletons": ("LSTM", "GPT"),
}
"""The paper's rows by the kinds of model it has them for, and ours. "redacted" is its Non-private with mask."""
NAMES = {"redacted": "Non-private", "CRT with skeletons": "CRT with skeletons (ours)"}


def name_of(kind: str, row: str) -> str:
    """As the paper names its models.

    >>> name_of("LSTM", "redacted")
    'Non-private-LSTM'
    """
    base = NAMES.get(row, row)
    return f"CRT-{kind} with skeletons" if row == "CRT with skeletons" else f"{base}-{kind}"
