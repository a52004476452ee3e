# SPDX-License-Identifier: MIT
"""What wider halos are worth, where messages are slow and where they are not.

    mpiexec -n 2 python tools/measure_halo_width.py [--delay-ms 1 0] [--size 1024] [--steps 256]
        [--steps-per-launch 1] [--device cpu] [--widths 1,2,4,8,16,32,64]

Each rank gets what is sent to it `--delay-ms` milliseconds after it has arrived; by default all is
done twice, with 1 ms and without any.  A row for each width, and for "auto", which has run
`--settle` steps before: milliseconds per step, the median of `--repeats` runs of `--steps` steps,
and how many times the speed of width 1.  All computations are open at once and run by turns, so
that what disturbs one disturbs all.  Then what is asked for, beside what was measured: the speed of
"auto" by that of the best fixed width and of width 1, and, of the steps in which it searches, by
the best one.  All have the same bits, which is checked.

Each rank has a device of its own: on two ranks `--device gpu` takes a machine with two GPUs; ranks
that would share one are refused.
"""
from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import numpy as np

import controllers
from controllers import Computation, Stencil
from hitmap.comm import default_communicator

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/support"))
from slow_messages import slow_messages

STAR = [0.0, 0.1, 0.0, 0.1, 0.6, 0.1, 0.0, 0.1, 0.0]
AUTO = "auto"


def main() -> None:
    """Measure with each delay."""
    options = _parser().parse_args()
    widths: list[int | str] = [*map(int, options.widths.split(",")), AUTO]
    for delay_ms in options.delay_ms:
        tell(f"{default_communicator().size} ranks, messages {delay_ms:g} ms late")
        with slow_messages(delay_ms * 1e-3), ExitStack() as opened:
            runs = {width: opened.enter_context(computation(options, width)) for width in widths}
            searched_s = timed(runs[AUTO], options.settle)
            seconds = by_turns(runs, options)
            used = runs[AUTO].halo_width
            same = has_same_bits([*runs.values()], options)
        for width, one in seconds.items():
            what = f"auto: {used}" if width == AUTO else str(width)
            tell(f"{what:>9}  {one * 1e3:9.3f} ms  {seconds[widths[0]] / one:6.2f}")
        tell_asked(seconds, searched_s / options.settle, delay_ms)
        tell("same bits" if same else "NOT the same bits")


def tell_asked(seconds: Mapping[int | str, float], searched_s: float, delay_ms: float) -> None:
    """What should come out, and what did."""
    fixed = {width: one for width, one in seconds.items() if width != AUTO}
    best = min(fixed, key=lambda width: fixed[width])
    auto_s = seconds[AUTO]
    asked = "at least 0.98" if not delay_ms else "0.98 without delay"
    tell(f"auto by the best fixed width, {best}: {fixed[best] / auto_s:.3f} (asked: {asked})")
    asked = "at least 3" if delay_ms == 1 else "3 with 1 ms"
    tell(f"auto by width 1: {seconds[1] / auto_s:.2f} (asked: {asked})" if 1 in fixed else "")
    tell(f"auto by the best fixed width while it searches: {fixed[best] / searched_s:.3f}")


def computation(options: argparse.Namespace, width: int | str) -> Computation:
    """A star on random numbers.  Collective."""
    program = Stencil.of("star", [(-1, 1), (-1, 1)], STAR, 1).program("float32")
    return Computation(
        program, start_of(options), devices=options.device, halo_width=width,
        steps_per_launch=options.steps_per_launch,
    )  # fmt: skip


def start_of(options: argparse.Namespace) -> np.ndarray:
    """The field as it begins."""
    return np.random.default_rng(0).random((options.size,) * 2, dtype=np.float32)


def by_turns(
    runs: Mapping[int | str, Computation], options: argparse.Namespace
) -> dict[int | str, float]:
    """Seconds of a step of each.  Collective."""
    seconds: dict[int | str, list[float]] = {width: [] for width in runs}
    order = [*runs]
    for _ in range(1 + options.repeats):
        for width in order:
            seconds[width].append(timed(runs[width], options.steps))
        order.reverse()
    return {width: median(its[1:]) / options.steps for width, its in seconds.items()}


def has_same_bits(runs: Sequence[Computation], options: argparse.Namespace) -> bool:
    """Whether all come to the same.  Collective."""
    found = set()
    for run in runs:
        run.scatter(start_of(options) if run.comm.rank == 0 else None)
        run.run(options.steps)
        cells = run.gather()
        found.add(b"" if cells is None else cells.tobytes())
    return len(found) == 1


def timed(run: controllers.Computation, n_steps: int) -> float:
    """Seconds, the same on all ranks.  Collective."""
    run.comm.Barrier()
    start = time.perf_counter()
    run.run(n_steps)
    run.comm.Barrier()
    return max(run.comm.allgather(time.perf_counter() - start))


def tell(line: str) -> None:
    """One rank does."""
    if line and default_communicator().rank == 0:
        print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    text = __doc__ or ""
    parser = argparse.ArgumentParser(
        description=text.split("\n")[0], epilog=text.rsplit("\n\n", 1)[-1]
    )
    parser.add_argument("--delay-ms", type=float, nargs="+", default=[1.0, 0.0])
    parser.add_argument("--size", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=256, help="of a timed run")
    parser.add_argument("--settle", type=int, default=20000, help="steps of auto before")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--steps-per-launch", type=int, default=1)
    parser.add_argument("--device", default="cpu", help="gpu on two ranks: two GPUs")
    parser.add_argument("--widths", default="1,2,4,8,16,32,64")
    return parser


if __name__ == "__main__":
    main()
