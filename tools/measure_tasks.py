# SPDX-License-Identifier: MIT
"""What tasks cost, how well their times are foreseen; or one of these.

    python tools/measure_tasks.py [--device gpu] [--cores N] [--private] [--out found.json]
                                  [overhead] [errors]

overhead: from `submit` to the start of a function, and to the enqueue of a kernel of some cells; to
its end, beside the bare enqueue by pyopencl to its end; the median and the least of 2000.
errors: of the estimator, for a kernel and a function of eight sizes, after 20 executions of which
two were planted 2 to 20 times too long: of a known size, and of one that five others foretell.
Then the mean by which executions after the first ten of each size missed what these foresee
(`steady`), and that by the factor of the newest 8, 16 and so on before each (`lately 8`).
"""
from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Sequence
from statistics import median
from typing import Any
from unittest.mock import patch

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # cores are the pool's

import numpy as np
import numpy.typing as npt
import pyopencl as cl

import controllers as ct
from controllers.estimates.estimate import Estimate
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey
from controllers.pool import lately
from controllers.pool.job import Job
from controllers.pool.lately import Lately
from controllers.pool.pool import Pool
from controllers.pool.way import Way

Array = npt.NDArray[np.float64]
WIDTH = 1 << 15         # doubles of a row: they stay in the cache of a core
MATRIX, FACTORS = np.full((192, 192), 0.5), np.full((256, 256), 0.5)
N_TIMES, WARM = 2000, 50
TURNS_EACH, SHORTEST_S = 4, 1e-3
N_KNOWN, N_PLANTED, N_OTHERS = 20, 2, 5
N_FIRST, NEWEST = 10, (8, 16, 32, 64)

def _turned(times: str) -> ct.Kernel:
    """Turns of each cell, so many times: one of the parameters."""
    return ct.Kernel.of("turned", """
    __kernel void turned(__global double *x, TILE(x), BOX, const long n, const long again,
                         const long on_host, const long none)
    {
        CELL;
        const double before = HERE(x);
        double after = before;
        for (long k = 0; k < TIMES; ++k) {      /* `none` is 0: each time the same */
            after = before + none * k;
            for (long j = 0; j < n; ++j) after = 3.7 * after * (1 - after);
        }
        HERE(x) = after;
    }""".replace("TIMES", times), roles={"x": "updating"})  # fmt: skip


TURNS, TURNS_BY_SECOND = _turned("again"), _turned("on_host")
ADDS = ct.Kernel.of("more", """
    __kernel void more(__global float *y, TILE(y), BOX) { CELL; HERE(y) += 1; }""",
                    roles={"y": "updating"})  # fmt: skip


def turned_on_host(x: Array, n: int, again: int, on_host: int, none: int) -> None:
    after, rest, spent = np.empty(WIDTH), np.empty(WIDTH), np.empty_like(MATRIX)
    for row in x:
        for _ in range(on_host):    # long enough for other threads to run meanwhile
            np.matmul(MATRIX, MATRIX, out=spent)
        after[:] = row
        for _ in range(n):
            np.subtract(1, after, out=rest)
            np.multiply(after, 3.7, out=after)
            np.multiply(after, rest, out=after)
        row[:] = after


def turned_at_once(x: Array, n: int, again: int, on_host: int, none: int) -> None:
    """The same by functions of all rows: the interpreter's lock is taken seldom, however many."""
    after, cells = np.empty_like(x), x.reshape(-1, len(FACTORS))
    spent = np.empty_like(cells)
    for _ in range(on_host):
        np.matmul(cells, FACTORS, out=spent)
    for _ in range(n):
        np.subtract(1, x, out=after)
        np.multiply(x, 3.7, out=x)
        np.multiply(x, after, out=x)


def turns(name: str, *, kernel: bool = True, function: bool = True) -> ct.Task:
    """n turns, `again` times on a device, on cores with so many products of matrices for each row.

    Times are kept by the name.
    """
    made = ct.Task(name, ("x", "n", "again", "on_host", "none"), roles={"x": "updating"})
    if function:
        made.variant(turned_on_host)
    if kernel:
        made.variant(TURNS)
    return made


