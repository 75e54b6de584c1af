"""Options of reading files, the same for every command that reads a corpus."""

from __future__ import annotations

from dataclasses import asdict, fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, get_type_hints

from cyclopts import Parameter

from taciturn.text.read_options import ReadOptions

if TYPE_CHECKING:
    from taciturn.text.readers import Corpus

_HELP = {
    "format": "of the files, if their names do not say it",
    "text": "field that holds the text",
    "user": "field that names the user",
    "id": "field that holds the id",
    "turns": "field that holds a dialogue's turns",
    "spans": "field that holds annotated secrets, if any",
    "chat": "rows are conversations: openai, sharegpt, pairs, alpaca or turns; fields after a colon",
    "text_pair": "field that holds a second text",
    "label": "field that holds a label; labels are not redacted",
    "encoding": "of text files, if it is not UTF-8: cp1252, utf-16",
    "encoding_errors": "replace: keep a record that does not decode, private",
    "max_record_bytes": "a longer item counts as unreadable",
    "duplicate_ids": "suffix: tell documents of one id apart by a number",
    "gold": "which annotations are secrets: all, or those marked secret: true",
}
_FIRST = ("text", "user")
"""What most files need, on the first page of help."""
_TYPES = get_type_hints(ReadOptions)


def _shown(name: str) -> Parameter:
    said = _HELP.get(name)
    return Parameter(help=said) if name in _FIRST else Parameter(help=said, group="Reading files")


_Options = make_dataclass(
    "_Options",
    [(f.name, Annotated[_TYPES[f.name], _shown(f.name)], f.default) for f in fields(ReadOptions)],
    frozen=True,
)


@Parameter(name="*")
class Reading(_Options):  # type: ignore[misc, valid-type]
    """How files become documents: the options of taciturn.text.read_options.ReadOptions."""

    def corpus(self, paths: tuple[str, ...]) -> Corpus:
        """The files, to be read under these options."""
        from taciturn.text.readers import read

        return read(*paths, **asdict(self))


READ = Reading()
"""Every option at its default."""
