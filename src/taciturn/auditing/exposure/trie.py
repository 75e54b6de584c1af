"""All candidates of a canary template as one trie of token ids, so that shared beginnings are read once.

Candidates are tokenised together with their prefix, exactly as a training record is. A tokenizer that gives every letter
of the alphabet a token of its own needs no look at the candidates; any other one tokenises all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taciturn.auditing.canaries.templates import Template
from taciturn.errors import UsageError
from taciturn.models.sequences import start_id
from taciturn.models.tokens import encode_all

LIMIT = 10_000_000
"""Most candidates that are enumerated."""

CHUNK = 50_000
Ids = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Trie:
    """Nodes in breadth-first order; node 0 is the state after ``context``, the tokens every candidate begins with.

    token: the id that leads into a node (−1 at the root); the children of g are
    ``first_child[g] : first_child[g] + n_children[g]``; leaf: index of the candidate that ends at a node, else −1.
    """

    context: Ids
    token: Ids
    first_child: NDArray[np.int64]
    n_children: NDArray[np.int64]
    leaf: NDArray[np.int64]
    candidates: int

    @property
    def evaluations(self) -> int:
        """Nodes a model must be run on: those with children (111,111 for six digits, one token each)."""
        return int((self.n_children > 0).sum())


def build(rows: Ids) -> Trie:
    """Trie of N ≥ 2 token sequences, ``rows`` [N, L] padded with −1 on the right.

    Raises UsageError when two rows are the same: then no model can tell these candidates apart.

    >>> t = build(np.array([[7, 1, 2], [7, 1, 3], [7, 4, -1]], np.int32))
    >>> t.context.tolist(), t.token.tolist(), t.n_children.tolist(), t.leaf.tolist(), t.evaluations
    ([7], [-1, 1, 4, 2, 3], [2, 2, 0, 0, 0], [-1, -1, 2, 0, 1], 2)
    """
    shared = np.append((rows == rows[0]).all(0), False)
    shortest = int((rows >= 0).sum(1).min())
    common = min(int(shared.argmin()), shortest - 1)  # every row keeps a token of its own
    context, tails = rows[0, :common], rows[:, common:]
    order = np.lexsort(tails.T[::-1])
    tails = tails[order]
    n, depth = tails.shape
    node = np.zeros(n, np.int64)  # the node each row has reached
    fresh = np.zeros(n, bool)  # the row differs from the one above in some column so far
    fresh[0] = True
    tokens, parents, total = [np.array([-1], np.int32)], [], 1
    ends = np.empty(n, np.int64)
    for d in range(depth):
        fresh[1:] |= tails[1:, d] != tails[:-1, d]
        live = tails[:, d] >= 0
        new = fresh & live
        tokens.append(tails[new, d])
        parents.append(node[new])
        node[live] = (total - 1 + np.cumsum(new))[live]
        total += int(new.sum())
        ends[live] = node[live]
    leaf = np.full(total, -1, np.int64)
    leaf[ends] = order
    if int((leaf >= 0).sum()) != n:
        raise UsageError(
            "the tokenizer gives the same tokens to different candidates of this canary template: "
            "choose another alphabet"
        )
    n_children = np.bincount(np.concatenate(parents), minlength=total)
    first_child = 1 + np.cumsum(n_children) - n_children
    return Trie(context, np.concatenate(tokens), first_child, n_children, leaf, n)


def candidate_trie(tokenizer: Any, template: Template, some: Sequence[int] | None = None) -> Trie:
    """The trie of ``template.prefix + candidate`` for every candidate, in the order of ``template.index``; or only for
    ``some`` of them, in their order.

    The suffix is planted but not scored: its tokens would cost one more evaluation per candidate. Raises UsageError
    when there are too many candidates, or when the tokenizer melts the secret's end into the suffix.
    """
    if some is not None:
        rows = _records(tokenizer, map(template.secret, some), template.prefix)
        _check_suffix(tokenizer, template, some[:256], _trim(rows[:256]))
        return build(rows)
    if template.size > LIMIT:
        raise UsageError(too_many(template))
    rng = np.random.default_rng(0)
    few = np.unique(rng.integers(0, template.size, 256))
    sample = _records(tokenizer, (template.prefix + template.secret(int(i)) for i in few))
    _check_suffix(tokenizer, template, few.tolist(), sample)
    for make in (_letterwise, _tokenised):
        made = make(tokenizer, template)
        if made is not None and np.array_equal(_trim(made[few]), sample):
            return build(made)
    return build(_records(tokenizer, map(template.secret, range(template.size)), template.prefix))


def too_many(template: Template) -> str:
    """What to do when a template has more candidates than can be enumerated.

    >>> too_many(Template(length=8))[-83:]
    'a length of at most 7, or rank the secrets in a random subset (--candidates 100000)'
    """
    symbols = len(template.alphabet)
    longest = max((n for n in range(template.length) if symbols**n <= LIMIT), default=0)
    shorter = f"a length of at most {longest}" if longest else "a smaller alphabet"
    return (
        f"exact exposure enumerates at most {LIMIT:,} candidates; this template has {template.size:,} "
        f"({template.length} of {symbols:,}): choose {shorter}, or rank the secrets in a random subset "
        "(--candidates 100000)"
    )


def encode_candidates(tokenizer: Any, template: Template, secrets: Iterable[str]) -> list[Ids]:
    """Token ids of prefix + secret as in a training record, without its end token."""
    rows = _records(tokenizer, (template.prefix + secret for secret in secrets))
    return [row[row >= 0] for row in rows]


def _letterwise(tokenizer: Any, template: Template) -> Ids | None:
    """One token per letter, when no learned entry of the vocabulary joins a letter to anything; else None."""
    letters = template.alphabet
    if not (isinstance(letters, str) and letters.isascii() and letters.isalnum()):
        return None
    special = set(tokenizer.get_added_vocab())  # text never turns into one of these
    vocabulary = {entry: i for entry, i in tokenizer.get_vocab().items() if entry not in special}
    if any(len(entry) > 1 and not set(letters).isdisjoint(entry) for entry in vocabulary):
        return None
    if not set(letters) <= vocabulary.keys():
        return None
    ids = np.array([vocabulary[letter] for letter in letters], np.int32)
    first = _records(tokenizer, [template.prefix + template.secret(0)])[0]
    rows = np.empty((template.size, len(first)), np.int32)
    rows[:] = first
    index = np.arange(template.size)
    for column in range(1, template.length + 1):
        index, letter = np.divmod(index, len(letters))
        rows[:, -column] = ids[letter]
    return rows


def _tokenised(tokenizer: Any, template: Template) -> Ids | None:
    """All candidates through the tokenizer's Rust core, several times faster than its Python face; None without one."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        return None
    rows = _encode_all_candidates(backend.to_str(), template)
    return np.concatenate([np.full((len(rows), 1), start_id(tokenizer), np.int32), rows], 1)


