# SPDX-License-Identifier: MIT
"""A bench: one box of a stage on one device, with tiles of its own, to try configurations on.

A configuration is measured only if it builds, keeps to the limits of the device, and gives the
bits of the NumPy reference; on large boxes those of a kernel that tests compare with it.  Variants
of a user's kernel must keep to what it declares, and give the bits of its default one, or for
several steps those of single ones.  Those of a batch take turns, forwards and backwards; times are
those of events.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers import kgt
from controllers.check.trial import check_variant
from controllers.device.event import Command
from controllers.executor.copies import CELL_TYPES
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.build import BuildError, Built, build
from controllers.kernel.candidate import Candidate, OwnCandidate
from controllers.kernel.configuration import Placed
from controllers.kernel.offer import Own
from controllers.kgt.text.fixed import fixed_source
from controllers.memory.tile import Tile
from controllers.program.application import apply_sweep
from controllers.program.program import INTEGERS, Program
from controllers.program.surroundings import Surroundings
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
        self.sweep = sweep
        self.executor = executor
        self.launch = executor.launch_of(program, sweep, placed)
        self.offer = executor.offer(program, sweep)
        self.key = executor.choices.key(self.offer, self.launch)
        self._box, geometries = placed
        self._around = Surroundings.usual(program, self._box)
        read = [use.version.field for use in sweep.uses]    # those of its folds as well
        self._read, self._new, self._right = (
            {
                field: executor.tile(geometries[field], np.dtype(program.dtypes[field]))
                for field in fields
            }
            for fields in (read, sweep.writes, sweep.writes)
        )
        self._commands: dict[Candidate, Command] = {}
        is_own = isinstance(self.offer, Own)
        small = by_numpy or self._box.n_cells <= MAX_REFERENCE
        self._by_numpy = small and not is_own       # which alone says what it computes
        self._small: Bench | None = None
        if sweep.count > 1 and not small and not is_own:    # no other kernel says what is right
            self._small = Bench(executor, program, *scratch(placed, sweep), by_numpy=True)
        sizes = {tile.dtype.itemsize for tile in self._new.values()}
        self._comparers = {size: _comparer(executor, size) for size in sizes}
        self._fill()
        self._compute_right()

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """What may be tried, the default first; empty where nothing can be chosen."""
        return self.offer.candidates(self.launch)

    def measure(self, batch: Sequence[Candidate]) -> dict[Candidate, Outcome]:
        """Seconds of a step with each of some configurations, or why it cannot be used."""
        problems = {config: self.problem(config) for config in batch}
        times: dict[Candidate, list[float]] = {}
        for config in turns([config for config in batch if problems[config] is None]):
            times.setdefault(config, []).extend(self._seconds(config))
        return {
            config: problems[config] or typical(times[config]) / config.steps_per_launch
            for config in batch
        }

    def problem(self, config: Candidate) -> str | None:
        """Why a configuration cannot be used; None if it can and gives the right bits."""
        if config in self._commands:
            return None
        if self._small is not None and (problem := self._small.problem(config)):
            return problem
        handle = self.executor.device.handle
        assert handle is not None, "an OpenCL device"
        try:
            problem = problem_before_build(self.program, self.sweep, config, self.launch, handle)
            if problem is not None:
                return problem
            # the default was tried when the device was opened
            if isinstance(config, OwnCandidate) and config != self.candidates[0]:
                check_variant(self.executor, self.program, self.sweep, config.variant)
            with self.executor.choices.using(self.key, config):
                source, built = self.executor.build(self.program, self.sweep, self.launch)
                group = source.work_sizes(self._box.extent, self._is_cpu)[1]
                problem = problem_of_build(built, group, handle)
                if problem is not None:
                    return problem
                command = self._bind(self._new)
            self._prepare(self._new)
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

    def _bind(self, targets: Mapping[str, Tile]) -> Command:
        over = {old: targets[new] for new, old in self.sweep.stage.overwrites.items()}
        return self.executor.launch_command(
            self.program, self.sweep, {**self._read, **over}, targets, self._box, self._around
        )

    def _prepare(self, targets: Mapping[str, Tile]) -> None:
        """What is there before a launch: zeros, or what it reads and writes over."""
        for field, tile in targets.items():
            self.executor.clear(tile)
            if field in self.sweep.stage.overwrites:
                old = self._read[self.sweep.stage.overwrites[field]]
                self._copy(old, tile)

    def _copy(self, source: Tile, target: Tile) -> None:
        everywhere, size = source.strided(source.geometry.box), source.dtype.itemsize
        move = everywhere, target.strided(source.geometry.box)
        self.executor.copy_command(source.linear, target.linear, size, move)(None).wait()

    def _seconds(self, config: Candidate) -> list[float]:
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
        first be right on a small box; of a user's kernel by its default.
        """
        self._prepare(self._right)
        if not self._by_numpy:
            is_judged = isinstance(self.offer, Own) and self.offer.has_single_steps
            if is_judged and self.sweep.count > 1:
                self._by_single_steps()
            else:
                self._by_one_kernel()
            return

        def cells_of(field: str, cells: Shape) -> npt.NDArray[Any]:
            return self.executor.move_from(self._read[field], cells)

        values = apply_sweep(
            self.sweep, cells_of, self._box, self.program.dtypes, self._around
        )
        for field, tile in self._right.items():
            whole = np.broadcast_to(values[field], self._box.extent)    # it may be one number
            self.executor.move_to(tile, self._box, np.ascontiguousarray(whole))

    def _by_one_kernel(self) -> None:
        """What "cell" gives, or the default where that is the only one known to be right."""
        right: Candidate = kgt.config_of("cell", self.program, self.sweep.stage)
        if self.sweep.count > 1 or isinstance(self.offer, Own):
            right = self.candidates[0]
        with self.executor.choices.using(self.key, right):
            self._bind(self._right)(None).wait()

    def _by_single_steps(self) -> None:
        """What several steps give, by launches of one."""
        executor, sweep, (field,) = self.executor, self.sweep, self.sweep.writes
        old = self._read[field]
        levels = [executor.tile(old.geometry, old.dtype) for _ in range(2)]
        for level in levels:
            self._copy(old, level)
        single = Sweep.of(sweep.stage, sweep.cells)
        for n_left in reversed(range(sweep.count)):
            read = {**self._read, field: levels[0]}
            new = {field: levels[1]} if n_left else self._right
            over = sweep.needed(self._box, n_left)
            executor.launch_command(
                self.program, single, read, new, over, self._around
            )(None).wait()
            levels.reverse()

    def _n_unlike(self) -> int:
        """The elements in which the new tiles, cleared before, are not what they must be."""
        return sum(self._n_differing(tile, self._right[f]) for f, tile in self._new.items())

    def _n_differing(self, one: Tile, other: Tile) -> int:
        executor, counts = self.executor, np.empty(N_COMPARERS, np.int64)
        found = cl.Buffer(executor.context, cl.mem_flags.WRITE_ONLY, counts.nbytes)
        arguments = [one.buffer, other.buffer, found, np.int64(one.geometry.n_elements)]
        comparer = self._comparers[one.dtype.itemsize]
        executor.kernel_command(comparer, arguments, ((N_COMPARERS,), (64,)))(None).wait()
        cl.enqueue_copy(executor.compute, counts, found)
        return int(counts.sum())


def _comparer(executor: OpenCLExecutor, itemsize: int) -> Built:
    options = [f"-DCELL={CELL_TYPES[itemsize]}", *executor.own_options]
    program = build(executor.context, "count_unlike", fixed_source("count_unlike"), options)
    return Built("count_unlike", program, ())
