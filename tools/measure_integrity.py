# SPDX-License-Identifier: MIT
"""What checksums of halo messages and digests cost of a step, in processor time of all ranks.

    mpiexec -n 2 python tools/measure_integrity.py [--size 4096] [--dtype float32] [--steps 200]
        [--rounds 5] [--device SELECTOR] [--digest-every 100]

Heat on a square (5 cells), with neither, with checksums, with digests, in turn; the least of all
rounds counts.  Wall-clock time is that of a machine that does nothing else.
"""
from __future__ import annotations

import argparse
import resource
import time
from typing import Any

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
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--size", type=int, default=4096, help="cells along an axis (default: 4096)")
    add("--dtype", default="float32", help="of the field (default: float32)")
    add("--steps", type=int, default=200, help="of a round (default: 200)")
    add("--rounds", type=int, default=5, help="how many, 2 or more (default: 5)")
    add("--digest-every", type=int, default=100, help="steps (default: 100)")
    add("--steps-per-launch", type=int, help="default: what suits the device")
    add("--device", action="append", help="as for `controllers run`")
    options = parser.parse_args()
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
    least = {name: [float("inf")] * 2 for name in ways}
    for number in range(options.rounds + 1):
        for name, run in runs.items():
            begun, start = cpu_s(), time.perf_counter()
            run.run(options.steps)
            mine = cpu_s() - begun, time.perf_counter() - start
            every = comm.allgather(mine)
            found = sum(one[0] for one in every), max(one[1] for one in every)
            if number:      # the first one compiles
                least[name] = [min(pair) for pair in zip(least[name], found)]
    digests = []
    for _ in range(options.rounds):
        begun = cpu_s()
        runs["neither"].digest()
        digests.append(sum(comm.allgather(cpu_s() - begun)))
    if comm.rank == 0:
        launch = runs["neither"].plan.steps_per_launch
        print(f"{comm.size} ranks, {options.size}^2 {options.dtype}, {launch} steps per launch")
        for name, (cpu, wall) in least.items():
            more = [one / base - 1 for one, base in zip((cpu, wall), least["neither"])]
            each = [1e3 * one / options.steps for one in (cpu, wall)]
            print(f"{name:10} {each[0]:.3f} ms of processors per step ({more[0]:+.2%}), "
                  f"{each[1]:.3f} ms by the clock ({more[1]:+.2%})")  # fmt: skip
        share = min(digests[1:]) / (options.digest_every * least["neither"][0] / options.steps)
        print(f"a digest   {1e3 * min(digests[1:]):.1f} ms of processors: {share:.1%} of "
              f"{options.digest_every} steps")  # fmt: skip
    for run in runs.values():
        run.close()


if __name__ == "__main__":
    main()
