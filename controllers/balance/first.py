# SPDX-License-Identifier: MIT
"""The shares that a run begins with, and whether they are to be balanced while it goes on."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.balance.remembered import Remembered
from controllers.balance.shares import equal_times
from controllers.estimates.device_rates import CORE_BYTES_PER_S, class_rate
from controllers.kernel.registry import KernelChoice
from controllers.kernel.variant import Kernel
from controllers.placement.placement import Controllers
from controllers.placement.temporal import THICK
from controllers.plan.rate import Rate
from controllers.program.program import Program
from controllers.settings.division import AUTO, Division
from controllers.settings.execution import Balance, Execution
from hitmap.comm import Communicator
from hitmap.shape import Shape

BY_CLASS = "by the class of the devices"


@dataclass(frozen=True)
class First:
    """The division that a run begins with, and how it is balanced: "off" with the reason.

    source: from where its shares are.  why: nothing where nobody has asked for more.  rates: of all
    devices, where shares are made of them.
    """

    division: Division
    mode: Balance
    source: str = "given"
    why: str = ""
    rates: tuple[Rate, ...] = ()

    @property
    def is_guess(self) -> bool:
        """Whether nothing is known of how fast the devices are."""
        return self.source == BY_CLASS

    def __str__(self) -> str:
        """
        >>> print(First(Division(), "dynamic", "by the class of the devices"))
        balance: dynamic; the first shares are by the class of the devices
        """
        off = f"off: {self.why}" if self.why else self.mode
        return f"balance: {off}; the first shares are {self.source}"


@dataclass(frozen=True)
class Described:
    """What a rank tells of a device; `known` is its rate in earlier runs."""

    kind: str
    name: str
    compute_units: int
    of_class: float
    known: Rate | None

    def is_like(self, other: Described) -> bool:
        """Whether nothing says that one is faster."""
        mine = self.kind, self.name, self.compute_units
        return mine == (other.kind, other.name, other.compute_units)


def first_division(
    division: Division,
    execution: Execution,
    program: Program,
    kernel: KernelChoice,
    controllers: Controllers,
    domain: Shape,
    comm: Communicator,
) -> First:
    """What of a division is left to the devices, as they say themselves.  Collective.

    Without a word on how to cut, that is the shares of devices that are unlike.
    """
    wanted = execution.balance or "start"
    asks = division.weights == AUTO or (execution.balance or "off") != "off"
    if division.is_exact or not (asks or (division.is_open and wanted != "off")):
        return First(division, "off")
    everyone = described_devices(controllers, program, domain, comm)
    if len(everyone) == 1:
        alone = division.shared([1]) if division.weights == AUTO else division
        return First(alone, "off", why="there is one device" if asks else "")
    if not asks and all(one.is_like(everyone[0]) for one in everyone):
        return First(division, "off")
    begun, source = division, "given"
    rates: tuple[Rate, ...] = ()
    if division.weights in (None, AUTO):
        source, rates = rates_of(everyone, program)
        reach = sum(controllers.program.reach[0]) * THICK * division.places_per_controller
        least = reach * domain.n_cells / max(1, domain.extent[0])
        begun = division.shared(equal_times(rates, domain.n_cells, least))
    why = hindrance(execution, kernel) if wanted != "off" else ""
    return First(begun, "off" if why else wanted, source, why, rates)


def rates_of(everyone: Sequence[Described], program: Program) -> tuple[str, tuple[Rate, ...]]:
    """From where, and the rates of all devices: those of earlier runs, if all have one."""
    known = tuple(one.known for one in everyone if one.known is not None)
    if len(known) == len(everyone):
        return "those of an earlier run", known
    core_s = program.bytes_per_cell / CORE_BYTES_PER_S
    return BY_CLASS, tuple(Rate(0.0, core_s / one.of_class) for one in everyone)


def hindrance(execution: Execution, kernel: KernelChoice) -> str:
    """Why the times of launches say nothing on shares, if so."""
    if execution.tune:
        return "tune= changes the kernels in the same steps"
    if execution.checked != "off":
        return "check= makes launches take other times"
    if isinstance(kernel, Kernel):
        return "a kernel of the user's own may not compute other boxes"
    return ""


def described_devices(
    controllers: Controllers, program: Program, domain: Shape, comm: Communicator
) -> list[Described]:
    """The devices of all ranks, as each rank knows its own.  Collective."""
    mine = [
        Described(
            device.kind, device.name, device.compute_units, class_rate(device),
            Remembered(device, program, domain).load(),
        )
        for device in (executor.device for _, executor in controllers.located)
    ]  # fmt: skip
    return [one for rank in comm.allgather(mine) for one in rank]