def opened(given: argparse.Namespace) -> Pool:
    return ct.tasks(given.device, cores=given.cores, zero_copy=not given.private)


def overhead(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Microseconds."""
    more = ct.Task("more", ("y",), roles={"y": "updating"})
    more.variant(ADDS)
    y = np.zeros(1000, np.float32)
    started: list[float] = []
    with opened(given) as pool:
        side: Any = pool._lanes[1].side
        issue = side._commands.issue

        def noted(*command: Any) -> Any:
            started.append(time.perf_counter())
            return issue(*command)

        side._commands.issue = noted
        found: dict[str, list[float]] = {word: [] for word in ("to enqueue", "to end", "submit")}
        for _ in range(N_TIMES + WARM):
            begin_s = time.perf_counter()
            future = pool.submit(more, y)
            back_s = time.perf_counter()
            future.exception()
            found["to end"].append(time.perf_counter() - begin_s)
            found["to enqueue"].append(started[-1] - begin_s)
            found["submit"].append(back_s - begin_s)
        found["to start of a function"] = [
            -time.perf_counter() + pool.submit(time.perf_counter).result()
            for _ in range(N_TIMES + WARM)
        ]
        begin_s, used_s = time.perf_counter(), time.process_time()
        for _ in range(N_TIMES):
            pool.submit(more, y)
        pool.wait()
        found["each of many"] = [(time.perf_counter() - begin_s) / N_TIMES]
        found["each of many, of all cores"] = [(time.process_time() - used_s) / N_TIMES]
        device = side.executor.device.handle
    assert (y == 2 * N_TIMES + WARM).all(), "each task was done once"
    found["bare enqueue to end"] = bare_enqueues(device)
    return {
        word: {"median": 1e6 * median(some[-N_TIMES:]), "least": 1e6 * min(some[-N_TIMES:])}
        for word, some in found.items()
    }


def bare_enqueues(device: cl.Device) -> list[float]:
    """Seconds from the enqueue of the same kernel to its end, by pyopencl alone."""
    context = cl.Context([device])
    queue = cl.CommandQueue(context, device)
    text = "__kernel void more(__global float *y) { y[get_global_id(0)] += 1; }"
    kernel = cl.Kernel(cl.Program(context, text).build(), "more")
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE, 4000)
    kernel.set_args(buffer)
    times = []
    for _ in range(N_TIMES + WARM):
        begin_s = time.perf_counter()
        cl.enqueue_nd_range_kernel(queue, kernel, (1000,), None).wait()
        times.append(time.perf_counter() - begin_s)
    return times


def errors(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    """By variant: the median parts by which next executions differ from what was foreseen."""
    found = {}
    with opened(given) as pool:
        told: list[tuple[Case, float]] = []
        ended = pool._forecast.ended

        def note(job: Job, way: Way, seconds: float) -> None:
            told.append((Case(job.size, way.units(job.cores, len(job.lanes))), seconds))
            ended(job, way, seconds)

        pool._forecast.ended = note     # type: ignore[method-assign]
        for variant in ("kernel", "function"):
            task = turns(variant, kernel=variant == "kernel", function=variant == "function")
            times = of_sizes(pool, task, told)
            found[variant] = judged(times)
    return found


def of_sizes(
    pool: Pool, task: ct.Task, told: list[tuple[Case, float]]
) -> dict[Case, list[float]]:
    """Seconds of executions, in turns of sizes; the smallest takes a millisecond, about."""
    arrays = [np.full((rows, WIDTH), 0.3) for rows in (8, 11, 16, 23, 32, 45, 64, 91)]
    again, seconds = 1, 0.0
    while seconds < SHORTEST_S:
        again *= 2
        told.clear()
        for _ in range(3):
            pool.submit(task, arrays[0], TURNS_EACH, again, again, 0).exception()
        seconds = min(took_s for _, took_s in told)
    for _ in range(2):      # the first time each is brought to the device
        told.clear()
        for _ in range(N_KNOWN + 5):
            for array in arrays:
                pool.submit(task, array, TURNS_EACH, again, again, 0).exception()
    times: dict[Case, list[float]] = {}
    for case, took_s in told:
        times.setdefault(case, []).append(took_s)
    return times


def judged(times: dict[Case, list[float]]) -> dict[str, float]:
    """Errors for sizes known and new, after executions of which some are planted too long."""
    draw = np.random.default_rng(1)
    key = TaskKey("it", "one", "a device", "1")
    known, new = [], []
    for case, took in times.items():
        for shift in range(len(took) - N_KNOWN):
            estimates = Estimates(None)
            disturbed = draw.choice(N_KNOWN, N_PLANTED, replace=False)
            for number, one_s in enumerate(took[shift : shift + N_KNOWN]):
                factor = draw.uniform(2, 20) if number in disturbed else 1.0
                estimates.add(key, case, one_s * factor)
            foreseen = estimates.estimate(key, case)
            known.append(abs(foreseen.seconds / took[shift + N_KNOWN] - 1) if foreseen else 1.0)
            new.append(new_error(times, case, shift, draw))
    slowest = max(times.items(), key=lambda one: one[0])[1]
    return {"known": median(known), "new": median(new), "n": len(known),
            "scatter": median(abs(one / median(slowest) - 1) for one in slowest),
            "steady": missed(times, None), **{f"lately {n}": missed(times, n) for n in NEWEST}}


def missed(times: dict[Case, list[float]], newest: int | None) -> float:
    """The mean by which executions miss what the first ten of their size foresee, by time.

    newest: of which the pace is told by so many before each, if any (controllers.pool.lately).
    """
    usual = {case: Estimate.about(median(took[:N_FIRST]), 0.1, "history")
             for case, took in times.items()}  # fmt: skip
    off_s = all_s = 0.0
    with patch.multiple(lately, NEWEST=newest or 1, CHANGED=0.0):
        pace = Lately()
        for turn in range(min(map(len, times.values()))):
            for case, took in times.items():
                foreseen_s = pace.factor * usual[case].seconds
                if turn >= N_FIRST:
                    off_s += abs(foreseen_s - took[turn])
                    all_s += took[turn]
                if newest is not None:
                    pace.fresh.append((case.size, case.units, took[turn]))
                    pace.compare(lambda size, units: usual[Case(size, units)])
    return off_s / all_s


def new_error(
    times: dict[Case, list[float]], case: Case, shift: int, draw: np.random.Generator
) -> float:
    """Of a size that others foretell, with four executions of each."""
    cases = [one for one in times if one != case]
    others = [cases[at] for at in draw.permutation(len(cases))[:N_OTHERS]]
    key, estimates = TaskKey("it", "one", "a device", "1"), Estimates(None)
    each = N_KNOWN // N_OTHERS
    disturbed = draw.choice(N_KNOWN, N_PLANTED, replace=False)
    for number in range(N_KNOWN):
        other = others[number // each]
        factor = draw.uniform(2, 20) if number in disturbed else 1.0
        estimates.add(key, other, factor * times[other][shift + number % each])
    foreseen = estimates.estimate(key, case)
    return 1.0 if foreseen is None else abs(foreseen.seconds / times[case][shift] - 1)


MEASURED = {"overhead": overhead, "errors": errors}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("what", nargs="*", help=f"of {', '.join(MEASURED)}")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--cores", type=int)
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args(arguments)
    found = {}
    for what in given.what or MEASURED:
        found[what] = MEASURED[what](given)
        for word, numbers in found[what].items():
            listed = ", ".join(f"{name} {number:.4g}" for name, number in numbers.items())
            print(f"{what}, {word}: {listed}", flush=True)
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
