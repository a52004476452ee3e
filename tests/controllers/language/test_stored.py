# SPDX-License-Identifier: MIT
"""What steps mark as stored: the same values, kept by stages of their own or not."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.language.traced import program_of
from controllers.program.storing import with_temporaries
from controllers.run.dry_run import dry_run

Gas = np.dtype([("rho", "f8"), ("m", "f4")])
GRID = ct.Grid(y=9, x=8, lower=0, upper=1, boundary="periodic")


@ct.step
def flow(q: Any, *, rate: float = 0.1, t: ct.Time, y: Any) -> Any:
    new = q
    for axis in GRID.axes:
        flux = ct.stored(q * q.at(axis, 1) * rate + y * np.sin(t))
        new = new - flux + flux.at(axis, -1)
    return dict(q=new)


def test_structs_are_stored_component_by_component() -> None:
    made = with_temporaries(program_of(flow, GRID, dtype=Gas).program, "always")
    assert [(field.name, field.dtype) for field in made.temporaries] == [
        ("stored_1", "float64"), ("stored_2", "float32"), ("stored_3", "float64"),
        ("stored_4", "float32"),
    ]  # fmt: skip
    assert len(made.stages) == 3
    assert [field.name for field in made.fields] == ["q_rho", "q_m"]


def test_a_computation_shows_its_own_fields_alone_and_has_the_bits_of_the_reference() -> None:
    start = np.random.default_rng(1).random((9, 8))
    with ct.Computation(
        flow, GRID, dt=0.1, q=start, devices="reference", stored="always", places_per_controller=3
    ) as run:
        run.run(2, rate=0.2)
        assert run.fields == ("q",) and "stored_1" not in dir(run)
        after = np.asarray(run.q)
        right = ct.reference_run(run.program, start, 2, scalars={"rate": 0.2}, dt=0.1)
    assert np.array_equal(after, right)


def test_what_is_no_value_of_fields_is_not_stored() -> None:
    @ct.step
    def step(u: Any, *, x: Any, dt: Any) -> Any:
        assert ct.stored(u) is u and ct.stored(x * dt).node is (x * dt).node
        with pytest.raises(TypeError, match="np.where"):
            ct.stored(u > 0)
        with pytest.raises(TypeError, match="leave numbers as they are"):
            ct.stored(3)    # type: ignore[type-var]
        return dict(u=2 * u)

    program_of(step, GRID)


def test_explain_says_what_was_kept_and_why() -> None:
    options = {"dtype": "float64", "dt": 0.1}
    kept = dry_run(flow, GRID, 2, **options, execution=ct.Execution(stored="always"))
    text = str(kept)
    for line in (
        "  stage flow_stored_1",
        "    computes what others read of it, 0..0 x -1..0 around the cells of each place",
        "  stored_1: 1 buffer, for values within a step",
    ):
        assert line in text.splitlines(), text
    assert "  flow: a stored value is kept in stored_1: that saves " in text
    assert "messages of field stored_1" not in text
    text = str(dry_run(flow, GRID, 2, **options))
    assert "  flow: a stored value is computed again where it is read: storing would save " in text
