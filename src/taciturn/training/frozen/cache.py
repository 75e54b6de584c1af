"""What the frozen front of a model makes of a record, read from a file instead of computed again.

Where a model's last layers alone are trained (``model.frozen``), most of a pass computes what it computed before: in earlier
epochs, in the other phase, in the last run. That is a function of the frozen weights and of the record, so an update changes
by rounding alone. The file tells as much as the records do.
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
    known = {_named(each[i], _segments(each, i)) for each in data for i in range(len(each))}
    with store(path) as kept, _read(Reader(model, front, kept, known)):
        yield


def require_front(model: Any, classify: bool) -> Front:
    """The front of ``model``, after a look at random records: their losses must be the same when it is computed, kept and
    read. Raises UsageError as :func:`frozen_cache` does."""
    batch = each_tensor(random_batch(model, SHORT, classify), lambda tensor: tensor.to(model.device))
    front = front_of(model, batch)
    with store(None) as tried, torch.no_grad(), without_dropout(model):
        wanted = record_losses(model, batch)
        with _read(Reader(model, front, tried, None)):
            again = [record_losses(model, batch), record_losses(model, batch)]
    if any(not torch.allclose(found, wanted, rtol=TOLERANCE, atol=TOLERANCE) for found in again):
        raise UsageError(
            f"train.frozen_cache: {type(model).__name__} does more with what its first layers make than hand it on, so "
            "losses would be others with it; leave it out"
        )
    return front


@dataclass(slots=True)
class Reader:
    """Stands between the front's layers. known: digests of the records that are kept, None for all. now: what the front
    makes of the batch of this pass, [B, T, width]; None in one that is computed. computing: whether such a pass ends behind
    the front, for what is not in the store."""

    model: Any
    front: Front
    store: Store
    known: set[bytes] | None
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
        keys = self._keys(given)
        T = given["input_ids"].shape[1]
        found = self.store.read([key for key in keys if key is not None])
        sizes = [T] * len(keys) if "attention_mask" not in given else given["attention_mask"].sum(1).tolist()
        absent = [b for b, key in enumerate(keys) if key is None or key not in found or len(found[key]) < sizes[b]]
        rows: dict[int, Tensor] = {}
        if absent:
            at = torch.tensor(absent, device=self.model.device)
            made = self._computed({name: value[at] for name, value in given.items()})
            rows = {b: made[i, : sizes[b]] for i, b in enumerate(absent)}
            self.store.write({key: rows[b] for b in absent if (key := keys[b]) is not None})
        rows |= {b: found[key] for b, key in enumerate(keys) if b not in rows and key is not None}
        like = rows[0]
        self.now = torch.zeros(len(keys), T, like.shape[-1], dtype=like.dtype, device=self.model.device)
        for b, row in rows.items():
            self.now[b, : sizes[b]] = row[: sizes[b]]

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
            with torch.no_grad():
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

    def _keys(self, given: Mapping[str, Tensor]) -> list[bytes | None]:
        """Of each record; None for one that is not kept. Without a mask a record is known up to the zeros behind it: a model
        that looks back makes the same of it however many follow, and what is kept reaches as far as they did."""
        ids = given["input_ids"].cpu().numpy()
        whole = None if looks_back(self.model) else ids.shape[1]
        lengths = given["attention_mask"].sum(1).tolist() if "attention_mask" in given else [whole] * len(ids)
        segments = given["token_type_ids"].cpu().numpy() if "token_type_ids" in given else None
        kind = self.model.device.type
        halved = str(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else ""
        keys: list[bytes | None] = []
        for b, length in enumerate(lengths):
            named = _named(ids[b, :length], None if segments is None else segments[b, :length])
            key = blake2b(self.front.digest + named + f"{length} {halved}".encode(), digest_size=16).digest()
            keys.append(key if self.known is None or named in self.known else None)
        return keys


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


def _segments(tokens: Tokens, i: int) -> NDArray[Any] | None:
    return None if tokens.segments is None else tokens.segments[tokens.offsets[i] : tokens.offsets[i + 1]]
