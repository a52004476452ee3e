# SPDX-License-Identifier: MIT
"""Which place lives where: the devices of all ranks become controllers, and these get places."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.controller import Controller
from controllers.device import Device, NoDeviceError, assign, choose, find_devices
from controllers.executor import Executor
from controllers.kernel import BuildError
from controllers.kernel_check import KernelError, check_kernel
from controllers.plan import Location
from controllers.program import Program
from controllers.reference_controller import ReferenceController
from controllers.registry import SPECIALISED, KernelChoice
from controllers.variant import Kernel
from hitmap.comm import Communicator, node_ranks


@dataclass(frozen=True)
class Placement:
    """The locations of all places, in order of rank, and the executors of this rank's ones."""

    locations: tuple[Location, ...]
    executors: dict[int, Executor]

    @property
    def n_places(self) -> int:
        return len(self.locations)

    @property
    def places(self) -> tuple[int, ...]:
        """The places of this rank."""
        return tuple(self.executors)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each place."""
        return tuple(location.rank for location in self.locations)


def place_on(
    comm: Communicator,
    selectors: str | Sequence[str] | None,
    program: Program,
    places_per_controller: int = 1,
    *,
    zero_copy: bool = True,
    kernel: KernelChoice = SPECIALISED,
) -> Placement:
    """Choose and open the devices of every rank; collective, fails on all ranks or on none.

    Without `zero_copy`, devices that share the host's memory are used as if they did not.
    `kernel` says how the program's stages are computed; a kernel of the user's own is checked.
    """
    if places_per_controller < 1:
        raise ValueError(f"a controller holds at least one place, got {places_per_controller}")
    wanted = [selectors] if isinstance(selectors, str) else list(selectors or [])
    local_rank, n_local = node_ranks(comm)
    executors: list[Executor] = []
    failure: Exception | None = None
    try:
        devices = assign(choose(wanted, find_devices()), local_rank, n_local)
        executors = [open_device(device, program, zero_copy, kernel) for device in devices]
    except (ValueError, RuntimeError) as error:
        failure = error
    _fail_together(comm, failure)
    mine = [(device.name, executor.shares_host) for device, executor in zip(devices, executors)]
    locations = tuple(
        Location(rank, controller, shares_host, name)
        for rank, controllers in enumerate(comm.allgather(mine))
        for controller, (name, shares_host) in enumerate(controllers)
        for _ in range(places_per_controller)
    )
    held = {
        place: executors[location.controller]
        for place, location in enumerate(locations)
        if location.rank == comm.rank
    }
    return Placement(locations, held)


def open_device(
    device: Device, program: Program, zero_copy: bool = True, kernel: KernelChoice = SPECIALISED
) -> Executor:
    """The executor of `device`, its kernels for `program` built."""
    if device.kind == "reference":
        if isinstance(kernel, Kernel):
            raise ValueError(
                f"the reference device computes descriptions and cannot run the kernel "
                f"{kernel.name!r}, which is OpenCL C; choose another device, or no kernel"
            )
        return ReferenceController(device)
    controller = Controller(device, zero_copy=zero_copy, kernel=kernel)
    for stage in range(len(program.stages)):
        controller.build(program, stage)
    if isinstance(kernel, Kernel):
        check_kernel(controller, program, kernel)
    return controller


def _fail_together(comm: Communicator, failure: Exception | None) -> None:
    """Raise the error of the first rank that has one, on all ranks, naming the rank."""
    kinds = (NoDeviceError, BuildError, KernelError, ValueError)
    number = [isinstance(failure, kind) for kind in (*kinds, object)].index(True)
    problems = comm.allgather(None if failure is None else (number, str(failure)))
    for rank, problem in enumerate(problems):
        if problem is not None:
            prefix = f"rank {rank}: " if comm.size > 1 else ""
            raise (*kinds, ValueError)[problem[0]](prefix + problem[1])
