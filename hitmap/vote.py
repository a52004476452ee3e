# SPDX-License-Identifier: MIT
"""Votes: the least of the numbers that all ranks give, known when all have given theirs."""
from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import numpy.typing as npt

from hitmap.comm import Communicator


class Vote:
    """The element-wise minimum of `mine` over the ranks, which go on meanwhile.

    Making one is collective, on a communicator whose ranks make all collective calls in the same
    order; it must be `over` before the communicator is freed.
    """

    def __init__(self, comm: Communicator, mine: Sequence[int]) -> None:
        from mpi4py import MPI

        self._mine = np.array(mine, np.int64)
        self.least: npt.NDArray[np.int64] = np.empty_like(self._mine)
        intracomm = cast("MPI.Intracomm", comm)
        self._request = intracomm.Iallreduce(self._mine, self.least, MPI.MIN)

    @property
    def over(self) -> bool:
        """Whether `least` is known."""
        return self._request.Test()
