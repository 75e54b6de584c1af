"""taciturn demo: the whole story on a simulated corpus, in minutes on two cores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from taciturn.cli.options import Json

DELTA = 8e-5
EPSILON = 3.0
CANARIES, COPIES = 10, 20
PUBLIC = {"epochs": 4, "batch_size": 64, "optimiser": {"lr": 5e-3, "schedule": "cosine", "max_grad_norm": 1.0}}
PRIVATE = {"steps": 120, "batch": 96, "optimiser": {"lr": 1e-3}}


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
        "crt-published", "CRT as published", "crt",
        {"skeletons": False, "schedule": "alternate", "public": PUBLIC, "private": PRIVATE},
    ),
    Model("crt", "CRT with skeletons", "crt", {"public": PUBLIC, "private": PRIVATE}),
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
    import taciturn.report as reports
    from taciturn import api
    from taciturn.audit.canaries import Planted, Template, draw, plant
    from taciturn.cli.show import as_json, out, talk, training
    from taciturn.data.customersim import simulate
    from taciturn.errors import UsageError
    from taciturn.screen.pipeline import screen
    from taciturn.screen.policies import policy
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
        Corpus.from_documents(corpus), policy("customersim"), policy("conservative"), unit="turn", out=output / "screened"
    )
    counts = screened.counts
    talk.print(
        f"screened {counts.read:,} turns: {counts.public:,} public, {counts.private:,} private; the policy misses "
        f"{counts.gold_missed_by_pi:,} of {counts.gold_spans:,} secrets"
    )
    members = _with_names([r for d in corpus for r in split(d, "turn")])
    strangers = _with_names(held_out)
    n = min(len(members), len(strangers), 1000)
    folders = []
    for model in MODELS:
        planned = api.plan(
            model.mechanism, screened, "lstm", tokenizer="bpe:2048", epsilon=EPSILON, delta=DELTA,
            train={"evaluations": 6, "valid_limit": 1500}, **model.options,
        )
        with training(model.title, EPSILON if model.mechanism == "crt" else None) as notify:
            run = api.train(planned, output / "runs" / model.name, valid=held_out[:1500], notify=notify)
        run.certify({"canaries": secrets} if model.mechanism == "crt" else None)
        api.audit(
            run, ["exposure", "membership"], canaries=Planted(template, tuple(secrets), COPIES), members=members[:n],
            nonmembers=strangers[:n], seed=seed,
        )
        folders.append(run.folder)
    views = [reports.RunView.load(folder) for folder in folders]
    reports.write(output / "report.html", views)
    run.export(output / "model")
    rows = reports.data(views)["runs"]
    if json:
        as_json(rows)
    else:
        out.print(_table(rows))
    talk.print(f"report: {output / 'report.html'}   certificate: {output / 'model' / 'certificate.json'}")
    talk.print(f"check it: taciturn verify {output / 'model' / 'certificate.json'}")


def _with_names(records: Sequence[Any]) -> list[str]:
    """Turns in which somebody gives a name: secrets that the demo's policy, regular expressions only, misses."""
    return list(dict.fromkeys(r.body for r in records if any(span.label == "name" for span in r.gold)))


def _table(rows: Sequence[dict[str, Any]]) -> Any:
    from rich.table import Table

    from taciturn.cli.show import number

    made = Table(title="taciturn demo", title_justify="left", show_lines=True)
    for column in ("model", "test perplexity", "highest exposure (bits)", "membership accuracy", "guarantee"):
        made.add_column(column)
    for model, row in zip(MODELS, rows, strict=True):
        exposure = row["exposure"]
        member = row["membership"][0]
        made.add_row(
            model.title,
            f"{row['perplexity_public_tokens']:.2f}",
            f"{exposure['score']:.2f}\nnull 95 %: {exposure['p95']:.2f}, p = {number(exposure['p'], 2)}",
            f"{member['score']:.3f}\nnull: {number(member['chance'])}, 95 %: {number(member['p95'])}",
            row["guarantee"]["words"],
        )
    return made
