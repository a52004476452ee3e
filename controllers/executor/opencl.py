# SPDX-License-Identifier: MIT
"""An executor is one opened OpenCL device with its kernels: those of sweeps and of users."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyopencl as cl

from controllers.device import Device
from controllers.device.event import Command, in_order
from controllers.executor.copies import Copies, without_runs
from controllers.executor.digesting import DeviceDigest
from controllers.executor.executor import Copied, Digesting, Folding
from controllers.executor.folding import DeviceFolding
from controllers.executor.launching_device import LaunchingDevice
from controllers.executor.scalar_arguments import ScalarArguments
from controllers.executor.table_buffers import table_buffers
from controllers.executor.transfer import run_on_device
from controllers.kernel.build import Built, build, compiled, parameters
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import KernelUse, Placed, launch_of, with_launches
from controllers.kernel.offer import Offer, offer
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.stage_kernel import box_values, options_of, stage_kernel, tile_values
from controllers.kernel.user_kernel import UserKernel, as_compiled, local_nbytes
from controllers.kernel.variant import Kernel
from controllers.kgt import Launch, outside
from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.outside import outside_kernel
from controllers.kgt.parameter import bind
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.fixed import accessors
from controllers.kgt.text.fold_memory import memory_nbytes, n_slots
from controllers.kgt.text.fold_values import values_of, with_values
from controllers.kgt.text.given import tables_nbytes, tables_of
from controllers.memory.tile import Linear, Tile
from controllers.process.once import done_once
from controllers.program.dtypes import given_dtype
from controllers.program.extension import Fill
from controllers.program.program import Program
from controllers.program.rounds import shown
from controllers.program.steps import without_folds
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Strided


class OpenCLExecutor(LaunchingDevice):
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
        is_cpu = device.kind == "cpu"
        self._copies = Copies(self.context, is_cpu, self.constants, self.own_options)

    def __repr__(self) -> str:
        return f"<OpenCLExecutor {self.device.name!r}>"

    def launch_command(
        self, program: Program, sweep: Sweep, reads: Mapping[str, Tile],
        writes: Mapping[str, Tile], over: Shape, around: Surroundings,
        folding: Folding | Digesting | None = None, part: int = 0,
    ) -> Command:  # fmt: skip
        """Compute the cells `over`, which is not empty, of the tiles `writes`.

        Scalars are those that `around` has at each launch.  folding: what takes the folds, of
        which this is the box number `part`; without it, a sweep that updates fields folds nothing.
        Or what takes the digest of the field that it updates, as it is read.
        """
        parts, where = [(over, (0,) * over.n_axes)], around.positions
        if isinstance(self.kernel, Kernel) and self.kernel.computes(program, sweep.stage):
            parts = shown(over, where.domain, where.periodic)   # it may look at indices
        return in_order([
            self._launch(program, sweep, reads, writes, cells, around, folding, part, by)
            for cells, by in parts
        ])  # fmt: skip

    def _launch(
        self, program: Program, sweep: Sweep, reads: Mapping[str, Tile],
        writes: Mapping[str, Tile], over: Shape, around: Surroundings,
        folding: Folding | Digesting | None, part: int, by: tuple[int, ...],
    ) -> Command:  # fmt: skip
        """The same, with indices that are moved `by` so many."""
        digests = isinstance(folding, DeviceDigest)
        if (folding is None or digests) and sweep.writes:
            sweep = replace(sweep, stage=without_folds(sweep.stage))
        elif folding is None:
            folding = self.folding(program, sweep, [over])
        tiles = {**writes, **reads}
        geometries = {field: tile.geometry for field, tile in tiles.items()}
        launch = self.launch_of(program, sweep, (over, geometries))
        launch = replace(launch, digests=digests)
        source, built = self.build(program, sweep, launch)
        values: dict[str, object] = box_values(over.shift(by), sweep.cells.shift(by))
        values |= {f"{field}_new": tile.buffer for field, tile in writes.items()}
        for field, tile in tiles.items():
            reachable = tile.geometry.box.shift(tuple(-first for first in over.lower))
            values |= self.tile_arguments(field, launch.fields[field], reachable)
        values |= {field: tile.buffer for field, tile in reads.items()}
        real = given_dtype(sweep.stage, program.dtypes)
        values |= table_buffers(self, tables_of(sweep.stage), over, around, real)
        if source.tables is not None:
            (written,) = writes.values()
            tables = source.tables(written.strided(over).pitches)
            values |= {name: self.constants(array) for name, array in tables.items()}
        local = local_nbytes(source)
        values |= {name: cl.LocalMemory(nbytes) for name, nbytes in local.items()}
        numbers = ScalarArguments.of(source.parameters, around, program.rules)
        values |= numbers.values
        if isinstance(folding, DeviceDigest):
            values |= folding.arguments(over)
        elif folding is not None:
            assert isinstance(folding, DeviceFolding), "one of this executor"
            folding.domain = program.boundaries[sweep.stage.home].points(
                around.positions.domain, around.positions.periodic
            )
            values |= folding.arguments
        arguments = bind(source.title, source.parameters, values, source.scalars)
        sizes = source.work_sizes(over.extent, self.device.kind == "cpu")
        if folding is None:
            return self.kernel_command(built, arguments, sizes, numbers)
        show = folding.bound(part, source, sizes)
        return self.kernel_command(built, arguments, sizes, numbers, show, folding)

    def folding(self, program: Program, sweep: Sweep, boxes: Sequence[Shape]) -> DeviceFolding:
        """What takes the folds of the launches of a sweep over these boxes."""
        return DeviceFolding(self, values_of(with_values(program, sweep.stage)[1]), boxes)

    def fill_command(
        self, program: Program, fills: Sequence[tuple[Fill, Tile]], around: Surroundings
    ) -> Command:
        """Make cells outside the domain, each of others of the same tile; alike fields at once."""
        return in_order([
            self._fill(program, [fills[number] for number in numbers], around)
            for numbers in outside.together([fill for fill, _ in fills])
        ])  # fmt: skip

    def _fill(
        self, program: Program, fills: Sequence[tuple[Fill, Tile]], around: Surroundings
    ) -> Command:
        name, ((_, dtype, geometry, _), _) = outside.NAME, fills[0]
        kernel = outside_kernel([fill.extension for fill, _ in fills], dtype)
        key = (name, kernel.source)
        if key not in self._kernels:
            usual = options_of(kernel.stage, dtype, program.math, self.device, kernel.divides)
            options = (*usual, *self.own_options)
            made = build(self.context, name, kernel.source, options, "", program.math)
            self._kernels[key] = Built(name, made, kernel.parameters)
        real = given_dtype(kernel.stage, dtype)
        built, numbers = self._kernels[key], ScalarArguments.of(kernel.parameters, around)
        values = table_buffers(self, tables_of(kernel.stage), geometry.box, around, real)
        values |= {**numbers.values, **box_values(geometry.box)}
        values |= {f"u_{number}": tile.buffer for number, (_, tile) in enumerate(fills)}
        values["layout"] = self.constants(outside.tables([fill for fill, _ in fills]))
        most = max(sum(box.n_cells for box in fill.boxes) for fill, _ in fills)
        (local,) = work_sizes((most,), self.device.kind == "cpu")[1]
        sizes = (-(-most // local) * local, len(fills)), (local, 1)
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
        return self.copies_command(itemsize, [(source, target, moves)])

    def copies_command(self, itemsize: int, copies: Sequence[Copied]) -> Command:
        """Copy boxes of cells between several pairs of buffers of this controller."""
        runs, rest = ([], copies) if self.device.kind == "cpu" else without_runs(itemsize, copies)
        moves = [run_on_device(self.compute_lane, *run) for run in runs]
        launches = self._copies.launches(itemsize, rest)
        return in_order([*moves, *(self.kernel_command(*launch) for launch in launches)])

    @done_once()
    def build(
        self, program: Program, sweep: Sweep, launch: Launch | None = None
    ) -> tuple[StageKernel, Built]:
        """The kernel of a sweep for a launch, or else for a large box; compiled once.

        Raises what `source` raises, and BuildError where the driver does not compile it.
        """
        source = self.source(program, sweep, launch)
        key = (source.name, source.source)
        if key not in self._kernels:
            options = (*source.options, *self.own_options)
            title, text, file = source.title, source.source, source.file
            made = build(self.context, title, text, options, file, source.math, source.hint)
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
        if sweep.writes:    # folds are those of launches of one step
            sweep = replace(sweep, stage=without_folds(sweep.stage))
        return self.choices.usual_steps(self.offer(program, sweep), launch)

    def offer(self, program: Program, sweep: Sweep) -> Offer:
        """What there is to choose from for the launches of a sweep."""
        return offer(self.kernel, program, sweep.stage, self.device)

    def takes_digests(self, program: Program, sweep: Sweep, placed: Placed) -> bool:
        """Whether a launch of a sweep can take the digest of the field that it updates."""
        launch = self.launch_of(program, sweep, placed)
        return self.shares_host and self.choices.takes_digests(self.offer(program, sweep), launch)

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

    def fill_nbytes(self, fills: Sequence[Fill]) -> int:
        """Bytes of tables that filling takes: where the cells are, and what they are made of."""
        nbytes = 0
        for numbers in outside.together(fills):
            alike = [fills[number] for number in numbers]
            stage = outside_kernel([fill.extension for fill in alike], alike[0].dtype).stage
            itemsize = np.dtype(given_dtype(stage, alike[0].dtype)).itemsize
            nbytes += outside.tables(alike).nbytes
            nbytes += tables_nbytes(stage, alike[0].geometry.box.extent, itemsize)
        return nbytes

    def folding_nbytes(self, program: Program, sweep: Sweep, boxes: Sequence[Placed]) -> int:
        """Bytes on the device for the folds of launches of `sweep` over these boxes of a place."""
        is_cpu, slots = self.device.kind == "cpu", []
        for placed in boxes:
            source = self.source(program, sweep, self.launch_of(program, sweep, placed))
            slots.append(n_slots(source, source.work_sizes(placed[0].extent, is_cpu)))
        values = values_of(with_values(program, sweep.stage)[1])
        return memory_nbytes(values, slots)
