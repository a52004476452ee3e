# SPDX-License-Identifier: MIT
"""The Himeno benchmark of examples/ against C with OpenMP, on the same cores.

    python tools/compare_himeno.py [--sizes M L] [--rounds 7] [--steps 13] [--cpu-time]

Ours with the residual of each step, and with that of the last step of a turn alone; C with the
residual of each step, its two levels of the pressure changing roles, and, as the benchmark has it,
with the new one copied back.  All take turns within one process, forwards and backwards, on arrays
that begin at unlike places of a page; printed are the median and the least milliseconds of a step,
MFLOPS by the benchmark's convention, and the speed relative to the first C within each round.
With --cpu-time, seconds are those that the process had of the CPU, divided by its cores: for
machines that are busy with other things.  The residuals are compared.
"""
from __future__ import annotations

import argparse
import ctypes
import os
import runpy
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from loops_in_c import C_HIMENO, compiled

EXAMPLE = Path(__file__).parents[1] / "examples" / "himeno.py"
FEW, PAGE, LINE = 4, 1024, 16   # steps of which the residuals are compared; in numbers of 4 bytes
Steps: TypeAlias = Callable[[int], float]   # computes so many; the residual of the last one


class OfC:
    """The loop on 14 arrays."""

    def __init__(
        self, shape: tuple[int, ...], starts: list[Any], folder: Path, copies: bool
    ) -> None:
        self._library = compiled(C_HIMENO, folder)
        self._library.step.restype = ctypes.c_float
        self._shape, self._copies = [*map(ctypes.c_long, shape)], copies
        self._arrays = [placed(start, shape, number) for number, start in enumerate(starts)]

    def run(self, n_steps: int) -> float:
        gosa = 0.0
        for _ in range(n_steps):
            pointers = (ctypes.c_void_p * 14)(*(array.ctypes.data for array in self._arrays))
            gosa = self._library.step(*self._shape, pointers)
            if self._copies:
                self._library.back(*self._shape, pointers)
            else:
                self._arrays[0], self._arrays[13] = self._arrays[13], self._arrays[0]
        return gosa


def placed(start: Any, shape: tuple[int, ...], number: int) -> npt.NDArray[np.float32]:
    """An array that begins five lines of a page after the one before, as tiles do."""
    first, size = 5 * LINE * number % PAGE, int(np.prod(shape))
    array = np.empty(size + PAGE, np.float32)[first : first + size].reshape(shape)
    array[...] = start
    return array


def entrants(size: str, folder: Path) -> dict[str, Steps]:
    """What takes turns."""
    example = runpy.run_path(str(EXAMPLE))
    shape = example["SIZES"][size]
    p = ((np.arange(shape[0]) / (shape[0] - 1)) ** 2)[:, None, None]
    starts = [p, *example["COEFFICIENTS"].values(), 0, 1, p]

    each, last = (example["computation"](*shape, devices="cpu") for _ in range(2))
    each.record("gosa", every=1)
    return {
        "ours": lambda n_steps: float(each.run(n_steps).gosa),
        "ours, the last residual": lambda n_steps: float(last.run(n_steps).gosa),
        "C": OfC(shape, starts, folder, copies=False).run,
        "C, copied back": OfC(shape, starts, folder, copies=True).run,
    }


def measured(
    each: dict[str, Steps], rounds: int, n_steps: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    """Seconds of a step of each in each round."""
    times: dict[str, list[float]] = {name: [] for name in each}
    for number in range(rounds):
        for name in [*each][:: 1 if number % 2 == 0 else -1]:
            start = clock()
            each[name](n_steps)
            times[name].append((clock() - start) / n_steps)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", nargs="+", default=["M", "L"], help="as the benchmark has them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=13, help="of a turn")
    parser.add_argument("--cpu-time", action="store_true", help="seconds of the CPU, by cores")
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    clock = (lambda: time.process_time() / cores) if options.cpu_time else time.perf_counter
    for size in options.sizes:
        with tempfile.TemporaryDirectory() as folder:
            each = entrants(size, Path(folder))
            residuals = [run(FEW) for run in each.values()]
            assert np.allclose(residuals, residuals[0], rtol=0.05), residuals   # C sums float32
            times = measured(each, options.rounds, options.steps, clock)
        shape = runpy.run_path(str(EXAMPLE))["SIZES"][size]
        n_flops = 34 * np.prod([n - 2 for n in shape])
        print(f"{size}, {' x '.join(map(str, shape))} cells, {cores} cores")
        for name, own in times.items():
            to_c = statistics.median(c / one for c, one in zip(times["C"], own))
            middle = statistics.median(own)
            print(f"    {name:24} {middle * 1e3:8.2f} ms, least {min(own) * 1e3:8.2f}"
                  f"   {n_flops / middle / 1e6:8.0f} MFLOPS   times C {to_c:5.2f}", flush=True)


if __name__ == "__main__":
    main()
