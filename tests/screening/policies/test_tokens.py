"""Token classifiers: a tiny one is trained on the spot to find names and days."""

from __future__ import annotations

import pickle
import random
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from taciturn.errors import UsageError
from taciturn.screening.policies import tokens, tokens_wide
from taciturn.screening.policies.base import Policy
from taciturn.screening.policies.token_model import loaded
from taciturn.screening.policies.view import View
from taciturn.text.spans import Detection

if not (find_spec("torch") and find_spec("transformers")):
    pytest.skip("torch or transformers is not installed", allow_module_level=True)

NAMES = "anna peter maria zoe john lena omar ines kofi mei".split()  # noqa: SIM905
LABELS = ("O", "PER", "DAY")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Combining, zero-width, joined, four-byte and expanding characters, controls, blanks of a mask.
_ODD = "anna zoe\u0301mei\u200b\u00ad é🎉\U0001f469\u200d\U0001f467ß\u0130ﬁ\x1a\x00,."
_WILD = st.text(st.one_of(st.sampled_from(_ODD), st.characters(exclude_categories=["Cs"])), max_size=60)
quick = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


def sentences(count: int) -> list[str]:
    rng = random.Random(0)

    def sentence() -> str:
        a, b = rng.choices(NAMES, k=2)
        return rng.choice(
            [
                f"my name is {a} and i live here",
                f"please call {a} or {b} today",
                f"the order was sent on monday by {a}.",
                "thank you for the good news, see you soon",
            ]
        )

    return [sentence() for _ in range(count)]


