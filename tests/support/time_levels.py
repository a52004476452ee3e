# SPDX-License-Identifier: MIT
"""A program that keeps the state before the last one by a rename, and how its runs are checked."""
from __future__ import annotations

from typing import Any

import numpy as np

from controllers import Computation, reference_run
from controllers.plan import Plan
from controllers.program.boundary import Boundary
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage

NAMES = "u", "before"


def wave(dtype: str = "float32", n_axes: int = 2, rules: Any = "keep") -> Program:
    """A wave's next state from this one and the one before."""
    here = (0,) * n_axes
    ends = [tuple(side * (axis == at) for axis in range(n_axes))
            for at in range(n_axes) for side in (-1, 1)]  # fmt: skip
    first, *others = (Read("u", at) for at in ends)
    u, around = Read("u", here), sum(others, first)
    value = 2 * u - Read("before", here) + 0.25 * (around - 2 * n_axes * u)
    fields = tuple(Field(name, dtype, Boundary.of(rules, n_axes)) for name in NAMES)
    stage = Stage("wave", {"u": value}, ((-1, 1),) * n_axes)
    return Program("wave", fields, (stage,), renames={"before": "u"})


def check_run(
    program: Program, shape: tuple[int, ...], counts: tuple[int, ...], **options: Any
) -> Plan:
    """Both fields have the reference's bits after each of some runs, one after another."""
    rng, done = np.random.default_rng(0), 0
    start = {one.name: rng.random(shape).astype(one.dtype) for one in program.fields}
    with Computation(program, shape, **options) as run:
        for name, cells in start.items():
            run[name].set(cells)
        for count in counts:
            run.run(count)
            done += count
            right = reference_run(program, start, done, program.periodic)
            for name in start:
                found = np.asarray(run[name].gather())
                assert np.array_equal(found, right[name]), f"{name} after {done} steps"
        return run.plan
