# SPDX-License-Identifier: MIT
"""Which place lives where: the devices of all ranks become controllers, and these get places."""
from __future__ import annotations

import logging
import os
import platform
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle, islice

import pyopencl as cl

from controllers import check as checking
from controllers.arbiter import Mark, marked
from controllers.check import Setting
from controllers.check.finding import KernelError
from controllers.device import (
    Device,
    NoDeviceError,
    assign,
    choose_usable,
    probe_wanted,
    problems,
)
from controllers.device.verdict import Verdict
from controllers.executor.executor import Executor
from controllers.kernel.build import BuildError, where
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.memory.ledger import MemoryCapError
from controllers.placement.hold import Hold
from controllers.placement.opening import DEFAULT, open_device
from controllers.placement.own_kernel import as_planned
from controllers.plan import Location
from controllers.process.errand import errand
from controllers.process.foreign_options import foreign_options, left_out
from controllers.program.program import Program
from controllers.report.report import DeviceReport
from controllers.settings.execution import Execution
from hitmap.agreement import agree
from hitmap.comm import Communicator, node_ranks
from hitmap.node import first_of_node

_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Placement:
    """The locations of all places, and the executors of this rank's ones."""

    locations: tuple[Location, ...]
    executors: dict[int, Executor]
    why: str = ""       # the places are where they are, by the links between controllers

    @property
    def n_places(self) -> int:
        return len(self.locations)

    @property
    def places(self) -> tuple[int, ...]:
        """The places of this rank."""
        return tuple(self.executors)

    @property
    def first_launches(self) -> str:
        """A label for the first launches on this rank's devices, in which drivers may crash."""
        devices = {where(executor.device) for executor in self.executors.values()}
        return f"kernels are launched for the first time on {', '.join(sorted(devices))}"

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each place."""
        return tuple(location.rank for location in self.locations)


@dataclass(frozen=True)
class Controllers:
    """The controllers of all ranks, in order of rank, and the executors of this rank.

    allocations: bytes of the largest single one that each allows.  program: as it is planned for
    them.  mark: tells other processes which devices are used, or holds them, as long as this is
    there, or until it is closed.
    """

    rank: int
    locations: tuple[Location, ...]
    executors: tuple[Executor, ...]
    allocations: tuple[int, ...]
    program: Program
    n_nodes: int = 1
    mark: Mark | Hold | None = None

    @property
    def largest_bytes(self) -> int:
        """The largest single allocation that all of them allow."""
        return min(self.allocations)

    @property
    def located(self) -> list[tuple[Location, Executor]]:
        """Those of this rank."""
        here = [where for where in self.locations if where.rank == self.rank]
        return [(where, self.executors[where.controller]) for where in here]

    def only(self, numbers: Sequence[int], program: Program) -> Controllers:
        """Some of them, in this order, with the program as it is planned for these."""
        locations = tuple(self.locations[number] for number in numbers)
        allocations = tuple(self.allocations[number] for number in numbers)
        return replace(self, locations=locations, allocations=allocations, program=program)

    def consecutive(
        self, n_each: int = 1, order: Sequence[int] | None = None, why: str = ""
    ) -> Placement:
        """The first `n_each` places on the first controller, the next ones on the second ...

        order: which controller is the first one, the second one ...; by default that of rank.
        """
        ordered = self.locations if order is None else [self.locations[n] for n in order]
        return self._placement([where for where in ordered for _ in range(n_each)], why)

    def in_turn(self, n_places: int) -> Placement:
        """Places dealt to the controllers one by one, as to players: not sorted by rank."""
        return self._placement([*islice(cycle(self.locations), n_places)])

    def report(self) -> list[DeviceReport]:
        """The memory of this rank's devices."""
        return [
            DeviceReport.of(where.rank, where.controller, executor.ledger)
            for where, executor in self.located
        ]

    def _placement(self, locations: Sequence[Location], why: str = "") -> Placement:
        executors = {
            place: self.executors[where.controller]
            for place, where in enumerate(locations)
            if where.rank == self.rank
        }
        return Placement(tuple(locations), executors, why)


def _tried(everyone: Sequence[Sequence[str]]) -> list[Verdict]:
    with errand("the trial of drivers"):
        return probe_wanted(everyone)


def assigned_devices(
    comm: Communicator, selectors: str | Sequence[str] | None, check: Setting = "off"
) -> list[Device]:
    """The devices of this rank, of those that `selectors` name on its host.

    With `check` "oclgrind" it is the simulator in place of each of them.

    Drivers that a small kernel aborts or hangs are left out.  Of these, and of CPUs that compute
    with more threads than this process has cores, a warning on rank 0 tells.  Collective; fails on
    all ranks or on none.
    """
    wanted = [selectors] if isinstance(selectors, str) else list(selectors or [])
    local_rank, n_local = node_ranks(comm)
    with failing_together(comm):
        everyone = comm.allgather(wanted)
        verdicts = first_of_node(comm, lambda: _tried(everyone))
        devices = assign(choose_usable(wanted, verdicts), local_rank, n_local)
        if check != "off":
            devices = [checking.device_for(device, check) for device in devices]
    _warn_once(comm, [*problems(verdicts), *_crowded(devices, comm.rank)])
    return devices


