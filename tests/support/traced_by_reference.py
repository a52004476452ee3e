# SPDX-License-Identifier: MIT
"""What the reference gives for traced programs, beside what a test computed by hand."""
from __future__ import annotations

from typing import Any

import numpy as np

import controllers as ct
from controllers.language.traced import Traced

Arrays = dict[str, Any]


def random(shape: Any, *names: str, dtype: str = "float64", seed: int = 1) -> Arrays:
    rng = np.random.default_rng(seed)
    return {name: rng.random(shape).astype(dtype) for name in names}


def run(traced: Traced, start: Arrays, n_steps: int, **scalars: float) -> Arrays:
    """What the reference gives for fields as users name them, structs by component."""
    program = traced.program
    arrays = {}
    for name in traced.dtypes:
        values = start[traced.alike.get(name, name)]
        for component, field in traced.parts(name).items():
            arrays[field] = np.ascontiguousarray(values[component] if component else values)
    return ct.reference_run(program, arrays, n_steps, program.periodic, scalars)


def equal(got: Arrays, expected: Arrays) -> None:
    for name, values in expected.items():
        assert got[name].dtype == values.dtype
        np.testing.assert_array_equal(got[name], values, err_msg=name)
