"""What our wrapping of spaCy and Presidio costs, or saves.

    python -m benchmarks.recognisers                    made-up texts
    python -m benchmarks.recognisers --file texts.txt   a text a line

Ours and the bare library take turns on the same texts, in one process with one thread; printed are code points per CPU
second and the median of the ratios of neighbouring turns. Bare spaCy is ``nlp.pipe`` with the pipes that the level needs and
the entities read; bare Presidio is ``BatchAnalyzerEngine``, with its default batch of 1 and with ours.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from taciturn.screening.policies import ner, pipelines, presidio, presidio_engine
from taciturn.screening.policies.finder import Detector
from taciturn.screening.policies.view import View

_NAMES = "Mary Omar Lena Kofi Ines John Zoe Peter".split()  # noqa: SIM905
_PLACES = "Lisbon Nairobi Boston Leeds Kyoto Quito".split()  # noqa: SIM905
_FORMS = (
    "Hello, my name is {name} {other}son and I am calling from {place} about order {number}.",
    "Could you please send the invoice to {name} before the end of the month?",
    "The delivery to {place} was two days late, and nobody answered the phone when I called on Monday.",
    "Thank you, that was all I needed to know.",
    "You can reach me at 212-555-0{number} or write to {name}.{other}@example.com.",
    "I would like to change the address on my account, if that is still possible.",
)


def made_up(count: int) -> list[str]:
    rng = random.Random(0)

    def text() -> str:
        return " ".join(
            rng.choice(_FORMS).format(
                name=rng.choice(_NAMES),
                other=rng.choice(_NAMES),
                place=rng.choice(_PLACES),
                number=rng.randint(100, 999),
            )
            for _ in range(rng.randint(1, 3))
        )

    return [text() for _ in range(count)]


def bare_spacy(needed: Sequence[str], grammar: bool) -> Callable[[list[str]], None]:
    import spacy

    nlp = spacy.load(pipelines.pipeline().folder)
    unneeded = [name for name in nlp.pipe_names if name not in needed]

    def run(texts: list[str]) -> None:
        for doc in nlp.pipe(texts, disable=unneeded, batch_size=pipelines.BATCH):
            found = [(entity.start_char, entity.end_char, entity.label_) for entity in doc.ents]
            if grammar:
                found += [(token.idx, len(token), token.pos_ + token.dep_) for token in doc]

    return run


def bare_presidio(batch: int) -> Callable[[list[str]], None]:
    from presidio_analyzer import AnalyzerEngine, BatchAnalyzerEngine
    from presidio_analyzer.nlp_engine import NlpEngineProvider

    settings = NlpEngineProvider().nlp_configuration
    settings = {**settings, "models": [{"lang_code": "en", "model_name": pipelines.pipeline().name}]}
    settings["ner_model_configuration"]["labels_to_ignore"].remove("ORGANIZATION")
    with presidio_engine.muted():  # it would fetch a list of suffixes
        engine: Any = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=settings).create_engine())
        engine.registry.remove_recognizer("EmailRecognizer")
        mail = next(r for r in presidio_engine.registry(extra=False).recognizers if type(r).__name__ == "Email")
        engine.registry.add_recognizer(mail)
    batched = BatchAnalyzerEngine(engine)
    return lambda texts: batched.analyze_iterator(texts, language="en", batch_size=batch)


def ours(detectors: list[Detector], find: int = 512) -> Callable[[list[str]], None]:
    """As the pipeline calls a detector: some hundreds of texts at a time, views made anew."""

    def run(texts: list[str]) -> None:
        for start in range(0, len(texts), find):
            for detector in detectors:
                detector.find([View._make(text) for text in texts[start : start + find]])

    return run


def compare(
    name: str, bare: Callable[[list[str]], None], mine: Callable[[list[str]], None], texts: list[str], turns: int
) -> None:
    size = sum(map(len, texts))
    for run in (bare, mine):
        run(texts[:200])
    seconds: list[tuple[float, float]] = []
    for turn in range(turns):
        taken = {}
        for which, run in sorted((("bare", bare), ("ours", mine)), reverse=bool(turn % 2)):
            began = time.process_time()
            run(texts)
            taken[which] = time.process_time() - began
        seconds.append((taken["bare"], taken["ours"]))
    slow, fast = (size / median(s[i] for s in seconds) for i in (0, 1))
    ratio = median(a / b for a, b in seconds)
    print(f"{name:34} bare {slow:9,.0f}  ours {fast:9,.0f} characters/CPU-s  ours/bare {ratio:.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--file", type=Path, help="UTF-8, a text a line")
    parser.add_argument("--texts", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    texts = made_up(given.texts)
    if given.file:
        texts = [line for line in given.file.read_text(encoding="utf-8").split("\n") if line][: given.texts]
    print(f"{len(texts)} texts, {sum(map(len, texts)):,} characters, {pipelines.pipeline().name}")
    grammar = ["tok2vec", "tagger", "attribute_ruler", "parser", "ner"]
    for level, needed in (("low-entity", ["ner"]), ("high-contextual", grammar)):
        bare = bare_spacy(needed, grammar=level.endswith("contextual"))
        compare(f"spacy:{level}", bare, ours(ner.named(level, {})), texts, given.turns)
    for batch in (1, pipelines.BATCH):
        compare(
            f"presidio, bare in batches of {batch}",
            bare_presidio(batch),
            ours(presidio.named("", {})),
            texts,
            given.turns,
        )


if __name__ == "__main__":
    main()
