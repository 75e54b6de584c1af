"""What a run used, as BibTeX: read off its plan, its certificate, its audit and the screened corpus it was made on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from taciturn import __version__
from taciturn.reporting.run_files import json_object, plan_of

Use = tuple[str, str]
"""A key of references.bib, and what it was used for."""

MECHANISMS = {
    "crt": ("zhao2022crt",),
    "crt_residual": ("zhao2022crt",),
    "dpsgd": ("abadi2016dpsgd",),
    "jft": ("shi2022jft",),
    "own-loop": ("abadi2016dpsgd",),
    "selective_dpsgd": ("shi2022sdp",),
    "uedp": ("lai2022uedp",),
    "uedp-published": ("lai2022uedp", "mcmahan2018user"),
    "user_dp": ("mcmahan2018user",),
}
ATTACKS = {
    "exposure": ("carlini2019sharer",),
    "membership": ("yeom2018overfitting", "carlini2021extracting", "shi2024mink", "zhang2024minkpp", "zarifzadeh2024rmia",
                   "das2024blind", "steinke2023onerun", "delong1988"),
    "group-membership": ("zhao2022crt", "yeom2018overfitting", "das2024blind", "delong1988"),
    "gradient": ("nasr2023tight", "steinke2023onerun", "mahloujifar2024fdp", "das2024blind"),
    "extraction": ("carlini2021extracting", "hayes2024probabilistic"),
    "pii-extraction": ("lukas2023pii",),
    "pii-reconstruction": ("lukas2023pii",),
    "pii-inference": ("lukas2023pii",),
}  # fmt: skip
DETECTORS = {
    "spacy": ("spacy", "shi2022jft"),
    "presidio": ("presidio", "spacy"),
    "gliner": ("zaratiana2024gliner",),
    "tokens": ("wolf2020transformers", "zhao2022crt"),
    "tokens-wide": ("wolf2020transformers", "zhao2022crt"),
    "detect-secrets": ("detectsecrets",),
    "conservative": ("wordfreq",),
    "words": ("wordfreq",),
    **dict.fromkeys("pii us gb de fr es in pl it nl pt se br ssn card iban".split(), ("stdnum",)),  # noqa: SIM905
}
OPTIMISERS = {"adam": "kingma2015adam", "adamw": "loshchilov2019adamw"}
CLIPPING = {"adaptive": "andrew2021adaptive", "automatic": "bu2023automatic"}


@cache
def entries() -> Mapping[str, str]:
    """Key → entry, of references.bib."""
    text = (files("taciturn.project") / "references.bib").read_text("utf-8").replace("VERSION", __version__)
    return {match[1]: match[0].strip() for match in re.finditer(r"^@\w+\{(\w+),[^\n]*\}$", text, re.MULTILINE)}


def cited_keys(run: Path) -> list[Use]:
    """What a run used, the mechanism first; each key once. DataError when the folder is not a run."""
    found: dict[str, str] = {"taciturn": "all of it"}
    for key, what in (*_plan(plan_of(run)), *_screening(run), *_certificate(run), *_audit(run), *LIBRARIES):
        found.setdefault(key, what)
    return list(found.items())


LIBRARIES = (("paszke2019pytorch", "training"), ("wolf2020transformers", "models and tokenizers"))


def _plan(plan: Mapping[str, Any]) -> Iterator[Use]:
    name, model = plan["mechanism"], plan["model"]
    yield from ((key, f"mechanism {name}") for key in MECHANISMS.get(name, ()))
    noised = [phase for phase in plan["phases"] if phase["event"]["event"] != "non-private"]
    if noised:
        yield "abadi2016dpsgd", "steps with noise"
        yield "li2022strong", "norms of per-record gradients"
        yield "bu2023bookkeeping", "clipped sums in one backward pass"
        yield "mironov2012bits", "why noise is rounded"
    for phase in plan["phases"]:
        if key := CLIPPING.get(phase["rule"].get("clipping", "")):
            yield key, f"{phase['rule']['clipping']} clipping"
        if key := OPTIMISERS.get(phase["optimiser"]["name"]):
            yield key, "optimiser"
    if model["name"] == "lstm":
        yield "hochreiter1997lstm", "model"
    elif model["name"] == "awd-lstm":
        yield "merity2018awd", "model"
    if model.get("lora") is not None:
        yield "hu2022lora", "adapter"


def _screening(run: Path) -> Iterator[Use]:
    """Nothing where the screened corpus is not at hand."""
    from taciturn.mechanisms.run import Run

    manifest = json_object(Path(Run(run).config.corpus) / "manifest.json") if (run / "run.toml").is_file() else None
    if manifest is None:
        return
    for policy in manifest["policies"].values():
        for name in re.split(r"[,:@#]", policy["name"]):
            yield from ((key, f"detector {name}") for key in DETECTORS.get(name, ()))
    if manifest["dedup"] != "none":
        yield "kandpal2022dedup", "deduplication"
    clean = {"minhash": "broder1997resemblance", "bloom": "bloom1970"}.get(manifest["clean"])
    if clean:
        yield clean, "cleaning"


def _certificate(run: Path) -> Iterator[Use]:
    certificate = json_object(run / "certificate.json")
    if certificate is None:
        return
    if any("PLD" in each.get("accountant", "") for each in certificate["guarantees"]):
        yield "dpaccounting", "accountant"
        yield "meiser2018budget", "privacy loss distributions"
        yield "koskela2020fft", "their composition by FFT"
        yield "doroshenko2022dots", "their discretisation"
    if any(each["detail"].get("k", 1) > 1 for each in certificate["guarantees"] if each.get("detail")):
        yield "schuchardt2024unified", "groups under subsampling"
    if certificate["evidence"].get("selection") is not None:
        yield "papernot2022tuning", "choice among runs"
    if certificate["evidence"].get("labelled"):
        yield "clopper1934", "bounds from labels"


def _audit(run: Path) -> Iterator[Use]:
    for finding in (json_object(run / "audit.json") or {}).get("findings", ()):
        yield from ((key, f"attack {finding['attack']}") for key in ATTACKS.get(finding["attack"], ()))
