"""Canaries: drawn apart, planted where the seed says, and kept out of sight."""

from __future__ import annotations

import json
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taciturn.auditing.canaries.templates import Planted, Template, draw, plant
from taciturn.errors import DataError, UsageError
from taciturn.text.document import Document

TEMPLATE = Template()
ALPHABETS = st.text("0123456789ABCxyz", min_size=2, max_size=8).filter(lambda a: len(set(a)) == len(a))


@given(ALPHABETS, st.integers(1, 5), st.data())
def test_index_and_secret_are_inverse(alphabet: str, length: int, data: st.DataObject) -> None:
    template = Template("x {}", alphabet, length)
    i = data.draw(st.integers(0, template.size - 1))
    assert template.index(template.secret(i)) == i


def test_draws_are_different_seeded_and_avoid_what_they_must() -> None:
    small = Template("x {}", "01", 3)
    first = draw(small, 5, seed=1)
    assert len(set(first)) == 5
    assert first == draw(small, 5, seed=1)
    assert set(draw(small, 3, seed=2, without=first)) == {small.secret(i) for i in range(8)} - set(first)
    with pytest.raises(UsageError, match="4 different secrets asked"):
        draw(small, 4, seed=2, without=first)


@given(st.integers(0, 20), st.integers(1, 4), st.integers(1, 5), st.integers(0, 99))
def test_planting_keeps_the_corpus_and_marks_the_secret(n: int, secrets: int, copies: int, seed: int) -> None:
    documents = [Document(id=f"d{i}", text=f"text {i}") for i in range(n)]
    template = Template("My {} id", length=3)
    drawn = draw(template, secrets, seed)
    planted = plant(documents, template, drawn, copies, seed)
    assert [d for d in planted if not d.id.startswith("canary-")] == documents
    canaries = {d.id: d for d in planted if d.id.startswith("canary-")}
    assert set(canaries) == {f"canary-{i}-{j}" for i in range(secrets) for j in range(copies)}
    for name, document in canaries.items():
        (span,) = document.gold
        assert document.text[span.start : span.end] == drawn[int(name.split("-")[1])]
        assert span.label == "canary"


def test_places_are_spread_over_the_corpus() -> None:
    documents = [Document(id=str(i), text="t") for i in range(1000)]
    planted = plant(documents, TEMPLATE, draw(TEMPLATE, 10, 0), 20, seed=0)
    places = [i for i, d in enumerate(planted) if d.id.startswith("canary-")]
    assert 0.4 < sum(places) / len(places) / len(planted) < 0.6  # 200 uniform places: sd .02, beyond 4 sd
    assert planted != plant(documents, TEMPLATE, draw(TEMPLATE, 10, 0), 20, seed=1)


def test_the_file_is_private_and_reads_back(tmp_path) -> None:
    planted = Planted(TEMPLATE, tuple(draw(TEMPLATE, 3, 0)), copies=20)
    path = tmp_path / "canaries.json"
    planted.write(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Planted.read(path) == planted
    assert not any(secret in repr(planted) for secret in planted.secrets)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"template": "x {}", "secrets": []}', '{"secrets": ["12"]}'])
def test_a_file_that_is_none_is_refused_by_name(tmp_path, content: str) -> None:
    path = tmp_path / "canaries.json"
    path.write_text(content)
    with pytest.raises(DataError, match=r"canaries\.json: expected an object"):
        Planted.read(path)


def test_errors_never_quote_a_secret(tmp_path) -> None:
    path = tmp_path / "canaries.json"
    path.write_text(json.dumps({"template": "x {}", "secrets": ["48151623", "4815 162"], "copies": 1}))
    with pytest.raises(UsageError) as error:
        Planted.read(path)
    assert "4815" not in str(error.value)


@pytest.mark.parametrize("text", ["no place", "two {} {}", "line\n{}"])
def test_templates_have_one_place(text: str) -> None:
    with pytest.raises(UsageError, match="exactly one"):
        Template(text)
