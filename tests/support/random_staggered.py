# SPDX-License-Identifier: MIT
"""Random programs of fields at cells and at half points, as users write them.

A case follows from its number alone; in a third of them all axes are rings.  No value grows: each
update is a mean of what lies around, times numbers below 1.
"""
from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import controllers as ct
from controllers.language.traced import program_of
from controllers.program.program import Program

AXES = ("z", "y", "x")
NAMES = ("p", "v", "w", "q")
MAX_CELLS = {1: 30, 2: 11, 3: 6}


@dataclass(frozen=True)
class StaggeredCase:
    """A program with what it begins with, and how many steps it makes."""

    steps: list[ct.Step]
    grid: ct.Grid
    location: dict[str, tuple[str, ...]]
    boundary: Any
    arrays: dict[str, npt.NDArray[Any]]
    n_steps: int

    @property
    def program(self) -> Program:
        return program_of(
            self.steps, self.grid, boundary=self.boundary, location=self.location, dt=0.1,
            fields={name: array.dtype for name, array in self.arrays.items()},
        ).program  # fmt: skip

    @property
    def options(self) -> dict[str, Any]:
        """Keywords of a computation."""
        return {"boundary": self.boundary, "location": self.location, "dt": 0.1, **self.arrays}


def random_staggered(number: int) -> StaggeredCase:
    """Case `number`, the same every time."""
    rng = random.Random(number)
    axes = AXES[-rng.randint(1, 3) :]
    most = MAX_CELLS[len(axes)]
    cells: dict[str, Any] = {axis: rng.randint(3, most) for axis in axes}
    grid = ct.Grid(**cells, lower=-1, upper=1)
    names = NAMES[: rng.randint(2, 4)]
    location = {name: tuple(a for a in axes if rng.random() < 0.5) for name in names}
    rings = {axis: rng.random() < 0.25 or number % 3 == 2 for axis in axes}
    boundary = {
        name: {a: "periodic" if rings[a] else (_rule(rng), _rule(rng)) for a in axes}
        for name in names
    }
    steps = [_step(rng, names, location, axes) for _ in range(rng.randint(1, 3))]
    values = np.random.default_rng(number)
    dtype = rng.choice(["float32", "float64"])
    arrays = {
        name: values.uniform(-1, 1, [
            n + (axis in location[name] and not rings[axis]) for axis, n in zip(axes, grid.shape)
        ]).astype(dtype)
        for name in names
    }  # fmt: skip
    return StaggeredCase(steps, grid, location, boundary, arrays, rng.randint(1, 6))


def _rule(rng: random.Random) -> Any:
    return rng.choice([
        ct.mirror(), ct.mirror(), ct.mirror(-1), ct.mirror(-1), ct.keep(), ct.fixed(0.5),
        ct.fixed(lambda x, t: x * np.sin(t) / 2), ct.extrapolate(0),
        ct.custom(lambda inside, distance: inside(distance) / 2),
    ])  # fmt: skip


def _step(
    rng: random.Random,
    names: tuple[str, ...],
    location: Mapping[str, tuple[str, ...]],
    axes: tuple[str, ...],
) -> ct.Step:
    """A step that updates some of the fields, of what it finds of all of them around."""
    targets = rng.sample(names, rng.randint(1, len(names)))
    drawn = {
        target: [
            (rng.choice(names), tuple(rng.randint(-1, 1) for _ in axes))
            for _ in range(rng.randint(1, 4))
        ]
        for target in targets
    }
    by_place, keeps = rng.random() < 0.4, rng.random() < 0.4

    def function(fields: Mapping[str, Any], x: Any) -> dict[str, Any]:
        made = {}
        for target, terms in drawn.items():
            total = 0.0 * fields[target] + (x / 8 if by_place else 0)
            for name, offset in terms:
                term = near(fields[name], location[name], location[target], offset)
                if keeps:       # where the target lies, and read at two of its neighbours
                    kept = ct.stored(term * abs(term))
                    term = (kept.at("x", 1) + kept) / 2
                total = total + term
            made[target] = total / (len(terms) + 1)
        return made

    def near(field: Any, own: tuple[str, ...], wanted: tuple[str, ...], offset: Any) -> Any:
        for axis, step in zip(axes, offset):
            unlike = (axis in own) != (axis in wanted)
            field = field.at(axis, step + 0.5 if unlike else step)
        return field

    over = rng.choice([None, None, None, ct.parity(1), {"x": slice(1, -1)}])
    return ct.step(_of_fields(names, function), over=over)


def _of_fields(
    names: tuple[str, ...], function: Callable[[Mapping[str, Any], Any], Any]
) -> Callable[..., Any]:
    """A step's function with these positional parameters."""
    scope: dict[str, Any] = {"function": function}
    inside = ", ".join(f"{name}={name}" for name in names)
    text = f"def flow({', '.join(names)}, *, x): return function(dict({inside}), x)"
    exec(text, scope)   # the names of parameters are the fields
    made: Callable[..., Any] = scope["flow"]
    return made
