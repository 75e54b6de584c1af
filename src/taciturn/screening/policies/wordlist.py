"""The family ``wordlist:FILE``; see values.py."""

from __future__ import annotations

from taciturn.screening.policies.values import OPTIONS
from taciturn.screening.policies.values import wordlist as named

__all__ = ["OPTIONS", "named"]
