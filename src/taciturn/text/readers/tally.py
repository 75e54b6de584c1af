"""What is counted while a corpus is read: documents, faults that look alike, ids."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field

from taciturn.errors import DataError, nearest
from taciturn.text.readers.chats import suggested
from taciturn.text.readers.items import MissingField


@dataclass(slots=True)
class Ids:
    """Makes ids unique in the order they come, or refuses repeated ones, as ``duplicate_ids`` says."""

    rule: str
    _seen: dict[str, int] = field(default_factory=dict, repr=False)

    def unique(self, name: str, where: str) -> str:
        """``name``, or ``name~2``, ``name~3``, ... Raises DataError."""
        seen = self._seen
        if name not in seen:
            seen[name] = 1
            return name
        if self.rule == "error":
            raise repeated(where)
        while True:
            seen[name] += 1
            other = f"{name}~{seen[name]}"
            if other not in seen:
                seen[other] = 1
                return other


def repeated(where: str) -> DataError:
    return DataError(f"{where}: its id was used by an earlier record; make ids unique or set duplicate_ids='suffix'")


@dataclass(slots=True)
class Tally:
    """Enough about one pass to tell an empty corpus and a misspelt field name from a few bad lines. Tallies of pieces add
    up to that of the corpus."""

    documents: int = 0
    quarantined: int = 0
    lacking: dict[str, int] = field(default_factory=dict)
    shared: frozenset[str] | None = None

    def lacks(self, bad: MissingField) -> None:
        self.add(Tally(lacking={bad.field: 1}, shared=bad.names))

    def add(self, other: Tally) -> None:
        self.documents += other.documents
        self.quarantined += other.quarantined
        for name, count in other.lacking.items():
            self.lacking[name] = self.lacking.get(name, 0) + count
        if other.shared is not None:
            self.shared = other.shared if self.shared is None else self.shared & other.shared

    def check(self, sources: list[str]) -> None:
        if self.documents:
            return
        if not self.quarantined:
            raise DataError(f"the corpus is empty: no document in {', '.join(sources[:5])}")
        wanted, count = max(self.lacking.items(), key=lambda item: item[1], default=("", 0))
        if count == self.quarantined:
            # Names that look like names: a file without a header line, or an object keyed by people, shows none.
            shown = sorted(
                name for name in self.shared or () if re.fullmatch(r"[A-Za-z][A-Za-z_.-]{0,31}\d{0,2}", name)
            )
            hidden = len(self.shared or ()) - len(shown[:20])
            there = f"; fields there: {', '.join(shown[:20]) or 'none to show'}" + (
                f" and {hidden} more" * (hidden > 0)
            )
            hint = f" ({nearest(wanted, shown)})" if difflib.get_close_matches(wanted, shown, n=1) else ""
            if chat := suggested(self.shared or ()):
                hint = f"; they look like conversations: chat='{chat}'"
            raise DataError(f"none of the {count} records has a field '{wanted}'{there}{hint}")
