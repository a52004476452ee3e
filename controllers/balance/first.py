# SPDX-License-Identifier: MIT
"""The shares that a run begins with, and whether they are to be balanced while it goes on."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controllers.device import Device
from controllers.kernel.registry import KernelChoice
from controllers.kernel.variant import Kernel
from controllers.placement.placement import Controllers
from controllers.program.program import Program
from controllers.settings.division import AUTO, Division
from controllers.settings.execution import Balance, Execution
from hitmap.comm import Communicator

# A core of a CPU is 1: rough, for devices of which nothing is known; the first windows correct it.
_OF_KIND = {"gpu": 100.0, "accelerator": 50.0, "reference": 0.05}


@dataclass(frozen=True)
class First:
    """The division that a run begins with, and how it is balanced: "off" with the reason.

    why: nothing where nobody has asked for more.
    """

    division: Division
    mode: Balance
    why: str = ""


def first_division(
    division: Division,
    execution: Execution,
    program: Program,
    kernel: KernelChoice,
    controllers: Controllers,
    comm: Communicator,
) -> First:
    """What of a division is left to the devices, as they say themselves.  Collective.

    Without a word on how to cut, that is the shares of devices that are unlike.
    """
    wanted = execution.balance or "start"
    asks = division.weights == AUTO or (execution.balance or "off") != "off"
    if division.is_exact or not (asks or (division.is_open and wanted != "off")):
        return First(division, "off")
    everyone = _described(controllers, comm)
    if len(everyone) == 1:
        alone = division.shared([1]) if division.weights == AUTO else division
        return First(alone, "off", "there is one device" if asks else "")
    if not asks and len(set(everyone)) == 1:
        return First(division, "off")
    begun = division
    if division.weights in (None, AUTO):
        begun = division.shared([rate for _, _, _, rate in everyone])
    why = _hindrance(program, execution, kernel)
    if wanted != "off" and why:
        return First(begun, "off", why)
    return First(begun, wanted)


def _hindrance(program: Program, execution: Execution, kernel: KernelChoice) -> str:
    """Why the times of launches say nothing on shares, if so."""
    if program.repeats:
        return f"{program.repeats[0].name!r} is repeated as often as it asks for"
    if execution.tune:
        return "tune= changes the kernels in the same steps"
    if execution.checked != "off":
        return "check= makes launches take other times"
    if isinstance(kernel, Kernel):
        return "a kernel of the user's own may not compute other boxes"
    return ""


def _described(
    controllers: Controllers, comm: Communicator
) -> Sequence[tuple[str, str, int, float]]:
    """The devices of all ranks: kind, name, compute units, and how fast they probably are."""
    mine = [
        (device.kind, device.name, device.compute_units, class_rate(device))
        for device in (executor.device for executor in controllers.executors)
    ]
    return [one for rank in comm.allgather(mine) for one in rank]


def class_rate(device: Device) -> float:
    """How fast such devices are about, in cores of a CPU.

    >>> from controllers.device.device import reference_device
    >>> class_rate(reference_device())
    0.05
    """
    return _OF_KIND.get(device.kind, float(max(1, device.compute_units)))
