"""The medium size of Just Fine-tune Twice: sentences and pairs of GLUE, and an encoder of which the end is trained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from taciturn.recipes import encoder
from taciturn.recipes.jft.data import Sizes
from taciturn.recipes.jft.paper import Task

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus
    from taciturn.text.document import Document

NEEDS = "glue (SST-2)"
NEEDS_ALL = "glue (SST-2, QNLI, MNLI, QQP)"
TASKS: tuple[str, ...] = ("sst2",)
FEW: tuple[str, ...] = ("sst2", "qnli", "mnli", "qqp")
"""Tasks of which a thousandth of the records are enough for a table."""
SHARES: tuple[float, ...] = (0.00155, 0.05)
"""Of the records, screened by hand: the first are 101, and the paper has 100 to 300."""
SIZES = Sizes(10**9, 10**9, 1, 64, 5e-4, 0, 0, 48)
"""Plain steps have the usual rate of a layer that is fine-tuned; those of noised steps are chosen (RATES)."""
PAIRS = replace(SIZES, test=2000, max_length=96)
"""Of tasks with two texts, whose test sets are larger."""
STEPS, BATCH = 60, 1000
"""Noised steps, and records expected in one: most of an epoch of SST-2. The paper has three epochs."""
HELD = 2000
"""Records of the training text that are kept out of it, to choose a learning rate by."""
RATES = (1e-3, 3e-3, 1e-2)
"""Learning rates of DP-SGD that are tried, with half the steps; jft's second phase has a third of the best."""
FILLED = ("low-contextual",)
"""Levels at which a row of ours stands beside jft: there much is masked."""
TRAINED = 1
"""Layers of the encoder, beside pooler and head."""
START = encoder.said(TRAINED)


def sizes(task: Task) -> Sizes:
    """Of a run of that task."""
    return SIZES if task.name in TASKS else PAIRS


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


def said(lr: float, held: int) -> str:
    """The model and what was chosen, in words."""
    rates = ", ".join(f"{each:g}" for each in RATES)
    chosen = f"learning rate of DP-SGD {lr:g}, the best of {rates} on {held:,} records held out"
    return f"{START}; {chosen}, of jft's second phase a third of that, of plain steps {SIZES.public_lr:g}"


def kept(folder: Path | None, screen: Callable[[], ScreenedCorpus]) -> ScreenedCorpus:
    """What ``screen`` gives, or what an earlier call has left in the folder that it writes to: spaCy takes minutes."""
    import taciturn as tt
    from taciturn.screening.corpus.manifest import MANIFEST

    if folder is None or not (folder / MANIFEST).exists():
        return screen()
    return tt.load_screened(folder)
