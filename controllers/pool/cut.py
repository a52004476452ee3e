# SPDX-License-Identifier: MIT
"""How the arrays of a task are cut into rows, by the maps of what a row reads."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, Union

import numpy as np
import numpy.typing as npt

from controllers.controller.access import ArrayAccess, TileRole
from controllers.kernel.variant import Kernel
from controllers.language.accumulated import accumulate
from controllers.language.each import Each
from controllers.language.item_parameters import All, Column, Near, Row
from controllers.pool.task import Task
from controllers.pool.variant import Variant
from controllers.pool.way import Way
from controllers.program.items import ItemUse
from controllers.program.maps import Columns, Rows
from hitmap.argument import instance
from hitmap.shape import Shape

# ct.Row, ct.Column, ct.All, ct.Near(first, last) or ct.accumulate
CutWord: TypeAlias = Any
Named: TypeAlias = "list[tuple[str, Any]]"
_WORDS: Mapping[Any, str] = {Row: "row", Column: "column", All: "all", accumulate: "accumulate"}
_Use: TypeAlias = Union[ItemUse, str]


@dataclass(frozen=True, eq=False)
class PartAccess(ArrayAccess):
    """Some rows of an array, `whole`, for a part of a task."""

    whole: npt.NDArray[Any]


class Cut:
    """What is cut, by the names of parameters; arrays that are not named are given whole.

    A part has the rows from one number to before another one of what it writes.
    """

    def __init__(self, task: Task, words: Mapping[str, CutWord]) -> None:
        instance(words, dict, f"task {task.name!r}: cut", 'write {"x": ct.Row}')
        self._task, self._words = task, {**words}
        self._summing: dict[tuple[str, ...], Cut] = {}
        self._uses: dict[str, _Use] = {}
        for name, word in words.items():
            if isinstance(word, Near):
                self._uses[name] = word
            elif word in _WORDS:
                self._uses[name] = _WORDS[word]
            else:
                raise TypeError(
                    f"task {task.name!r}: {name!r} is cut by {word!r}; give ct.Row, ct.Column, "
                    f"ct.Near(-1, 1), ct.All, or ct.accumulate for what parts add up"
                )
            if task.parameters and name not in task.parameters:
                raise ValueError(
                    f"task {task.name!r} has no parameter {name!r} to be cut; it has "
                    f"{', '.join(task.parameters)}"
                )
        if not {*self._uses.values()} - {"all", "accumulate"}:
            raise ValueError(
                f"task {task.name!r}: nothing says how many rows there are; cut an array by ct.Row"
            )
        for name, role in task.roles.items():
            self._check_written(name, role)

    def _check_written(self, name: str, role: TileRole) -> None:
        use = self._uses.get(name, "all")
        if role != "in" and use not in ("row", "column", "accumulate"):
            raise ValueError(
                f"task {self._task.name!r} writes {name!r}, of which each part would write all, "
                f"or rows of others; cut it by ct.Row, or ct.accumulate where parts are summed"
            )

    @property
    def summed(self) -> tuple[str, ...]:
        """The parameters that parts add up."""
        return tuple(name for name, use in self._uses.items() if use == "accumulate")

    def summing(self, names: Iterable[str]) -> Cut:
        """The same, where parts add these up, too."""
        key = tuple(names)
        if not key:
            return self
        if key not in self._summing:
            words = {**self._words, **dict.fromkeys(key, accumulate)}
            self._summing[key] = Cut(self._task, words)
        return self._summing[key]

    def divides(self, name: str) -> bool:
        """Whether a part is given some of the rows of an array."""
        return self._uses.get(name, "all") not in ("all", "accumulate")

    def suiting(self, ways: Sequence[Way]) -> list[Way]:
        """The ways to do a part; ValueError where there is none.

        Rows of others are for who is told which are its own, and a kernel is launched over rows.  A
        function of items reads what it says, so that has to be in what a part is given.
        """
        found = [way for way in ways if self._suits(way.variant)]
        if not found:
            raise ValueError(
                f"task {self._task.name!r} has no variant that can do parts here: rows around its "
                f"own are for functions with a keyword-only parameter rows, and for kernels, and "
                f"these are launched over=... an array that is cut, and functions of items read "
                f"what cut= says; add such a variant"
            )
        return found

    def _suits(self, variant: Variant) -> bool:
        if isinstance(variant.body, Kernel):
            written = (name for name, role in self._task.roles.items() if role != "in")
            return self.divides(variant.over or next(written, ""))
        if isinstance(variant.body, Each):
            uses = variant.body.parameters.uses.items()
            return all(_holds(self._uses.get(name, "all"), use) for name, use in uses)
        near = any(isinstance(use, Near) for use in self._uses.values())
        return not near or variant.counts_rows

    def rows(self, named: Iterable[tuple[str, Any]]) -> int:
        """How many rows there are; ValueError where arrays do not agree."""
        counts: dict[str, int] = {}
        for name, given in named:
            use, array = self._uses.get(name, "all"), array_of(given)
            if array is None and name in self._uses:
                raise TypeError(
                    f"task {self._task.name!r}: {name!r} is cut, and an array is expected, got "
                    f"{type(given).__name__}; leave it out of cut="
                )
            if array is not None and self.divides(name):
                axis = 1 if use == "column" else 0
                if array.ndim <= axis:
                    raise ValueError(
                        f"task {self._task.name!r}: {name!r} has {array.ndim} axes and cannot be "
                        f"cut along axis {axis}; take ct.All"
                    )
                counts[name] = array.shape[axis]
        if len({*counts.values()}) != 1:
            listed = ", ".join(f"{name} {n}" for name, n in counts.items()) or "none"
            raise ValueError(
                f"task {self._task.name!r}: arrays that are cut have unlike numbers of rows: "
                f"{listed}; give what is for all rows as ct.All"
            )
        return next(iter(counts.values()))

    def part(self, named: Named, first: int, last: int) -> list[Any]:
        """The arguments of a part, in order."""
        return [self._narrow(name, given, first, last) for name, given in named]

    def _narrow(self, name: str, given: Any, first: int, last: int) -> Any:
        array, use = array_of(given), self._uses.get(name, "all")
        if array is None or not self.divides(name):
            return given
        role = given.role if isinstance(given, ArrayAccess) else self._task.roles.get(name, "in")
        if use == "row":    # as most are
            return PartAccess(array[first:last], role, array)
        box = _map(use, Shape.of_extent(array.shape)).region(Shape((first,), (last,)))
        return PartAccess(array[box.slices((0,) * array.ndim)], role, array)


def _holds(given: _Use, read: ItemUse) -> bool:
    """Whether what a part is given of an array holds what its items read of it."""
    if given in ("all", read):
        return True
    if not isinstance(given, Near):
        return False
    if isinstance(read, Near):
        return given.first <= read.first and read.last <= given.last
    return read == "row"


def _map(use: _Use, domain: Shape) -> Rows | Columns:
    """What rows read of an array."""
    if use == "column":
        return Columns(1, domain)
    return Rows(use.first, use.last, domain) if isinstance(use, Near) else Rows(0, 0, domain)


def array_of(given: Any) -> npt.NDArray[Any] | None:
    """The array that an argument is, or None."""
    found = given.array if isinstance(given, ArrayAccess) else given
    return found if isinstance(found, np.ndarray) else None


def check_written(array: npt.NDArray[Any], name: str) -> None:
    """ValueError where nothing can be added to an array."""
    if not array.flags.writeable:
        raise ValueError(
            f"task {name!r}: parts are added to an array that can only be read; give one that is "
            f"writeable"
        )
