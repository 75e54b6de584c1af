"""What a person is given to label: who is drawn, with which weight, and what the file refuses."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from taciturn.errors import DataError, MismatchError, UsageError
from taciturn.screening import ScreenedCorpus, policy, screen
from taciturn.screening.labels import Line, digest, read, write
from taciturn.screening.measuring.sample import allocate, draw, stratum
from taciturn.text.readers import Corpus

TEXTS = [
    *(f"call me at (555) 010-{i:04d}" for i in range(20)),
    *(f"my name is Rhonda Young{i}" for i in range(10)),
    *("hello, how can I help you?" for _ in range(30)),
]


def screened(**options: Any) -> ScreenedCorpus:
    return screen(Corpus.from_texts(TEXTS), policy("phone"), policy("conservative"), unit="document", **options)


def test_a_seed_gives_the_draw() -> None:
    corpus = screened()
    first, again, other = (draw(corpus, 12, seed=s) for s in (1, 1, 2))
    assert first == again
    assert [line.id for line in first] != [line.id for line in other]
    assert len({line.id for line in draw(corpus, 10_000)}) == len(TEXTS)
    assert draw(corpus, 5)[0].seed != draw(corpus, 5)[0].seed


def test_every_record_is_as_likely() -> None:
    """400 draws of 6 of 60: a chi-square statistic above its 1 - 1e-6 quantile is one false alarm in a million (draws
    without replacement vary less)."""
    corpus = screened()
    seen = Counter(line.id for seed in range(400) for line in draw(corpus, 6, seed=seed))
    statistic = sum((seen[f"memory:{i}#0"] - 40) ** 2 / 40 for i in range(1, len(TEXTS) + 1))
    assert sum(seen.values()) == 2400
    assert set(seen) <= {line.id for line in draw(corpus, 100)}
    assert statistic < chi2.isf(1e-6, len(TEXTS) - 1)


def test_the_first_lines_are_a_random_sample_too() -> None:
    """Of 20 lines over 60 records, the first is one of the last 30 records half the time: 200 seeds, ±6 sd."""
    corpus = screened()
    late = sum(int(draw(corpus, 20, seed=seed)[0].id.split(":")[1].split("#")[0]) > 30 for seed in range(200))
    assert abs(late - 100) < 6 * 50**0.5


def test_strata_and_weights() -> None:
    lines = draw(screened(), 24, by="cue", seed=3)
    drawn = Counter(line.stratum for line in lines)
    assert set(drawn) == {"π, digit", "π_c only, digit", "unmarked, no cue"}
    assert sum(line.weight for line in lines) == pytest.approx(len(TEXTS))
    for line in lines:
        assert line.weight == pytest.approx(line.stratum_records / drawn[line.stratum])
    assert min(drawn.values()) >= 24 / 2 / 3 - 1


def test_one_part() -> None:
    lines = draw(screened(), 1000, part="public")
    assert {line.part for line in lines} == {"public"}
    assert {(line.records, line.population) for line in lines} == {(30, "public")}
    with pytest.raises(UsageError, match="did you mean 'public'"):
        draw(screened(), 5, part="publc")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="at least one"):
        draw(screened(), 0)


def test_originals_are_needed(tmp_path: Path) -> None:
    for out in (None, tmp_path / "s"):
        with pytest.raises(DataError, match="keep_originals"):
            draw(screened(keep_originals=False, out=out), 5)


@given(st.lists(st.integers(1, 500), min_size=1, max_size=12), st.integers(1, 600))
def test_allocation(sizes: list[int], n: int) -> None:
    drawn, n = allocate(sizes, n), min(n, sum(sizes))
    assert sum(drawn) == n
    assert all(0 <= d <= size for d, size in zip(drawn, sizes, strict=True))
    if n >= 2 * len(sizes):
        assert min(drawn) >= 1
    assert all(d >= int(0.5 * n * size / sum(sizes)) - 1 for d, size in zip(drawn, sizes, strict=True))


def test_a_folder_gives_the_same_sample_as_memory(tmp_path: Path) -> None:
    assert draw(screened(), 30, by="cue", seed=5) == draw(screened(out=tmp_path / "s"), 30, by="cue", seed=5)


def line(said: str, **changes: Any) -> dict[str, Any]:
    made = {"id": "a", "text": said, "part": "public", "stratum_records": 1, "records": 1, "weight": 1.0, "seed": 0}
    return made | {"text_digest": digest(said)} | changes


def test_a_labels_file_is_closed_to_others_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    lines = draw(screened(), 7)
    write(path, lines)
    assert path.stat().st_mode & 0o777 == 0o600
    assert read(path) == lines
    assert set(json.loads(path.read_bytes().split(b"\n")[0])) >= {
        "id",
        "text",
        "spans",
        "label_status",
        "weight",
        "stratum",
    }


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"text": "zebra was here!"}, "not the one that was sampled"),
        ({"spans": [{"start": 3, "end": 99}]}, "outside its 14 characters"),
        ({"spans": [{"start": 5, "end": 5}]}, "empty or outside"),
        ({"spans": [{"start": 5, "end": 6}]}, "nothing but blanks"),
        ({"spans": [{"start": -1, "end": 6}]}, "greater than or equal to 0"),
        ({"spans": [{"start": 0, "end": 5, "lable": "animal"}]}, "did you mean 'label'?"),
        ({"label_state": "done"}, "did you mean 'label_status'?"),
        ({"label_status": "finished"}, "'todo', 'done' or 'skip'"),
        ({"weight": 0}, "greater than 0"),
    ],
)
def test_mistakes_name_the_line_and_quote_nothing(tmp_path: Path, changes: dict[str, Any], says: str) -> None:
    path = tmp_path / "labels.jsonl"
    good = line("nothing to see", id="b")
    bad = line("zebra was here", **changes)
    path.write_text(f"{json.dumps(good)}\n{json.dumps(bad)}\n")
    with pytest.raises(DataError) as caught:
        read(path)
    assert "labels.jsonl, line 2" in str(caught.value)
    assert says in str(caught.value)
    assert "zebra" not in str(caught.value)


def test_a_file_of_two_samples_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(f"{json.dumps(line('x', id='a'))}\n{json.dumps(line('y', id='b', seed=1))}\n")
    with pytest.raises(DataError, match="different samples"):
        read(path)
    path.write_text(f"{json.dumps(line('x'))}\n{json.dumps(line('x'))}\n")
    with pytest.raises(DataError, match="twice"):
        read(path)
    path.write_text("\n")
    with pytest.raises(DataError, match="no line"):
        read(path)
    path.write_text("{zebra\n")
    with pytest.raises(DataError, match="line 1: not a JSON object"):
        read(path)


def test_a_span_is_refused_by_any_other_text() -> None:
    """Field case P18: offsets of one text applied to another leave remnants of the secret."""
    made = Line.model_validate(line("call dana now", spans=[{"start": 5, "end": 9}]))
    made.agrees_with("call dana now")
    with pytest.raises(MismatchError, match="another text"):
        made.agrees_with("call <MASK> now")
    assert "dana" not in repr(made)


def test_strata_look_at_one_record() -> None:
    marks = {line.text: line.stratum for line in draw(screened(), 100, by="cue")}
    assert all(marks[text] == stratum_of for text, stratum_of in _alone().items())


def _alone() -> dict[str, str]:
    made = {}
    for text in {TEXTS[0], TEXTS[25], TEXTS[-1]}:
        alone = screen(Corpus.from_texts([text]), policy("phone"), policy("conservative"), unit="document")
        from taciturn.screening.measuring.sample import read_population

        made[text] = stratum(next(read_population(alone)))
    return made
