"""The medium size of Just Fine-tune Twice: of GLUE and ABCD, and a small model of which the end is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.recipes import encoder, writer
from taciturn.recipes.jft.data import Sizes
from taciturn.recipes.jft.paper import LEVELS, Task
from taciturn.recipes.recipe import Inputs

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.text.document import Document

NEEDS = "glue (SST-2)"
NEEDS_BOTH = f"{NEEDS}, and abcd with --writer"
NEEDS_ALL = "glue (SST-2, QNLI, MNLI, QQP)"
TASKS: tuple[str, ...] = ("sst2",)
WRITTEN: tuple[str, ...] = ("abcd",)
FEW: tuple[str, ...] = ("sst2", "qnli", "mnli", "qqp")
"""Tasks of which a thousandth of the records are enough for a table."""
SHARES: tuple[float, ...] = (0.00155, 0.05)
"""Of the records, screened by hand: the first are 101, and the paper has 100 to 300."""
HELD = 2000
"""Records of the training text that are kept out of it, to choose a learning rate by."""
FILLED = ("low-contextual",)
"""Levels at which a row of ours stands beside jft: there much is masked."""
TRAINED = 1
"""Layers of the encoder, beside pooler and head."""


@dataclass(frozen=True, slots=True)
class Medium:
    """One kind of task. steps, batch: noised steps, and records expected in one. rates: learning rates of DP-SGD that are
    tried, with half the steps; jft's second phase has a third of the best. levels: of Table 2. start, model: the model in
    words, and its table of settings."""

    sizes: Sizes
    steps: int
    batch: int
    rates: tuple[float, ...]
    levels: tuple[str, ...]
    start: str
    model: Callable[[Inputs], dict[str, Any]]

    def epochs(self, records: int) -> int:
        """Plain ones over a few records: about as many steps as noised ones, one at least."""
        return max(1, round(self.steps / ceil(records / self.sizes.batch_size)))

    def said(self, lr: float, held: int) -> str:
        """The model and what was chosen, in words."""
        rates = ", ".join(f"{each:g}" for each in self.rates)
        chosen = f"learning rate of DP-SGD {lr:g}, the best of {rates} on {held:,} records held out"
        return f"{self.start}; {chosen}, of jft's second phase a third of that, of plain steps {self.sizes.public_lr:g}"


SENTENCES = Medium(
    Sizes(10**9, 10**9, 1, 64, 5e-4, 0, 0, 48), steps=60, batch=1000, rates=(1e-3, 3e-3, 1e-2), levels=LEVELS,
    start=encoder.said(TRAINED), model=partial(encoder.encoder, trained=TRAINED),
)  # fmt: skip
"""Plain steps have the usual rate of a layer that is fine-tuned; noised steps are most of an epoch of SST-2, where the paper
has three."""
PAIRS = replace(SENTENCES, sizes=replace(SENTENCES.sizes, test=2000, max_length=96))
"""Of tasks with two texts, whose test sets are larger."""
TURNS = Medium(
    Sizes(10**9, 2000, 1, 64, 1e-3, 0, 0, 64), steps=300, batch=512, rates=(1e-3, 3e-3, 1e-2), levels=LEVELS[2:],
    start=writer.SAID, model=writer.writer,
)  # fmt: skip
"""Of dialogues, a turn a record; the levels are those that the paper's text has numbers of for language models."""


def of(task: Task) -> Medium:
    """Of a run of that task."""
    return SENTENCES if task.name in TASKS else PAIRS if task.classifies else TURNS


def tasks(inputs: Inputs) -> tuple[str, ...]:
    """Of Table 2: one that generates where there is a model for it."""
    return (*TASKS, *WRITTEN) if inputs.writer else TASKS


def thousandth(task: Task, documents: Sequence[Document]) -> Sequence[Document]:
    """As many of the documents, evenly spread, as a thousandth of the whole task's records are."""
    count = round(task.records / 1000)
    return documents[:: max(1, len(documents) // count)][:count]


def held_out(documents: tuple[Document, ...]) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """(what is trained on, the HELD evenly spread ones that are not; of few a third)."""
    stride = max(3, len(documents) // HELD)
    held = documents[::stride][:HELD]
    apart = {each.id for each in held}
    return tuple(each for each in documents if each.id not in apart), held


def kept(folder: Path | None, screen: Callable[[], ScreenedCorpus]) -> ScreenedCorpus:
    """What ``screen`` gives, or what an earlier call has left in the folder that it writes to: spaCy takes minutes."""
    import taciturn as tt
    from taciturn.screening.corpus.manifest import MANIFEST

    if folder is None or not (folder / MANIFEST).exists():
        return screen()
    return tt.load_screened(folder)
