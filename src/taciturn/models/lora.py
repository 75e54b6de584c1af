"""Low-rank adapters (Hu et al. 2021) through `peft`: the base is frozen, the adapter is what a run trains and noises.

`peft` does the work and its files are what is saved; here are the choices it leaves open. Nothing imports torch or peft
before a function is called.
"""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Lt

from taciturn.errors import MissingExtra, UsageError
from taciturn.models.gguf import locate
from taciturn.text.urls import without_folders

ALL = ("all-linear",)
_TASKS = {"causal": "CAUSAL_LM", "classify": "SEQ_CLS", "masked": None}  # peft has no name for masked models

_README = """---
{head}library_name: peft
---
A low-rank adapter for `{base}`, trained by taciturn; the folder above holds the two merged.

    from peft import AutoPeftModelForCausalLM
    model = AutoPeftModelForCausalLM.from_pretrained("this folder")

With another class, or a base in a GGUF file: load the base, `resize_token_embeddings(len(tokenizer))` if this folder's
tokenizer is larger, then `PeftModel.from_pretrained(base, "this folder")`.
"""


@dataclass(frozen=True, slots=True)
class Lora:
    """An adapter of rank ``r``, scaled by ``alpha`` / r, on the modules ``targets`` names (by the end of their name).

    modules_to_save: modules that are trained whole and saved with the adapter. start: a saved adapter to go on from, whose
    own rank, scale and targets then hold.
    """

    r: Annotated[int, Ge(1)] = 8
    alpha: Annotated[int, Ge(1)] = 16
    dropout: Annotated[float, Ge(0), Lt(1)] = 0.0
    targets: tuple[str, ...] = ALL
    modules_to_save: tuple[str, ...] = ()
    start: str | None = None


def add(model: Any, lora: Lora, task: str = "causal", *, name: str = "default", new: Sequence[str] = ()) -> Any:
    """``model`` with an adapter, the only part that is trainable; the weights themselves are not copied.

    A model that has adapters already gets one more, which becomes the active one; the others are kept and frozen.
    new: parameters that were not in the base (a classifier's head): the modules that own them are trained whole.

    Raises MissingExtra without peft; UsageError for targets the model lacks, and for a weight that is both embedding and
    head, whose tie an adapter would break.
    """
    if find_spec("peft") is None:
        raise MissingExtra("peft", "lora")
    import peft

    if lora.start is not None:
        adapted = _started(model, lora.start, name)
    else:
        config = peft.LoraConfig(
            task_type=_TASKS[task],
            r=lora.r,
            lora_alpha=lora.alpha,
            lora_dropout=lora.dropout,
            target_modules="all-linear" if lora.targets == ALL else list(lora.targets),
            modules_to_save=sorted({*lora.modules_to_save, *_owners(new)}) or None,
            fan_in_fan_out=any(_kind(m) == "Conv1D" for m in model.modules()),
        )
        try:
            with _renamed_names():
                if is_adapted(model):
                    model.add_adapter(name, config)
                    adapted = model
                else:
                    adapted = peft.get_peft_model(model, config, adapter_name=name)
        except ValueError as error:
            known = sorted({n.rpartition(".")[2] for n, m in model.named_modules() if _takes_adapter(m)})
            raise UsageError(
                f"lora targets {', '.join(lora.targets)}: {str(error).splitlines()[0][:160]} Layers of this model that "
                f"take an adapter: {', '.join(known)}"
            ) from error
    adapted.set_adapter(name)
    _refuse_broken_tie(adapted)
    return adapted


def is_adapted(model: Any) -> bool:
    """Whether ``model`` carries adapters."""
    return type(model).__module__.partition(".")[0] == "peft"