@lru_cache(maxsize=1)  # several models with one tokenizer are audited in a row
def _encode_all_candidates(definition: str, template: Template) -> Ids:
    from tokenizers import Tokenizer

    backend = Tokenizer.from_str(definition)
    backend.no_padding()
    backend.no_truncation()
    blocks = []
    for first in range(0, template.size, CHUNK):
        texts = [template.prefix + template.secret(i) for i in range(first, min(first + CHUNK, template.size))]
        blocks.append(_pad([e.ids for e in backend.encode_batch_fast(texts, add_special_tokens=False)]))
    return _stack(blocks)


def _records(tokenizer: Any, texts: Iterable[str], prefix: str = "") -> Ids:
    """Rows of start token + ids, padded with −1: the training encoding without its end token."""
    tokens = encode_all(tokenizer, [prefix + text for text in texts])
    return _pad([tokens[i][:-1].tolist() for i in range(len(tokens))])


def _check_suffix(tokenizer: Any, template: Template, some: Sequence[int], sample: Ids) -> None:
    if not template.suffix:
        return
    whole = _records(tokenizer, (template.fill(template.secret(i)) for i in some))
    if not bool(((whole[:, : sample.shape[1]] == sample) | (sample < 0)).all()):
        raise UsageError("the tokenizer joins the secret to the text after it: end the canary template with {}")


def _pad(rows: list[list[int]]) -> Ids:
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    out = np.full((len(rows), int(lengths.max())), -1, np.int32)
    out[np.arange(out.shape[1]) < lengths[:, None]] = np.fromiter(chain.from_iterable(rows), np.int32, lengths.sum())
    return out


def _stack(blocks: list[Ids]) -> Ids:
    width = max(block.shape[1] for block in blocks)
    return np.concatenate([np.pad(b, ((0, 0), (0, width - b.shape[1])), constant_values=-1) for b in blocks])


def _trim(rows: Ids) -> Ids:
    return rows[:, : int((rows >= 0).sum(1).max())]
