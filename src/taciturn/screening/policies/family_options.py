"""The options a detector family takes, checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from taciturn.errors import UsageError, nearest

Options = TypeVar("Options", bound=BaseModel)


def checked(model: type[Options], options: Mapping[str, object], family: str) -> Options:
    """``options`` as a ``model``. Raises UsageError: an unknown option (naming the nearest) or a value out of range."""
    for key in options:
        if key not in model.model_fields:
            known = list(model.model_fields)
            hint = nearest(key, known) if known else f"{family} takes none"
            raise UsageError(f"{family}: unknown option '{key}'; {hint}")
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors(include_input=False)[0]
        raise UsageError(f"{family}: option '{first['loc'][0]}': {first['msg'].lower()}") from None


def split(names: str) -> tuple[str, ...]:
    """Names between commas, blanks around them dropped, doubles too.

    >>> split("PERSON, ORG,,PERSON")
    ('PERSON', 'ORG')
    """
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
