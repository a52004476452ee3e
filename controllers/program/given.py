# SPDX-License-Identifier: MIT
"""Values that are given, not read from a field: scalars, indices and coordinates.

They are leaves of expressions like reads; equal ones are one object.  Whoever asks for an
expression at a neighbour shifts indices and coordinates by the same offset as reads.
"""
from __future__ import annotations

from typing import ClassVar, TypeVar

from controllers.program.identifier import check_identifier
from controllers.program.interning import Known
from controllers.program.node import Given
from controllers.program.offsets import MAX_AXES, MAX_OFFSET
from hitmap.argument import instance, short, whole

G = TypeVar("G", bound=Given)


class Scalar(Given):
    """A number that is the same in all cells, known on the host before a step, by its name there.

    It is computed in float64, and rounded once to the dtype of the values that it meets: it is
    weak, as a Python number is.  `Program.scalars` says what it is; `t` and `dt` are known anyway.
    """

    __slots__ = ("name",)
    _known: ClassVar[Known[Given]] = Known()

    name: str

    def __new__(cls, name: str) -> Scalar:
        return _interned(cls, check_identifier(name, "scalar"))


class Index(Given):
    """The global index of the cell plus `offset` along `axis`, from the domain's lower end on.

    A whole number (int64), for comparisons and arithmetic among whole numbers.  On a periodic axis
    it is the index of the cell that is seen there: beyond the last one comes 0.
    """

    __slots__ = ("axis", "offset")
    _known: ClassVar[Known[Given]] = Known()

    axis: int
    offset: int

    def __new__(cls, axis: int, offset: int = 0) -> Index:
        return _interned(cls, *_place(axis, offset))


class Coordinate(Given):
    """The coordinate of the centre of the cell plus `offset` along `axis`, see `Coordinates`.

    half: of its lower face instead.  It is computed in float64 from the global index, and rounded
    once to the field's dtype.  On a periodic axis it is that of the cell that is seen there, as for
    `Index`.
    """

    __slots__ = ("axis", "half", "offset")
    _known: ClassVar[Known[Given]] = Known()

    axis: int
    half: bool
    offset: int

    def __new__(cls, axis: int, half: bool = False, offset: int = 0) -> Coordinate:
        axis, offset = _place(axis, offset)
        return _interned(cls, axis, instance(half, bool, "half", "write True or False"), offset)


def _place(axis: int, offset: int) -> tuple[int, int]:
    axis, offset = whole(axis, "axis", 0), whole(offset, "offset")
    if axis >= MAX_AXES or abs(offset) > MAX_OFFSET:
        raise ValueError(
            f"an axis is below {MAX_AXES} and an offset at most {MAX_OFFSET} cells, got axis "
            f"{short(axis)} and offset {short(offset)}; use smaller ones"
        )
    return axis, offset


def _interned(cls: type[G], *parts: object) -> G:
    """The node of these attributes, which have been checked."""
    known = cls._known.get(parts)
    found = None if known is None else known()
    if found is None:
        new = object.__new__(cls)
        names: tuple[str, ...] = cls.__slots__
        for name, value in zip(names, parts):
            object.__setattr__(new, name, value)
        found = cls._known.keep(parts, new)
    return found  # type: ignore[return-value]
