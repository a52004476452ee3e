# SPDX-License-Identifier: MIT
"""Devices that do their work as late as a test likes: at random, or when somebody waits.

A `LazyExecutor` computes with NumPy, has memory of its own if asked to, and three in-order queues.
What the runtime does not order happens in an order that it does not expect, so a result that is
right for many seeds says that the engine waits for what it must.
"""
from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from lazy_world import Handle, LazyEvent, World

from controllers.check.memory import junk
from controllers.device.event import Command, Event, in_order
from controllers.executor.clock import Clock
from controllers.executor.executor import Copied, Folding
from controllers.executor.reference import HostFolding
from controllers.kernel.configuration import KernelUse
from controllers.memory.tile import Linear, Tile
from controllers.program.accumulator import Accumulator
from controllers.program.application import apply_sweep, cells_outside, folded, no_cells
from controllers.program.extension import Fill
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided, elements


class LazyFolding(HostFolding):
    """Merges the folds of launches when the device comes to it."""

    def __init__(
        self, executor: LazyExecutor, empties: Mapping[str, Accumulator], n_parts: int
    ) -> None:
        super().__init__(empties, n_parts)
        self._executor = executor

    def command(self, wait_for: Sequence[Event] | None = None) -> Event:
        return self._executor._command(self._executor.compute, "fold", self.merge)(wait_for)


