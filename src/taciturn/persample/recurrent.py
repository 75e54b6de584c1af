"""Recurrent modules, layer by layer and direction by direction: LSTM, GRU, WeightDropLSTM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from taciturn.errors import UsageError
from taciturn.models.awd_lstm import WeightDropLSTM
from taciturn.persample.gru import GRU
from taciturn.persample.linear import Affine, Site
from taciturn.persample.lstm import LSTM
from taciturn.persample.tape import Tape

PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def fits(module: Any) -> bool:
    """Whether it is one of the three as torch computes it, with records in the first dimension and no projections."""
    forward = type(module).forward
    if isinstance(module, WeightDropLSTM):
        return forward is WeightDropLSTM.forward
    plain = forward in (nn.LSTM.forward, nn.GRU.forward)
    return plain and bool(module.batch_first) and not module.proj_size


def recording(module: Any, keys: dict[str, str | None], tape: Tape) -> Callable[..., Any]:
    """Its forward. Raises UsageError for packed sequences, and with dropout inside, whose masks records would share."""
    directions = 2 if getattr(module, "bidirectional", False) else 1
    layers, gru = getattr(module, "num_layers", 1), isinstance(module, nn.GRU)

    def run(input: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        if not isinstance(input, Tensor) or input.dim() != 3:
            raise UsageError(
                f"{type(module).__name__}: per-record gradients need records in one padded tensor [B, T, d]"
            )
        if isinstance(module, WeightDropLSTM) and module.recurrent_mask() is not None:
            raise UsageError(
                "DropConnect in a pass that is clipped: its mask is shared by records, so no clip norm would hold"
            )
        if module.training and module.dropout and layers > 1:
            raise UsageError(f"{type(module).__name__}: dropout between its layers in a pass that is clipped")
        zeros = input.new_zeros(layers * directions, input.shape[0], module.hidden_size)
        h0, c0 = (zeros if state is None else state, zeros) if gru else (zeros, zeros) if state is None else state
        x, ends = input.float(), []
        with torch.autocast(x.device.type, enabled=False):  # a recurrence in half precision drifts
            for layer in range(layers):
                out = []
                for back in range(directions):
                    at = layer * directions + back
                    suffix = f"_l{layer}{'_reverse' if back else ''}"
                    one = _gru if gru else _lstm
                    y, *end = one(
                        module, suffix, x.flip(1) if back else x, (h0[at].float(), c0[at].float()), keys, tape
                    )
                    out.append(y.flip(1) if back else y)
                    ends.append(end)
                x = torch.cat(out, 2) if directions > 1 else out[0]
        last = tuple(torch.stack(each) for each in zip(*ends, strict=True))
        return x, last[0] if gru else last

    return run


def _weights(module: Any, suffix: str, x: Tensor) -> list[Tensor]:
    found = [getattr(module, part + suffix, None) for part in PARTS]
    return [x.new_zeros(len(found[0])) if w is None else w for w in found]  # type: ignore[arg-type]


def _lstm(
    module: Any, suffix: str, x: Tensor, state: tuple[Tensor, Tensor], keys: dict[str, str | None], tape: Tape
) -> tuple[Tensor, Tensor, Tensor]:
    names: Any = tuple(keys.get(part + suffix) for part in PARTS)
    return LSTM.apply(x, *state, *_weights(module, suffix, x), names, tape)  # type: ignore[no-any-return]


def _gru(
    module: Any, suffix: str, x: Tensor, state: tuple[Tensor, Tensor], keys: dict[str, str | None], tape: Tape
) -> tuple[Tensor, Tensor]:
    w_ih, w_hh, b_ih, b_hh = _weights(module, suffix, x)
    k_ih, k_hh, k_bi, k_bh = (keys.get(part + suffix) for part in PARTS)
    gates = Affine.apply(x, w_ih, b_ih, Site(tape, k_ih, k_bi))
    y = GRU.apply(gates, state[0], w_hh, b_hh, Site(tape, k_hh, k_bh))
    return y, y[:, -1]
