# SPDX-License-Identifier: MIT
"""What checksums of halo messages and digests cost of a step, in processor time of all ranks.

    mpiexec -n 2 python tools/measure_integrity.py [--size 4096] [--dtype float32] [--steps 200]
        [--rounds 5] [--device SELECTOR] [--digest-every 100]

Heat on a square (5 cells), with neither, with checksums, with digests, in turn, forth and back, by
as many steps as there are between digests, which come amid a turn, after whole launches: so all are
launched alike.  Shown are the least of all turns, and by how much turns are longer than those with
neither beside them: the median.  Last, what a digest takes that somebody asks for, by a kernel of
its own.  Wall-clock time is that of a machine that does nothing else.
"""
from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import controllers as ct
from hitmap import default_communicator


@ct.step
def heat(u: Any) -> dict[str, Any]:
    return dict(u=u + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def cpu_s() -> float:
    """Of this process, all threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    options = parsed()
    comm = default_communicator()
    ways: dict[str, dict[str, Any]] = {
        "neither": {}, "checksums": {"verify_messages": True},
        "digests": {"digest_every": options.digest_every},
    }  # fmt: skip
    runs = {
        name: ct.Computation(
            heat, (options.size, options.size), boundary="periodic", dtype=options.dtype,
            u=lambda y, x: (x * 7 + y * 3) % 11, devices=options.device,
            steps_per_launch=options.steps_per_launch, **way,
        )
        for name, way in ways.items()
    }  # fmt: skip
    n_turns = max(2, options.rounds * options.steps // options.digest_every)
    times = times_of_turns(runs, n_turns, options.digest_every)
    digest_s = least_of_digests(runs["neither"], options.rounds)
    if comm.rank == 0:
        launch = runs["neither"].plan.steps_per_launch
        print(f"{comm.size} ranks, {options.size}^2 {options.dtype}, {launch} steps per launch")
        show(times, digest_s, options.digest_every)
    for run in runs.values():
        run.close()


def parsed() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--size", type=int, default=4096, help="cells along an axis (default: 4096)")
    add("--dtype", default="float32", help="of the field (default: float32)")
    add("--steps", type=int, default=200, help="of a round (default: 200)")
    add("--rounds", type=int, default=5, help="how many, 2 or more (default: 5)")
    add("--digest-every", type=int, default=100, help="steps (default: 100)")
    add("--steps-per-launch", type=int, help="default: what suits the device")
    add("--device", action="append", help="as for `controllers run`")
    return parser.parse_args()


def times_of_turns(
    runs: Mapping[str, ct.Computation], n_turns: int, n_steps: int
) -> dict[str, npt.NDArray[np.float64]]:
    """[n_turns, 2] seconds: of the processors of all ranks, and by the slowest's clock."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for run in runs.values():
        launch = run.plan.steps_per_launch
        run.run(n_steps - n_steps // 2 // launch * launch)
    for number in range(n_turns + 1):
        for name in list(runs)[:: 1 if number % 2 else -1]:
            run = runs[name]
            begun, start = cpu_s(), time.perf_counter()
            run.run(n_steps)
            every = run.comm.allgather((cpu_s() - begun, time.perf_counter() - start))
            if number:      # the first one compiles
                found[name].append((sum(one[0] for one in every), max(one[1] for one in every)))
    return {name: np.array(times) for name, times in found.items()}


def least_of_digests(run: ct.Computation, n_rounds: int) -> tuple[float, float]:
    """Seconds of a digest, as of steps; the first one compiles and does not count."""
    taken = []
    for _ in range(2 * n_rounds + 1):
        begun, start = cpu_s(), time.perf_counter()
        run.digest()
        every = run.comm.allgather((cpu_s() - begun, time.perf_counter() - start))
        taken.append((sum(one[0] for one in every), max(one[1] for one in every)))
    cpu, wall = (min(each) for each in zip(*taken[1:]))
    return cpu, wall


def show(
    times: Mapping[str, npt.NDArray[np.float64]], digest_s: tuple[float, float], n_steps: int
) -> None:
    """Print what steps and digests take, and how much more than neither."""
    for name, turns in times.items():
        each = 1e3 * turns.min(axis=0) / n_steps
        more = np.median(turns / times["neither"], axis=0) - 1
        print(f"{name:10} {each[0]:.3f} ms of processors per step ({more[0]:+.2%}), "
              f"{each[1]:.3f} ms by the clock ({more[1]:+.2%})")  # fmt: skip
    shown = [
        f"{1e3 * one:.2f} ms {what} ({one / usual:.2%} of {n_steps} steps)"
        for one, what, usual in zip(
            digest_s, ("of processors", "by the clock"), times["neither"].min(axis=0)
        )
    ]
    print(f"a digest   {', '.join(shown)}")


if __name__ == "__main__":
    main()
