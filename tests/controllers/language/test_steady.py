# SPDX-License-Identifier: MIT
"""Results that come to rest end runs and repeats."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import controllers as ct
from hitmap import SerialCommunicator

GRID = ct.Grid(x=8, boundary="periodic")


@ct.step
def fade(u):
    new = 0.5 * u + 1
    return dict(u=new, total=ct.sum(new))       # 16 in the end


def asked(holds: Any, *values: float, **more: int) -> list[bool]:
    return [
        holds(SimpleNamespace(step=n, total=value, **more)) for n, value in enumerate(values, 1)
    ]


def test_it_holds_where_a_result_changes_little() -> None:
    holds = ct.steady("total", 0.125)
    assert asked(holds, 8, 12, 14, 16, 16) == [False, False, False, True, True]
    assert asked(holds, 16, np.nan, np.nan, 4, 4) == [False, False, False, False, True]
    assert asked(ct.steady("total", 0), 0, -0.0, 1e-300, -1e-300) == [False, True, False, False]


def test_a_run_ends_as_it_comes_to_rest() -> None:
    options: dict[str, Any] = dict(devices="reference", comm=SerialCommunicator(), u=0)
    with ct.Computation(fade, GRID, **options) as run:
        rest = ct.steady("total", 1e-3)
        found = run.run(until=rest, check_every=4, at_most=100)
        totals = [16 * (1 - 0.5**n) for n in range(101)]
        right = next(n for n in range(8, 99, 4) if totals[n] - totals[n - 4] <= 1e-3 * totals[n])
        assert found is not None and (found.step, found.total) == (right, totals[right])
        run.scatter(np.zeros(8))
        assert run.run(until=rest, check_every=4, at_most=100).step == right


def test_each_repeat_comes_to_rest_by_itself() -> None:
    kick = ct.step(lambda u: dict(u=u * 0))
    solve = ct.repeat(fade, until=ct.steady("total", 1e-3), check_every=2, at_most=50)
    options: dict[str, Any] = dict(devices="reference", comm=SerialCommunicator(), u=0)
    with ct.Computation([kick, solve], GRID, **options) as run:
        counts = []
        for _ in range(3):
            run.run(1)
            counts.append(run.repeats["fade"])
        assert counts == [12, 12, 12]


@pytest.mark.parametrize(
    "arguments, message",
    [((0.5, 1), "steady: result.* 0.5; write steady"), (("total", -1), "not negative, got -1"),
     (("total", np.inf), "finite")],
)  # fmt: skip
def test_what_is_no_rest_is_refused(arguments: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ct.steady(*arguments)