def one_device(selector: str) -> Device:
    """The device that `selector` names; by default the GPU, else the CPU.  For one process."""
    wanted = [selector] if selector else []
    verdicts = probe_wanted([wanted])
    found = choose_usable(wanted, verdicts)
    for text in problems(verdicts):
        warnings.warn(text, RuntimeWarning, stacklevel=3)
    if len(found) > 1 and selector:
        names = ", ".join(device.name for device in found)
        raise ValueError(
            f"a controller has one device, but {selector!r} fits {len(found)}: {names}; choose one "
            f"by position, such as gpu:0, or open all with Controller.each({selector!r})"
        )
    return assign(found[:1], 0, 1)[0]


def open_controllers(
    comm: Communicator,
    program: Program,
    execution: Execution = DEFAULT,
    *,
    kernel: KernelChoice = SPECIALISED,
) -> Controllers:
    """Choose and open the devices of every rank; collective, fails on all ranks or on none.

    `kernel` is what the execution's one means; one of the user's own is checked.
    """
    if program.math == "fast":
        agree(comm, "build options of the environment", sorted(foreign_options().items()))
    devices = assigned_devices(comm, execution.devices, execution.checked)
    _warn_once(comm, left_out(comm.rank, program.math))
    kinds = {kind for rank in comm.allgather([one.kind for one in devices]) for kind in rank}
    program = as_planned(program, kernel, execution, kinds)
    mark: Mark | Hold | None = None
    if execution.exclusive:
        mark = Hold(comm, devices, program.name, execution.patience_s)
    try:
        with failing_together(comm):
            devices, executors = _opened(devices, program, execution, kernel)
    except BaseException:
        if mark is not None:
            mark.close()
        raise
    for device in devices:
        _logger.info("rank %d computes on %s", comm.rank, device.name)
    contexts = [executor.context for executor in executors]
    mine = [
        Location(comm.rank, number, executor.shares_host, device.name, device.kind,
                 contexts.index(executor.context))
        for number, (device, executor) in enumerate(zip(devices, executors))
    ]  # fmt: skip
    told = comm.allgather((platform.node(), mine, [d.max_allocation_bytes for d in devices]))
    locations = tuple(location for _, of_rank, _ in told for location in of_rank)
    allocations = tuple(nbytes for *_, of_rank in told for nbytes in of_rank)
    n_nodes = len({node for node, *_ in told})
    mark = mark or marked(devices, program.name)
    return Controllers(comm.rank, locations, tuple(executors), allocations, program, n_nodes, mark)


def _opened(
    devices: Sequence[Device], program: Program, execution: Execution, kernel: KernelChoice
) -> tuple[list[Device], list[Executor]]:
    """Devices with their executors; where a run chooses, without those that cannot compute it."""
    found, problem = [], None
    for device in devices:
        try:
            found.append((device, open_device(device, program, execution, kernel)))
        except (ValueError, BuildError) as error:
            if not execution.chooses:
                raise
            problem = error
            _logger.info("devices: %s cannot compute %s: %s", device.name, program.name, error)
    if problem is not None and not found:
        raise problem
    return [device for device, _ in found], [executor for _, executor in found]


def _crowded(devices: Sequence[Device], rank: int) -> list[str]:
    """CPUs that compute with more threads than the launcher has left cores for."""
    n_cores = len(os.sched_getaffinity(0))
    return [
        f"rank {rank} may use {n_cores} of the {device.compute_units} cores that {device.name} "
        f"computes with, and will be slow; `python -m controllers doctor` says how to start ranks "
        f"that are not bound"
        for device in devices
        if device.kind == "cpu" and device.compute_units > n_cores
    ]


def _warn_once(comm: Communicator, told: Sequence[str]) -> None:
    """Warn on rank 0 of what the ranks have to say, once where they say the same."""
    everyone = comm.gather(told)
    for text in dict.fromkeys(text for texts in everyone or () for text in texts):
        warnings.warn(text, RuntimeWarning, stacklevel=3)


@contextmanager
def failing_together(comm: Communicator) -> Iterator[None]:
    """Work that each rank does: an error of the first rank that has one is raised on all of them.

    It names the rank.  Errors that nobody expects end the job where they are raised.  Collective.
    """
    kinds = (NoDeviceError, BuildError, KernelError, MemoryCapError, ValueError, RuntimeError)
    failure: tuple[int, str] | None = None      # not the error, whose frames hold memory
    try:
        yield
    except (ValueError, RuntimeError, MemoryCapError, cl.Error) as error:
        known = (n for n, kind in enumerate(kinds) if isinstance(error, kind))
        failure = next(known, len(kinds) - 1), str(error)
    problems = comm.allgather(failure)
    for rank, problem in enumerate(problems):
        if problem is not None:
            prefix = f"rank {rank}: " if comm.size > 1 else ""
            raise kinds[problem[0]](prefix + problem[1])
