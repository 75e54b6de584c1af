"""Skeletons with values of a table in the place of their masks, as a model that is public finds them plausible.

What comes out is a random function of the skeletons, of a released table, of a model, and of coins: post-processing
(docs/guarantees.md §3.7). Values of one record are drawn one after the other, so that a later one sees the earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from taciturn.models.loss import microbatches
from taciturn.models.sequences import end_id, start_id
from taciturn.models.tokens import Tokens, encode_all
from taciturn.text.chat import CLOSE, OPEN
from taciturn.text.document import MASK
from taciturn.training.fill import logits_at, only_reading
from taciturn.training.values.contexts import behind_each
from taciturn.training.values.shapes import Known
from taciturn.training.values.table import Table

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
BEFORE, AFTER = 24, 3
"""Tokens of the text before and behind a mask that candidates are judged by."""
ALPHA = 0.5
"""Exponent of the probability of a candidate's first token; the table has counted how frequent it is already."""
AT_A_TIME = 8192  # padded tokens of a pass


@dataclass(frozen=True, slots=True)
class Filler:
    """texts: the records of a phase. encode: records (their numbers, and their texts once filled) as tokens. tokenizer: of
    the model that judges. known: public values that shapes are made of. behind: of the last records what
    stands at each of their masks, where that may be left standing if the table shows it; None for what may not."""

    texts: Sequence[str]
    encode: Callable[[Sequence[int], Sequence[str]], Tokens]
    tokenizer: Any
    known: Known = field(default_factory=dict)
    behind: Sequence[Sequence[str | None]] = ()

    def filled(self, table: Table, model: Any, rows: Ints, seed: tuple[int, ...], candidates: int) -> Tokens:
        """The records ``rows``, in that order; the share of their masks that the table explains in a context is filled, the
        others stay, and what follows them is drawn. Draws follow (``seed``, row)."""
        return self.encode([int(row) for row in rows], self.written(table, model, rows, seed, candidates))

    def written(self, table: Table, model: Any, rows: Ints, seed: tuple[int, ...], candidates: int) -> list[str]:
        """The texts of :meth:`filled`."""
        parts = [self.texts[row].split(MASK) for row in rows]
        coins = [np.random.Generator(np.random.PCG64([*seed, int(row), 1])) for row in rows]
        classes = [table.contexts.numbers(self.texts[row]) for row in rows]
        follows = [behind_each(self.texts[row]) for row in rows]
        written = [part[0] for part in parts]
        for k in range(max((len(part) - 1 for part in parts), default=0)):
            asked: list[int] = []
            drawn: list[list[str]] = []
            for i, part in enumerate(parts):
                if k + 1 >= len(part):
                    continue
                if (there := self._standing(table, int(rows[i]), k)) is not None:
                    written[i] += there + part[k + 1]
                elif coins[i].random() < table.drawn.filled[classes[i][k]]:
                    asked.append(i)
                    drawn.append(table.draw(classes[i][k], follows[i][k], candidates, coins[i], self.known))
                else:
                    written[i] += MASK + table.tail(follows[i][k], coins[i]) + part[k + 1]
            judged = self._judged(model, [written[i] for i in asked], drawn, [parts[i][k + 1] for i in asked])
            for i, values, weights in zip(asked, drawn, judged, strict=True):
                share = np.cumsum(np.exp(weights - weights.max()))
                chosen = int(np.searchsorted(share, coins[i].random() * share[-1], side="right"))
                written[i] += values[min(chosen, len(values) - 1)] + parts[i][k + 1]
        return written

    def _standing(self, table: Table, row: int, mask: int) -> str | None:
        """What stays at a mask: a value that the table shows, with its tail."""
        place = row - (len(self.texts) - len(self.behind))
        there = self.behind[place] if place >= 0 else ()
        return there[mask] if there and table.shows(there[mask]) else None

    def _judged(
        self, model: Any, before: Sequence[str], drawn: Sequence[Sequence[str]], behind: Sequence[str]
    ) -> list[Floats]:
        """Of each candidate α·log p of its first token, and log p of the tokens behind it."""
        if not drawn or len(drawn[0]) == 1:
            return [np.zeros(1) for _ in drawn]
        asked = [
            _Asked.of(self.tokenizer, left, value, right)
            for left, values, right in zip(before, drawn, behind, strict=True)
            for value in values
        ]
        once = list(
            dict.fromkeys(asked)
        )  # a common value is drawn more than once, and one skeleton stands in many records
        place = {each: i for i, each in enumerate(once)}
        found = _scores(model, once)[[place[each] for each in asked]]
        return list(np.split(found, len(drawn)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """ids: text before, candidate, text behind. at: places whose next token is asked for; weights: of their log p."""

    ids: tuple[int, ...]
    at: tuple[int, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, tokenizer: Any, before: str, value: str, behind: str) -> _Asked:
        blank = " " if before.endswith(" ") else ""
        left = (start_id(tokenizer), *_ids(tokenizer, _last_line(before).rstrip(" "))[-BEFORE:])
        middle = _ids(tokenizer, blank + value)
        right = _ids(tokenizer, _first_line(behind))[:AFTER] or (end_id(tokenizer),)
        end = len(left) + len(middle)
        at = (len(left) - 1, *range(end - 1, end + len(right) - 1))
        return cls((*left, *middle, *right), at, (ALPHA, *(1.0 for _ in right)))


def _last_line(text: str) -> str:
    for border in (OPEN, CLOSE, "\n"):
        text = text.rpartition(border)[2]
    return " ".join(text.replace(MASK, " ").split(" ")[-2 * BEFORE :])


def _first_line(text: str) -> str:
    for border in (OPEN, CLOSE, "\n", MASK):
        text = text.partition(border)[0]
    return text[: 16 * AFTER]


@lru_cache(maxsize=1 << 16)
def _ids(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(encode_all(tokenizer, [text])[0][1:-1].tolist()) if text else ()


def _scores(model: Any, asked: Sequence[_Asked]) -> Floats:
    sizes = np.array([len(each.ids) for each in asked], np.int64)
    found = np.zeros(len(asked))
    with only_reading(model):
        for part in microbatches(np.arange(len(asked)), sizes, AT_A_TIME):
            some = [asked[i] for i in part]
            ids = np.zeros((len(some), int(sizes[part].max())), np.int64)
            shown = np.zeros_like(ids)
            for b, each in enumerate(some):
                ids[b, : len(each.ids)], shown[b, : len(each.ids)] = each.ids, 1
            places = np.repeat(np.arange(len(some)), [len(each.at) for each in some])
            at = np.concatenate([each.at for each in some])
            weights = np.concatenate([each.weights for each in some])
            logits = logits_at(model, ids, shown, places, at)
            targets = torch.from_numpy(ids[places, at + 1]).to(logits.device)[:, None]
            logs = logits.gather(1, targets)[:, 0].float() - logits.float().logsumexp(-1)
            np.add.at(found, part[places], weights * logs.cpu().numpy())
    return found
