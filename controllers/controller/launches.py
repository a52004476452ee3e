# SPDX-License-Identifier: MIT
"""The launches of one controller: kernels built once each, arguments with their roles."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias, Union

from controllers.controller.access import Access
from controllers.controller.checked_launch import launches_of
from controllers.controller.commands import Commands
from controllers.controller.tied_tile import Cells
from controllers.controller.user_launch import Argument, UserLaunch
from controllers.device.event import Command
from controllers.kernel.variant import Kernel
from controllers.kgt.parameter import Role, word_of
from hitmap.argument import wrong
from hitmap.shape import Shape

Given: TypeAlias = Union[Argument, Access]  # for one parameter, with its role or without


class Launches:
    """Prepares launches on one device; in the checked mode they are inspected.

    `rank` is for its messages.
    """

    def __init__(self, commands: Commands, rank: int) -> None:
        self.checked = launches_of(commands.executor, rank)
        self._commands = commands
        self._built: dict[object, UserLaunch] = {}

    def prepared(
        self,
        kernel: Kernel,
        over: Shape,
        given: Mapping[str, Given],
        group: Sequence[int] | None,
    ) -> tuple[Command, list[Access]]:
        """The launch over `over`, which has a cell, and what it reads and writes.

        What is stale of what it reads is on its way.  ValueError or TypeError where an argument
        does not suit its parameter.
        """
        kernel, arguments = _with_roles(kernel, given)
        for argument in arguments.values():
            if isinstance(argument, Cells):
                argument.tile.check(self._commands, "device")
        launch = self._of(kernel, over.n_axes, group is not None)
        accesses = launch.accesses(over, arguments)
        if self.checked is None:    # which says which work-item it is
            launch.check_cells(over, arguments)
        for access in accesses:
            if access.reads:
                access.cells.refresh("device")
        command = launch.command(over, arguments, kernel.scalars, group)
        if self.checked is not None:
            grouped = group is not None
            command = self.checked.command(command, kernel, over, arguments, accesses, grouped)
        return command, accesses

    def _of(self, kernel: Kernel, n_axes: int, grouped: bool) -> UserLaunch:
        """`kernel` built for this device, once."""
        roles = tuple(sorted(kernel.roles.items()))
        key = (kernel.name, kernel.variants, roles, n_axes, grouped)
        if key not in self._built:
            if self.checked is not None:
                self._built[key] = self.checked.build(kernel, n_axes, grouped)
            else:
                executor = self._commands.executor
                self._built[key] = UserLaunch(executor, kernel, n_axes, grouped=grouped)
        return self._built[key]


def arguments_of(
    kernel: Kernel, arguments: Mapping[str, Given], named: Mapping[str, Given]
) -> dict[str, Given]:
    """The arguments of a launch, of which some came in a dict; TypeError for one given twice."""
    if not isinstance(arguments, Mapping):
        raise wrong("arguments", "a dict {name: argument}", arguments, "write name=argument")
    for name in arguments:
        if name in named:
            raise TypeError(f"kernel {kernel.name!r}: {name!r} is given twice; give it once")
    return {**arguments, **named}


def _with_roles(
    kernel: Kernel, given: Mapping[str, Given]
) -> tuple[Kernel, dict[str, Argument]]:
    """The kernel with the roles that the launch states too, and its arguments without them.

    ValueError where the kernel declares another role.
    """
    arguments: dict[str, Argument] = {}
    stated: dict[str, Role] = {}
    for name, argument in given.items():
        if not isinstance(argument, Access):
            arguments[name] = argument
            continue
        arguments[name], stated[name] = argument.cells, argument.role
        declared = kernel.roles.get(name, argument.role)
        if declared != argument.role:
            raise ValueError(
                f"kernel {kernel.name!r}: {name!r} is declared {word_of(declared)!r}, and the "
                f"launch gives {argument!r}; say the same in both, or leave one out"
            )
    return (replace(kernel, roles={**kernel.roles, **stated}) if stated else kernel), arguments
