# SPDX-License-Identifier: MIT
"""Hybrid tasks: one task on cores of the host and on devices at once, each with a share of it.

A share is cut out by the maps of what rows read, or by functions of the user.  A series is a sum of
calls of one task, of which each side does some.
"""
# docs/decisions/0080-hybrid-tasks-are-tasks-of-parts.md
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from controllers.language.each import Each
from controllers.language.item_parameters import All, Column, Row
from controllers.pool.cut import Cut, CutWord
from controllers.pool.device_count import DeviceCount
from controllers.pool.task import Task
from controllers.pool.task import task as task_of
from controllers.pool.variant import Body, Devices
from hitmap.argument import function, number, one_of, sequence, whole, wrong

Merging: TypeAlias = Literal["changed", "whole"]
Where: TypeAlias = Union[slice, "npt.NDArray[np.integer[Any]]", None]
Split: TypeAlias = Callable[..., "Sequence[Sequence[Any]]"]
_MERGINGS = ("changed", "whole")
_CUTS: Mapping[Any, CutWord] = {"row": Row, "column": Column, "all": All}
USUAL_PARTS = 16    # of which the sum is made, whoever computes them


class Part(NamedTuple):
    """What became of a share, for the function that merges.

    share: of the work, 1 is all of it.  arguments: what the function that splits gave for it.
    result: what the task has returned; None of a kernel.
    """

    share: float
    arguments: tuple[Any, ...]
    result: Any


@dataclass(frozen=True, eq=False)
class Hybrid:
    """A task that several sides may do together; made by `hybrid`."""

    task: Task
    cut: Cut | None
    split: Split | None
    merge: Callable[..., Any] | None
    parts: int
    merging: Merging
    shares: tuple[float, ...] | None
    devices: DeviceCount | None = None

    def __repr__(self) -> str:
        return f"<hybrid {self.task!r}>"


@dataclass(frozen=True, eq=False)
class Series:
    """A sum of calls of one task, which several sides may do together; made by `series`."""

    task: Task
    at: tuple[Where, ...]
    merging: Merging
    shares: tuple[float, ...] | None
    devices: DeviceCount | None = None

    def __repr__(self) -> str:
        return f"<series of {len(self.at)} of {self.task!r}>"


@dataclass(frozen=True, eq=False)
class Replicated:
    """A task that is done on several sides, each in its own memory; made by `replicated`."""

    task: Task

    def __repr__(self) -> str:
        return f"<replicated {self.task!r}>"


def hybrid(
    task: Task | Body,
    *,
    cut: Mapping[str, CutWord] | None = None,
    split: Split | None = None,
    merge: Callable[..., Any] | None = None,
    parts: int = USUAL_PARTS,
    merging: Merging = "changed",
    shares: Sequence[float] | None = None,
    devices: Devices = None,
) -> Hybrid:
    """A task on cores of the host and devices at once, for `pool.submit` (docs/hybrid.md).

    cut: for arrays by the names of parameters what a row of the results reads: ct.Row, its own,
        ct.Near(-1, 1), those around, ct.Column, ct.All; ct.accumulate: what parts add up.  By
        default what a function of items says.
    split, merge: instead, functions of the user, called in threads of the pool: `split(shares,
        *args)` returns the arguments of the task for each of these shares, whose sum is 1;
        `merge(parts, *args)` gets a `Part` for each, and what it returns is the result.  Without
        `merge` the parts have done all.  They are given as positional arguments what is submitted.
    parts: that are summed where something is accumulated, each with its rows, in their order.
    merging: what of them is sent: "changed", each one when it is done, or "whole", one sum of each
        side in the end, whose rounding depends on the shares.
    shares: fixed ones, of the host's cores and then of the devices; by default by estimates.
    devices: so many, or (least, most), take part: those that would do it all fastest; by default
        as many as make it faster.

    ValueError or TypeError where the maps do not say how the task is cut.
    """
    made = task if isinstance(task, Task) else task_of(task)
    wanted, n_devices = _shares(shares), DeviceCount.of(made.name, devices)
    if (merge if split is None else cut) is not None:
        raise ValueError(
            f"task {made.name!r}: give either cut=, or split= with or without merge="
        )
    if split is not None:
        function(split, f"task {made.name!r}: split")
        if merge is not None:
            function(merge, f"task {made.name!r}: merge")
        return Hybrid(made, None, split, merge, 1, "changed", wanted, n_devices)
    words = _words_of(made) if cut is None else cut
    one_of(merging, _MERGINGS, f"task {made.name!r}: merging")
    n_parts = whole(parts, "parts", 1)
    return Hybrid(made, Cut(made, words), None, None, n_parts, merging, wanted, n_devices)


def series(
    task: Task | Body,
    at: Sequence[Where],
    *,
    merging: Merging = "changed",
    shares: Sequence[float] | None = None,
    devices: Devices = None,
) -> Series:
    """A sum of n calls of a task, some on cores, some on devices, for `pool.submit`.

    Of what is submitted the first argument is the array to which is added.  A list or tuple among
    the others has n values, one for each call.  Each call gets, as its first argument, an array of
    its own to write, as the rows `at` of the one to which it is added.
    at: for each call the rows that it changes: their numbers, none twice, a slice, or None for all.
    merging, shares, devices: see `hybrid`.  The calls of each side follow each other, so that of n
        calls the first k are done by the first side.
    """
    made = task if isinstance(task, Task) else task_of(task)
    rows = tuple(_where(one, made.name) for one in sequence(at, "at", "rows"))
    if not rows:
        raise ValueError(f"task {made.name!r}: at= has the rows of no call; give one at least")
    one_of(merging, _MERGINGS, f"task {made.name!r}: merging")
    return Series(made, rows, merging, _shares(shares), DeviceCount.of(made.name, devices))


def replicated(task: Task | Body) -> Replicated:
    """A task that is done on the host and on devices, for `pool.submit`, to save a transfer.

    On each device with a memory of its own and a variant for it, where that is foreseen to take
    less time than what it writes on its way there.  All of its variants must have the same values.
    """
    return Replicated(task if isinstance(task, Task) else task_of(task))


def _shares(given: Sequence[float] | None) -> tuple[float, ...] | None:
    if given is None:
        return None
    found = tuple(number(one, "shares") for one in sequence(given, "shares", "numbers"))
    if not found or min(found) < 0 or not 0 < sum(found) < float("inf"):
        raise ValueError(f"shares: parts of the work that are not negative, got {given!r}")
    return tuple(one / sum(found) for one in found)


def _words_of(task: Task) -> Mapping[str, CutWord]:
    """What the function of items of a task says of its arrays."""
    bodies = [one.body for one in task.variants if isinstance(one.body, Each)]
    if not bodies:
        raise ValueError(
            f"task {task.name!r} has no function of items, which would say how it is cut; give "
            f'cut={{"x": ct.Row}}, or split= and merge='
        )
    uses = {name: _CUTS.get(use, use) for name, use in bodies[0].parameters.uses.items()}
    rows = {name: Row for name, role in task.roles.items() if role != "in"}
    return {**rows, **uses}


def _where(given: Where, name: str) -> Where:
    if given is None or isinstance(given, slice):
        return given
    rows = np.asarray(given)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise wrong(f"task {name!r}: at", "numbers of rows, a slice or None", given)
    if len(np.unique(rows)) != len(rows):
        raise ValueError(f"task {name!r}: at= names a row twice; give each one once")
    return np.ascontiguousarray(rows, np.int64)
