"""log p of every candidate: one walk over the trie that carries the model's state from parents to children.

A walk is breadth-first inside a chunk and depth-first across chunks, so only a few thousand states are alive at once.
What is kept of a node's logits is one logsumexp and the columns of its children.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from taciturn.auditing.exposure.trie import Ids, Trie
from taciturn.errors import UsageError
from taciturn.models.lstm import LSTMForCausalLM

BUDGET = 192 * 2**20
"""Bytes for one chunk's states and logits."""

LOGITS = 16 * 2**20
"""Bytes for one chunk's logits: larger ones leave a core's cache, and the allocator gives them back each time."""

BLOCK = 2**18
"""Logits looked at together: few enough to stay in a core's cache."""

Scores = NDArray[np.float64]


class BudgetSpent(Exception):
    """A pruned walk met more nodes than it was allowed: a signal to its caller, not an error of the user's."""


def candidate_scores(
    model: Any,
    trie: Trie,
    floor: float = -np.inf,
    most: int | None = None,
    count: Callable[[int], None] | None = None,
) -> Scores:
    """log p(candidate | context) in nats, [candidates], float64.

    Branches whose log-probability is below ``floor`` are dropped (a longer text is never likelier than its beginning)
    and score −∞. Raises BudgetSpent after ``most`` node evaluations. count: told of nodes as they are read.
    """
    scores = np.full(trie.candidates, -np.inf)
    spent = 0

    def visit(nodes: NDArray[np.int64], logp: Scores, state: Any, logits: Tensor) -> None:
        """``nodes`` were read: ``state`` and ``logits`` [B, V] follow them."""
        nonlocal spent
        spent += len(nodes)
        if count is not None:
            count(len(nodes))
        if most is not None and spent > most:
            raise BudgetSpent
        children, row = _children(trie, nodes)
        logp = logp[row] + _columns(logits, row, trie.token[children])
        del logits
        leaf = trie.leaf[children]
        scores[leaf[leaf >= 0]] = logp[leaf >= 0]
        inner = np.flatnonzero((trie.n_children[children] > 0) & (logp >= floor))
        for part in np.array_split(inner, -(-len(inner) // chunk) or 1):
            if len(part):
                visit(children[part], logp[part], *_read(model, trie.token[children[part], None], state, row[part]))

    with _reading(model):
        state, logits = _read(model, trie.context[None], None, None)
        chunk = _chunk(state, logits.shape[-1])
        visit(np.zeros(1, np.int64), np.zeros(1), state, logits)
    return scores


def pace(model: Any, trie: Trie) -> float:
    """Seconds a node evaluation takes: one branch of the trie is read to its end, chunk by chunk, and the deepest chunk a
    second time. What the walk does with the logits is part of it."""
    with _reading(model):
        state, logits = _read(model, trie.context[None], None, None)
        chunk = _chunk(state, logits.shape[-1])
        nodes, seconds = np.zeros(1, np.int64), np.inf
        while True:
            children, row = _children(trie, nodes)
            inner = np.flatnonzero(trie.n_children[children] > 0)[:chunk]
            if not len(inner):
                break
            for repetition in range(2):
                start = perf_counter()
                after = _read(model, trie.token[children[inner], None], state, row[inner])
                below, above = _children(trie, children[inner])
                _columns(after[1], above, trie.token[below])
                seconds = perf_counter() - start if not repetition else min(seconds, perf_counter() - start)
                if 2 * len(inner) < chunk:  # not the deepest chunk, or a trie so small that its time does not matter
                    break
            state, nodes = after[0], children[inner]
    return float(seconds / len(nodes)) if np.isfinite(seconds) else 0.0


def plain_scores(model: Any, sequences: Sequence[Ids], context: int) -> Scores:
    """The same log-probabilities by an ordinary forward pass over each whole sequence: slow, and the walk's oracle."""
    out = np.empty(len(sequences))
    with _reading(model):
        for i, ids in enumerate(sequences):
            given = torch.from_numpy(ids.astype(np.int64))[None].to(model.device)
            logp = model(input_ids=given).logits[0, :-1].double().log_softmax(-1)
            out[i] = float(logp.gather(1, given[0, 1:, None])[context - 1 :].sum())
    return out


@contextmanager
def _reading(model: Any) -> Iterator[None]:
    training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        model.train(training)


def _children(trie: Trie, nodes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """All children of ``nodes`` and, for each, the position of its parent in ``nodes``."""
    counts = trie.n_children[nodes]
    row = np.repeat(np.arange(len(nodes)), counts)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return trie.first_child[nodes][row] + offset, row


def _columns(logits: Tensor, row: NDArray[np.int64], token: Ids) -> Scores:
    """log-softmax of ``logits`` [B, V] at (row, token), rows ascending, a block at a time."""
    step = max(1, BLOCK // logits.shape[1])
    starts = range(0, len(logits), step)
    ends = np.searchsorted(row, [*starts, len(logits)])
    at = torch.from_numpy(row).to(logits.device), torch.from_numpy(token.astype(np.int64)).to(logits.device)
    parts = [
        logits[start : start + step].float().log_softmax(-1)[at[0][a:b] - start, at[1][a:b]]
        for start, a, b in zip(starts, ends, ends[1:], strict=False)
    ]
    return np.asarray(torch.cat(parts).double().cpu().numpy())


def _read(model: Any, tokens: Ids, state: Any, parents: NDArray[np.int64] | None) -> tuple[Any, Tensor]:
    """Read ``tokens`` [B, T] after the states of ``parents``: the new state and the last position's logits [B, V]."""
    ids = torch.from_numpy(tokens.astype(np.int64)).to(model.device)
    if parents is not None:
        state = _select(state, torch.from_numpy(parents).to(model.device))
    if isinstance(model, LSTMForCausalLM):
        hidden, state = model.hidden(ids, state)
        return state, model.decoder(hidden[:, -1])
    name = "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"
    out = model(input_ids=ids, use_cache=True, **{name: state})
    if getattr(out, name, None) is None:
        raise UsageError(f"{type(model).__name__} keeps no key/value cache: exact exposure needs one")
    return getattr(out, name), out.logits[:, -1]


def _select(state: Any, rows: Tensor) -> Any:
    """The states of ``rows``, leaving ``state`` as it was: LSTM (h, c) [layers, B, H], or a `transformers` cache."""
    if isinstance(state, tuple):
        return tuple(part.index_select(1, rows) for part in state)
    chosen = copy.copy(state)
    chosen.layers = [copy.copy(layer) for layer in state.layers]
    chosen.batch_select_indices(rows)
    return chosen


def _chunk(state: Any, vocabulary: int) -> int:
    """How many nodes to read at once. A state is held by the parents, gathered and grown: three times its size."""
    parts = state if isinstance(state, tuple) else [t for layer in state.layers for t in (layer.keys, layer.values)]
    row = sum(part.numel() * part.element_size() for part in parts)
    return int(np.clip(min(BUDGET // (3 * row), LOGITS // (4 * vocabulary)), 16, 4096))
