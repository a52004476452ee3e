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
    "controllers/engine/test_passes.py",
    "controllers/engine/test_random_steps.py",
    "controllers/executor/test_folding.py",
    "controllers/kgt/test_streaming.py",
    "controllers/kgt/test_followed.py",
    "controllers/integrity/test_digest_launches.py",
    "controllers/checkpoint/test_damage.py",
    "controllers/engine/test_random_folds.py",
    "controllers/run/test_chunk_renames.py",
    "test_docs.py",
    "controllers/check/test_check_widths.py",
    "controllers/engine/test_rounds.py",
    "controllers/space/test_space_streams.py",
    "controllers/engine/test_boundaries.py",
    "test_applications.py",
    "controllers/engine/test_several_fields.py",
    "controllers/engine/test_fused_stages.py",
    "controllers/run/test_chunks_on_ranks.py",
    "controllers/engine/test_random_stencils.py",
    "controllers/array/test_array_programs.py",
    "controllers/run/test_chunk_programs.py",
    "controllers/outputs/test_disturbed.py",
    "controllers/engine/test_stored_values.py",
    "controllers/check/test_check.py",
    "controllers/engine/test_time_levels.py",
    "controllers/engine/test_kills.py",
    "controllers/language/test_random_items.py",
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
