# SPDX-License-Identifier: MIT
"""What a snapshot costs the steps beside which it leaves a device with memory of its own.

    python tools/measure_snapshots.py [--size 16384] [--dtype float32] [--steps 204]
        [--steps-per-launch 12] [--rounds 5] [--device SELECTOR]

Heat on a square (5 cells): so many steps alone; the copying of the field; as many steps while the
copy is on its way to the host; and how long that took in all.  The least of all rounds counts, by
the clock, of a machine that does nothing else.  On a CPU, tiles are kept apart from the host's
memory.
"""
from __future__ import annotations

import argparse
import time
from typing import Any

import controllers as ct
from controllers.outputs.copies import Copies
from controllers.outputs.variable import variables_of
from controllers.settings.outputs import output


@ct.step
def heat(u: Any) -> dict[str, Any]:
    return dict(u=u + 0.1 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1] - 4 * u))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    add = parser.add_argument
    add("--size", type=int, default=16384, help="cells along an axis (default: 16384)")
    add("--dtype", default="float32", help="of the field (default: float32)")
    add("--steps", type=int, default=204, help="between two snapshots (default: 204)")
    add("--steps-per-launch", type=int, default=12, help="(default: 12)")
    add("--rounds", type=int, default=5, help="how many (default: 5)")
    add("--device", action="append", help="as for `controllers run`")
    options = parser.parse_args()
    n, steps = options.size, options.steps
    with ct.Computation(
        heat, (n, n), boundary="periodic", dtype=options.dtype, devices=options.device,
        u=lambda y, x: (x * 7 + y * 3) % 11, zero_copy=False,
        steps_per_launch=options.steps_per_launch,
    ) as run:  # fmt: skip
        variables = variables_of(run.plan, run.fields, output("any.zarr"))
        copies, found = Copies(), []
        for number in range(options.rounds + 1):
            moments = [time.perf_counter()]
            run.run(steps)
            moments.append(time.perf_counter())
            parts = copies.taken(variables, run._engine)
            moments.append(time.perf_counter())
            run.run(steps)
            moments.append(time.perf_counter())
            for part in parts:
                part.arrived().give()
            moments.append(time.perf_counter())
            if number:      # the first one compiles, and allocates
                found.append([after - before for before, after in zip(moments, moments[1:])])
        copies.clear()
    alone, copying, beside, after = (1e3 * min(each) for each in zip(*found))
    print(f"{n}^2 {options.dtype} on {run.report().places[0].device}, {steps} steps")
    print(f"alone {alone:.2f} ms, copied in {copying:.2f} ms, beside the transfer {beside:.2f} ms, "
          f"which took {after:.2f} ms longer")  # fmt: skip
    print(f"steps went on at {alone / (copying + beside):.3f} of their speed")


if __name__ == "__main__":
    main()
