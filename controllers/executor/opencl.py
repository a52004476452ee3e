# SPDX-License-Identifier: MIT
"""An executor is one opened OpenCL device with its kernels: those of sweeps and of users."""
from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyopencl as cl

from controllers.device import Device
from controllers.device.event import Command, Event, in_order
from controllers.executor.copies import Copies
from controllers.executor.executor import Folding
from controllers.executor.opened_device import OpenedDevice
from controllers.executor.scalar_arguments import ScalarArguments
from controllers.kernel.build import Built, build, compiled, enqueue_kernel, parameters
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import KernelUse, Placed, launch_of, with_launches
from controllers.kernel.crash import named
from controllers.kernel.offer import Offer, offer
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.stage_kernel import box_values, options_of, stage_kernel, tile_values
from controllers.kernel.user_kernel import UserKernel, as_compiled, local_nbytes
from controllers.kgt import Launch, outside
from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.outside import outside_kernel
from controllers.kgt.parameter import bind
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.fixed import accessors
from controllers.kgt.text.given import Table, tables_of
from controllers.memory.tile import Linear, Tile
from controllers.program.dtypes import given_dtype
from controllers.program.extension import Extension
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Strided


class SharedKernel:
    """A kernel that is launched with other arguments each time, perhaps by several threads."""

    def __init__(self, built: Built) -> None:
        self.kernel = compiled(built.program, built.name)
        self.enqueue = built.enqueue
        self.lock = threading.Lock()    # from the arguments to the launch


