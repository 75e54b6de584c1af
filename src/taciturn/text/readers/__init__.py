"""Reading a corpus: plain text, JSON lines and lists, CSV, Parquet, saved datasets; flat records and dialogues."""

from taciturn.text.readers.corpus import Corpus, read
from taciturn.text.readers.items import Blank, Quarantined, ReadOptions

__all__ = ["Blank", "Corpus", "Quarantined", "ReadOptions", "read"]
