"""What the frozen front of a model makes of a record, read from a file instead of computed again.

Where a model's last layers alone are trained (``model.frozen``), most of a pass computes what it computed before: in earlier
epochs, in the other phase, in the last run. That is a function of the frozen weights and of the record, to the last bit, as
each record is read alone: a step without noise shows nothing of whom a private record stood beside when it was kept. An
update changes by rounding alone. The file tells as much as the records do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.loss import looks_back, record_losses
from taciturn.models.tokens import Tokens
from taciturn.persample.isolated import without_dropout
from taciturn.persample.premise import TOLERANCE
from taciturn.training.check import SHORT, each_tensor, random_batch
from taciturn.training.frozen.front import Front, front_of
from taciturn.training.frozen.store import Store, store

READ = {"input_ids", "attention_mask", "token_type_ids"}
"""What a pass may be given for its front to be a function of the records."""


@contextmanager
def frozen_cache(model: Any, path: Path | None, data: Sequence[Tokens], *, classify: bool = False) -> Iterator[None]:
    """While open, passes of ``model`` read what its front makes of the records of ``data`` from the file, and add what is
    not there. None: nothing is kept. Records of another form (filled, packed, with hidden words) are computed each time.

    The model's class, weights and state stay as they are. Raises UsageError for a model that has no front to be kept
    (:func:`front_of`) or of which a record's loss is another one with it, DataError for a file that cannot be used.
    """
    if path is None:
        yield
        return
    front = require_front(model, classify)
    with store(path) as kept, _read(Reader(model, front, kept, _lengths(data))):
        yield


def require_front(model: Any, classify: bool) -> Front:
    """The front of ``model``, after a look at random records: their losses must be the same when it is computed, kept and
    read. Raises UsageError as :func:`frozen_cache` does."""
    batch = each_tensor(random_batch(model, SHORT, classify), lambda tensor: tensor.to(model.device))
    front = front_of(model, batch)
    with store(None) as tried, torch.no_grad(), without_dropout(model):
        wanted = record_losses(model, batch)
        sizes = batch.attention.sum(1).tolist()
        known = {_named(ids[:size], None): size for ids, size in zip(batch.input_ids.cpu().numpy(), sizes, strict=True)}
        with _read(Reader(model, front, tried, known)):
            again = [record_losses(model, batch), record_losses(model, batch)]
    if any(not torch.allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE) for found in again):
        raise UsageError(
            f"train.frozen_cache: {type(model).__name__} does more with what its first layers make than hand it on, so "
            "losses would be others with it; leave it out"
        )
    return front


@dataclass(slots=True)
class Reader:
    """Stands between the front's layers. known: the length of each record that is kept, by its digest. now: what the front
    makes of the batch of this pass, [B, T, width]; None in one that is computed. computing: whether such a pass ends behind
    the front, for what is not in the store."""

    model: Any
    front: Front
    store: Store
    known: Mapping[bytes, int]
    now: Tensor | None = None
    computing: bool = False

    def before(self, _model: nn.Module, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        """Find, or compute, what the front makes of the pass's records."""
        if self.computing:
            return
        self.now = None
        given = {name: value for name, value in given.items() if value is not None}
        if args or "input_ids" not in given or not given.keys() <= READ:
            return
        kept = self._kept(given)
        sizes = {key: size for _, key, size in kept}
        rows = {key: row for key, row in self.store.read(list(sizes)).items() if len(row) == sizes[key]}
        new = {}
        for b, key, size in kept:
            if key not in rows and key not in new:  # alone, and without padding
                new[key] = self._computed({name: value[b : b + 1, :size] for name, value in given.items()})[0]
        self.store.write(new)
        rows |= new
        B, T = given["input_ids"].shape
        others = sorted({*range(B)} - {b for b, _, _ in kept})
        made = self._computed({name: value[others] for name, value in given.items()}) if others else None
        like = next(iter(rows.values())) if made is None else made
        self.now = torch.zeros(B, T, like.shape[-1], dtype=like.dtype, device=self.model.device)
        if made is not None:
            self.now[others] = made
        for b, key, size in kept:
            self.now[b, :size] = rows[key]

    def after(self, *_: Any) -> None:
        if not self.computing:
            self.now = None

    def layer(self, module: nn.Module) -> Any:
        """What stands in for a layer's forward."""
        forward, last = module.forward, module is self.front.layers[-1]

        def run(*args: Any, **more: Any) -> Any:
            if self.computing and last:
                raise _Made(forward(*args, **more))
            if self.computing or self.now is None:
                return forward(*args, **more)
            return self.now if last else more.get("hidden_states", args[0] if args else None)

        return run

    def _computed(self, given: Mapping[str, Tensor]) -> Tensor:
        self.computing = True
        try:
            with torch.no_grad(), torch.autocast("cpu", enabled=False):  # casting all weights for a record takes longer
                self.model(**given)
        except _Made as made:
            if isinstance(made.value, Tensor):
                return made.value
            raise UsageError(
                f"train.frozen_cache: a layer of {type(self.model).__name__} returns more than its output; leave it out"
            ) from None
        finally:
            self.computing = False
        raise AssertionError("a pass that did not reach the last frozen layer")

    def _kept(self, given: Mapping[str, Tensor]) -> list[tuple[int, bytes, int]]:
        """(row, key, length) of each record of the pass that is kept. A model that looks back is given no mask; then a row
        is a record and padding, as it is no other record."""
        ids = given["input_ids"].cpu().numpy()
        lengths = given["attention_mask"].sum(1).tolist() if "attention_mask" in given else [None] * len(ids)
        segments = given["token_type_ids"].cpu().numpy() if "token_type_ids" in given else None
        kind = self.model.device.type
        half = kind != "cpu" and torch.is_autocast_enabled(kind)
        halved = str(torch.get_autocast_dtype(kind)) if half else ""
        kept = []
        for b, length in enumerate(lengths):
            named = _named(ids[b, :length], None if segments is None else segments[b, :length])
            size = self.known.get(named)
            if size is not None and (length == size if length is not None else looks_back(self.model)):
                key = blake2b(self.front.digest + named + halved.encode(), digest_size=16).digest()
                kept.append((b, key, size))
        return kept


