"""What tells linear work from quadratic does so, whatever else the machine does."""

from __future__ import annotations

from functools import partial

from timing import in_proportion


def linear(n: int) -> int:
    return sum(i & 7 for i in range(n * 20))


def quadratic(n: int) -> int:
    return sum(i & 7 for _ in range(n) for i in range(n))


def test_ten_times_the_work_is_in_proportion_and_a_hundred_times_is_not() -> None:
    assert in_proportion(partial(linear, 5000), partial(linear, 50_000), 20)
    assert not in_proportion(partial(quadratic, 200), partial(quadratic, 2000), 20, tries=3)