class LazyExecutor:
    """One lazy device; tiles and staging are full of NaN until something is written there.

    context: devices with the same one wait for each other's events; by default for its own alone.
    """

    def __init__(
        self, world: World, *, shares_host: bool = True, name: str = "", context: object = None
    ) -> None:
        self.world = world
        self.context = self if context is None else context
        self.shares_host = shares_host
        self.name = name
        self.flushed = self.timed = True
        self.clock = Clock()
        self.compute: deque[LazyEvent] = deque()
        self.transfer: deque[LazyEvent] = deque()
        self.retrieve: deque[LazyEvent] = deque()
        self.queues = self.compute, self.transfer, self.retrieve
        world.queues += self.queues

    def configuration(
        self, program: Program, stage: int, boxes: Iterable[Shape]
    ) -> KernelUse:
        return KernelUse(self.name, program.stages[stage].name, "lazy", "NumPy", (), ())

    def read_clock(self) -> None:
        """It is the host's own."""

    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile:
        memory = np.full(geometry.n_elements, junk(dtype), dtype)
        host, own = (memory, None) if self.shares_host else (None, memory)
        return Tile(geometry, dtype, host, own)  # type: ignore[arg-type]

    def staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        return np.full(n_elements, junk(dtype), dtype)

    def device_staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        return np.full(n_elements, junk(dtype), dtype)

    def launch_command(
        self, program: Program, sweep: Sweep, reads: Mapping[str, Tile],
        writes: Mapping[str, Tile], over: Shape, around: Surroundings,
        folding: Folding | None = None, part: int = 0,
    ) -> Command:  # fmt: skip
        def view(tile: Tile, cells: Shape) -> npt.NDArray[Any]:
            return tile.strided(cells).view(array(tile.linear))

        def cells_of(field: str, cells: Shape) -> npt.NDArray[Any]:
            return view(reads[field], cells)

        def work(given: Surroundings) -> None:
            if folding is not None:
                assert isinstance(folding, LazyFolding)
                folding.parts[part] = folded(program, sweep, cells_of, over, given)
            found = apply_sweep(sweep, cells_of, over, program.dtypes, given)
            for field, values in found.items():
                view(writes[field], over)[...] = values

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            now = Surroundings(around.positions, around.numbers)    # kept, as arguments are
            return self._command(self.compute, f"launch {over}", lambda: work(now))(wait_for)

        return command

    def folding(self, program: Program, sweep: Sweep, boxes: Sequence[Shape]) -> LazyFolding:
        return LazyFolding(self, no_cells(program, sweep), len(boxes))

    def fill_command(
        self, program: Program, fills: Sequence[tuple[Fill, Tile]], around: Surroundings
    ) -> Command:
        def work(given: Surroundings) -> None:
            for (extension, dtype, _, boxes), tile in fills:
                def view(cells: Shape, tile: Tile = tile) -> npt.NDArray[Any]:
                    return tile.strided(cells).view(array(tile.linear))

                for box in boxes:
                    view(box)[...] = cells_outside(extension, view, box, dtype, given)

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            now = Surroundings(around.positions, around.numbers)    # kept, as arguments are
            return self._command(self.compute, "fill", lambda: work(now))(wait_for)

        return command

    def copies_command(self, itemsize: int, copies: Sequence[Copied]) -> Command:
        return in_order([self.copy_command(a, b, itemsize, *moves) for a, b, moves in copies])

    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, *moves: tuple[Strided, Strided]
    ) -> Command:
        taken, given = (elements(array(memory), f"V{itemsize}") for memory in (source, target))

        def work() -> None:
            for at, to in moves:
                np.copyto(to.view(given), at.view(taken))

        return self._command(self.compute, "copy", work)

    def download_command(
        self, source: Linear, cells: Strided, target: npt.NDArray[Any]
    ) -> Command:
        taken = cells.view(array(source))
        room = target.reshape(taken.shape)
        assert np.shares_memory(room, target)
        return self._command(self.transfer, "download", lambda: np.copyto(room, taken))

    def upload_command(
        self, source: npt.NDArray[Any], target: Linear, cells: Strided
    ) -> Command:
        given = cells.view(array(target))
        cells_of = source.reshape(given.shape)
        assert np.shares_memory(cells_of, source)
        return self._command(self.transfer, "upload", lambda: np.copyto(given, cells_of))

    def image_memory(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        return self.staging(n_elements, dtype)

    def bring_command(
        self, image: npt.NDArray[Any], slot: Linear, here: Strided, there: Strided
    ) -> Command:
        given, taken = there.view(array(slot)), here.view(image)
        return self._command(self.transfer, "upload", lambda: np.copyto(given, taken))

    def retrieve_command(
        self, image: npt.NDArray[Any], slot: Linear, here: Strided, there: Strided
    ) -> Command:
        given, taken = here.view(image), there.view(array(slot))
        return self._command(self.retrieve, "download", lambda: np.copyto(given, taken))

    def move_to(self, tile: Tile, cells: Shape, values: npt.NDArray[Any]) -> None:
        assert not any(self.queues), "the device is idle"
        tile.strided(cells).view(array(tile.linear))[...] = values

    def move_from(self, tile: Tile, cells: Shape) -> npt.NDArray[Any]:
        assert not any(self.queues), "the device is idle"
        return np.array(tile.strided(cells).view(array(tile.linear)))

    def time_commands(self, wanted: bool) -> None:
        self.timed = wanted

    def flush(self) -> None:
        self.flushed = True

    def wait(self, patience_s: float | None = None, keep: object = None) -> bool:
        self.flush()
        for queue in self.queues:
            while queue:
                self.world.finish(queue[-1])
        self.timed = True
        return True

    def _command(self, queue: deque[LazyEvent], what: str, work: Callable[[], None]) -> Command:
        def command(wait_for: Sequence[Event] | None = None) -> Event:
            before = [e.event if isinstance(e, Handle) else e for e in wait_for or ()]
            for one in before:
                assert isinstance(one, LazyEvent) and one.executor.context is self.context, (
                    "an event never leaves its context"
                )
            event = LazyEvent(self, f"{self.name} {what}", work, before)
            queue.append(event)
            self.flushed = False
            return Handle(event)

        return command


class Simultaneous(LazyExecutor):
    """As it begins with a launch, all other devices do what they have been given."""

    def launch_command(self, *given: Any, **named: Any) -> Command:
        def command(wait_for: Sequence[Event] | None = None) -> Event:
            event = launch(wait_for)
            for other in [queue[-1].executor for queue in self.world.queues if queue]:
                if other is not self:
                    other.wait()
            self.flush()
            return event

        launch = super().launch_command(*given, **named)
        return command

    def move_from(self, tile: Tile, cells: Shape) -> npt.NDArray[Any]:
        self.wait()     # a copy that blocks comes after what was enqueued before
        return super().move_from(tile, cells)


def random_devices(world: World, rng: random.Random, n_devices: int) -> list[LazyExecutor]:
    """As many; half of them compute in the host's memory, and half of those in one context."""
    shares = [rng.random() < 0.5 for _ in range(n_devices)]
    together = [one and rng.random() < 0.5 for one in shares]
    return [
        LazyExecutor(world, shares_host=host, name=str(n), context=world if one else None)
        for n, (host, one) in enumerate(zip(shares, together))
    ]


def array(memory: Linear) -> npt.NDArray[Any]:
    assert isinstance(memory, np.ndarray)
    return memory
