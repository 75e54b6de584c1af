"""Conversations as token ids: the tokenizer's chat template around contents that can never become special tokens.

For contents without special spellings the ids are those of ``apply_chat_template``; `<MASK>` is its one id.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from taciturn.errors import UsageError, nearest
from taciturn.models.literal_tokens import Blind, Drawn
from taciturn.models.template import Layout, layout
from taciturn.text.chat import parse

LossOn = Literal["all", "assistant"]


def encode_chat(tokenizer: Any, text: str, loss_on: LossOn = "all") -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """(ids, which of them are scored) of one record with messages in it; see :class:`ChatCoder`."""
    return next(ChatCoder.of(tokenizer, loss_on).encode([text]))


@dataclass(frozen=True, slots=True)
class ChatCoder:
    """Conversations to ids. loss_on: "all" scores everything but the first token and `<MASK>`; "assistant" scores what the
    assistant said and what ends its turns, and nothing else.

    Raises UsageError when the tokenizer has no chat template, or one that cannot render a sequence of roles.
    """

    tokenizer: Any
    loss_on: LossOn
    blind: Blind
    layouts: dict[tuple[str, ...], Layout] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, tokenizer: Any, loss_on: LossOn = "all") -> ChatCoder:
        """A coder for a tokenizer as it is now."""
        if loss_on not in get_args(LossOn):
            raise UsageError(f"loss_on {loss_on!r}: {nearest(loss_on, get_args(LossOn))}")
        if not getattr(tokenizer, "chat_template", None):
            raise UsageError(
                'the tokenizer has no chat template: set model.chat_template to a file with one, or to "plain" to join the '
                "contents by line ends"
            )
        return cls(tokenizer, loss_on, Blind.of(tokenizer))

    def encode(self, texts: Sequence[str], chunk: int = 1000) -> Iterator[tuple[NDArray[np.int32], NDArray[np.bool_]]]:
        """(ids, which of them are scored) of each text, in order. No text makes it fail; a sequence of roles may."""
        for first in range(0, len(texts), chunk):
            drawn = [self._draw(text) for text in texts[first : first + chunk]]
            for encoding, d in zip(self.blind.encode(drawn), drawn, strict=True):
                ids = self.blind.ids(encoding)
                scored = ids != self.blind.mask_id if self.loss_on == "all" else d.told_by(encoding)
                scored[:1] = False
                yield ids, scored

    def places(self, text: str) -> NDArray[np.int64]:
        """[T, 2]: the range of ``text`` each token shows something of; an empty one for what the template wrote."""
        drawn = self._draw(text)
        return drawn.places(self.blind.encode([drawn])[0])

    def layout(self, roles: tuple[str, ...]) -> Layout:
        """The template for these roles, rendered once."""
        if roles not in self.layouts:
            self.layouts[roles] = layout(self.tokenizer, roles, self.blind.guard)
        return self.layouts[roles]

    def _draw(self, text: str) -> Drawn:
        """The template around the messages of a text."""
        messages = parse(text)
        shape = self.layout(tuple(message.role for message in messages))
        drawn = Drawn()
        drawn.add(shape.pieces[0], 0, 0, False)
        for at, piece in zip(shape.order, shape.pieces[1:], strict=True):
            message, (left, right) = messages[at], shape.strip[at]
            told = message.role == "assistant"
            content = message.content.lstrip(left)
            start = message.start + len(message.content) - len(content)
            drawn.add_text(content.rstrip(right), start, told, self.blind.mask)
            closing = shape.closing[at]
            drawn.add(piece[:closing], 0, 0, told)
            drawn.add(piece[closing:], 0, 0, False)
        return drawn
