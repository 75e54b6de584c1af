"""taciturn audit: attack a model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from taciturn.cli.options import RUN_THERE, Json, comma

if TYPE_CHECKING:
    from taciturn.auditing.finding import Finding


def audit(
    run: Annotated[Path, Parameter(validator=RUN_THERE, help="a run's folder, or any model folder")],
    *,
    attack: Annotated[
        str,
        Parameter(
            help="exposure, membership, group-membership, gradient, extraction, pii-extraction, pii-reconstruction, "
            "pii-inference"
        ),
    ] = "exposure",
    canaries: Annotated[
        Path | None, Parameter(help="canaries.json, as plant writes it: template, secrets, copies; or a list of such")
    ] = None,
    copies: Annotated[
        int | None,
        Parameter(group="Exposure", help="records that hold one canary; as planted by default, 1 after deduplication"),
    ] = None,
    secrets: Annotated[
        Path | None,
        Parameter(group="Extraction and personal data", help="JSON lines with prefix and secret, for extraction"),
    ] = None,
    members: Annotated[Path | None, Parameter(help="texts trained on, one a line")] = None,
    nonmembers: Annotated[Path | None, Parameter(help="texts of the same kind never seen, one a line")] = None,
    reference: Annotated[
        tuple[Path, ...],
        Parameter(
            group="Membership", help="model trained on neither, for the ratio attacks; repeat for several", negative=""
        ),
    ] = (),
    train_references: Annotated[
        int,
        Parameter(
            group="Membership",
            help="train so many reference models on --reference-texts, by the run's plan without its noise",
        ),
    ] = 0,
    reference_texts: Annotated[
        Path | None,
        Parameter(group="Membership", help="texts of the same kind, no member or non-member among them, one a line"),
    ] = None,
    references_out: Annotated[
        Path | None, Parameter(group="Membership", help="where they are kept [default: RUN-references]")
    ] = None,
    population: Annotated[
        Path | None, Parameter(group="Membership", help="further texts nothing was trained on, for RMIA")
    ] = None,
    score: Annotated[
        Literal["loss", "reference"], Parameter(group="Membership", help="what the membership verdict is of")
    ] = "loss",
    group_size: Annotated[int, Parameter(group="Membership", help="texts in a group")] = 20,
    coins: Annotated[
        Literal["records", "secrets", "users", "pairs"],
        Parameter(
            group="Membership",
            help="what the random split decided: whether a record, its secret, user, or user and entity was there",
        ),
    ] = "records",
    base: Annotated[
        Path | None,
        Parameter(
            group="Comparison",
            help="the model before training: what it says as well is no leak; a run's own for gradient",
        ),
    ] = None,
    policy: Annotated[
        tuple[str, ...],
        Parameter(
            group="Extraction and personal data", name=["--policy", "-p"], help="what tags personal data", negative=""
        ),
    ] = (),
    samples: Annotated[
        int | None,
        Parameter(group="Extraction and personal data", help="samples of extraction (100) and of the pii attacks"),
    ] = None,
    probability: Annotated[
        float,
        Parameter(group="Extraction and personal data", help="extracted: the samples show it with this probability"),
    ] = 0.5,
    temperature: Annotated[float, Parameter(group="Extraction and personal data", help="of sampling")] = 1.0,
    top_k: Annotated[int, Parameter(group="Extraction and personal data", help="0 for all tokens")] = 0,
    top_p: Annotated[
        float, Parameter(group="Extraction and personal data", help="share of the likeliest tokens")
    ] = 1.0,
    search: Annotated[
        Literal["auto", "exact", "branch-and-bound"],
        Parameter(
            group="Exposure",
            help="score every candidate, or drop what is less likely than the canaries; the rank is exact",
        ),
    ] = "auto",
    candidates: Annotated[
        int | None, Parameter(group="Exposure", help="rank in a random subset of so many [default: all]")
    ] = None,
    most_minutes: Annotated[float, Parameter(group="Exposure", help="refuse what is expected to take longer")] = 60.0,
    seed: Annotated[int, Parameter(group="Comparison", help="of what is drawn")] = 0,
    fail_on: Annotated[
        Literal["leak", "inconclusive"] | None,
        Parameter(help="exit code 5 if an attack finds a leak; inconclusive: or cannot tell"),
    ] = None,
    json: Json = False,
) -> None:
    """Run attacks, each with its null, its controls and a verdict; writes numbers to audit.json, never a secret.

    Where a certificate lies beside the model, lower bounds on ε are compared with it; one above it ends with exit code 4.
    With --fail-on nothing else changes: what was found is printed and kept, then the exit code is 5.

    Example: `taciturn audit runs/mail --attack exposure --canaries canaries.json`
    """
    from taciturn.auditing.extraction.decoding import Decoding
    from taciturn.auditing.finding import save
    from taciturn.auditing.lower_bounds.against_certificate import exceeded
    from taciturn.auditing.run import audit as attack_all
    from taciturn.cli.show import as_json, step, talk
    from taciturn.cli.verdict import last_line
    from taciturn.errors import GateClosed, GuaranteeError

    with step("attacking the model"):
        findings = attack_all(
            run,
            comma(attack),
            canaries=canaries,
            copies=copies,
            secrets=secrets,
            members=_lines(members),
            nonmembers=_lines(nonmembers),
            references=(*reference, *_trained(run, train_references, reference_texts, references_out, seed)),
            population=_lines(population),
            score=score,
            group_size=group_size,
            coins=coins,
            base=base,
            policy=tuple(name for part in policy for name in comma(part)) or None,
            decoding=Decoding(temperature, top_k, top_p),
            samples=samples,
            probability=probability,
            search=search,
            candidates=candidates,
            most_minutes=most_minutes,
            notify=talk.print,
            seed=seed,
        )
    told: dict[str, Any] = {"findings": [f.to_json() for f in findings]}
    if not json:
        _show(run.name, findings)
    if (run / "plan.json").is_file():
        save(run / "audit.json", findings)
        told["verdict"] = last_line(run, result=not json)
    if json:
        as_json(told)
    if broken := exceeded(findings):
        raise GuaranteeError(
            f"{', '.join(broken)}: the lower bound on ε is above the certificate's: the guarantee does not hold, or the "
            "attack's inputs are not what they are said to be"
        )
    stopped = {"leak": ("leak",), "inconclusive": ("leak", "inconclusive")}.get(fail_on or "", ())
    if failed := [f"{f.attack}: {f.verdict}" for f in findings if f.verdict in stopped]:
        raise GateClosed(f"--fail-on {fail_on}: {', '.join(failed)}")


def _trained(run: Path, count: int, texts: Path | None, out: Path | None, seed: int) -> list[Path]:
    """Reference models made now, or kept from an earlier call."""
    from taciturn.errors import UsageError

    if not count and texts is None:
        return []
    if count < 1 or texts is None:
        raise UsageError("reference models need both: --train-references N and --reference-texts FILE")
    from taciturn.auditing.membership.references import references

    return references(run, _lines(texts) or [], count, out or run.with_name(f"{run.name}-references"), seed=seed)


def _show(name: str, findings: list[Finding]) -> None:
    from taciturn.cli.show import number, out, table

    rows = [
        (
            f.attack,
            f"{number(f.score)} {f.unit_of_score}",
            number(f.null.get("mean")),
            number(f.null.get("p95")),
            number(f.null.get("p")),
            number(f.controls.get("negative")),
            number(f.controls.get("positive")),
            f.verdict,
        )
        for f in findings
    ]
    columns = ("attack", "score", "null mean", "null 95 %", "p", "negative control", "positive control", "verdict")
    out.print(table(f"attacks on {name}", columns, rows))
    for finding in findings:
        if each := finding.detail.get("attacks"):
            out.print(_scores(finding, each))
        if kinds := finding.detail.get("by_kind"):
            out.print(_kinds(kinds))
            out.print(f"{finding.attack}: {finding.detail['assumes']}")
        if certified := finding.detail.get("certificate"):
            out.print(f"{finding.attack}: {_compared(certified)}")
        for note in finding.notes:
            out.print(f"{finding.attack}: {note}")


def _scores(finding: Finding, attacks: dict[str, Any]) -> Any:
    """Every score of a membership attack, the blind baselines below."""
    from taciturn.cli.show import number, table

    def rate(found: Any) -> str:
        return "not measurable" if found is None else f"{number(found[0])} [{number(found[1])}, {number(found[2])}]"

    rows = [
        (
            name,
            f"{number(each['auc'])} [{number(each['interval'][0])}, {number(each['interval'][1])}]",
            number(each["accuracy"]),
            rate(each["tpr_at_fpr_0.01"]),
            rate(each["tpr_at_fpr_0.001"]),
        )
        for name, each in attacks.items()
    ]
    rows += [(f"blind: {name}", number(auc), "", "", "") for name, auc in finding.detail["blind"].items()]
    columns = ("score", "AUC", "accuracy", "TPR at FPR 1 %", "TPR at FPR .1 %")
    title = f"{finding.attack}: the verdict is of {finding.detail['verdict_of']} alone, out of {len(attacks)} scores"
    return table(title, columns, rows)


def _kinds(kinds: dict[str, dict[str, Any]]) -> Any:
    """Exposure of canaries that π misses beside those it catches."""
    from taciturn.cli.show import number, table

    columns = ("canaries π has", "number", "highest, bits", "mean, bits", "p of the highest", "Fisher's p")
    keys = ("canaries", "max", "mean", "p", "p_fisher")
    rows = [(kind, *(number(each[key]) for key in keys)) for kind, each in kinds.items()]
    return table("exposure by kind", columns, rows)


def _compared(certified: dict[str, Any]) -> str:
    from taciturn.cli.show import number

    if certified["epsilon"] is None:
        return f"not compared with the certificate: {certified['why']}"
    noise = certified.get("noise_at_most")
    said = "" if noise is None else f" (noise of at most {number(noise)} times what the ledger says)"
    return f"ε is at least {number(certified['eps_lower'])}{said}; certified: {certified['statement']}"


def _lines(path: Path | None) -> list[str] | None:
    if path is None:
        return None
    from taciturn.text.readers import read

    return [document.text for document in read(path, format="lines").documents()]
