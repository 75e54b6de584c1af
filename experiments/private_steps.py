"""What else the noised steps of CRT could do with the same ε: each idea beside the default, from the same start.

    python experiments/private_steps.py run multiwoz --data DATA --model GPT2 --work WORK
    python experiments/private_steps.py table --work WORK

A start is a run of `values.py`'s row "table, kept" up to the end of its noiseless phase; it is trained once for each seed.
Every variant spends the same total ε by substitution, the table included, but the rows "noiseless", which say how much an
idea could gain at most. Noise and draws are of torch's and numpy's generators: these models are measured, never released.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import time
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import torch
from common import Row, Work, spread
from noised_steps import VARIANTS, Variant, train
from peft import LoraConfig, get_peft_model
from scipy.stats import ttest_1samp
from values import DELTA, ROWS, SETS, screened, tested

import taciturn as tt
from taciturn.mechanisms.corpus import encoded
from taciturn.models.held_out import utility
from taciturn.models.hf import load_model
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import load_tokenizer
from taciturn.models.tokens import Tokens, encode_all
from taciturn.privacy.accounting.event_files import from_json
from taciturn.privacy.accounting.events import Event
from taciturn.privacy.guarantees.evidence import ALLOWED
from taciturn.training.fill import filled
from taciturn.training.state.average import keep_near


def start(options: argparse.Namespace, seed: int) -> tuple[Path, Event]:
    """Folder of the weights where the noiseless phase ends, and the event of the table; trained once."""
    folder = options.work / "starts" / f"{options.set}-{seed}"
    if not (folder / "event.json").exists():
        chosen, steps = ROWS["table, kept"][1:]
        optimiser: Any = {"lr": 1e-3, "schedule": "cosine", "warmup": 0.05, "max_grad_norm": 1.0}
        planned = tt.plan(
            "crt",
            screened(options),
            {"name": str(options.model), "max_length": 128},
            epsilon=options.epsilon,
            delta=DELTA,
            seeds={"model": seed, "data": seed},
            train={"evaluations": 1, "checkpoint_steps": 10**6, "checkpoint_minutes": 1e6},
            allow=sorted(ALLOWED),
            public={"epochs": 1, "batch_size": 32, "optimiser": optimiser, "kept": steps["kept"]},
            private={"steps": 1, "batch": 1, "optimiser": {"lr": 1e-12}},  # which moves nothing
            **chosen,
        )
        out = options.work / "runs" / f"start-{time.time_ns()}"
        trained = tt.train(planned, out)
        model, tokenizer = trained.model()
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        table = planned.plan.phases[0].event  # the release of the table comes first
        (folder / "event.json").write_text(json.dumps(table.to_json()))
        shutil.rmtree(out)
    return folder, from_json(json.loads((folder / "event.json").read_text()))


def marked_only(tokenizer: Any, corpus: Any, options: argparse.Namespace) -> Tokens:
    """The private records, of which only what π_c marks is learned."""
    made = tt.plan(
        "crt",
        corpus,
        str(options.model),
        delta=DELTA,
        allow=sorted(ALLOWED),
        private={"targets": "marked", "noise_multiplier": 1.0},
    )
    found = encoded(tokenizer, made.plan, made.plan.phases[-1], corpus, 128)
    assert isinstance(found, Tokens)
    return found


def made_up(model: Any, skeletons: Tokens, mask: int, seed: int) -> Tokens:
    """A thousand skeletons whose masks ``model`` filled; only its words are targets."""
    model.eval()
    rows = np.random.default_rng([seed, 7]).permutation(
        np.flatnonzero(np.add.reduceat(skeletons.flat == mask, skeletons.offsets[:-1]) > 0)
    )[:1024]
    with_loss, without = (filled(model, skeletons, rows, mask, (seed,), loss=loss, limit=128) for loss in (True, False))
    assert with_loss.scored is not None
    assert without.scored is not None
    return replace(with_loss, scored=with_loss.scored & ~without.scored)


def run(options: argparse.Namespace) -> None:
    """Every cell of a set."""
    work = Work(options.work, "private_steps.jsonl")
    torch.set_num_threads(options.threads)
    for seed in options.seeds:
        folder, table = start(options, seed)
        corpus, (test, marked) = screened(options), tested(options)
        tokenizer = load_tokenizer("auto", str(folder))
        texts = {part: list(corpus.texts(part)) for part in ("private", "skeletons")}
        tokens = {part: encode_all(tokenizer, each, 128) for part, each in texts.items()}
        tokens["marked"] = marked_only(tokenizer, corpus, options)
        begun = load_model(str(options.model), tokenizer, seed)
        tokens["fills"] = made_up(begun, tokens["skeletons"], mask_id(tokenizer), seed)
        for name in options.rows:
            key = {"set": options.set, "model": options.model.name, "stride": options.stride}
            with work.cell(**key, as_if=options.as_if, row=name, epsilon=options.epsilon, seed=seed) as cell:
                if cell is not None:
                    model = load_model(str(folder), tokenizer, seed)
                    cell |= measured(
                        VARIANTS[name], model, begun, tokenizer, tokens, table, test, marked, options, seed
                    )


def measured(
    variant: Variant, model: Any, begun: Any, tokenizer: Any, tokens: dict[str, Tokens], table: Event, test: Any,
    marked: Any, options: argparse.Namespace, seed: int,
) -> Row:  # fmt: skip
    """Perplexities outside secrets at the start and after the steps, with a fifth of the public weights as at the start."""
    model.eval()
    first, began = utility(model, tokenizer, test).perplexity_outside, time.process_time()
    if variant.lora:
        torch.manual_seed(seed)
        model = get_peft_model(
            model,
            LoraConfig(
                r=variant.lora,
                lora_alpha=2 * variant.lora,
                target_modules=["c_attn", "c_proj", "c_fc"],
                fan_in_fan_out=True,
            ),
        )
        model.eval()
    sigmas = [0.0]
    if variant.steps:
        sigmas = train(variant, model, tokens, mask_id(tokenizer), table, options.epsilon, seed, options.as_if)
    if variant.lora:
        model = model.merge_and_unload()
    seconds = time.process_time() - began
    alone = utility(model, tokenizer, test).perplexity_outside
    for p in model.parameters():
        p.requires_grad_(True)
    keep_near(model, None, begun, 0.8)
    return {
        "first": first,
        "alone": alone,
        "outside": utility(model, tokenizer, test).perplexity_outside,
        "marked": utility(model, tokenizer, marked).perplexity_outside,
        "sigma": [round(sigmas[0], 4), round(sigmas[-1], 4)],
        "cpu": round(seconds, 1),
    }


def show(work: Work) -> str:
    """A line for each variant: perplexity, and its difference from the default of the same seeds, which is said to be one
    only where a paired t-test of log perplexities over three seeds or more has p < .05, by Holm over variants of a set."""
    rows = work.rows()
    lines = [
        "| set | as if × | variant | σ, first and last | start | outside | marked | beside the first with noise | runs |",
        "|---|---:|---|---|" + "---:|" * 3 + "---|---:|",
    ]
    for setting in dict.fromkeys((r["set"], r["as_if"]) for r in rows):
        here = [r for r in rows if (r["set"], r["as_if"]) == setting]
        logs = {(r["row"], r["seed"]): math.log(r["outside"]) for r in here}
        known = [row for row in VARIANTS if any(r["row"] == row for r in here)]
        base = "default" if "default" in known else "20 of 256"
        gains = {
            row: [logs[row, s] - logs[base, s] for s in range(100) if (row, s) in logs and (base, s) in logs]
            for row in known
        }
        tests = {r: float(ttest_1samp(g, 0.0).pvalue) for r, g in gains.items() if len(g) > 2 and r != base}
        held, shown = True, {}
        for i, row in enumerate(sorted(tests, key=tests.__getitem__)):  # Holm 1979
            held = held and tests[row] * (len(tests) - i) < 0.05
            shown[row] = held
        for row in known:
            group = [r for r in here if r["row"] == row]
            cells = [spread([r[key] for r in group]) for key in ("first", "outside", "marked")]
            gain = "–"
            if row != base and gains[row]:
                gain = f"{100 * math.expm1(mean(gains[row])):+.1f} %"
                if row in shown:
                    gain += f" ± {100 * stdev(gains[row]):.1f}" + ("" if shown[row] else ", not told apart")
            sigmas = ", ".join(f"{mean(r['sigma'][i] for r in group):.2f}" for i in (0, 1))
            lines.append("| " + " | ".join([*map(str, setting), row, sigmas, *cells, gain, str(len(group))]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("do", choices=("run", "table"))
    parser.add_argument("set", nargs="?", choices=SETS, default="multiwoz")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--rows", nargs="+", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--stride", type=int, default=8, help="train on every so many dialogues")
    parser.add_argument(
        "--as-if", type=int, default=1, help="noise of a corpus so many times as large: not private here"
    )
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    options.public_values, options.public_kinds, options.tokenizer = None, [], None
    print(show(Work(options.work, "private_steps.jsonl"))) if options.do == "table" else run(options)


if __name__ == "__main__":
    main()
