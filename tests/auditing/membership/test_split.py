"""One random split before training: coins, copies on one side, what is set aside; and the command."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from taciturn.auditing.membership.split import split
from taciturn.errors import UsageError
from taciturn.text.document import Document

TEXTS = [f"text {i % 900}" for i in range(1000)]  # a hundred of them twice


def test_a_text_is_on_one_side_with_all_its_copies() -> None:
    """900 coins: members within 4 sd of 360 of the 720 left (6e-5)."""
    found = split(TEXTS, seed=3, reference=0.2)
    sides = [set(side) for side in (found.members, found.nonmembers, found.reference)]
    assert len(set.union(*sides)) == sum(map(len, sides)) == 900
    assert sum(map(len, (found.members, found.nonmembers, found.reference))) == 1000
    assert len(sides[2]) == 180
    assert abs(len(sides[0]) - 360) < 4 * 720**0.5 / 2
    assert found == split(TEXTS, seed=3, reference=0.2) != split(TEXTS, seed=4, reference=0.2)


def test_documents_are_split_by_their_text() -> None:
    documents = [Document(f"d{i}", text) for i, text in enumerate(TEXTS)]
    found = split(documents, seed=3)
    assert [d.text for d in found.members] == list(split(TEXTS, seed=3).members)
    with pytest.raises(UsageError, match="two different texts"):
        split(["a", "a"], seed=0)
    with pytest.raises(UsageError, match="from 0 to below 1"):
        split(TEXTS, seed=0, reference=1.0)


def test_the_command_writes_the_parts_once_and_for_their_owner(tmp_path: Path, capsys: Any) -> None:
    from taciturn.cli.split import split as split_command

    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    split_command(tmp_path / "texts.txt", output=tmp_path / "coins", reference=0.1, json=True)
    said = capsys.readouterr().out
    assert "text" not in said
    lines = [(tmp_path / "coins" / f"{n}.txt").read_text().splitlines() for n in ("members", "nonmembers", "reference")]
    assert sorted(line for part in lines for line in part) == sorted(TEXTS)
    assert (tmp_path / "coins" / "members.txt").stat().st_mode & 0o77 == 0
    with pytest.raises(UsageError, match="there already"):
        split_command(tmp_path / "texts.txt", output=tmp_path / "coins", reference=0.1)