class _Made(Exception):
    """Ends a pass where the front does."""

    def __init__(self, value: Any) -> None:
        self.value = value


@contextmanager
def _read(reader: Reader) -> Iterator[None]:
    with ExitStack() as stack:
        for module in reader.front.layers:
            stack.enter_context(_stands_in(module, reader.layer(module)))
        for handle in (
            reader.model.register_forward_pre_hook(reader.before, with_kwargs=True),
            reader.model.register_forward_hook(reader.after, always_call=True),
        ):
            stack.callback(handle.remove)
        yield


@contextmanager
def _stands_in(module: nn.Module, forward: Any) -> Iterator[None]:
    own = vars(module).get("forward")
    module.forward = forward
    try:
        yield
    finally:
        if own is None:
            del module.forward
        else:
            module.forward = own


def _named(ids: NDArray[Any], segments: NDArray[Any] | None) -> bytes:
    """A digest of a record without the zeros at its end, and of which text its tokens belong to."""
    used = np.trim_zeros(ids, "b").astype(np.int64)
    text = b"" if segments is None else np.trim_zeros(segments, "b").astype(np.int8).tobytes()
    return blake2b(len(used).to_bytes(8) + used.tobytes() + text, digest_size=16).digest()


def _lengths(data: Sequence[Tokens]) -> dict[bytes, int]:
    """Of each record; without those that are the same but for how many zeros end them, as zeros pad too."""
    found: dict[bytes, int] = {}
    several = set()
    for each in data:
        for i, size in enumerate(each.lengths.tolist()):
            named = _named(each[i], _segments(each, i))
            if found.setdefault(named, size) != size:
                several.add(named)
    return {named: size for named, size in found.items() if named not in several}


def _segments(tokens: Tokens, i: int) -> NDArray[Any] | None:
    return None if tokens.segments is None else tokens.segments[tokens.offsets[i] : tokens.offsets[i + 1]]
