"""What a model hub reads of a card beside its text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from taciturn.errors import UsageError

TAGS = ("taciturn", "differential-privacy", "confidentiality")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")


@dataclass(frozen=True, slots=True)
class Hub:
    """base_model: a hub name, where the plan names a folder. language: codes such as "en". license: an identifier of the
    hub's list, e.g. apache-2.0; without one the card says that none was named. tags: more of them. Raises UsageError."""

    base_model: str | None = None
    language: Sequence[str] = ()
    license: str | None = None
    tags: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.base_model is not None and not _NAME.fullmatch(self.base_model):
            raise UsageError(
                f"base_model {self.base_model!r}: expected a hub name such as gpt2 or owner/model, not a path"
            )
        for code in self.language:
            if not re.fullmatch(r"[a-z]{2,3}", code):
                raise UsageError(f"language {code!r}: expected a code of two or three letters, such as en")

    def lines(self, planned: str | None) -> Iterator[str]:
        """Lines of the YAML head. planned: the hub name that the plan began with, if it was one. Strings are written as
        JSON, which is YAML too, so no name can break out of it."""
        if self.license is None:
            yield from ("license: other", "license_name: unspecified")
        else:
            yield f"license: {json.dumps(self.license)}"
        if self.language:
            yield f"language: {json.dumps(list(self.language))}"
        if base := self.base_model or planned:
            yield f"base_model: {json.dumps(base)}"
        yield "tags:"
        yield from (f"- {json.dumps(tag) if tag not in TAGS else tag}" for tag in (*TAGS, *self.tags))
