# SPDX-License-Identifier: MIT
"""The memories of a plan: known before anything is allocated.

The engine allocates exactly these: every buffer of every field with its halo, and the staging
memory of the messages.  Only what is a kernel's own, tables of constants and what it folds into, is
not in the plan.  No operation is recorded for it: a thousand places are as quick as one.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from controllers.memory.tile import SLACK
from controllers.plan.exchange import Delivery
from controllers.plan.operation import (
    HostTask,
    Lane,
    Memory,
    MemoryCells,
    StagingKey,
    TileKey,
    Transfer,
    Verb,
)
from controllers.plan.outline import Outline
from hitmap.shape import Shape
from hitmap.strided import Geometry, whole_vectors

MemoryKind = Literal["tile", "staging", "image", "accumulator"]
Lifetime = Literal["plan", "step"]


@dataclass(frozen=True)
class PlanMemory:
    """One memory that a plan needs.

    home: the place in whose memory it is; on_device: in that of the place's device, which for a CPU
    is the host's.  lifetime: what it holds matters from one step to another, or within a step.
    slack: bytes beside its elements.  in_file: of an image, it is a file of the host, mapped.
    """

    key: Memory
    geometry: Geometry
    dtype: str
    kind: MemoryKind
    home: int
    lifetime: Lifetime
    on_device: bool
    slack: int = 0
    in_file: bool = False

    @property
    def nbytes(self) -> int:
        """Of its elements; on a device whole vectors of packed cells."""
        n_elements = self.geometry.n_elements
        if self.kind == "staging" and self.on_device:
            n_elements = whole_vectors(n_elements)
        return n_elements * np.dtype(self.dtype).itemsize

    def __str__(self) -> str:
        where = "its device" if self.on_device else "the host"
        where = "the disk" if self.in_file else where
        cells = " x ".join(map(str, self.geometry.box.extent))
        return (
            f"{self.kind} {self.key} of place {self.home}: {cells} cells of {self.dtype}, "
            f"{self.nbytes + self.slack} bytes on {where}, of one {self.lifetime}"
        )


@dataclass(frozen=True)
class PlaceMemory:
    """Bytes of one place.

    tiles: the fields, their doubles and the halos.
    alignment: what tiles in host memory take beside their cells, to begin where they should.
    device_staging, host_staging: borders and halos on their way.
    host_images: fields on the host, of which chunks pass through the device (docs/chunks.md).
    image_files: those that lie in files, which take no memory.
    """

    tiles: int = 0
    alignment: int = 0
    device_staging: int = 0
    host_staging: int = 0
    host_images: int = 0
    image_files: int = 0

    @property
    def on_device(self) -> int:
        """What counts as memory of the place's device; a CPU's is the host's."""
        return self.tiles + self.alignment + self.device_staging

    @property
    def nbytes(self) -> int:
        """All of it."""
        return self.on_device + self.host_staging + self.host_images


def plan_memories(plan: Outline) -> Iterator[PlanMemory]:
    """What the places of `plan` that hold cells need: tiles, then staging memories."""
    temporary = {field.name for field in plan.program.temporaries}
    for pool, n_buffers in plan.n_buffers.items():
        lifetime: Lifetime = "step" if pool in temporary else "plan"
        each = {place: plan.geometry(pool, place) for place in plan.places}
        geometries = {place: one for place, one in each.items() if one.n_elements}
        dtype = plan.program.field(pool).dtype
        for buffer in range(n_buffers):
            for place, geometry in geometries.items():
                slack = SLACK if plan.locations[place].shares_host else 0
                key = TileKey(pool, buffer, place)
                yield PlanMemory(key, geometry, dtype, "tile", place, lifetime, True, slack)
    for staging in _stagings(plan):
        bundle, home = plan.bundles[staging.bundle], plan.home(staging)
        packed = Geometry.dense(Shape((0,), (bundle.n_elements,)))
        yield PlanMemory(staging, packed, bundle.dtype, "staging", home, "step", staging.on_device)


def place_memories(memories: Iterable[PlanMemory]) -> Mapping[int, PlaceMemory]:
    """The bytes of each place that has any of `memories`."""
    sums: dict[int, dict[str, int]] = {}
    for memory in memories:
        found = sums.setdefault(memory.home, {})
        kind = "host_images" if memory.kind == "image" else "tiles"
        kind = "image_files" if memory.in_file else kind
        if memory.kind == "staging":
            kind = "device_staging" if memory.on_device else "host_staging"
        found[kind] = found.get(kind, 0) + memory.nbytes
        found["alignment"] = found.get("alignment", 0) + memory.slack
    return {place: PlaceMemory(**found) for place, found in sums.items()}


@dataclass
class _Stagings:
    """Takes the operations of exchanges and keeps their staging memories."""

    found: dict[StagingKey, None] = field(default_factory=dict)

    def add(
        self,
        place: int,
        verb: Verb,
        lane: Lane,
        reads: Iterable[MemoryCells],
        writes: Iterable[MemoryCells],
        *,
        sweep: int | None = None,
        bundle: int | None = None,
        transfers: tuple[Transfer, ...] = (),
        task: HostTask | None = None,
    ) -> None:
        for access in (*reads, *writes):
            if isinstance(access.memory, StagingKey):
                self.found[access.memory] = None


def _stagings(plan: Outline) -> Iterable[StagingKey]:
    """The staging memories of all bundles, as the exchanges would use them."""
    taker = _Stagings()
    for bundle in plan.bundles:
        exchange = Delivery(plan, taker, bundle, 0)
        exchange.pack()
        exchange.receive()
        exchange.leave()
        exchange.arrive()
    return taker.found
