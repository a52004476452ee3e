# SPDX-License-Identifier: MIT
"""NumPy arrays as what tasks touch: whose memory an array is a view of, and which box of it.

Views of one memory are one datum, of which each is a box where it can be: slices with step 1 of
an array, and of what was made of one by reshape.  Any other view counts as the whole.
"""
from __future__ import annotations

import threading
import weakref
from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.controller.access import TileRole
from controllers.device.event import Event
from controllers.memory.history import History
from controllers.memory.tile import Tile
from controllers.pool.newest import Newest
from controllers.program.items import ArrayKind
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry

Array: TypeAlias = "npt.NDArray[Any]"
MOST_SEEN = 256     # views of a datum
LEAST_LOOKS = 64    # uses of a datum between two looks at what of its history is over


class Seen(NamedTuple):
    """Where a view of a memory is: its first cell's address, its box, and for kernels how it lies.

    box: None where the cells are no box.  geometry: None where a kernel cannot be told.
    has_rows: whether the cells of each row follow each other.
    """

    address: int
    box: Shape | None
    geometry: Geometry | None
    has_rows: bool


class Coming(NamedTuple):
    """Cells on their way to the host's memory, and what ends when they are there."""

    event: Event
    cells: Region


class Datum:
    """The memory of one array, as long as that lives.

    shape, dtype: as what its cells are counted; of an array whose cells do not follow each other it
    is one cell, and no device can have it.  tiles: its images, by memory.  in_place: tiles of the
    memory itself, by who computes in it.  coming: to the host.
    """

    def __init__(self, owner: Array, view: Array) -> None:
        self.owner: weakref.ref[Array] = weakref.ref(owner)
        self.start, self.end = _bounds(owner)
        self.dense = owner.flags.c_contiguous and owner.size > 0
        self.dtype = view.dtype
        self.shape = _shape_of(owner, view) if self.dense else (1,)
        self.box = Shape.of_extent(self.shape)
        self.history: History[Any] = History()
        self.newest, self.foreseen = Newest(self.box), Newest(self.box)
        self.tiles: dict[int, Tile] = {}
        self.in_place: dict[object, Tile] = {}
        self.moving = threading.Lock()      # of `newest`, `tiles` and `coming`
        self.coming: list[Coming] = []
        self.uses = 0
        self._seen: dict[object, Seen] = {}

    @property
    def flat(self) -> Array:
        """Its cells as they follow each other; to be called while somebody has the array."""
        owner = self.owner()
        assert owner is not None and self.dense, "an array that somebody has, cell after cell"
        return owner.reshape(-1).view(self.dtype)

    def seen(self, view: Array) -> Seen:
        """Where a view is; looked at once, as programs give the same ones again and again."""
        address = _address(view)
        key = address, view.shape, view.strides, view.dtype
        found = self._seen.get(key)
        if found is None:
            if len(self._seen) >= MOST_SEEN:
                self._seen.clear()
            has_rows = not view.ndim or (view.size > 0 and view[0].flags.c_contiguous)
            found = self._seen[key] = Seen(
                address, self._box_of(view), self._relative(view), has_rows
            )
        return found

    def _box_of(self, view: Array) -> Shape | None:
        """Which cells a view shows; None where they are no box."""
        if not self.dense or view.dtype != self.dtype:
            return None
        first, rest = divmod(_address(view) - self.start, view.itemsize)
        if rest:
            return None
        pitches = Geometry.dense(self.box).pitches
        lower = tuple(first // pitch % n for pitch, n in zip(pitches, self.shape))
        upper = [low + 1 for low in lower]
        axis = 0
        for n, stride in zip(view.shape, view.strides):
            if n == 1:
                continue
            while axis < len(pitches) and pitches[axis] * view.itemsize != stride:
                axis += 1
            if axis == len(pitches) or lower[axis] + n > self.shape[axis]:
                return None
            upper[axis] = lower[axis] + n
            axis += 1
        return Shape(lower, tuple(upper))

    def _relative(self, view: Array) -> Geometry | None:
        """How the cells of a view lie in the memory, counted from its first one.

        None where a kernel cannot be told: the cells of the last axis follow each other, and each
        step of another axis leads forwards by whole cells.
        """
        if view.dtype != self.dtype or not self.dense or not view.ndim:
            return None
        offset, rest = divmod(_address(view) - self.start, view.itemsize)
        pitches, over = zip(*(divmod(stride, view.itemsize) for stride in view.strides))
        if rest or any(over) or min(pitches) < 1 or pitches[-1] != 1:
            return None
        lower = []
        for pitch in pitches:
            lower.append(-(offset // pitch))
            offset %= pitch
        if offset:
            return None
        return Geometry(Shape(tuple(lower), view.shape), pitches)


class Touch(NamedTuple):
    """An array that a task is given, with what it does to it.

    view: the array itself.  is_box: `box` is what it shows, else the whole, of which it shows some.
    origin: the array from whose first cell kernels count: of a part of a task, that of the whole.
    at: where that is.  reads: whether what was there before matters.
    """

    view: Array
    origin: Array
    name: str
    role: TileRole
    datum: Datum
    box: Shape
    is_box: bool
    at: Seen
    reads: bool
    writes: bool

    @property
    def kind(self) -> ArrayKind:
        """As a function of items knows the array, of a part of a task that of the whole."""
        return ArrayKind(self.origin.shape, self.origin.dtype.name)


class Data:
    """What is known of arrays, by the memory that they are views of; for who holds a lock."""

    def __init__(self) -> None:
        self._known: dict[int, Datum] = {}
        self._starts: list[tuple[int, int, Datum]] = []
        self._gone: deque[tuple[int, weakref.ref[Array]]] = deque()

    def touch(
        self, name: str, view: Array, role: TileRole, origin: Array | None = None
    ) -> Touch:
        """How a task touches an array, itself the origin by default; ValueError where it cannot."""
        if role != "in" and not view.flags.writeable:
            raise ValueError(
                f"the array {name!r} is {'written' if role == 'out' else 'updated'} and can only "
                f"be read; give one that is writeable"
            )
        datum = self._of(view)
        at = datum.seen(view)
        box, is_box = (datum.box, False) if at.box is None else (at.box, True)
        reads, writes = role != "out" or not is_box, role != "in"
        if origin is None or origin is view:
            return Touch(view, view, name, role, datum, box, is_box, at, reads, writes)
        at = datum.seen(origin)
        return Touch(view, origin, name, role, datum, box, is_box, at, reads, writes)

    def settle(self, forget: Callable[[Datum], None]) -> None:
        """Nobody touches anything any more; `forget` is told of arrays that somebody has."""
        for datum in self.all():
            if datum.owner() is not None:
                forget(datum)
            datum.history = type(datum.history)()

    def all(self) -> list[Datum]:
        """Those whose arrays somebody has."""
        self._tidy()
        self._known = dict(self._known)     # without the room of those that are gone
        return list(self._known.values())

    def _of(self, view: Array) -> Datum:
        owner = view
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        if self._gone:
            self._tidy()
        datum = self._known.get(id(owner))
        if datum is None or datum.owner() is not owner:
            datum = Datum(owner, view)
            if datum.start < datum.end:
                self._refuse_overlap(datum)
                at = bisect_left(self._starts, datum.start, key=_start)
                self._starts.insert(at, (datum.start, datum.end, datum))
            self._known[id(owner)] = datum
            self._watch(id(owner), owner)
        return datum

    def _watch(self, key: int, owner: Array) -> None:
        gone = self._gone

        def note(reference: weakref.ref[Array], key: int = key) -> None:
            gone.append((key, reference))   # in whatever thread, with whatever lock

        self._known[key].owner = weakref.ref(owner, note)

    def _tidy(self) -> None:
        while self._gone:
            key, reference = self._gone.popleft()
            datum = self._known.get(key)
            if datum is not None and datum.owner is reference:
                del self._known[key]
                self._drop(datum)

    def _drop(self, datum: Datum) -> None:
        at = bisect_left(self._starts, datum.start, key=_start)
        while at < len(self._starts) and self._starts[at][0] == datum.start:
            if self._starts[at][2] is datum:
                del self._starts[at]
                return
            at += 1

    def _refuse_overlap(self, datum: Datum) -> None:
        """ValueError where the memory is part of another array's that knows nothing of it."""
        at = bisect_left(self._starts, datum.end, key=_start)
        for _, end, other in self._starts[max(0, at - 1) : at]:
            if end > datum.start and other.owner() is not None:
                raise ValueError(
                    f"an array of {datum.shape} shares memory with one of {other.shape} that it is "
                    f"no view of, so that tasks cannot be ordered; give slices of one array"
                )


def _start(entry: tuple[int, int, Datum]) -> int:
    return entry[0]


def _address(array: Array) -> int:
    found: int = array.__array_interface__["data"][0]
    return found


def _bounds(array: Array) -> tuple[int, int]:
    """The bytes that an array spans: the first one, and the one after the last one."""
    first = _address(array)
    if not array.size:
        return first, first
    reach = [(n - 1) * stride for n, stride in zip(array.shape, array.strides)]
    low, high = sum(min(0, r) for r in reach), sum(max(0, r) for r in reach)
    return first + low, first + high + array.itemsize


def _shape_of(owner: Array, view: Array) -> tuple[int, ...]:
    """As what the cells of a memory are counted, of which `view` was seen first.

    Rows of `view`, where these fill it: what `np.arange(12).reshape(3, 4)` returns is a view.
    """
    n_cells = owner.nbytes // view.itemsize if owner.nbytes % view.itemsize == 0 else 0
    if view.ndim > owner.ndim and view.flags.c_contiguous and view.size:
        row = prod(view.shape[1:])
        first = (_address(view) - _address(owner)) // view.itemsize
        if n_cells and n_cells % row == 0 and first % row == 0:
            return n_cells // row, *view.shape[1:]
    if view.dtype == owner.dtype:
        return owner.shape or (1,)
    return (n_cells,) if n_cells else (1,)
