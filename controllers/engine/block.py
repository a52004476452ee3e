# SPDX-License-Identifier: MIT
"""Scalars of some steps in advance, on their way from rank 0."""
from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, UNDER_WAY, Noticed
from controllers.engine.task import Awaited
from hitmap.comm import Communicator

if TYPE_CHECKING:
    from mpi4py import MPI


class Block(Noticed, Awaited):
    """The scalars of some steps, which rank 0 sends to all; its event is what it is asked by."""

    __slots__ = ("values", "_request")

    def __init__(self, comm: Communicator, values: npt.NDArray[np.float64]) -> None:
        super().__init__(blocks=False)
        self.values = values
        self._request = cast("MPI.Intracomm", comm).Ibcast(values)
        self.event = self

    @property
    def command_execution_status(self) -> int:
        return COMPLETE if self._request.Test() else UNDER_WAY
