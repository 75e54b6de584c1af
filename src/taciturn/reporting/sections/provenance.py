"""Where a model comes from: its settings, its environment; and the limits of the claims about it.

Only numbers and words of taciturn's own are read: a path, a template or a pattern could carry a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from taciturn.privacy.guarantees.guarantee import from_number
from taciturn.reporting.finished_run import RunView

Json = Mapping[str, Any]

_OWN = {"lstm": "lstm", "awd-lstm": "awd-lstm"}
_TOKENIZER = re.compile(r"auto|bytes|bpe:\d{1,7}")
_WORD = re.compile(r"[a-z][a-z0-9_]{0,40}")
_SIZES = (
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "hidden_size",
    "n_embd",
    "n_head",
    "num_attention_heads",
    "vocab_size",
)
_TASKS = ("causal", "classify", "masked", "prompt")
_OPTIMISER = ("momentum", "weight_decay", "warmup", "max_grad_norm", "eps")
_RULE = ("clipping", "quantile", "quantile_rate", "state_clip", "state_noise", "runs", "epochs", "batch_size", "lr")
_SAMPLER = ("counts", "units_per_user", "users_per_entity", "units_per_user_entity")


def settings(run: RunView, name: str) -> dict[str, Any]:
    """The plan's phases and every further number that was chosen."""
    spent = (run.certificate or {}).get("spent")
    if spent:
        spent = spent | {"epsilon": from_number(spent["epsilon"])}
    return {
        "run": name,
        "phases": [_phase(phase) for phase in run.plan.get("phases", ())],
        "chosen": [{"what": what, "value": value} for what, value in _chosen(run)],
        "repeat": run.plan.get("repeat"),
        "seeds": _seeds(run),
        "target": run.plan.get("target"),
        "spent": spent,
    }


def _phase(phase: Json) -> dict[str, Any]:
    event, sampler = phase.get("event") or {}, phase.get("sampler") or {}
    rule, optimiser = phase.get("rule") or {}, phase.get("optimiser") or {}
    rates = [event["rate"]] if "rate" in event else list(event.get("rates") or ())
    if not rates and "user_rate" in event:
        rates = [event["user_rate"], event["entity_rate"]]
    return {
        "name": phase.get("name"),
        "reads": list(phase.get("reads", ())),
        "unit": phase.get("unit") or "record",
        "records": phase.get("records"),
        "steps": phase.get("steps"),
        "batch_size": sampler.get("batch_size"),
        "rates": rates,
        "clip": rule.get("clip"),
        "noise_multiplier": event.get("noise_multiplier"),
        "optimiser": optimiser.get("name"),
        "lr": optimiser.get("lr"),
        "schedule": optimiser.get("schedule"),
    }


def _chosen(run: RunView) -> Iterator[tuple[str, Any]]:
    """(what, number or word of ours), of the model and then of each phase."""
    model = run.plan.get("model") or {}
    yield "model", _OWN.get(str(model.get("name")), "named in run.toml")
    if _WORD.fullmatch(kind := str(run.model.get("model_type") or "")):
        yield "architecture", kind
    yield from ((size.replace("_", " "), run.model[size]) for size in _SIZES if _number(run.model.get(size)))
    if _TOKENIZER.fullmatch(tokenizer := str(model.get("tokenizer"))):
        yield "tokenizer", tokenizer
    if (task := model.get("task", "causal")) in _TASKS:
        yield "task", task
    if model.get("dtype") in ("float32", "bf16", "fp16"):
        yield "matrix products in", model["dtype"]
    if (saved := run.model.get("dtype")) in ("float32", "bfloat16"):
        yield "weights saved in", saved
    if model.get("base_bits") == 4:
        yield "bits of the frozen base (made whole again, then merged)", 4
    if _number(model.get("max_length")):
        yield "tokens per record, at most", model["max_length"]
    yield from ((f"adapter {key}", model["lora"][key]) for key in ("r", "alpha", "dropout") if model.get("lora"))
    if _number(run.plan.get("average")):
        yield "moving average of weights", run.plan["average"]
    for phase in run.plan.get("phases", ()):
        for part, keys in (("optimiser", _OPTIMISER), ("rule", _RULE), ("sampler", _SAMPLER)):
            held = phase.get(part) or {}
            for key in keys:
                if key in held and (value := _plain(held[key])) is not None:
                    yield f"{phase.get('name')}, {part} {key.replace('_', ' ')}", value
    for key, seed in _seeds(run).items():
        yield f"seed of the {key}", "operating system" if seed == "os" else seed


