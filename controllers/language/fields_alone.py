# SPDX-License-Identifier: MIT
"""Fields without steps: what array programs work on, described by no more than values by name."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy.typing as npt

from controllers.language.boundaries import boundary_of
from controllers.language.grid import Grid
from controllers.language.half_points import Locations
from controllers.language.kinds import DTypes, Kinds
from controllers.language.step import Signature, Step
from controllers.language.traced import Traced
from controllers.program.expression import Read
from controllers.program.idle import Idle
from controllers.program.program import Field, Program
from controllers.program.scalars import TIME_STEP, Parameter
from controllers.program.stage_check import Math


@dataclass(frozen=True)
class FieldsAlone:
    """The fields of a computation that has no step."""

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError(
                "a computation without steps has fields alone, and none were given; give their "
                "values by name, as Computation([], (60, 80), u=0)"
            )

    def program(
        self,
        grid: Grid,
        *,
        dtype: DTypes = None,
        boundary: object = None,
        location: Locations = None,
        fields: Mapping[str, npt.DTypeLike | None] | None = None,
        dt: float | None = None,
        math: Math = "strict",
    ) -> Traced:
        """The program of these fields, whose step computes no cell; arguments as `program_of`."""
        named = Step(lambda *_: {}, "idle", Signature(self.names, {}, ()))
        kinds = Kinds.of([named], grid.axes, dtype, location, fields or {})
        sides, halves = kinds.sides(boundary, grid), kinds.program_halves
        made = tuple(
            Field(name, dtype, boundary_of(sides[name]), halves[name])
            for name, dtype in kinds.program_dtypes.items()
        )
        n_axes, first = len(grid.axes), made[0].name
        same = {first: Read(first, (0,) * n_axes)}
        rules = {} if dt is None else {TIME_STEP: Parameter(dt)}
        stage = Idle("idle", same, ((0, 0),) * n_axes)
        program = Program("fields", made, (stage,), math, scalars=rules, grid=grid.places)
        return Traced(program, grid, kinds.dtypes, kinds.alike)
