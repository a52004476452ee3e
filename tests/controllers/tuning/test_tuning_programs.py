# SPDX-License-Identifier: MIT
"""`tune` takes what a computation of steps takes."""
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import controllers as ct
from controllers.kernel.winners import VARIABLE
from hitmap import SerialCommunicator

GRID = ct.Grid(y=24, x=40, boundary="periodic")


@ct.step
def react(u, v, *, dt, rate=0.2):  # type: ignore[no-untyped-def]
    return dict(u=u + dt * rate * (u[-1, 0] + u[1, 0] - 2 * u), v=v + dt * u)


@pytest.mark.whole
def test_programs_are_tuned_with_their_time_step_and_what_gives_their_dtypes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    given = {"u": np.ones(GRID.shape, np.float32), "v": np.ones(GRID.shape, np.float32), "dt": 0.5}
    (found,) = ct.tune(
        react, GRID, **given, rate=0.1, seconds=0.01, devices="cpu:0", comm=SerialCommunicator()
    )
    assert (found.stage, found.extent) == ("react", (24, 40))
    with ct.Computation(react, GRID, **given, devices="cpu:0", comm=SerialCommunicator()) as run:
        assert {field.dtype for field in run.program.fields} == {"float32"}
        digest = run.configurations()[0].origin
    assert found.winner.strategy in digest


def test_what_a_program_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="no keyword 'rat'; did you mean rate"):
        ct.tune(react, GRID, rat=1)
    with pytest.raises(ValueError, match="init: there is no field or parameter 'w'"):
        ct.tune(react, GRID, dt=0.5, init={"w": 1})
