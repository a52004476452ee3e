# SPDX-License-Identifier: MIT
"""Fields and stages may be called as variables and helpers of kernels."""
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from controllers import Computation, Field, Program, Read, Stage, kgt, reference_run
from controllers.kgt.naming import LOCALS
from controllers.kgt.strategies.streaming import StreamingConfig
from controllers.kgt.strategies.table import STRATEGIES
from controllers.program.boundary import Boundary, mirror
from controllers.program.expression import Expression
from controllers.program.following import followed

EXTENT = (14, 23)
_VARIABLE = re.compile(
    r"\b(?:bool|char|double|float|int|long|size_t|uint|ulong|VALUE)\d*\s+\*?(?:restrict\s+)?"
    r"([A-Za-z]\w*)([^;(){}]*;)?"
)


def scaled(field: str, stage: str, n_axes: int = 2) -> Program:
    """The sum of the neighbours in `u`, each times the cell's value of `field`."""
    value: Expression = Read(field, (0,) * n_axes)
    for axis in range(n_axes):
        for step in (-1, 1):
            offset = tuple(step * (axis == number) for number in range(n_axes))
            value = value + Read("u", offset) * Read(field, (0,) * n_axes)
    return Program(
        "scaled", (Field("u", "float32"), Field(field, "float32")),
        (Stage(stage, {"u": value / 3}, ((-1, 1),) * n_axes),),
    )  # fmt: skip


@pytest.mark.parametrize(("field", "stage"), [("k", "first"), ("at", "value"), ("value", "last")])
def test_names_of_users_may_be_those_of_variables(field: str, stage: str) -> None:
    program, rng = scaled(field, stage), np.random.default_rng(3)
    start = {name: rng.random(EXTENT, np.float32) for name in ("u", field)}
    right = reference_run(program, start, 3, (False, False))
    with Computation(program, EXTENT, devices="cpu", places_per_controller=2) as computation:
        for name, values in start.items():
            computation[name].scatter(values)
        computation.run(3)
        assert np.array_equal(computation["u"].gather(), right["u"])


def with_all(n_axes: int) -> Program:
    """The same between mirrors, with the state before the last one."""
    program = scaled("coefficient", "s", n_axes)
    (stage,), boundary = program.stages, Boundary.of(mirror(-1), n_axes)
    updates = {"u": stage.expression - Read("old", (0,) * n_axes)}
    fields = (*program.fields, Field("old", "float32", boundary))
    fields = tuple(replace(one, boundary=boundary) for one in fields)
    return followed(replace(
        program, fields=fields, stages=(replace(stage, updates=updates),), renames={"old": "u"}
    ))  # fmt: skip


@pytest.mark.parametrize("n_axes", [1, 2, 3, 4])
@pytest.mark.parametrize("has_all", [False, True])
def test_all_variables_of_kernels_are_known(n_axes: int, has_all: bool) -> None:
    program = with_all(n_axes) if has_all else scaled("coefficient", "s", n_axes)
    (stage,) = program.stages
    for strategy in STRATEGIES.values():
        try:
            default = strategy.default(program, stage, True, True)
        except ValueError:      # not for this stage
            continue
        for config in (default, *islice(default.space(n_axes), 0, 4000, 401)):
            if isinstance(config, StreamingConfig) and not config.fits(stage):
                continue
            kernel = kgt.generate(program, stage, config)
            text = re.sub(r"//.*", "", kernel.source[kernel.source.index("__kernel") :])
            for name in set(_variables(text)) - {"u", "coefficient", "old"}:
                known = LOCALS.fullmatch(name) or _is_refused(name)
                assert known, f"{strategy.strategy}: {name}"


def _variables(text: str) -> Iterator[str]:
    """The names of all variables, those after the first one of a declaration, too."""
    for name, rest in _VARIABLE.findall(text):
        yield name
        yield from re.findall(r",\s*\*?([A-Za-z]\w*)\s*(?=[\[,;=])", rest)


def _is_refused(name: str) -> bool:
    try:
        Field(name, "float32")
    except ValueError:
        return True
    return False
