"""Recipes run through the code of every size, keep what they measured, and draw it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from time import sleep
from typing import Any

import pytest

from taciturn.errors import UsageError
from taciturn.recipes import page, registry, tiny_models
from taciturn.recipes.build import HIDDEN, build
from taciturn.recipes.cells import Work
from taciturn.recipes.crt.bench import Bench
from taciturn.recipes.crt.measures import bayesian
from taciturn.recipes.crt.sizes import SMOKE
from taciturn.recipes.draw import draw
from taciturn.recipes.recipe import Built, Inputs, Plot, Results, Series, Table

SMALL = Inputs("smoke")


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("papers")


@pytest.fixture(scope="module")
def figure2(out: Path) -> Built:
    return build("crt-figure2", SMALL, out)


def test_accounting_alone_needs_no_training(out: Path) -> None:
    built = build("crt-figure6", SMALL, out)
    (table,) = built.results.tables
    (row,) = table.rows
    found = dict(zip(table.columns, row, strict=True))
    assert found["as published"] == pytest.approx(0.116, abs=1e-3)  # the .12 of section 5.4
    assert found["holds: exact, replace"] == pytest.approx(0.2924, abs=1e-3)
    assert float(found["holds: exact, replace"]) > 0.12  # type: ignore[arg-type]
    text = (out / "crt-figure6.md").read_text()
    assert "| 1 | 0.1 | 0.12 |" in text  # the paper's numbers as it prints them
    assert "](crt-figure6-gamma.svg)" in text


def test_what_is_trained_is_certified_attacked_and_drawn(figure2: Built, out: Path) -> None:
    results = figure2.results
    (table,) = results.tables
    ends = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert len(ends) == 9
    assert ends["Non-private-GPT"]["ε as published"] == 0
    assert ends["Non-private-GPT"]["ε that holds"] == math.inf  # of a secret drawn at random, at δ below γ
    assert ends["S-DP-LSTM"]["ε that holds"] == math.inf
    assert ends["DPSGD-LSTM"]["ε that holds"] <= 3.0  # type: ignore[operator]
    crt = float(ends["CRT-GPT"]["ε that holds"])  # type: ignore[arg-type]
    assert 0 < crt < float(ends["DPSGD-GPT"]["ε that holds"])  # type: ignore[arg-type]
    assert all(float(row["perplexity"]) > 1 for row in ends.values())  # type: ignore[arg-type]
    svg = (out / "crt-figure2-customersim.svg").read_text()
    assert svg.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert "prefers-color-scheme:dark" in svg
    assert len(svg) < 100_000


def test_a_second_run_reads_what_the_first_measured(figure2: Built, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(Bench, "_measure", nothing)
    again = build("crt-figure2", SMALL, out)
    assert again.results == figure2.results
    assert again.seconds == figure2.seconds
    cells = list((out / HIDDEN / "crt" / "cells").glob("*.json"))
    assert cells
    assert not any("my id is" in path.read_text() for path in cells)  # numbers and settings only


def test_runs_and_models_of_a_cell_are_gone(figure2: Built, out: Path) -> None:
    del figure2
    assert list((out / HIDDEN / "crt" / "runs").iterdir()) == []
    assert (out / HIDDEN / ".gitignore").read_text() == "*\n"


def test_epsilon_on_the_way_counts_the_private_steps_of_all_rounds_so_far() -> None:
    from taciturn.privacy.accounting.accountant import compose
    from taciturn.privacy.accounting.events import PoissonGaussian
    from taciturn.privacy.guarantees.theorems import bayesian as theorem

    event = PoissonGaussian(0.2, 1.0)
    noised = {"noise_multiplier": event.noise_multiplier, "rate": event.rate}
    phases = [
        {"steps": 6, "event": {}},
        {"steps": 4, "event": noised},
    ]  # of both rounds: 3 public, 2 private, and again
    points = [{"done": done} for done in (3, 4, 5, 8, 10)]
    for gamma in (None, 0.5):
        found = bayesian({"mechanism": "crt", "repeat": 2, "phases": phases}, points, gamma)["holds"]
        profiles = [compose({event: steps}, "substitution") for steps in (0, 1, 2, 2, 4)]
        assert found == [p.epsilon(8e-5) if gamma is None else theorem(p, gamma, 0.0, 8e-5).epsilon for p in profiles]
        assert found == sorted(found)
        assert found[1] > 0


def test_the_policy_misses_the_share_of_canaries_that_is_asked(tmp_path: Path) -> None:
    from taciturn.screening.policies.derived import Missing

    bench = Bench(SMALL, Work(tmp_path))
    texts = [bench.texts.canaries.template.fill(secret) for secret in bench.texts.canaries.secrets]
    for gamma in (0.0, 0.1, 0.3, 0.5):
        missed = [
            not found.spans for found in Missing(bench.texts.policy, gamma, bench.texts.miss_seed(gamma)).find(texts)
        ]
        assert sum(missed) == 10 * gamma


def test_members_and_others_are_different_people(tmp_path: Path) -> None:
    bench = Bench(SMALL, Work(tmp_path))
    inside, outside = bench.texts.documents("train"), bench.texts.documents("others")
    assert len(inside) == len(outside) == SMOKE.dialogues
    assert not {d.text for d in inside} & {d.text for d in outside}


@pytest.mark.parametrize("name", ["crt-figure3", "jft-table2", "uedp-figure6"])
def test_other_seeds_are_those_of_every_row_and_the_page_names_them(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page of other seeds shares no cell that was trained with the first one, so that it is a second measurement."""
    asked: dict[int, list[dict[str, Any]]] = {0: [], 5: []}

    class Asked(Exception):
        pass

    def ask(self: Work, key: dict[str, Any], measure: object) -> dict[str, Any]:  # noqa: ARG001
        asked[inputs.seed].append(key)
        raise Asked

    monkeypatch.setattr(Work, "cell", ask)
    monkeypatch.setattr(tiny_models, "_train", lambda *_: None)
    for inputs in (Inputs("smoke"), Inputs("smoke", seed=5)):
        with pytest.raises(Asked):
            registry.run(name, inputs, Work(tmp_path))
    ((first,), (other,)) = asked.values()
    assert (first["seed"], other["seed"]) == (0, 5)
    assert Inputs("quick", runs=3, seed=5).flags == " --quick --runs 3 --seed 5"
    assert Inputs("quick").flags == " --quick"


