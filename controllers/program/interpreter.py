# SPDX-License-Identifier: MIT
"""Schedules in NumPy, on whole arrays: what a tree of sweeps means, repeats that ask data included.

The sweeps that follow one another in a sequence are a step: their versions count from its
beginning.  A repeat begins with what there is then, and what follows it with what it leaves.
"""
from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy.typing as npt

from controllers.program.expression import Read
from controllers.program.reference import neighbours, values_of
from controllers.program.schedule import Repeat, Schedule
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep, Version

Arrays = dict[str, npt.NDArray[Any]]


def run_schedule(
    schedule: Schedule,
    arrays: Mapping[str, npt.NDArray[Any]],
    periodic: tuple[bool, ...],
    around: Surroundings | None = None,
) -> Arrays:
    """New arrays: the fields `arrays`, over the whole domain, after `schedule`.

    `around` is what expressions are given that use scalars, indices or coordinates.
    ValueError for sweeps of several time steps.

    >>> from controllers.program.stage import Stage
    >>> from hitmap import Shape
    >>> import numpy as np
    >>> halve = Stage("halve", {"u": Read("u", (0,)) / 2}, ((0, 0),))
    >>> small = Repeat(Sweep.of(halve, Shape((0,), (2,))), 9, lambda now: now["u"].max() < 1)
    >>> run_schedule(small, {"u": np.array([1.0, 5.0])}, (False,))["u"].tolist()
    [0.125, 0.625]
    """
    copies = {name: array.copy() for name, array in arrays.items()}
    return _after(schedule, copies, periodic, around)


def _after(
    schedule: Schedule, now: Arrays, periodic: tuple[bool, ...], around: Surroundings | None
) -> Arrays:
    if isinstance(schedule, Repeat):
        for _ in range(schedule.at_most):
            now = _after(schedule.body, now, periodic, around)
            if schedule.until is not None and schedule.until(now):
                break
        return now
    known: dict[Version, npt.NDArray[Any]] = {}
    for part in (schedule,) if isinstance(schedule, Sweep) else schedule.parts:
        if isinstance(part, Sweep):
            known = known or {Version(name, 0): array for name, array in now.items()}
            made = _swept(part, known, periodic, around)
            known |= made
            now = now | {version.field: array for version, array in made.items()}
        else:
            now, known = _after(part, now, periodic, around), {}
    return now


def _swept(
    sweep: Sweep,
    known: Mapping[Version, npt.NDArray[Any]],
    periodic: tuple[bool, ...],
    around: Surroundings | None,
) -> dict[Version, npt.NDArray[Any]]:
    """The versions that `sweep` makes."""
    if sweep.count > 1:
        raise ValueError(
            f"sweep {sweep.name!r} computes {sweep.count} time steps; schedules are interpreted "
            f"one step at a time, lower the program for 1"
        )
    used = {use.version.field: known[use.version] for use in sweep.uses}

    def read(node: Read) -> npt.NDArray[Any]:
        return neighbours(used[node.field], sweep.cells, periodic, node)

    made = {}
    for version, expression in ((update.version, update.expression) for update in sweep.updates):
        array = known[Version(version.field, version.number - 1)].copy()
        dtype = str(array.dtype)
        given = None
        if around is not None:
            given = partial(around.value, box=sweep.cells, dtype=dtype)
        values = values_of(expression, read, dtype, given)
        array[sweep.cells.slices((0,) * array.ndim)] = values
        made[version] = array
    return made
