# SPDX-License-Identifier: MIT
"""Schedules in NumPy, on whole arrays: what a tree of sweeps means, repeats that ask data included.

The sweeps that follow one another in a sequence are a step: their versions count from its
beginning.  A repeat begins with what there is then, and what follows it with what it leaves.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from controllers.program.boundary import KEPT
from controllers.program.dtypes import applied, given_dtype
from controllers.program.expression import Read
from controllers.program.fold_values import operands, results_of
from controllers.program.offsets import Offsets
from controllers.program.reference_step import extended, neighbours
from controllers.program.scalars import ScalarRules
from controllers.program.schedule import Repeat, Schedule
from controllers.program.stage import Boundaries
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep, Version
from controllers.program.values import values_of

Arrays = dict[str, npt.NDArray[Any]]


class Known(NamedTuple):
    """A version: over the domain, or a temporary one, whose array has so many cells before it."""

    array: npt.NDArray[Any]
    first: tuple[int, ...] | None = None


class Ends(NamedTuple):
    """What lies outside the domain, and what expressions are given, by which rules of scalars."""

    periodic: tuple[bool, ...]
    boundaries: Boundaries
    around: Surroundings | None
    rules: ScalarRules | None


def run_schedule(
    schedule: Schedule,
    arrays: Mapping[str, npt.NDArray[Any]],
    periodic: tuple[bool, ...],
    boundaries: Boundaries | None = None,
    around: Surroundings | None = None,
    rules: ScalarRules | None = None,
) -> Arrays:
    """New arrays: the fields `arrays`, over the whole domain, after `schedule`.

    `around` is what expressions are given that use scalars, indices or coordinates; `rules` say
    what becomes of these when sweeps fold.
    ValueError for sweeps of several time steps.

    >>> from controllers.program.stage import Stage
    >>> from hitmap import Shape
    >>> import numpy as np
    >>> halve = Stage("halve", {"u": Read("u", (0,)) / 2}, ((0, 0),))
    >>> small = Repeat(Sweep.of(halve, Shape((0,), (2,))), 9, lambda now: now["u"].max() < 1)
    >>> run_schedule(small, {"u": np.array([1.0, 5.0])}, (False,))["u"].tolist()
    [0.125, 0.625]
    """
    if around is not None:      # folds change it
        around = Surroundings(around.positions, around.numbers)
    ends = Ends(periodic, boundaries or {}, around, rules)
    return _after(schedule, {name: array.copy() for name, array in arrays.items()}, ends)


def _after(schedule: Schedule, now: Arrays, ends: Ends) -> Arrays:
    if isinstance(schedule, Repeat):
        for _ in range(schedule.at_most):
            now = _after(schedule.body, now, ends)
            if schedule.until is not None and schedule.until(now):
                break
        return now
    known: dict[Version, Known] = {}
    for part in (schedule,) if isinstance(schedule, Sweep) else schedule.parts:
        if isinstance(part, Sweep):
            known = known or {Version(name, 0): Known(array) for name, array in now.items()}
            made = _swept(part, known, ends)
            known |= made
            if not part.is_temporary:
                now = now | {version.field: one.array for version, one in made.items()}
        else:
            now, known = _after(part, now, ends), {}
    return now


def _swept(
    sweep: Sweep, known: Mapping[Version, Known], ends: Ends
) -> dict[Version, Known]:
    """The versions that `sweep` makes."""
    if sweep.count > 1:
        raise ValueError(
            f"sweep {sweep.name!r} computes {sweep.count} time steps; schedules are interpreted "
            f"one step at a time, lower the program for 1"
        )
    used = _used(sweep, known, ends)

    def read(node: Read) -> npt.NDArray[Any]:
        array, first = used[node.field]
        return neighbours(array, sweep.cells.shift(first), ends.periodic, node)

    if sweep.folds:
        each = [(use.version.field, known[use.version]) for use in sweep.uses]
        each += [(one.version.field, known[_before(one.version)]) for one in sweep.updates]
        _fold(sweep, read, {field: one.array.dtype.name for field, one in each}, ends)
    made = {}
    for version, expression in ((update.version, update.expression) for update in sweep.updates):
        if sweep.is_temporary:
            dtypes = {field: array.dtype.name for field, (array, _) in used.items()}
            dtype = applied([expression], dtypes)[1][0].kind.dtype
        else:
            array = known[version if sweep.completes else _before(version)].array.copy()
            dtype = str(array.dtype)
        given = None
        if ends.around is not None:
            given = partial(ends.around.value, box=sweep.cells, dtype=dtype)
        values = values_of(expression, read, dtype, given)
        if sweep.is_temporary:
            first = tuple(-lower for lower in sweep.cells.lower)
            made[version] = Known(np.broadcast_to(values, sweep.cells.extent), first)
        else:
            array[sweep.cells.slices((0,) * array.ndim)] = values
            made[version] = Known(array)
    return made


def _used(
    sweep: Sweep, known: Mapping[Version, Known], ends: Ends
) -> dict[str, tuple[npt.NDArray[Any], tuple[int, ...]]]:
    """By field what a sweep reads, with the cells outside, and how many of these come first."""
    used = {}
    for use in sweep.uses:
        field = use.version.field
        array, first = known[use.version]
        if first is None:
            boundary = ends.boundaries.get(field, KEPT)
            array, first = extended(array, field, boundary, _reach(sweep, field, ends), ends.around)
        used[field] = array, first
    return used


def _before(version: Version) -> Version:
    """The one over which it is written."""
    return Version(version.field, version.number - 1)


def _fold(
    sweep: Sweep,
    read: Callable[[Read], npt.NDArray[Any]],
    dtypes: Mapping[str, str],
    ends: Ends,
) -> None:
    """What `sweep` folds is given to those after it."""
    around, stage = ends.around, sweep.stage
    if around is None or ends.rules is None:
        return
    given = partial(around.value, box=sweep.cells, dtype=given_dtype(stage, dtypes))
    taken = operands(stage, sweep.cells, read, given, dtypes)
    points = ends.boundaries.get(stage.home, KEPT).points(around.positions.domain, ends.periodic)
    found = results_of(taken, sweep.cells, points)
    around.change(ends.rules.after(around.numbers, found))


def _reach(sweep: Sweep, field: str, ends: Ends) -> Offsets:
    """Per axis, how far a field is read below its first cell and above its last one."""
    own = sweep.stage.ends(field, ends.boundaries)
    rim = sweep.stage.rim or ((0, 0),) * len(own)
    return tuple((a + low, b + high) for (low, high), (a, b) in zip(own, rim))