def _word_pieces() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    letters = sorted({letter for text in sentences(200) for letter in text if letter.isalpha()})
    vocabulary = [*SPECIAL, *sorted({word for text in sentences(200) for word in re.findall(r"\w+|\S", text)})]
    vocabulary += [piece for x in letters for piece in (x, f"##{x}") if piece not in vocabulary]
    places = {word: i for i, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(places, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def _bytes() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(sentences(200), trainer)
    return tokenizer


def _train(folder: Path, tokenizer: Any) -> Path:
    import torch
    from tokenizers import processors
    from transformers import BertConfig, BertForTokenClassification, PreTrainedTokenizerFast

    torch.manual_seed(0)
    ends = [(word, tokenizer.token_to_id(word)) for word in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        mask_token="[MASK]", model_max_length=64,
    )  # fmt: skip
    config = BertConfig(
        vocab_size=tokenizer.get_vocab_size(), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=66, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
        id2label=dict(enumerate(LABELS)), label2id={label: i for i, label in enumerate(LABELS)},
    )  # fmt: skip
    model = BertForTokenClassification(config)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    texts = sentences(192)
    for step in range(48):
        batch = texts[16 * step % 192 :][:16]
        given = fast(batch, padding=True, return_tensors="pt", return_offsets_mapping=True)
        offsets = given.pop("offset_mapping").tolist()
        wanted = [[_label(t, *place) for place in row] for t, row in zip(batch, offsets, strict=True)]
        model(**given, labels=torch.tensor(wanted)).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


def _label(text: str, start: int, end: int) -> int:
    if end <= start:
        return -100
    last = text[: end].rsplit(None, 1)[-1] if text[start:end].strip() else ""  # fmt: skip
    word = (last + text[end:]).split(" ")[0].strip(".,")
    return 1 if word in NAMES else 2 if word == "monday" else 0


@pytest.fixture(scope="module", params=[_word_pieces, _bytes], ids=["wordpiece", "bytes"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(_train(tmp_path_factory.mktemp("classifier"), request.param()))


def narrow(folder: str, **options: object) -> tokens.TokenClassifier:
    (found,) = tokens.named(folder, options)
    assert isinstance(found, tokens.TokenClassifier)
    return found


def wide(folder: str, **options: object) -> tokens.TokenClassifier:
    (found,) = tokens_wide.named(folder, options)
    assert isinstance(found, tokens.TokenClassifier)
    return found


def words(detector: tokens.TokenClassifier, text: str) -> list[tuple[str, str]]:
    return [(text[s.start : s.end], s.label) for s in detector.find([View.of(text)])[0].spans]


def slow(folder: str, text: str, wide: bool) -> set[int]:
    """The characters of the words that the definition marks, one text at a time, straight from the model."""
    import torch

    model = loaded(folder, "cpu")
    given = model.tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
    offsets = given.pop("offset_mapping")[0].tolist()
    with torch.inference_mode():
        scores = model.model(**given).logits[0].double().softmax(-1).tolist()
    marks = [(p[0] < 0.9 or max(p) > p[0]) if wide else max(p[1:]) >= 0.3 for p in scores]
    ids = given.word_ids(0)
    return {i for w, m in zip(ids, marks, strict=True) if m and w is not None
            for other, (a, b) in zip(ids, offsets, strict=True) if other == w for i in range(a, b)
            if not text[i].isspace()}  # fmt: skip


def test_finds_what_it_was_trained_to_find(folder: str) -> None:
    text = "please call maria or omar today"
    assert words(narrow(folder), text) == [("maria", "PER"), ("omar", "PER")]
    assert words(narrow(folder), "the order was sent on monday by lena.")[0] == ("monday", "DAY")
    assert words(narrow(folder, labels=["DAY"]), "the order was sent on monday by lena.") == [("monday", "DAY")]


@quick
@given(text=_WILD)
def test_marks_are_those_of_the_definition_in_offsets_of_the_text(folder: str, text: str) -> None:
    """Field case P31: every character of a token that is marked is in a span, whatever comes before it."""
    text = text.replace("\x1a", "")
    if len(loaded(folder, "cpu").tokenizer(text)["input_ids"]) > 64:
        return
    for detector in (narrow(folder), wide(folder)):
        found = detector.find([View.of(text)])[0]
        covered = {i for s in found.spans for i in range(s.start, s.end)}
        assert covered >= slow(folder, text, detector.wide)
        assert all(0 <= s.start < s.end <= len(text) for s in found.spans)


@quick
@given(text=_WILD)
def test_wide_marks_all_that_narrow_marks_and_the_unsure(folder: str, text: str) -> None:
    # Here .3 of a tag leaves less than .9 for the plain label.
    first, second = (d.find([View.of(text)])[0].spans for d in (narrow(folder), wide(folder)))
    assert {i for s in first for i in range(s.start, s.end)} <= {i for s in second for i in range(s.start, s.end)}


@quick
@given(texts=st.lists(st.one_of(_WILD, st.sampled_from(sentences(20))), min_size=2, max_size=10))
def test_the_batch_does_not_matter(folder: str, texts: list[str]) -> None:
    for detector in (narrow(folder), wide(folder)):
        views = [View.of(t) for t in texts]
        assert detector.find(views) == [detector.find([view])[0] for view in views]


def test_a_score_beside_the_threshold_does_not_depend_on_the_batch(folder: str) -> None:
    """The threshold is put on a score itself: without the second look, half of the batches would tip it."""
    text, padding = "my name is zyx and i live here", [View.of("a " * n) for n in range(1, 40)]
    model = loaded(folder, "cpu")
    (piece,) = model.pieces({0: text})
    best = sorted(p[1:].max() for p in model.scores([piece])[0])
    for threshold in best[len(best) // 2 :]:
        detector = narrow(folder, threshold=float(threshold))
        (alone,) = detector.find([View.of(text)])
        for count in (1, 7, 39):
            assert detector.find([*padding[:count], View.of(text)])[-1] == alone


def test_long_texts_are_windowed_not_cut_off(folder: str) -> None:
    text = "thank you for the good news, " * 60 + "please call maria or omar today " + "see you soon " * 60
    found = words(narrow(folder), text)
    assert ("omar", "PER") in found
    longer = "thank you for the good news, " * 8_000 + "please call maria or omar today"
    assert ("omar", "PER") in words(narrow(folder), longer)
    assert len(longer) > 2 * 100_000


def test_characters_that_a_tokenizer_drops_go_with_their_word(folder: str) -> None:
    text = "please call anna\u0301\u200b or omar today"
    (found,) = narrow(folder).find([View.of(text)])
    covered = {i for s in found.spans for i in range(s.start, s.end)}
    assert covered >= set(range(12, 16))
    assert not covered & {11, 18}


def test_a_lone_surrogate_is_an_error_and_only_there(folder: str) -> None:
    found = narrow(folder).find([View.of("anna \ud800"), View.of("please call maria or omar today"), View.of("")])
    assert found[0] == Detection(status="error")
    assert found[1].spans
    assert found[2] == Detection()


def test_a_mask_is_not_marked(folder: str) -> None:
    text = "please call <MASK> or omar<MASK> today"
    found = Policy((wide(folder),), "x").find([text])[0]
    assert "<MASK>" not in [text[s.start : s.end] for s in found.spans]
    assert any(s.start <= text.index("omar") < s.end for s in found.spans)


def test_pickles_and_has_an_identity(folder: str, tmp_path: Path) -> None:
    detector = narrow(folder)
    detector.find([View.of("x")])
    assert pickle.loads(pickle.dumps(detector)) == detector
    assert len(pickle.dumps(detector)) < 10_000
    parts = (detector, wide(folder), narrow(folder, threshold=0.5), narrow(folder, labels=["PER"]))
    assert len({Policy((d,), "x").identity for d in parts}) == 4
    for file in Path(folder).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x01")
    assert narrow(str(tmp_path)).definition()["files"] != detector.definition()["files"]


def test_mistakes_are_named(folder: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no label 'PERSON'; did you mean 'PER'"):
        narrow(folder, labels=["PERSON"])
    with pytest.raises(UsageError, match="has no label 'plain'"):
        narrow(folder, plain="plain")
    with pytest.raises(UsageError, match="tokens-wide: unknown option 'treshold'; did you mean 'threshold'"):
        wide(folder, treshold=0.5)
    with pytest.raises(UsageError, match=r"no config\.json"):
        narrow(str(tmp_path))
    with pytest.raises(UsageError, match="neither a folder nor a model that can be had"):
        narrow("nobody/has-this-model")
    with pytest.raises(UsageError, match="name a model"):
        narrow("")
