"""A small screened corpus with text that is hard to count in: emoji, combining marks, hidden characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from taciturn.screening import policy, screen
from taciturn.text.document import Document
from taciturn.text.readers import Corpus

PHONE, NAME, WORD = "(555) 010-7788", "Rhonda Quillfeather", "sesame"
TEXTS = (
    f"please call me at {PHONE} today 😀",
    f"😀 my name is {NAME} 👩‍👩‍👧 i think",
    f"the magic word is {WORD}, said \u202equietly\u202c",
    "hello, how can I help you?",
    "line one\nline two: ＡＢＣ naïve cafe\u0301",
)
SECRETS = (PHONE, NAME, *NAME.split(), WORD, "010-7788")


def documents(copies: int = 8) -> list[Document]:
    return [Document(f"d{i}", f"{TEXTS[i % len(TEXTS)]} {i}") for i in range(copies * len(TEXTS))]


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A screened folder that no test writes into."""
    out = tmp_path_factory.mktemp("review") / "screened"
    screen(
        Corpus.from_documents(documents()), policy("phone", "email"), policy("conservative"), unit="document", out=out
    )
    return out
