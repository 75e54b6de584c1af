"""A run folder with all that a certificate is about, in a second: what the tests of verify start from."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

from taciturn.mechanisms.registry import guarantees
from taciturn.privacy.accounting.events import NonPrivate, PoissonGaussian
from taciturn.privacy.certificates.certificate import issue
from taciturn.privacy.certificates.digests import write_json
from taciturn.privacy.certificates.exported_model import COPIED
from taciturn.privacy.certificates.ledger import Ledger
from taciturn.privacy.guarantees.evidence import Evidence

OPEN, NOISY = NonPrivate(("public", "skeletons")), PoissonGaussian(0.05, 2.0)
PLAN = {
    "mechanism": "crt",
    "relation": "substitution",
    "group": 1,
    "free": [],
    "target": {"epsilon": 1.5, "delta": 8e-5},
    "phases": [
        {
            "name": "public", "reads": ["public", "skeletons"], "steps": 6, "event": OPEN.to_json(), "records": 90,
            "sampler": {"name": "Shuffle", "batch_size": 8}, "rule": {"name": "Plain"}, "unit": "record", "fill": None,
        },
        {
            "name": "private", "reads": ["private"], "steps": 8, "event": NOISY.to_json(), "records": 40,
            "sampler": {"name": "Poisson", "rate": 0.05},
            "rule": {"name": "ClipNoise", "clip": 1.0, "noise_multiplier": 2.0}, "packed": 0, "rows": None,
        },
    ],
    "repeat": 1,
    "seeds": {"model": 1, "data": 2, "noise": "os"},
    "corpus_key": "abc123",
}  # fmt: skip
EVIDENCE = Evidence(
    delta=8e-5, skeletons=True, labelled=200, missed_by_pi=20, missed_by_both=0, groups=(("accounts", 2),),
    records_per_user=3, counts={"read": 130, "public": 90, "private": 40, "quarantined": 0}, protected=40,
)  # fmt: skip
FILES = {
    "model.safetensors": bytes(range(256)) * 4,
    "config.json": b'{"vocab_size": 257}',
    "tokenizer.json": b'{"model": {}}',
    "tokenizer_config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "adapter/adapter_model.safetensors": b"a" * 64,
    "adapter/adapter_config.json": b'{"r": 8}',
    "adapter/README.md": b"An adapter.",
}


def make(folder: Path) -> Path:
    """A finished and certified run in ``folder``."""
    for name, content in FILES.items():
        path = folder / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    write_json(folder / "plan.json", PLAN)
    write_json(folder / "evidence.json", EVIDENCE.to_json())
    _train(folder / "ledger.jsonl")
    issue(folder, guarantees, {"torch": "2.1.0+cpu"}).write(folder / "certificate.json")
    return folder


def _train(path: Path) -> None:
    """Six public and eight private steps; the run stopped after ten and went on from nine, so one is lost."""
    steps = list(enumerate([("public", OPEN)] * 6 + [("private", NOISY)] * 8))
    with Ledger.create(path) as ledger:
        for step, (phase, event) in steps[:10]:
            at = ledger.position
            ledger.append(step, phase, event, "0123456789abcdef" * 2 if event is NOISY else None)
    with Ledger.resume(path, at) as ledger:
        ledger.go_on()
        for step, (phase, event) in steps[9:]:
            ledger.append(step, phase, event)
        ledger.end()


def exported(run: Path, out: Path) -> Path:
    """As `taciturn export` writes it: the model's files and the certificate's in one folder, and a card."""
    shutil.copytree(run / "model", out)
    for name in COPIED:
        if (run / name).exists():
            shutil.copy(run / name, out / name)
    (out / "README.md").write_text("# a card")
    return out


def edited(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """A copy of plain JSON with ``new`` at ``path``."""
    value = copy.deepcopy(value)
    place = value
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = new
    return value
