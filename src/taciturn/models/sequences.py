"""A record as token ids, whatever its form, and where in its text each token comes from.

A text's sequence is ``[start] + ids + [end]``; a conversation's is what the chat template makes of it, a pair's what the
tokenizer does. Targets are everything after the start, except `<MASK>`, or what the assistant says; a record that is
nothing but `<MASK>` has no target at all (docs/guarantees.md, "Preprocessing": a removed duplicate adds no gradient).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from taciturn.models.chat import ChatCoder, LossOn
from taciturn.models.literal_tokens import Blind, Drawn, has_backend
from taciturn.text.chat import OPEN, pair, structured
from taciturn.text.document import MASK


class Sequenced(NamedTuple):
    """ids, and which are scored (None: as :func:`targets` says). segments: which text of a pair each id belongs to, 0 or 1,
    as the tokenizer says; None where there is one text. All [T]."""

    ids: NDArray[np.int32]
    scored: NDArray[np.bool_] | None = None
    segments: NDArray[np.int8] | None = None


def mask_id(tokenizer: Any) -> int:
    """The id of `<MASK>`."""
    return int(tokenizer.convert_tokens_to_ids(MASK))


def start_id(tokenizer: Any) -> int:
    """The id every sequence starts with: the tokenizer's own start token (BERT's is [CLS]), else its end token (as GPT-2
    does)."""
    return _first(tokenizer.bos_token_id, tokenizer.cls_token_id, tokenizer.eos_token_id)


def end_id(tokenizer: Any) -> int:
    """The id every sequence ends with: the tokenizer's end token, or BERT's [SEP]."""
    return _first(tokenizer.eos_token_id, tokenizer.sep_token_id)


def _first(*ids: int | None) -> int:
    return next(int(i) for i in ids if i is not None)


def targets(ids: NDArray[np.int32], mask: int) -> NDArray[np.bool_]:
    """Which positions are scored (same shape as ``ids``): all but the first, and never `<MASK>`."""
    scored: NDArray[np.bool_] = ids != mask
    scored[..., 0] = False
    return scored


def sequences(
    tokenizer: Any, texts: Sequence[str], chunk: int, loss_on: LossOn = "all", mixed: bool = True
) -> Iterator[Sequenced]:
    """The sequence of each text, in order. mixed: whether conversations or pairs may be among them; then every sequence
    says what is scored."""
    if not mixed:
        yield from _plain(tokenizer, texts, chunk)
        return
    mask = mask_id(tokenizer)
    coder: ChatCoder | None = None
    for first in range(0, len(texts), chunk):
        kinds = [_kind(text) for text in texts[first : first + chunk]]
        sorted_out: dict[str, list[str]] = {"chat": [], "pair": [], "text": []}
        for kind, text in zip(kinds, texts[first : first + chunk], strict=True):
            sorted_out[kind].append(text)
        if sorted_out["chat"] and coder is None:
            coder = ChatCoder.of(tokenizer, loss_on)
        streams: dict[str, Iterator[Sequenced]] = {
            "chat": iter(()) if coder is None else (Sequenced(*coded) for coded in coder.encode(sorted_out["chat"])),
            "pair": _pairs(tokenizer, sorted_out["pair"]),
            "text": _plain(tokenizer, sorted_out["text"], chunk),
        }
        for kind in kinds:
            coded = next(streams[kind])
            yield coded if coded.scored is not None else coded._replace(scored=targets(coded.ids, mask))


def _kind(text: str) -> str:
    return "text" if not structured(text) else "chat" if pair(text) is None else "pair"


def _pairs(tokenizer: Any, texts: Sequence[str]) -> Iterator[Sequenced]:
    if not texts:
        return
    frame = Frame.of(tokenizer)
    both = [found for text in texts if (found := pair(text)) is not None]
    sides = iter(bodies(tokenizer, [side.content if side else "" for found in both for side in found]))
    for _, second in both:
        a, b = next(sides), next(sides)
        yield frame.around(a, b if second else None)


def _plain(tokenizer: Any, texts: Sequence[str], chunk: int) -> Iterator[Sequenced]:
    start, end = start_id(tokenizer), end_id(tokenizer)
    for first in range(0, len(texts), chunk):
        some = texts[first : first + chunk]
        for text, ids in zip(some, bodies(tokenizer, some), strict=True):
            close = [end] if text.replace(MASK, "") else []
            yield Sequenced(np.asarray([start, *ids, *close], np.int32))


def bodies(tokenizer: Any, texts: Sequence[str]) -> list[list[int]]:
    """The ids of each text. Nothing is a special token but `<MASK>`, and a word beside one is coded as it is elsewhere."""
    coded: list[list[int]] = tokenizer(
        ["" if MASK in text else text for text in texts],
        add_special_tokens=False,
        split_special_tokens=True,
        verbose=False,
    )["input_ids"]
    masked = [i for i, text in enumerate(texts) if MASK in text]
    joint = [i for i in masked if _joint(tokenizer, texts[i])]
    if joint:
        blind = Blind.of(tokenizer)
        for i, encoding in zip(joint, blind.encode([_drawn(texts[i], blind) for i in joint]), strict=True):
            coded[i] = blind.ids(encoding).tolist()
    for i in masked:
        if not _joint(tokenizer, texts[i]):
            coded[i] = _piecewise(tokenizer, texts[i])
    return coded


def _joint(tokenizer: Any, text: str) -> bool:
    """Whether a text can be coded in one go, masks and all."""
    return OPEN not in text and has_backend(tokenizer)


def _drawn(text: str, blind: Blind, start: int = 0) -> Drawn:
    drawn = Drawn()
    drawn.add_text(text, start, False, blind.mask)
    return drawn


def _piecewise(tokenizer: Any, text: str) -> list[int]:
    """The stretches between masks coded as if each stood alone."""
    coded = tokenizer(text.split(MASK), add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"]
    mask = mask_id(tokenizer)
    return [i for stretch in coded for i in (mask, *stretch)][1:]


@dataclass(frozen=True, slots=True)
class Frame:
    """The special ids a tokenizer puts before, between and after two texts; start and ends where it has no pairs.

    segments: which text each of start, first text, middle, second text and end belongs to, 0 or 1; None where the tokenizer
    gives a model no such ids.
    """

    start: list[int]
    middle: list[int]
    end: list[int]
    segments: tuple[list[int], int, list[int], int, list[int]] | None

    @classmethod
    def of(cls, tokenizer: Any) -> Frame:
        coded = tokenizer("a", "b", verbose=False)
        owners, ids, segments = coded.sequence_ids(0), coded["input_ids"], coded.get("token_type_ids")
        if None not in owners:
            end = end_id(tokenizer)
            return cls([start_id(tokenizer)], [end], [end], None)
        first, second = owners.index(0), owners.index(1)
        last = len(owners) - owners[::-1].index(1)
        between = [at for at in range(first, second) if owners[at] is None]
        sides = None
        if segments is not None:
            middle = [segments[at] for at in between]
            sides = (list(segments[:first]), segments[first], middle, segments[second], list(segments[last:]))
        return cls(list(ids[:first]), [ids[at] for at in between], list(ids[last:]), sides)

    def around(self, first: list[int], second: list[int] | None) -> Sequenced:
        """The sequence of two texts, or of one alone where the second is None."""
        if second is None:
            return Sequenced(np.asarray([*self.start, *first, *self.end], np.int32))
        ids = np.asarray([*self.start, *first, *self.middle, *second, *self.end], np.int32)
        if self.segments is None:
            return Sequenced(ids)
        start, a, middle, b, end = self.segments
        segments = [*start, *[a] * len(first), *middle, *[b] * len(second), *end]
        return Sequenced(ids, None, np.asarray(segments, np.int8))


def token_ranges(tokenizer: Any, text: str) -> NDArray[np.int64]:
    """[T, 2]: the range of ``text`` (code points) each token of its sequence shows something of; an empty one for tokens
    that are not of the text. A token that is some bytes of a character has the whole of it.

    Raises UsageError for a tokenizer without a tokenizer.json, which cannot say.
    """
    found = pair(text) if structured(text) else None
    if structured(text) and found is None:
        return ChatCoder.of(tokenizer).places(text)
    blind = Blind.of(tokenizer)
    if found is None:
        close = 1 if text.replace(MASK, "") else 0
        return np.concatenate([_nowhere(1), _body_places(tokenizer, blind, text, 0), _nowhere(close)])
    frame = Frame.of(tokenizer)
    start, middle, end = (_nowhere(len(ids)) for ids in (frame.start, frame.middle, frame.end))
    sides = [_body_places(tokenizer, blind, side.content, side.start) for side in found if side]
    return np.concatenate([start, sides[0], *(part for side in sides[1:] for part in (middle, side)), end])


def touched(tokenizer: Any, text: str, spans: Iterable[tuple[int, int]], length: int) -> NDArray[np.bool_]:
    """Which of the first ``length`` tokens of a text's sequence show a character of a span [length]."""
    inside = np.zeros(length, bool)
    ranges = None
    for start, end in spans:
        ranges = token_ranges(tokenizer, text)[:length] if ranges is None else ranges
        inside |= (ranges[:, 0] < end) & (start < ranges[:, 1])
    return inside


def _body_places(tokenizer: Any, blind: Blind, text: str, at: int) -> NDArray[np.int64]:
    if _joint(tokenizer, text):
        drawn = _drawn(text, blind, at)
        return drawn.places(blind.encode([drawn])[0])
    bare = Blind.without_guards(tokenizer)
    out = []
    for piece in text.split(MASK):
        drawn = Drawn()
        drawn.add(piece, at, at + len(piece), False)
        out += [drawn.places(bare.encode([drawn])[0]), np.asarray([[at + len(piece), at + len(piece) + len(MASK)]])]
        at += len(piece) + len(MASK)
    return np.concatenate(out[:-1])


def _nowhere(tokens: int) -> NDArray[np.int64]:
    return np.zeros((tokens, 2), np.int64)
