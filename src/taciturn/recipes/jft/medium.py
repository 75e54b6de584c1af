"""The medium size of Just Fine-tune Twice: SST-2, and an encoder of which the end is trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taciturn.recipes.jft.data import Sizes
from taciturn.recipes.recipe import Inputs

if TYPE_CHECKING:
    from taciturn.screening.corpus.screened import ScreenedCorpus

NEEDS = "glue (SST-2)"
TASKS: tuple[str, ...] = ("sst2",)
SIZES = Sizes(10**9, 10**9, 1, 64, 1e-2, 3e-2, 3e-3, 48)
"""Learning rates are those of docs/results.md, section 2, for the same encoder on a thirtieth of the sentences."""
STEPS, BATCH = 60, 1000
"""Noised steps, and records expected in one: most of an epoch of SST-2. The paper has three epochs."""
FILLED = ("low-contextual",)
"""Levels at which a row of ours stands beside jft: there much is masked."""
ENCODER = "sentence-transformers/all-MiniLM-L6-v2"
FROZEN = ("*.embeddings.*", "*.encoder.*")
START = "all-MiniLM-L6-v2 or the --model given, of which pooler and head are trained"


def encoder(inputs: Inputs) -> dict[str, Any]:
    """The table of settings of the model: the user's or ENCODER, layers as they are. So a noised step of a thousand
    sentences costs little more than reading them, and noise falls on a hundredth of the weights."""
    return {"name": inputs.model or ENCODER, "frozen": FROZEN}


def kept(folder: Path | None, screen: Callable[[], ScreenedCorpus]) -> ScreenedCorpus:
    """What ``screen`` gives, or what an earlier call has left in the folder that it writes to: spaCy takes minutes."""
    import taciturn as tt
    from taciturn.screening.corpus.manifest import MANIFEST

    if folder is None or not (folder / MANIFEST).exists():
        return screen()
    return tt.load_screened(folder)
