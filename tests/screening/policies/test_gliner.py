"""GLiNER: a tiny model is trained on the spot to find names."""

from __future__ import annotations

import pickle
import random
import re
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.errors import MissingExtra, UsageError
from taciturn.screening.policies import gliner
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection

needs_gliner = pytest.mark.skipif(find_spec("gliner") is None, reason="gliner is not installed")
NAMES = "anna peter maria zoe john lena omar ines kofi mei".split()  # noqa: SIM905
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def sentences(count: int) -> list[str]:
    rng = random.Random(0)
    forms = (
        "my name is {a} and i live here",
        "please call {a} or {b} today",
        "thank you for the good news, see you soon",
    )
    return [rng.choice(forms).format(a=rng.choice(NAMES), b=rng.choice(NAMES)) for _ in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return str(_train(tmp_path_factory.mktemp("gliner")))


def _train(folder: Path) -> Path:
    import torch
    from gliner import GLiNER, GLiNERConfig
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    torch.manual_seed(0)
    letters = sorted({letter for text in sentences(200) for letter in text if letter.isalpha()})
    vocabulary = [*SPECIAL, *sorted({word for text in sentences(200) for word in re.findall(r"\w+|\S", text)})]
    vocabulary += [piece for x in letters for piece in (x, f"##{x}") if piece not in vocabulary]
    places = {word: i for i, word in enumerate(vocabulary)}
    inner = Tokenizer(models.WordPiece(places, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [(word, inner.token_to_id(word)) for word in ("[CLS]", "[SEP]")]
    inner.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=64,
    )  # fmt: skip
    encoder = BertConfig(
        vocab_size=inner.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=66, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    BertModel(encoder).save_pretrained(folder / "encoder")
    tokenizer.save_pretrained(folder / "encoder")
    config = GLiNERConfig(
        model_name=str(folder / "encoder"), hidden_size=32, max_width=4, max_len=24, dropout=0.0, span_mode="markerV0"
    )
    model = GLiNER.from_config(config, backbone_from_pretrained=False)
    collate = model.data_collator_class(model.config, data_processor=model.data_processor, prepare_labels=True)
    examples = [_example([w for w, _, _ in model.data_processor.words_splitter(s)]) for s in sentences(192)]
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    model.train()
    for step in range(96):
        model(**collate(examples[16 * step % 192 :][:16])).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.eval().save_pretrained(folder / "model")
    return folder / "model"


def _example(words: Sequence[str]) -> dict[str, Any]:
    return {"tokenized_text": words, "ner": [(i, i, "person") for i, word in enumerate(words) if word in NAMES]}


def detector(folder: str, argument: str = "#person", **options: object) -> gliner.Gliner:
    (found,) = gliner.named(folder + argument, options)
    assert isinstance(found, gliner.Gliner)
    return found


def words(found: gliner.Gliner, text: str) -> set[str]:
    return {text[s.start : s.end] for s in found.find([View.of(text)])[0].spans}


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 20), st.integers(1, 12), st.integers(0, 4))
def test_windows_of_words_hold_every_word_that_fits(costs: list[int], budget: int, most: int, overlap: int) -> None:
    cuts = list(gliner.cut(costs, budget, most, overlap))
    assert {i for a, b in cuts for i in range(a, b)} == {i for i, cost in enumerate(costs) if cost <= budget}
    assert all(0 < b - a <= most and sum(costs[a:b]) <= budget for a, b in cuts)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(cuts))


@needs_gliner
@pytest.mark.filterwarnings("ignore")
def test_finds_what_it_was_trained_to_find(folder: str) -> None:
    assert {"maria", "omar"} <= words(detector(folder), "please call maria or omar today")
    assert not words(detector(folder), "thank you for the good news, see you soon")
    assert words(detector(folder), "") == set()


@needs_gliner
@pytest.mark.filterwarnings("ignore")
def test_long_texts_are_windowed_not_cut_off(folder: str) -> None:
    text = "thank you for the good news, " * 40 + "please call maria today, " + "see you soon " * 40
    (found,) = detector(folder).find([View.of(text)])
    assert found.status == "ok"
    assert "maria" in {text[s.start : s.end] for s in found.spans}


@needs_gliner
@pytest.mark.filterwarnings("ignore")
def test_a_word_that_does_not_fit_is_said_to_be_cut_off(folder: str) -> None:
    text = "please call " + "anna" * 24 + " or maria today"  # under the 100 letters at which WordPiece gives up
    labels = "#person," + ",".join(f"kind {i}" for i in range(4))
    (found,) = detector(folder, labels, threshold=0.1).find([View.of(text)])
    assert found.status == "truncated"
    assert found.spans


@needs_gliner
@pytest.mark.filterwarnings("ignore")
def test_the_batch_does_not_matter(folder: str) -> None:
    found = detector(folder)
    views = [View.of(t) for t in [*sentences(12), "", "Zoë 🎉 and anna\r\nomar", "please call <MASK>, maria<MASK>."]]
    assert found.find(views) == [found.find([view])[0] for view in views]


@needs_gliner
@pytest.mark.filterwarnings("ignore")
def test_a_lone_surrogate_and_a_mask(folder: str) -> None:
    found = detector(folder).find([View.of("anna \ud800"), View.of("please call maria today")])
    assert found[0] == Detection(status="error")
    assert found[1].spans
    text = "please call <MASK> or omar today"
    marked = Policy((detector(folder),), "x").find([text])[0]
    assert "<MASK>" not in {text[s.start : s.end] for s in marked.spans}


@needs_gliner
@pytest.mark.filterwarnings("ignore")
def test_pickles_and_has_an_identity(folder: str) -> None:
    found = detector(folder)
    assert pickle.loads(pickle.dumps(found)) == found
    parts = (found, detector(folder, "#person,day"), detector(folder, threshold=0.3))
    assert len({Policy((d,), "x").identity for d in parts}) == 3


@needs_gliner
def test_mistakes_are_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="name a model and what to find"):
        gliner.named(str(tmp_path), {})
    with pytest.raises(UsageError, match="unknown option 'treshold'; did you mean 'threshold'"):
        gliner.named("x#person", {"treshold": 0.5})
    with pytest.raises(UsageError, match="neither a folder nor a model that can be had"):
        gliner.named("nobody/has-this-model#person", {})


@pytest.mark.skipif(find_spec("gliner") is not None, reason="gliner is installed")
def test_the_missing_package_is_named() -> None:
    with pytest.raises(MissingExtra, match=r"taciturn\[gliner\]"):
        gliner.named("x#person", {})
