"""All the attacks on one model, from the inputs an auditor has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from taciturn.auditing.canaries.templates import Planted, read_plantings
from taciturn.auditing.comparisons import ALPHA, holm_corrected
from taciturn.auditing.exposure.plantings import exposures
from taciturn.auditing.exposure.search import MOST_MINUTES, Notify, Search
from taciturn.auditing.extraction.decoding import Decoding
from taciturn.auditing.extraction.extraction import extraction
from taciturn.auditing.extraction.pii import pii_extraction, pii_inference, pii_reconstruction
from taciturn.auditing.extraction.secrets import Known, of_canaries, read_known
from taciturn.auditing.extraction.spans import Finder, Masked, gold, tagged
from taciturn.auditing.finding import Finding
from taciturn.auditing.lower_bounds.against_certificate import Audited, against_run, compared
from taciturn.auditing.lower_bounds.one_run import OneRun
from taciturn.auditing.lower_bounds.two_sided import eps_lower_exposure_once
from taciturn.auditing.membership.gradient import gradient_membership, initial_model, settings
from taciturn.auditing.membership.membership import Score, group_membership, membership
from taciturn.auditing.membership.scores import Model
from taciturn.errors import UsageError, nearest
from taciturn.models.hf import load_exported
from taciturn.privacy.accounting.events import Relation
from taciturn.privacy.certificates.certificate import CERTIFICATE, Certificate
from taciturn.privacy.guarantees.guarantee import Guarantee
from taciturn.screening.policies import policy as policy_of
from taciturn.text.document import Document, Record

MEMBERSHIP = ("membership", "group-membership", "gradient")
PERSONAL = ("pii-extraction", "pii-reconstruction", "pii-inference")
ATTACKS = ("exposure", *MEMBERSHIP, "extraction", *PERSONAL)

Text = str | Document | Record
Source = str | Path | tuple[Any, Any]
"""A run folder, a model folder, or (model, tokenizer)."""

Coins = Literal["records", "secrets", "users", "pairs"]
"""What was there or not by a coin: records, the secrets in records that were there anyway, users with one record each, or
such users whose record mentions a detected entity that no other does."""

AUDITED: dict[Coins, tuple[str, Relation]] = {
    "records": ("dp", "add-remove"),
    "secrets": ("confidentiality", "substitution"),
    "users": ("user-dp", "add-remove"),
    "pairs": ("uedp", "add-remove"),
}


def audit(
    run: Source,
    attacks: Sequence[str] = ("exposure",),
    *,
    canaries: Planted | Sequence[Planted] | str | Path | None = None,
    copies: int | None = None,
    secrets: Sequence[Known] | str | Path | None = None,
    members: Sequence[Text] | None = None,
    nonmembers: Sequence[Text] | None = None,
    reference: Source | None = None,
    references: Sequence[Source] = (),
    population: Sequence[str] | None = None,
    score: Score = "loss",
    group_size: int = 20,
    coins: Coins = "records",
    base: Source | None = None,
    policy: Finder | str | Sequence[str] | None = None,
    decoding: Decoding = Decoding(),  # noqa: B008 — frozen
    samples: int | None = None,
    probability: float = 0.5,
    search: Search = "auto",
    candidates: int | None = None,
    most_minutes: float = MOST_MINUTES,
    notify: Notify | None = None,
    seed: int = 0,
) -> list[Finding]:
    """Attack a model; one finding per name in ``attacks``. Any model folder will do, also one not trained here.

    canaries: what was planted, or the path of the ``canaries.json`` that says so; several plantings have a finding of
    exposure each and one over all. notify: told each attack as it begins, and what exposure will take. search, candidates,
    most_minutes: see :func:`taciturn.auditing.exposure.exposure.exposure`. secrets: known secrets in their contexts for
    extraction, or a file of :func:`taciturn.auditing.extraction.secrets.read_known`. copies: records that hold one
    canary, as planted by default; 1 where deduplication left one. members, nonmembers: texts trained on, and texts of the
    same kind never seen, one random split. coins: what that split decided, so what a bound on ε is of. reference,
    references, population, score: see :func:`taciturn.auditing.membership.membership.membership`. base: the model before
    training, for what it says anyway and for the gradient attack, which can make a run's own again. policy: what tags
    personal data; documents or records with gold spans bring their own, but samples need a policy. decoding: of extraction
    and samples. samples: n of extraction (100) and of each attack on personal data. probability: p of extraction.

    Where a certificate lies beside the model, a lower bound on ε (exposure, membership, gradient) is compared with its ε of
    the same notion, relation and unit. All comparisons of an audit share one error: see
    :mod:`taciturn.auditing.comparisons`. Raises UsageError for an unknown attack or a missing input.
    """
    _check(attacks, canaries, secrets, members, nonmembers, policy)
    model, tokenizer = _load(run)
    others = [_load(each) for each in (*([] if reference is None else [reference]), *references)]
    before = None if base is None else _load(base)
    finder = _finder(policy)
    certificate = _certificate(run)
    statements = None if certificate is None else certificate.statements()
    plantings = _plantings(canaries)
    inside, outside = _texts(members), _texts(nonmembers)
    bounds = len(plantings) * attacks.count("exposure") + sum(attacks.count(each) for each in MEMBERSHIP)
    confidence = 1 - ALPHA / max(bounds, 1)
    member: dict[str, Any] = {"references": others, "population": population, "score": score, "seed": seed}
    drawn: dict[str, Any] = {"base": before, "decoding": decoding, "seed": seed}
    tags: dict[str, Any] = dict(drawn)
    if samples is not None:
        tags["samples"] = samples

    def spans(side: Sequence[Text] | None) -> list[Masked]:
        annotated = [each for each in side or () if not isinstance(each, str)]
        plain = [each for each in side or () if isinstance(each, str)]
        return [*gold(annotated), *(tagged(plain, finder) if finder is not None and plain else [])]

    tell = notify or (lambda _: None)

    def exposed() -> list[Finding]:
        how: dict[str, Any] = {"search": search, "candidates": candidates, "most_minutes": most_minutes}
        found = exposures(model, tokenizer, plantings, seed=seed, notify=lambda said: tell(f"exposure: {said}"), **how)
        pairs = zip(found, plantings, strict=False)
        told = [_exposed(each, planted, copies, statements, confidence) for each, planted in pairs]
        return [*told, *found[len(plantings) :]]

    def attacked(attack: str) -> Finding:
        match attack:
            case "membership":
                return _told(membership(model, tokenizer, inside, outside, **member), 1, coins, certificate, confidence)
            case "group-membership":
                found = group_membership(model, tokenizer, inside, outside, group_size=group_size, **member)
                return _told(found, group_size, coins, certificate, confidence)
            case "gradient":
                first, how = _began(run, before)
                found = gradient_membership(model, tokenizer, inside, outside, base=first, seed=seed, **how)
                return _told(found, 1, coins, certificate, confidence)
            case "extraction":
                known = read_known(Path(secrets)) if isinstance(secrets, str | Path) else list(secrets or ())
                known += [each for planted in plantings for each in of_canaries(planted, seed)]
                return extraction(model, tokenizer, known, n=samples or 100, p=probability, **drawn)
            case "pii-inference":
                return pii_inference(model, tokenizer, spans(members), spans(nonmembers), base=before, seed=seed)
            case _:
                assert finder is not None
                run_it = pii_extraction if attack == "pii-extraction" else pii_reconstruction
                return run_it(model, tokenizer, spans(members), spans(nonmembers), finder, **tags)

    found: list[Finding] = []
    for number, attack in enumerate(attacks, 1):
        tell(f"{attack} ({number} of {len(attacks)})")
        found += exposed() if attack == "exposure" else [attacked(attack)]
    return holm_corrected(found)


def _check(attacks: Sequence[str], canaries: Any, secrets: Any, members: Any, nonmembers: Any, policy: Any) -> None:
    """Every missing input is named before any work."""
    for attack in attacks:
        if attack not in ATTACKS:
            raise UsageError(f"attack {attack!r}: {nearest(attack, ATTACKS)}")
    asked = set(attacks)
    if "exposure" in asked and canaries is None:
        raise UsageError("attack 'exposure' needs what was planted, a canaries.json: canaries=...")
    if "extraction" in asked and canaries is None and secrets is None:
        raise UsageError(
            "attack 'extraction' needs known secrets in their contexts: secrets=... (JSON lines), or canaries=..."
        )
    if asked & set(MEMBERSHIP) and (members is None or nonmembers is None):
        raise UsageError(
            "a membership attack needs members=... (texts trained on) and nonmembers=... (of the same kind, never seen)"
        )
    if asked & set(PERSONAL):
        if members is None or nonmembers is None:
            raise UsageError(
                "an attack on personal data needs members=... (texts trained on) and nonmembers=... (never seen)"
            )
        tags = any(isinstance(each, str) for each in (*members, *nonmembers))
        if policy is None and (tags or asked & {"pii-extraction", "pii-reconstruction"}):
            raise UsageError("an attack on personal data needs a policy that tags it, e.g. policy=['email', 'phone']")


def _finder(policy: Finder | str | Sequence[str] | None) -> Finder | None:
    if isinstance(policy, str):
        return policy_of(policy)
    return policy_of(*policy) if isinstance(policy, list | tuple) else cast("Finder | None", policy)


def _texts(side: Sequence[Text] | None) -> list[str]:
    return [each if isinstance(each, str) else each.text for each in side or ()]


def _plantings(canaries: Planted | Sequence[Planted] | str | Path | None) -> Sequence[Planted]:
    if canaries is None or isinstance(canaries, Planted):
        return [] if canaries is None else [canaries]
    return read_plantings(Path(canaries)) if isinstance(canaries, str | Path) else canaries


def _exposed(
    found: Finding, planted: Planted, copies: int | None, statements: list[Guarantee] | None, confidence: float
) -> Finding:
    """Canaries audit the secret of as many records as hold one: a substitution."""
    if statements is None:
        return found
    hits, n, rank = found.detail["hits"], len(planted.secrets), found.detail["hit_rank"]
    size = found.detail["candidates"]
    audited = Audited("confidentiality", "substitution", copies or planted.copies)
    return compared(
        found,
        audited,
        statements,
        lambda delta: eps_lower_exposure_once(hits, n, rank, size, delta, confidence),
        {"confidence": confidence},
    )


def _told(found: Finding, size: int, coins: Coins, certificate: Certificate | None, confidence: float) -> Finding:
    """Members and non-members of one random split audit what the coins decided, or groups of it."""
    if certificate is None:
        return found
    notion, relation = AUDITED[coins]
    guesses = OneRun.from_json(found.detail["one_run"])
    return against_run(found, Audited(notion, relation, size), certificate, guesses, confidence)


def _began(run: Source, base: Model | None) -> tuple[Model, dict[str, float]]:
    """The model that training began with, and what the plan says of clipping and noise."""
    planned = not isinstance(run, tuple) and (Path(run) / "plan.json").is_file()
    if base is None and not planned:
        raise UsageError("attack 'gradient' needs the model that training began with: base=...")
    how = settings(cast("str | Path", run)) if planned else {}
    return base or initial_model(cast("str | Path", run)), how


def _certificate(run: Source) -> Certificate | None:
    """That beside a model, None where there is none."""
    if isinstance(run, tuple):
        return None
    path = Path(run) / CERTIFICATE
    return Certificate.read(path) if path.is_file() else None


def _load(source: Source) -> Model:
    """The model of a run folder (``model/`` in it) or of a model folder, unless it is at hand already."""
    if isinstance(source, tuple):
        return source
    folder = Path(source)
    return load_exported(folder / "model" if (folder / "model" / "config.json").is_file() else folder)
