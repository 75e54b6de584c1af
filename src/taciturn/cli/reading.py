"""Options of reading files, the same for every command that reads a corpus."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from taciturn.text.readers import Corpus


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Reading:
    """How files become documents; see taciturn.text.readers.items.ReadOptions."""

    format: str = "auto"
    text: Annotated[str, Parameter(help="field that holds the text")] = "text"
    user: Annotated[str | None, Parameter(help="field that names the user")] = None
    id: Annotated[str | None, Parameter(help="field that holds the id")] = None
    turns: Annotated[str, Parameter(help="field that holds a dialogue's turns")] = "turns"
    spans: Annotated[str, Parameter(help="field that holds annotated secrets, if any")] = "spans"
    chat: Annotated[
        str | None,
        Parameter(help="rows are conversations: openai, sharegpt, pairs, alpaca or turns; fields after a colon"),
    ] = None
    text_pair: Annotated[str | None, Parameter(help="field that holds a second text")] = None
    label: Annotated[str | None, Parameter(help="field that holds a label; labels are not redacted")] = None
    gold: Annotated[
        Literal["annotated", "secret"],
        Parameter(help="which annotations are secrets: all, or those marked secret: true"),
    ] = "annotated"
    encoding_errors: Literal["strict", "replace"] = "strict"
    max_record_bytes: int = 16 * 2**20
    duplicate_ids: Literal["error", "suffix"] = "error"

    def corpus(self, paths: tuple[str, ...]) -> Corpus:
        """The files, to be read under these options."""
        from taciturn.text.readers import read

        return read(*paths, **asdict(self))


READ = Reading()
"""Every option at its default."""
