# SPDX-License-Identifier: MIT
"""The operations of a plan, and the memories they read and write.

An operation stands in the list of one place and says what it does to which cells.  What
it waits for is not said by whoever records it: it follows from the cells.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

import numpy.typing as npt

from controllers.program.sweep import Version
from hitmap.message import Message
from hitmap.shape import Shape

Verb = Literal[
    "launch", "copy", "fill", "pack", "download", "send", "receive", "upload", "unpack", "host",
    "fold", "combine",
]  # fmt: skip
Lane = Literal["compute", "transfer", "retrieve", "host", "network"]
Parcel = Literal["window", "arrival", "departure"]


@dataclass(frozen=True)
class Location:
    """Where a place lives: its rank, the controller within the rank, and the kind of memory.

    context: of controllers of a rank that have the same one, commands wait for each other on their
    devices, and use each other's memory; None of one that is alone.
    """

    rank: int = 0
    controller: int = 0
    shares_host: bool = True    # the controller computes in host memory
    device: str = ""
    kind: str = ""              # of the device, such as "gpu"
    context: int | None = None

    def same_controller(self, other: Location) -> bool:
        return (self.rank, self.controller) == (other.rank, other.controller)

    def same_context(self, other: Location) -> bool:
        together = (self.rank, self.context) == (other.rank, other.context)
        return self.same_controller(other) or (together and self.context is not None)


@dataclass(frozen=True)
class TileKey:
    """One buffer of a field at one place; it holds one version of the field after another."""

    field: str
    buffer: int
    place: int

    def __str__(self) -> str:
        return f"{self.field}.{self.buffer}"


@dataclass(frozen=True)
class RoomKey(TileKey):
    """Device memory through which the cells of one place after another pass.

    place: the first of these.  what: of skewed chunks, a window or what goes to or from it.
    """

    slot: int
    what: Parcel = "window"

    def __str__(self) -> str:
        if self.what != "window":
            return f"{self.what} {self.slot} of {self.field}"
        return f"slot {self.slot} of {self.field}.{self.buffer}"


@dataclass(frozen=True)
class SlotKey(TileKey):
    """One buffer of a field at one place, while the cells of the place are in a room."""

    room: RoomKey

    def __str__(self) -> str:
        return str(self.room)


@dataclass(frozen=True)
class StagingKey:
    """Packed cells of a bundle of transfers, leaving (`border`) or arriving (`halo`)."""

    bundle: int
    end: Literal["border", "halo"]
    on_device: bool = False

    def __str__(self) -> str:
        return f"{self.end} staging" + (" on the device" if self.on_device else "")


@dataclass(frozen=True)
class FoldKey:
    """What the folds of a sweep have come to: of the launches of a place, of it, or of all ranks.

    home: the place; of `ranks` the rank that knows it.
    """

    sweep: int
    of: Literal["launches", "place", "ranks"]
    home: int


Memory = Union[TileKey, StagingKey]


@dataclass(frozen=True)
class MemoryCells:
    """Cells of one memory: global boxes of a tile, or packed elements of a staging memory.

    Of a staging memory a box for each transfer.
    """

    memory: Memory
    cells: tuple[Shape, ...]


@dataclass(frozen=True)
class Edge:
    """The operation `number` must be complete, in this step or `steps_back` steps before it."""

    number: int
    steps_back: int = 0


@dataclass(frozen=True)
class Transfer:
    """What one neighbour gets of a version, numbered over all exchanges of a plan."""

    number: int
    version: Version
    message: Message
    itemsize: int       # of a cell

    @property
    def field(self) -> str:
        """The field whose cells it has."""
        return self.version.field

    @property
    def nbytes(self) -> int:
        """Of its cells."""
        return self.message.n_cells * self.itemsize


@dataclass(frozen=True)
class HostTask:
    """Work of the host at the end of every step, at each place in host memory.

    `work` is called with the cells that a place owns of these fields, by name, of which it may
    write those that are written: one call per place.
    """

    name: str
    work: Callable[[Mapping[str, npt.NDArray[Any]]], None]
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Operation:
    """One operation of a plan: what, where, on which cells, after what."""

    number: int
    phase: int                      # the step of the period; of an opening, the one that follows
    place: int                      # in whose list it stands
    verb: Verb
    lane: Lane
    reads: tuple[MemoryCells, ...]      # cells of fields, packed or not; of folds say `takes` ...
    writes: tuple[MemoryCells, ...]
    after: tuple[Edge, ...]
    sweep: int | None = None        # of a launch
    bundle: int | None = None       # of a part of an exchange
    transfers: tuple[Transfer, ...] = ()    # ... those of the bundle whose cells it moves
    task: HostTask | None = None    # of the host's work
    versions: tuple[Version, ...] = ()  # whose cells outside the domain a fill writes, in order
    over: Shape | None = None       # the cells that a launch computes
    takes: tuple[FoldKey, ...] = ()     # what it needs of folds
    gives: tuple[FoldKey, ...] = ()     # ... and what it makes known of them
    part: int = 0                   # of a launch, among those of its sweep at its place
    occasional: bool = False        # left out of steps after which nobody looks at its folds
    turn: int = 0                   # of a step that is several time steps: with whose scalars
    launch: int = 0                 # of a step that is several launches: before which it is due

    @property
    def on_device(self) -> bool:
        """Whether it is a command in one of a controller's queues."""
        return self.lane in ("compute", "transfer", "retrieve")

    @property
    def launched(self) -> Shape:
        """The cells that it computes, a launch."""
        assert self.over is not None, "launches compute cells"
        return self.over


def implied(operations: Sequence[Operation], edge: Edge, after: Operation) -> bool:
    """Whether an in-order queue of the place keeps the order of `edge` by itself."""
    before = operations[edge.number]
    return before.on_device and (before.place, before.lane) == (after.place, after.lane)