class OpenCLExecutor(OpenedDevice):
    """An opened device and its kernels, which compute sweeps as `kernel` says."""

    def __init__(
        self,
        device: Device,
        *,
        zero_copy: bool = True,
        kernel: KernelChoice = SPECIALISED,
        memory_cap: str | int | None = None,
    ) -> None:
        super().__init__(device, zero_copy, memory_cap)
        self.kernel = kernel    # how sweeps are computed
        self.choices = Choices(device)      # and how these kernels are configured
        self._kernels: dict[tuple[str, str], Built] = {}
        self._copies = Copies(self.context, device.kind == "cpu", self.constants)

    def __repr__(self) -> str:
        return f"<OpenCLExecutor {self.device.name!r}>"

    def folding(self, program: Program, sweep: Sweep, boxes: Sequence[Shape]) -> Folding:
        """What takes the folds of launches: none so far."""
        raise ValueError(
            f"sweep {sweep.name!r} folds {', '.join(sweep.folds)}, which OpenCL devices do not do "
            f"yet; use devices='reference'"
        )

    def launch_command(
        self,
        program: Program,
        sweep: Sweep,
        reads: Mapping[str, Tile],
        writes: Mapping[str, Tile],
        over: Shape,
        around: Surroundings,
        folding: Folding | None = None,
        part: int = 0,
    ) -> Command:
        """Compute the cells `over`, which is not empty, of the tiles `writes`.

        Scalars are those that `around` has at each launch.
        """
        assert folding is None, "`folding` has refused"
        tiles = {**writes, **reads}
        geometries = {field: tile.geometry for field, tile in tiles.items()}
        launch = self.launch_of(program, sweep, (over, geometries))
        source, built = self.build(program, sweep, launch)
        values: dict[str, object] = box_values(over, sweep.cells)
        values |= {f"{field}_new": tile.buffer for field, tile in writes.items()}
        for field, tile in tiles.items():
            reachable = tile.geometry.box.shift(tuple(-first for first in over.lower))
            values |= self.tile_arguments(field, launch.fields[field], reachable)
        values |= {field: tile.buffer for field, tile in reads.items()}
        real = given_dtype(sweep.stage, program.dtypes)
        values |= self._tables(tables_of(sweep.stage), over, around, real)
        if source.tables is not None:
            (written,) = writes.values()
            tables = source.tables(written.strided(over).pitches)
            values |= {name: self.constants(array) for name, array in tables.items()}
        local = local_nbytes(source)
        values |= {name: cl.LocalMemory(nbytes) for name, nbytes in local.items()}
        numbers = ScalarArguments.of(source.parameters, around)
        values |= numbers.values
        arguments = bind(source.title, source.parameters, values, source.scalars)
        sizes = source.work_sizes(over.extent, self.device.kind == "cpu")
        return self.kernel_command(built, arguments, sizes, numbers)

    def fill_command(
        self,
        program: Program,
        extension: Extension,
        tile: Tile,
        boxes: Sequence[Shape],
        around: Surroundings,
    ) -> Command:
        """Make the cells `boxes`, outside the domain, of others of the same tile."""
        dtype, name = str(tile.dtype), outside.NAME
        kernel = outside_kernel(extension, dtype)
        key = (name, kernel.source)
        if key not in self._kernels:
            options = options_of(kernel.stage, dtype, program.math, self.device, kernel.divides)
            made = build(self.context, name, kernel.source, options, "", program.math)
            self._kernels[key] = Built(name, made, kernel.parameters)
        real = given_dtype(kernel.stage, dtype)
        built, numbers = self._kernels[key], ScalarArguments.of(kernel.parameters, around)
        table = self.constants(outside.table(tile.geometry, extension.domain, boxes))
        given = self._tables(tables_of(kernel.stage), tile.geometry.box, around, real)
        values = {**given, **numbers.values}
        values |= box_values(tile.geometry.box) | {"u": tile.buffer, "layout": table}
        n_cells = sum(box.n_cells for box in boxes)
        (local,) = work_sizes((n_cells,), self.device.kind == "cpu")[1]
        sizes = (-(-n_cells // local) * local,), (local,)
        arguments = bind(name, built.parameters, values, {})
        return self.kernel_command(built, arguments, sizes, numbers)

    def accessors(self, n_axes: int, macros: Mapping[str, str]) -> str:
        """The macros that a user's kernel sees."""
        return accessors(n_axes, macros)

    def tile_arguments(self, name: str, where: Strided, cells: Shape) -> dict[str, object]:
        """The values of the parameters TILE(name), for the box that lies at `where`.

        `cells` may be touched, counted from the first cell of the box.
        """
        return {**tile_values(name, where)}

    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, *moves: tuple[Strided, Strided]
    ) -> Command:
        """Copy boxes of cells between two buffers of this controller."""
        launches = self._copies.launches(source, target, itemsize, moves)
        return in_order([self.kernel_command(*launch) for launch in launches])

    def build(
        self, program: Program, sweep: Sweep, launch: Launch | None = None
    ) -> tuple[StageKernel, Built]:
        """The kernel of a sweep for a launch, or else for a large box; compiled once.

        Raises what `source` raises, and BuildError where the driver does not compile it.
        """
        source = self.source(program, sweep, launch)
        key = (source.name, source.source)
        if key not in self._kernels:
            made = build(
                self.context, source.title, source.source, source.options, source.file,
                source.math, source.hint,
            )  # fmt: skip
            known = source.parameters
            if isinstance(source, UserKernel):
                known = parameters(compiled(made, source.name), source.roles)
            self._kernels[key] = Built(source.name, made, known)
        built = self._kernels[key]
        if isinstance(source, UserKernel):
            source = as_compiled(source, built.parameters, built.group, program)
        return source, built

    def source(
        self, program: Program, sweep: Sweep, launch: Launch | None = None
    ) -> StageKernel:
        """The text of the kernel of a sweep for a launch, or else for a large box.

        ValueError where the device lacks what strict arithmetic needs, or the kernel does not
        suit the sweep.
        """
        return stage_kernel(
            self.kernel, program, sweep.stage, self.device, self.choices, launch, self.accessors
        )

    def configurations(
        self, program: Program, sweep: Sweep, boxes: Iterable[Placed]
    ) -> list[KernelUse]:
        """How the kernels of a sweep are built, and launched on `boxes`."""
        device = self.device.name

        def kernel_of(placed: Placed) -> tuple[KernelUse, WorkSizes]:
            launch = self.launch_of(program, sweep, placed)
            source, built = self.build(program, sweep, launch)
            made = KernelUse(
                device, sweep.name, built.name, source.origin, source.options, text=source.source
            )
            return made, source.work_sizes

        return with_launches(boxes, kernel_of, is_cpu=self.device.kind == "cpu")

    def usual_steps(self, program: Program, sweep: Sweep, placed: Placed) -> int:
        """How many steps of a box are best computed at once; `sweep` computes one."""
        launch = self.launch_of(program, sweep, placed)
        return self.choices.usual_steps(self.offer(program, sweep), launch)

    def offer(self, program: Program, sweep: Sweep) -> Offer:
        """What there is to choose from for the launches of a sweep."""
        return offer(self.kernel, program, sweep.stage, self.device)

    def launch_of(self, program: Program, sweep: Sweep, placed: Placed) -> Launch:
        """What is known of a launch of a sweep on this device."""
        device = self.device
        return launch_of(
            program, sweep, placed,
            cache_bytes=device.cache_bytes, local_bytes=device.local_bytes,
            max_items=device.max_items, units=device.compute_units,
            nvidia="nvidia" in device.vendor.lower(),
        )  # fmt: skip

    def constants_nbytes(self, program: Program, sweep: Sweep) -> int:
        """Bytes of tables that each launch of `sweep` takes."""
        tables = self.source(program, sweep).tables
        if tables is None:
            return 0
        return sum(array.nbytes for array in tables((1,) * program.n_axes).values())

    def _tables(
        self, tables: Iterable[Table], over: Shape, around: Surroundings, dtype: str
    ) -> dict[str, object]:
        """What tables hold for a box, by their parameters."""
        found: dict[str, object] = {}
        for table in tables:
            axis = table.of.axis
            low = tuple(table.low if at == axis else 0 for at in range(over.n_axes))
            high = tuple(table.high if at == axis else 0 for at in range(over.n_axes))
            values = around.value(table.of, over.grow(low, high), dtype)
            found[table.name] = self.constants(np.ascontiguousarray(values.reshape(-1)))
        return found

    def kernel_command(
        self,
        built: Built,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
        numbers: ScalarArguments | None = None,
    ) -> Command:
        """Launch `built` with these arguments, over global and local sizes in OpenCL's order.

        `numbers` are those of the arguments that may change from launch to launch.
        """
        kernel = compiled(built.program, built.name)
        kernel.set_args(*arguments)  # type: ignore[arg-type]
        lane, enqueue, (global_size, local_size) = self.compute_lane, enqueue_kernel, sizes

        def in_native_code(
            wait_for: Sequence[Event] | None = None, keep: object = tuple(arguments)
        ) -> Event:
            # `keep`: a kernel does not hold the buffers that are its arguments
            return enqueue(lane.queue, kernel, global_size, local_size, None, wait_for)

        command: Command = named(built.label, in_native_code)
        if not numbers:
            return command

        def told(wait_for: Sequence[Event] | None = None) -> Event:
            numbers.set(kernel)     # what is enqueued already keeps its own
            return command(wait_for)

        return told

    def launch_once_command(
        self,
        kernel: SharedKernel,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> Command:
        """The same with a kernel whose arguments are set at each call: cheaper to make."""
        lane, enqueue, (global_size, local_size) = self.compute_lane, kernel.enqueue, sizes

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            with kernel.lock:
                kernel.kernel.set_args(*arguments)  # type: ignore[arg-type]
                return enqueue(
                    lane.queue, kernel.kernel, global_size, local_size, None, wait_for
                )

        return command
