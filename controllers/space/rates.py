# SPDX-License-Identifier: MIT
"""How fast devices were with the functions of earlier workspaces, for the shares of later ones.

Only how they compare matters: times are kept of all devices of a workspace or of none, as parts of
what all of them take for a row, so that those of unlike functions can be compared.
"""
from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace

from controllers.balance.remembered import Remembered
from controllers.placement.placement import Controllers
from controllers.plan import Location
from controllers.program.program import Program
from controllers.program.stage_check import Math
from controllers.space.home import home_program
from controllers.space.meter import PlaceCost
from hitmap.comm import Communicator
from hitmap.layout import Layout

LEAST_S = 0.01      # of kernels of a device, which say something
ROW_S = 1e-6        # a row takes so long on all devices together, as what is kept has it


def named(controllers: Controllers, math: Math) -> Program:
    """The program under whose name the rates of these devices are kept together."""
    devices = "\n".join(where.device for where in controllers.locations)
    program = home_program(1, math)
    return replace(program, name=f"{program.name}_{zlib.crc32(devices.encode()):08x}")


def keep(
    controllers: Controllers, math: Math, layout: Layout, locations: tuple[Location, ...],
    costs: Mapping[int, PlaceCost], comm: Communicator,
) -> None:  # fmt: skip
    """Remember how long kernels took for the rows of each device; nothing of one.  Collective.

    layout: of as many rows as devices share.  costs: of the places of this rank.
    """
    if len(controllers.locations) == 1:
        return
    spent = {where.controller: [0.0, 0] for where, _ in controllers.located}
    for place, cost in costs.items():
        of_device = spent[locations[place].controller]
        of_device[0] += cost.compute_s
        of_device[1] += layout.owned[place].n_cells
    is_known = all(seconds > LEAST_S and rows for seconds, rows in spent.values())
    each = [seconds / rows for seconds, rows in spent.values()] if is_known else []
    everyone = comm.allgather(each)
    if not all(everyone):
        return
    total = sum(map(sum, everyone)) / ROW_S
    for where, executor in controllers.located:
        seconds, rows = spent[where.controller]
        remembered = Remembered(executor.device, named(controllers, math), layout.domain)
        remembered.store({int(rows): seconds / total})
