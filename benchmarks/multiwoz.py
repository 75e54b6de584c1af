"""MultiWOZ 2.1 and Schema-Guided Dialogue: five ways to train, what each costs and what each leaks (docs/results.md).

    python benchmarks/multiwoz.py --train mwz21_test.jsonl.gz sgd_dev.jsonl.gz --test mwz22_dev.jsonl.gz \
        --model gpt2-public-xs/ --out runs/mwz-gpt

The text is screened at turn level with the `multiwoz` policy, which is made to miss a share γ of what it finds, and with
a conservative policy (`--conservative digits` is enough where every secret holds a digit). Ten canaries are planted 20
times each. Membership is attacked on turns whose reference number the policy missed, against turns of the same kind in
which it was replaced by another random one.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import string
from pathlib import Path
from typing import Any

import torch

from taciturn import api
from taciturn.auditing.canaries.templates import Planted, Template, draw, plant
from taciturn.mechanisms.run import Run
from taciturn.models.held_out import utility
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.screening.corpus.screened import load
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import MASK, Record
from taciturn.text.readers import Corpus, read
from taciturn.text.segment import split

REFERENCE = re.compile(r"\b(?=[A-Z0-9]*\d)(?=[A-Z0-9]*[A-Z])[A-Z0-9]{8}\b")
DELTA = 8e-5
MODELS = ("unprotected", "redacted", "dpsgd", "crt-published", "crt")


def main() -> None:
    options = arguments()
    torch.set_num_threads(options.threads)
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    template = Template("My ID is: {}")
    planted = Planted(template, tuple(draw(template, 10, 7)), 20)
    documents = plant(read(*options.train, gold="secret").documents(), template, planted.secrets, planted.copies, 7)
    folder = out / f"screened-{options.conservative}"
    if folder.exists():
        screened = load(folder)
    else:
        screened = screen(
            Corpus.from_documents(documents),
            policy("multiwoz"),
            policy(*options.conservative.split(",")),
            unit="turn",
            miss_rate=options.gamma,
            out=folder,
        )
    print(json.dumps(screened.counts.model_dump()))
    members, strangers = membership_sets(screened)
    test = [r for d in read(options.test, gold="secret").documents() for r in split(d, "turn")]
    for name in options.models or MODELS:
        mechanism, settings = SETTINGS[name](options)
        planned = api.plan(
            mechanism,
            screened,
            str(options.model),
            tokenizer=options.tokenizer,
            delta=DELTA,
            epsilon=options.epsilon if mechanism in ("crt", "dpsgd") and options.sigma is None else None,
            train={"evaluations": 4, "checkpoint_minutes": 1e6, "checkpoint_steps": 10**6},
            allow=sorted(ALLOWED),
            **settings,
        )
        print(planned, flush=True)
        run = api.train(planned, out / name, valid=random.Random(0).sample(test, 600), notify=progress(name))
        run.certify()
        audit = api.audit(
            run, ["exposure", "membership"], canaries=planted, members=members, nonmembers=strangers, seed=0
        )
        row = summary(Run(run.folder), test, audit)
        (out / f"{name}.json").write_text(json.dumps(row, indent=1))
        print(name, json.dumps(row), flush=True)


def membership_sets(screened: Any) -> tuple[list[str], list[str]]:
    """Turns whose reference number π missed, half of them as they were trained on, half with a fresh number."""
    found = sorted({text for text in screened.texts("redacted") if REFERENCE.search(text)})
    random.Random(1).shuffle(found)
    half = len(found) // 2
    fresh = random.Random(2)

    def other(_: re.Match[str]) -> str:
        return "".join(fresh.choice(string.ascii_uppercase + string.digits) for _ in range(7)) + fresh.choice(
            string.digits
        )

    return found[:half], [REFERENCE.sub(other, text) for text in found[half:]]


def summary(run: Run, test: list[Record], findings: list[Any]) -> dict[str, Any]:
    model, tokenizer = run.model()
    measured = utility(model, tokenizer, test)
    masked = utility(model, tokenizer, [gold_masked(record) for record in test])
    certificate = json.loads((run.folder / "certificate.json").read_text())
    return {
        "perplexity": measured.perplexity,
        "perplexity_outside_secrets": measured.perplexity_outside,
        "perplexity_secrets_masked": masked.perplexity,
        "findings": [
            {
                "attack": f.attack,
                "score": f.score,
                "interval": f.interval,
                "null": f.null,
                "verdict": f.verdict,
                "accuracy": f.detail.get("accuracy"),
                "mean": f.detail.get("mean"),
                "members": f.detail.get("members"),
            }
            for f in findings
        ],
        "words": certificate["words"],
        "spent": certificate["spent"],
        "phases": [
            {k: phase[k] for k in ("name", "reads", "records", "steps", "event")} for phase in run.plan["phases"]
        ],
    }


def gold_masked(record: Record) -> Record:
    """The record with every gold secret replaced by the mask: what a model trained on redacted text reads."""
    text = record.body
    for span in sorted(record.gold, reverse=True):
        text = text[: span.start] + MASK + text[span.end :]
    return Record(record.id, record.document_id, 0, len(text), text)


def progress(name: str) -> Any:
    def notify(p: Any) -> None:
        if p.utility is not None or p.step.number % 200 == 0:
            outside = "" if p.utility is None else f" outside {p.utility.perplexity_outside:.2f}"
            print(f"{name} {p.step.number + 1}/{p.total} {p.step.phase.name} {p.seconds:.0f} s{outside}", flush=True)

    return notify


def public(options: Any, epochs: int) -> dict[str, Any]:
    optimiser = {"lr": options.lr, "schedule": "cosine", "warmup": 0.05, "max_grad_norm": 1.0}
    return {"epochs": epochs, "batch_size": options.batch_size, "optimiser": optimiser}


def private(options: Any) -> dict[str, Any]:
    return {
        "steps": options.steps,
        "batch": options.private_batch,
        "noise_multiplier": options.sigma,
        "optimiser": {"lr": options.private_lr},
    }


SETTINGS: dict[str, Any] = {
    "unprotected": lambda o: ("sgd", public(o, o.epochs)),
    "redacted": lambda o: ("redacted", public(o, o.epochs)),
    "dpsgd": lambda o: ("dpsgd", private(o)),
    "crt-published": lambda o: (
        "crt",
        {"skeletons": False, "schedule": "alternate", "public": public(o, o.rounds), "private": private(o)},
    ),
    "crt": lambda o: ("crt", {"public": public(o, o.epochs), "private": private(o)}),
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", nargs="+", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", default="lstm")
    parser.add_argument("--tokenizer", default="auto")
    parser.add_argument("--models", nargs="*", choices=MODELS)
    parser.add_argument("--conservative", default="conservative", help="π_c")
    parser.add_argument("--gamma", type=float, default=0.1)
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--sigma", type=float, default=None)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2, help="alternating rounds of CRT as published")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--private-batch", type=int, default=256)
    parser.add_argument("--private-lr", type=float, default=3e-4)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
