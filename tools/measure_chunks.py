# SPDX-License-Identifier: MIT
"""What it costs that a field does not fit its device: rates of chunks beside one that fits.

    python tools/measure_chunks.py [--device gpu] [--case 2d4|3d7|wave] [--cap 2g] [--times 4]
        [--spans auto,1,16,64] [--slots 3] [--passes 4]

The fields together have `--times` the bytes of the cap.  A row for each number of steps per pass:
what was chosen, seconds of a pass, bytes per second over the link both ways together, cells per
second, and times the rate of single sweeps, and of the usual ones, on a field that fits under the
cap.  Below it what the report says of passes amid the run, without its begin and end.
A small field is computed both ways before, whose bits have to be the same.
Under mpiexec with several ranks each has a part of the field, and rank 0 prints.
"""
from __future__ import annotations

import argparse
import time

import numpy as np

from controllers import Computation, Stencil
from controllers.memory.ledger import parse_cap
from controllers.plan import ChunkPlan, SkewedPlan
from controllers.plan.chunks.chunk_size import traffic
from controllers.program.expression import Read
from controllers.program.field import Field
from controllers.program.program import Program
from controllers.program.stage import Stage
from hitmap.comm import default_communicator


def main() -> None:
    options = _parser().parse_args()
    program, cap = program_of(options.case), parse_cap(options.cap)
    check(options, program)
    n_axes, cell_nbytes = program.n_axes, 4 * len(program.fields)
    fits = extent(cap // (3 * cell_nbytes), n_axes)
    single = rate(options, program, fits, steps_per_launch=1)
    usual = rate(options, program, fits)
    say(f"{options.case} of {fits}, which fits: {single:.4g} cells/s by single sweeps, "
        f"{usual:.4g} as usual")
    whole = extent(options.times * cap // cell_nbytes, n_axes)
    say(f"{whole} through a cap of {options.cap}")
    for word in options.spans.split(","):
        span = None if word == "auto" else int(word)
        start = time.perf_counter()
        with Computation(
            program, whole, devices=options.device, zero_copy=False, memory_cap=cap,
            halo_width=span, slots=options.slots,
        ) as run:  # fmt: skip
            plan = run.plan
            assert isinstance(plan, ChunkPlan)
            ready_s = time.perf_counter() - start
            run.run(2 * plan.span)
            pass_s = timed(run, options.passes * plan.span) / options.passes
            moved = traffic(plan)
            cells = plan.layout.domain.n_cells * plan.span / pass_s
            say(
                f"{word:>5}: {plan.span} steps in launches of {plan.steps_per_launch}, "
                f"{plan.layout.n_places} chunks"
                f"{', skewed' * isinstance(plan, SkewedPlan)}, "
                f"ready in {ready_s:.1f} s, a pass {pass_s:.4f} s, "
                f"{(moved.up + moved.down) / pass_s * 1e-9:.1f} GB/s, excess "
                f"{moved.excess / moved.least:.1%}, {cells:.4g} cells/s, {cells / single:.2f} of "
                f"single sweeps, {cells / usual:.2f} of the usual ones"
            )  # fmt: skip
            say(f"       amid the run: {run.report().pipeline}")


def program_of(case: str) -> Program:
    """A star of one cell to each side on two or three axes; or a wave on two, of two fields."""
    if case == "wave":
        return wave()
    if case == "2d4":
        return Stencil.of("star", [(-1, 1)] * 2, [0, 1, 0, 1, 0, 1, 0, 1, 0], 4).program("float32")
    weights = np.zeros((3, 3, 3))
    for axis in range(3):
        for step in (0, 2):
            weights[tuple(step if at == axis else 1 for at in range(3))] = 1
    weights[1, 1, 1] = 2
    return Stencil.of("star", [(-1, 1)] * 3, weights.tolist(), 8).program("float32")


def wave() -> Program:
    """A wave's next state on two axes, from this one and the one before."""
    here, before = Read("u", (0, 0)), Read("before", (0, 0))
    around = Read("u", (-1, 0)) + Read("u", (1, 0)) + Read("u", (0, -1)) + Read("u", (0, 1))
    updates = {"u": 2 * here - before + 0.25 * (around - 4 * here)}
    fields = Field("u", "float32"), Field("before", "float32")
    stage = Stage("wave", updates, ((-1, 1),) * 2)
    return Program("wave", fields, (stage,), renames={"before": "u"})


def extent(n_cells: int, n_axes: int) -> tuple[int, ...]:
    """About as many cells as a square or a cube, whole vectors long."""
    return (int(n_cells ** (1 / n_axes)) // 64 * 64,) * n_axes


def check(options: argparse.Namespace, program: Program) -> None:
    """The bits of chunks are those of a field on its device."""
    shape, names = extent(1 << 20, program.n_axes), [field.name for field in program.fields]
    rng = np.random.default_rng(0)
    start = {name: rng.random(shape, dtype=np.float32) for name in names}
    found = []
    for chunks in (None, 7):
        with Computation(program, shape, devices=options.device, zero_copy=False,
                         chunks=chunks) as run:  # fmt: skip
            for name in names:
                run[name].set(start[name])
            run.run(37)
            found.append([np.asarray(run[name].gather()) for name in names])
    same = all(map(np.array_equal, *found))
    say("same bits" if same else "NOT the same bits")


def rate(
    options: argparse.Namespace, program: Program, sizes: tuple[int, ...],
    steps_per_launch: int | None = None,
) -> float:  # fmt: skip
    """Cells per second where the field fits."""
    with Computation(program, sizes, devices=options.device, zero_copy=False,
                     steps_per_launch=steps_per_launch) as run:  # fmt: skip
        n_steps = 8 * run.plan.steps_per_launch
        run.run(n_steps)
        while timed(run, n_steps) < 0.2:
            n_steps *= 2
        return run.domain.n_cells * n_steps / timed(run, n_steps)


def say(text: str) -> None:
    """The same on all ranks, once."""
    if default_communicator().rank == 0:
        print(text, flush=True)


def timed(run: Computation, n_steps: int) -> float:
    """Seconds of so many steps."""
    start = time.perf_counter()
    run.run(n_steps)
    return time.perf_counter() - start


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--case", choices=("2d4", "3d7", "wave"), default="2d4")
    parser.add_argument("--cap", default="2g")
    parser.add_argument("--times", type=int, default=4)
    parser.add_argument("--spans", default="auto,1,16,64")
    parser.add_argument("--slots", type=int)
    parser.add_argument("--passes", type=int, default=4)
    return parser


if __name__ == "__main__":
    main()
