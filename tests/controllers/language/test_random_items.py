# SPDX-License-Identifier: MIT
"""Functions of items at random: NumPy's numbers by the reference, its bits by kernels on places."""
from __future__ import annotations

import numpy as np
import pytest
from item_runs import ItemRun, opened
from random_items import RandomItems
from sample import cases

CASES = cases(2, 100)


@pytest.mark.parametrize("seed", CASES)
def test_functions_at_random_have_numpys_numbers_on_any_places(seed: int) -> None:
    case, random = RandomItems(seed), np.random.default_rng(seed)
    function, a = case.each, float(random.integers(1, 4))
    right = function(*case.arrays.values(), a=a)
    for name, values in case.by_numpy(a).items():
        assert np.array_equal(right[name], values), name
    weights = random.integers(0, 3, random.integers(1, 4)) + 0.1
    wholes = "every", "line", "lines", "beside"
    copied = [name for name in wholes if random.integers(2)]
    run = ItemRun(
        function, case.arrays, [opened("cpu", bool(seed % 3))], weights=weights.tolist(),
        copied=copied,
    )  # fmt: skip
    for name, values in run.results(a=a).items():
        expected = np.asarray(right[name])
        assert values.dtype == expected.dtype and np.array_equal(values, expected), name
