"""A corpus of people and phone numbers, and a small run of every mechanism on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from taciturn.mechanisms.settings import RunConfig
from taciturn.screening.corpus.screened import ScreenedCorpus
from taciturn.screening.pipeline import screen
from taciturn.screening.policies import policy
from taciturn.text.document import Document
from taciturn.text.readers import Corpus

PEOPLE = ("ann", "bob", "cyd", "dan")
DOCUMENTS = [
    Document(f"d{i}", f"call me on (555) 010-77{i % 5:02} ok" if i % 3 else f"see you at {i}", PEOPLE[i % 4])
    for i in range(24)
]
PRIVATE = {"steps": 5, "batch": 4}
PLAIN = {"epochs": 1, "batch_size": 6}
OPTIONS: dict[str, dict[str, Any]] = {
    "crt": {"public": PLAIN, "private": PRIVATE, "fill": "self"},
    "crt_residual": {"public": PLAIN, "private": PRIVATE, "skeleton_batch": 5},
    "dpsgd": PRIVATE,
    "jft": {"redacted": PLAIN, "private": PRIVATE},
    "redacted": {**PLAIN, "treat": "remove"},
    "selective_dpsgd": {"steps": 5, "batch": 4},
    "sgd": PLAIN,
    "uedp": {"steps": 5, "user_rate": 0.5, "k": 3},
    "uedp-published": {"steps": 5, "user_rate": 0.5},
    "user_dp": {"steps": 5, "batch": 2, "local": {"batch_size": 3}},
}
FREE_OF_NOISE = ("redacted", "sgd", "uedp-published")


def corpus(documents: list[Document] = DOCUMENTS, **options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_documents(documents), policy("phone"), policy("conservative"), unit="document", **options)


def config(name: str, epsilon: float | None = 4.0, noise: int | str = "os", **options: Any) -> RunConfig:
    return RunConfig(
        mechanism=name,
        corpus=Path("memory"),
        model={
            "name": "lstm",
            "tokenizer": "bytes",
            "options": {"hidden_size": 8, "embedding_size": 8, "dropout": 0.0},
        },  # type: ignore[arg-type]
        epsilon=None if name in FREE_OF_NOISE else epsilon,
        delta=1e-3,
        options={**OPTIONS[name], **options},
        seeds={"noise": noise},  # type: ignore[arg-type]
        train={"checkpoint_steps": 2},  # type: ignore[arg-type]
        allow=("cannot-learn",) if name.startswith("uedp") else (),  # a few steps of a few units
    )
