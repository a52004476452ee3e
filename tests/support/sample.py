# SPDX-License-Identifier: MIT
"""Which cases of a test run always, and which only with `pytest --whole`; and in which order.

The sample is the same in every run: what fails for one fails for all.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")
# The files that take longest, longest first, below `tests`.  Workers begin with these, so that
# none is still at one when the others have nothing more to do.
LONGEST = (
    "controllers/engine/test_random_steps.py",
    "controllers/engine/test_random_folds.py",
    "controllers/engine/test_several_fields.py",
    "test_docs.py",
    "test_applications.py",
    "controllers/engine/test_boundaries.py",
    "controllers/engine/test_fused_stages.py",
    "controllers/run/test_bad_input.py",
    "controllers/engine/test_kills.py",
    "controllers/engine/test_stored_values.py",
    "controllers/check/test_check.py",
    "controllers/engine/test_faults.py",
    "test_example_programs.py",
    "test_examples.py",
)


def sample(values: Iterable[T], one_in: int) -> list[T | ParameterSet]:
    """`values` for `parametrize`, of which all but every `one_in`-th are marked `whole`.

    A tuple holds the values of several parameters.
    """
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.whole)
        if number % one_in
        else value
        for number, value in enumerate(values)
    ]


def cases(default: int, whole: int) -> list[int | ParameterSet]:
    """The numbers of `whole` cases, of which the first `default` always run."""
    first: list[int | ParameterSet] = [*range(default)]
    return first + [pytest.param(n, marks=pytest.mark.whole) for n in range(default, whole)]


def longest_first(files: Sequence[str]) -> list[int]:
    """The order of tests of these files, by number: those of LONGEST, then of files of many."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    counts = Counter(files)

    def key(number: int) -> tuple[int, int, str]:
        file = files[number]
        return ranks.get(file, len(ranks)), -counts[file], file

    return sorted(range(len(files)), key=key)
