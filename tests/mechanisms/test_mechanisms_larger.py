"""Corpora larger than memory: read in pieces they are what they are at once, and more records take no more memory."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from every_mechanism import DOCUMENTS, OPTIONS, config, corpus
from taciturn.errors import UsageError
from taciturn.mechanisms.corpus import check_counts, encoded, records_of
from taciturn.mechanisms.planning import make_plan
from taciturn.mechanisms.run import train
from taciturn.models.sequences import mask_id
from taciturn.models.tokenizers import byte_tokenizer
from taciturn.models.tokens import Tokens
from taciturn.screening.corpus import screened
from taciturn.screening.corpus.manifest import Shard, file_digest
from taciturn.screening.corpus.screened import ScreenedCorpus, load
from taciturn.training.given import facts
from taciturn.training.randomness.sampling import shuffled

WROTE = ("model/model.safetensors", "evidence.json", "tokens.json")
LEARNED = {"fill": "learned", "values": {"protect_copies": 1}}
MARKED = {"fill": "none", "private": {"steps": 5, "batch": 4, "targets": "marked"}}


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in OPTIONS), ("crt", LEARNED), ("crt", MARKED), ("jft", {"share": 0.5})],
)
def test_pieces_change_nothing(
    name: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    screening = corpus([*DOCUMENTS, replace(DOCUMENTS[1], id="copy")])
    settings = config(name, epsilon=8.0, noise=7, **options)

    def written(out: str) -> list[Any]:
        train(settings, tmp_path / out, screened=screening)
        return [file_digest(tmp_path / out / each) for each in WROTE]

    whole = written("whole")
    monkeypatch.setattr(screened, "ROWS", 4)
    in_pieces(monkeypatch, 50)
    assert written("pieces") == whole


def in_pieces(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    real = Tokens.pieces
    monkeypatch.setattr(Tokens, "pieces", lambda tokens, most=size: real(tokens, most))


def test_rows_of_a_phase_are_found_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screened, "ROWS", 4)
    phase = make_plan(config("dpsgd"), source := corpus()).phases[0]
    texts = source.texts("original")
    some = replace(phase, rows=(0, 3, 4, 11, 23))
    assert [text for rows in records_of(some, source) for text in rows["text"]] == [
        texts[row] for row in some.rows or ()
    ]
    with pytest.raises(UsageError, match="ascending"):
        next(records_of(replace(phase, rows=(3, 1)), source))


def test_nothing_of_the_tokens_stands_in_a_folder(tmp_path: Path) -> None:
    out = tmp_path / "run"

    def mapped() -> list[str]:
        return [m.path for m in psutil.Process().memory_maps(grouped=False) if str(out) in m.path]

    seen = set()

    def look(_: Any) -> None:
        seen.update(mapped())
        names = {path.name.split("-")[0] for path in (out / "checkpoints").iterdir()}
        assert names <= {"corpus.salt", "environment.json", "lock", "noise.key", "step"}

    train(config("dpsgd"), out, screened=corpus(), notify=look)
    assert seen, "tokens lie on the disk of the run"
    assert not any(os.path.exists(path) for path in seen)
    assert not mapped()


def longer(source: Path, out: Path, times: int) -> ScreenedCorpus:
    """A screened corpus so many times over."""
    corpus = load(source)
    shards, counts = [], corpus.counts
    for shard in corpus.manifest.shards:
        table, path = pq.read_table(source / shard.path), out / shard.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(path, table.schema) as writer:
            for _ in range(times):
                writer.write_table(table)
        shards.append(Shard(path=shard.path, rows=shard.rows * times, digest=file_digest(path)))
    counts = counts.model_copy(update={name: getattr(counts, name) * times for name in ("read", "public", "private")})
    manifest = corpus.manifest.model_copy(update={"shards": tuple(shards), "counts": counts})
    (out / "manifest.json").write_bytes(manifest.to_json())
    return load(out)


@pytest.mark.parametrize(
    ("name", "options"),
    [("dpsgd", {"noise_multiplier": 1.0}), ("crt", {"private": {"steps": 5, "batch": 4, "noise_multiplier": 1.0}})],
)
def test_four_times_the_records_take_no_more_memory(
    name: str, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deterministic: what Python, numpy and Arrow allocated at most, from the plan to the digest of the tokens. More records
    may take two bytes each (which have no target, which are copies); a text in a list takes a hundred."""
    many = [replace(d, id=f"{i} {d.id}") for i in range(40) for d in DOCUMENTS]
    corpus(many, out=tmp_path / "small", dedup="none")
    in_pieces(monkeypatch, 5000)
    tokenizer, pool = byte_tokenizer(), pa.default_memory_pool()
    settings = config(name, epsilon=None, **options).model_copy(update={"delta": 1e-9})

    def peak(times: int) -> float:
        source = longer(tmp_path / "small", tmp_path / f"{times}", times)
        folder = tmp_path / f"tokens {times}"
        folder.mkdir()
        tracemalloc.start()
        arrow = pa.proxy_memory_pool(pool)
        pa.set_memory_pool(arrow)
        try:
            plan = make_plan(settings, source)
            check_counts(plan, source, {})
            data = {phase.name: encoded(tokenizer, plan, phase, source, 64, folder) for phase in plan.phases}
            facts(plan, data, {})
            assert not any(each.aimless(mask_id(tokenizer)).all() for each in data.values())
            assert sum(map(len, data.values())) >= len(many) * times
            return float(tracemalloc.get_traced_memory()[1] + arrow.max_memory())
        finally:
            tracemalloc.stop()
            pa.set_memory_pool(pool)

    peak(1)  # what is imported and cached
    little, much = peak(2), peak(8)
    assert much - little < 6 * len(many) * 16, (little, much)


def test_a_permutation_is_the_one_it_always_was() -> None:
    for records, size, seed in ((1, 1, 0), (10, 3, 5), (257, 50, 9)):
        per = -(-records // size)
        for step in range(3 * per):
            order = np.random.Generator(np.random.PCG64([seed, step // per])).permutation(records)
            i = step % per
            found = shuffled(records, size, step, seed)
            assert found.tolist() == order[i * size : (i + 1) * size].tolist()
            assert found.dtype == np.int64
