"""`taciturn.screen`: a screening that shows how far it is. Apart from api.py, whose imports need torch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import PurePath
from typing import Unpack

from taciturn.display import screening
from taciturn.screening import pipeline
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.policies.base import Policy
from taciturn.text.readers import Corpus
from taciturn.typed import ScreenOptions


def screen(
    corpus: Corpus,
    pi: Policy,
    conservative: Policy,
    *,
    progress: bool = True,
    notify: Callable[[pipeline.Progress], None] = lambda _: None,
    **options: Unpack[ScreenOptions],
) -> ScreenedCorpus:
    """Split ``corpus`` into public and private records, these redacted by ``pi``. progress: a bar on a terminal and in a
    notebook. notify: called with each :class:`taciturn.screening.pipeline.Progress`. options and errors: those of
    :func:`taciturn.screening.pipeline.screen`, e.g. ``out="screened"``."""
    label = PurePath(options.get("out") or "screening").name
    with screening(label, progress) as display:

        def each(p: pipeline.Progress) -> None:
            display(p)
            notify(p)

        return pipeline.screen(corpus, pi, conservative, notify=each, **options)
