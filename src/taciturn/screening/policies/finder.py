"""What redaction needs of a policy, and a policy of its detectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection


class Detector(Protocol):
    """Finds one kind of thing. Record-local: what it returns for a view depends on that view and its own definition only."""

    @property
    def name(self) -> str: ...

    def definition(self) -> Mapping[str, object]:
        """Everything that decides what is found, as JSON values: it becomes part of the policy's identity."""

    def find(self, views: Sequence[View]) -> list[Detection]:
        """One detection a view, spans in offsets of the original text. May raise: the record is then private."""

    def local(self, view: View) -> bool:
        """Whether, in this text, masking any whole marked words (``view.WORD``) leaves the marks on all other words as they
        are. True saves a check of that; False is always right."""


@runtime_checkable
class Patterned(Detector, Protocol):
    """A detector that finds nothing but matches of ``pattern`` (or parts of them) in the shadow of a text."""

    @property
    def pattern(self) -> str: ...

    @property
    def ignore_case(self) -> bool: ...


class Finder(Protocol):
    """What redaction needs of a policy: texts in, detections out."""

    @property
    def identity(self) -> str: ...

    def find(self, texts: Sequence[str]) -> list[Detection]: ...

    def words(self, texts: Sequence[str]) -> list[Detection]: ...

    def patterns(self, texts: Sequence[str]) -> list[Detection]: ...

    def local(self, texts: Sequence[str]) -> list[bool]: ...

    def apart(self, texts: Sequence[str]) -> list[bool]: ...


class Named(Finder, Protocol):
    """A finder that a corpus can be screened with: a ``Policy``, or one that spares public values (sparing.py)."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def covers_all(self) -> bool: ...
