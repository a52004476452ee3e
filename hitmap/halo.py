# SPDX-License-Identifier: MIT
"""Halo patterns: a layout and the offsets that are read give the exact messages.

The cells that a place computes, moved by every offset, are what it reads.  Who owns each part
of that is looked up in the layout, periodic axes unrolled as often as the reach demands.  No
neighbours are assumed, so a reach beyond a slab, places without cells and prime numbers of
places need no special care.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property, reduce
from hashlib import blake2b
from itertools import product
from operator import or_
from typing import Protocol, Union

from hitmap.comm import Communicator, SerialCommunicator
from hitmap.exchange import Arrays, Exchange, holders
from hitmap.layout import Layout
from hitmap.message import Message, counted
from hitmap.packing import packed
from hitmap.region import Region
from hitmap.scatter import MESSAGE_NBYTES
from hitmap.shape import Shape

_Shift = tuple[int, ...]
_Offsets = Union[Shape, "Iterable[_Shift | Shape]"]
Reader = tuple[Layout, _Offsets, Shape]     # places that read at offsets around these cells


class Beyond(Protocol):
    """Cells beyond the ends of a domain, which a place makes of others that it has."""

    def outside(self, box: Shape) -> Iterable[Shape]:
        """The cells of `box` that are made, as disjoint boxes."""

    def sources(self, box: Shape) -> Iterable[Shape]:
        """The cells in the domain, or beyond a periodic end, that give those of `box`."""


class HaloPattern:
    """The messages that refresh the halos of all places; build once, use every step.

    Every position that a computed cell reads and that its place does not own is received exactly
    once, from the owner of the (wrapped) cell, and nothing else is sent, but for one case: the
    boxes of one message become a superset where that is one contiguous run of the source's or
    of the target's memory and has at most a quarter more cells, since it spares copies.

    >>> star = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]
    >>> layout = Layout.bands(Shape.of_extent((6, 4)), 2)
    >>> print(HaloPattern(layout, star, periodic=(False, False)))
    place 1 -> 0: [3:4, 0:4], 4 cells
    place 0 -> 1: [2:3, 0:4], 4 cells
    8 cells in 2 messages, 0 more than needed
    """

    def __init__(
        self,
        layout: Layout,
        offsets: _Offsets,
        periodic: tuple[bool, ...],
        updated: Shape | None = None,
        beyond: Beyond | None = None,
        also: Sequence[Reader] = (),
    ) -> None:
        """`offsets`, boxes of them or each, are read around each cell of `updated`.

        By default that is the whole domain.

        Reads that leave the domain on an axis that is not periodic are dropped, but for the cells
        that are made `beyond` it: what these are made of is received in their place.
        also: who else reads, places that compute cells of other layouts.
        """
        readers = ((layout, offsets, layout.domain if updated is None else updated), *also)
        read = [reduce(or_, of) for of in zip(*(_regions_read(*r, periodic) for r in readers))]
        self._plan(layout, read, periodic, beyond)

    @classmethod
    def of_regions(
        cls,
        layout: Layout,
        read: Sequence[Region],
        periodic: tuple[bool, ...],
        beyond: Beyond | None = None,
    ) -> HaloPattern:
        """That of places which read these regions, one per place; the rest as above.

        >>> layout = Layout.bands(Shape.of_extent((6,)), 2)
        >>> read = [Region.of([Shape((0,), (5,))]), Region.of([Shape((2,), (6,))])]
        >>> print(HaloPattern.of_regions(layout, read, (False,)))
        place 1 -> 0: [3:5], 2 cells
        place 0 -> 1: [2:3], 1 cell
        3 cells in 2 messages, 0 more than needed
        """
        pattern = cls.__new__(cls)
        pattern._plan(layout, read, periodic, beyond)
        return pattern

    def _plan(
        self, layout: Layout, read: Sequence[Region], periodic: tuple[bool, ...],
        beyond: Beyond | None,
    ) -> None:  # fmt: skip
        self._outside = [_outside(region, beyond) for region in read]
        needed = (region.boxes if beyond is None else _sources(region, beyond) for region in read)
        exact = _exact_regions(layout, needed, periodic)
        self._full = [
            reduce(Shape.hull, (*(region.hull for region in parts.values()), *outside), owned)
            for owned, parts, outside in zip(layout.owned, exact, self._outside, strict=True)
        ]
        self._name([
            Message(source, target, shift, self._packed(layout, source, target, shift, region))
            for target, parts in enumerate(exact)
            for (source, shift), region in sorted(parts.items(), key=lambda item: item[0])
        ])  # fmt: skip
        self.n_cells_needed: int = sum(
            region.n_cells for parts in exact for region in parts.values()
        )

    def _name(self, messages: Sequence[Message]) -> None:
        """These are its messages."""
        self.messages: tuple[Message, ...] = tuple(messages)
        self.n_cells: int = sum(message.n_cells for message in self.messages)
        self._incoming: list[list[Message]] = [[] for _ in self._full]
        self._outgoing: list[list[Message]] = [[] for _ in self._full]
        for message in self.messages:
            self._incoming[message.target].append(message)
            self._outgoing[message.source].append(message)
        self._exchanges: dict[tuple[tuple[int, ...], int], Exchange] = {}   # by ranks and rank

    def only(self, keep: Callable[[Message], bool]) -> HaloPattern:
        """The same halos, with some of the messages; no more is said to be needed than these."""
        part = copy(self)
        part._name([*filter(keep, self.messages)])
        part.n_cells_needed = part.n_cells
        return part

    def full(self, place: int) -> Shape:
        """The hull of the cells a place owns and of its halo; empty if it owns none."""
        return self._full[place]

    def outside(self, place: int) -> tuple[Shape, ...]:
        """The cells beyond the domain that a place reads, and makes of others; disjoint boxes."""
        return self._outside[place]

    def incoming(self, place: int) -> tuple[Message, ...]:
        """The messages that a place receives, in order."""
        return tuple(self._incoming[place])

    def outgoing(self, place: int) -> tuple[Message, ...]:
        """The messages that a place sends, in order."""
        return tuple(self._outgoing[place])

    def exchange(
        self,
        arrays: Arrays,
        comm: Communicator | None = None,
        *,
        message_nbytes: int = MESSAGE_NBYTES,
    ) -> None:
        """Refresh the halos of `arrays` with what the places own that hold these cells.

        arrays: {place: array [*full(place).extent]}, for the places of this rank; those without
        cells may be left out.  Each place is on one rank of `comm`, None being this process alone.
        Collective, in messages of at most `message_nbytes`; owned cells are left as they are.
        ValueError on all ranks unless the arrays fit, and all have the same dtype.

        >>> import numpy as np
        >>> pattern = HaloPattern(Layout.bands(Shape.of_extent((4,)), 2), [(-1,), (1,)], (True,))
        >>> arrays = {0: np.array([-9, 1, 2, -9]), 1: np.array([-9, 3, 4, -9])}
        >>> pattern.exchange(arrays)
        >>> {place: array.tolist() for place, array in arrays.items()}
        {0: [4, 1, 2, 3], 1: [2, 3, 4, 1]}
        """
        comm = SerialCommunicator() if comm is None else comm
        ranks, dtype = holders(arrays, self._full, self._digest, comm)
        if dtype is None:
            return
        key = ranks, comm.rank
        if key not in self._exchanges:
            self._exchanges[key] = Exchange(self.messages, self._full, *key)
        self._exchanges[key].run(arrays, comm, dtype, message_nbytes)

    @cached_property
    def _digest(self) -> str:
        """A text that is the same where full boxes and messages are."""
        text = repr((self._full, self.messages)).encode()
        return f"{self.n_cells} cells in {len(self.messages)} messages, {blake2b(text).hexdigest()}"

    def _packed(
        self, layout: Layout, source: int, target: int, shift: _Shift, region: Region
    ) -> tuple[Shape, ...]:
        tiles = self._full[source].shift(shift), self._full[target]
        return packed(region, layout.owned[source].shift(shift), tiles)

    def __str__(self) -> str:
        sent, n_messages = counted(self.n_cells, "cell"), counted(len(self.messages), "message")
        total = f"{sent} in {n_messages}, {self.n_cells - self.n_cells_needed} more than needed"
        return "\n".join([*map(str, self.messages), total])


def _box(offset: tuple[int, ...] | Shape) -> Shape:
    if isinstance(offset, Shape):
        return offset
    return Shape(offset, tuple(along + 1 for along in offset))


def _check(
    domain: Shape, offsets: frozenset[Shape], periodic: tuple[bool, ...], updated: Shape
) -> None:
    for offset in offsets:
        if offset.n_axes != domain.n_axes:
            raise ValueError(
                f"offset {offset.lower} must have one number per axis of the "
                f"{domain.n_axes}-dimensional domain {domain}"
            )
    if len(periodic) != domain.n_axes:
        raise ValueError(
            f"periodic must have one flag per axis of the {domain.n_axes}-dimensional domain "
            f"{domain}, got {periodic}"
        )
    if updated not in domain:
        raise ValueError(f"updated {updated} must lie inside the domain {domain}")


def _regions_read(
    layout: Layout,
    offsets: _Offsets,
    updated: Shape,
    periodic: tuple[bool, ...],
) -> list[Region]:
    """By place, all cells that it reads, its own and those that do not exist too."""
    each = frozenset(map(_box, [offsets] if isinstance(offsets, Shape) else offsets))
    _check(layout.domain, each, periodic, updated)
    offset_boxes = Region.of(each).boxes    # a dense stencil is a single one
    reads: dict[tuple[int, ...], Region] = {}  # by extent: most places have one of a few
    found = []
    for owned in layout.owned:
        computed = owned & updated
        if computed.empty:
            found.append(Region.of([]))
            continue
        if computed.extent not in reads:
            reads[computed.extent] = _reads(computed.extent, offset_boxes)
        found.append(reads[computed.extent].shift(computed.lower))
    return found


def _outside(read: Region, beyond: Beyond | None) -> tuple[Shape, ...]:
    """The cells that are read and made."""
    if beyond is None:
        return ()
    return Region.of(part for box in read.boxes for part in beyond.outside(box)).boxes


def _sources(read: Region, beyond: Beyond) -> tuple[Shape, ...]:
    """What is read, and what the cells that are made are made of, once each."""
    return Region.of(part for box in read.boxes for part in beyond.sources(box)).boxes


def _exact_regions(
    layout: Layout, needed: Iterable[Sequence[Shape]], periodic: tuple[bool, ...]
) -> list[dict[tuple[int, _Shift], Region]]:
    """For each target the cells that it needs, by source and shift, in target coordinates."""
    exact = []
    for target, boxes in enumerate(needed):
        parts: dict[tuple[int, _Shift], list[Shape]] = {}
        for box in boxes:
            for source, shift, part in _owners(layout, box, periodic):
                if source != target or any(shift):
                    parts.setdefault((source, shift), []).append(part)
        exact.append({key: Region.of(boxes) for key, boxes in parts.items()})
    return exact


def _reads(extent: tuple[int, ...], offset_boxes: tuple[Shape, ...]) -> Region:
    """The cells that are read to compute a box of `extent` at the origin."""
    last = tuple(count - 1 for count in extent)
    return Region.of(offsets.grow((0,) * len(last), last) for offsets in offset_boxes)


def _owners(
    layout: Layout, box: Shape, periodic: tuple[bool, ...]
) -> Iterator[tuple[int, _Shift, Shape]]:
    """Source, shift and part, in the coordinates of `box`, of all its cells that exist."""
    domain = layout.domain
    images = [
        range((lower - first) // count * count, upper - first, count) if wraps else (0,)
        for lower, upper, first, count, wraps in zip(
            box.lower, box.upper, domain.lower, domain.extent, periodic, strict=True
        )
    ]
    for shift in product(*images):
        back = tuple(-step for step in shift)
        for source, part in layout.owners(domain & box.shift(back)):
            yield source, shift, part.shift(shift)
