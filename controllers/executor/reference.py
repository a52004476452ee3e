# SPDX-License-Identifier: MIT
"""The NumPy reference as a device: the same verbs, done by the host at once."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device import Device
from controllers.device.event import Command, Event, HostEvent, in_order
from controllers.executor.clock import Clock
from controllers.executor.executor import Copied, Digesting, Folding
from controllers.kernel.configuration import KernelUse, Placed, own_configurations
from controllers.memory.ledger import Ledger, cap_for
from controllers.memory.tile import Linear, Tile, host_tile_memory
from controllers.program.accumulator import Accumulator
from controllers.program.application import apply_sweep, cells_outside, folded, no_cells
from controllers.program.extension import Fill
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided, elements


class ReferenceExecutor:
    """Runs programs in NumPy (`program.reference`): slow, needs no OpenCL, right by definition."""

    shares_host = True

    def __init__(self, device: Device, *, memory_cap: str | int | None = None) -> None:
        self.device = device
        self.ledger = Ledger(device.name, cap_for(device.capacity_bytes, memory_cap))
        self.clock = Clock()    # the host's own
        self.context = object()     # nobody else's

    def __repr__(self) -> str:
        return "<ReferenceExecutor>"

    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile:
        """A new tile, zeroed."""
        host = host_tile_memory(geometry.n_elements, dtype, self.ledger)
        return Tile(geometry, dtype, host, None)

    def staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory for packed cells."""
        array = np.zeros(n_elements, dtype)
        self.ledger.hold(array, array.nbytes, "host staging")
        return array

    def launch_command(
        self,
        program: Program,
        sweep: Sweep,
        reads: Mapping[str, Tile],
        writes: Mapping[str, Tile],
        over: Shape,
        around: Surroundings,
        folding: Folding | Digesting | None = None,
        part: int = 0,
    ) -> Command:
        """Compute the cells `over` of the tiles `writes`, with what `around` says then.

        folding: what takes the folds, of which this is the box number `part`.
        """
        targets = {f: tile.view(sweep.written(f, over)) for f, tile in writes.items()}

        def cells_of(field: str, cells: Shape) -> npt.NDArray[Any]:
            return reads[field].view(cells)

        def compute() -> None:
            if folding is not None:
                assert isinstance(folding, HostFolding)
                folding.parts[part] = folded(program, sweep, cells_of, over, around)
            found = apply_sweep(sweep, cells_of, over, program.dtypes, around)
            if sweep.stage.overwrites:      # what is stored last may be what was there before
                found = {field: np.array(values) for field, values in found.items()}
            for field, values in found.items():
                targets[field][...] = values

        return _at_once(compute)

    def folding(self, program: Program, sweep: Sweep, boxes: Sequence[Shape]) -> Folding:
        """What takes the folds of the launches of a sweep over these boxes."""
        return HostFolding(no_cells(program, sweep), len(boxes))

    def fill_command(
        self, program: Program, fills: Sequence[tuple[Fill, Tile]], around: Surroundings
    ) -> Command:
        """Make cells outside the domain, each of others of the same tile."""

        def compute() -> None:
            for (extension, dtype, _, boxes), tile in fills:
                for box in boxes:
                    tile.view(box)[...] = cells_outside(extension, tile.view, box, dtype, around)

        return _at_once(compute)

    def copies_command(self, itemsize: int, copies: Sequence[Copied]) -> Command:
        """Copy boxes of cells between several pairs of arrays."""
        return in_order([self.copy_command(a, b, itemsize, *moves) for a, b, moves in copies])

    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, *moves: tuple[Strided, Strided]
    ) -> Command:
        """Copy boxes of cells between two arrays."""
        assert isinstance(source, np.ndarray) and isinstance(target, np.ndarray)
        taken, given = (elements(memory, f"V{itemsize}") for memory in (source, target))
        views = [(to.view(given), at.view(taken)) for at, to in moves]

        def move() -> None:
            for room, cells in views:
                np.copyto(room, cells)

        return _at_once(move)

    def constants_nbytes(self, program: Program, sweep: Sweep) -> int:
        """Bytes of tables that a launch of a sweep takes: none."""
        return 0

    def folding_nbytes(
        self, program: Program, sweep: Sweep, boxes: Sequence[Placed]
    ) -> int:
        """None; folds are made where the cells are computed."""
        return 0

    def fill_nbytes(self, fills: Sequence[Fill]) -> int:
        """None, as for launches."""
        return 0

    def clear(self, tile: Tile, used: Shape | None = None) -> None:
        """All of `tile` becomes 0; all cells but `used` are, if that is given."""
        tile.clear_host(used)

    def move_to(self, tile: Tile, cells: Shape, values: npt.NDArray[Any]) -> None:
        """`values` become the cells `cells` of `tile`."""
        tile.view(cells)[...] = values

    def move_from(self, tile: Tile, cells: Shape) -> npt.NDArray[Any]:
        """The cells `cells` of `tile` as a new array."""
        target = np.array(tile.view(cells))
        self.ledger.hold(target, target.nbytes, "host images")
        return target

    def configurations(
        self, program: Program, sweep: Sweep, boxes: Iterable[Placed]
    ) -> list[KernelUse]:
        """Nothing is configured."""
        return own_configurations(sweep, boxes, self.device.name, self.device.kind)

    def usual_steps(self, program: Program, sweep: Sweep, placed: Placed) -> int:
        """One: several steps at once are no faster here."""
        return 1

    def read_clock(self) -> None:
        """It is the host's own."""

    def time_commands(self, wanted: bool) -> None:
        """They always are."""

    def flush(self) -> None:
        """Nothing is ever pending."""

    def wait(self, patience_s: float | None = None, keep: object = None) -> bool:
        """Nothing is ever pending."""
        return True


class HostFolding:
    """The folds of some launches, each as it was computed last: `parts`, by the launch."""

    nbytes = 0

    def __init__(self, empties: Mapping[str, Accumulator], n_parts: int) -> None:
        self.accumulators = self._empties = empties
        self.parts = [empties] * n_parts

    def command(self, wait_for: Sequence[Event] | None = None) -> Event:
        """Merge them, at once."""
        return _at_once(self.merge)(wait_for)

    reading = command

    def merge(self) -> None:
        """What the parts have come to is the result."""
        self.accumulators = {
            name: reduce(Accumulator.merged, (part[name] for part in self.parts), empty)
            for name, empty in self._empties.items()
        }


def _at_once(work: Callable[[], None]) -> Command:
    def command(wait_for: Sequence[Event] | None = None) -> Event:
        for event in wait_for or ():
            event.wait()
        start = time.perf_counter_ns()
        work()
        return HostEvent(start, time.perf_counter_ns())

    return command
