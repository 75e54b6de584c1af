"""Certify a finished run: measure what the labels and groups allow, then let the accountant speak."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from taciturn.errors import DataError, UsageError
from taciturn.mechanisms.corpus_history import chosen, with_others
from taciturn.mechanisms.lock import reading
from taciturn.mechanisms.recall_evidence import DEFAULT_CONFIDENCE, measured, read_recall
from taciturn.mechanisms.registry import guarantees
from taciturn.mechanisms.run import Run
from taciturn.mechanisms.values import standing
from taciturn.privacy.certificates.certificate import Certificate, issue, load_json
from taciturn.privacy.guarantees.evidence import Evidence
from taciturn.screening.corpus.manifest import MANIFEST, Manifest
from taciturn.screening.corpus.occurrences import places, regardless_of_case
from taciturn.screening.corpus.screened import Part, ScreenedCorpus, load
from taciturn.text.atomic import write_text
from taciturn.training.plan import LEARNED


def certify(
    folder: Path,
    *,
    groups: Mapping[str, Sequence[str]] | None = None,
    labelled: int | None = None,
    missed: int | None = None,
    missed_by_both: int | None = None,
    recall: Path | None = None,
    confidence: float | None = None,
    selected: bool = False,
    private_validation: bool | None = None,
) -> Certificate:
    """Write certificate.json into a run's folder and return it.

    groups: secrets by name; the screened corpus says in how many records each group still is, and only that number is
    kept (CRT Theorem 8.2). labelled, missed, missed_by_both: counts of a labelled sample, instead of the annotations the
    corpus came with (Theorem 8.3). recall: a file of `taciturn recall -o` that has them. confidence: of each one-sided
    bound; the file's if not given, else 0.95. selected: the run is the best of those whose number was drawn beforehand
    (`taciturn plan --selection`): the certificate has the price of choosing, and not how many they were. private_validation:
    whether decisions could look at text that is not known to be public, where that is known better than when it was trained.
    """
    with reading(folder):
        labels = labelled, missed, missed_by_both
        return _certify(folder, groups or {}, labels, recall, confidence, selected, private_validation)


def _certify(
    folder: Path,
    groups: Mapping[str, Sequence[str]],
    labels: tuple[int | None, int | None, int | None],
    recall: Path | None,
    confidence: float | None,
    selected: bool,
    private_validation: bool | None,
) -> Certificate:
    run, (labelled, missed, missed_by_both) = Run(folder), labels
    if not run.finished:
        _ = run.model_folder  # an unfinished run has nothing to certify
        raise DataError(f"{folder} was stopped before its run ended: finish it with taciturn train --resume")
    evidence = Evidence.from_json(load_json(folder / "evidence.json"))
    if groups:
        screened = load(run.config.corpus)
        noised, open_ = noised_parts(folder), open_parts(folder)
        left = standing(screened, folder) if "common" in open_ else []
        in_open = {name: _standing_in(left, secrets) for name, secrets in groups.items()}
        evidence = replace(
            evidence,
            groups=group_sizes(screened, noised, groups),
            open_groups=tuple((name, max(k, in_open[name])) for name, k in group_sizes(screened, open_, groups)),
        )
    if labelled is not None:
        evidence = replace(evidence, label_unit="secret", population=None, miss_bounds=None)
        evidence = replace(evidence, labelled=labelled, missed_by_pi=missed, missed_by_both=missed_by_both)
    if recall is not None:
        if labelled is not None:
            raise UsageError("give the labelled sample as counts or as a recall file, not both")
        manifest = Manifest.read(Path(run.config.corpus) / MANIFEST)
        evidence = measured(evidence, read_recall(recall), manifest, confidence)
    else:
        evidence = replace(evidence, confidence=confidence or DEFAULT_CONFIDENCE)
    if private_validation is not None:
        evidence = replace(evidence, private_validation=private_validation)
    count = chosen if selected else with_others
    evidence = count(evidence, folder, Path(run.config.corpus))
    write_text(folder / "evidence.json", json.dumps(evidence.to_json(), indent=1, sort_keys=True))
    certificate = issue(folder, guarantees, {name: version(name) for name in ("torch", "transformers", "numpy")})
    certificate.write(folder / "certificate.json")
    (folder / "certificate.json.sig").unlink(missing_ok=True)  # it was of the certificate before this one
    return certificate


def _standing_in(left: Sequence[Sequence[str]], secrets: Sequence[str]) -> int:
    """In how many records a value that was left standing holds one of the secrets, letter case aside."""
    wanted = [regardless_of_case(secret) for secret in secrets if secret]
    return sum(any(places(value, wanted) for value in values) for values in left)


def group_sizes(
    screened: ScreenedCorpus, parts: Sequence[Part], groups: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, int], ...]:
    """(name, k) of each group: the most of its records that change in a part that noised steps read."""
    return tuple(
        (name, max((screened.group_size(secrets, part) for part in parts), default=0))
        for name, secrets in sorted(groups.items())
    )


def open_parts(folder: Path) -> list[Part]:
    """Of the parts that are the same for both neighbours if the policies mark every secret: those that a run's steps without
    noise read, or its tokenizer was learned from, by its plan.json."""
    plan = load_json(folder / "plan.json")
    plain = {part for phase in plan["phases"] if phase["event"]["event"] == "non-private" for part in phase["reads"]}
    if (plan.get("model") or {}).get("tokenizer", "").startswith(LEARNED):
        plain.add("public")
    return sorted(plain & {"public", "skeletons", "common"})


def noised_parts(folder: Path) -> list[Part]:
    """The parts of the screened corpus that a run's noised phases read, from its plan.json."""
    phases = load_json(folder / "plan.json")["phases"]
    return sorted({part for phase in phases if phase["event"]["event"] != "non-private" for part in phase["reads"]})
