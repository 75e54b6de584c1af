"""``tokens-wide:MODEL``: the family of π_c, in ``tokens``."""

from taciturn.screening.policies.tokens import OPTIONS, named_wide

named = named_wide

__all__ = ["OPTIONS", "named"]
