# SPDX-License-Identifier: MIT
"""A bench: one box of a stage on one device, with tiles of its own, to try configurations on.

A configuration is measured only if it builds, keeps to the limits of the device, and gives the
bits of the NumPy reference; on large boxes those of a kernel that tests compare with it.  Those
of a batch take turns, forwards and backwards; times are those of events.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers import kgt
from controllers.device.event import Command
from controllers.executor.opencl import CELL_TYPES, OpenCLExecutor
from controllers.kernel.build import BuildError, Built, build
from controllers.kernel.configuration import Placed
from controllers.kgt.text.fixed import fixed_source
from controllers.memory.tile import Tile
from controllers.program.application import apply_sweep
from controllers.program.program import INTEGERS, Program
from controllers.program.sweep import Sweep
from controllers.tuning.limits import problem_before_build, problem_of_build
from controllers.tuning.scratch import scratch
from controllers.tuning.timing import n_launches, turns, typical
from controllers.tuning.trials import Outcome
from hitmap.shape import Shape
from hitmap.strided import consecutive

MAX_REFERENCE = 1 << 18     # cells that NumPy computes in some milliseconds
CHUNK_CELLS = 1 << 24
PERIOD = (1 << 20) + 7      # of the random numbers in large fields; prime to lengths of rows
N_COMPARERS = 1 << 16       # work-items that compare two tiles


class Bench:
    """Tries configurations of a sweep on one box."""

    def __init__(
        self,
        executor: OpenCLExecutor,
        program: Program,
        sweep: Sweep,
        placed: Placed,
        *,
        by_numpy: bool = False,
    ) -> None:
        self.program = program
        self.stage = stage = sweep.stage
        self.executor = executor
        self._sweep = sweep
        self.launch = executor.launch_of(program, sweep.stage, placed, sweep.count)
        self.key = executor.choices.key(program, stage, self.launch)
        self._box, geometries = placed
        tiles = [*stage.fields_read, stage.writes, stage.writes]
        *read, self._new, self._right = (
            executor.tile(geometries[field], np.dtype(program.dtypes[field])) for field in tiles
        )
        self._read = dict(zip(stage.fields_read, read))
        self._commands: dict[kgt.Config, Command] = {}
        self._by_numpy = by_numpy or self._box.n_cells <= MAX_REFERENCE
        self._small: Bench | None = None
        if sweep.count > 1 and not self._by_numpy:      # no other kernel says what is right
            self._small = Bench(executor, program, *scratch(placed, sweep), by_numpy=True)
        self._comparer = _comparer(executor, self._new.dtype.itemsize)
        self._fill()
        self._compute_right()

    @property
    def candidates(self) -> tuple[kgt.Config, ...]:
        """What may be tried, the default first; empty where nothing can be chosen."""
        return kgt.candidates(self.program, self.stage, self.executor.device.kind, self.launch)

    def measure(self, batch: Sequence[kgt.Config]) -> dict[kgt.Config, Outcome]:
        """Seconds of a step with each of some configurations, or why it cannot be used."""
        problems = {config: self.problem(config) for config in batch}
        times: dict[kgt.Config, list[float]] = {}
        for config in turns([config for config in batch if problems[config] is None]):
            times.setdefault(config, []).extend(self._seconds(config))
        return {
            config: problems[config] or typical(times[config]) / config.steps_per_launch
            for config in batch
        }

    def problem(self, config: kgt.Config) -> str | None:
        """Why a configuration cannot be used; None if it can and gives the right bits."""
        if config in self._commands:
            return None
        if self._small is not None and (problem := self._small.problem(config)):
            return problem
        handle = self.executor.device.handle
        assert handle is not None, "an OpenCL device"
        try:
            problem = problem_before_build(self.program, self.stage, config, self.launch, handle)
            if problem is not None:
                return problem
            with self.executor.choices.using(self.key, config):
                source, built = self.executor.build(self.program, self.stage, self.launch)
                group = source.work_sizes(self._box.extent, self._is_cpu)[1]
                problem = problem_of_build(built, group, handle)
                if problem is not None:
                    return problem
                command = self._bind(self._new)
            self.executor.clear(self._new)
            command(None).wait()
            n_wrong = self._n_unlike()
        except (BuildError, ValueError, cl.Error) as error:     # of this configuration alone
            return " ".join(str(error).split())[:200]
        if n_wrong:
            return f"computes {n_wrong} cells with other bits"
        self._commands[config] = command
        return None

    @property
    def _is_cpu(self) -> bool:
        return self.executor.device.kind == "cpu"

    def _bind(self, target: Tile) -> Command:
        return self.executor.launch_command(
            self.program, self._sweep, self._read, {self.stage.writes: target}, self._box
        )

    def _seconds(self, config: kgt.Config) -> list[float]:
        """The seconds of some launches, one after another; one goes before that does not count."""
        command = self._commands[config]
        first = command(None)
        first.wait()
        n = n_launches((first.profile.end - first.profile.start) * 1e-9) - 1
        events = [command(None) for _ in range(n)]
        self.executor.wait()
        return [(event.profile.end - event.profile.start) * 1e-9 for event in events]

    def _fill(self) -> None:
        """Random numbers for all fields that are read."""
        rng = np.random.default_rng(0)
        for tile in self._read.values():
            n_cells = tile.geometry.box.n_cells
            numbers = rng.random(min(PERIOD, n_cells))
            if tile.dtype.name in INTEGERS:
                numbers = np.floor(100 * numbers)
            numbers, done = numbers.astype(tile.dtype), 0
            for box in consecutive(tile.geometry.box, CHUNK_CELLS):
                some = np.resize(np.roll(numbers, -done), box.n_cells)
                self.executor.move_to(tile, box, some.reshape(box.extent))
                done += box.n_cells

    def _compute_right(self) -> None:
        """What the box must hold: by NumPy, or where that takes long by another kernel.

        By "cell" then, or for several steps by the default of those, which as all others must
        first be right on a small box.
        """
        if not self._by_numpy:
            cell = kgt.config_of("cell", self.program, self.stage)
            right = self.candidates[0] if self._sweep.count > 1 else cell
            with self.executor.choices.using(self.key, right):
                self._bind(self._right)(None).wait()
            return

        def cells_of(field: str, cells: Shape) -> npt.NDArray[Any]:
            return self.executor.move_from(self._read[field], cells)

        values = apply_sweep(self._sweep, cells_of, self._box, self.program.dtypes)
        self.executor.move_to(self._right, self._box, values[self.stage.writes])

    def _n_unlike(self) -> int:
        """The elements in which the new tile, cleared before, is not what it must be."""
        executor, counts = self.executor, np.empty(N_COMPARERS, np.int64)
        found = cl.Buffer(executor.context, cl.mem_flags.WRITE_ONLY, counts.nbytes)
        n_elements = np.int64(self._new.geometry.n_elements)
        arguments = [self._new.buffer, self._right.buffer, found, n_elements]
        executor.kernel_command(self._comparer, arguments, ((N_COMPARERS,), (64,)))(None).wait()
        cl.enqueue_copy(executor.compute, counts, found)
        return int(counts.sum())


def _comparer(executor: OpenCLExecutor, itemsize: int) -> Built:
    options = [f"-DCELL={CELL_TYPES[itemsize]}"]
    program = build(executor.context, "count_unlike", fixed_source("count_unlike"), options)
    return Built("count_unlike", program, ())
