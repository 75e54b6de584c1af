"""The steps that make a model: screen, plan, train. Each returns a few words, and "done" or "kept"."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from taciturn.errors import UsageError
from taciturn.mechanisms import run as runs
from taciturn.mechanisms.cost import cost_lines
from taciturn.mechanisms.planning import within_target
from taciturn.project import split
from taciturn.project.context import Shared
from taciturn.project.progress import paid_for, resumable
from taciturn.project.speaking import notes
from taciturn.screening import pipeline
from taciturn.screening.corpus.manifest import MANIFEST

if TYPE_CHECKING:
    from taciturn.text.segment import Unit


def screen(shared: Shared) -> tuple[str, str]:
    folder, chosen = shared.screened_folder, shared.project.settings.screen
    state = "kept"
    if not (folder / MANIFEST).is_file():
        state = "done"
        if shared.planted is not None:  # kept where the report and the run are not: it holds the secrets
            shared.planted.write(shared.project.folder / f"canaries-{folder.name}.json")
        pi, wide = chosen.policies(shared.project.base)
        if (public := chosen.public(shared.project.base)) is not None:  # the corpus in memory has other digests
            public.apart_from(shared.project.settings.read.corpus(shared.project.base).digests())
        for note in notes(shared.texts.corpus, pi, wide):
            shared.show.say(f"note: {note}")
        with shared.show.screening(shared.project.path.stem) as notify:
            shared.screened = pipeline.screen(
                shared.texts.corpus,
                pi,
                wide,
                unit=chosen.unit,
                clean=chosen.clean,
                clean_most=chosen.clean_most,
                dedup=chosen.dedup,
                order=chosen.order,
                skeletons=chosen.skeletons,
                bridge=chosen.bridge,
                public=public,
                max_bad=chosen.max_bad,
                keep_originals=chosen.originals,
                out=folder,
                workers=chosen.workers,
                engine=chosen.engine,
                notify=notify,
            )
    counts = shared.screened.counts
    return f"{counts.read:,} records, {counts.public:,} public, {counts.private:,} private", state


def plan(shared: Shared) -> tuple[str, str]:
    within_target(shared.plan)
    words = cost_lines(shared.plan) if shared.plan.target.delta is not None else ["no δ, so nothing is promised"]
    return "; ".join(words), "done"


def train(shared: Shared) -> tuple[str, str]:
    key = shared.train_key
    before = _paid_for(shared, key)
    if key not in shared.state.folders.get("runs", []) and before and not shared.again:
        raise UsageError(_refusal(before, shared.project.path))
    folder = shared.run_folder
    if runs.Run(folder).finished:
        return f"{folder}", "kept"
    resume = resumable(folder)
    name = shared.project.name + ("" if folder.name == "1" else f" {folder.name}")
    config, valid = shared.config.model_copy(update={"name": name}), None
    if shared.own_validation:
        outside = split.records(shared.texts.outside, cast("Unit", shared.screened.manifest.unit))
        valid = outside[: config.train.valid_limit]
    with shared.show.training(name, config.epsilon) as notify:
        runs.train(config, folder, screened=shared.screened, valid=valid, resume=resume, notify=notify)
    return f"{folder}" + (" (resumed)" if resume else ""), "done"


def _paid_for(shared: Shared, key: str) -> list[Path]:
    """Runs of this project by other plans that took a step, which is paid for whether it ended or not."""
    others = [i for i, each in enumerate(shared.state.folders.get("runs", []), 1) if each != key]
    folders = [shared.project.folder / "runs" / str(i) for i in others]
    return [folder for folder in folders if paid_for(folder)]


def _refusal(before: list[Path], project: Path) -> str:
    return (
        f"the settings are not those of {before[-1]}, and training again reads the private text again: it spends its own ε "
        "on top of what was spent, and the certificate will say so. Put the settings back to keep that run, or agree with: "
        f"taciturn run {project} --again"
    )
