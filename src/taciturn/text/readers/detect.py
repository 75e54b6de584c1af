"""Which format a path is in: by its ending, and for a file without one by its first bytes."""

from __future__ import annotations

from pathlib import Path

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import hub
from taciturn.text.readers.files import opened, plain_name
from taciturn.text.readers.mailbox import ENVELOPE

EXTENSIONS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".html": "html", ".htm": "html", ".xhtml": "html",
    ".eml": "eml", ".mbox": "mbox", ".mbx": "mbox", ".vcf": "vcard", ".vcard": "vcard",
}  # fmt: skip
_TEXTS = """
    .txt .text .md .rst .tex .log .out .diff .patch .pem .key .crt .pub .env .ini .cfg .conf .properties .toml .yaml .yml
    .xml .py .js .ts .jsx .tsx .java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .pl .lua .r .sh .bash .zsh .ps1 .bat .sql
    .css .vue .tf .gradle .ipynb
    """
TEXTS = frozenset(_TEXTS.split())
"""Read as plain text, a document per file."""


def is_dataset(path: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def format_of(path: Path, name: str, options: ReadOptions) -> str:
    """The format to read a path in. Raises DataError when nothing tells it."""
    if hub.named(path):
        return "hub"
    if path.is_dir():
        if options.format == "slack" or (is_dataset(path) and options.format in ("auto", "datasets")):
            return "slack" if options.format == "slack" else "datasets"
        raise DataError(
            f"{name} is a folder; name files in it ('{name}/*.jsonl'), a dataset written by save_to_disk, a folder that "
            f"load_dataset knows ('hf:{path}'), or a Slack export with format='slack'"
        )
    if options.format != "auto":
        return options.format
    plain = plain_name(name)
    if plain.rpartition("/")[2].startswith(".env"):  # .env.production
        return "text"
    ending = Path(plain).suffix.lower()
    if ending in EXTENSIONS or ending in TEXTS:
        return EXTENSIONS.get(ending, "text")
    if ending:
        raise DataError(
            f"cannot tell the format of {name}: its extension '{ending}' says nothing; format='text' reads it as plain text"
        )
    return _by_content(path, name)


def _by_content(path: Path, name: str) -> str:
    with opened(path, name) as stream:
        head = stream.read(4096)
    if ENVELOPE.match(head):
        return "mbox"
    if head.lstrip()[:11].upper() == b"BEGIN:VCARD":
        return "vcard"
    try:
        readable = "\0" not in head.decode("utf-8")
    except UnicodeDecodeError as error:
        readable = error.start > len(head) - 4 and len(head) == 4096  # a character that the end of the piece cuts
    if not readable:
        raise DataError(
            f"cannot tell the format of {name}: no extension, and not UTF-8 text; format='text' reads it as such"
        )
    return "text"
