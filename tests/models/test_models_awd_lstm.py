"""The AWD-LSTM: plain in evaluation, three dropouts in training, and at home in transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from processes import fresh
from taciturn.models.awd_lstm import AWDLSTMConfig, AWDLSTMForCausalLM, AWDLSTMForSequenceClassification, WeightDropLSTM
from taciturn.models.hf import export, load_exported, load_model
from taciturn.models.loss import Batch, record_losses
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.persample.premise import disagreement

TOKENIZER = byte_tokenizer()
SMALL = {"embedding_size": 6, "hidden_size": 10, "num_layers": 3}


def small(tied: bool = False, **options: float) -> AWDLSTMForCausalLM:
    model = load_model("awd-lstm", TOKENIZER, 2, {**SMALL, "tie_word_embeddings": tied, **options})
    assert isinstance(model, AWDLSTMForCausalLM)
    return model


def reference(layer: WeightDropLSTM) -> nn.LSTM:
    plain = nn.LSTM(layer.input_size, layer.hidden_size, batch_first=True)
    plain.load_state_dict(layer.state_dict())
    return plain


def test_the_published_shape() -> None:
    with torch.device("meta"):
        model = AWDLSTMForCausalLM(AWDLSTMConfig(vocab_size=8882))
    sizes = [(layer.input_size, layer.hidden_size) for layer in model.encoder.layers]
    assert sizes == [(100, 1150), (1150, 1150), (1150, 1150)]
    tied = AWDLSTMConfig(tie_word_embeddings=True)
    assert tied.sizes == [100, 1150, 1150, 100]


def test_initial_weights_lie_in_the_published_ranges() -> None:
    """Uniform draws: of n, the largest is within (1 − 20/n) of the bound but once in e²⁰ runs."""
    model = load_model("awd-lstm", TOKENIZER, 0, {"embedding_size": 50, "hidden_size": 64})
    for name, p in model.named_parameters():
        bound = 0.1 if "embedding" in name else 64**-0.5
        largest = float(p.detach().abs().max())
        if name == "decoder.bias":
            assert largest == 0
        else:
            assert bound * (1 - 20 / p.numel()) <= largest <= bound, name


def test_a_layer_is_an_lstm_in_evaluation() -> None:
    torch.manual_seed(0)
    layer = WeightDropLSTM(5, 7, 0.3).eval()
    x, h, c = torch.randn(3, 11, 5), torch.randn(1, 3, 7), torch.randn(1, 3, 7)
    for state in (None, (h, c)):
        y, (h1, c1) = layer(x, state)
        want, (h2, c2) = reference(layer)(x, state)
        torch.testing.assert_close(y, want)
        torch.testing.assert_close(h1, h2)
        torch.testing.assert_close(c1, c2)


def test_one_mask_on_the_recurrent_weight_holds_for_a_whole_pass() -> None:
    torch.manual_seed(0)
    layer = WeightDropLSTM(5, 40, 0.3).train()
    mask = layer.recurrent_mask()
    assert mask is not None
    assert mask.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    share = float((mask == 0).float().mean())
    assert abs(share - 0.3) < 6 * (0.21 / mask.numel()) ** 0.5  # six deviations: once in 5e8 runs
    assert not torch.equal(mask, layer.recurrent_mask())
    layer.recurrent_mask = lambda: mask  # type: ignore[method-assign]
    dropped = reference(layer)
    with torch.no_grad():
        dropped.weight_hh_l0.mul_(mask)
    x = torch.randn(3, 9, 5)
    torch.testing.assert_close(layer(x)[0], dropped(x)[0])
    layer(x)[0].square().sum().backward()
    dropped(x)[0].square().sum().backward()
    torch.testing.assert_close(layer.weight_hh_l0.grad, dropped.weight_hh_l0.grad * mask)


def test_embedding_dropout_takes_whole_words() -> None:
    """A dropped word is zero wherever it stands: with its row gone the first layer sees zeros there."""
    model = small(embedding_dropout=0.5, recurrent_dropout=0.0, output_dropout=0.0).train()
    seen: list[torch.Tensor] = []
    model.encoder.layers[0].register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    ids = torch.tensor([[5, 6, 5, 7], [7, 5, 6, 6]])
    model(ids)
    kept = seen[0].abs().sum(-1) > 0
    for word in (5, 6, 7):
        assert len(set(kept[ids == word].tolist())) == 1
    full = model.encoder.embedding(ids)
    torch.testing.assert_close(seen[0][kept], 2 * full[kept])


def test_output_dropout_is_fixed_over_time_and_differs_between_records() -> None:
    model = small(embedding_dropout=0.0, recurrent_dropout=0.0).train()
    y = model.hidden(torch.randint(0, 200, (8, 6)))[0]
    gone = y == 0
    assert torch.equal(gone, gone[:, :1].expand_as(gone))
    assert not torch.equal(gone[0], gone[1])


@pytest.mark.parametrize("tied", [False, True])
def test_a_state_continues_a_text(tied: bool) -> None:
    model = small(tied).eval()
    ids = torch.randint(0, 200, (2, 9))
    whole = model(ids).logits
    first = model(ids[:, :4])
    rest = model(ids[:, 4:], state=first.state)
    torch.testing.assert_close(torch.cat([first.logits, rest.logits], 1), whole)
    made = model.generate(ids, max_new_tokens=5, do_sample=False, pad_token_id=0, eos_token_id=None)
    slow = ids
    for _ in range(5):
        slow = torch.cat([slow, model(slow).logits[:, -1:].argmax(-1)], 1)
    assert torch.equal(made, slow)


@pytest.mark.parametrize("tied", [False, True])
def test_an_export_loads_after_import_taciturn_alone(tied: bool, tmp_path: Path) -> None:
    model = small(tied).eval()
    assert (model.get_output_embeddings().weight is model.get_input_embeddings().weight) == tied
    export(model, TOKENIZER, tmp_path / "model")
    code = (
        "import taciturn, torch\nfrom transformers import AutoModelForCausalLM\n"
        f"m = AutoModelForCausalLM.from_pretrained({str(tmp_path / 'model')!r})\n"
        "i = torch.arange(9)[None]\nprint(float(m(i, labels=i).loss))"
    )
    said = fresh(code)
    ids = torch.arange(9)[None]
    assert float(said.splitlines()[-1]) == pytest.approx(model(ids, labels=ids).loss.item(), abs=1e-6)


def test_a_classifier_reads_the_last_token_and_starts_from_a_language_model(tmp_path: Path) -> None:
    export(small(), TOKENIZER, tmp_path / "lm")
    model = load_model(str(tmp_path / "lm"), TOKENIZER, task="classify", labels=["a", "b", "c", "d"]).eval()
    assert isinstance(model, AWDLSTMForSequenceClassification)
    torch.testing.assert_close(model.encoder.state_dict(), small().encoder.state_dict())
    ids = torch.randint(0, 200, (2, 7))
    attention = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    logits = model(ids, attention_mask=attention).logits
    assert logits.shape == (2, 4)
    torch.testing.assert_close(logits[0], model(ids[:1]).logits[0])
    torch.testing.assert_close(logits[1], model(ids[1:, :4]).logits[0])
    with pytest.raises(ValueError, match="padding on the right"):
        model(ids, attention_mask=1 - attention.roll(1, 1))
    labels = torch.tensor([3, 0])
    want = nn.functional.cross_entropy(logits, labels)
    torch.testing.assert_close(model(ids, attention_mask=attention, labels=labels).loss, want)
    export(model, TOKENIZER, tmp_path / "model")
    torch.testing.assert_close(load_exported(tmp_path / "model")[0](ids).logits, model(ids).logits)


@pytest.mark.parametrize("tied", [False, True])
def test_per_record_gradients(tied: bool) -> None:
    model = small(tied)
    ids = torch.randint(0, 200, (3, 6))
    batch = Batch(ids, torch.ones_like(ids), ids.roll(-1, 1), torch.ones(3, 6))
    parts = (batch.input_ids, batch.attention, batch.targets, batch.weights)
    worst, name = disagreement(model, lambda rows: record_losses(model, Batch(*(t[rows] for t in parts))), 3)
    assert worst < 2e-5, name
