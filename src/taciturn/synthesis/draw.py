"""Texts drawn from a model, many at once: a function of the model, the settings and their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch

from taciturn.auditing.extraction.decoding import opening
from taciturn.errors import UsageError
from taciturn.models.hf import context_length
from taciturn.models.sequences import end_id
from taciturn.models.tokens import encode_all
from taciturn.synthesis.settings import Settings
from taciturn.text.document import MASK
from taciturn.training.fill import filled

Notify = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Drawn:
    """cut: whether it ended at ``max_tokens`` and not of itself."""

    text: str = field(repr=False)
    label: str | None = None
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Writer:
    """A causal model that writes. openings: ids of each, without blanks at the end, which belong to the next word."""

    model: Any
    tokenizer: Any
    settings: Settings
    openings: tuple[tuple[int, ...], ...]

    @staticmethod
    def of(model: Any, tokenizer: Any, settings: Settings) -> Writer:
        """Raises UsageError where the model is too short for the openings and ``max_tokens``."""
        texts = () if settings.skeletons else settings.openings()
        ids = tuple(tuple(opening(tokenizer, text.rstrip(" "))) for text in texts)
        longest, limit = max(map(len, ids), default=0) + settings.max_tokens, context_length(model)
        if limit is not None and longest > limit:
            raise UsageError(
                f"max_tokens = {settings.max_tokens} and the longest opening are {longest} tokens, and the model reads "
                f"{limit}: lower max_tokens, or shorten the opening"
            )
        device = "cuda" if torch.cuda.is_available() else "cpu"
        return Writer(model.to(device).eval(), tokenizer, settings, ids)

    def draw(self, number: int, turns: range, notify: Notify = lambda _: None) -> list[Drawn]:
        """The texts of these numbers, which are piece ``number``; notify: told of how many there are, now and then."""
        if self.settings.skeletons:
            return self._filled(number, turns, notify)
        return self._continued(number, turns, notify)

    def _filled(self, number: int, turns: range, notify: Notify) -> list[Drawn]:
        skeletons = self.settings.skeletons
        tokens = encode_all(self.tokenizer, [skeletons[turn % len(skeletons)] for turn in turns])
        rows = np.arange(len(turns))
        mask = int(self.tokenizer.convert_tokens_to_ids(MASK))
        seed = (self.settings.seed, number)
        done = filled(self.model, tokens, rows, mask, seed, never=special_ids(self.tokenizer))
        texts = [self._text(done[row].tolist()[1:])[0] for row in range(len(turns))]
        notify(len(turns))
        return [Drawn(text) for text in texts]

    def _continued(self, number: int, turns: range, notify: Notify) -> list[Drawn]:
        """Only openings of one length go together: recurrent models read no padding on the left."""
        at = [turn % len(self.openings) for turn in turns]
        order = sorted(range(len(turns)), key=lambda i: (len(self.openings[at[i]]), i))
        out: dict[int, Drawn] = {}
        batches = [
            same[first : first + self.settings.batch]
            for _, group in groupby(order, key=lambda i: len(self.openings[at[i]]))
            for same in [list(group)]
            for first in range(0, len(same), self.settings.batch)
        ]
        for part, batch in enumerate(batches):
            words = np.random.SeedSequence((self.settings.seed, number, part)).generate_state(1, np.uint64)
            ids = [self.openings[at[i]] for i in batch]
            for i, (text, ended) in zip(batch, self._generated(ids, int(words[0])), strict=True):
                out[i] = self._whole(at[i], text, ended)
            notify(len(out))
        return [out[i] for i in range(len(turns))]

    def _whole(self, which: int, text: str, ended: bool) -> Drawn:
        """What was drawn with what it continues: a prompt stands in front, a label beside it."""
        if self.settings.labels:
            return Drawn(text.strip(), self.settings.labels[which], not ended)
        before = self.settings.openings()[which].rstrip(" ")
        return Drawn((before + text) if text.strip() else "", None, not ended)

    def _generated(self, ids: Sequence[Sequence[int]], seed: int) -> Iterator[tuple[str, bool]]:
        """(text, whether it ended of itself) of one draw after each opening."""
        start = torch.tensor(ids, device=self.model.device)
        end, decoding = end_id(self.tokenizer), self.settings.decoding()
        never = sorted(set(special_ids(self.tokenizer)) - {end}) or None
        devices = [self.model.device] if self.model.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices), torch.inference_mode():
            torch.manual_seed(seed)
            rows = self.model.generate(
                start, attention_mask=torch.ones_like(start), do_sample=True, temperature=float(decoding.temperature),
                top_k=decoding.top_k, top_p=decoding.top_p, max_new_tokens=self.settings.max_tokens, eos_token_id=end,
                pad_token_id=end, suppress_tokens=never,
            )[:, start.shape[1] :].tolist()  # fmt: skip
        return (self._text(row) for row in rows)

    def _text(self, ids: Sequence[int]) -> tuple[str, bool]:
        end = end_id(self.tokenizer)
        ended = end in ids
        kept = list(ids[: list(ids).index(end)]) if ended else list(ids)
        return self.tokenizer.decode(kept, clean_up_tokenization_spaces=False), ended


def special_ids(tokenizer: Any) -> list[int]:
    """Ids that stand for no text: `<MASK>`, starts, ends, roles."""
    added = (i for i, token in tokenizer.added_tokens_decoder.items() if token.special)
    return sorted({*map(int, added), *map(int, tokenizer.all_special_ids)})
