# SPDX-License-Identifier: MIT
"""Where the arrays of one shape lie, and where what is written of them as with NumPy is computed.

That is a plan of one field which has no memory: arrays come and go in tiles that lie as its would.
"""
from __future__ import annotations

import numpy as np

from controllers.array.arrays import Arrays
from controllers.array.owner import Owner
from controllers.array.streams import Streams
from controllers.engine import Engine
from controllers.memory.tile import Tile
from controllers.placement.placement import Controllers
from controllers.plan import Plan
from controllers.program.expression import Read
from controllers.program.idle import Idle
from controllers.program.program import Field, Program
from controllers.program.stage_check import Math
from controllers.settings.division import Division
from hitmap.comm import Communicator
from hitmap.shape import Shape
from hitmap.strided import Geometry

CELLS = "cells"     # the field without memory


def home_program(n_axes: int, math: Math) -> Program:
    """A program of one field, whose step computes no cell."""
    same = {CELLS: Read(CELLS, (0,) * n_axes)}
    stage = Idle("idle", same, ((0, 0),) * n_axes)
    return Program("workspace", (Field(CELLS, "float32"),), (stage,), math)


class HomePlan(Plan):
    """The plan of the home program, in whose tiles a row is a run of elements."""

    def geometry(self, field: str, place: int) -> Geometry:
        """As usual, but for rows of several axes in a device's own memory, which are not padded."""
        usual = super().geometry(field, place)
        return usual if usual.box.n_axes < 3 else Geometry.dense(usual.box)


class Home:
    """Of the arrays of one shape, whose rows are divided over the places.

    division: with weights for all places, so that arrays of as many rows are cut alike.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        division: Division,
        controllers: Controllers,
        comm: Communicator,
        messages: Communicator,
        math: Math,
        owner: Owner,
        streams: Streams,
    ) -> None:
        self.shape, n_axes = shape, len(shape)
        self.layout = division.layout_of(Shape.of_extent(shape), len(controllers.locations))
        self.placement = controllers.consecutive(division.places_per_controller)
        plan = HomePlan(
            home_program(n_axes, math), self.layout, (False,) * n_axes, self.placement.locations,
            overlap="off", only_rank=comm.rank,
        )  # fmt: skip
        nowhere = {
            plan.newest(CELLS, 0, place): Tile(
                plan.geometry(CELLS, place), np.dtype("float32"), None, None
            )
            for place in plan.places
        }
        self.engine = Engine(plan, self.placement.executors, messages, nowhere)
        self.arrays = Arrays(self.engine, comm, messages, math, owner, streams)

    def close(self) -> None:
        """What somebody may still look at goes to the host.  Collective."""
        self.arrays.close()
