# SPDX-License-Identifier: MIT
"""What runs by default, and in how many processes."""
from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from sample import LONGEST, cases, longest_first, sample


def marked(values: list[object]) -> list[bool]:
    return [bool(getattr(value, "marks", ())) for value in values]


def test_of_a_sample_one_in_so_many_runs_always() -> None:
    values = sample("abcdefg", 3)
    assert marked(values) == [False, True, True, False, True, True, False]
    assert values[3] == "d" and values[4] == pytest.param("e", marks=pytest.mark.whole)


def test_a_tuple_of_a_sample_holds_several_values() -> None:
    assert sample([(1, 2), (3, 4)], 2)[1] == pytest.param(3, 4, marks=pytest.mark.whole)


def test_the_first_cases_run_always() -> None:
    assert marked(cases(2, 5)) == [False, False, True, True, True]


@pytest.mark.whole
def test_what_is_marked_runs_with_whole_only(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getoption("whole")


def test_files_that_take_long_come_first_then_those_of_many_tests() -> None:
    found = longest_first({"a.py": 1, LONGEST[1]: 2, "b.py": 2, LONGEST[0]: 1, "c.py": 1})
    assert found == [LONGEST[0], LONGEST[1], "b.py", "a.py", "c.py"]
    assert all((Path(__file__).parent / name).is_file() for name in LONGEST)


def test_workers_take_files_in_the_order_of_the_tests(pytestconfig: pytest.Config) -> None:
    assert not pytestconfig.option.loadscopereorder


@pytest.mark.parametrize(
    ("arguments", "has_workers"),
    [
        ([], True),
        (["tests"], True),
        ([__file__], False),
        ([f"{__file__}::test_one", f"{__file__}::test_another"], False),
        ([__file__, "test_docs.py"], True),
    ],
)
def test_files_are_divided_among_workers(
    arguments: list[str], has_workers: bool, pytestconfig: pytest.Config
) -> None:
    if not hasattr(pytestconfig.hook, "pytest_xdist_auto_num_workers"):
        pytest.skip("pytest-xdist is not loaded")
    config = SimpleNamespace(args=arguments)
    n_workers = pytestconfig.hook.pytest_xdist_auto_num_workers(config=config)
    n_cores = len(os.sched_getaffinity(0))
    assert n_workers == (min(n_cores + 1, 8) if has_workers and n_cores > 1 else 0)
