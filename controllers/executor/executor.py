# SPDX-License-Identifier: MIT
"""What the engine asks of a controller, whatever it computes on.

`OpenCLExecutor` (OpenCL) and `ReferenceExecutor` (NumPy) have it; their docstrings say more.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.device import Device
from controllers.device.event import Command
from controllers.executor.clock import Clock
from controllers.kernel.configuration import KernelUse, Placed
from controllers.memory.ledger import Ledger
from controllers.memory.tile import Linear, Tile
from controllers.program.accumulator import Accumulator
from controllers.program.extension import Fill
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

if TYPE_CHECKING:
    from controllers.executor.slot_memory import SlotMemory

# Boxes of cells from one memory to another: these, and where each box lies in both.
Copied: TypeAlias = tuple[Linear, Linear, Sequence[tuple[Strided, Strided]]]


class Folding(Protocol):
    """Takes what the launches of a sweep at a place fold, and merges it.

    accumulators: of each fold, once `command` is complete, until the next launch.  reading: the
    same for a host that waits for the launches, too.  nbytes: of memory on the device.
    """

    @property
    def accumulators(self) -> Mapping[str, Accumulator]: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def command(self) -> Command: ...
    @property
    def reading(self) -> Command: ...


class Digesting(Protocol):
    """Takes the digest of what launches at a place read of a field."""

    @property
    def found(self) -> tuple[int, int]: ...


class Executor(Protocol):
    """What the engine asks of a controller; `OpenCLExecutor` and `ReferenceExecutor` have it."""

    @property
    def device(self) -> Device: ...
    @property
    def shares_host(self) -> bool: ...
    @property
    def context(self) -> object: ...
    @property
    def ledger(self) -> Ledger: ...
    @property
    def clock(self) -> Clock: ...
    def read_clock(self) -> None: ...
    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile: ...
    def staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]: ...
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
    ) -> Command: ...
    def folding(self, program: Program, sweep: Sweep, boxes: Sequence[Shape]) -> Folding: ...
    def fill_command(
        self, program: Program, fills: Sequence[tuple[Fill, Tile]], around: Surroundings
    ) -> Command: ...
    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, *moves: tuple[Strided, Strided]
    ) -> Command: ...
    def copies_command(self, itemsize: int, copies: Sequence[Copied]) -> Command: ...
    def constants_nbytes(self, program: Program, sweep: Sweep) -> int: ...
    def folding_nbytes(
        self, program: Program, sweep: Sweep, boxes: Sequence[Placed]
    ) -> int: ...
    def fill_nbytes(self, fills: Sequence[Fill]) -> int: ...
    def clear(self, tile: Tile, used: Shape | None = None) -> None: ...
    def move_to(self, tile: Tile, cells: Shape, values: npt.NDArray[Any]) -> None: ...
    def move_from(self, tile: Tile, cells: Shape) -> npt.NDArray[Any]: ...
    def configurations(
        self, program: Program, sweep: Sweep, boxes: Iterable[Placed]
    ) -> list[KernelUse]: ...
    def usual_steps(self, program: Program, sweep: Sweep, placed: Placed) -> int: ...
    def time_commands(self, wanted: bool) -> None: ...
    def flush(self) -> None: ...
    def wait(self, patience_s: float | None = None, keep: object = None) -> bool: ...


class DeviceExecutor(Executor, Protocol):
    """... and of one whose device has memory of its own."""

    @property
    def slot_memory(self) -> SlotMemory: ...
    def device_staging(self, n_elements: int, dtype: np.dtype[Any]) -> Linear: ...
    def download_command(
        self, source: Linear, cells: Strided, target: npt.NDArray[Any]
    ) -> Command: ...
    def upload_command(
        self, source: npt.NDArray[Any], target: Linear, cells: Strided
    ) -> Command: ...
    def image_memory(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]: ...
    def bring_command(
        self, image: npt.NDArray[Any], slot: Linear, here: Strided, there: Strided
    ) -> Command: ...
    def retrieve_command(
        self, image: npt.NDArray[Any], slot: Linear, here: Strided, there: Strided
    ) -> Command: ...
