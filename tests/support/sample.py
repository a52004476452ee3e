# SPDX-License-Identifier: MIT
"""Which cases of a test run always, and which only with `pytest --whole`; and in which order.

The sample is the same in every run: what fails for one fails for all.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

T = TypeVar("T")
# The files that take longest, longest first, below `tests`.  Workers begin with these, so that
# none is still at one when the others have nothing more to do.
LONGEST = (
    "controllers/engine/test_random_steps.py",
    "controllers/engine/test_random_folds.py",
    "controllers/engine/test_rounds.py",
    "controllers/kgt/test_streaming.py",
    "controllers/executor/test_folding.py",
    "controllers/engine/test_several_fields.py",
    "test_docs.py",
    "test_applications.py",
    "controllers/engine/test_boundaries.py",
    "controllers/engine/test_fused_stages.py",
    "controllers/run/test_bad_input.py",
    "controllers/engine/test_kills.py",
    "controllers/engine/test_stored_values.py",
    "controllers/check/test_check.py",
    "test_stream_examples.py",
    "controllers/checkpoint/test_damage.py",
    "controllers/run/test_keeping.py",
    "controllers/run/test_pass_search.py",
    "controllers/picture/test_seen.py",
    "controllers/calls/test_disagreements.py",
    "controllers/tuning/test_settling.py",
    "controllers/run/test_listening.py",
    "controllers/language/test_each_ranks.py",
    "controllers/outputs/test_zarr_store.py",
    "controllers/bench/test_stream_bench.py",
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


def longest_first(counts: Mapping[str, int]) -> list[str]:
    """Files, of which it is given how many tests each has: those of LONGEST, then those of many."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    return sorted(counts, key=lambda file: (ranks.get(file, len(ranks)), -counts[file], file))
