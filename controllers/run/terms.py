# SPDX-License-Identifier: MIT
"""What all ranks have agreed on before anything is divided, and what is kept of it for later runs.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers import tuning
from controllers.balance.remembered import Remembered
from controllers.kernel.registry import KernelChoice, agreed_kernel, check_math
from controllers.kernel.user_kernel import with_domain
from controllers.kernel.variant import Kernel
from controllers.placement.placement import Controllers, open_controllers
from controllers.program.program import Program
from controllers.settings.domain import domain_of
from controllers.settings.execution import Execution
from controllers.settings.request import Request
from hitmap.comm import Communicator
from hitmap.shape import Shape


@dataclass(frozen=True)
class Terms:
    """What all ranks have agreed on, and the controllers that were opened for it."""

    program: Program
    domain: Shape
    kernel: KernelChoice
    execution: Execution
    controllers: Controllers

    @property
    def planned(self) -> Program:
        """The program as it is planned, perhaps with temporary fields."""
        return self.controllers.program

    @property
    def is_checked(self) -> bool:
        """Whether every access is watched."""
        return self.execution.checked != "off"


def agree(request: Request, comm: Communicator) -> Terms:
    """The program with its arithmetic, its kernels, and the devices of all ranks, opened."""
    execution = request.execution
    program = request.program.with_math(execution.math)
    domain = domain_of(program, request.sizes)
    kernel = agreed_kernel(comm, execution.kernel)
    check_math(execution.math, kernel, checked=execution.checked != "off")
    if execution.tune:
        tuning.check_tuning(execution.tune, kernel, program, execution.checked)
    own = with_domain(kernel, domain) if isinstance(kernel, Kernel) else kernel
    controllers = open_controllers(comm, program, execution, kernel=own)
    return Terms(program, domain, kernel, execution, controllers)


def keep_times(terms: Terms, seen: Sequence[Mapping[int, float]], how: str) -> None:
    """Remember how long steps took on all devices of these terms, those of this rank here."""
    controllers = terms.controllers
    for where, times in zip(controllers.locations, seen, strict=True):
        if where.rank == controllers.rank and times:
            device = controllers.executors[where.controller].device
            Remembered(device, terms.program, terms.domain).store(times, how)
