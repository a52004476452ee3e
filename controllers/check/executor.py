# SPDX-License-Identifier: MIT
"""The executor of the checked mode: guarded tiles, users' kernels with accessors that look."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import ceil
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.check import oclgrind
from controllers.check.accessors import Declared, box_arguments, checked_accessors
from controllers.check.finding import Complaint, Index
from controllers.check.inspection import TileUse
from controllers.check.looking import looking
from controllers.check.memory import GuardedTile
from controllers.device import Device
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.build import BuildError, Built, build
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.kgt import Launch, StageKernel
from controllers.kgt.text.emitter import used_fields
from controllers.kgt.text.report import LINE, OUTSIDE, REPORT, REPORT_LONGS
from controllers.memory.allocation import device_memory
from controllers.memory.tile import PAGE, Tile, host_tile_memory
from controllers.program.offsets import MAX_AXES
from controllers.program.program import Program
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

_T = TypeVar("_T")

_ADDRESS = """
__kernel void address(__global const uchar *tile, __global ulong *result) { *result = (ulong)tile; }
"""
GUARD = 4096        # elements before and behind a tile, at least
GUARD_ROWS = 4      # ... and at least so many steps on axis 0
_NO_FAULT = np.zeros(REPORT_LONGS, np.int64)


class CheckedExecutor(OpenCLExecutor):
    """An `OpenCLExecutor` that can say what a kernel has done wrong.

    simulated: `device` is Oclgrind's, whose reports are heard too.
    """

    def __init__(
        self,
        device: Device,
        *,
        zero_copy: bool = True,
        kernel: KernelChoice = SPECIALISED,
        memory_cap: str | int | None = None,
        simulated: bool = False,
    ) -> None:
        self._log = oclgrind.ReportFile() if simulated else None
        with self._log.listening() if self._log else _nothing():
            super().__init__(device, zero_copy=zero_copy, kernel=kernel, memory_cap=memory_cap)
        self._reports: dict[str, cl.Buffer] = {}    # by the parameter of the tile
        self._declared: Declared | None = None
        self._looks = True          # whether accessors look
        self._reversed = False

    @property
    def simulated(self) -> bool:
        """Whether kernels run under Oclgrind."""
        return self._log is not None

    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile:
        """A new tile, zeroed, between guards; without them on Oclgrind, which knows its end."""
        if self.simulated:
            return super().tile(geometry, dtype)
        least = max(GUARD, GUARD_ROWS * geometry.pitches[0]) * dtype.itemsize
        guard = ceil(least / PAGE) * PAGE // dtype.itemsize     # keeps the alignment
        n, n_whole = geometry.n_elements, geometry.n_elements + 2 * guard
        if self.shares_host:
            whole = host_tile_memory(n_whole, dtype, self.ledger)
            host = whole[guard : guard + n]
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            buffer = cl.Buffer(self.context, flags, hostbuf=host)
            return GuardedTile(geometry, dtype, host, buffer, whole, guard)
        around = device_memory(self.context, self.ledger, n_whole * dtype.itemsize, "tiles")
        part = around.get_sub_region(guard * dtype.itemsize, n * dtype.itemsize)
        tile = GuardedTile(geometry, dtype, None, part, around, guard)
        self.clear(tile)
        return tile

    def accessors(self, n_axes: int, macros: Mapping[str, str]) -> str:
        if not self._looks:
            return super().accessors(n_axes, macros)
        return checked_accessors(n_axes, macros, self._declared, self._reversed)

    def build(
        self, program: Program, sweep: Sweep, launch: Launch | None = None
    ) -> tuple[StageKernel, Built]:
        kernel, stage = self.kernel, sweep.stage
        if not isinstance(kernel, Kernel) or not kernel.computes(program, stage):
            seen = looking(sweep, self.simulated) if stage.elements else sweep
            return super().build(program, seen, launch)
        self._declared = {field: kernel.offsets(stage, field) for field in used_fields(stage)}
        return self.looking(lambda: super(CheckedExecutor, self).build(program, sweep, launch))

    def looking(self, build: Callable[[], _T]) -> _T:
        """What `build` returns, with accessors that look; without where that does not compile."""
        try:
            return build()
        except BuildError:
            self._looks = False
            try:
                return build()
            finally:
                self._looks = True

    @contextmanager
    def reversed(self) -> Iterator[None]:
        """Kernels that are built in here compute the cells of a box from its end."""
        self._reversed = True
        try:
            yield
        finally:
            self._reversed = False

    def tile_arguments(self, name: str, where: Strided, cells: Shape) -> dict[str, object]:
        values = super().tile_arguments(name, where, cells)
        if name not in self._reports:
            nbytes = _NO_FAULT.nbytes
            self._reports[name] = device_memory(self.context, self.ledger, nbytes, "constants")
            cl.enqueue_copy(self.transfer, self._reports[name], _NO_FAULT)
        return {**values, **box_arguments(name, cells), f"{REPORT}{name}": self._reports[name]}

    def heard(self, kernel: str, over: Shape, uses: Sequence[TileUse]) -> Complaint | None:
        """What accessors, or Oclgrind, complain of since the last call; `over` is the launch's."""
        found: list[Complaint] = []
        fields = {use.name: use.field for use in uses}
        for name, report in self._reports.items():
            facts = np.empty_like(_NO_FAULT)
            cl.enqueue_copy(self.transfer, facts, report)
            if facts[0]:
                cl.enqueue_copy(self.transfer, report, _NO_FAULT)
                found.append(_reported(facts, kernel, over, name, fields.get(name, name)))
        news = oclgrind.gravest(self._log.news()) if self._log else None
        if news is not None:
            use, cell = self._cell(oclgrind.address(news), uses)
            found.append(oclgrind.complaint(news, kernel, use.name if use else "", cell))
        return found[0] if found else None

    def _cell(self, address: int, uses: Sequence[TileUse]) -> tuple[TileUse | None, Index]:
        """The tile, and its cell, that an address of the simulator lies in."""
        for use in uses:
            offset = address - self._address(use.memory.tile)
            if 0 <= offset < use.memory.tile.nbytes:
                return use, use.memory.cell(offset // use.memory.tile.dtype.itemsize)
        return None, None

    def _address(self, tile: Tile) -> int:
        """Where a tile begins for kernels."""
        program = build(self.context, "address", _ADDRESS, self.own_options)
        result = np.zeros(1, np.uint64)
        buffer = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, result.nbytes)
        cl.Kernel(program, "address")(self.compute, (1,), None, tile.buffer, buffer)
        cl.enqueue_copy(self.compute, result, buffer)
        return int(result[0])


def _reported(
    facts: npt.NDArray[np.int64], kernel: str, over: Shape, name: str, field: str
) -> Complaint:
    """The first fault that the accessors of one tile have found."""
    n_axes = over.n_axes
    touched, own = (facts[first : first + n_axes] for first in (1, 1 + MAX_AXES))
    cell = tuple(int(n) for n in touched + over.lower)
    if facts[0] == OUTSIDE:
        what = f"kernel {kernel!r} touches cell {cell} of {name}, which is not among those it has"
        return Complaint("bounds", what, field, cell)
    offset = tuple(int(n) for n in touched - own)
    item = tuple(int(n) for n in own + over.lower)
    line = f", in line {facts[LINE]}" if facts[LINE] else ""
    what = (
        f"kernel {kernel!r} reads {name} at the offset {offset} of cell {item}, which is not "
        f"declared{line}"
    )
    return Complaint("undeclared", what, field, item)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
