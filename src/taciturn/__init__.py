"""taciturn: language models that keep secrets.

Importing this package imports none of torch, transformers or pyarrow; each name below is loaded when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from taciturn._register import register_lstm

__version__ = "0.1.0"

_WHERE = {
    "PrivateSteps": "taciturn.mechanisms.own_steps",
    "PrivateTrainer": "taciturn.trainer.private_trainer",
    "read": "taciturn.text.readers",
    "policy": "taciturn.screening.policies",
    "screen": "taciturn.screening_api",
    "load_screened": "taciturn.screening.corpus.screened",
    "plan": "taciturn.api",
    "train": "taciturn.api",
    "audit": "taciturn.api",
    "report": "taciturn.api",
    "verify": "taciturn.mechanisms.registry",
    "synthesize": "taciturn.api",
    "simulate": "taciturn.data.customersim",
}
__all__ = [
    "PrivateSteps",
    "PrivateTrainer",
    "__version__",
    "audit",
    "load_screened",
    "plan",
    "policy",
    "read",
    "report",
    "screen",
    "simulate",
    "synthesize",
    "train",
    "verify",
]

if TYPE_CHECKING:
    from taciturn.api import audit, plan, report, synthesize, train
    from taciturn.data.customersim import simulate
    from taciturn.mechanisms.own_steps import PrivateSteps
    from taciturn.mechanisms.registry import verify
    from taciturn.screening.corpus.screened import load as load_screened
    from taciturn.screening.policies import policy
    from taciturn.screening_api import screen
    from taciturn.text.readers import read
    from taciturn.trainer.private_trainer import PrivateTrainer


register_lstm()


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'taciturn' has no attribute {name!r}")
    module = import_module(_WHERE[name])
    return getattr(module, "load" if name == "load_screened" else name)


def __dir__() -> list[str]:
    return sorted(__all__)