def merge(model: Any, dtype: Any = None) -> Any:
    """A plain model with the active adapter added into its weights, in main memory; ``model`` is moved there and else stays
    as it is. dtype: of the linear weights, each summed in float32 and rounded at once; None: all stay float32."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    from taciturn.models.four_bit import FourBitLinear, widen_frozen
    from taciturn.models.saved_dtype import stays_whole

    copied = copy.deepcopy(model.to("cpu"))  # on its device there may be no room for two
    for name, module in copied.named_modules():
        adapted = isinstance(module, BaseTunerLayer)
        if adapted or isinstance(module, FourBitLinear):
            widen_frozen(module)
        if adapted:
            module.merge()
            weight = getattr(module.get_base_layer(), "weight", None)
            if dtype is not None and weight is not None and not stays_whole(copied.get_base_model(), name):
                weight.data = weight.data.to(dtype)
    if dtype is None:
        widen_frozen(copied)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All adapters are already merged")
        return copied.merge_and_unload()


def save(model: Any, tokenizer: Any, folder: Path) -> Path:
    """Write the active adapter in peft's format with its tokenizer, and return where (``folder``, or ``folder``/name for
    an adapter that has one). Where `<MASK>` made the vocabulary grow, the embedding goes with it: the base has no row
    for it.
    """
    name = model.active_adapter
    base = model.peft_config[name].base_model_name_or_path
    written = folder if name == "default" else folder / name
    model.save_pretrained(str(folder), selected_adapters=[name], save_embedding_layers=_grew(model, base))
    _rename_base(written, named := without_folders(base or ""))
    tokenizer.save_pretrained(str(written))
    (folder / "README.md").write_text(
        _README.format(base=named, head="" if named.startswith("./") else f"base_model: {named}\n"), "utf-8"
    )  # in the place of peft's empty form
    return written


def _rename_base(folder: Path, base: str) -> None:
    """Let a saved adapter name its base so."""
    path = folder / "adapter_config.json"
    path.write_text(
        json.dumps({**json.loads(path.read_text("utf-8")), "base_model_name_or_path": base}, indent=2), "utf-8"
    )


def base_of(folder: Path) -> str:
    """The name of the model that a saved adapter belongs to."""
    if find_spec("peft") is None:
        raise MissingExtra("peft", "lora")
    from peft import PeftConfig

    return str(PeftConfig.from_pretrained(str(folder)).base_model_name_or_path)


def attach(base: Any, folder: Path, bits: int | None = None) -> Any:
    """``base`` with the adapter saved in ``folder``, frozen and in evaluation mode. bits: as it was trained,
    :class:`taciturn.training.plan.Model`'s base_bits."""
    from peft import PeftModel

    from taciturn.models.four_bit import quantize_frozen

    with _renamed_names():
        adapted = PeftModel.from_pretrained(base, str(folder), is_trainable=True)
    if bits == 4:
        quantize_frozen(adapted)
    return adapted.requires_grad_(False).eval()


def _started(model: Any, folder: str, name: str) -> Any:
    from peft import PeftModel

    try:
        with _renamed_names():
            if is_adapted(model):
                model.load_adapter(folder, name, is_trainable=True)
                return model
            return PeftModel.from_pretrained(model, folder, adapter_name=name, is_trainable=True)
    except (OSError, ValueError, RuntimeError) as error:
        raise UsageError(
            f"lora.start {folder!r}: expected a folder with an adapter of this model ({str(error).splitlines()[0][:160]})"
        ) from error


@contextmanager
def _renamed_names() -> Iterator[None]:
    """peft calls properties of transformers that have newer names, which is no news for whoever trains a model."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def _owners(parameters: Sequence[str]) -> set[str]:
    """The modules that own these parameters, but for the heads that peft saves of itself.

    >>> sorted(_owners(["classifier.out_proj.bias", "bert.pooler.dense.weight", "pre_classifier.weight"]))
    ['bert.pooler.dense', 'pre_classifier']
    """
    return {name.rpartition(".")[0] for name in parameters if name.partition(".")[0] not in ("classifier", "score")}


def _takes_adapter(module: Any) -> bool:
    return _kind(module) in ("Linear", "Conv1D")


def _kind(module: Any) -> str:
    """Of a layer, in whatever type its weight is kept (:mod:`taciturn.models.half`)."""
    return type(module).__name__.removeprefix("Half")


def _grew(model: Any, base: str | None) -> bool:
    from transformers import AutoConfig

    if not base:
        return False
    name, source = locate(base)
    known = AutoConfig.from_pretrained(name, **source).vocab_size
    return bool(known != model.get_input_embeddings().weight.shape[0])


def _refuse_broken_tie(model: Any) -> None:
    """An adapter on one end of a tied weight would train two different weights, and saving would keep one of them."""
    if not getattr(model.config, "tie_word_embeddings", False):
        return
    ends = {model.get_input_embeddings(), model.get_output_embeddings()} - {None}
    if any(type(end).__module__.partition(".")[0] == "peft" for end in ends):
        raise UsageError(
            "lora: the embedding and the head of this model are one weight, and an adapter on either would pull them "
            "apart; leave them out of targets and modules_to_save"
        )
