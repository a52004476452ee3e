# SPDX-License-Identifier: MIT
"""What wider halos are worth, where messages are slow and where they are not.

    mpiexec -n 2 python tools/measure_halo_width.py [--delay-ms 1] [--size 1024] [--steps 240]
        [--steps-per-launch 1] [--device cpu] [--widths 1,2,4,8,16]

Each rank gets what is sent to it `--delay-ms` milliseconds after it has arrived.  A row for each
width: seconds per step, and how many times the speed of width 1; the last row is "auto", once it
has settled.  The bits of all of them are the same, which is checked.
"""
from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

import controllers
from controllers import Computation, Stencil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))
from slow_messages import slow_messages

STAR = [0.0, 0.1, 0.0, 0.1, 0.6, 0.1, 0.0, 0.1, 0.0]


def main() -> None:
    options = _parser().parse_args()
    widths: list[int | str] = [int(word) for word in options.widths.split(",")]
    first: float | None = None
    bits: list[bytes] = []
    with slow_messages(options.delay_ms * 1e-3):
        for width in [*widths, "auto"]:
            step_s, used, cells = measured(options, width)
            if cells is None:
                continue
            first = step_s if first is None else first
            bits.append(cells)
            what = f"auto: {used}" if width == "auto" else str(width)
            print(f"{what:>9}  {step_s * 1e3:9.3f} ms  {first / step_s:6.2f}", flush=True)
    if bits:
        print("same bits" if len(set(bits)) == 1 else "NOT the same bits")


def measured(
    options: argparse.Namespace, width: int | str
) -> tuple[float, int, bytes | None]:
    """Seconds per step, the width in use, and on rank 0 the cells.  Collective."""
    program = Stencil.of("star", [(-1, 1), (-1, 1)], STAR, 1).program("float32")
    start = np.random.default_rng(0).random((options.size,) * 2, dtype=np.float32)
    with Computation(
        program, start, devices=options.device, halo_width=width,
        steps_per_launch=options.steps_per_launch,
    ) as run:  # fmt: skip
        run.run(options.settle if width == "auto" else options.steps)
        times = [_timed(run, options.steps) for _ in range(options.repeats)]
        used = run.halo_width
        run.scatter(start if run.comm.rank == 0 else None)
        run.run(options.steps)
        cells = run.gather()
        return min(times) / options.steps, used, None if cells is None else cells.tobytes()


def _timed(run: controllers.Computation, n_steps: int) -> float:
    run.comm.Barrier()
    start = time.perf_counter()
    run.run(n_steps)
    run.comm.Barrier()
    return time.perf_counter() - start


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--delay-ms", type=float, default=1.0)
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--settle", type=int, default=20000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--steps-per-launch", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--widths", default="1,2,4,8,16")
    return parser




if __name__ == "__main__":
    main()
