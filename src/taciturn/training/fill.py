"""Skeletons with their masks filled: in the place of every `<MASK>` a few tokens that a language model makes up.

What is made up is a random function of the skeletons and of the model alone (docs/guarantees.md, "Skeletons"). Type and
length of what a mask stands for are the secret's, so neither is an input: lengths are coins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.loss import microbatches
from taciturn.models.tokens import Tokens

Ints = NDArray[np.int64]
SPECIAL = ("bos_token_id", "cls_token_id", "eos_token_id", "pad_token_id", "sep_token_id")
AT_A_TIME = 2**22  # probabilities held at once, in double precision


def filled(
    model: Any,
    tokens: Tokens,
    rows: Ints,
    mask: int,
    seed: tuple[int, ...],
    longest: int = 3,
    loss: bool = False,
    token_budget: int = 8192,
    limit: int | None = None,
    never: Sequence[int] = (),
) -> Tokens:
    """The records ``rows``, in that order and with their labels; in each, every id ``mask`` has become n ids drawn from
    ``model``, a causal one, with n uniform on 1 … ``longest``.

    Pass j of ``longest`` fills the j-th slot of all masks from the logits before it; slots still empty show ``mask``.
    Never drawn: ``mask``, ``never`` and the special ids of the model's configuration. A record of nothing but masks
    stays as it is, and so does a mask with nothing before it. Draws follow (``seed``, row): they depend neither on the
    other rows nor, but for rounding, on the cut into passes of ``token_budget`` tokens.

    loss: whether made-up tokens are targets, where the token after them is (so not in what a user says, if only the
    assistant is learned from); all others stay what they were. limit: tokens beyond it, or beyond the positions of the
    model, are cut off a filled record; ``truncated`` counts those. The model keeps its mode, torch its random state.

    Raises UsageError for masked language modelling and for ``longest`` below 1.
    """
    if tokens.masking is not None:
        raise UsageError(
            "filling masks: expected a causal language model, found masked language modelling, which has no logits for "
            "the next token; choose task = 'causal' or leave the masks as they are"
        )
    if longest < 1:
        raise UsageError(f"filling masks: longest must be at least 1 token, found {longest}")
    known = [limit, getattr(model.config, "max_position_embeddings", None)]
    most = min((n for n in known if n is not None), default=None)
    laid = [_laid(tokens, int(row), mask, seed, longest, loss, most) for row in rows]
    sizes = np.array([len(record.ids) for record in laid], np.int64)
    waiting = np.flatnonzero([bool((record.slot >= 0).any()) for record in laid])
    if len(waiting):
        out = {mask, *never, *(getattr(model.config, name, None) for name in SPECIAL)}
        with only_reading(model):
            for part in microbatches(waiting, sizes[waiting], token_budget):
                _fill(model, [laid[i] for i in part], longest, out)
    return Tokens(
        np.concatenate([np.zeros(0, np.int32), *(record.ids for record in laid)]),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        sum(record.cut for record in laid),
        np.concatenate([np.zeros(0, np.bool_), *(record.scored for record in laid)]),
        None if tokens.labels is None else tokens.labels[rows],
    )


@dataclass(frozen=True, slots=True)
class _Laid:
    """A record with room for its fill. ids: `<MASK>` in every slot at first. slot: the number of a slot within its
    mask, −1 for other tokens. draw: the uniform variate of a slot. All [T]. cut: whether ``limit`` cut it."""

    ids: NDArray[np.int32]
    scored: NDArray[np.bool_]
    slot: Ints
    draw: NDArray[np.float64]
    cut: bool = False


def _laid(
    tokens: Tokens, row: int, mask: int, seed: tuple[int, ...], longest: int, loss: bool, limit: int | None
) -> _Laid:
    ids, scored = tokens[row], tokens.targets(row, mask)
    hidden = ids == mask
    hidden[:1] = False
    if hidden[1:].all() or not hidden.any():
        return _Laid(ids, scored, np.full(len(ids), -1), np.zeros(len(ids)))
    random = np.random.Generator(np.random.PCG64([*seed, row]))
    masks = int(hidden.sum())
    lengths = random.integers(1, longest, masks, endpoint=True)
    draws = random.random((masks, longest))
    copies = np.ones(len(ids), np.int64)
    copies[hidden] = lengths
    slot, draw = np.full(copies.sum(), -1), np.zeros(copies.sum())
    at = np.repeat(hidden, copies)
    used = np.arange(longest) < lengths[:, None]
    slot[at], draw[at] = np.nonzero(used)[1], draws[used]
    kept = np.where(hidden, _beside(scored, hidden) if loss else False, scored)
    long = np.repeat(ids, copies)
    end = len(long) if limit is None else limit
    return _Laid(long[:end], np.repeat(kept, copies)[:end], slot[:end], draw[:end], end < len(long))


def _beside(scored: NDArray[np.bool_], hidden: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether the next token that is not a mask is scored, [T]; after the last one, whether that one is."""
    shown = np.flatnonzero(~hidden)
    following = np.searchsorted(shown, np.arange(len(hidden))).clip(max=len(shown) - 1)
    found: NDArray[np.bool_] = scored[shown[following]]
    return found