def test_a_cell_that_failed_is_measured_again_and_infinities_survive(tmp_path: Path) -> None:
    work, calls = Work(tmp_path), []

    def fails() -> dict[str, object]:
        raise RuntimeError("stopped")

    def measure() -> dict[str, object]:
        calls.append(1)
        return {"epsilon": math.inf, "many": [1.0, -math.inf], "inner": {"a": None}}

    with pytest.raises(RuntimeError, match="stopped"):
        work.cell({"a": 1}, fails)
    first, second = (work.cell({"a": 1}, measure) for _ in range(2))
    assert first == second == {"epsilon": math.inf, "many": [1.0, -math.inf], "inner": {"a": None}}
    assert len(calls) == 1
    work.cell({"a": 2}, measure)
    assert len(calls) == 2
    for path in (tmp_path / "cells").iterdir():
        json.loads(path.read_text(), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("fails", [False, True])
def test_a_cell_is_measured_by_one_at_a_time(fails: bool, tmp_path: Path) -> None:
    """Locks are of open files, so two threads stand for two processes."""
    begun, go_on, calls = Event(), Event(), []

    def measure() -> dict[str, object]:
        calls.append(1)
        begun.set()
        assert go_on.wait(60)
        if fails and len(calls) == 1:
            raise RuntimeError("stopped")
        return {"n": len(calls)}

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(Work(tmp_path).cell, {"a": 1}, measure)
        assert begun.wait(60)
        second = pool.submit(Work(tmp_path).cell, {"a": 1}, measure)
        sleep(0.2)
        assert calls == [1]  # the second waits
        go_on.set()
    assert second.result() == {"n": 1 + fails}
    if fails:
        assert isinstance(first.exception(), RuntimeError)
    else:
        assert first.result() == {"n": 1}
    assert [path.suffix for path in (tmp_path / "cells").iterdir()] == [".json"]


def test_after_a_failure_one_that_waited_and_one_that_comes_are_kept_apart(tmp_path: Path) -> None:
    """The one that failed removes its lock: who waited for that file must not think that it keeps others out."""
    inside, most, begun, fail, go_on = [0], [0], [Event() for _ in range(3)], Event(), Event()

    def measuring(number: int) -> Callable[[], dict[str, object]]:
        def measure() -> dict[str, object]:
            inside[0] += 1
            most[0] = max(most[0], inside[0])
            begun[number].set()
            assert (go_on if number else fail).wait(60)
            inside[0] -= 1
            raise RuntimeError("stopped")

        return measure

    with ThreadPoolExecutor(3) as pool:
        cells = [pool.submit(Work(tmp_path).cell, {"a": 1}, measuring(0))]
        assert begun[0].wait(60)
        cells.append(pool.submit(Work(tmp_path).cell, {"a": 1}, measuring(1)))
        sleep(0.2)  # the second waits
        fail.set()
        assert begun[1].wait(60)
        cells.append(pool.submit(Work(tmp_path).cell, {"a": 1}, measuring(2)))
        assert not begun[2].wait(0.3)
        go_on.set()
    assert begun[2].is_set()
    assert most == [1]
    assert all(isinstance(each.exception(), RuntimeError) for each in cells)
    assert list((tmp_path / "cells").iterdir()) == []


def test_the_full_setting_says_what_it_takes_before_anything_is_done(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--quick"):
        build("crt-figure3", Inputs("full"), tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("given", [{"data": Path("sets")}, {"model": "gpt2"}, {"writer": "gpt2"}])
def test_the_full_setting_begins_with_whatever_was_given(
    given: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Inputs] = []

    def run(_: str, inputs: Inputs, __: Work) -> Results:
        begun.append(inputs)
        return Results("")

    monkeypatch.setattr(registry, "run", run)
    build("jft-table2", Inputs("full", **given), tmp_path)
    assert begun == [Inputs("full", **given)]


def test_published_marks_are_open_and_share_the_colour_of_ours() -> None:
    ours, paper = Series("a", (1.0, 2.0), (1.0, 2.0)), Series("a", (1.0,), (1.5,), published=True, line=False)
    plot = Plot("k", "title", "x", "y", (ours, paper), names=("none", "some", "all"), level=("chance", 0.5))
    svg = draw(plot, "k")
    assert svg == draw(plot, "k")
    assert ">a (paper)</text>" in svg
    assert "var(--s1)" not in svg.split("</style>")[1]
    assert ">chance</text>" in svg


def test_tables_keep_their_shape() -> None:
    made = page.table(Table("t", ("model", "ε"), (("a|b", 0.12), ("c", None), ("d", math.inf)), "section 1"))
    assert made.splitlines()[2:] == ["| model | ε |", "|---|---:|", "| a\\|b | 0.12 |", "| c | – |", "| d | ∞ |"]
    with pytest.raises(ValueError, match="not as wide"):
        Table("t", ("a", "b"), (("x",),))
    with pytest.raises(ValueError, match="equally long"):
        Series("s", (1.0,), ())


def test_a_recipe_that_was_not_run_still_has_a_page_that_says_so() -> None:
    text = page.pending(registry.recipe("crt-figure6"))
    assert "| 1 | 0.1 | 0.12 |" in text
    assert "Not run yet: `taciturn recipe run crt-figure6 --quick`" in text
    assert ".svg" not in text


def test_listing_imports_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys\nfrom taciturn.recipes import registry\n[registry.recipe(n) for n in registry.names()]\n"
        "print([m for m in ('torch', 'transformers', 'pyarrow', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert registry.names()
