# SPDX-License-Identifier: MIT
"""What the checks that are always on cost: time per step with them against without.

    python tools/compare_checks.py [--device SELECTOR] [--sizes 1024] [--steps 100]
    mpiexec -n 2 python tools/compare_checks.py ...

Before each run all ranks agree on what is called; each message that arrives is measured.  Both
ways run the mean of four neighbours in float32 on the same tiles, in turn within one process;
without, the run goes past the agreement and messages are taken as they come.  Printed: medians
over the rounds in microseconds per step, the median of the rounds' ratios, and, for machines that
others use, the ratio of what the fastest tenths of the rounds took at most.  --watchdog adds one,
which is off by default, to both.
"""
from __future__ import annotations

import argparse
import inspect
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import numpy as np
from mpi4py import MPI

from controllers import Computation, Stencil
from controllers.engine.network import UNDER_WAY, Message
from controllers.event import COMPLETE

MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)


@contextmanager
def unchecked() -> Iterator[None]:
    """Runs without an agreement before, messages without a look at their length."""
    run = inspect.unwrap(Computation.run)
    taken = property(_taken)
    with patch.object(Computation, "run", run), patch.object(
        Message, "command_execution_status", taken
    ):
        yield


def _taken(message: Message) -> int:
    if not message._done and message._request.Test(message._status):
        message._done = True
    return COMPLETE if message._done else UNDER_WAY


def compare(comm: MPI.Intracomm, options: argparse.Namespace, size: int) -> None:
    """Interleave both at one size and print a line on rank 0."""
    n_steps = options.steps

    with Computation(
        MEAN.program("float32"), (size, size), devices=options.device, comm=comm,
        watchdog=options.watchdog,
    ) as computation:  # fmt: skip
        ways = (nullcontext, unchecked)
        times = []
        for turn in range(options.rounds + 1):
            seconds = {}
            for way in ways if turn % 2 else ways[::-1]:
                with way():
                    seconds[way] = _seconds(comm, computation, n_steps)
            times.append(tuple(seconds[way] for way in ways))
    if comm.rank == 0:
        ours, theirs = (np.sort(column) / max(1, n_steps) * 1e6 for column in zip(*times[1:]))
        tenth = len(ours) // 10
        ratio = statistics.median(a / b for a, b in times[1:])
        print(
            f"{size:6} x {size:<6} {comm.size} rank(s) {np.median(ours):10.2f} us "
            f"{np.median(theirs):10.2f} us ratio {ratio:.4f}, "
            f"of the fastest tenths {ours[tenth] / theirs[tenth]:.4f}", flush=True,
        )


def _seconds(comm: MPI.Intracomm, computation: Computation, n_steps: int) -> float:
    comm.Barrier()
    start = time.perf_counter()
    computation.run(n_steps)
    elapsed: float = max(comm.allgather(time.perf_counter() - start))
    return elapsed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--device", default="cpu", help="as for `controllers run` (default: cpu)")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1024], help="N of N x N")
    parser.add_argument(
        "--steps", type=int, default=100, help="of a run, 0 for what comes before (default: 100)"
    )
    parser.add_argument("--rounds", type=int, default=99, help="rounds per size (default: 99)")
    parser.add_argument("--watchdog", type=float, default=0, help="seconds (default: 0, none)")
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        print(" cells            ranks          checked     unchecked")
    for size in options.sizes:
        compare(comm, options, size)


if __name__ == "__main__":
    main()
