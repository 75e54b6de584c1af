"""What every test may ask for, and what it may not: chance (tests/chance.py) and the clock.

A test whose outcome depends on chance names the law of what it compares and its false-alarm rate, in its docstring and in
``@pytest.mark.chance(rate)``; every other test gets the same random numbers in each run. A wait follows what is waited for,
a limit on time is one on processor seconds or, better, on what was done.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import chance

# A machine with other work on it makes any example late; how long a whole test may take is pytest's to say. The same
# examples each time, so that a change is judged by what it does; `make explore` looks for new ones.
settings.register_profile("taciturn", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("taciturn")

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--golden", action="store_true", help="rewrite pinned help texts instead of comparing")
    parser.addoption("--os-entropy", action="store_true", help="tests draw from the operating system, marked or not")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", chance.MARK)
    config.stash[chance.Seeded.key] = seeded = chance.Seeded()
    seeded.install()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    free = chance.rate(item) or item.config.getoption("--os-entropy")
    item.config.stash[chance.Seeded.key].start(None if free else item.nodeid)
    chance.seed_streams(item.nodeid)
    yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest) -> Iterator[object]:
    """What outlives a test has numbers of its own, whichever test was first to ask for it."""
    if fixturedef.scope == "function":
        return (yield)
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"
    with request.config.stash[chance.Seeded.key].within(name):
        return (yield)


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of real corpora, small public models and reference values beside the checkout; absent in a plain clone."""
    if not SHARED.is_dir():
        pytest.skip("no ../shared folder beside this checkout: real corpora and reference values are not at hand")
    return SHARED
