"""Drawing: openings of any length, families of models, and that no text depends on what is drawn beside it but its batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from taciturn.errors import UsageError
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.synthesis.draw import Writer
from taciturn.synthesis.settings import Settings

TOKENIZER = byte_tokenizer()


def model(kind: str = "gpt2", **options: Any) -> Any:
    torch.manual_seed(0)
    sizes = {
        "gpt2": {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 64},
        "llama": {"num_hidden_layers": 1, "hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 16,
                  "max_position_embeddings": 64},
    }[kind]  # fmt: skip
    config = AutoConfig.for_model(kind, vocab_size=len(TOKENIZER), **sizes, **options)
    config.bos_token_id = config.eos_token_id = TOKENIZER.eos_token_id
    return AutoModelForCausalLM.from_config(config)


class Parrot:
    """A model that writes what stands in its opening, backwards, and ends: what it was given can be read off its text."""

    device = torch.device("cpu")

    def __init__(self) -> None:
        self.config = SimpleNamespace()
        self.asked: list[tuple[int, ...]] = []

    def to(self, _: Any) -> Parrot:
        return self

    def eval(self) -> Parrot:
        return self

    def generate(self, ids: torch.Tensor, *, attention_mask: torch.Tensor, eos_token_id: int, **_: Any) -> torch.Tensor:
        assert bool(attention_mask.all())  # nothing is padded
        self.asked.append(tuple(ids.shape))
        end = torch.full((len(ids), 2), eos_token_id)
        return torch.cat([ids, ids[:, 1:].flip(1), end], 1)


@pytest.mark.parametrize("batch", [1, 3, 8])
def test_each_text_continues_its_own_opening(batch: int) -> None:
    openings = ("a", "bcd", "ef", "ghij ", "k")
    parrot = Parrot()
    writer = Writer.of(parrot, TOKENIZER, Settings(prompts=openings, max_tokens=8, batch=batch))
    told: list[int] = []
    found = [
        each.text for piece in range(3) for each in writer.draw(piece, range(7 * piece, 7 * piece + 7), told.append)
    ]
    turns = [openings[i % 5].rstrip() for i in range(21)]
    assert found == [text + text[::-1] for text in turns]
    assert all(rows <= batch for rows, _ in parrot.asked)
    assert told[-1] == 7


def test_a_label_stands_beside_what_it_was_told_by() -> None:
    writer = Writer.of(Parrot(), TOKENIZER, Settings(labels=("x", "yy"), template="<{label}> ", max_tokens=8))
    assert [(each.text, each.label) for each in writer.draw(0, range(3))] == [
        (">x<", "x"),
        (">yy<", "yy"),
        (">x<", "x"),
    ]


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_piece_is_the_same_whatever_was_drawn_before(kind: str) -> None:
    writer = Writer.of(model(kind), TOKENIZER, Settings(max_tokens=10, batch=4))
    first, second = (writer.draw(i, range(6 * i, 6 * i + 6)) for i in range(2))
    torch.manual_seed(7)
    assert writer.draw(1, range(6, 12)) == second
    assert writer.draw(0, range(6)) == first != second
    other = Writer.of(model(kind), TOKENIZER, Settings(max_tokens=10, batch=4, seed=1))
    assert other.draw(0, range(6)) != first


def test_special_tokens_are_never_written() -> None:
    """A model that wants to write <MASK> more than anything."""
    wanting = model()
    with torch.no_grad():
        wanting.lm_head.weight[TOKENIZER.convert_tokens_to_ids("<MASK>")] = 100.0 * wanting.transformer.ln_f.weight
    drawn = Writer.of(wanting, TOKENIZER, Settings(max_tokens=20)).draw(0, range(20))
    assert not any("<MASK>" in each.text or "<|endoftext|>" in each.text for each in drawn)
    assert all(each.cut or len(each.text) < 20 for each in drawn)


def test_what_a_model_cannot_read_is_refused() -> None:
    with pytest.raises(UsageError, match="the model reads 64"):
        Writer.of(model(), TOKENIZER, Settings(prompts=("a" * 50,), max_tokens=20))
