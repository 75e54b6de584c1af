"""What the public tokens are allowed to depend on: the redacted text, and nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from taciturn.errors import DataError, UsageError
from taciturn.models.sensitive import Sensitive, align, encode_sensitive
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import encode
from taciturn.screening.redact import substitute
from taciturn.text.chat import join
from taciturn.text.document import MASK

BYTES = byte_tokenizer()
# Few letters, so that stretches are found in wrong places.
text = st.text("ab \n", max_size=12)
secret = st.text("ab1<", min_size=1, max_size=6)


def hot(data: Sensitive, i: int = 0) -> np.ndarray:
    return data.flags[data.tokens.offsets[i] : data.tokens.offsets[i + 1]]


def skeleton(data: Sensitive, mask: int, i: int = 0) -> list[int]:
    """The tokens with every sensitive run as one mask."""
    out: list[int] = []
    for token, flag, before in zip(data.tokens[i], hot(data, i), [False, *hot(data, i)[:-1]], strict=True):
        if not (flag and before):
            out.append(mask if flag else int(token))
    return out


@settings(deadline=None)
@given(st.lists(text, min_size=1, max_size=5), st.data())
@example(["a", " b ", "c"], None)
def test_masked_characters_are_exactly_what_no_public_stretch_holds(stretches: list[str], data: Any) -> None:
    """original = p0 x1 p1 … xk pk. Whatever the secrets spell, the stretches of the alignment are those of the redacted
    text, and with the masked places known the alignment is the true one up to what those leave open."""
    stretches = [stretches[0], *(s or " " for s in stretches[1:-1]), *stretches[1:][-1:]]
    secrets = [data.draw(secret) if data else "Z b Y" for _ in stretches[1:]]
    original, marks = stretches[0], []
    for x, stretch in zip(secrets, stretches[1:], strict=True):
        marks.append((len(original), len(original) + len(x)))
        original += x + stretch
    redacted = MASK.join(stretches)
    for stable in ((), marks):
        found = align(original, redacted, stable)
        assert len(found) == len(marks)
        edges = [0, *(e for pair in found for e in pair), len(original)]
        assert [original[a:b] for a, b in zip(edges[::2], edges[1::2], strict=True)] == stretches
        assert all(a < b for a, b in found)
    for a, b in marks:  # every masked character is sensitive
        assert any(s <= a and b <= e for s, e in found)


@settings(deadline=None, max_examples=60)
@given(st.text("ab1 ", min_size=1, max_size=20), st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), max_size=4))
def test_what_redaction_makes_is_aligned(original: str, spans: list[tuple[int, int]]) -> None:
    """With joined masks, as screening joins them."""
    marks: list[tuple[int, int]] = []
    for start, length in sorted(spans):
        end = min(start + length, len(original))
        if start < end and (not marks or marks[-1][1] <= start):
            marks.append((start, end))
    found = align(original, substitute(original, marks), marks)
    assert all(any(s <= a and b <= e for s, e in found) for a, b in marks)


@pytest.mark.parametrize("kind", ["bytes", "bpe", "wordpiece", "roberta", "llama"])
@settings(deadline=None, max_examples=25)
@given(
    st.lists(text, min_size=2, max_size=4),
    st.lists(st.tuples(secret, secret), min_size=3, max_size=3),
    st.sampled_from([None, 3, 6, 40]),
)
def test_public_tokens_are_a_function_of_the_redacted_text(
    zoo: Any, kind: str, stretches: list[str], secrets: list[tuple[str, str]], most: int | None
) -> None:
    """Two records with equal redacted text and any secrets at all, one of them making the alignment ambiguous."""
    tokenizer = zoo(kind)
    mask = mask_id(tokenizer)
    stretches = [stretches[0], *(s or " " for s in stretches[1:-1]), stretches[-1]]
    redacted = MASK.join(stretches)
    first, second = (
        stretches[0] + "".join(pair[side] + s for pair, s in zip(secrets, stretches[1:], strict=False))
        for side in (0, 1)
    )
    data = encode_sensitive(tokenizer, [first, second], [redacted] * 2, max_length=most)
    alone = encode(tokenizer, redacted, most).tolist()
    joined = [t for t, before in zip(alone, [-1, *alone], strict=False) if (t, before) != (mask, mask)]
    assert skeleton(data, mask, 0) == skeleton(data, mask, 1) == joined
    scored = [data.tokens.targets(i, mask)[~hot(data, i)].tolist() for i in (0, 1)]
    assert scored[0] == scored[1]
    for runs in (1, 2):
        kept = [data.tokens[i][~data.flagged(i, runs)].tolist() for i in (0, 1)]
        assert kept[0] == kept[1]
    if most is not None:
        assert (data.tokens.lengths < 2 * most + len(stretches)).all()


def test_secrets_are_coded_alone_and_a_literal_mask_is_no_target() -> None:
    data = encode_sensitive(BYTES, ["to Ann, or <MASK>"], ["to <MASK>, or <MASK>"])
    mask = mask_id(BYTES)
    want = [*encode(BYTES, "to ")[:-1], *encode(BYTES, "Ann")[1:-1], *encode(BYTES, ", or ")[1:-1], mask]
    assert data.tokens[0].tolist() == [*want, BYTES.eos_token_id]
    assert np.flatnonzero(hot(data)).tolist() == [4, 5, 6, 12]
    assert not data.tokens.targets(0, mask)[12]


def test_a_secret_without_tokens_leaves_a_mask(zoo: Any) -> None:
    tokenizer = zoo("wordpiece")  # drops blanks
    data = encode_sensitive(tokenizer, ["it \n rains"], ["it <MASK> rains"], [[(3, 4)]])
    assert data.tokens[0][hot(data)].tolist() == [mask_id(tokenizer)]


def test_masked_places_that_are_known_settle_an_ambiguous_record() -> None:
    original, redacted = "a X b Z b Y c", "a <MASK> b <MASK> c"
    assert align(original, redacted) == ((2, 3), (6, 11))
    assert align(original, redacted, [(2, 7)]) == ((2, 7), (10, 11))


def test_a_record_masked_whole_has_no_public_target() -> None:
    data = encode_sensitive(BYTES, ["all of it", ""], [MASK, ""])
    assert hot(data).tolist() == [False, *[True] * 9]
    assert hot(data, 1).tolist() == [False]
    assert len(data) == 2


def test_from_one_run_too_many_on_the_rest_is_sensitive() -> None:
    data = encode_sensitive(BYTES, ["a1b2c3d"], ["a<MASK>b<MASK>c<MASK>d"])
    assert hot(data).astype(int).tolist() == [0, 0, 1, 0, 1, 0, 1, 0, 0]
    assert data.flagged(0, 3).tolist() == hot(data).tolist()
    assert data.flagged(0, 2).astype(int).tolist() == [0, 0, 1, 0, 1, 0, 1, 1, 1]
    assert data.flagged(0, 1).astype(int).tolist() == [0, 0, 1, 0, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("redacted", ["call <MASK>", "<MASK> Bob!", "other", "call <MASK>x<MASK>"])
def test_a_redacted_text_of_another_record_is_refused_without_quoting_it(redacted: str) -> None:
    with pytest.raises(DataError, match="record 1: its redacted text") as error:
        encode_sensitive(BYTES, ["", "tell Bob"], ["", redacted])
    assert "Bob" not in str(error.value)


def test_conversations_are_refused() -> None:
    chat = join([("user", "Hi"), ("assistant", "Hello")])
    with pytest.raises(UsageError, match="plain text"):
        encode_sensitive(BYTES, [chat], [chat])
