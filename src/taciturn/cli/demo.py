"""taciturn demo: the whole story on a simulated corpus, in minutes on two cores."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from taciturn.cli.options import Json

DELTA = 8e-5
EPSILON = 3.0
CANARIES, COPIES = 10, 20
PUBLIC = {"epochs": 10, "batch_size": 64, "optimiser": {"lr": 1e-2, "schedule": "cosine", "max_grad_norm": 1.0}}
PRIVATE = {"steps": 100, "batch": 160, "optimiser": {"lr": 2e-4}}


@dataclass(frozen=True, slots=True)
class Model:
    """One row of the demo's table."""

    name: str
    title: str
    mechanism: str
    options: dict[str, Any]


MODELS = (
    Model("unprotected", "unprotected", "sgd", PUBLIC),
    Model("redacted", "redacted only", "redacted", PUBLIC),
    Model(
        "crt-published",
        "CRT as published",
        "crt",
        {"skeletons": False, "schedule": "alternate", "public": PUBLIC, "private": PRIVATE},
    ),
    Model("crt", "CRT, learned values", "crt", {"fill": "learned", "public": PUBLIC, "private": PRIVATE}),
)


def demo(
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"], help="folder to write; must not exist")] = Path("demo"),
    dialogues: Annotated[int, Parameter(help="simulated training dialogues")] = 800,
    seed: int = 0,
    json: Json = False,
) -> None:
    """Simulate a corpus, plant canaries the policy misses, train four models, attack them, certify and report.

    Example: `taciturn demo -o demo/`
    """
    import taciturn as tt
    import taciturn.reporting as reports
    from taciturn.auditing.canaries.templates import Planted, Template, draw, plant
    from taciturn.cli.show import as_json, out, talk, training
    from taciturn.data.customersim import simulate
    from taciturn.errors import UsageError
    from taciturn.privacy.guarantees.evidence import ALLOWED
    from taciturn.screening.pipeline import screen
    from taciturn.screening.policies import policy
    from taciturn.text.readers import Corpus
    from taciturn.text.segment import split

    if output.exists() and any(output.iterdir()):
        raise UsageError(f"{output} is not empty: name another folder with -o, or remove it")
    output.mkdir(parents=True, exist_ok=True, mode=0o700)
    template = Template("My ID is: {}")
    secrets = draw(template, CANARIES, seed)
    Planted(template, tuple(secrets), COPIES).write(output / "canaries.json")
    corpus = plant(simulate(dialogues, seed, "train"), template, secrets, COPIES, seed)
    held_out = [r for d in simulate(dialogues, seed, "test") for r in split(d, "turn")]
    talk.print(f"simulated {dialogues:,} dialogues, planted {CANARIES} canaries × {COPIES} copies")
    screened = screen(
        Corpus.from_documents(corpus),
        policy("customersim"),
        policy("conservative"),
        unit="turn",
        dedup="private",  # twenty copies of a canary then cost what one costs; skeletons keep the frequencies
        out=output / "screened",
    )
    counts = screened.counts
    talk.print(
        f"screened {counts.read:,} turns: {counts.public:,} public, {counts.private:,} private; the policy misses "
        f"{counts.gold_missed_by_pi:,} of {counts.gold_spans:,} secrets"
    )
    members = _names_given([r for d in corpus for r in split(d, "turn")], seed)
    strangers = _names_given(held_out, seed)
    n = min(len(members), len(strangers), 1000)
    folders = []
    for model in MODELS:
        planned = tt.plan(
            model.mechanism,
            screened,
            "lstm",
            tokenizer="bpe:2048",
            epsilon=EPSILON if model.mechanism == "crt" else None,
            delta=DELTA,
            train={"evaluations": 6, "valid_limit": 1500},
            allow=sorted(ALLOWED),  # a few dialogues will do for a look, and learn little
            **model.options,
        )
        with training(model.title, EPSILON if model.mechanism == "crt" else None) as notify:
            run = tt.train(planned, output / "runs" / model.name, valid=held_out[:1500], notify=notify)
        groups = {"one canary": secrets[:1], "all canaries": secrets}
        run.certify(groups if model.mechanism == "crt" else None)
        tt.audit(
            run,
            ["exposure", "membership"],
            canaries=Planted(template, tuple(secrets), COPIES),
            copies=1 if model.mechanism == "crt" else None,  # deduplication left one
            members=members[:n],
            nonmembers=strangers[:n],
            seed=seed,
        )
        folders.append(run.folder)
    views = [reports.RunView.load(folder) for folder in folders]
    reports.write(output / "report.html", views)
    run.export(output / "model")
    if json:
        as_json(reports.data(views)["runs"])
    else:
        out.print(_table(views))
        for claim in _claims(views):
            out.print(claim)
    talk.print(f"report: {output / 'report.html'}   certificate: {output / 'model' / 'certificate.json'}")
    talk.print(f"check it: taciturn verify {output / 'model' / 'certificate.json'}")


def _names_given(records: Sequence[Any], seed: int) -> list[str]:
    """Different turns that hold one name and no other secret, shuffled: the demo's policy is made of regular expressions
    and misses names, so redacted text still has them."""
    found = {r.body for r in records if [span.label for span in r.gold] == ["name"]}
    turns = sorted(found)
    random.Random(seed).shuffle(turns)
    return turns


def _table(views: Sequence[Any]) -> Any:
    """One row a model: utility, and two attacks with what 95 % of their nulls are below; fits in 80 columns."""
    from taciturn.cli.show import number, table
    from taciturn.reporting.sections.summary import perplexity

    rows = []
    for model, view in zip(MODELS, views, strict=True):
        exposure, member = view.finding("exposure"), view.finding("membership")
        measured = (perplexity(view, f"perplexity{which}") or math.nan for which in ("_public_tokens", ""))
        rows.append(
            (
                model.title,
                *(f"{p:.2f}" if p < 1000 else number(p) for p in measured),
                f"{exposure.score:.2f}",
                f"{exposure.null['p95']:.2f}",
                number(exposure.null["p"], 2),
                f"{member.detail['accuracy']:.3f}",
                f"{member.null['accuracy_p95']:.3f}",
            )
        )
    heads = ("model", "outside\nsecrets", "all\ntokens", "highest\nexposure", "null", "p", "members\ntold", "null")
    title = f"perplexity, exposure of {CANARIES} canaries, membership; 95 % of a null is below"
    return table(title, heads, rows)


def _claims(views: Sequence[Any]) -> list[str]:
    """What each model's certificate says of one secret; a claim is too long for a cell."""
    return [
        f"{model.title}: {claim.label()}"
        for model, view in zip(MODELS, views, strict=True)
        for claim in view.guarantees
        if claim.notion == "confidentiality"
    ]
