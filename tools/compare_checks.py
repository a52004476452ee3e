# SPDX-License-Identifier: MIT
"""What the checks that are always on cost: time per step with them against without.

    python tools/compare_checks.py [--device SELECTOR] [--sizes 1024] [--steps 100]
    mpiexec -n 2 python tools/compare_checks.py ...

Before each run all ranks agree on what is called; each message that arrives is measured.  Both
ways run the mean of four neighbours in float32 on the same tiles within one process; without, the
run goes past the agreement and messages are taken as they come.  A round is one run with, one
without, and another one with, in random order.  Printed: medians over the rounds in microseconds
per step, the median of the rounds' ratios with its 95 % confidence interval, and the same of the
two runs with, which shows what the machine's noise makes of equals.  --watchdog adds one, which
is off by default, to all.
"""
from __future__ import annotations

import argparse
import inspect
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from mpi4py import MPI

from controllers import Computation, Stencil
from controllers.device.event import COMPLETE, UNDER_WAY
from controllers.engine.network import MessageEnd

MEAN = Stencil.of("mean", [(-1, 1), (-1, 1)], [0, 1, 0, 1, 0, 1, 0, 1, 0], 4)


@contextmanager
def unchecked() -> Iterator[None]:
    """Runs without an agreement before, messages without a look at their length."""
    run = inspect.unwrap(Computation.run)
    taken = property(_taken)
    with patch.object(Computation, "run", run), patch.object(
        MessageEnd, "command_execution_status", taken
    ):
        yield


def _taken(message: MessageEnd) -> int:
    while not message._done and message._requests[message._n_done].Test(message._status):
        message._n_done += 1
        message._done = message._n_done == len(message._parts)
    return COMPLETE if message._done else UNDER_WAY


def compare(comm: MPI.Intracomm, options: argparse.Namespace, size: int) -> None:
    """Interleave the ways at one size and print a line on rank 0."""
    n_steps = options.steps
    ways = (nullcontext, unchecked, nullcontext)
    rng = random.Random(size)       # the same order on all ranks
    with Computation(
        MEAN.program("float32"), (size, size), devices=options.device, comm=comm,
        watchdog=options.watchdog,
    ) as computation:  # fmt: skip
        times = np.empty((options.rounds + 1, len(ways)))
        for turn in times:
            for number in rng.sample(range(len(ways)), len(ways)):
                with ways[number]():
                    turn[number] = _seconds(comm, computation, n_steps)
    if comm.rank == 0:
        ours, theirs, again = times[1:].T
        micro = [np.median(way) / max(1, n_steps) * 1e6 for way in (ours, theirs)]
        print(
            f"{size:6} x {size:<6} {comm.size} rank(s) {micro[0]:10.2f} us {micro[1]:10.2f} us "
            f"ratio {middle(ours / theirs)}, of equals {middle(ours / again)}", flush=True,
        )


def middle(values: npt.NDArray[np.float64]) -> str:
    """The median and its 95 % confidence interval, whatever the distribution."""
    ordered, n = np.sort(values), len(values)
    away = 0.98 * n**0.5    # ranks of order: half of 1.96 standard deviations of a fair coin's
    low, high = (ordered[min(n - 1, max(0, round((n - 1) / 2 + d)))] for d in (-away, away))
    return f"{np.median(ordered):.4f} ({low:.4f} to {high:.4f})"


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
    parser.add_argument("--rounds", type=int, default=999, help="rounds per size (default: 999)")
    parser.add_argument("--watchdog", type=float, default=0, help="seconds (default: 0, none)")
    options = parser.parse_args()
    comm = MPI.COMM_WORLD
    if comm.rank == 0:
        print(" cells            ranks          checked     unchecked")
    for size in options.sizes:
        compare(comm, options, size)


if __name__ == "__main__":
    main()
