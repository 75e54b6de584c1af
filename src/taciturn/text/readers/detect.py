"""Which format a path is in: by its ending, and for a file without one by its first bytes."""

from __future__ import annotations

from pathlib import Path

from taciturn.errors import DataError
from taciturn.text.read_options import ReadOptions
from taciturn.text.readers import hub
from taciturn.text.readers.files import opened, plain_name
from taciturn.text.readers.held import File, Held
from taciturn.text.readers.mailbox import ENVELOPE

EXTENSIONS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
    ".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".html": "html", ".htm": "html", ".xhtml": "html",
    ".eml": "eml", ".mbox": "mbox", ".mbx": "mbox", ".vcf": "vcard", ".vcard": "vcard",
    ".docx": "docx", ".docm": "docx", ".dotx": "docx", ".pptx": "pptx", ".pptm": "pptx", ".ppsx": "pptx",
    ".xlsx": "xlsx", ".xlsm": "xlsx", ".pdf": "pdf", ".rtf": "rtf", ".ipynb": "ipynb", ".msg": "msg",
    ".xml": "xml", ".svg": "xml", ".srt": "subtitles", ".vtt": "subtitles", ".spacy": "spacy",
}  # fmt: skip
_TEXTS = """
    .txt .text .md .rst .tex .log .out .diff .patch .pem .key .crt .pub .env .ini .cfg .conf .properties .toml .yaml .yml
    .py .js .ts .jsx .tsx .java .kt .c .h .cc .cpp .hpp .cs .go .rs .rb .php .pl .lua .r .sh .bash .zsh .ps1 .bat
    .sql .css .vue .tf .gradle
    """
TEXTS = frozenset(_TEXTS.split())
"""Read as plain text, a document per file."""
ARCHIVE = "archive"
ARCHIVES = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz", ".tar.zst")
_OCR = "an image, and no text; recognise what is written in it (tesseract) and name that"
_SAID = "a recording; write down what is said in it and name that"
_OFFICE = "an old or other office format; save it as {} (soffice --convert-to {})"
_PACKED = "an archive of a kind that is not opened; unpack it and name the folder"
REFUSED = {
    **{each: _OFFICE.format("docx", "docx") for each in (".doc", ".dot", ".odt", ".wpd", ".pages")},
    **{each: _OFFICE.format("xlsx", "xlsx") for each in (".xls", ".xlsb", ".ods", ".numbers")},
    **{each: _OFFICE.format("pptx", "pptx") for each in (".ppt", ".pps", ".odp")},
    **dict.fromkeys((".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp", ".heic", ".ico"), _OCR),
    **dict.fromkeys((".mp3", ".wav", ".m4a", ".ogg", ".flac", ".mp4", ".mov", ".avi", ".mkv", ".webm"), _SAID),
    **dict.fromkeys((".7z", ".rar", ".bz2", ".xz", ".cab", ".jar", ".iso", ".dmg"), _PACKED),
    ".pst": "an Outlook store; export it to mbox (readpst)", ".ost": "an Outlook store; export it to mbox (readpst)",
    ".sqlite": "a database; export its tables as csv", ".db": "a database; export its tables as csv",
    ".mdb": "a database; export its tables as csv", ".epub": "a book; convert it to html (pandoc)",
}  # fmt: skip
"""What is not read, and what to do instead."""


def is_dataset(path: Path) -> bool:
    """Whether ``save_to_disk`` wrote this folder."""
    return (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()


def is_archive(name: str) -> bool:
    """Whether a file of this name holds files, each of which is read."""
    return name.lower().endswith(ARCHIVES)


def format_of(path: File, name: str, options: ReadOptions) -> str:
    """The format to read a path in. Raises DataError when nothing tells it."""
    if isinstance(path, Path) and hub.named(path):
        return "hub"
    if isinstance(path, Path) and path.is_dir():
        if options.format == "slack" or is_dataset(path):
            return "slack" if options.format == "slack" else "datasets"
        raise DataError(
            f"{name} is no dataset written by save_to_disk; without format='datasets' each file in it is read, and "
            f"'hf:{path}' asks load_dataset"
        )
    if is_archive(name) and options.format != "slack":
        return ARCHIVE
    if options.format != "auto":
        return options.format
    if isinstance(path, Held) and name == path.name:
        raise DataError(f"{name} has no name that tells its format: say it with format='jsonl' or another format")
    plain = plain_name(name)
    if plain.rpartition("/")[2].startswith(".env"):  # .env.production
        return "text"
    ending = Path(plain).suffix.lower()
    if ending in EXTENSIONS or ending in TEXTS:
        return EXTENSIONS.get(ending, "text")
    if ending in REFUSED:
        raise DataError(f"{name} is {REFUSED[ending]}")
    if ending:
        raise DataError(
            f"cannot tell the format of {name}: its extension '{ending}' says nothing; if it is plain text, give it the "
            "extension .txt or read it with format='text', else convert it"
        )
    return _by_content(path, name)


def _by_content(path: File, name: str) -> str:
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
