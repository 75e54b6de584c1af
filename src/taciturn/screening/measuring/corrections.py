"""Manual screening: export records for a person to correct, and screen again with what they marked.

A correction adds to what π finds in that record; a mark that π made stays, whatever the person says, so that nobody can
unprotect a text by leaving a line out. The corrected policy is an ordinary one (``policies/corrections.py``): every rule of
the pipeline holds for it, and its identity covers the corrections.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.labels import LabelSpan, Line, Population, read, write
from taciturn.screening.measuring.sample import draw, read_population
from taciturn.screening.pipeline import screen
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.corrections import Corrections
from taciturn.screening.policies.public import Public
from taciturn.screening.redact import ADJACENT, maximal
from taciturn.text.readers import Corpus
from taciturn.text.spans import Span, merge

FILE = "corrections.jsonl"
"""The corrections' name in the screened folder that was made with them."""


def export(
    screened: ScreenedCorpus, pi: Policy, n: int, part: Population = "all", seed: int | None = None
) -> list[Line]:
    """A simple random sample of records with what π finds in them, for a person to correct.

    Raises MismatchError if ``pi`` is not the policy of this corpus.
    """
    if pi.identity != screened.manifest.policies.pi.identity:
        raise MismatchError("this is not the policy the corpus was screened with; give the same names and files (-p)")
    lines = draw(screened, n, part=part, seed=seed)
    wanted = {line.id for line in lines}
    redacted = {record.id: record.redacted for record in read_population(screened) if record.id in wanted}
    salt = secrets.token_hex(16)
    found = pi.find([line.text for line in lines])
    return [
        line.model_copy(
            update={"spans": _labelled(line.text, detection.spans), "redacted": redacted[line.id], "salt": salt}
        )
        for line, detection in zip(lines, found, strict=True)
    ]


def _labelled(text: str, spans: Iterable[Span]) -> tuple[LabelSpan, ...]:
    """Maximal spans, each under the label of the longest of those in it."""
    spans = list(spans)
    made = []
    for start, end in maximal(text, spans, ADJACENT):
        inside = [s for s in spans if start <= s.start and s.end <= end]
        label = max(inside, key=lambda s: s.end - s.start).label if inside else ""
        made.append(LabelSpan(start=start, end=end, label=label[:40] or "secret"))
    return tuple(made)


@dataclass(frozen=True, slots=True)
class Corrected:
    """records: lines that are done. changed: those in which the person marked something more. added: spans that π does not
    wholly cover. kept: spans of π that the person took away; they stay masked."""

    records: int
    changed: int
    added: int
    kept: int


def compare(screened: ScreenedCorpus, pi: Policy, lines: Sequence[Line]) -> Corrected:
    """What the corrections change. Raises MismatchError for a line of another corpus, DataError if no line is done."""
    done = {line.id: line for line in lines if line.label_status == "done"}
    if not done:
        raise DataError('no line of the corrections has "label_status": "done"; set it on each line that was looked at')
    originals = {record.id: record.original for record in read_population(screened) if record.id in done}
    for line in done.values():
        if line.id not in originals:
            raise MismatchError(f"record '{line.id}' is not in this screened corpus; name the folder it came from")
        line.agrees_with(originals[line.id])
    changed = added = kept = 0
    for line, detection in zip(done.values(), pi.find([line.text for line in done.values()]), strict=True):
        before = merge(detection.spans)
        after = merge(Span(s.start, s.end) for s in line.spans)
        new = sum(not any(a <= start and end <= b for a, b in before) for start, end in after)
        changed, added = changed + (new > 0), added + new
        kept += sum(not any(start < b and a < end for a, b in after) for start, end in before)
    return Corrected(len(done), changed, added, kept)


def corrected_policy(pi: Policy, path: Path, name: str | None = None) -> Policy:
    """π with the corrections of a file. Raises UsageError if π has corrections already."""
    if any(isinstance(d, Corrections) for d in pi.detectors):
        raise UsageError("this policy has corrections already; put all corrected lines of one export into one file")
    return Policy((*pi.detectors, Corrections.read(path)), name or f"{pi.name},corrections:{path}")


def rescreen(
    screened: ScreenedCorpus,
    corpus: Corpus,
    pi: Policy,
    conservative: Policy,
    path: Path,
    out: Path,
    public: Public | None = None,
) -> ScreenedCorpus:
    """Screen the same input again with the corrections of ``path``, under the options of ``screened``.

    The corrections are copied into ``out`` (mode 0600), so that the policy can be made again. Raises MismatchError if
    ``corpus`` is another input or is read otherwise.
    """
    manifest = screened.manifest
    if dict(corpus.digests()) != {i.name: i.digest for i in manifest.inputs}:
        raise MismatchError("these are not the files this corpus was screened from; name the same files")
    compare(screened, pi, read(path))
    done = screen(
        corpus,
        corrected_policy(pi, path, f"{pi.name},corrections:{out / FILE}"),
        conservative,
        unit=manifest.unit,  # type: ignore[arg-type]
        dedup=manifest.dedup if manifest.order == "redact-first" else "suspicious",  # type: ignore[arg-type]
        order=manifest.order,  # type: ignore[arg-type]
        skeletons=manifest.skeletons,
        miss_rate=manifest.miss_rate,
        miss_seed=manifest.miss_seed,
        public=public,
        max_bad=manifest.counts.quarantined,
        keep_originals=manifest.originals,
        out=out,
    )
    if done.counts.read != manifest.counts.read:
        raise MismatchError(
            f"{done.counts.read} records where the first screening read {manifest.counts.read}: the files were read with "
            "other options; give those of the first screening"
        )
    write(out / FILE, read(path))
    return done
