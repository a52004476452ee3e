# SPDX-License-Identifier: MIT
"""The random programs are of all kinds, and the reference computes what they mean."""
from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from cell_by_cell import cell_by_cell
from random_programs import MAX_STEPS, random_program
from sample import cases

from controllers.program.program import DTYPES

KINDS = {
    *(f"{n} {what}" for n in (1, 2, 3) for what in ("fields", "stages", "axes")),
    *(f"{n} steps" for n in range(MAX_STEPS + 1)),
    *DTYPES,
    "unlike dtypes",
    "periodic: False",
    "periodic: True",
    "unlike boundaries",
    "too few rows for 5 places",
    "a reach beyond the field",
    "a stage without cells",
    "a field that is only read, at neighbours",
    "a field that is never read at neighbours",
    "old and new readers",
    "old readers, a writer that follows, and new readers",
    "two writes in a step",
    "two writes over unlike offsets",
    "a stage of 2 updates",
    "a stage of 3 updates",
    "updates that share a subexpression",
    "a stage that reads only here",
    "a stage that reads nothing",
    "a renamed field",
    "two earlier levels",
    "swapped fields",
}


def test_the_first_hundred_are_as_various_as_they_should_be() -> None:
    found = Counter(kind for number in range(100) for kind in random_program(number).kinds)
    assert set(found) == KINDS
    assert min(found.values()) >= 3, found.most_common()[-5:]


def test_a_case_follows_from_its_number() -> None:
    one, again = random_program(7), random_program.__wrapped__(7)
    assert one.formulas == again.formulas
    assert (one.periodic, one.n_steps) == (again.periodic, again.n_steps)
    assert all(np.array_equal(one.arrays[name], again.arrays[name]) for name in again.arrays)


@pytest.mark.parametrize("number", cases(12, 100))
def test_the_reference_computes_what_one_cell_after_another_gives(number: int) -> None:
    case = random_program(number)
    slow = cell_by_cell(case)
    assert list(case.expected) == list(slow)
    for name, array in case.expected.items():
        assert array.dtype == case.program.dtypes[name]
        assert array.tobytes() == slow[name].tobytes(), name
        assert np.isfinite(array).all(), name