def _seeds(run: RunView) -> dict[str, Any]:
    """Seeds, but for that of the noise: whoever knows it can take the noise away."""
    known = {key: seed for key, seed in (run.plan.get("seeds") or {}).items() if _number(seed) or seed == "os"}
    return {key: "stored" if key == "noise" and _number(seed) else seed for key, seed in known.items()}


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """A number, numbers, or a word of a setting; None for anything else."""
    if _number(value):
        return value
    if isinstance(value, str) and re.fullmatch("flat|per-layer|automatic|adaptive", value):
        return value
    return list(value) if isinstance(value, list | tuple) and value and all(map(_number, value)) else None


def environment(labelled: Sequence[tuple[str, RunView]]) -> dict[str, Any]:
    """Versions and digests as the certificates quote them, one column per certified run."""
    certified = [(name, run.certificate) for name, run in labelled if run.certificate is not None]
    packages = sorted({p for _, c in certified for p in c.get("versions") or {}})
    rows = [{"what": p, "values": [str((c.get("versions") or {}).get(p, "")) for _, c in certified]} for p in packages]
    # The corpus key and the plan's digest are functions of private text, by which a guess could be confirmed: not shown.
    rows.append({"what": "digest, ledger", "values": [str(c.get("ledger_digest") or "")[:16] for _, c in certified]})
    rows.append({"what": "digest, weights", "values": [" ".join(_weights(c)) for _, c in certified]})
    noise = ["seeded" if c.get("seeded_noise") else "operating system" for _, c in certified]
    rows.append({"what": "noise from", "values": noise})
    rows.append({"what": "certified", "values": [str(c.get("created") or "")[:10] for _, c in certified]})
    return {"runs": [name for name, _ in certified], "rows": rows if certified else []}


def _weights(certificate: Mapping[str, Any]) -> Iterator[str]:
    """The beginning of each digest of the files that hold weights."""
    for name, file in (certificate.get("model_files") or {}).items():
        if name.endswith(".safetensors"):
            yield str(file["sha256"])[:16]


def limits(runs: Sequence[RunView]) -> list[str]:
    """What the page does not say, most important first."""
    certificates = [run.certificate for run in runs if run.certificate is not None]
    texts = list(_LIMITS)
    if any(c.get("seeded_noise") for c in certificates):
        texts.insert(0, _SEEDED)
    if any(c.get("release") is False for c in certificates):
        texts.insert(0, _NOT_RELEASED)
    return texts


_LIMITS = (
    "Confidentiality is about one span of one record. What a record says beside its secrets, and that it was used at all, "
    "is outside the claim.",
    "A conditional claim holds for secrets that the conservative policy marks. A secret that both policies miss, in a "
    "record that is public, is trained on without noise.",
    "A record is not a person. Everything one person wrote is covered by the claims that say user, and by no others.",
    "A secret in many distinct records costs more than a secret in one; the group claims say how much.",
    "Attacks bound what an attacker gains from below, claims bound it from above. An attack that found nothing shows only "
    "that this attack found nothing.",
    "ε values of different notions, units or relations do not compare.",
)
_SEEDED = (
    "Noise came from a seed in at least one run: whoever knows the seed can remove it. Such a model is not for release."
)
_NOT_RELEASED = "At least one certificate says that its model is not for release; the summary lists why."
