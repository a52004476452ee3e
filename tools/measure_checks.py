# SPDX-License-Identifier: MIT
"""What checks for convergence cost: steps alone, with a check every so many, and in a repeat.

    python tools/measure_checks.py --device gpu [--size 8192] [--steps 1000] [--rounds 10]
    python tools/measure_checks.py --device cpu [--size 4096] [--steps 100]

One row per dtype and case, all cases in turns, medians of `--rounds`.  A step is a five-point
sweep with the largest change as its result.  Cases: steps of a program without that result, one
launch each; steps that nobody looks at until the last; `run.run(until=...)` that asks every
`--every` steps and never holds; one step that repeats the sweep as often, asking likewise; and
`run.steps`, whose run stands still each time.
"""
from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

import controllers as ct

BASE = "steps"


@ct.step
def plain(u: Any) -> Any:
    """The sweep."""
    return {"u": 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])}


@ct.step
def relax(u: Any) -> Any:
    """The sweep with a result."""
    new = 0.25 * (u[-1, 0] + u[1, 0] + u[0, -1] + u[0, 1])
    return {"u": new, "residual": ct.max(np.abs(new - u))}


class Cases:
    """The cases for one dtype, ready to be timed."""

    def __init__(self, stack: ExitStack, options: argparse.Namespace, dtype: str) -> None:
        self._stack, self._options = stack, options
        shape = options.size, options.size
        self._values = np.random.default_rng(0).random(shape).astype(dtype)

    def _computation(self, what: Any) -> ct.Computation:
        size = self._options.size
        grid = ct.Grid(y=size, x=size, boundary=ct.fixed(0))
        made = ct.Computation(
            what, grid, u=self._values, devices=f"{self._options.device}:0", steps_per_launch=1,
        )  # fmt: skip
        return self._stack.enter_context(made)

    def all(self) -> Mapping[str, Callable[[], object]]:
        """What runs all steps, by the name of the case."""
        n_steps, every = self._options.steps, self._options.every
        alone, looked, seen = (self._computation(one) for one in (plain, relax, relax))
        asked = self._computation(relax)
        never: dict[str, Any] = {
            "until": lambda now: now.residual < 0, "check_every": every, "at_most": n_steps,
        }  # fmt: skip
        repeated = self._computation([ct.repeat(relax, **never)])

        def steps() -> list[Any]:
            return [now.residual for now in seen.steps(n_steps, every=every)]

        return {
            "no result": lambda: alone.run(n_steps),
            BASE: lambda: looked.run(n_steps),
            "until": lambda: asked.run(**never),
            "repeat": lambda: repeated.run(1),
            "run.steps": steps,
        }


def rows(options: argparse.Namespace, dtype: str) -> Iterator[str]:
    """What each case costs."""
    with ExitStack() as stack:
        cases = Cases(stack, options, dtype).all()
        found: dict[str, list[float]] = {name: [] for name in cases}
        for number in range(options.rounds + 1):
            for name, run in cases.items():
                start = time.perf_counter()
                run()
                if number:      # the first time warms up
                    found[name].append(time.perf_counter() - start)
        n_checks = options.steps // options.every
        base = statistics.median(found[BASE])
        for name, seconds in found.items():
            median = statistics.median(seconds)
            each = statistics.median(a - b for a, b in zip(seconds, found[BASE])) / n_checks
            yield (
                f"{dtype}  {name:10} {median / options.steps * 1e6:10.2f} us per sweep  "
                f"{median / base:6.3f} of {BASE}  {each * 1e6:+9.1f} us per check"
            )


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description="What checks for convergence cost.")
    parser.add_argument("--device", default="cpu", choices=("cpu", "gpu"))
    parser.add_argument("--size", type=int, help="cells along an axis (CPU: 4096, GPU: 8192)")
    parser.add_argument("--steps", type=int, help="of a run (CPU: 100, GPU: 1000)")
    parser.add_argument("--every", type=int, default=10, help="steps between two checks")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--dtypes", nargs="+", default=["float32", "float64"])
    options = parser.parse_args()
    on_gpu = options.device == "gpu"
    options.size = options.size or (8192 if on_gpu else 4096)
    options.steps = options.steps or (1000 if on_gpu else 100)
    print(
        f"{options.device}, {options.size}^2, {options.steps} steps, a check every "
        f"{options.every}, medians of {options.rounds}"
    )
    for dtype in options.dtypes:
        for row in rows(options, dtype):
            print(row, flush=True)


if __name__ == "__main__":
    main()
