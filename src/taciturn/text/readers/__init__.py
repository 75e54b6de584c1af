"""Reading a corpus: text, tables, JSON, mail, chats and address books; flat records, dialogues and conversations."""

from taciturn.text.read_options import ReadOptions
from taciturn.text.readers.corpus import Corpus, read
from taciturn.text.readers.items import Blank, Quarantined

__all__ = ["Blank", "Corpus", "Quarantined", "ReadOptions", "read"]
