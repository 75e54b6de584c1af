"""All the attacks on one model, from the inputs an auditor has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from taciturn.auditing.bounds import eps_lower_exposure_once
from taciturn.auditing.canaries import Planted
from taciturn.auditing.compare import Audited, compared
from taciturn.auditing.exposure import exposure
from taciturn.auditing.extraction import extraction
from taciturn.auditing.finding import Finding
from taciturn.auditing.generation import Decoding
from taciturn.auditing.known import Known, of_canaries, read_known
from taciturn.auditing.membership import Score, group_membership, membership
from taciturn.auditing.onerun import OneRun
from taciturn.auditing.personal import Finder, Masked, gold, tagged
from taciturn.auditing.pii import pii_extraction, pii_inference, pii_reconstruction
from taciturn.auditing.scores import Model
from taciturn.errors import UsageError, nearest
from taciturn.models.hf import load_exported
from taciturn.privacy.certificate import CERTIFICATE, Certificate
from taciturn.privacy.guarantee import Guarantee
from taciturn.screening.policies import policy as policy_of
from taciturn.text.document import Document, Record

MEMBERSHIP = ("membership", "group-membership")
PERSONAL = ("pii-extraction", "pii-reconstruction", "pii-inference")
ATTACKS = ("exposure", *MEMBERSHIP, "extraction", *PERSONAL)

Text = str | Document | Record
Source = str | Path | tuple[Any, Any]
"""A run folder, a model folder, or (model, tokenizer)."""


def audit(
    run: Source,
    attacks: Sequence[str] = ("exposure",),
    *,
    canaries: Planted | str | Path | None = None,
    copies: int | None = None,
    secrets: Sequence[Known] | str | Path | None = None,
    members: Sequence[Text] | None = None,
    nonmembers: Sequence[Text] | None = None,
    reference: Source | None = None,
    references: Sequence[Source] = (),
    population: Sequence[str] | None = None,
    score: Score = "loss",
    group_size: int = 20,
    base: Source | None = None,
    policy: Finder | str | Sequence[str] | None = None,
    decoding: Decoding = Decoding(),  # noqa: B008 — frozen
    samples: int | None = None,
    probability: float = 0.5,
    seed: int = 0,
) -> list[Finding]:
    """Attack a model; one finding per name in ``attacks``. Any model folder will do, also one not trained here.

    canaries: what was planted, or the path of the ``canaries.json`` that says so; secrets: known secrets in their contexts
    for extraction, or a file of :func:`taciturn.auditing.known.read_known`. copies: records that hold one canary, as
    planted by default; 1 where deduplication left one. members, nonmembers: texts trained on, and texts of the same kind
    never seen, one random split. reference, references, population, score: see
    :func:`taciturn.auditing.membership.membership`. base: the model before training, for what it says anyway. policy: what
    tags personal data; documents or records with gold spans bring their own, but samples need a policy. decoding: of
    extraction and samples. samples: n of extraction (100) and of each attack on personal data. probability: p of extraction.

    Where a certificate lies beside the model, the lower bound on ε of exposure and membership is compared with its ε of the
    same notion, relation and unit. Raises UsageError for an unknown attack or a missing input.
    """
    _check(attacks, canaries, secrets, members, nonmembers, policy)
    model, tokenizer = _load(run)
    others = [_load(each) for each in (*([] if reference is None else [reference]), *references)]
    before = None if base is None else _load(base)
    finder = _finder(policy)
    statements = _statements(run)
    planted = Planted.read(Path(canaries)) if isinstance(canaries, str | Path) else canaries
    inside, outside = _texts(members), _texts(nonmembers)
    member: dict[str, Any] = {"references": others, "population": population, "score": score, "seed": seed}
    drawn: dict[str, Any] = {"base": before, "decoding": decoding, "seed": seed}
    tags: dict[str, Any] = dict(drawn)
    if samples is not None:
        tags["samples"] = samples

    def spans(side: Sequence[Text] | None) -> list[Masked]:
        annotated = [each for each in side or () if not isinstance(each, str)]
        plain = [each for each in side or () if isinstance(each, str)]
        return [*gold(annotated), *(tagged(plain, finder) if finder is not None and plain else [])]

    def attacked(attack: str) -> Finding:
        match attack:
            case "exposure":
                assert planted is not None
                found = exposure(model, tokenizer, planted.template, planted.secrets, seed=seed)
                return _exposed(found, planted, copies, statements)
            case "membership" | "group-membership":
                size = group_size if attack == "group-membership" else 1
                if attack == "membership":
                    found = membership(model, tokenizer, inside, outside, **member)
                else:
                    found = group_membership(model, tokenizer, inside, outside, group_size=size, **member)
                return _told(found, size, statements)
            case "extraction":
                known = read_known(Path(secrets)) if isinstance(secrets, str | Path) else list(secrets or ())
                known += [] if planted is None else of_canaries(planted, seed)
                return extraction(model, tokenizer, known, n=samples or 100, p=probability, **drawn)
            case "pii-inference":
                return pii_inference(model, tokenizer, spans(members), spans(nonmembers), base=before, seed=seed)
            case _:
                assert finder is not None
                run_it = pii_extraction if attack == "pii-extraction" else pii_reconstruction
                return run_it(model, tokenizer, spans(members), spans(nonmembers), finder, **tags)

    return [attacked(attack) for attack in attacks]


def _check(attacks: Sequence[str], canaries: Any, secrets: Any, members: Any, nonmembers: Any, policy: Any) -> None:
    """Every missing input is named before any work."""
    for attack in attacks:
        if attack not in ATTACKS:
            raise UsageError(f"attack {attack!r}: {nearest(attack, ATTACKS)}")
    asked = set(attacks)
    if "exposure" in asked and canaries is None:
        raise UsageError("attack 'exposure' needs the planted canaries: canaries=Planted(...) or a canaries.json")
    if "extraction" in asked and canaries is None and secrets is None:
        raise UsageError("attack 'extraction' needs known secrets in their contexts: secrets=[Known(...)], or canaries")
    if asked & set(MEMBERSHIP) and (members is None or nonmembers is None):
        raise UsageError("a membership attack needs members (texts trained on) and nonmembers (same kind, never seen)")
    if asked & set(PERSONAL):
        if members is None or nonmembers is None:
            raise UsageError("an attack on personal data needs members (texts trained on) and nonmembers (never seen)")
        tags = any(isinstance(each, str) for each in (*members, *nonmembers))
        if policy is None and (tags or asked & {"pii-extraction", "pii-reconstruction"}):
            raise UsageError("an attack on personal data needs a policy that tags it, e.g. policy=['email', 'phone']")


def _finder(policy: Finder | str | Sequence[str] | None) -> Finder | None:
    if isinstance(policy, str):
        return policy_of(policy)
    return policy_of(*policy) if isinstance(policy, list | tuple) else cast("Finder | None", policy)


def _texts(side: Sequence[Text] | None) -> list[str]:
    return [each if isinstance(each, str) else each.text for each in side or ()]


def _exposed(found: Finding, planted: Planted, copies: int | None, statements: list[Guarantee] | None) -> Finding:
    """Canaries audit the secret of as many records as hold one: a substitution."""
    if statements is None:
        return found
    hits, n, rank, size = found.detail["hits"], len(planted.secrets), found.detail["hit_rank"], planted.template.size
    audited = Audited("confidentiality", "substitution", copies or planted.copies)
    return compared(found, audited, statements, lambda delta: eps_lower_exposure_once(hits, n, rank, size, delta))


def _told(found: Finding, size: int, statements: list[Guarantee] | None) -> Finding:
    """Members and non-members of one random split audit a record, or a group of them, that was there or not."""
    if statements is None:
        return found
    return compared(found, Audited("dp", "add-remove", size), statements, OneRun.from_json(found.detail["one_run"]).eps)


def _statements(run: Source) -> list[Guarantee] | None:
    """Those of the certificate beside a model, None where there is none."""
    if isinstance(run, tuple):
        return None
    path = Path(run) / CERTIFICATE
    return Certificate.read(path).statements() if path.is_file() else None


def _load(source: Source) -> Model:
    """The model of a run folder (``model/`` in it) or of a model folder, unless it is at hand already."""
    if isinstance(source, tuple):
        return source
    folder = Path(source)
    return load_exported(folder / "model" if (folder / "model" / "config.json").is_file() else folder)
