# SPDX-License-Identifier: MIT
"""Which cases of a test run always, and which only with `pytest --whole`.

The sample is the same in every run: what fails for one fails for all.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")


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
