# SPDX-License-Identifier: MIT
"""Steps become programs: each is called once with values that stand for fields and scalars.

What a step returns says what a stage writes; a field that it returns under another name is renamed.
A field of structs is one field per component, called `q_rho`.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.language.boundaries import RING, Sides, boundary_of, check_reads, shared
from controllers.language.called import Called, results_of
from controllers.language.grid import Grid
from controllers.language.half_points import Half, Locations
from controllers.language.kinds import DTypes, Kinds, by_field
from controllers.language.location import line_of, located
from controllers.language.neighbour import check_count
from controllers.language.reduced import everywhere
from controllers.language.returned import Renames, changes, checked, numbers
from controllers.language.staging import Staging
from controllers.language.step import Method, Repeated, Step, Steps, steps_of
from controllers.language.value import Value
from controllers.program.expression import Coordinate, Expression, Read, Scalar
from controllers.program.identifier import MAX_LENGTH
from controllers.program.program import Field, Math, Program, Stage
from controllers.program.scalars import TIME, TIME_STEP, Parameter, ScalarRule


@dataclass(frozen=True)
class Traced:
    """A program made of steps, and what its user must know of it.

    dtypes: of the fields as users name them; structured ones stand for several of the program's.
    alike: temporary fields, which begin with the values of others; all others are initialised.
    """

    program: Program
    grid: Grid
    dtypes: Mapping[str, np.dtype[Any]]
    alike: Mapping[str, str]

    def parts(self, field: str) -> dict[str, str]:
        """The fields of the program that one field of structs is, by component; else {"": field}.
        """
        names = self.dtypes[field].names
        return {"": field} if names is None else {name: f"{field}_{name}" for name in names}


def program_of(
    steps: Steps,
    grid: Grid,
    *,
    dtype: DTypes = None,
    boundary: object = None,
    location: Locations = None,
    fields: Mapping[str, npt.DTypeLike | None] | None = None,
    dt: float | None = None,
    math: Math = "strict",
) -> Traced:
    """The program that `steps`, one or several in a row, are on a grid.

    dtype: of all fields, or by field; by default that of the initial values, else float64.
    boundary: what lies beyond the grid, for all fields, by field, by axis; by default the grid's.
    location: the axes along whose half points fields lie, by field; the others lie at cells.
    fields: those that have initial values, with their dtypes where they are known.
    dt: the time step.
    """
    every = _expanded(steps_of(steps), grid, dtype, location, fields or {})
    kinds = Kinds.of([step for step, _ in every], grid.axes, dtype, location, fields or {})
    trace = _Trace(grid, kinds, boundary, repeats=any(within for _, within in every))
    for step, within in every:
        trace.add(step, within)
    return Traced(trace.program(dt, math), grid, kinds.dtypes, kinds.alike)


class _Trace:
    """What has been traced so far."""

    def __init__(
        self, grid: Grid, kinds: Kinds, boundary: object = None, *, repeats: bool = False
    ) -> None:
        """`repeats`: some steps are repeated; then a field that gets all of another is a copy."""
        self._grid, self._kinds = grid, kinds
        self._boundary, self._repeats = boundary, repeats
        self._fields = kinds.values(grid.places)
        self._stages: list[tuple[Stage, Step]] = []
        self._called: list[Called] = []
        self._renames = Renames()
        self._copies: dict[str, str] = {}
        self._scalars: dict[str, float | None] = {}
        self._names: list[str] = []
        self._first = ""    # step, and where it is

    @cached_property
    def _sides(self) -> dict[str, Sides]:
        """The rules of each field of the program, as far as they are said."""
        return self._kinds.sides(self._boundary, self._grid)

    def returned(self, step: Step) -> Mapping[str, Any]:
        """Call a step: the new values by the names of fields."""
        given = (self._fields[name] for name in step.signature.fields)
        with located(f"step {step.name!r}", step.function):
            returned = step.function(*given, **self._keywords(step))
        return checked(returned, self._kinds, _what(step))

    def add(self, step: Step, within: Repeated | None = None) -> None:
        """Call a step, which something may repeat, and write down what it does."""
        what = _what(step)
        self._first = self._first or what
        self._take_scalars(step, what)
        returned = self.returned(step)
        over = None if step.over is None else cache(partial(self._over, step))
        updates, renames = changes(returned, self._kinds, self._grid, over, what)
        found = numbers(returned, self._kinds, self._grid.axes, what)
        copies: dict[str, str] = {}
        if self._repeats:       # buffers belong to fields from one part of the step to another
            copies, renames = renames, {}
            here = (0,) * len(self._grid.axes)
            updates |= {new: Read(old, here) for new, old in copies.items()}
        self._copies |= copies
        called = Called(step, updates, found, over, within, (*copies,))
        nodes = called.nodes
        with located(f"step {step.name!r}", step.function):
            check_count(len(nodes))
        reads = [node for node in nodes if isinstance(node, Read)]
        self._renames.add(renames, updates, reads, what)
        self._names.append(step.name)
        if updates or found:
            self._called.append(called)

    def _over(self, step: Step, half: Half) -> Expression | None:
        """The condition of the cells that a step computes of a field that lies there."""
        assert step.over is not None, "which all cells have"
        grid, sides = self._grid, self._sides.values()
        rings = [any(one[axis] == RING for one in sides) for axis in range(len(half))]
        points = [n + (on and not ring) for n, on, ring in zip(grid.shape, half, rings)]
        with located(f"step {step.name!r}", step.function):
            found = step.over.condition(grid, self._fields | self._coordinates(), half, points)
            return None if found is None else everywhere(found)

    def program(self, dt: float | None, math: Math) -> Program:
        """All of it."""
        self._renames.check()
        if not self._called:
            raise ValueError(
                f"{self._first}: the steps {', '.join(self._names)} compute nothing new; return "
                f"new values by names, as dict(u=...)"
            )
        renames = self._renames.all
        halves = self._kinds.program_halves
        sides = shared(self._sides, renames | self._copies)
        fields = tuple(
            Field(name, dtype, boundary_of(sides[name]), halves[name])
            for name, dtype in self._kinds.program_dtypes.items()
        )
        results = results_of(self._called, self._scalars, dt)
        taken = {*halves, *self._scalars, *results, *self._grid.axes, TIME, TIME_STEP}
        staging = Staging(fields, self._grid.shape, taken)
        for called in self._called:
            with located(f"step {called.step.name!r}", called.step.function):
                staging.add(called)
        self._stages = staging.stages
        for stage, step in self._stages:
            check_reads(stage, sides, halves, self._grid, _what(step))
        given = (one for one in self._scalars.items() if one[0] not in results)
        rules: dict[str, ScalarRule] = {name: Parameter(default) for name, default in given}
        rules |= staging.rules
        if dt is not None:
            rules[TIME_STEP] = Parameter(dt)
        name = "_".join(dict.fromkeys(self._names))[:MAX_LENGTH].strip("_")
        stages = tuple(stage for stage, _ in self._stages)
        with self._located():
            return Program(
                name, fields, stages, math, renames, rules, self._grid.places, results=results,
                repeats=tuple(staging.repeats),
            )  # fmt: skip

    @contextmanager
    def _located(self) -> Iterator[None]:
        """What is wrong with a stage is said of its step, too."""
        try:
            yield
        except ValueError as error:
            for stage, step in self._stages:
                if f"stage {stage.name!r}" in str(error):
                    raise ValueError(f"{line_of(step.function)}: {error}") from error
            raise

    def _take_scalars(self, step: Step, what: str) -> None:
        for name, default in step.signature.scalars.items():
            if name in self._grid.axes:
                if default is not None:
                    raise ValueError(
                        f"{what}: {name!r} is an axis of the grid, so the keyword-only {name!r} "
                        f"is its coordinate; leave the default out, or rename it"
                    )
            elif name in self._fields:
                raise ValueError(f"{what}: {name!r} is a scalar here and a field elsewhere")
            elif name != TIME_STEP or default is not None:
                if self._scalars.setdefault(name, default) != default:
                    raise ValueError(
                        f"{what}: the scalar {name!r} has the default {default} here and "
                        f"{self._scalars[name]} in another step; give both the same, or rename one"
                    )

    def _keywords(self, step: Step) -> dict[str, Value]:
        coordinates, places = self._coordinates(), self._grid.places
        times = {name: Value(Scalar(TIME), places) for name in step.signature.times}
        scalars = (
            (name, coordinates[name] if name in coordinates else Value(Scalar(name), places))
            for name in step.signature.scalars
        )
        return times | dict(scalars)

    def _coordinates(self) -> dict[str, Value]:
        places = self._grid.places
        return {
            name: Value(Coordinate(axis), places) for axis, name in enumerate(self._grid.axes)
        }


def _expanded(
    steps: Sequence[Step | Method | Repeated],
    grid: Grid,
    dtype: DTypes,
    location: Locations,
    fields: Mapping[str, npt.DTypeLike | None],
) -> list[tuple[Step, Repeated | None]]:
    """The steps, in place of methods those that they are for the fields that their rates give.

    Each with what repeats it.
    """
    found: list[tuple[Step, Repeated | None]] = []
    for part in steps:
        if isinstance(part, Step):
            found.append((part, None))
            continue
        if isinstance(part, Repeated):
            inner = _expanded(part.steps, grid, dtype, location, fields)
            again = replace(part)   # listed twice, it is two repeats
            found += [(step, again) for step, _ in inner]
            continue
        names = part.rate.signature.fields
        each = by_field(dtype)
        known = {**fields, **(each or {})}
        of_rate = {name: known[name] for name in names if name in known}
        whole = dtype if each is None else None
        lie = location
        if isinstance(location, Mapping):
            lie = {name: location[name] for name in names if name in location}
        kinds = Kinds.of([part.rate], grid.axes, whole, lie, of_rate)
        changed = [*_Trace(grid, kinds).returned(part.rate)]
        if not {*changed} <= kinds.dtypes.keys():
            other = next(name for name in changed if name not in kinds.dtypes)
            raise ValueError(
                f"{_what(part.rate)} is a rate and returns {other!r}, a result; return it in a "
                f"step of its own, next to the method"
            )
        found += [(step, None) for step in part.steps(changed)]
    return found


def _what(step: Step) -> str:
    """The step, and where it is."""
    return f"{line_of(step.function)}, step {step.name!r}"