def _fill(model: Any, records: Sequence[_Laid], longest: int, never: set[int | None]) -> None:
    """Fill the slots of ``records`` in place, all that have the same number at once."""
    for j in range(longest):
        some = [record for record in records if (record.slot == j).any()]
        if not some:
            continue
        places = [np.flatnonzero(record.slot == j) for record in some]
        width = max(int(at[-1]) for at in places)  # nothing right of the last slot is read
        ids, attention = np.zeros((len(some), width), np.int64), np.zeros((len(some), width), np.int64)
        for b, record in enumerate(some):
            shown = record.ids[:width]
            ids[b, : len(shown)], attention[b, : len(shown)] = shown, 1
        at_B = np.repeat(np.arange(len(some)), [len(at) for at in places])
        logits = logits_at(model, ids, attention, at_B, np.concatenate(places) - 1)
        draws = np.concatenate([record.draw[at] for record, at in zip(some, places, strict=True)])
        found = _drawn(logits, draws, never)
        ends = np.cumsum([len(at) for at in places])[:-1]
        for record, at, new in zip(some, places, np.split(found, ends), strict=True):
            record.ids[at] = new


def logits_at(model: Any, ids: Ints, attention: Ints, at_B: Ints, at_T: Ints) -> Tensor:
    """Logits at the places (at_B, at_T), [M, V]. The head sees those alone: a vocabulary times all places would be a
    third of a small model's work, and most of its memory."""
    shown, attended, b, t = (torch.from_numpy(a).to(model.device) for a in (ids, attention, at_B, at_T))
    chosen = False

    def choose(_: nn.Module, args: tuple[Tensor]) -> Tensor:
        nonlocal chosen
        chosen = True
        return args[0][b, t][None]

    head = model.get_output_embeddings()
    handle = None if head is None else head.register_forward_pre_hook(choose)
    try:
        logits: Tensor = model(input_ids=shown, attention_mask=attended).logits
    finally:
        if handle is not None:
            handle.remove()
    return logits[0] if chosen else logits[b, t]


def _drawn(logits_MV: Tensor, draws: NDArray[np.float64], never: set[int | None]) -> NDArray[np.int64]:
    """One id for each place, [M], by inverting the distribution function at ``draws``, uniform on [0, 1). Ids in
    ``never`` are left out before the softmax, so that no rounding can draw them."""
    M, V = logits_MV.shape
    allowed = torch.tensor([i for i in range(V) if i not in never], device=logits_MV.device)
    u_M1 = torch.from_numpy(draws)[:, None].to(logits_MV.device)
    block, out = max(1, AT_A_TIME // V), []
    for first in range(0, M, block):
        some = slice(first, first + block)
        shares = logits_MV[some][:, allowed].double().softmax(-1).cumsum(-1)
        at = torch.searchsorted(shares, u_M1[some] * shares[:, -1:], right=True)
        out.append(allowed[at.clamp(max=len(allowed) - 1)].squeeze(1))
    return torch.cat(out).cpu().numpy()


@contextmanager
def only_reading(model: Any) -> Iterator[None]:
    """Evaluation without gradients; afterwards each module is in the mode it was in."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        for module, training in modes:
            module.training = training
