# SPDX-License-Identifier: MIT
"""Lanes of a pool whose threads have nothing to do, so that who submits a kernel enqueues it."""
from __future__ import annotations

import time

from mpi_jobs import HANGS_S

import controllers as ct
from controllers.pool.lane import Lane

more = ct.Task("more", ("y", "by"), roles={"y": "updating"})
more.variant(ct.Kernel.of("more", """
    __kernel void more(__global float *y, TILE(y), BOX, const float by)
    { CELL; HERE(y) += by; }""", roles={"y": "updating"}))


def wait_until_idle(lane: Lane) -> None:
    """The device's thread has nothing to do, and the lease of its cores lies idle."""
    until_s = time.monotonic() + HANGS_S
    while not lane.bells:
        assert time.monotonic() < until_s
        time.sleep(1e-3)
