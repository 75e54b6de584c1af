"""Just Fine-tune Twice (Shi et al. 2022): its tasks, its numbers, and words that several pages share."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEVELS = ("low-entity", "high-entity", "low-contextual", "high-contextual")
"""The four detectors of section 4, as policies `spacy:LEVEL`."""
EPSILON = 3.0  # section 6
CLIP = 0.1  # Table 5

NEEDS = (
    "the data sets from the hub (ABCD: a folder given with --data), gpt2 and roberta-base from the hub or --model, "
    "spaCy with an English pipeline, and a GPU with 24 GB: each cell is hundreds of steps at batch 512 and more"
)
PAPER = "ε = 3 (Table 5), clip 0.1, noise calibrated beforehand; GPT-2 small and RoBERTa base; spaCy's detectors"
READING = (
    "Theorem 1 takes the ε of add and remove for neighbours that substitute a secret (Definition 3). Here σ is "
    "calibrated by substitution (docs/guarantees.md §4.1); what the paper's accounting says of the same noise "
    "stands beside it"
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
